"""Neighbouring data sets for audits and property tests of a privacy guarantee.

Each function returns a list of :class:`NeighbourPair`. All data are simulated. Some
pairs attain known sensitivities. Others reveal common mistakes: they have records
outside of the bounds, empty clusters, ties, or a record that creates or removes a
component.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklearn_dptda._typing import Adjacency, Bounds, FloatArray, LegacyRandomStateLike
from sklearn_dptda.privacy._guarantee import check_adjacency
from sklearn_dptda.privacy._parameters import quoted

__all__ = [
    "NeighbourPair",
    "cloud_neighbours",
    "function_neighbours",
    "graph_neighbours",
    "row_neighbours",
]


class NeighbourPair(NamedTuple):
    """Two neighbouring data sets and a description of their difference.

    Parameters
    ----------
    name : str
        Description of the difference.
    first, second : object
        The two data sets.

    Examples
    --------
    >>> from sklearn_dptda.privacy.neighbours import row_neighbours
    >>> pair = row_neighbours(5, (0, 1), adjacency="add-remove")[0]
    >>> len(pair.first), len(pair.second)
    (5, 4)
    """

    name: str
    first: Any
    second: Any


def row_neighbours(
    n_rows: int,
    bounds: Bounds,
    *,
    adjacency: Adjacency = "replace-one",
    random_state: LegacyRandomStateLike = 0,
) -> list[NeighbourPair]:
    """Make pairs of tables that differ in one row.

    Parameters
    ----------
    n_rows : int
        Number of rows of the larger table, at least 2.
    bounds : pair of array-like of shape (n_features,)
        Public lower and upper bounds of the columns.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        ``"replace-one"``: one row is replaced. ``"add-remove"``: the second table
        lacks one row.
    random_state : int, RandomState instance or None, default=0
        Source of the tables that are drawn at random.

    Returns
    -------
    list of NeighbourPair
        Pairs of ndarrays of shape (n_rows, n_features).

    Examples
    --------
    >>> from sklearn_dptda.privacy.neighbours import row_neighbours
    >>> pair = row_neighbours(3, ([0, 0], [1, 1]))[0]
    >>> pair.name, pair.first[-1], pair.second[-1]
    ('corner to corner, others at the start', array([0., 0.]), array([1., 1.]))
    """
    check_adjacency(adjacency)
    if n_rows < 2:
        raise ValueError(f"n_rows must be at least 2; got {quoted(n_rows)}.")
    low, high = _box(bounds)
    rng = check_random_state(random_state)
    pairs = [
        NeighbourPair(name, np.vstack([others, start]), np.vstack([others, end]))
        for name, others, start, end in _moves(n_rows - 1, low, high, rng)
    ]
    # In all pairs above, the last row moves. One more pair tests whether the order of the rows, or
    # of the two tables, has an effect.
    turned = pairs[4]
    pairs.append(
        NeighbourPair(f"{turned.name}, first row", turned.second[::-1], turned.first[::-1])
    )
    if adjacency == "replace-one":
        return pairs
    return [
        *(NeighbourPair(pair.name, pair.second, pair.first[:-1]) for pair in pairs[:-1]),
        NeighbourPair(pairs[-1].name, pairs[-1].first, pairs[-1].first[1:]),
        NeighbourPair("one more at the start", pairs[0].first, pairs[0].first[:-1]),
    ]


def _box(bounds: Bounds) -> tuple[FloatArray, FloatArray]:
    low, high = (np.atleast_1d(np.asarray(side, dtype=float)) for side in bounds)
    if not (low < high).all():
        raise ValueError("bounds must have each lower bound below its upper bound.")
    return low, high


def _moves(
    n: int, low: FloatArray, high: FloatArray, rng: np.random.RandomState
) -> list[tuple[str, FloatArray, FloatArray, FloatArray]]:
    """Cases of a name, the rows that stay, and the start and end of the row that moves."""
    middle, wide = (low + high) / 2, high - low
    cloud = rng.uniform(low, high, (n, len(low)))
    halves = np.where(np.arange(n)[:, None] < n // 2, low, high)
    return [
        ("corner to corner, others at the start", np.tile(low, (n, 1)), low, high),
        ("corner to corner, others at the end", np.tile(high, (n, 1)), low, high),
        ("corner to corner, others in the middle", np.tile(middle, (n, 1)), low, high),
        ("corner to corner, others in both corners", halves, low, high),
        ("corner to corner, others at random", cloud, low, high),
        ("far outside, from one side to the other", cloud, low - 1e6 * wide, high + 1e6 * wide),
        ("as far outside as floats go", cloud, np.full_like(low, -1e300), np.full_like(low, 1e300)),
        ("into a value of its own", halves, low, middle),
        ("into a twin of another row", cloud, middle, cloud[0]),
        ("out of a crowd", np.tile(middle, (n, 1)), middle, high),
        ("opposite corners of two axes", halves, *_opposite(low, high)),
    ]


def _opposite(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    start = np.where(np.arange(len(low)) % 2 == 0, low, high)
    return start, low + high - start


def cloud_neighbours(
    n_points: int,
    bounds: Bounds,
    *,
    adjacency: Adjacency = "replace-one",
    random_state: LegacyRandomStateLike = 0,
) -> list[NeighbourPair]:
    """Make pairs of point clouds that differ in one point.

    These are the pairs of :func:`row_neighbours`, and circles that one point
    closes.

    Parameters
    ----------
    n_points : int
        Number of points of the larger cloud, at least 2.
    bounds : pair of array-like of shape (n_features,)
        Public lower and upper bounds of the coordinates.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        ``"replace-one"``: one point is replaced. ``"add-remove"``: the second
        cloud lacks one point.
    random_state : int, RandomState instance or None, default=0
        Source of the clouds that are drawn at random.

    Returns
    -------
    list of NeighbourPair
        Pairs of ndarrays of shape (n_points, n_features).

    Examples
    --------
    >>> from sklearn_dptda.privacy.neighbours import cloud_neighbours
    >>> cloud_neighbours(8, ([0, 0], [1, 1]))[-1].name
    'a circle whose centre is filled'
    """
    pairs = row_neighbours(n_points, bounds, adjacency=adjacency, random_state=random_state)
    low, high = _box(bounds)
    if len(low) < 2:
        return pairs
    angles = 2 * np.pi * np.arange(n_points) / n_points
    circle = np.tile((low + high) / 2, (n_points, 1))
    circle[:, :2] += 0.4 * (high - low)[:2] * np.column_stack([np.cos(angles), np.sin(angles)])
    if adjacency == "add-remove":
        return [*pairs, NeighbourPair("a circle that opens", circle, circle[1:])]
    opened, filled = circle.copy(), circle.copy()
    opened[0], filled[0] = circle[-1], (low + high) / 2
    return [
        *pairs,
        NeighbourPair("a circle that opens", circle, opened),
        NeighbourPair("a circle whose centre is filled", circle, filled),
    ]


def graph_neighbours(n_nodes: int, *, directed: bool = False) -> list[NeighbourPair]:
    """Make pairs of graphs on the same nodes that differ in one edge.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 4.
    directed : bool, default=False
        Whether the graphs are directed: an edge is then one entry of the matrix, not
        two.

    Returns
    -------
    list of NeighbourPair
        Pairs of adjacency matrices: ndarrays of zeros and ones, of shape
        (n_nodes, n_nodes).

    Examples
    --------
    >>> from sklearn_dptda.privacy.neighbours import graph_neighbours
    >>> pair = graph_neighbours(4)[0]
    >>> pair.name, int((pair.first != pair.second).sum())
    ('an empty graph and its first edge', 2)
    """
    if n_nodes < 4:
        raise ValueError(f"n_nodes must be at least 4; got {quoted(n_nodes)}.")
    n, half = n_nodes, n_nodes // 2
    empty = np.zeros((n, n), dtype=np.int8)
    complete = 1 - np.eye(n, dtype=np.int8)
    star = empty.copy()
    star[0, 1:] = star[1:, 0] = 1
    cliques = complete.copy()
    cliques[:half, half:] = cliques[half:, :half] = 0
    path = np.eye(n, k=1, dtype=np.int8) + np.eye(n, k=-1, dtype=np.int8)
    bipartite = complete - cliques
    lonely = complete.copy()
    lonely[0] = lonely[:, 0] = 0
    cases = [
        ("an empty graph and its first edge", empty, (0, 1)),
        ("a complete graph without an edge", complete, (0, 1)),
        ("a star that loses a leaf", star, (0, n - 1)),
        ("a star whose leaves meet", star, (1, 2)),
        ("a bridge between two cliques", cliques, (0, n - 1)),
        ("a path that closes", path, (0, n - 1)),
        ("a path that breaks", path, (half - 1, half)),
        ("an odd cycle in a bipartite graph", bipartite, (0, 1)),
        ("a node that is alone no longer", lonely, (0, 1)),
    ]
    if directed:
        cases.append(("a directed cycle that closes", np.eye(n, k=1, dtype=np.int8), (n - 1, 0)))
    return [NeighbourPair(name, g.copy(), _flipped(g, edge, directed)) for name, g, edge in cases]


def _flipped(graph: NDArray[np.int8], edge: tuple[int, int], directed: bool) -> NDArray[np.int8]:
    other = graph.copy()
    i, j = edge
    other[i, j] ^= 1
    if not directed:
        other[j, i] = other[i, j]
    return other


def function_neighbours(
    shape: tuple[int, ...],
    sensitivity: float,
    upper: float,
    *,
    random_state: LegacyRandomStateLike = 0,
) -> list[NeighbourPair]:
    """Make pairs of functions on a grid that differ by at most the sensitivity everywhere.

    Parameters
    ----------
    shape : tuple of int
        Shape of the grid.
    sensitivity : float
        Largest difference between neighbours at a node.
    upper : float
        Upper bound of the values. The lower bound is 0.
    random_state : int, RandomState instance or None, default=0
        Source of the functions that are drawn at random.

    Returns
    -------
    list of NeighbourPair
        Pairs of ndarrays of the given shape.

    Examples
    --------
    >>> from sklearn_dptda.privacy.neighbours import function_neighbours
    >>> pair = function_neighbours((3, 3), sensitivity=0.1, upper=1.0)[0]
    >>> bool(abs(pair.first - pair.second).max() <= 0.1 + 1e-12)
    True
    """
    rng = check_random_state(random_state)
    noise = rng.uniform(0, upper, shape)
    waves = upper * (0.5 + 0.5 * np.cos(np.pi * np.indices(shape).sum(axis=0)))
    well = np.full(shape, upper)
    well.flat[0] = 0.0
    two = np.full(shape, upper / 2)
    two.flat[0] = two.flat[-1] = 0.0
    signs = np.where(np.indices(shape).sum(axis=0) % 2 == 0, 1.0, -1.0)

    first_node = np.zeros(shape)
    first_node.flat[0] = 1.0
    hill = np.zeros(shape)
    hill[tuple(size // 2 for size in shape)] = upper

    def moved(values: FloatArray, change: float | FloatArray) -> FloatArray:
        return np.clip(values + sensitivity * change, 0.0, upper)

    cases: list[tuple[str, FloatArray, float | FloatArray]] = [
        ("all values rise", noise, 1.0),
        ("all values fall", noise, -1.0),
        ("neighbouring nodes part", np.full(shape, upper / 2), signs),
        ("waves shrink", waves, -signs),
        ("the only well fills", well, np.where(well == 0, 1.0, 0.0)),
        ("one of two wells fills", two, first_node),
        ("the only hill sinks", hill, np.where(hill > 0, -1.0, 0.0)),
        ("everything at the upper bound sinks", np.full(shape, upper), -1.0),
        ("everything at zero rises", np.zeros(shape), 1.0),
    ]
    return [NeighbourPair(name, values, moved(values, change)) for name, values, change in cases]

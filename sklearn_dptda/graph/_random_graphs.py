"""Random graphs with a latent shape.

Proof: doc/theory/graphs.md, "Flipped dot product graphs".
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from sklearn_dptda._typing import FloatArray, IntArray, LegacyRandomStateLike
from sklearn_dptda.graph._adjacency import of_pairs
from sklearn_dptda.privacy._parameters import quoted

# Number of rows whose pairs are drawn at a time.
_ROWS_AT_ONCE = 1024
_SHAPES = ("circle", "sphere", "two_circles", "figure_eight")


def make_latent(
    n_nodes: int = 500,
    shape: Literal["circle", "sphere", "two_circles", "figure_eight"] = "circle",
    *,
    random_state: LegacyRandomStateLike = None,
) -> FloatArray:
    """Generate latent positions of a random dot product graph, on a curve or a surface.

    A point ``u`` of the unit disc or ball becomes ``(u, 1) / sqrt(2)``. The inner products of
    such vectors are probabilities.

    Parameters
    ----------
    n_nodes : int, default=500
        Number of nodes.
    shape : {"circle", "sphere", "two_circles", "figure_eight"}, default="circle"
        Shape on which the points lie. The two circles are disjoint. The figure eight is
        Gerono's lemniscate.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    X : ndarray of shape (n_nodes, n_latent)
        Latent positions, with three coordinates, or four for the sphere.

    See Also
    --------
    make_rdpg : Draws a graph from latent positions.

    Examples
    --------
    >>> from sklearn_dptda.graph import make_latent
    >>> make_latent(100, "sphere", random_state=0).shape
    (100, 4)
    """
    rng = check_random_state(random_state)
    angle = rng.uniform(0, 2 * np.pi, n_nodes)
    if shape == "circle":
        u = np.column_stack([np.cos(angle), np.sin(angle)])
    elif shape == "two_circles":
        side = np.where(rng.uniform(size=n_nodes) < 0.5, -1.0, 1.0)
        u = 0.4 * np.column_stack([np.cos(angle), np.sin(angle)])
        u[:, 0] += 0.6 * side
    elif shape == "figure_eight":
        u = np.column_stack([np.cos(angle), np.sin(angle) * np.cos(angle)])
    elif shape == "sphere":
        u = rng.standard_normal((n_nodes, 3))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
    else:
        raise ValueError(f"shape must be one of {', '.join(_SHAPES)}; got {quoted(shape)}.")
    return np.column_stack([u, np.ones(n_nodes)]) / np.sqrt(2)


def make_rdpg(
    X: ArrayLike, *, signature: ArrayLike | None = None, random_state: LegacyRandomStateLike = None
) -> csr_array:
    """Draw a (generalised) random dot product graph from latent positions.

    Nodes ``i`` and ``j`` are joined independently with probability ``X[i] @ X[j]``.

    Parameters
    ----------
    X : array-like of shape (n_nodes, n_latent)
        Latent positions of the nodes.
    signature : array-like of shape (n_latent,), default=None
        Signs of the terms of the inner product, 1 or -1. None: all are 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes), dtype float32
        Symmetric adjacency matrix with a zero diagonal.

    Examples
    --------
    >>> from sklearn_dptda.graph import make_latent, make_rdpg
    >>> A = make_rdpg(make_latent(100, random_state=0), random_state=0)
    >>> A.shape
    (100, 100)
    """
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or len(X) < 2 or not np.isfinite(X).all():
        raise ValueError("X must be a two-dimensional array of at least two finite positions.")
    signs = np.ones(X.shape[1]) if signature is None else np.asarray(signature, dtype=float)
    if signs.shape != (X.shape[1],) or (np.abs(signs) != 1).any():
        raise ValueError("signature must have one sign, 1 or -1, for each latent dimension.")
    return _draw(len(X), lambda part: X[part] * signs @ X.T, random_state)


def make_sbm(
    sizes: Sequence[int],
    probabilities: ArrayLike,
    *,
    activities: ArrayLike | None = None,
    random_state: LegacyRandomStateLike = None,
) -> tuple[csr_array, IntArray]:
    """Draw a stochastic block model, optionally with degree correction.

    Parameters
    ----------
    sizes : list of int
        Number of nodes of each block.
    probabilities : array-like of shape (n_blocks, n_blocks)
        Symmetric table of the probabilities of an edge between nodes of two blocks.
    activities : array-like of shape (n_nodes,), default=None
        Non-negative activities, by which the probability of an edge is multiplied for both
        nodes. None: all are 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    A : csr_array of shape (n_nodes, n_nodes), dtype float32
        Symmetric adjacency matrix with a zero diagonal.
    y : ndarray of shape (n_nodes,)
        Block of each node.

    See Also
    --------
    make_mixed_membership : Nodes that belong to several blocks.

    References
    ----------
    B. Karrer, M. Newman, "Stochastic blockmodels and community structure in networks", 2011,
    for the activities. The paper has Poisson numbers of edges instead of single edges.

    Examples
    --------
    >>> from sklearn_dptda.graph import make_sbm
    >>> A, y = make_sbm([2, 3], [[1, 0], [0, 1]], random_state=0)
    >>> int(A.nnz), y.tolist()
    (8, [0, 0, 1, 1, 1])
    """
    table = _check_table(probabilities, len(sizes))
    if sum(sizes) < 2 or min(sizes) < 0:
        raise ValueError("sizes must be non-negative numbers of nodes with a sum of at least 2.")
    y = np.repeat(np.arange(len(sizes)), sizes)
    t = np.ones(len(y)) if activities is None else np.asarray(activities, dtype=float)
    if t.shape != y.shape or not (np.isfinite(t) & (t >= 0)).all():
        raise ValueError("activities must have one finite non-negative number for each node.")
    rates = table[:, y] * t
    return _draw(len(y), lambda part: t[part, None] * rates[y[part]], random_state), y


def make_mixed_membership(
    n_nodes: int,
    probabilities: ArrayLike,
    *,
    concentration: float = 0.2,
    random_state: LegacyRandomStateLike = None,
) -> tuple[csr_array, FloatArray]:
    """Draw a mixed-membership block model, in which each node is a mixture of blocks.

    Nodes ``i`` and ``j`` are joined with probability ``M[i] @ B @ M[j]``, where ``M`` are the
    memberships and ``B`` the probabilities.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 2.
    probabilities : array-like of shape (n_blocks, n_blocks)
        Symmetric table of the probabilities of an edge between nodes of two blocks.
    concentration : float, default=0.2
        Concentration of the symmetric Dirichlet distribution of the memberships. Near 0, each
        node belongs to one block. For large values, all nodes belong equally to all blocks.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    A : csr_array of shape (n_nodes, n_nodes), dtype float32
        Symmetric adjacency matrix with a zero diagonal.
    M : ndarray of shape (n_nodes, n_blocks)
        Memberships, whose sum is one for each node.

    See Also
    --------
    make_sbm : Nodes that belong to one block each.

    References
    ----------
    E. Airoldi, D. Blei, S. Fienberg, E. Xing, "Mixed membership stochastic blockmodels", 2008.

    Examples
    --------
    >>> from sklearn_dptda.graph import make_mixed_membership
    >>> A, M = make_mixed_membership(100, [[0.5, 0.1], [0.1, 0.5]], random_state=0)
    >>> A.shape, M.shape
    ((100, 100), (100, 2))
    """
    table = _check_table(probabilities, len(np.atleast_1d(probabilities)))
    if n_nodes < 2:
        raise ValueError(f"n_nodes must be at least 2; got {quoted(n_nodes)}.")
    if not 0 < concentration < np.inf:
        raise ValueError(f"concentration must be positive and finite; got {quoted(concentration)}.")
    rng = check_random_state(random_state)
    M = rng.dirichlet(np.full(len(table), float(concentration)), n_nodes)
    return _draw(n_nodes, lambda part: M[part] @ table @ M.T, rng), M


def _check_table(probabilities: ArrayLike, n_blocks: int) -> FloatArray:
    """Check the probabilities of edges between blocks."""
    table = np.asarray(probabilities, dtype=float)
    if table.shape != (n_blocks, n_blocks) or not np.array_equal(table, table.T):
        raise ValueError("probabilities must be a symmetric table with one row for each block.")
    if not ((table >= 0) & (table <= 1)).all():
        raise ValueError("probabilities must be in [0, 1].")
    return table


def _draw(
    n: int, probabilities: Callable[[slice], FloatArray], random_state: LegacyRandomStateLike
) -> csr_array:
    """Draw an undirected graph of independent pairs, given the probabilities of slices of rows."""
    rng = check_random_state(random_state)
    pairs = []
    for start in range(0, n, _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, n))
        table = probabilities(part)
        if (table < -1e-12).any() or (table > 1 + 1e-12).any():
            raise ValueError(
                "The probabilities of edges must be in [0, 1]. Scale the latent positions, or the "
                "probabilities and activities."
            )
        rows, columns = np.nonzero(rng.uniform(size=table.shape) < table)
        upper = rows + start < columns
        pairs.append((rows[upper] + start, columns[upper]))
    rows, columns = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return of_pairs(rows, columns, (n, n), True)

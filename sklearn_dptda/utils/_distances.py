"""Validation of persistence diagrams, and exact distances between them."""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import KDTree

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.utils._validation import refuse_lossy

# Differences of larger coordinates may overflow.
_LARGEST_COORDINATE = 1e300
# Up to this number of pairs of points, lists are faster than arrays.
_VERY_FEW_PAIRS = 2500
# Up to this number of pairs of points, an array of all distances is faster than a tree.
_FEW_PAIRS = 1 << 16
# Factor by which the largest distance of possible partners grows until all points have one.
_GROWTH = 1.3


def as_diagram(diagram: ArrayLike, name: str) -> FloatArray:
    """Return a diagram as a float array of shape (n, 2). Infinite coordinates are allowed."""
    refuse_lossy(diagram, name)
    try:
        array = np.asarray(diagram, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: a diagram must be an array of shape (n_points, 2), of births and deaths. "
            "Pass diagrams of one dimension, and in place of SimplexTree.persistence(), "
            "simplex_tree.persistence_intervals_in_dimension(q)."
        ) from None
    if array.size == 0:
        return np.empty((0, 2))
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name}: a diagram must have shape (n_points, 2); got {array.shape}.")
    if np.isnan(array).any():
        raise ValueError(f"{name} contains NaN.")
    return array


def farthest_first(
    distances_from: Callable[[int], FloatArray], n: int, start: int = 0
) -> tuple[IntArray, FloatArray]:
    """Indices of ``n`` points, each the farthest from the previous points, and their distances.

    ``distances_from(i)`` returns an increasing function of the distances of all points from point
    ``i``. The distance of the start is ``inf``. Of points at the same distance, the first is
    chosen.
    """
    order, radii, nearest = [start], [np.inf], distances_from(start)
    for _ in range(n - 1):
        order.append(int(nearest.argmax()))
        radii.append(float(nearest[order[-1]]))
        nearest = np.minimum(nearest, distances_from(order[-1]))
    return np.array(order), np.array(radii)


def check_diagram(diagram: ArrayLike, name: str = "diagram") -> FloatArray:
    """Return a diagram as a float array of shape (n, 2), without points on the diagonal.

    Raises ValueError if the shape is wrong, if a coordinate is NaN or too large, or if a death is
    before its birth.
    """
    array = as_diagram(diagram, name)
    births, deaths = array.T
    if (deaths < births).any():
        raise ValueError(f"{name} has a death before its birth.")
    sizes = np.abs(array)
    if ((sizes > _LARGEST_COORDINATE) & (sizes < np.inf)).any():
        raise ValueError(f"{name} has a coordinate beyond {_LARGEST_COORDINATE:g}.")
    return array[deaths > births]


def bottleneck_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the bottleneck distance between two persistence diagrams.

    It is the smallest possible maximum of the maximum-norm distances between matched
    points. Points without a partner are matched with the diagonal.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        Births and deaths of the points, in the units of the filtration. Births may be
        ``-inf``, deaths may be ``inf``, and a diagram may be empty.

    Returns
    -------
    float

    Notes
    -----
    Points with the same infinite coordinates (birth ``-inf``, death ``inf``, or both)
    are matched only among themselves, in the order of their finite coordinates. If
    their numbers differ between the diagrams, the distance is ``inf``. Points whose
    birth equals their death have no effect.

    The distance is exact: one of the rounded distances between two points or between a
    point and the diagonal. It is *not* private if one of the diagrams is not.

    Examples
    --------
    >>> from sklearn_dptda import bottleneck_distance
    >>> bottleneck_distance([[0, 4], [1, 2]], [[0, 5]])
    1.0
    """
    finite, essential = _split(check_diagram(first, "first"), check_diagram(second, "second"))
    return max(float(essential.max(initial=0.0)), bottleneck_of_finite(*finite))


def wasserstein_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the exact 1-Wasserstein distance between two persistence diagrams.

    It is the smallest possible sum of maximum-norm distances between matched
    points. Points without a partner are matched with the diagonal.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        Births and deaths of the points, in the units of the filtration. Births may be
        ``-inf``, deaths may be ``inf``, and a diagram may be empty.

    Returns
    -------
    float

    Notes
    -----
    Points with the same infinite coordinates (birth ``-inf``, death ``inf``, or both)
    are matched only among themselves, in the order of their finite coordinates. If
    their numbers differ between the diagrams, the distance is ``inf``. Points whose
    birth equals their death have no effect.

    Linear assignment takes cubic time, which is suitable for up to a thousand points.
    It is *not* private if one of the diagrams is not.

    Examples
    --------
    >>> from sklearn_dptda.persistence import wasserstein_distance
    >>> wasserstein_distance([[0, 4], [1, 2]], [[0, 5]])
    1.5
    """
    (P, Q), essential = _split(check_diagram(first, "first"), check_diagram(second, "second"))
    cost = np.abs(P[:, None] - Q).max(axis=2)
    halves = [(d[:, 1] - d[:, 0]) / 2 for d in (P, Q)]
    # Two points are matched if that costs less than to match both with the diagonal. The number of
    # matched pairs is at most the number of points of the smaller diagram.
    diagonal = halves[0][:, None] + halves[1]
    pairs = linear_sum_assignment(np.minimum(cost - diagonal, 0.0))
    matched = cost[pairs] < diagonal[pairs]
    pairs = tuple(places[matched] for places in pairs)
    alone = sum(np.delete(h, places).sum() for h, places in zip(halves, pairs, strict=True))
    return float(cost[pairs].sum() + alone + essential.sum())


def _split(*diagrams: FloatArray) -> tuple[list[FloatArray], FloatArray]:
    """Return the finite points of two diagrams, and the distances between their other points.

    Points of one kind (birth, death or both infinite) have at most one finite coordinate. On a
    line, the matching in order is optimal for the largest distance and for the sum.
    """
    unbounded = [np.isinf(diagram) for diagram in diagrams]
    distances = [np.empty(0)]
    if not any(where.any() for where in unbounded):
        return list(diagrams), distances[0]
    for kind in ((False, True), (True, False), (True, True)):
        chosen = [
            np.sort(np.where(where, 0.0, diagram)[(where == kind).all(axis=1)].sum(axis=1))
            for diagram, where in zip(diagrams, unbounded, strict=True)
        ]
        if len(chosen[0]) != len(chosen[1]):
            distances.append(np.array([np.inf]))
        else:
            distances.append(np.abs(chosen[0] - chosen[1]))
    finite = [d[~where.any(axis=1)] for d, where in zip(diagrams, unbounded, strict=True)]
    return finite, np.concatenate(distances)


def bottleneck_of_finite(first: FloatArray, second: FloatArray) -> float:
    """Return the bottleneck distance of diagrams without points at infinity, unchecked.

    At a distance ``r``, the points that are farther than ``r`` from the diagonal need a partner.
    One matching for those of each diagram suffices (Mendelsohn and Dulmage).
    """
    if len(first) == 0 or len(second) == 0:
        rest = first if len(second) == 0 else second
        return float(np.max((rest[:, 1] - rest[:, 0]) / 2, initial=0.0))
    if len(first) * len(second) <= _VERY_FEW_PAIRS:
        return _of_few(first, second)
    sides = _Side(first, second), _Side(second, first)
    below = reach = max(side.least for side in sides)
    most = max(reach, *(float(side.half.max()) for side in sides))
    for side in sides:
        side.keep_far(below)
    while True:
        for side in sides:
            side.look_within(reach)
        if reach == most or all(side.is_matched(reach) for side in sides):
            break
        # Copies of a point may have the lower bound zero.
        below, reach = reach, min(max(reach * _GROWTH, most / 64), most)
    # The distance is one of these, or the lower bound, from which the search began.
    values = np.concatenate([each for side in sides for each in (side.lengths, side.half)])
    values = np.unique(values[(values > below) & (values <= reach)])
    found = bisect_left(values, True, key=lambda r: all(side.is_matched(r) for side in sides))
    return float(values[found]) if len(values) else below


def _of_few(first: FloatArray, second: FloatArray) -> float:
    """Return the bottleneck distance of diagrams with few points, without arrays."""
    halves = [((diagram[:, 1] - diagram[:, 0]) / 2).tolist() for diagram in (first, second)]
    rows = _apart(first, second).tolist()
    sides = list(zip((rows, list(zip(*rows, strict=True))), halves, strict=True))

    def is_matched(r: float) -> bool:
        return all(
            saturates_few(
                [
                    [i for i, length in enumerate(lengths) if length <= r]
                    for lengths, half in zip(side, of_points, strict=True)
                    if half > r
                ]
            )
            for side, of_points in sides
        )

    values = sorted({*itertools.chain(*rows, *halves)})
    return float(values[bisect_left(values, True, key=is_matched)])


def saturates_few(
    neighbours: Sequence[Sequence[int]], capacities: Mapping[int, int] | None = None
) -> bool:
    """Return whether every left vertex can be matched, each right vertex within its capacity.

    ``neighbours`` lists the right neighbours of each left vertex. Missing ``capacities`` are 1.
    Augmenting paths take a few microseconds for a small number of vertices.
    """
    capacities = capacities or {}
    taken: dict[int, list[int]] = {}

    def place(left: int, visited: set[int]) -> bool:
        for right in neighbours[left]:
            if right in visited:
                continue
            visited.add(right)
            guests = taken.setdefault(right, [])
            if len(guests) < capacities.get(right, 1):
                guests.append(left)
                return True
            for i, guest in enumerate(guests):
                if place(guest, visited):
                    guests[i] = left
                    return True
        return False

    return all(place(left, set()) for left in range(len(neighbours)))


def _apart(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the distances of all pairs of points in the maximum norm."""
    births = np.abs(first[:, 0, None] - second[:, 0])
    return np.maximum(births, np.abs(first[:, 1, None] - second[:, 1]))


class _Side:
    """The points of one diagram that may need a partner in the other one."""

    def __init__(self, points: FloatArray, others: FloatArray) -> None:
        self.points, self.others = points, others
        self.half = (points[:, 1] - points[:, 0]) / 2
        few = len(points) * len(others) <= _FEW_PAIRS
        self._tree = None if few else KDTree(others)
        if self._tree is None:
            nearest = _apart(points, others).min(axis=1)
        else:
            nearest = self._tree.query(points, p=np.inf)[0]
        # No matching is shorter: each point has a partner or is matched to the diagonal.
        self.least = float(np.minimum(nearest, self.half).max())

    def keep_far(self, r: float) -> None:
        """Drop the points within ``r`` of the diagonal, which need no partner."""
        far = self.half > r
        self.points, self.half = self.points[far], self.half[far]

    def look_within(self, reach: float) -> None:
        """Find the pairs of points within a distance, in the order of the rows."""
        if self._tree is None or len(self.points) * len(self.others) <= _FEW_PAIRS:
            apart = _apart(self.points, self.others)
            self.rows, self.partners = np.nonzero(apart <= reach)
            self.lengths = apart[self.rows, self.partners]
        else:
            pairs = KDTree(self.points).sparse_distance_matrix(
                self._tree, reach, p=np.inf, output_type="ndarray"
            )
            pairs = pairs[np.argsort(pairs["i"], kind="stable")]
            self.rows, self.partners, self.lengths = pairs["i"], pairs["j"], pairs["v"]

    def is_matched(self, r: float) -> bool:
        """Whether all points farther than ``r`` from the diagonal have partners within ``r``."""
        far = self.half > r
        n_far = int(np.count_nonzero(far))
        if n_far == 0 or n_far > len(self.others):
            return n_far == 0
        chosen = (self.lengths <= r) & far[self.rows]
        degrees = np.bincount(self.rows[chosen], minlength=len(far))[far]
        if degrees.min() == 0:
            return False
        partners, starts = self.partners[chosen], np.concatenate([[0], np.cumsum(degrees)])
        pairs = np.ones(len(partners), dtype=np.int8), partners, starts
        graph = csr_matrix(pairs, shape=(n_far, len(self.others)))
        return bool((maximum_bipartite_matching(graph, perm_type="column") >= 0).all())


def power_of_two(*diagrams: FloatArray) -> float:
    """Return a power of two near the length of the longest bar, by which division is exact.

    If all bars are essential, the number is near the range of their births. It is 1 if there are
    no bars.
    """
    lengths = np.concatenate([np.diff(diagram)[:, 0] for diagram in diagrams])
    longest = lengths[np.isfinite(lengths)].max(initial=0.0)
    if longest == 0.0:
        longest = max((np.ptp(d[:, 0]) for d in diagrams if len(d)), default=0.0) or 1.0
    return float(2.0 ** np.clip(np.round(np.log2(longest)), -900, 900))

"""Validation of persistence diagrams, and exact distances between them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.utils._frames import refuse_lossy

# Differences of larger coordinates may overflow.
_LARGEST_COORDINATE = 1e300
# The first positive radius that is tried, as a share of the longest bar, if points coincide.
_SMALLEST_STEP = 2.0**-52


def as_diagram(diagram: ArrayLike, name: str) -> FloatArray:
    """Return a diagram as a float array of shape (n, 2). Infinite coordinates are allowed.

    Raises
    ------
    ValueError
        If the shape is wrong or a coordinate is NaN.
    """
    refuse_lossy(diagram, name)
    array = np.asarray(diagram, dtype=float)
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

    ``distances_from(i)`` returns the distances of all points from point ``i``, or any increasing
    function of the distances. The distance of the start is ``inf``. Of several points at the same
    distance, the first is chosen.
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
    if (array[:, 1] < array[:, 0]).any():
        raise ValueError(f"{name} has a death before its birth.")
    if np.abs(array[np.isfinite(array)]).max(initial=0.0) > _LARGEST_COORDINATE:
        raise ValueError(f"{name} has a coordinate beyond {_LARGEST_COORDINATE:g}.")
    return array[array[:, 1] > array[:, 0]]


def bottleneck_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Compute the exact bottleneck distance between two persistence diagrams.

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
        Distance in the units of the filtration.

    Raises
    ------
    ValueError
        If a diagram has a wrong shape, contains NaN, or has a death before its
        birth.

    Notes
    -----
    Points with the same infinite coordinates (birth ``-inf``, death ``inf``, or both)
    are matched only among themselves, in the order of their finite coordinates. If
    their numbers differ between the diagrams, the distance is ``inf``. Points whose
    birth equals their death have no effect, also if both are infinite.

    The result is the exact distance, rounded once to a floating-point number,
    however small it is compared with the bars. It is found by bisection over the
    distances between points, with a matching at each step. This takes seconds for
    diagrams of a few thousand points. The distance is *not* private if one of the
    diagrams is not.

    Examples
    --------
    >>> from sklearn_dptda import bottleneck_distance
    >>> bottleneck_distance([[0, 4], [1, 2]], [[0, 5]])
    1.0
    """
    finite, essential = _split(check_diagram(first, "first"), check_diagram(second, "second"))
    return max(float(essential.max(initial=0.0)), _bottleneck_of_finite(*finite))


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
        Distance in the units of the filtration.

    Raises
    ------
    ValueError
        If a diagram has a wrong shape, contains NaN, or has a death before its
        birth.

    Notes
    -----
    Points with the same infinite coordinates (birth ``-inf``, death ``inf``, or both)
    are matched only among themselves, in the order of their finite coordinates. If
    their numbers differ between the diagrams, the distance is ``inf``. Points whose
    birth equals their death have no effect, also if both are infinite.

    The distance is computed by linear assignment, in cubic time, which is suitable
    for diagrams of up to a thousand points. It is *not* private if one of the
    diagrams is not.

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


def _bottleneck_of_finite(*diagrams: FloatArray) -> float:
    """Return the exact distance of two diagrams of finite points.

    A radius suffices if, on either side, each of the bars longer than twice the radius has a
    partner of its own within the radius. By the theorem of Mendelsohn and Dulmage, one matching
    then contains the long bars of both sides. All other points are matched with the diagonal.
    """
    halves = [(diagram[:, 1] - diagram[:, 0]) / 2 for diagram in diagrams]
    longest = float(np.concatenate(halves).max(initial=0.0))
    if not all(map(len, diagrams)):
        return longest
    trees = [cKDTree(diagram) for diagram in diagrams]
    sides = list(zip(diagrams, halves, trees[::-1], strict=True))
    # Each point is at least this far from its partner or from the diagonal.
    low = high = max(
        float(np.minimum(tree.query(points, p=np.inf)[0], half).max())
        for points, half, tree in sides
    )
    factor = 2.0
    while not _suffices(high, sides):
        low, high = high, min(max(factor * high, longest * _SMALLEST_STEP), longest)
        factor *= factor
    if low == high:
        return low
    # The distance is one of two points, or half the length of a bar.
    lengths = [pairs["v"] for _, pairs in _near_pairs(low, high, sides)]
    radii = np.unique(np.concatenate([*halves, *lengths]))
    radii = radii[(radii > low) & (radii <= high)]
    while len(radii) > 1:
        middle = (len(radii) - 1) // 2
        enough = _suffices(radii[middle], sides)
        radii = radii[: middle + 1] if enough else radii[middle + 1 :]
    return float(radii[0])


def _near_pairs(low: float, high: float, sides: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield, for either side, the number of bars longer than ``2 * low``, and their near points.

    Near are points of the other diagram at a distance of at most ``high``. The pairs have the
    fields "i" and "j", which are the places of the two points, and "v", which is their distance.
    """
    for points, half, tree in sides:
        long = points[half > low]
        if len(long):
            # One step more, because the search may round.
            reach = np.nextafter(high, np.inf)
            pairs = cKDTree(long).sparse_distance_matrix(
                tree, reach, p=np.inf, output_type="ndarray"
            )
            yield len(long), pairs[pairs["v"] <= high]


def _suffices(radius: float, sides: list[Any]) -> bool:
    """Return whether two diagrams have a matching with distances of at most ``radius``."""
    for n_long, pairs in _near_pairs(radius, radius, sides):
        partners: list[list[int]] = [[] for _ in range(n_long)]
        for i, j in zip(pairs["i"].tolist(), pairs["j"].tolist(), strict=True):
            partners[i].append(j)
        if not _all_have_partners(partners):
            return False
    return True


def _all_have_partners(partners: list[list[int]]) -> bool:
    """Return whether all lists of possible partners can contribute one, all of them different."""
    chosen: dict[int, int] = {}
    chooser: dict[int, int] = {}
    for start in range(len(partners)):
        # Search breadth-first for a partner that is free, or that another choice makes free.
        found_by: dict[int, int] = {}
        queue = [start]
        free = None
        for i in queue:
            for j in partners[i]:
                if j not in found_by:
                    found_by[j] = i
                    if j not in chooser:
                        free = j
                        break
                    queue.append(chooser[j])
            if free is not None:
                break
        else:
            return False
        while free is not None:
            i = found_by[free]
            chooser[free], chosen[i], free = i, free, chosen.get(i)
    return True


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

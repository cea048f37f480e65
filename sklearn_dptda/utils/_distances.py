"""Validation of persistence diagrams, and exact distances between them."""

from collections.abc import Callable

import numpy as np
from gudhi.hera import bottleneck_distance as hera_bottleneck
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.utils._validation import refuse_lossy

# Differences of larger coordinates may overflow.
_LARGEST_COORDINATE = 1e300


def as_diagram(diagram: ArrayLike, name: str) -> FloatArray:
    """Return a diagram as a float array of shape (n, 2). Infinite coordinates are allowed."""
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
    if (array[:, 1] < array[:, 0]).any():
        raise ValueError(f"{name} has a death before its birth.")
    if np.abs(array[np.isfinite(array)]).max(initial=0.0) > _LARGEST_COORDINATE:
        raise ValueError(f"{name} has a coordinate beyond {_LARGEST_COORDINATE:g}.")
    return array[array[:, 1] > array[:, 0]]


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

    The distance is computed by Hera, through GUDHI, without approximation, except that
    differences below about 2e-10 of the longest bar may count as zero. It is *not*
    private if one of the diagrams is not.

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
    """Return the bottleneck distance of diagrams without points at infinity, unchecked."""
    if len(first) == 0 or len(second) == 0:
        rest = first if len(second) == 0 else second
        return float(np.max((rest[:, 1] - rest[:, 0]) / 2, initial=0.0))
    # Hera treats differences below 1e-10 as zero, so that the diagrams are rescaled.
    unit = power_of_two(first, second)
    return unit * float(hera_bottleneck(first / unit, second / unit, delta=0))


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

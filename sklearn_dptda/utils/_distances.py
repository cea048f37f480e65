"""Persistence diagrams: reading them, and exact distances between them."""

from collections.abc import Callable

import numpy as np
from gudhi.hera import bottleneck_distance as hera_bottleneck
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.utils._frames import refuse_lossy

# Differences of larger coordinates may overflow.
_LARGEST_COORDINATE = 1e300


def as_diagram(diagram: ArrayLike, name: str) -> FloatArray:
    """Return a diagram as an (n, 2) float array; infinite deaths are allowed.

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
    """Indices of ``n`` points, each the farthest from those before it, and these distances.

    ``distances_from(i)`` are the distances of all points from point ``i``, or any increasing
    function of them; that of the start is ``inf``. The first of equally far points is taken.
    """
    order, radii, nearest = [start], [np.inf], distances_from(start)
    for _ in range(n - 1):
        order.append(int(nearest.argmax()))
        radii.append(float(nearest[order[-1]]))
        nearest = np.minimum(nearest, distances_from(order[-1]))
    return np.array(order), np.array(radii)


def check_diagram(diagram: ArrayLike, name: str = "diagram") -> FloatArray:
    """Return a diagram as an (n, 2) float array without points on the diagonal.

    ValueError if the shape is wrong, a coordinate is NaN or too large, or a death precedes its
    birth.
    """
    array = as_diagram(diagram, name)
    if (array[:, 1] < array[:, 0]).any():
        raise ValueError(f"{name} has a death before its birth.")
    if np.abs(array[np.isfinite(array)]).max(initial=0.0) > _LARGEST_COORDINATE:
        raise ValueError(f"{name} has a coordinate beyond {_LARGEST_COORDINATE:g}.")
    return array[array[:, 1] > array[:, 0]]


def bottleneck_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Exact bottleneck distance between two persistence diagrams.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        Births and deaths; deaths may be infinite; either may be empty.

    Returns
    -------
    float
        In the units of the filtration.

    Raises
    ------
    ValueError
        If a diagram is malformed.

    Notes
    -----
    Computed by Hera, through GUDHI, without approximation.

    Examples
    --------
    >>> from sklearn_dptda import bottleneck_distance
    >>> bottleneck_distance([[0, 4], [1, 2]], [[0, 5]])
    1.0
    """
    first, second = check_diagram(first, "first"), check_diagram(second, "second")
    if len(first) == 0 or len(second) == 0:
        rest = first if len(second) == 0 else second
        return float(np.max((rest[:, 1] - rest[:, 0]) / 2, initial=0.0))
    # Hera takes differences below 1e-10 for none.
    unit = power_of_two(first, second)
    return unit * float(hera_bottleneck(first / unit, second / unit, delta=0))


def wasserstein_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Exact 1-Wasserstein distance between two persistence diagrams.

    The least sum of maximum distances of matched points, the others being
    matched with the diagonal.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        Births and deaths; deaths may be infinite; either may be empty.

    Returns
    -------
    float
        ``inf`` where the numbers of infinite deaths differ.

    Raises
    ------
    ValueError
        If a diagram is malformed.

    Notes
    -----
    By assignment, in cubic time: for diagrams of up to a thousand points.

    Examples
    --------
    >>> from sklearn_dptda.persistence import wasserstein_distance
    >>> wasserstein_distance([[0, 4], [1, 2]], [[0, 5]])
    1.5
    """
    first, second = check_diagram(first, "first"), check_diagram(second, "second")
    births = [np.sort(d[np.isinf(d[:, 1]), 0]) for d in (first, second)]
    if len(births[0]) != len(births[1]):
        return float("inf")
    P, Q = (d[np.isfinite(d[:, 1])] for d in (first, second))
    cost = np.abs(P[:, None] - Q).max(axis=2)
    halves = [(d[:, 1] - d[:, 0]) / 2 for d in (P, Q)]
    # Two points are matched where that costs less than the diagonal does for both of them: it is
    # enough to match as many points as the smaller diagram has.
    diagonal = halves[0][:, None] + halves[1]
    pairs = linear_sum_assignment(np.minimum(cost - diagonal, 0.0))
    matched = cost[pairs] < diagonal[pairs]
    pairs = tuple(places[matched] for places in pairs)
    alone = sum(np.delete(h, places).sum() for h, places in zip(halves, pairs, strict=True))
    return float(cost[pairs].sum() + alone + np.abs(births[0] - births[1]).sum())


def power_of_two(*diagrams: FloatArray) -> float:
    """Power of two near the longest bar, by which division rounds nothing.

    Where all bars are essential, near the extent of their births; one, where there are none.
    """
    lengths = np.concatenate([np.diff(diagram)[:, 0] for diagram in diagrams])
    longest = lengths[np.isfinite(lengths)].max(initial=0.0)
    if longest == 0.0:
        longest = max((np.ptp(d[:, 0]) for d in diagrams if len(d)), default=0.0) or 1.0
    return float(2.0 ** np.clip(np.round(np.log2(longest)), -900, 900))

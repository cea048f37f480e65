"""The scale at which balls need many balls of half their radius."""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._finite_metrics import (
    cells_of_tree,
    check_alpha,
    check_distances,
    tree_of,
)
from sklearn_dptda.metric_privacy._packing import (
    EXACT_POINTS,
    ExactPacking,
    bit_mask,
    nearest_of_cells,
)
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, exactly, some_scales

# Around so many points of a large space packings are grown.
_CENTRES = 64


@fill_doc
def doubling_scale(D: ArrayLike, *, alpha: float = 1.0) -> ScaleBounds:
    """Largest scale at which some ball of twice the radius needs many smaller ones.

    The supremum of ``s`` such that a ball of radius ``2 s`` has more than
    ``exp(2 * alpha * s)`` points that are further apart than ``s``. At most
    :func:`entropic_scale`.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
    alpha : float, default=1.0

    Returns
    -------
    ScaleBounds
        Exact up to 30 points.

    %(no_metric)s

    Notes
    -----
    The infimum that the definition asks for is zero on every finite space;
    this supremum agrees with it on convex subsets of normed spaces.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Definition 2.8.
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    ends = np.unique(np.r_[0.0, D[D > 0], D[D > 0] / 2])
    if len(D) > EXACT_POINTS:
        return _doubling_bounds(D, ends, alpha)
    for end, start in pairwise(ends[::-1]):
        packing = ExactPacking(D, start)
        balls = {bit_mask(row <= 2 * start) for row in D}
        reach = min(np.log(max(map(packing.size, balls))) / (2 * alpha), end)
        if reach > start:
            return exactly(reach)
    return exactly(0.0)


def _doubling_bounds(D, ends, alpha):
    """Bounds of the supremum: packings grown in balls, and partitions that balls meet."""
    some = some_scales(ends)
    upper = _surely_doubled(D, some, alpha)
    for start in some[some < upper][::-1]:
        # Up to the next distance, or half of one, all is as at the start.
        end = ends[min(np.searchsorted(ends, start, side="right"), len(ends) - 1)]
        reach = min(np.log(_grown(D, start)) / (2 * alpha), end)
        if reach > start:
            return ScaleBounds(float(min(reach, upper)), upper)
    return ScaleBounds(0.0, upper)


def _surely_doubled(D, some, alpha):
    """Scale above which no ball of twice the radius meets too many cells of a partition."""
    tree = tree_of(D, "complete")
    for end, start in pairwise(some[::-1]):
        # Within an interval, balls are those of its end at most, and separated sets those of its
        # start.
        met = (nearest_of_cells(D, cells_of_tree(tree, start)) <= 2 * end).sum(axis=1).max()
        high = min(np.log(met) / (2 * alpha), end)
        if high > start:
            return float(high)
    return 0.0


def _grown(D, scale):
    """Size of the largest of the packings grown in balls of twice the scale.

    Around some points, each from the far end of the ball on: on a line they are the largest.
    """
    largest = 1
    for row in D[np.unique(np.linspace(0, len(D) - 1, _CENTRES).astype(int))]:
        ball = np.flatnonzero(row <= 2 * scale)
        from_end = D[ball[row[ball].argmax()], ball]
        free, size = ball[np.argsort(from_end, kind="stable")], 0
        while len(free):
            free, size = free[D[free[0], free] > scale], size + 1
        largest = max(largest, size)
    return largest

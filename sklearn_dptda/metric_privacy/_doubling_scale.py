"""The scale at which balls need many balls of half their radius."""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._candidate_scales import some_scales
from sklearn_dptda.metric_privacy._distance_matrices import check_alpha, check_distances
from sklearn_dptda.metric_privacy._linkage import cells_of_tree, tree_of
from sklearn_dptda.metric_privacy._packing import (
    EXACT_POINTS,
    ExactPacking,
    Traversal,
    bit_mask,
    nearest_of_cells,
)
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, exactly


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
    Boedihardjo, Strohmer, Vershynin, Section 2.4.
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    ends = np.unique(np.r_[0.0, D[D > 0], D[D > 0] / 2])
    if len(D) > EXACT_POINTS:
        return _doubling_bounds(D, some_scales(ends), alpha)
    for end, start in pairwise(ends[::-1]):
        packing = ExactPacking(D, start)
        balls = {bit_mask(row <= 2 * start) for row in D}
        reach = min(np.log(max(map(packing.size, balls))) / (2 * alpha), end)
        if reach > start:
            return exactly(reach)
    return exactly(0.0)


def _doubling_bounds(D, ends, alpha):
    """Bounds of the supremum from nets and partitions at the ends of intervals."""
    tree, walk = tree_of(D, "complete"), Traversal(D)
    lower = 0.0
    for end, start in pairwise(ends[::-1]):
        # Within an interval, balls are those of its end at most and of its start at least, and
        # separated sets the other way round.
        nearest = nearest_of_cells(D, cells_of_tree(tree, start))
        most = (nearest <= 2 * end).sum(axis=1).max()
        pairs = ((end < D) & (2 * start >= D)).any()
        least = max((D[:, walk.net(end)] <= 2 * start).sum(axis=1).max(), 2 if pairs else 1)
        reach = min(np.log(least) / (2 * alpha), end)
        if reach > start and lower == 0.0:
            lower = float(reach)
        high = min(np.log(most) / (2 * alpha), end)
        if high > start:
            return ScaleBounds(lower, float(max(high, lower)))
    return exactly(lower)

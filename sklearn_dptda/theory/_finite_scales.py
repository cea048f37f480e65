"""Packing numbers of finite spaces, and their outer, diametric and doubling scales.

Proof: doc/theory/metric_privacy.md, "Scales".
Proof: doc/theory/metric_geometry.md, "Where the text slips".
"""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray
from sklearn_dptda.metric_privacy._entropic_scale import (
    ScaleBounds,
    breakpoints,
    exactly,
    some_scales,
)
from sklearn_dptda.metric_privacy._finite_metrics import (
    EXACT_POINTS,
    ExactPacking,
    Traversal,
    bit_mask,
    cells_of_tree,
    check_alpha,
    check_distances,
    check_pair,
    is_ultrametric,
    linkage_of,
    nearest_of_cells,
)
from sklearn_dptda.privacy._parameters import quoted

# The diametric scale looks at all balls around up to this number of points; of more, at pairs.
_MAX_POINTS_ALL_BALLS = 1000
# The doubling scale grows packings in the balls around this number of points of a large space.
_N_CENTRES = 64


def packing_number(D: ArrayLike, scale: float) -> ScaleBounds:
    """Most points that are further apart than a scale.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    scale : float

    Returns
    -------
    ScaleBounds
        Exact up to 30 points, and on ultrametric spaces; otherwise the size of
        a greedy net, and the number of cells of no larger diameter that cover
        the space.

    Raises
    ------
    ValueError
        If ``D`` is no metric, or the scale is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.theory import packing_number
    >>> line = np.abs(np.subtract.outer(range(5), range(5)))
    >>> print(packing_number(line, 1.5))
    3
    """
    D = check_distances(D)
    if not scale >= 0:
        raise ValueError(f"scale must not be negative; got {quoted(scale)}.")
    if len(D) <= EXACT_POINTS:
        return exactly(_exact_packing(D, scale))
    walk = Traversal(D)
    lower = len(walk.net(scale))
    if is_ultrametric(D):
        return exactly(lower)
    cells = cells_of_tree(linkage_of(D, "complete"), scale).max() + 1
    return ScaleBounds(float(lower), float(min(cells, len(walk.net(scale / 2)))))


def _exact_packing(D: FloatArray, scale: float) -> int:
    return ExactPacking(D, scale).size((1 << len(D)) - 1)


@fill_doc
def outer_scale(D: ArrayLike, *, alpha: float = 1.0) -> ScaleBounds:
    """Least sum of a scale and of the entropy of the space at it, per unit of loss.

    The minimum of ``s + log N(s) / alpha`` over scales ``s``, with ``N(s)`` the
    :func:`packing_number`: what the exponential mechanism on a net attains, up
    to a constant.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
    alpha : float, default=1.0

    Returns
    -------
    ScaleBounds
        Exact up to 30 points and on ultrametric spaces.

    %(no_metric)s

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Definition 2.10.
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    radii = Traversal(D).radii
    if is_ultrametric(D):
        # Farthest-first prefixes are largest separated sets here.
        return exactly(_prefixes(radii, alpha, 1.0))
    if len(D) <= EXACT_POINTS:
        sums = (s + np.log(_exact_packing(D, s)) / alpha for s in breakpoints(D))
        return exactly(min(sums))
    return ScaleBounds(_prefixes(radii, alpha, 1.0), _prefixes(radii, alpha, 2.0))


def _prefixes(radii: FloatArray, alpha: float, factor: float) -> float:
    """Least sum over the nets of a traversal: their radius, and the logarithm of their size."""
    after = np.r_[radii[1:], 0.0]
    return float((factor * after + np.log(np.arange(1, len(radii) + 1)) / alpha).min())


@fill_doc
def diametric_scale(
    D1: ArrayLike, D2: ArrayLike | None = None, *, alpha: float = 1.0
) -> ScaleBounds:
    """Largest diameter of a ball, discounted by the loss across its radius.

    The maximum over balls of radius ``r`` of their diameter, in the distance
    of accuracy, times ``exp(-alpha * r)``.

    Parameters
    ----------
    %(privacy_and_accuracy)s

    Returns
    -------
    ScaleBounds
        Exact up to 1,000 points and where ``D2`` is ultrametric, and within a
        factor of two else.

    %(no_metric)s

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Definition 1.6.
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    centred = float((D2 * np.exp(-alpha * D1)).max())
    if is_ultrametric(D2):
        return exactly(centred)
    if len(D1) > _MAX_POINTS_ALL_BALLS:
        return ScaleBounds(centred, 2 * centred)
    return exactly(max(_discounted_diameter(radii, D2, alpha) for radii in D1))


def _discounted_diameter(radii: FloatArray, D2: FloatArray, alpha: float) -> float:
    """Largest discounted diameter of the balls around one point."""
    order = np.argsort(radii, kind="stable")
    # How far each point is from those before it: the diameter grows by that.
    reach = np.tril(D2[np.ix_(order, order)]).max(axis=1)
    return float((np.maximum.accumulate(reach) * np.exp(-alpha * radii[order])).max())


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


def _doubling_bounds(D: FloatArray, ends: FloatArray, alpha: float) -> ScaleBounds:
    """Bounds of the supremum: packings grown in balls, and partitions that balls meet."""
    some = some_scales(ends)
    upper = _doubling_upper_bound(D, some, alpha)
    for start in some[some < upper][::-1]:
        # Up to the next distance, or half of one, all is as at the start.
        end = ends[min(np.searchsorted(ends, start, side="right"), len(ends) - 1)]
        reach = min(np.log(_greedy_packing(D, start)) / (2 * alpha), end)
        if reach > start:
            return ScaleBounds(float(min(reach, upper)), upper)
    return ScaleBounds(0.0, upper)


def _doubling_upper_bound(D: FloatArray, some: FloatArray, alpha: float) -> float:
    """Scale above which no ball of twice the radius meets too many cells of a partition."""
    tree = linkage_of(D, "complete")
    for end, start in pairwise(some[::-1]):
        # Within an interval, balls are those of its end at most, and separated sets those of its
        # start.
        met = (nearest_of_cells(D, cells_of_tree(tree, start)) <= 2 * end).sum(axis=1).max()
        high = min(np.log(met) / (2 * alpha), end)
        if high > start:
            return float(high)
    return 0.0


def _greedy_packing(D: FloatArray, scale: float) -> int:
    """Size of the largest of the packings grown in balls of twice the scale.

    Around some points, each from the far end of the ball on: on a line they are the largest.
    """
    largest = 1
    for row in D[np.unique(np.linspace(0, len(D) - 1, _N_CENTRES).astype(int))]:
        ball = np.flatnonzero(row <= 2 * scale)
        from_end = D[ball[row[ball].argmax()], ball]
        free, size = ball[np.argsort(from_end, kind="stable")], 0
        while len(free):
            free, size = free[D[free[0], free] > scale], size + 1
        largest = max(largest, size)
    return largest

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

# The diametric scale is computed from all balls up to this number of points, and from pairs beyond
# it.
_MAX_POINTS_ALL_BALLS = 1000
# Number of points of a large space in whose balls the doubling scale grows packings.
_N_CENTRES = 64


def packing_number(D: ArrayLike, scale: float) -> ScaleBounds:
    """Largest number of points that are farther apart than a scale.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    scale : float
        Distance that separated points must exceed.

    Returns
    -------
    ScaleBounds
        Exact for up to 30 points, and on ultrametric spaces. Otherwise the lower
        bound is the size of a greedy net, and the upper bound is the number of
        cells that cover the space and have no larger diameter than the scale.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import packing_number
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
    """Least sum of a scale and the entropy of the space at it, per unit of loss.

    It is the minimum of ``s + log N(s) / alpha`` over scales ``s``, with ``N(s)`` the
    :func:`packing_number` (Definition 2.10 of Boedihardjo, Strohmer and Vershynin). Up to
    a constant, the exponential mechanism on a net attains it as its accuracy.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    alpha : float, default=1.0
        Privacy loss per unit of distance.

    Returns
    -------
    ScaleBounds
        Exact for up to 30 points and on ultrametric spaces.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import outer_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(outer_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.5747
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    radii = Traversal(D).radii
    if is_ultrametric(D):
        # On an ultrametric space, farthest-first prefixes are largest separated sets.
        return exactly(_prefixes(radii, alpha, 1.0))
    if len(D) <= EXACT_POINTS:
        sums = (s + np.log(_exact_packing(D, s)) / alpha for s in breakpoints(D))
        return exactly(min(sums))
    return ScaleBounds(_prefixes(radii, alpha, 1.0), _prefixes(radii, alpha, 2.0))


def _prefixes(radii: FloatArray, alpha: float, factor: float) -> float:
    """Least sum, over the nets of a traversal, of their radius and the logarithm of their size."""
    after = np.r_[radii[1:], 0.0]
    return float((factor * after + np.log(np.arange(1, len(radii) + 1)) / alpha).min())


@fill_doc
def diametric_scale(
    D1: ArrayLike, D2: ArrayLike | None = None, *, alpha: float = 1.0
) -> ScaleBounds:
    """Largest diameter of a ball, discounted by the loss across its radius.

    It is the maximum, over balls of radius ``r`` in the distance of privacy, of their
    diameter in the distance of accuracy, times ``exp(-alpha * r)`` (Definition 1.6 of
    Boedihardjo, Strohmer and Vershynin).

    Parameters
    ----------
    %(privacy_and_accuracy)s

    Returns
    -------
    ScaleBounds
        Exact for up to 1,000 points and if ``D2`` is ultrametric. Otherwise the
        bounds differ by a factor of two.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import diametric_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(diametric_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.1839
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
    # Distance of each point from the points before it; the diameter grows up to this.
    reach = np.tril(D2[np.ix_(order, order)]).max(axis=1)
    return float((np.maximum.accumulate(reach) * np.exp(-alpha * radii[order])).max())


@fill_doc
def doubling_scale(D: ArrayLike, *, alpha: float = 1.0) -> ScaleBounds:
    """Largest scale at which some ball of twice the radius needs many smaller ones.

    It is the supremum of ``s`` such that a ball of radius ``2 s`` has more than
    ``exp(2 * alpha * s)`` points that are farther apart than ``s``. It is at most
    :func:`entropic_scale`.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    alpha : float, default=1.0
        Privacy loss per unit of distance.

    Returns
    -------
    ScaleBounds
        Exact for up to 30 points.

    Notes
    -----
    Definition 2.8 of Boedihardjo, Strohmer and Vershynin takes an infimum, which is zero
    on every finite space. On convex subsets of normed spaces both are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import doubling_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(doubling_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.1733
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
    """Bounds of the supremum, from packings grown in balls, and from partitions that balls meet."""
    some = some_scales(ends)
    upper = _doubling_upper_bound(D, some, alpha)
    for start in some[some < upper][::-1]:
        # Nothing changes up to the next distance, or the next half of a distance.
        end = ends[min(np.searchsorted(ends, start, side="right"), len(ends) - 1)]
        reach = min(np.log(_greedy_packing(D, start)) / (2 * alpha), end)
        if reach > start:
            return ScaleBounds(float(min(reach, upper)), upper)
    return ScaleBounds(0.0, upper)


def _doubling_upper_bound(D: FloatArray, some: FloatArray, alpha: float) -> float:
    """Scale above which no ball of twice the radius meets too many cells of a partition."""
    tree = linkage_of(D, "complete")
    for end, start in pairwise(some[::-1]):
        # Within an interval, balls are contained in those of its end, and separated sets are also
        # separated at its start.
        met = (nearest_of_cells(D, cells_of_tree(tree, start)) <= 2 * end).sum(axis=1).max()
        high = min(np.log(met) / (2 * alpha), end)
        if high > start:
            return float(high)
    return 0.0


def _greedy_packing(D: FloatArray, scale: float) -> int:
    """Size of the largest of the packings grown in balls of twice the scale.

    The balls have some of the points as centres. Each packing starts at a point farthest from the
    centre. On a line these packings are the largest ones.
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

"""Scales of finite metric spaces, which bound what metric privacy can attain."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from sklearn_dptda.metric_privacy._distance_matrices import (
    check_alpha,
    check_distances,
    check_pair,
    is_ultrametric,
    rows_at_a_time,
)
from sklearn_dptda.metric_privacy._packing import (
    EXACT_POINTS,
    ExactPacking,
    Traversal,
    cells_of_net,
    cells_of_tree,
    complete_tree,
    nearest_of_cells,
)
from sklearn_dptda.metric_privacy._packing_on_a_line import few_separated_on_a_line, on_a_line
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds


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
    >>> from sklearn_dptda.metric_privacy import packing_number
    >>> line = np.abs(np.subtract.outer(range(5), range(5)))
    >>> print(packing_number(line, 1.5))
    3
    """
    D = check_distances(D)
    if not scale >= 0:
        raise ValueError(f"scale must not be negative; got {scale!r}.")
    if len(D) <= EXACT_POINTS:
        exact = ExactPacking(D, scale).size((1 << len(D)) - 1)
        return ScaleBounds(float(exact), float(exact))
    tree = complete_tree(D)
    lower = len(Traversal(D).net(scale))
    if is_ultrametric(D):
        return ScaleBounds(float(lower), float(lower))
    upper = cells_of_tree(tree, len(D), scale).max() + 1
    half = len(Traversal(D).net(scale / 2))
    return ScaleBounds(float(lower), float(min(upper, half)))


def entropic_scale(
    D1: ArrayLike,
    D2: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    method: Literal["auto", "exact", "bounds"] = "auto",
) -> ScaleBounds:
    """Least accuracy scale at which balls of privacy hold few separated points.

    The least ``s`` such that each ball of radius ``r``, in the distance of
    privacy, has at most ``exp(alpha * r)`` points that are further apart than
    ``s`` in the distance of accuracy.

    Parameters
    ----------
    D1 : array-like of shape (n_points, n_points)
        Distances of privacy.
    D2 : array-like of shape (n_points, n_points), default=None
        Distances of accuracy. None: the same.
    alpha : float, default=1.0
        Privacy loss per unit of ``D1``.
    method : {"auto", "exact", "bounds"}, default="auto"
        ``"exact"`` takes at most 30 points, an ultrametric ``D2``, or points
        of a line; ``"auto"`` is exact where that holds.

    Returns
    -------
    ScaleBounds
        In units of ``D2``.

    Raises
    ------
    ValueError
        If a matrix is no metric, ``alpha`` is not positive, or there are too
        many points for ``"exact"``.

    Notes
    -----
    Packing numbers change at distances only, so that the least scale is one
    of them, or zero, and is found by bisection. Bounds: a net of which a ball
    holds more than ``exp(alpha * r)`` points is a proof that a scale is too
    small; a partition into cells of no larger diameter, of which balls meet
    few enough, that it is large enough.

    References
    ----------
    M. Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Definition 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.metric_privacy import entropic_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(entropic_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.3
    """
    if method not in ("auto", "exact", "bounds"):
        raise ValueError(f"method must be 'auto', 'exact' or 'bounds'; got {method!r}.")
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    scales = _breakpoints(D2)
    if method != "bounds":
        if is_ultrametric(D2):
            return _exactly(scales, lambda s: _few_classes(D1, D2, s, alpha))
        if len(D1) <= EXACT_POINTS:
            return _exactly(scales, lambda s: _few_separated(D1, D2, s, alpha))
        places = on_a_line(D1) if D1 is D2 else None
        if places is not None:
            return _exactly(scales, lambda s: few_separated_on_a_line(places, s, alpha))
        if method == "exact":
            raise ValueError(
                f"method='exact' takes at most {EXACT_POINTS} points, an ultrametric D2 or points "
                f"of a line; got {len(D1)} points."
            )
    return _certified(D1, D2, alpha, scales)


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

    Raises
    ------
    ValueError
        If ``D`` is no metric, or ``alpha`` is not positive.

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
        return _doubling_bounds(D, _some(ends), alpha)
    for start, end in zip(ends[-2::-1], ends[:0:-1], strict=True):
        packing = ExactPacking(D, start)
        balls = {_mask(row <= 2 * start) for row in D}
        reach = min(np.log(max(map(packing.size, balls))) / (2 * alpha), end)
        if reach > start:
            return ScaleBounds(float(reach), float(reach))
    return ScaleBounds(0.0, 0.0)


def _doubling_bounds(D, ends, alpha):
    """Bounds of the supremum from nets and partitions at the ends of intervals."""
    tree, walk = complete_tree(D), Traversal(D)
    lower = 0.0
    for start, end in zip(ends[-2::-1], ends[:0:-1], strict=True):
        # Within an interval, balls are those of its end at most and of its start at least, and
        # separated sets the other way round.
        nearest = nearest_of_cells(D, cells_of_tree(tree, len(D), start))
        most = (nearest <= 2 * end).sum(axis=1).max()
        pairs = ((end < D) & (2 * start >= D)).any()
        least = max((D[:, walk.net(end)] <= 2 * start).sum(axis=1).max(), 2 if pairs else 1)
        reach = min(np.log(least) / (2 * alpha), end)
        if reach > start and lower == 0.0:
            lower = float(reach)
        high = min(np.log(most) / (2 * alpha), end)
        if high > start:
            return ScaleBounds(lower, float(max(high, lower)))
    return ScaleBounds(lower, lower)


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

    Raises
    ------
    ValueError
        If ``D`` is no metric, or ``alpha`` is not positive.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Section 2.5.
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    radii = Traversal(D).radii
    if is_ultrametric(D):
        # Farthest-first prefixes are largest separated sets here.
        exact = _prefixes(radii, alpha, 1.0)
        return ScaleBounds(exact, exact)
    if len(D) <= EXACT_POINTS:
        everything = (1 << len(D)) - 1
        exact = min(
            s + np.log(ExactPacking(D, s).size(everything)) / alpha for s in _breakpoints(D)
        )
        return ScaleBounds(float(exact), float(exact))
    return ScaleBounds(_prefixes(radii, alpha, 1.0), _prefixes(radii, alpha, 2.0))


def _prefixes(radii, alpha, factor):
    """Least sum over the nets of a traversal: their radius, and the logarithm of their size."""
    after = np.r_[radii[1:], 0.0]
    return float((factor * after + np.log(np.arange(1, len(radii) + 1)) / alpha).min())


def diametric_scale(
    D1: ArrayLike, D2: ArrayLike | None = None, *, alpha: float = 1.0
) -> ScaleBounds:
    """Largest diameter of a ball, discounted by the loss across its radius.

    The maximum over balls of radius ``r`` of their diameter, in the distance
    of accuracy, times ``exp(-alpha * r)``.

    Parameters
    ----------
    D1, D2, alpha
        As in :func:`entropic_scale`.

    Returns
    -------
    ScaleBounds
        Exact up to 1,000 points and where ``D2`` is ultrametric, and within a
        factor of two else.

    Raises
    ------
    ValueError
        If a matrix is no metric, or ``alpha`` is not positive.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Section 2.6.
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    centred = float((D2 * np.exp(-alpha * D1)).max())
    if is_ultrametric(D2):
        return ScaleBounds(centred, centred)
    if len(D1) > _MOST_BALLS:
        return ScaleBounds(centred, 2 * centred)
    exact = max(_discounted_diameter(D1[x], D2, alpha) for x in range(len(D1)))
    return ScaleBounds(exact, exact)


_MOST_BALLS = 1000


def _discounted_diameter(radii, D2, alpha):
    """Largest discounted diameter of the balls around one point."""
    order = np.argsort(radii, kind="stable")
    # How far each point is from those before it: the diameter grows by that.
    reach = np.tril(D2[np.ix_(order, order)]).max(axis=1)
    return float((np.maximum.accumulate(reach) * np.exp(-alpha * radii[order])).max())


def _breakpoints(D):
    """Zero and all distances; those that differ by rounding alone are one, the largest."""
    values = np.unique(np.r_[0.0, D.ravel()])
    apart = np.r_[np.diff(values) > 1e-12 * values[-1], True]
    return values[apart]


def _some(scales):
    """Zero and about two hundred of the scales, evenly on both a line and a log line."""
    low, high = scales[scales > 0][0], scales[-1]
    wanted = np.r_[np.linspace(low, high, 100), np.geomspace(low, high, 100)]
    places = np.searchsorted(scales, wanted)
    return np.unique(np.r_[0.0, scales[np.minimum(places, len(scales) - 1)], high])


def _exactly(scales, enough):
    """Least scale that is enough, by bisection."""
    low, high = 0, len(scales) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(scales[middle]) else (middle + 1, high)
    return ScaleBounds(float(scales[low]), float(scales[low]))


def _few_separated(D1, D2, scale, alpha):
    """Whether no ball has too many separated points, by exact packing."""
    packing = ExactPacking(D2, scale)
    for row in D1:
        for radius in np.unique(row):
            ball = row <= radius
            allowed = np.exp(min(alpha * radius, 700.0)) * (1 + 1e-12)
            if ball.sum() > allowed and packing.size(_mask(ball)) > allowed:
                return False
    return True


def _mask(ball):
    return sum(1 << int(i) for i in np.flatnonzero(ball))


def _few_classes(D1, D2, scale, alpha):
    """The same for an ultrametric: separated points are those of different classes."""
    tree = linkage(squareform(D2, checks=False), "single") if len(D2) > 1 else None
    cells = fcluster(tree, scale * (1 + 1e-12), "distance") - 1 if len(D2) > 1 else np.zeros(1, int)
    return _meets_few(nearest_of_cells(D1, cells), alpha)


def _meets_few(nearest, alpha, before=None):
    """Whether no ball meets more than ``exp(alpha * r)`` cells.

    ``before`` is a radius up to which a ball is known to need one cell only.
    """
    needed = np.log(np.arange(1, nearest.shape[1] + 1)) / alpha
    part = rows_at_a_time(nearest.shape[1])
    for start in range(0, len(nearest), part):
        radii = np.sort(nearest[start : start + part], axis=1)
        if before is not None:
            radii[:, 1:] = np.maximum(radii[:, 1:], before[start : start + part, None])
        if (radii < needed * (1 - 1e-12)).any():
            return False
    return True


def _certified(D1, D2, alpha, scales):
    """Bounds of the entropic scale from nets and partitions."""
    walk, tree = Traversal(D2), complete_tree(D2)

    def too_small(scale):
        net = walk.net(scale)
        needed = np.log(np.arange(1, len(net) + 1)) / alpha
        return bool((np.sort(D1[:, net], axis=1) < needed * (1 - 1e-12)).any())

    def large_enough(scale):
        far = np.where(scale / 2 < D2, D1, np.inf).min(axis=1)
        return any(
            _meets_few(nearest_of_cells(D1, cells), alpha, far)
            for cells in (
                cells_of_tree(tree, len(D2), scale),
                cells_of_net(D2, walk.net(scale / 2)),
            )
        )

    # Bisections of verdicts that need not be monotone: each is a proof all the same.
    some = _some(scales)
    low, high = -1, len(some) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_small(some[middle]) else (low, middle)
    lower = 0.0 if low < 0 else scales[np.searchsorted(scales, some[low], side="right")]
    bottom, top = low, len(some) - 1
    while top - bottom > 1:
        middle = (bottom + top) // 2
        bottom, top = (bottom, middle) if large_enough(some[middle]) else (middle, top)
    return ScaleBounds(float(lower), float(max(some[top], lower)))

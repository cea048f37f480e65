"""Subsets of a line, where largest separated sets are found from left to right."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._finite_metrics import (
    ROUNDING,
    cells_of_tree,
    check_alpha,
    check_pair,
    is_ultrametric,
    rows_at_a_time,
    tree_of,
)
from sklearn_dptda.metric_privacy._packing import (
    EXACT_POINTS,
    ExactPacking,
    Traversal,
    bit_mask,
    cells_of_net,
    nearest_of_cells,
)
from sklearn_dptda.metric_privacy._scale_bounds import (
    ScaleBounds,
    bisect,
    breakpoints,
    exactly,
    some_scales,
)
from sklearn_dptda.privacy._parameters import quoted


def on_a_line(D):
    """Sorted coordinates of points with these distances on a line; None where there are none."""
    # The point farthest from any other is at an end.
    from_end = D[int(D[0].argmax())]
    order = np.argsort(from_end, kind="stable")
    places = from_end[order]
    expected = np.abs(places[:, None] - places)
    if np.abs(expected - D[np.ix_(order, order)]).max() > ROUNDING * D.max():
        return None
    return places


def few_separated_on_a_line(places, scale, alpha):
    """Whether no ball around one of the sorted points has too many separated points.

    Too many: more than ``exp(alpha * radius)`` that are further apart than the scale.
    """
    slack = 1e-12 * max(places[-1], 1e-300)
    # The next separated point of each, with a sentinel for none.
    following = np.searchsorted(places, places + scale + slack, side="right")
    n = len(places)
    jump = np.r_[following, n]
    last, count = np.arange(n), 1
    while True:
        last = jump[last]
        first = np.flatnonzero(last < n)
        if len(first) == 0:
            return True
        count += 1
        ends = places[first], places[last[first]]
        # The ball of least radius that holds both ends has its centre next to their middle.
        middle = np.searchsorted(places, (ends[0] + ends[1]) / 2)
        for centre in (np.minimum(middle, n - 1), np.maximum(middle - 1, 0)):
            radius = np.maximum(places[centre] - ends[0], ends[1] - places[centre])
            if (alpha * radius < np.log(count) * (1 - 1e-12)).any():
                return False


# Verdicts on a scale: whether balls of privacy hold few points that are further apart than it.
#
# Few are at most ``exp(alpha * radius)``. Exact verdicts take small or ultrametric spaces;
# certified ones are right wherever they say yes.


def few_separated(D1, D2, scale, alpha):
    """Whether no ball has too many separated points, by exact packing."""
    packing = ExactPacking(D2, scale)
    for row in D1:
        for radius in np.unique(row):
            ball = row <= radius
            allowed = np.exp(min(alpha * radius, 700.0)) * (1 + 1e-12)
            if ball.sum() > allowed and packing.size(bit_mask(ball)) > allowed:
                return False
    return True


def few_classes(D1, D2, alpha):
    """Verdict for an ultrametric ``D2``: separated points are those of different classes."""
    tree = tree_of(D2, "single")

    def verdict(scale):
        cells = cells_of_tree(tree, scale * (1 + 1e-12))
        return _meets_few(nearest_of_cells(D1, cells), alpha)

    return verdict


def surely_many(D1, walk, alpha):
    """Verdict that a scale is too small, by the nets of a traversal: their points are separated."""
    return lambda scale: not _meets_few(D1[:, walk.net(scale)], alpha)


def surely_few(D1, D2, walk, alpha):
    """Verdict that a scale is large enough, by partitions into cells of no larger diameter."""
    tree = tree_of(D2, "complete")

    def verdict(scale):
        far = np.where(scale / 2 < D2, D1, np.inf).min(axis=1)
        return any(
            _meets_few(nearest_of_cells(D1, cells), alpha, far)
            for cells in (cells_of_tree(tree, scale), cells_of_net(D2, walk.net(scale / 2)))
        )

    return verdict


def _meets_few(nearest, alpha, before=None):
    """Whether no ball meets more than ``exp(alpha * r)`` cells, by its distances from them.

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


# The scale at which balls of privacy hold few points that accuracy tells apart.


@fill_doc
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
    %(privacy_and_accuracy)s
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
    privacy-utility tradeoff", Definition 1.4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.metric_privacy import entropic_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(entropic_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.3
    """
    if method not in ("auto", "exact", "bounds"):
        raise ValueError(f"method must be 'auto', 'exact' or 'bounds'; got {quoted(method)}.")
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    scales = breakpoints(D2)
    is_enough = None if method == "bounds" else _exact_verdict(D1, D2, alpha)
    if is_enough is not None:
        return exactly(scales[bisect(is_enough, scales)])
    if method == "exact":
        raise ValueError(
            f"method='exact' takes at most {EXACT_POINTS} points, an ultrametric D2 or points "
            f"of a line; got {len(D1)} points."
        )
    return _certified(D1, D2, alpha, scales)


def _exact_verdict(D1, D2, alpha):
    """Function that knows whether a scale is enough; None where that takes too long."""
    if is_ultrametric(D2):
        return few_classes(D1, D2, alpha)
    if len(D1) <= EXACT_POINTS:
        return lambda scale: few_separated(D1, D2, scale, alpha)
    places = on_a_line(D1) if D1 is D2 else None
    return None if places is None else lambda scale: few_separated_on_a_line(places, scale, alpha)


def _certified(D1, D2, alpha, scales):
    """Bounds of the entropic scale from nets and partitions."""
    walk = Traversal(D2)
    is_too_small, is_enough = surely_many(D1, walk, alpha), surely_few(D1, D2, walk, alpha)
    # Bisections of verdicts that need not be monotone: each is a proof all the same.
    some = some_scales(scales)
    low = bisect(lambda scale: not is_too_small(scale), some) - 1
    lower = 0.0 if low < 0 else scales[np.searchsorted(scales, some[low], side="right")]
    upper = some[bisect(is_enough, some, low)]
    return ScaleBounds(float(lower), float(max(upper, lower)))

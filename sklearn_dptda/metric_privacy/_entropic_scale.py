"""The scale at which balls of privacy hold few points that accuracy tells apart."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._candidate_scales import bisect, breakpoints, some_scales
from sklearn_dptda.metric_privacy._distance_matrices import check_alpha, check_pair
from sklearn_dptda.metric_privacy._few_per_ball import (
    few_classes,
    few_separated,
    surely_few,
    surely_many,
)
from sklearn_dptda.metric_privacy._linkage import is_ultrametric
from sklearn_dptda.metric_privacy._packing import EXACT_POINTS, Traversal
from sklearn_dptda.metric_privacy._packing_on_a_line import few_separated_on_a_line, on_a_line
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, exactly
from sklearn_dptda.privacy._parameters import quoted


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

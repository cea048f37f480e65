"""The scale of balls whose diameter is discounted by the privacy loss across them."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._distance_matrices import check_alpha, check_pair
from sklearn_dptda.metric_privacy._linkage import is_ultrametric
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, exactly

_MOST_BALLS = 1000


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
    if len(D1) > _MOST_BALLS:
        return ScaleBounds(centred, 2 * centred)
    return exactly(max(_discounted_diameter(radii, D2, alpha) for radii in D1))


def _discounted_diameter(radii, D2, alpha):
    """Largest discounted diameter of the balls around one point."""
    order = np.argsort(radii, kind="stable")
    # How far each point is from those before it: the diameter grows by that.
    reach = np.tril(D2[np.ix_(order, order)]).max(axis=1)
    return float((np.maximum.accumulate(reach) * np.exp(-alpha * radii[order])).max())

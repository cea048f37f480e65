"""What no private mechanism can do: errors that every private diagram makes for some cloud.

Proofs are in ``doc/theory/accuracy.md``.
"""

import math
from bisect import bisect_left

import numpy as np

from sklearn_dptda.privacy._parameters import check_confidence, check_loss, check_positive

# Floats are off by less, relatively: results are moved to the safe side by it.
_SLACK = 1e-12
# Terms of a sum that is cut.
_MOST_WIDTHS = 2**20


def bottleneck_error_floor(
    epsilon: float, sensitivity: float, upper: float, *, confidence: float = 0.95
) -> float:
    """Bottleneck distance that no private release of components stays below.

    Whatever the mechanism, if it is ``epsilon``-private under replacement of
    one point, some cloud's release is at least this far from its exact
    diagram, with a probability of at least ``1 - confidence``. So no mechanism
    has a smaller error bound at this confidence that holds for all clouds.
    Further homology dimensions add to the error, or leave it.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a release.
    sensitivity : float
        Sup-norm change of the L1 distance-to-measure when one point is
        replaced: ``c / k``, with ``k = ceil(m n)`` of at most half the points
        and distances capped at ``c``, or ``diameter / k`` without a cap.
    upper : float
        Public bound of the function: the smaller of the cap and half the
        diameter of the convex set that holds the cloud.
    confidence : float, default=0.95
        Probability up to which the error is below the floor.

    Returns
    -------
    float
        In the units of the function.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    bottleneck_error_bound : What our mechanism keeps to, at the same confidence.
    published_error_floor : The floor of the paper's proof.

    Notes
    -----
    The clouds are those of :func:`~sklearn_dptda.theory.dtm_worst_case`:
    one component is born ``j`` sensitivities above zero, ``j = 0, 1, ...``
    points moved. For a large range the floor is that of the private release
    of a count, which geometric noise attains. The function is that of the
    whole box, or of a grid that has its corners and its center.

    References
    ----------
    The statement is ours. That errors cannot fall faster than ``1 / (n
    epsilon)`` is T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private
    topological data analysis", Theorem 18.

    Examples
    --------
    >>> from sklearn_dptda import PrivatePersistence
    >>> from sklearn_dptda.persistence import bottleneck_error_bound
    >>> from sklearn_dptda.theory import bottleneck_error_floor
    >>> public = {"sensitivity": 0.0034, "upper": 2.75}
    >>> round(bottleneck_error_floor(1.0, **public), 4)
    0.0085
    >>> round(bottleneck_error_bound(PrivatePersistence(1.0), **public), 4)
    0.2714
    """
    check_loss(epsilon)
    check_positive(sensitivity=sensitivity, upper=upper)
    check_confidence(confidence)
    if math.isinf(epsilon):
        return 0.0
    steps, miss = math.floor(upper / sensitivity), (1 - confidence) * (1 + _SLACK)
    widths = range(1, steps // 2 + 1)
    by_chain = bisect_left(
        widths, True, key=lambda w: _missed(epsilon, w, steps - 2 * w + 1) < miss
    )
    odds = math.log(confidence / (1 - confidence)) * (1 - _SLACK)
    by_pair = max(math.floor(min(odds / epsilon, steps // 2)), 0)
    return float(max(by_chain, by_pair) * sensitivity / 2)


def mean_error_floor(epsilon: float, sensitivity: float, upper: float) -> float:
    """Mean bottleneck distance that no private release of components stays below.

    Whatever the mechanism, if it is ``epsilon``-private under replacement of
    one point, the mean distance of the release to the exact diagram is at
    least this for some cloud.

    Parameters
    ----------
    epsilon, sensitivity, upper
        As in :func:`bottleneck_error_floor`.

    Returns
    -------
    float
        In the units of the function; about ``sensitivity / epsilon`` where
        that is well above ``sensitivity`` and well below ``upper``.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> from sklearn_dptda.theory import mean_error_floor
    >>> round(mean_error_floor(1.0, sensitivity=0.0034, upper=2.75), 4)
    0.0024
    """
    check_loss(epsilon)
    check_positive(sensitivity=sensitivity, upper=upper)
    if math.isinf(epsilon):
        return 0.0
    steps = math.floor(upper / sensitivity)
    # Clouds that are K points apart: what is best lies near 1.28 / epsilon.
    pairs = (min(max(round(x / epsilon), 1), steps // 2) for x in (1.2, 1.28, 1.36))
    by_pair = max(K * _half_overlap(epsilon * K) for K in pairs)
    # A chain whose clouds keep their distances up to a width; wider ones count for little.
    widest = min(steps // 2, round(min(40 / epsilon, _MOST_WIDTHS)))
    widths = (2**i for i in range(widest.bit_length()))
    by_chain = max((_mean_missed(epsilon, w, steps - 2 * w + 1) for w in widths), default=0.0)
    return float(max(by_pair, by_chain) * sensitivity * (1 - _SLACK))


def _missed(epsilon, w, n_clouds):
    """Probability to miss by ``w / 2`` sensitivities, at least, over a chain of clouds.

    The mean with a weight of one for each cloud; the two ends also weigh for what is beyond them.
    For an endless chain it is what geometric noise attains.
    """
    endless = 2 * np.exp(-epsilon * (w - w // 2)) / (1 + np.exp(-epsilon * (w % 2)))
    beyond = math.exp(-epsilon) / -math.expm1(-epsilon)
    return endless * np.maximum(n_clouds - 2 * w, 0) / (n_clouds + 2 * beyond)


def _mean_missed(epsilon, widest, n_clouds):
    """Mean of the distance over a chain, at least, in sensitivities."""
    return _missed(epsilon, np.arange(1, widest + 1), n_clouds).sum() / 2


def _half_overlap(loss):
    """Probability that one of two outputs is taken for the other, at least, at a privacy loss."""
    return math.exp(-loss) / (1 + math.exp(-loss))

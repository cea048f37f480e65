"""How much each of several exponential mechanisms may spend: bounded range."""

import math

import numpy as np
from scipy.special import gammaln

from sklearn_dptda.privacy._calibration import bounded_range_rho, largest_valid, zcdp_epsilon


def bounded_range_delta(rate: float, n_releases: int, epsilon: float) -> float:
    """Tight delta of ``n_releases`` independent bounded-range mechanisms.

    A mechanism is ``rate``-bounded-range when, for neighbours, the log ratio
    of its output densities varies by at most ``rate``; an exponential
    mechanism that is ``rate``-DP is so.

    References
    ----------
    J. Dong, D. Durfee, R. Rogers, "Optimal differential privacy composition
    for exponential mechanisms", ICML 2020, Theorem 3.
    """
    k = n_releases
    i = np.arange(k + 1)
    log_binomial = gammaln(k + 1) - gammaln(i + 1) - gammaln(k - i + 1)
    worst = 0.0
    for ell in i:
        t = min(max((epsilon + (ell + 1) * rate) / (k + 1), 0.0), rate)
        # Log probabilities, under the second data set, that one loss is high, or low.
        log_total = _log_one_minus_exp(rate)
        log_high = -t + _log_one_minus_exp(rate - t) - log_total
        log_low = _log_one_minus_exp(t) - log_total
        log_mass = log_binomial + _times(k - i, log_high) + _times(i, log_low)
        loss = k * t - i * rate
        positive = loss > epsilon
        log_mass, loss = log_mass[positive], loss[positive]
        # mass * (exp(loss) - exp(epsilon)), without leaving the range of floats.
        delta = float((np.exp(log_mass + loss) * -np.expm1(epsilon - loss)).sum())
        if math.isnan(delta):
            return 1.0
        worst = max(worst, delta)
    return worst


def _log_one_minus_exp(x):
    """``log(1 - exp(-x))``."""
    return math.log(-math.expm1(-x)) if x > 0 else -math.inf


def _times(count, log_probability):
    """``count * log_probability`` with ``0 * log(0) = 0``."""
    return count * np.where(count > 0, log_probability, 0.0)


def bounded_range_rate(epsilon: float, delta: float, n_releases: int) -> float:
    """Largest rate at which each of ``n_releases`` mechanisms may be drawn.

    The pure split ``epsilon / n_releases`` is always valid. With
    ``delta > 0`` the bounded-range composition and the zCDP composition
    (``rate**2 / 8`` each) are tried as well, and the best of the three is
    returned.

    Parameters
    ----------
    epsilon : float
        Total privacy loss.
    delta : float
        Total delta; 0 leaves the pure split.
    n_releases : int
        Number of exponential mechanisms that are released together.

    Returns
    -------
    float

    Examples
    --------
    >>> bounded_range_rate(1.0, 0.0, 2)
    0.5
    >>> bounded_range_rate(1.0, 1e-5, 30) > 2 * bounded_range_rate(1.0, 0.0, 30)
    True
    """
    pure = epsilon / n_releases
    if delta <= 0 or n_releases == 1:
        return pure
    tight = largest_valid(
        lambda r: bounded_range_delta(r, n_releases, epsilon) <= delta, pure, epsilon
    )
    zcdp = largest_valid(
        lambda r: zcdp_epsilon(n_releases * bounded_range_rho(r), delta) <= epsilon, pure, epsilon
    )
    return max(pure, tight, zcdp)

"""Conversions between a privacy loss and a noise scale, by tight results.

Proof: doc/theory/noise_and_calibration.md, "Gaussian steps".
Proof: doc/theory/noise_and_calibration.md, "Concentrated privacy".
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln, log_ndtr

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._parameters import quoted

# Relative step to the private side of a root, since SciPy finds roots and integrals up to 1e-11.
_ROOT_MARGIN = 1e-9
# Number of laws of a choice that are tried, and the reduction of the logarithm of delta that
# covers the laws between them.
_CHOICE_GRID, _CHOICE_MARGIN = 129, 1e-3


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the tight delta of a mu-GDP mechanism at a given epsilon.

    Parameters
    ----------
    epsilon : float
        Privacy loss, 0 or larger.
    mu : float
        Parameter of Gaussian differential privacy: the sensitivity of a Gaussian
        release divided by the noise scale, or the combined ``mu`` of several
        releases.

    Returns
    -------
    float

    References
    ----------
    B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential
    privacy", ICML 2018, Theorem 8; J. Dong, A. Roth, W. Su, "Gaussian
    differential privacy", 2022, Corollary 2.13.

    Examples
    --------
    >>> from sklearn_dptda.privacy import gaussian_delta
    >>> round(gaussian_delta(1.0, 0.5), 4)
    0.0068
    """
    return math.exp(_log_gaussian_delta(epsilon, mu))


def _log_gaussian_delta(epsilon: float, mu: float) -> float:
    if mu == 0:
        return -math.inf
    if math.isinf(mu):
        return 0.0
    upper = float(log_ndtr(-epsilon / mu + mu / 2))
    lower = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
    if upper - lower > 1e-3:
        return upper + math.log(-math.expm1(lower - upper))
    return upper + math.log(mu * _relative_excess(-epsilon / mu + mu / 2, mu))


def _relative_excess(c: float, mu: float) -> float:
    """Integral of exp(-mu v) Phi(c - v) / Phi(c) over v > 0.

    Partial integration of the definition of delta gives mu Phi(c) times this integral. It has no
    cancellation, and is used if delta is small compared with Phi(c).
    """
    start = float(log_ndtr(c))
    reach = 40 / max(1.0, -c)
    value, _ = quad(
        lambda v: math.exp(float(log_ndtr(c - v)) - start - mu * v),
        0,
        reach,
        epsabs=0,
        epsrel=1e-11,
        limit=200,
    )
    return float(value)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest ``mu`` for which Gaussian noise is (epsilon, delta)-private.

    Divide the sensitivity by ``mu`` to get the noise scale.

    Parameters
    ----------
    epsilon : float
        Privacy loss, 0 or larger. ``inf`` gives ``inf``.
    delta : float
        Failure probability, in (0, 1). With delta 0, no Gaussian noise is private.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn_dptda.privacy import gaussian_mu
    >>> round(gaussian_mu(1.0, 1e-5), 4)
    0.2681
    """
    _check_delta(delta)
    check_epsilon(epsilon)
    if math.isinf(epsilon):
        return math.inf
    target = math.log(delta)
    high = math.sqrt(2 * epsilon) + 40
    low = high
    while _log_gaussian_delta(epsilon, low) > target:
        low /= 2
    if low == high:
        return high
    root = brentq(
        lambda mu: _log_gaussian_delta(epsilon, mu) - target, low, 2 * low, xtol=1e-300, rtol=1e-13
    )
    # The root may be rounded to either side: step to the private side.
    return root * (1 - _ROOT_MARGIN)


@lru_cache(maxsize=256)
def gaussian_mu_with_choice(epsilon: float, delta: float, share: float) -> float:
    """Largest ``mu`` of one choice and Gaussian steps that together are (epsilon, delta)-private.

    The choice has a privacy loss whose range is ``2 mu sqrt(share)``, like an exponential
    mechanism. The steps after it are ``mu sqrt(1 - share)``-GDP.
    Proof: doc/theory/noise_and_calibration.md, "One choice among Gaussian steps".
    """
    most = gaussian_mu(epsilon, delta)
    if math.isinf(most):
        return most
    least = math.sqrt(2 * zcdp_rho(epsilon, delta))
    target = math.log(delta) - _CHOICE_MARGIN
    return largest_valid(
        lambda mu: _log_delta_with_choice(epsilon, mu, share) <= target, least, most
    )


def _log_delta_with_choice(epsilon: float, mu: float, share: float) -> float:
    """Logarithm of delta. It is enough to try choices with two outcomes, the worst case."""
    reach, rest = 2 * mu * math.sqrt(share), mu * math.sqrt(1 - share)
    high = np.linspace(0.0, reach, _CHOICE_GRID)
    likely = np.expm1(high - reach) / math.expm1(-reach)
    losses, weights = np.stack([high, high - reach]), np.stack([likely, 1 - likely])
    left = epsilon - losses
    upper, lower = (log_ndtr(-left / rest + sign * rest / 2) for sign in (1, -1))
    parts = weights * np.exp(upper) * -np.expm1(np.minimum(left + lower - upper, 0.0))
    # A delta below all floats is below any target.
    with np.errstate(divide="ignore"):
        return float(np.log(parts.sum(axis=0).max()))


def pure_rho(epsilon: float) -> float:
    """Return the zCDP parameter of any pure mechanism, ``epsilon**2 / 2``.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the mechanism, with delta 0.

    Returns
    -------
    float

    References
    ----------
    M. Bun, T. Steinke, "Concentrated differential privacy", 2016,
    Proposition 1.4.

    Examples
    --------
    >>> from sklearn_dptda.privacy import pure_rho
    >>> pure_rho(1.0)
    0.5
    """
    return epsilon * epsilon / 2


def bounded_range_rho(epsilon: float) -> float:
    """Return the zCDP parameter of an exponential mechanism, ``epsilon**2 / 8``.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the exponential mechanism.

    Returns
    -------
    float

    References
    ----------
    M. Cesar, R. Rogers, "Bounding, concentrating, and truncating: unifying
    privacy loss composition for data analytics", 2021, Corollary 17.

    Examples
    --------
    >>> from sklearn_dptda.privacy import bounded_range_rho
    >>> bounded_range_rho(1.0)
    0.125
    """
    return epsilon * epsilon / 8


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Convert rho-zCDP to (epsilon, delta)-differential privacy, by the tight Rényi conversion.

    Parameters
    ----------
    rho : float
        Zero-concentrated privacy loss, 0 or larger.
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    float

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential
    privacy", 2020, Proposition 12.

    Examples
    --------
    >>> from sklearn_dptda.privacy import zcdp_epsilon
    >>> round(zcdp_epsilon(0.1, 1e-5), 3)
    1.914
    """
    _check_delta(delta)
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf

    # Every order alpha > 1 gives a valid bound, so that an approximate minimum is enough.
    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return alpha * rho + math.log(excess / alpha) - (math.log(delta * alpha)) / excess

    # The minimum is near excess = sqrt(log(1 / delta) / rho), the textbook order.
    centre = 0.5 * (math.log(max(-math.log(delta), 1e-3)) - math.log(rho))
    best = minimize_scalar(
        bound, bounds=(centre - 5, centre + 5), method="bounded", options={"xatol": 1e-10}
    )
    return max(float(best.fun), 0.0)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho for which rho-zCDP implies (epsilon, delta)-privacy.

    This is the inverse of :func:`zcdp_epsilon`.

    Parameters
    ----------
    epsilon : float
        Privacy loss, 0 or larger. ``inf`` gives ``inf``.
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn_dptda.privacy import zcdp_rho
    >>> round(zcdp_rho(1.0, 1e-5), 4)
    0.0306
    """
    check_epsilon(epsilon)
    _check_delta(delta)
    return math.inf if math.isinf(epsilon) else _largest_rho(float(epsilon), float(delta))


# Searches and replicates need the same public numbers many times.
@lru_cache(maxsize=1024)
def _largest_rho(epsilon: float, delta: float) -> float:
    high = 1.0
    while zcdp_epsilon(high, delta) <= epsilon:
        high *= 2
    low = high
    while zcdp_epsilon(low, delta) > epsilon:
        low /= 2
        if low < 1e-300:
            return 0.0
    return largest_valid(lambda rho: zcdp_epsilon(rho, delta) <= epsilon, low, 2 * low)


def largest_valid(valid: Callable[[float], bool], low: float, high: float) -> float:
    """Largest valid number in [low, high], by bisection, rounded down; low if low is not valid."""
    if valid(high):
        return high
    if not valid(low):
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if valid(middle) else (low, middle)
    return low


def check_epsilon(epsilon: float) -> None:
    """Raise ValueError if ``epsilon`` is negative or NaN."""
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be non-negative; got {quoted(epsilon)}.")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1); got {quoted(delta)}.")


def bounded_range_delta(rate: float, n_releases: int, epsilon: float) -> float:
    """Return the tight delta of independent mechanisms whose losses have the range ``rate``.

    For neighbours, the log ratio of the output densities of each mechanism varies by at most
    ``rate``. Every exponential mechanism that is ``rate``-differentially private has this property.
    J. Dong, D. Durfee, R. Rogers, "Optimal differential privacy composition for exponential
    mechanisms", ICML 2020, Theorem 3.
    """
    k = n_releases
    i = np.arange(k + 1)
    log_binomial = gammaln(k + 1) - gammaln(i + 1) - gammaln(k - i + 1)
    worst = 0.0
    for ell in i:
        t = min(max((epsilon + (ell + 1) * rate) / (k + 1), 0.0), rate)
        # Log probabilities, under the second data set, that one loss is high or low.
        log_total = _log_one_minus_exp(rate)
        log_high = -t + _log_one_minus_exp(rate - t) - log_total
        log_low = _log_one_minus_exp(t) - log_total
        log_mass = log_binomial + _times(k - i, log_high) + _times(i, log_low)
        loss = k * t - i * rate
        positive = loss > epsilon
        log_mass, loss = log_mass[positive], loss[positive]
        # This is mass * (exp(loss) - exp(epsilon)), computed without overflow.
        delta = float((np.exp(log_mass + loss) * -np.expm1(epsilon - loss)).sum())
        if math.isnan(delta):
            return 1.0
        worst = max(worst, delta)
    return worst


def _log_one_minus_exp(x: float) -> float:
    """``log(1 - exp(-x))``."""
    return math.log(-math.expm1(-x)) if x > 0 else -math.inf


def _times(count: NDArray[Any], log_probability: float) -> FloatArray:
    """``count * log_probability`` with ``0 * log(0) = 0``."""
    return count * np.where(count > 0, log_probability, 0.0)


def bounded_range_rate(epsilon: float, delta: float, n_releases: int) -> float:
    """Return the largest privacy loss for each of several exponential mechanisms.

    With ``delta > 0``, this is the best of the pure split ``epsilon / n_releases``, the
    bounded-range composition, and the zCDP composition (``rate**2 / 8`` for each mechanism).
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

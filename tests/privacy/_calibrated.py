"""Scales of noise for a whole budget, by the calibration of the package."""

import math
from fractions import Fraction

from scipy.optimize import brentq

from sklearn_dptda.privacy import gaussian_delta, gaussian_mu


def gaussian_epsilon(mu, delta):
    """Smallest epsilon at which a mu-GDP mechanism has the given delta."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 1e-12
    root = brentq(lambda epsilon: gaussian_delta(epsilon, mu) / delta - 1, 0.0, high, xtol=1e-300)
    return root * (1 + 1e-9)


def gaussian_scale(sensitivity, epsilon, delta, share=1.0):
    """Scale of Gaussian noise for a step that gets a share of the budget."""
    sensitivity.require(norm="l2")
    return sensitivity.value / (gaussian_mu(epsilon, delta) * math.sqrt(share))


def laplace_scale(sensitivity, epsilon):
    """Sensitivity over epsilon, rounded up."""
    sensitivity.require(norm="l1")
    if math.isinf(epsilon):
        return 0.0
    scale = sensitivity.value / epsilon
    short = Fraction(scale) * Fraction(epsilon) < Fraction(sensitivity.value)
    return math.nextafter(scale, math.inf) if short else scale

"""Profiles of persistences: noise in the maximum norm, and what brings them in order again."""

import math

import numpy as np
from scipy.special import gammainccinv
from sklearn.isotonic import isotonic_regression

from sklearn_dptda.metric_privacy._lattice_noise import lattice_noise
from sklearn_dptda.privacy import NoiseSource

# Rounding the truth down, and rounding in floating point.
_ROUNDED_STEPS = 2


def noisy_profile(lifetimes, rate, seed):
    """Add integer vectors of probabilities ``~ exp(-rate * max |z|)`` to one row per dimension."""
    steps = np.array(lifetimes)
    return steps + lattice_noise(NoiseSource(seed), rate, (1, steps.size), "linf").reshape(
        steps.shape
    )


def in_order(profile, upper):
    """Nearest decreasing rows, within the public bounds: no further from any that is so already."""
    rows = [isotonic_regression(row, increasing=False) for row in profile]
    return np.clip(rows, 0.0, upper)


def half_width(lattice, rate, size, confidence):
    """Error that all of ``size`` noisy persistences stay within, with at least this probability.

    A unit cube around an integer vector is within 1/2 of it, so that the tail of the discrete law
    is at most ``exp(rate)`` times that of the continuous one, whose norm is gamma distributed.
    """
    norm = gammainccinv(size, (1 - confidence) * math.exp(-rate))
    # A thousand times what the inverse may be off by.
    steps = math.ceil(norm * (1 + 1e-9) / rate - 0.5)
    return (steps + _ROUNDED_STEPS) * lattice.step

"""Chi-squared tests of draws against laws of integers, in floating point."""

import numpy as np
from scipy.stats import chisquare

REACH = {"laplace": 40, "gaussian": 12}


def noise_law(kind, scale, most):
    """Probabilities of the integers from -most to most."""
    x = np.arange(-most, most + 1)
    mass = np.exp(-np.abs(x) / scale if kind == "laplace" else -((x / scale) ** 2) / 2)
    return mass / mass.sum()


def p_value(drawn, law):
    """The p-value of draws of 0, 1, ..., in classes of at least fifty expected draws."""
    expected = len(drawn) * np.asarray(law, dtype=float)
    ends, mass = [], 0.0
    for i, each in enumerate(expected):
        mass += each
        if mass >= 50:
            ends.append(i)
            mass = 0.0
    # The last class has the rest, unless it would be the only one.
    classes = np.searchsorted(ends[:-1] or ends, np.arange(len(expected)))
    observed = np.bincount(drawn, minlength=len(expected))
    return chisquare(np.bincount(classes, observed), np.bincount(classes, expected)).pvalue


def noise_p_value(kind, scale, drawn):
    """The p-value of integer noise; numbers beyond the law's reach count as the farthest ones."""
    most = int(REACH[kind] * max(scale, 0.2)) + 2
    return p_value(np.clip(drawn, -most, most) + most, noise_law(kind, scale, most))

"""Simulated diagrams of three long features and noise, and distances between diagrams."""

import numpy as np

from sklearn_dptda.persistence import bottleneck_distance

# Births and deaths in units of the range.
LONG = ((0.1, 0.5), (0.2, 0.8), (0.3, 0.6))


def noisy_diagram(size, upper, noise=0.005, seed=0):
    """Draw a diagram of ``size`` points with values in ``[0, upper]``.

    Noise points have uniform births and exponential persistences with the
    mean ``noise * upper``.
    """
    rng = np.random.default_rng(seed)
    births = rng.uniform(0, 0.9, size - len(LONG))
    deaths = np.minimum(births + rng.exponential(noise, len(births)), 1)
    return upper * np.concatenate([LONG, np.c_[births, deaths]])


def finite_parts(diagrams):
    """Return H0 without its essential class, and H1."""
    components, loops = diagrams
    undying = np.lexsort((components[:, 0], -components[:, 1]))[:1]
    return [np.delete(components, undying, axis=0), loops]


def apart(first, second):
    """Return the sum of the bottleneck distances between two lists of diagrams."""
    return sum(map(bottleneck_distance, first, second))

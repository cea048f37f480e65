"""Scales at which a finite space changes, and the search among them."""

import numpy as np


def breakpoints(D):
    """Zero and all distances; those that differ by rounding alone are one, the largest."""
    values = np.unique(np.r_[0.0, D.ravel()])
    apart = np.r_[np.diff(values) > 1e-12 * values[-1], True]
    return values[apart]


def some_scales(scales):
    """Zero and about two hundred of the scales, evenly on both a line and a log line."""
    if scales[-1] == 0:
        return scales
    low, high = scales[scales > 0][0], scales[-1]
    wanted = np.r_[np.linspace(low, high, 100), np.geomspace(low, high, 100)]
    places = np.searchsorted(scales, wanted)
    return np.unique(np.r_[0.0, scales[np.minimum(places, len(scales) - 1)], high])


def bisect(is_enough, scales, below=-1):
    """Place of a scale that is enough, next to one that is not, by bisection.

    Of the last scale it is known without asking, of the place ``below`` that it is not.
    """
    enough = len(scales) - 1
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if is_enough(scales[middle]) else (middle, enough)
    return enough

"""Scales of metric privacy as intervals, and the candidates among which they are found."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ScaleBounds:
    """Certified lower and upper bounds of a number.

    Attributes
    ----------
    lower, upper : float
        The number is at least the one, and at most the other.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import entropic_scale
    >>> entropic_scale([[0, 1], [1, 0]], alpha=0.5)
    ScaleBounds(lower=1.0, upper=1.0)
    >>> float(entropic_scale([[0, 1], [1, 0]], alpha=0.5))
    1.0
    """

    lower: float
    upper: float

    def __post_init__(self):
        if not 0 <= self.lower <= self.upper:
            raise ValueError(f"bounds must be ordered; got {self.lower} and {self.upper}.")

    @property
    def exact(self) -> bool:
        """Whether the bounds agree."""
        return self.lower == self.upper

    def __float__(self) -> float:
        if not self.exact:
            raise ValueError(
                f"the number is only known to lie between {self.lower:g} and {self.upper:g}."
            )
        return self.lower

    def __str__(self):
        return f"{self.lower:.4g}" if self.exact else f"{self.lower:.4g} to {self.upper:.4g}"


def exactly(value):
    """Bounds of a number that is known."""
    return ScaleBounds(float(value), float(value))


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

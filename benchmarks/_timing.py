"""Wall times of repeated calls.

Medians are used, because other programs may run on the same machine.
"""

from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Timing:
    """The median, minimum and maximum of the seconds of repeated calls."""

    median: float
    low: float
    high: float

    def __format__(self, unit):
        """Format ``median (low to high)`` in seconds, or in milliseconds with the unit ``ms``."""
        scale = 1e3 if unit == "ms" else 1.0
        middle, low, high = (v * scale for v in (self.median, self.low, self.high))
        return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def once(function):
    """Return the seconds of one call and its result."""
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def summary(seconds):
    """Summarise measured seconds."""
    return Timing(median(seconds), min(seconds), max(seconds))


def repeated(function, repeats):
    """Time ``repeats`` calls."""
    return summary([once(function)[0] for _ in range(repeats)])


def side_by_side(*functions, repeats):
    """Time functions in turn, so that other load on the machine affects all of them.

    Returns
    -------
    tuple of Timing
    """
    rows = [[once(function)[0] for function in functions] for _ in range(repeats)]
    return tuple(summary(column) for column in zip(*rows, strict=True))

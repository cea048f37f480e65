"""Wall times of repeated calls: medians, because other programs share the machine."""

from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated calls: median, minimum and maximum."""

    median: float
    low: float
    high: float

    def __format__(self, unit):
        """Show ``median (low to high)`` in seconds, or in the unit ``ms``."""
        scale = 1e3 if unit == "ms" else 1.0
        middle, low, high = (v * scale for v in (self.median, self.low, self.high))
        return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def once(function):
    """Return the seconds of one call, and its result."""
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
    """Time functions by turns, so that a busy spell of the machine hits all.

    Returns
    -------
    tuple of Timing
    """
    rows = [[once(function)[0] for function in functions] for _ in range(repeats)]
    return tuple(summary(column) for column in zip(*rows, strict=True))

"""Times of repeated calls, on the clock and of the processor, and their ratios.

Other programs share the machine. The minimum is what a call takes where nothing disturbs it, and
the processor's time is nearly the same whatever else runs.
"""

import math
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from time import perf_counter, process_time

import numpy as np


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated calls: median, minimum and maximum on the clock, minimum of the CPU."""

    median: float
    low: float
    high: float
    cpu: float

    def __format__(self, unit):
        """Show ``median (low to high), CPU`` in seconds, or in the unit ``ms``."""
        scale = 1e3 if unit == "ms" else 1.0
        middle, low, high, cpu = (v * scale for v in (self.median, self.low, self.high, self.cpu))
        of_cpu = "" if math.isnan(cpu) else f", CPU {cpu:.3g}"
        return f"{middle:.3g} ({low:.3g} to {high:.3g}){of_cpu}"


@dataclass(frozen=True)
class Ratio:
    """How much longer one function takes than another: minima on the clock, and of the CPU."""

    clock: float
    cpu: float

    @classmethod
    def of(cls, own, peer):
        """Ratio of two timings."""
        return cls(own.low / peer.low, own.cpu / peer.cpu if peer.cpu else float("nan"))

    def __str__(self):
        return f"{self.clock:.3g}" + ("" if math.isnan(self.cpu) else f" (CPU {self.cpu:.3g})")


def _both(function):
    """Seconds of one call on the clock, and of the CPU in this process."""
    start, cpu = perf_counter(), process_time()
    function()
    return perf_counter() - start, process_time() - cpu


def cpu_of(function):
    """Return the seconds of one call of the CPU in this process, and its result."""
    start = process_time()
    result = function()
    return process_time() - start, result


def summary(seconds, cpu=(float("nan"),)):
    """Summarise measured seconds."""
    return Timing(median(seconds), min(seconds), max(seconds), min(cpu))


def repeated(function, repeats):
    """Time ``repeats`` calls."""
    return summary(*zip(*(_both(function) for _ in range(repeats)), strict=True))


def _calibration():
    """CPU seconds of a fixed loop of NumPy, the least of nine: so that machines compare."""

    def loop():
        rows = np.random.default_rng(0).random((2000, 100))
        for _ in range(5):
            np.sort((rows @ rows.T).ravel())

    return repeated(loop, 9).cpu


def describe_machine():
    """Return the platform, the number of cores and the versions of packages."""
    packages = ("numpy", "scipy", "gudhi", "scikit-learn")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    python = platform.python_version()
    loop = f"the calibration loop takes {_calibration():.2f} s of CPU"
    return f"{platform.platform()}, {os.cpu_count()} cores, Python {python}, {versions}; {loop}"

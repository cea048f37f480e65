"""A line that describes the machine, which is needed to interpret the times."""

import math
import os
import platform
import sys
from importlib.metadata import version

from benchmarks._timing import calibration

try:
    import resource
except ImportError:  # Windows
    resource = None

PACKAGES = ("numpy", "scipy", "gudhi", "scikit-learn")


def describe_machine():
    """Return the platform, the number of cores and the versions of packages."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    python = platform.python_version()
    loop = f"the calibration loop takes {calibration():.2f} s of CPU"
    return f"{platform.platform()}, {os.cpu_count()} cores, Python {python}, {versions}; {loop}"


def peak_megabytes():
    """Return the peak memory of this process, or NaN if the system does not report it."""
    if resource is None:
        return math.nan
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

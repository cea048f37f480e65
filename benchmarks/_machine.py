"""One line about the machine, without which times mean little."""

import math
import os
import platform
import sys
from importlib.metadata import version

try:
    import resource
except ImportError:  # Windows
    resource = None

PACKAGES = ("numpy", "scipy", "gudhi", "scikit-learn")


def describe_machine():
    """Name platform, cores and versions."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    python = platform.python_version()
    return f"{platform.platform()}, {os.cpu_count()} cores, Python {python}, {versions}"


def peak_megabytes():
    """Largest memory of this process so far; nan where the system does not tell."""
    if resource is None:
        return math.nan
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

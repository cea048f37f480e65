"""One line about the machine, without which times mean little."""

import os
import platform
from importlib.metadata import version

PACKAGES = ("numpy", "scipy", "gudhi", "scikit-learn")


def describe_machine():
    """Name platform, cores and versions."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    python = platform.python_version()
    return f"{platform.platform()}, {os.cpu_count()} cores, Python {python}, {versions}"

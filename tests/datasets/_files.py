"""Files of data sets that may be on this computer."""

import os
from pathlib import Path

import pytest

DATA = os.environ.get("SKLEARN_DPTDA_DATA")


def needs(name):
    """Skip a test where the file of a data set is missing."""
    found = DATA and Path(DATA, f"{name}.npz").is_file()
    reason = f"{name}.npz not found: set SKLEARN_DPTDA_DATA to a folder that holds it"
    return pytest.mark.skipif(not found, reason=reason)

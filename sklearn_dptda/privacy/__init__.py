"""Guarantees, calibration, sources of randomness and warnings."""

from sklearn_dptda.privacy._calibration import (
    bounded_range_rate,
    zcdp_epsilon,
)
from sklearn_dptda.privacy._guarantee import PrivacyGuarantee
from sklearn_dptda.privacy._random import IntegerSource, spawn_seeds
from sklearn_dptda.privacy._warnings import PrivacyLeakWarning

__all__ = [
    "IntegerSource",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "bounded_range_rate",
    "spawn_seeds",
    "zcdp_epsilon",
]

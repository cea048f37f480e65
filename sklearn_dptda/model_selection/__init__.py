"""Replicates and privacy-utility curves."""

from sklearn_dptda.model_selection._privacy_utility import (
    PrivacyUtilityCurve,
    privacy_utility_curve,
)
from sklearn_dptda.model_selection._replicates import release_replicates

__all__ = ["PrivacyUtilityCurve", "privacy_utility_curve", "release_replicates"]

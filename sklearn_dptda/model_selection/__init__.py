"""Many releases of the same data, and how their errors depend on one parameter.

Every release is paid for or made of public data, and errors are measured against exact diagrams:
tools for planning, on simulated data.
"""

from sklearn_dptda.model_selection._privacy_utility import (
    PrivacyUtilityCurve,
    privacy_utility_curve,
)
from sklearn_dptda.model_selection._replicates import release_replicates

__all__ = ["PrivacyUtilityCurve", "privacy_utility_curve", "release_replicates"]

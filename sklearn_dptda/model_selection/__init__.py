"""Many releases of the same data, and how their errors depend on one parameter.

Errors are measured against exact diagrams: tools for planning, on simulated data. What is chosen by
private data is paid for.
"""

from sklearn_dptda.model_selection._mass_search import PrivateMassSearch
from sklearn_dptda.model_selection._privacy_utility import (
    PrivacyUtilityCurve,
    privacy_utility_curve,
)
from sklearn_dptda.model_selection._replicates import release_replicates

__all__ = [
    "PrivacyUtilityCurve",
    "PrivateMassSearch",
    "privacy_utility_curve",
    "release_replicates",
]

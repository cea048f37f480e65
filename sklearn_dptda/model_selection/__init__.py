"""What comes before a release: what it will cost, and how good it will be.

Dry runs count what pipelines, cross-validations and searches will pay, and plans say which epsilon
shows a feature, from public numbers alone. What is chosen by private data is paid for. Replicates
and privacy-utility curves release many times, and measure errors against exact diagrams: tools for
simulated data.
"""

from sklearn_dptda.model_selection._dry_run import check_budget, planned_loss
from sklearn_dptda.model_selection._mass_search import PrivateMassSearch
from sklearn_dptda.model_selection._pipeline_guarantee import pipeline_guarantee
from sklearn_dptda.model_selection._planned_releases import PlannedLoss, PlannedRelease
from sklearn_dptda.model_selection._planner import plan_release
from sklearn_dptda.model_selection._privacy_utility import (
    PrivacyUtilityCurve,
    privacy_utility_curve,
)
from sklearn_dptda.model_selection._release_once import release_once
from sklearn_dptda.model_selection._release_plan import PlanCurve, ReleasePlan
from sklearn_dptda.model_selection._replicates import (
    IncompleteReleases,
    InterruptedReleases,
    release_replicates,
)

__all__ = [
    "IncompleteReleases",
    "InterruptedReleases",
    "PlanCurve",
    "PlannedLoss",
    "PlannedRelease",
    "PrivacyUtilityCurve",
    "PrivateMassSearch",
    "ReleasePlan",
    "check_budget",
    "pipeline_guarantee",
    "plan_release",
    "planned_loss",
    "privacy_utility_curve",
    "release_once",
    "release_replicates",
]

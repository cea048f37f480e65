"""Planning of releases: cost, accuracy, private choices of parameters, and replicates.

Dry runs and plans use only public numbers. A search that chooses a parameter by private data spends
a part of the privacy budget. Replicates and privacy-utility curves make many releases and are meant
for simulated data.
"""

from sklearn_dptda.model_selection._dry_run import planned_loss
from sklearn_dptda.model_selection._mass_search import PrivateMassSearch
from sklearn_dptda.model_selection._pipeline_guarantee import pipeline_guarantee
from sklearn_dptda.model_selection._planned_releases import PlannedLoss
from sklearn_dptda.model_selection._planner import plan_release
from sklearn_dptda.model_selection._privacy_utility import (
    PrivacyUtilityCurve,
    privacy_utility_curve,
)
from sklearn_dptda.model_selection._private_search import PrivateSearchCV
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
    "PrivacyUtilityCurve",
    "PrivateMassSearch",
    "PrivateSearchCV",
    "ReleasePlan",
    "pipeline_guarantee",
    "plan_release",
    "planned_loss",
    "privacy_utility_curve",
    "release_once",
    "release_replicates",
]

"""Every estimator of tables passes all of scikit-learn's checks, without exceptions."""

import pytest
from sklearn.mixture import GaussianMixture
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_dptda.cluster import (
    DPLandmarkToMATo,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    MorseMerging,
    PrivateLandmarks,
    ToMATo,
)
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.metric_privacy import KNormMechanism, MetricExponentialMechanism, MetricMeasure
from sklearn_dptda.model_selection import PrivateSearchCV
from sklearn_dptda.population import PrivateMean
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.published import DPCube, PublishedMerging, PublishedMixture
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils.discovery import all_estimators


def _expected_to_fail(estimator):
    """The check compares pickles, and two pickles of an estimator without a seed differ."""
    search = isinstance(estimator, PrivateSearchCV)
    return {"check_estimators_overwrite_params": "steps have no seed"} if search else {}


# One estimator in the unit layer stands for all, because they share their base classes.
IN_UNIT = PrivateBounds(1.0, shape="box", random_state=0)
# The bounds contain the tables of the checks. Without seeds, noise would hide the bounds of twenty
# rows in some of the fits.
WIDE = {"bounds": (-100, 100), "random_state": 0}
ESTIMATORS = [
    PrivateBounds(random_state=0),
    PrivateLandmarks(n_landmarks=5, random_state=0),
    PrivateMean(100.0, 0.0, random_state=0),
    PrivateMean(bounds=(-300, 300), random_state=0),
    PrivateMeasure(bounds=(-10, 10), random_state=0),
    PrivateMeasure(bounds=(-10, 10), marginal_share=0.5, random_state=0),
    PrivatePCA(**WIDE),
    PrivatePCA(1, **WIDE),
    DPCube(3, delta=0.0, **WIDE),
    DPLandmarkToMATo(n_landmarks=9, random_state=0),
    DPLinearDiscriminantAnalysis(epsilon=10.0, bounds=(-300, 300), random_state=0),
    DPLinearDiscriminantAnalysis(epsilon=100.0, delta=0.0, random_state=0),
    DPLloyd(3, delta=0.0, covariance_share=0.5, **WIDE),
    DPMoG(3, **WIDE),
    DPMoGMorse(**WIDE),
    DPToMATo(**WIDE),
    DPTree(3, **WIDE),
    KNormMechanism(**WIDE),
    MetricExponentialMechanism(random_state=0),
    MetricMeasure(**WIDE),
    MorseMerging(GaussianMixture(4, random_state=0)),
    PrivateSearchCV(
        DPLloyd(3, delta=0.0, bounds=(-100, 100)),
        {"n_clusters": [3]},
        scoring="inertia",
        law=[1],
        random_state=0,
    ),
    PublishedMerging(GaussianMixture(4, random_state=0)),
    PublishedMixture(3, **WIDE),
    ToMATo(),
    ToMATo(density="log_kde", bandwidth=1.0),
]


@parametrize_with_checks([IN_UNIT])
def test_scikit_learn_checks_pass_for_one_estimator(estimator, check):
    check(estimator)


@pytest.mark.conformance
@pytest.mark.usefixtures("few_public_draws")
@pytest.mark.filterwarnings(
    "ignore::sklearn_dptda.privacy.PrivacyLeakWarning",
    # Some checks have fewer rows than clusters.
    "ignore:n_clusters=",
)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected_to_fail)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


def test_scikit_learn_checks_run_on_every_estimator_of_tables():
    of_tables = {name for name, kind in all_estimators() if get_tags(kind()).input_tags.two_d_array}
    assert len(of_tables) >= 13
    assert of_tables <= {type(estimator).__name__ for estimator in [IN_UNIT, *ESTIMATORS]}

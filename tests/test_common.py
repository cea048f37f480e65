"""One set of tests for all estimators that take clouds, filtrations or diagrams.

scikit-learn's own checks run almost nothing on estimators whose input is not a table. The contract
is therefore checked here, for every estimator that the package exports, so that no new estimator is
forgotten.
"""

import inspect
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import sklearn_dptda
from sklearn_dptda import (
    CubicalPersistence,
    DiagramFeatures,
    DTMFiltration,
    KernelDistanceFiltration,
    PersistenceProfile,
    PrivateBettiNumbers,
    PrivateCloud,
    PrivatePersistence,
)
from sklearn_dptda.datasets import make_loops
from sklearn_dptda.privacy import NoiseWarning
from tests._refusals import refuses

ESTIMATORS = [
    value
    for value in (getattr(sklearn_dptda, name) for name in sklearn_dptda.__all__)
    if inspect.isclass(value) and issubclass(value, BaseEstimator)
]
CLOUDS, LABELS = make_loops(8, 60, random_state=0)
FILTRATIONS = DTMFiltration(0.2, bounds=(-2, 2), resolution=9).fit_transform(CLOUDS)
DIAGRAMS = CubicalPersistence().fit_transform(FILTRATIONS)

INSTANCES = {
    DTMFiltration: (DTMFiltration(bounds=(-2, 2), resolution=9), CLOUDS),
    KernelDistanceFiltration: (KernelDistanceFiltration(bounds=(-2, 2), resolution=9), CLOUDS),
    CubicalPersistence: (CubicalPersistence(), FILTRATIONS),
    PrivatePersistence: (PrivatePersistence(random_state=0), FILTRATIONS),
    PersistenceProfile: (PersistenceProfile(10.0, random_state=0), FILTRATIONS),
    PrivateBettiNumbers: (PrivateBettiNumbers(10.0, 0.2, random_state=0), FILTRATIONS),
    PrivateCloud: (PrivateCloud(bounds=(-2, 2), random_state=0), CLOUDS),
    DiagramFeatures: (DiagramFeatures(), DIAGRAMS),
}


def equal(a, b):
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if hasattr(a, "values") and hasattr(a, "sensitivity"):
        return np.array_equal(a.values, b.values) and a.sensitivity == b.sensitivity
    if hasattr(a, "counts"):
        return np.array_equal(a.counts, b.counts)
    return np.array_equal(a, b)


def check_parameters_are_only_stored(estimator, X):
    signature = inspect.signature(type(estimator)).parameters
    assert set(signature) == set(estimator.get_params())
    for name, parameter in signature.items():
        assert getattr(type(estimator)(), name) is parameter.default


def check_constraints_cover_the_signature(estimator, X):
    assert set(type(estimator)._parameter_constraints) == set(estimator.get_params())


def check_clone_and_set_params(estimator, X):
    copy = clone(estimator)
    assert repr(copy) == repr(estimator)
    assert copy.set_params(**estimator.get_params()) is copy


def check_fit_returns_self_and_is_idempotent(estimator, X):
    assert estimator.fit(X) is estimator
    first = estimator.transform(X)
    assert equal(estimator.fit(X).transform(X), first)


def check_fit_transform_is_fit_and_transform(estimator, X):
    assert equal(clone(estimator).fit_transform(X), estimator.fit(X).transform(X))


def check_fit_changes_no_parameter(estimator, X):
    before = repr(estimator.get_params())
    estimator.fit(X).transform(X)
    assert repr(estimator.get_params()) == before


def check_input_is_left_alone(estimator, X):
    before = pickle.dumps(X)
    estimator.fit(X).transform(X)
    assert pickle.dumps(X) == before


RELEASED_BY_TRANSFORM = {"cap_", "error_bounds_", "laws_", "release_half_widths_", "thresholds_"}


def check_transform_leaves_the_fitted_state_alone(estimator, X):
    # Except for released values that it does not return.
    estimator.fit(X)
    before = pickle.dumps(estimator)
    estimator.transform(X)
    for name in RELEASED_BY_TRANSFORM & vars(estimator).keys():
        assert f"{name} :" in type(estimator).__doc__
        delattr(estimator, name)
    assert pickle.dumps(estimator) == before


def check_pickle(estimator, X):
    estimator.fit(X)
    copy = pickle.loads(pickle.dumps(estimator))
    assert equal(copy.transform(X), estimator.transform(X))


def check_not_fitted(estimator, X):
    refuses(None, clone(estimator).transform, X, error=NotFittedError)


def check_learnt_attributes_end_in_an_underscore(estimator, X):
    estimator.fit(X)
    public = {name for name in vars(estimator) if not name.startswith("_")}
    extra = public - set(estimator.get_params())
    assert all(name.endswith("_") for name in extra)


def check_order_and_length(estimator, X):
    if "epsilon" in estimator.get_params():
        estimator.set_params(epsilon=np.inf)
    whole = estimator.fit(X).transform(X)
    assert len(whole) == len(X)
    assert equal(list(estimator.transform(X[::-1])), list(whole)[::-1])
    assert equal(list(estimator.transform(X[:3])), list(whole)[:3])


def check_tags(estimator, X):
    tags = get_tags(estimator)
    assert not tags.input_tags.two_d_array
    assert tags.input_tags.three_d_array
    assert tags.transformer_tags is not None


def check_empty_input(estimator, X):
    refuses("empty", estimator.fit, [])


def check_not_a_collection(estimator, X):
    for bad in (None, 3, 1.5):
        refuses("X", estimator.fit, bad)


def check_one_flat_array(estimator, X):
    refuses("single array", estimator.fit, np.zeros((5, 2)))


def check_set_output(estimator, X):
    pandas = pytest.importorskip("pandas")
    estimator.set_output(transform="pandas")
    out = estimator.fit(X).transform(X)
    # Lists of functions and diagrams have no columns, and so no names of them.
    names = list(estimator.get_feature_names_out())
    if names:
        assert isinstance(out, pandas.DataFrame)
        assert list(out.columns) == names
    else:
        assert isinstance(out, list)


def check_global_output_setting(estimator, X):
    pytest.importorskip("pandas")
    with sklearn.config_context(transform_output="pandas"):
        assert len(estimator.fit(X).transform(X)) == len(X)


def check_html_and_repr(estimator, X):
    estimator.fit(X)
    assert type(estimator).__name__ in repr(estimator)
    assert type(estimator).__name__ in estimator._repr_html_()


def check_no_warnings(estimator, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoiseWarning)
        estimator.fit(X).transform(X)


def check_public_methods_have_docstrings(estimator, X):
    for name, method in inspect.getmembers(type(estimator), inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.getdoc(method), name
    text = inspect.getdoc(type(estimator))
    for section in ("Parameters", "Attributes", "Notes", "Examples", ".. rubric:: Privacy"):
        assert section in text
    for name in estimator.get_params():
        assert name in text


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]


def test_common_checks_forget_no_estimator():
    assert set(INSTANCES) == set(ESTIMATORS)
    assert len(CHECKS) * len(ESTIMATORS) >= 110


@pytest.mark.conformance
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda k: k.__name__)
def test_estimator_passes_common_check(kind, check):
    estimator, X = INSTANCES[kind]
    check(clone(estimator), X)


# The privacy battery compares releases with and without workers.
@pytest.mark.engines
@pytest.mark.parametrize(
    "kind",
    [kind for kind in ESTIMATORS if {"n_jobs", "epsilon"} & set(kind().get_params()) == {"n_jobs"}],
    ids=lambda kind: kind.__name__,
)
def test_estimator_with_workers_transforms_alike(kind):
    estimator, X = INSTANCES[kind]
    serial = clone(estimator).fit_transform(X)
    assert equal(clone(estimator).set_params(n_jobs=2).fit_transform(X), serial)


@pytest.mark.conformance
def test_grid_search_over_a_pipeline_of_clouds():
    # Each cloud is one sample and one group, so no cloud is in both train and test.
    pipeline = make_pipeline(
        DTMFiltration(bounds=(-2, 2), resolution=15),
        PrivatePersistence(epsilon=10.0, random_state=0),
        DiagramFeatures(value_range=(0, 2)),
        LogisticRegression(),
    )
    search = GridSearchCV(
        pipeline,
        [
            {"dtmfiltration__m": [0.1], "privatepersistence__epsilon": [20.0]},
            {"dtmfiltration__m": [0.3], "privatepersistence__epsilon": [2.0]},
        ],
        cv=GroupKFold(2),
        error_score="raise",
    )
    search.fit(CLOUDS, LABELS, groups=np.arange(8) // 2)
    assert search.predict(CLOUDS).shape == (8,)
    assert "epsilon" in search.best_estimator_._repr_html_()


def test_dtm_filtration_hands_on_the_sensitivity_of_m():
    pipeline = make_pipeline(DTMFiltration(0.1, bounds=(-2, 2), resolution=9))
    first = pipeline.fit_transform(CLOUDS)[0].sensitivity
    second = pipeline.set_params(dtmfiltration__m=0.5).fit_transform(CLOUDS)[0].sensitivity
    assert second == pytest.approx(first / 5)


def test_pipeline_of_clouds_returns_pandas_output():
    pandas = pytest.importorskip("pandas")
    pipeline = make_pipeline(
        DTMFiltration(bounds=(-2, 2), resolution=9), CubicalPersistence(), DiagramFeatures()
    ).set_output(transform="pandas")
    assert isinstance(pipeline.fit_transform(CLOUDS), pandas.DataFrame)

"""The privacy checks on every private estimator, and on broken twins that they must catch."""

import contextlib
import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import sklearn_dptda
from sklearn_dptda import CubicalPersistence, PrivatePersistence
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.utils._privacy_checks import CHECKS
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import (
    check_privacy,
    make_instance,
    parametrize_with_privacy_checks,
    privacy_checks,
)
from tests._refusals import refuses
from tests.privacy._broken import BROKEN
from tests.privacy._private_mean import PrivateMean

FULFILLED_BY_ITSELF = {
    # The mixin's tags, and scikit-learn's clone.
    "check_tags",
    "check_clone_has_no_guarantee",
}


# What the checks attack does not depend on the number of draws from a private mixture.
pytestmark = pytest.mark.usefixtures("few_public_draws")


@pytest.mark.conformance
@parametrize_with_privacy_checks()
def test_privacy_checks_pass_for_private_estimators(check):
    check()


@parametrize_with_privacy_checks([PrivateMean(bounds=(0, 1)), EdgeFlip()])
def test_privacy_checks_pass_for_a_foreign_estimator_and_graphs(check):
    check()


@pytest.mark.conformance
@parametrize_with_privacy_checks(
    [
        PrivateMean(5.0, bounds=(0, 1)),
        PrivatePersistence(
            max_points=1, spike=0.9, homology_dimensions=1, sensitivity=0.5, upper=3.0
        ),
    ]
)
def test_privacy_checks_pass_for_other_kinds_of_estimators(check):
    check()


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kinds in BROKEN.items() for kind in kinds]
)
def test_privacy_checks_catch_broken_twins(name, kind):
    checks = dict(privacy_checks(make_instance(kind)))
    refuses(None, checks[name], error=AssertionError)


class Unreadable:
    """A table whose reader fails, and quotes a record."""

    shape = (60, 2)

    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 60

    def __array__(self, dtype=None, copy=None):
        raise self.kind("record P0001")


def _labelled_chunks():
    yield np.zeros((60, 2)), np.zeros(60)
    raise ValueError("record P0001")


def _chunks():
    yield np.zeros((60, 2))
    raise ValueError("record P0001")


@pytest.mark.parametrize("name", dict(all_estimators(private=True)))
@pytest.mark.parametrize("kind", [ValueError, TypeError, KeyError, MemoryError])
def test_private_estimators_hide_errors_of_readers(name, kind):
    estimator = make_instance(dict(all_estimators())[name])
    accountant = PrivacyAccountant(10.0, 1e-3)
    estimator.set_params(accountant=accountant)
    table = Unreadable(kind)
    rows = get_tags(estimator).privacy.input in ("rows", "graph")
    y = np.zeros(60)
    if get_tags(estimator).privacy.labels:
        calls = [(estimator.fit, table, y), (estimator.fit, np.zeros((60, 2)), table)]
        for pairs in ([(table, y)], [(np.zeros((60, 2)), table)], _labelled_chunks):
            calls += [(estimator.fit_chunks, pairs)]
        delayed = pytest.importorskip("dask").delayed
        calls += [(estimator.fit, [delayed(np.asarray)(table)], [delayed(y)])]
    else:
        calls = [(estimator.fit, table if rows else [table])]
        if hasattr(estimator, "fit_chunks"):
            calls += [(estimator.fit_chunks, [table]), (estimator.fit_chunks, _chunks)]
            delayed = pytest.importorskip("dask").delayed
            calls += [(estimator.fit, [delayed(np.asarray)(table)])]
    for call, *inputs in calls:
        with pytest.raises(ValueError) as caught:
            call(*inputs)
        assert "P0001" not in str(caught.value)
        assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert len(accountant) == 0


@pytest.mark.laws
def test_estimators_name_wrong_parameters_by_their_type():
    ids = [f"P{i:04d}" for i in range(60)]
    for name, kind in all_estimators():
        estimator = make_instance(kind) if is_private(kind()) else kind()
        for parameter in estimator.get_params(deep=False):
            for value in (ids, tuple(ids), np.array(ids), {"a": ids}, ids[0] * 20):
                wrong = clone(estimator).set_params(**{parameter: value})
                with warnings.catch_warnings(), contextlib.suppress(AttributeError):
                    warnings.simplefilter("ignore")
                    try:
                        wrong.fit(np.zeros((60, 2)))
                    except (ValueError, TypeError) as error:
                        assert "P0001" not in str(error), (name, parameter)


def test_privacy_checks_are_enough_and_have_broken_twins():
    private = all_estimators(private=True)
    count = sum(len(privacy_checks(make_instance(kind))) for _, kind in private)
    assert len(CHECKS) >= 40 and count >= 40 * len(private) >= 40
    assert set(BROKEN) | FULFILLED_BY_ITSELF == set(CHECKS)


def test_all_estimators_finds_what_the_package_exports():
    exported = {
        name
        for name, value in vars(sklearn_dptda).items()
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    }
    found = dict(all_estimators())
    assert exported <= set(found)
    private, others = (set(dict(all_estimators(private=flag))) for flag in (True, False))
    assert "PrivatePersistence" in private and "CubicalPersistence" in others
    assert private | others == set(found) and not private & others
    # Every estimator with epsilon and noise must have the tags.
    assert {n for n, kind in found.items() if "epsilon" in kind().get_params()} == private


def test_check_privacy_refuses_estimators_without_tags():
    refuses("CubicalPersistence has no privacy tags", check_privacy, CubicalPersistence())

"""The privacy checks over every private estimator, and over broken twins that they must catch."""

import inspect

import pytest
from sklearn.base import BaseEstimator

import sklearn_dptda
from sklearn_dptda import CubicalPersistence, PrivatePersistence
from sklearn_dptda.utils._privacy_checks import CHECKS
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import (
    check_privacy,
    make_instance,
    parametrize_with_privacy_checks,
    privacy_checks,
)
from tests.privacy._broken import BROKEN
from tests.privacy._private_mean import PrivateMean
from tests.privacy._prototypes import FlipEdges, PrivateHistogram

FULFILLED_BY_ITSELF = {
    # The mixin's tags, and scikit-learn's clone.
    "check_tags",
    "check_clone_has_no_guarantee",
}


@parametrize_with_privacy_checks()
def test_our_private_estimators(check):
    check()


@parametrize_with_privacy_checks(
    [
        PrivateMean(bounds=(0, 1)),
        PrivateMean(5.0, bounds=(0, 1)),
        PrivateHistogram(),
        FlipEdges(),
        PrivatePersistence(
            max_points=1, spike=0.9, homology_dimensions=1, sensitivity=0.5, upper=3.0
        ),
    ]
)
def test_an_estimator_of_somebody_else(check):
    check()


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kinds in BROKEN.items() for kind in kinds]
)
def test_every_broken_twin_is_caught(name, kind):
    checks = dict(privacy_checks(make_instance(kind)))
    with pytest.raises(AssertionError):
        checks[name]()


def test_every_check_has_a_twin():
    assert set(BROKEN) | FULFILLED_BY_ITSELF == set(CHECKS)


def test_there_are_enough_checks():
    private = all_estimators(private=True)
    count = sum(len(privacy_checks(make_instance(kind))) for _, kind in private)
    assert len(CHECKS) >= 40 and count >= 40 * len(private) >= 40


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
    # Whoever has epsilon and noise must carry the tags.
    assert {n for n, kind in found.items() if "epsilon" in kind().get_params()} == private


def test_estimators_without_tags_are_refused():
    with pytest.raises(ValueError, match="CubicalPersistence has no privacy tags"):
        check_privacy(CubicalPersistence())

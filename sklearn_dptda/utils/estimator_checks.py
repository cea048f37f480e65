"""Privacy checks for any private estimator, ours or yours.

An estimator that inherits
:class:`~sklearn_dptda.privacy.PrivateEstimatorMixin` and sets its tags is held
to some forty rules: its guarantee is present and true, its budget is spent
before the release and never given back, no record stays in what is pickled or
printed, no error, warning or shape tells neighbours apart, seeds and entropy
do what they say, ``epsilon=inf`` is the non-private sibling.

Passing is necessary, not sufficient: the sensitivity needs a proof and
:func:`~sklearn_dptda.privacy.audit_epsilon` more runs.
"""

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, clone

from sklearn_dptda.privacy import PrivacyLeakWarning
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.utils._privacy_checks import CHECKS, CheckData, make_check_data
from sklearn_dptda.utils._privacy_checks._check_tools import tags_of
from sklearn_dptda.utils.discovery import all_estimators

if TYPE_CHECKING:
    from pytest import MarkDecorator

__all__ = [
    "check_privacy",
    "make_instance",
    "parametrize_with_privacy_checks",
    "privacy_checks",
]

# Parameters that fit the inputs of the checks, which are values of the unit box.
_PUBLIC = {"bounds": (0.0, 1.0), "sensitivity": 0.1, "upper": 1.0, "delta": 1e-6}
# Parameters that make thousands of fits quick, and the guarantee no weaker.
_SMALL = {
    "n_clusters": 2,
    "n_components": 2,
    "kmeans_steps": 2,
    "n_iter": 2,
    "max_depth": 3,
    "n_swaps": 2,
    "n_bins": 4,
    "depth": 3,
}


def make_instance(kind: type[BaseEstimator]) -> BaseEstimator:
    """Instance of a private estimator with the public parameters that the checks use.

    Parameters
    ----------
    kind : type
        Class of a private estimator that can be made without arguments.

    Returns
    -------
    estimator
        With ``bounds=(0, 1)``, ``sensitivity=0.1`` and ``upper=1`` where it
        has such parameters, few clusters, components and steps, and what the
        class says in ``_parameters_for_checks``.
    """
    estimator = kind()
    known = estimator.get_params(deep=False)
    return estimator.set_params(
        **{
            name: value
            for name, value in _PUBLIC.items()
            if name in known and (known[name] is None or name == "bounds")
        },
        **{name: value for name, value in _SMALL.items() if name in known},
        **getattr(kind, "_parameters_for_checks", dict)(),
    )


def privacy_checks(
    estimator: BaseEstimator, data: CheckData | None = None
) -> list[tuple[str, Callable[[], None]]]:
    """List the checks for one estimator.

    Parameters
    ----------
    estimator : estimator
        With privacy tags, and without an accountant.
    data : CheckData, default=None
        Inputs; None makes some by the tags, within the unit box.

    Returns
    -------
    list of (str, callable)
        Names and functions without arguments that raise AssertionError.

    Raises
    ------
    ValueError
        If the estimator's tags do not say that it is private.
    """
    if not is_private(estimator):
        raise ValueError(f"{type(estimator).__name__} has no privacy tags: nothing to check.")
    return [(name, partial(_run, check, estimator, data)) for name, check in CHECKS.items()]


def _run(check: Callable[..., None], estimator: Any, data: CheckData | None) -> None:
    if data is None:
        parameters = estimator.get_params(deep=False)
        data = make_check_data(
            tags_of(estimator), parameters.get("upper"), parameters.get("sensitivity")
        )
    # Checks ask for noise that drowns everything, which estimators warn of.
    with warnings.catch_warnings(record=True, action="always") as caught:
        check(clone(estimator), data)
    for warning in caught:
        if issubclass(warning.category, PrivacyLeakWarning):
            warnings.warn(warning.message, stacklevel=2)


def check_privacy(estimator: BaseEstimator, data: CheckData | None = None) -> int:
    """Run all privacy checks on one estimator.

    Parameters
    ----------
    estimator : estimator
    data : CheckData, default=None

    Returns
    -------
    int
        Number of checks that ran.

    Raises
    ------
    AssertionError
        From the first check that fails.

    Examples
    --------
    >>> from sklearn_dptda.graph import EdgeFlip
    >>> from sklearn_dptda.utils.estimator_checks import check_privacy, privacy_checks
    >>> len(privacy_checks(EdgeFlip())) >= 40
    True
    >>> check_privacy(EdgeFlip())  # doctest: +SKIP
    42
    """
    checks = privacy_checks(estimator, data)
    for _, check in checks:
        check()
    return len(checks)


def parametrize_with_privacy_checks(
    estimators: Iterable[BaseEstimator] | None = None,
) -> "MarkDecorator":
    """Decorate a pytest test that takes ``check``.

    Parameters
    ----------
    estimators : list of estimators, default=None
        None takes every private estimator of this package.

    Returns
    -------
    pytest.MarkDecorator
    """
    import pytest

    if estimators is None:
        estimators = [make_instance(kind) for _, kind in all_estimators(private=True)]
    return pytest.mark.parametrize(
        "check",
        [
            pytest.param(check, id=f"{type(estimator).__name__}-{name}")
            for estimator in estimators
            for name, check in privacy_checks(estimator)
        ],
    )

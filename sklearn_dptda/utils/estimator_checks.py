"""Privacy checks for private estimators of this package and for your own.

There are about forty checks for an estimator that inherits
:class:`~sklearn_dptda.privacy.PrivateEstimatorMixin` and sets its tags. Among other
things, they check that

- the guarantee is present and correct,
- the budget is spent before the release and never given back,
- no record is in a pickle or in a printed text,
- no error, warning or shape distinguishes neighbours,
- seeds reproduce a release, and releases without a seed differ,
- the estimator with ``epsilon=inf`` equals the non-private one.

Passing the checks is necessary but not sufficient for privacy. The sensitivity
needs a proof, and :func:`~sklearn_dptda.privacy.audit_epsilon` needs more runs.
"""

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, clone

from sklearn_dptda.privacy import PrivacyLeakWarning
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.utils._privacy_checks import CHECKS, CheckData, make_check_data
from sklearn_dptda.utils._privacy_checks._check_inputs import tags_of
from sklearn_dptda.utils.discovery import all_estimators

if TYPE_CHECKING:
    from pytest import MarkDecorator

__all__ = [
    "check_privacy",
    "make_instance",
    "parametrize_with_privacy_checks",
    "privacy_checks",
]

# Parameters for the inputs of the checks, which are in the unit box.
_PUBLIC = {"bounds": (0.0, 1.0), "sensitivity": 0.1, "upper": 1.0, "delta": 1e-6}
# Parameters that make thousands of fits fast without a weaker guarantee.
_SMALL = {
    "n_clusters": 2,
    "n_components": 2,
    "n_iter": 2,
    "max_depth": 3,
    "n_bins": 4,
}


def make_instance(kind: type[BaseEstimator]) -> BaseEstimator:
    """Make an instance of a private estimator with the parameters for the checks.

    Parameters
    ----------
    kind : type
        Class of a private estimator that can be created without arguments.

    Returns
    -------
    estimator
        Instance with ``bounds=(0, 1)``, ``sensitivity=0.1`` and ``upper=1`` if it has
        these parameters, with small numbers of clusters, components and steps, and
        with the parameters that ``_parameters_for_checks`` of the class returns.

    Examples
    --------
    >>> from sklearn_dptda.cluster import DPLloyd
    >>> from sklearn_dptda.utils.estimator_checks import make_instance
    >>> make_instance(DPLloyd).bounds
    (0.0, 1.0)
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
    """List the privacy checks for an estimator.

    Parameters
    ----------
    estimator : estimator
        Private estimator with privacy tags and without an accountant.
    data : CheckData, default=None
        Inputs for the checks. None makes inputs in the unit box that match the
        tags.

    Returns
    -------
    list of (str, callable)
        Names of the checks, and functions without arguments that raise
        AssertionError if the check fails.

    Examples
    --------
    >>> from sklearn_dptda.graph import EdgeFlip
    >>> from sklearn_dptda.utils.estimator_checks import privacy_checks
    >>> checks = dict(privacy_checks(EdgeFlip()))
    >>> checks["check_each_release_is_paid_once"]()
    """
    if not is_private(estimator):
        raise ValueError(
            f"{type(estimator).__name__} has no privacy tags, so that there is nothing to check."
        )
    return [(name, partial(_run, check, estimator, data)) for name, check in CHECKS.items()]


def _run(check: Callable[..., None], estimator: Any, data: CheckData | None) -> None:
    if data is None:
        parameters = estimator.get_params(deep=False)
        data = make_check_data(
            tags_of(estimator), parameters.get("upper"), parameters.get("sensitivity")
        )
    # Some checks use so much noise that estimators warn about it.
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
        Private estimator with privacy tags and without an accountant.
    data : CheckData, default=None
        Inputs for the checks. None makes inputs in the unit box that match the
        tags.

    Returns
    -------
    int
        Number of checks that ran.

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
    """Parametrize a pytest test with the privacy checks, as its argument ``check``.

    Parameters
    ----------
    estimators : list of estimators, default=None
        Estimators to check. None uses all private estimators of this package.

    Returns
    -------
    pytest.MarkDecorator
        Decorator for the test.

    Examples
    --------
    >>> from sklearn_dptda.graph import EdgeFlip
    >>> from sklearn_dptda.utils.estimator_checks import parametrize_with_privacy_checks
    >>> @parametrize_with_privacy_checks([EdgeFlip()])
    ... def test_my_estimators(check):
    ...     check()
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

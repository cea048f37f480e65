"""What estimators, pipelines, cross-validations and searches will pay, before the first payment."""

from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.model_selection._search import BaseSearchCV

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.model_selection._paying_calls import CALLS, PublicShape, paid_by, paid_by_folds
from sklearn_dptda.model_selection._planned_releases import PlannedLoss
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLeakWarning
from sklearn_dptda.privacy._estimator import learners_in
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import warn_caller


@fill_doc
def planned_loss(
    estimator: BaseEstimator,
    X: Any = None,
    y: object = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    return_train_score: bool = False,
    method: Literal["fit", "fit_transform", "transform", "predict", "score"] | None = None,
    accountant: PrivacyAccountant | None = None,
) -> PlannedLoss:
    """Count what a call will pay, without paying, fitting, or looking at values.

    %(plan_parameters)s

    Returns
    -------
    PlannedLoss
        The releases, their number, and their loss together; prints as one
        sentence.

    Raises
    ------
    ValueError
        If a parameter of a private estimator is out of range, or if it cannot
        be told how often an estimator will release: inside of composites other
        than pipelines, unions, column transformers, grid, halving grid and
        randomized searches; under a ``scoring`` that is a function; in a search that
        draws from distributions without a seed.

    Warns
    -----
    PrivacyLeakWarning
        If a step of a pipeline, such as a scaler before the private one, will
        learn from the records without privacy.

    See Also
    --------
    check_budget : Refuse what a budget does not cover.
    pipeline_guarantee : What a fitted pipeline promises.

    Notes
    -----
    .. rubric:: Privacy

    The plan is made of parameters and shapes alone, so that it may be shown.
    It is what the accountant will count if all goes well. Where something
    fails in between, fewer releases are made. ``at_most`` is set where the
    plan is a bound: where candidates of a search differ in what they cost, the
    dearest is counted for the last fit, and for later rounds of halving, which
    end sooner with few rows; a cache (``Pipeline(memory=...)``) may answer for
    steps with a seed. A search inside of folds counts its own folds
    as if a fold had all rows, which only leave-one-out depends on. Functions of
    yours that release inside are not seen.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_dptda.cluster import DPMoG
    >>> from sklearn_dptda.model_selection import planned_loss
    >>> search = GridSearchCV(DPMoG(bounds=(0, 1)), {"n_components": [2, 3, 4]})
    >>> print(planned_loss(search))
    16 releases: 16 of DPMoG (epsilon=1, delta=1e-06 each); together epsilon=16, ...
    """
    shape = PublicShape.of(X)
    if method is not None and method not in CALLS:
        raise ValueError(f"method must be None or one of {sorted(CALLS)}; got {quoted(method)}.")
    if cv is not None:
        if method is not None:
            raise ValueError("method must be None where cv is given, which fits and scores.")
        plan = paid_by_folds(estimator, cv, scoring, return_train_score, shape)
    else:
        # Whoever has no transform pays as much for fit_transform as for fit.
        usual = "fit" if isinstance(estimator, BaseSearchCV) else "fit_transform"
        plan = paid_by(estimator, method or usual, shape)
    learners, _ = learners_in([estimator])
    if learners and plan.releases:
        warn_caller(
            f"{', '.join(learners)} will learn from the records without privacy, which no loss of "
            "this plan covers: put public constants in its place, or fit it to public data.",
            PrivacyLeakWarning,
        )
    return plan.paid_from(accountant)


@fill_doc
def check_budget(
    estimator: BaseEstimator,
    X: Any = None,
    y: object = None,
    *,
    cv: Any = None,
    scoring: Any = None,
    return_train_score: bool = False,
    method: Literal["fit", "fit_transform", "transform", "predict", "score"] | None = None,
    accountant: PrivacyAccountant | None = None,
) -> PlannedLoss:
    """Refuse a call that its budget does not cover, before anything is spent.

    A search over its budget would otherwise be refused in the middle, when
    what came before is paid for and lost.

    %(plan_parameters)s

    Returns
    -------
    PlannedLoss
        What the call will pay.

    Raises
    ------
    PrivacyBudgetExceeded
        If a budget does not cover what it has to pay. Nothing is spent.
    ValueError
        As :func:`planned_loss`; if no accountant keeps count, or if losses
        of different adjacency would meet in one ledger.

    Notes
    -----
    .. rubric:: Privacy

    Nothing is released. It is no reservation: whoever else spends from the
    ledger in between spends it.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_dptda import PrivacyAccountant
    >>> from sklearn_dptda.cluster import DPMoG
    >>> from sklearn_dptda.model_selection import check_budget
    >>> search = GridSearchCV(DPMoG(bounds=(0, 1)), {"n_components": [2, 3, 4]})
    >>> check_budget(search, accountant=PrivacyAccountant(10.0, 1e-3))
    Traceback (most recent call last):
    ...
    sklearn_dptda.privacy._warnings.PrivacyBudgetExceeded: asked for epsilon=16, ...
    """
    plan = planned_loss(
        estimator,
        X,
        y,
        cv=cv,
        scoring=scoring,
        return_train_score=return_train_score,
        method=method,
        accountant=accountant,
    )
    plan.check()
    return plan

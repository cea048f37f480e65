"""The privacy loss of estimators, pipelines, cross-validations and searches before they run.

For each kind of composite estimator, this module knows how often it calls which methods of its
parts. An unknown kind that contains private estimators is refused, because its number of
releases is unknown.
"""

import copy
import math
import warnings
from dataclasses import replace
from functools import singledispatch
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.metrics import check_scoring
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline

from sklearn_dptda.filtration._estimator import BaseFiltration
from sklearn_dptda.filtration._filtration import POINT
from sklearn_dptda.model_selection._planned_releases import (
    PlannedLoss,
    PlannedRelease,
    together,
    worst,
)
from sklearn_dptda.model_selection._release_once import paid_by, same_copies, searches_accountants
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._learning_steps import learners_in
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import warn_caller

# The methods of a single step that each call uses. For a score, a step that releases in
# ``transform`` transforms.
_METHODS = {
    "fit": ("fit",),
    "fit_transform": ("fit", "transform"),
    "transform": ("transform",),
    "score": ("transform",),
    "predict": (),
}


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
    rehearse: Any = None,
) -> PlannedLoss:
    """Compute the privacy loss of a call in advance.

    Nothing is released or spent. Nothing is fitted either, and the values of ``X`` are
    not used, unless you ask for a rehearsal.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline, union or search that contains private
        estimators.
    X : array-like, list of clouds or graph, default=None
        Data of the call to plan. Only the shape is used, and only if the cost
        depends on the number of rows or columns.
    y : Ignored
        Not used, present for API consistency.
    cv : int, cross-validation generator or list of splits, default=None
        If given, plan a call of :func:`~sklearn.model_selection.cross_validate`
        with these splits.
    scoring : str, callable, list, tuple or dict, default=None
        Scores of the cross-validation, in the forms that
        :func:`~sklearn.model_selection.cross_validate` takes. Used with ``cv``.
    return_train_score : bool, default=False
        Whether the cross-validation also computes scores on the training rows.
        Used with ``cv``.
    method : {"fit", "fit_transform", "transform", "predict", "score"}, default=None
        The method to plan. ``"predict"`` stands for any method that predicts.
        None plans ``"fit"`` for a search and ``"fit_transform"`` for other
        estimators, which costs the same as ``"fit"`` if there is no ``transform``.
    accountant : PrivacyAccountant, default=None
        Privacy budget of the estimators without an accountant of their own. None
        uses the accountant of the surrounding ``with`` block.
    rehearse : array-like, list of clouds, or pair (X, y), default=None
        Made-up or public data on which a clone of the estimator is fitted, to count the
        releases of composites whose number of fits is unknown otherwise, such as
        ``BaggingClassifier`` and halving searches. It needs the columns, classes and, if
        the number of fits depends on it, the size of the data of the call. Not with ``cv``.

    Returns
    -------
    PlannedLoss
        It prints as a short text.

    Raises
    ------
    ValueError
        If a parameter of a private estimator is out of range, or if the number of
        releases is unknown. It is unknown for private estimators inside of
        composites other than pipelines, unions, column transformers, grid and
        randomized searches, unless you pass ``rehearse``; if ``scoring`` is
        a function; and in a search that draws from distributions without a seed.

    Warns
    -----
    PrivacyLeakWarning
        If a step of a pipeline, such as a scaler before the private step, will
        learn from the records without privacy.

    See Also
    --------
    PlannedLoss.check : Check whether a budget covers the planned loss.
    pipeline_guarantee : Guarantee of a fitted pipeline.

    Notes
    -----
    .. rubric:: Privacy

    The plan depends only on parameters and shapes, so you can publish it. A call that
    fails makes fewer releases than planned.

    ``at_most`` is True if the plan is an upper bound. If the candidates of a search
    differ in their cost, the most expensive candidate is counted for the last fit,
    and a cache (``Pipeline(memory=...)``) may answer for steps with a seed. A search inside of
    folds counts its own folds as if each fold had all rows. The plan does not see
    releases inside of your own functions. A rehearsal sees them, but it shows one
    course of a call: a search over ``epsilon`` may choose a more expensive candidate
    for other data.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_dptda.cluster import DPMoG
    >>> from sklearn_dptda.model_selection import planned_loss
    >>> search = GridSearchCV(DPMoG(bounds=(0, 1)), {"n_components": [2, 3, 4]})
    >>> print(planned_loss(search))
    16 releases: 16 of DPMoG (epsilon=1, delta=1e-06 each); together epsilon=16, ...
    """
    shape = _PublicShape.of(X)
    if method is not None and method not in _METHODS:
        raise ValueError(f"method must be None or one of {sorted(_METHODS)}; got {quoted(method)}.")
    with same_copies(estimator):
        if rehearse is not None:
            if cv is not None or method not in (None, "fit", "fit_transform"):
                raise ValueError(
                    "rehearse plans one fit: leave cv at None, and method at None, 'fit' or "
                    "'fit_transform'."
                )
            plan = _rehearsed(estimator, method or "fit", rehearse)
        elif cv is not None:
            if method is not None:
                raise ValueError(
                    "method must be None if cv is given, because cross-validation fits and scores."
                )
            plan = _paid_by_folds(
                estimator, shape, cv=cv, scoring=scoring, return_train_score=return_train_score
            )
        else:
            # An estimator without transform pays as much for fit_transform as for fit.
            usual = "fit" if isinstance(estimator, BaseSearchCV) else "fit_transform"
            plan = _paid_by(estimator, method or usual, shape)
    learners, _ = learners_in([estimator])
    if learners and plan.releases:
        warn_caller(
            f"{', '.join(learners)} will learn from the records without privacy. The planned loss "
            "does not cover this. Replace the step by public constants, or fit it to public data.",
            PrivacyLeakWarning,
        )
    return replace(plan, accountant=accountant)


def _rehearsed(estimator, method, data):
    """Return the loss of a call on made-up data, which pays to accountants of its own."""
    if searches_accountants(estimator):
        raise ValueError(
            "The candidates of a search have accountants, which a rehearsal would charge. Search "
            "over other parameters."
        )
    payers: list[tuple[Any, PrivacyAccountant]] = []

    def counts(payer):
        payers.append((payer, PrivacyAccountant(math.inf)))
        return payers[-1][1]

    rehearsal = paid_by(clone(estimator), estimator, counts)
    with warnings.catch_warnings(action="ignore"):
        getattr(rehearsal, method)(*(data if isinstance(data, tuple) else (data,)))
    plan = together(
        PlannedLoss((PlannedRelease(spend.estimator, _promised(spend), accountant=payer),))
        for payer, budget in payers
        for spend in budget.spends()
    )
    return replace(plan, rehearsed=True)


def _promised(spend):
    """Return the guarantee of a release that a ledger has counted."""
    return PrivacyGuarantee(
        spend.epsilon,
        spend.delta,
        spend.adjacency,
        spend.unit,
        "mechanism of a rehearsal",
        spend.what,
        seeded=False,
        rho=spend.rho,
    )


class _PublicShape(NamedTuple):
    """The properties of ``X`` that a plan uses. None of them depends on its values."""

    n_samples: int | None = None
    n_features: int | None = None
    # The privacy unit of the filtrations, if filtrations were computed already.
    unit: str | None = None

    @classmethod
    def of(cls, X):
        """Shape of a table or a stack of clouds, or of a list of rows or clouds."""
        if isinstance(X, list | tuple) and len(X):
            each = X[0]
            if isinstance(each, list | tuple) and hasattr(next(iter(each), None), "shape"):
                # A cloud may be a list with an array for each person.
                each = each[0]
            first: tuple[int, ...] = each.shape if hasattr(each, "shape") else np.shape(each)
            # Filtrations of clouds of people know their privacy unit.
            return cls(len(X), first[-1] if first else None, getattr(X[0], "unit", None))
        shape: tuple[int, ...] = getattr(X, "shape", ())
        return cls(shape[0] if shape else None, shape[-1] if len(shape) > 1 else None)

    def after(self, step):
        """Return the known properties of the output of a step."""
        if not isinstance(step, BaseFiltration):
            return _PublicShape(self.n_samples, unit=self.unit)
        return _PublicShape(self.n_samples, unit=step._unit(self.n_samples or 1))

    def n_splits(self, cv):
        """Return the number of splits of a cross-validation."""
        if hasattr(cv, "__next__"):
            raise ValueError(
                "cv is an iterator, which can be read only once. Pass a list of splits instead."
            )
        rows = None if self.n_samples is None else np.empty((self.n_samples, 0))
        return check_cv(cv).get_n_splits(rows)


@singledispatch
def _paid_by(estimator, call, shape):
    """Return the plan of a call of an estimator.

    ``fit_transform`` stands for ``fit`` and ``transform``. ``predict`` stands for any method of a
    last step that predicts.
    """
    ahead = getattr(estimator, "_releases_ahead", None)
    if ahead is None:
        return _refuse_hidden(estimator)
    if getattr(ahead, "__func__", None) is PrivateEstimatorMixin._releases_ahead:
        # The default method does not count private estimators inside of this one.
        _refuse_hidden(estimator)
    return together(
        _paid_once(payer, guarantee, shape)
        for method in _METHODS[call]
        for payer, guarantee in ahead(method, shape.n_features)
    )


def _paid_once(payer, guarantee, shape):
    if shape.unit is not None and guarantee.unit == POINT:
        guarantee = replace(guarantee, unit=shape.unit)
    kind = type(payer).__name__
    return PlannedLoss((PlannedRelease(kind, guarantee, accountant=payer.accountant),))


def _refuse_hidden(estimator):
    """Return an empty plan if there is no private estimator inside; refuse others."""
    if _holds_private(_parameters(estimator)):
        raise ValueError(
            f"{type(estimator).__name__} holds private estimators, and the number of their fits is "
            "unknown. Pass rehearse=X, made-up or public data, or plan these estimators one by one."
        )
    return PlannedLoss()


def _holds_private(value):
    """Whether a value is or contains a private estimator, or is a method of one."""
    if isinstance(value, dict | list | tuple):
        return any(map(_holds_private, value.values() if isinstance(value, dict) else value))
    owner = getattr(value, "__self__", value)
    return hasattr(owner, "_guarantee_ahead") or _holds_private(_parameters(owner))


def _parameters(estimator):
    known = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    return estimator.get_params(deep=False) if known else {}


@_paid_by.register
def _(pipeline: Pipeline, call, shape):
    # Before the last step is fitted, all steps before it transform.
    before = {"fit": "fit_transform", "fit_transform": "fit_transform"}.get(call, "transform")
    plans = []
    for place, (_, step) in enumerate(pipeline.steps):
        if step not in (None, "passthrough"):
            last = place == len(pipeline.steps) - 1
            plans.append(_paid_by(step, call if last else before, shape))
            shape = shape.after(step)
    plan = together(plans)
    # A cache may return an earlier result of a step with a seed.
    return plan if pipeline.memory is None else plan.as_bound()


@_paid_by.register
def _(union: FeatureUnion, call, shape):
    return _paid_by_parts([step for _, step in union.transformer_list], call, shape)


@_paid_by.register
def _(columns: ColumnTransformer, call, shape):
    parts = [step for _, step, _ in columns.transformers] + [columns.remainder]
    # A column transformer fits by fit_transform.
    call = {"fit": "fit_transform"}.get(call, call)
    plan = _paid_by_parts(parts, call, _PublicShape(shape.n_samples))
    # A transformer without columns is not called.
    return plan.as_bound()


def _paid_by_parts(parts, call, shape):
    steps = [step for step in parts if step is not None and not isinstance(step, str)]
    return together(_paid_by(step, call, shape) for step in steps)


@_paid_by.register
def _(search: BaseSearchCV, call, shape):
    if not isinstance(search, GridSearchCV | RandomizedSearchCV):
        return _refuse_hidden(search)
    candidates, exactly = _candidates(search)
    plans = []
    if call in ("fit", "fit_transform"):
        options = {name: getattr(search, name) for name in ("cv", "scoring", "return_train_score")}
        folds = [_paid_by_folds(each, shape, **options) for each in candidates]
        plans.append(together(folds) if exactly else worst(folds) * search.n_iter)
        if search.refit is not False:
            plans.append(worst(_paid_by(each, "fit", shape) for each in candidates))
    after = {"fit": None, "fit_transform": "transform"}.get(call, call)
    if after is not None:
        times = 1 if after != "score" else _predictions(search.estimator, search.scoring, one=True)
        plans.append(worst(_scored(each, after, times, shape) for each in candidates))
    return together(plans)


def _candidates(search):
    """Estimators that a search tries, and whether it tries all of them or only some."""
    if isinstance(search, RandomizedSearchCV):
        settings, exactly = _sampled(search)
    else:
        settings, exactly = ParameterGrid(search.param_grid), True
    base = clone(search.estimator)
    return [clone(base).set_params(**clone(each, safe=False)) for each in settings], exactly


def _sampled(search):
    distributions = search.param_distributions
    if search.random_state is not None:
        state = copy.deepcopy(search.random_state)
        return list(ParameterSampler(distributions, search.n_iter, random_state=state)), True
    kinds = [distributions] if isinstance(distributions, dict) else list(distributions)
    if any(hasattr(values, "rvs") for kind in kinds for values in kind.values()):
        raise ValueError(
            "random_state of the search must be given, because its candidates are drawn from "
            "distributions. Otherwise, use lists of values for all parameters."
        )
    grid = list(ParameterGrid(kinds))
    return grid, search.n_iter >= len(grid)


def _paid_by_folds(estimator, shape, *, cv, scoring, return_train_score):
    """Return the plan of one fit for each split of a cross-validation, and of its scores."""
    call = "score" if scoring is None else "predict"
    # The rows of a fold have as many columns as all rows.
    once = _paid_by(estimator, "fit", shape)
    times = (1 + bool(return_train_score)) * _predictions(estimator, scoring)
    scores = _scored(estimator, call, times, shape)
    return (once + scores) * shape.n_splits(cv)


def _scored(estimator, call, times, shape):
    plan = _paid_by(estimator, call, shape)
    if plan.releases and not np.isfinite(times):
        raise ValueError(
            "scoring is a function, so that the methods which it calls are unknown. Pass the name "
            "of a score, or the result of make_scorer."
        )
    return plan * int(times) if plan.releases else plan


def _predictions(estimator, scoring, one=False):
    """Number of predictions that a score needs, ``inf`` if unknown; at most one if ``one``."""
    if scoring is None:
        return 1
    scorer = check_scoring(estimator, scoring)
    scorers = getattr(scorer, "_scorers", {"score": scorer}).values()
    methods = [getattr(each, "_response_method", None) for each in scorers]
    if None in methods:
        return np.inf
    # Scores that use the same predictions share them.
    return 1 if one else len({_first_known(estimator, method) for method in methods})


def _first_known(estimator, methods):
    names = [methods] if isinstance(methods, str) else list(methods)
    return next((name for name in names if hasattr(estimator, name)), names[0])

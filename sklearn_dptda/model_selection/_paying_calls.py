"""Which calls of estimators, pipelines and searches release, and so pay: counted, not made.

Each kind of composite says how often it makes which calls of its parts; a private estimator says
what one of its own calls will promise. Whatever holds a private estimator in a way that is not
known here is refused: an unknown number of releases is no plan.
"""

import copy
import math
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
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
from sklearn.model_selection._search_successive_halving import HalvingGridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline

from sklearn_dptda.model_selection._planned_releases import (
    PlannedLoss,
    PlannedRelease,
    together,
    worst,
)
from sklearn_dptda.privacy import PrivateEstimatorMixin

# What each call makes a single step do; ``score`` of what releases in ``transform`` transforms.
_METHODS = {
    "fit": ("fit",),
    "fit_transform": ("fit", "transform"),
    "transform": ("transform",),
    "score": ("transform",),
    "predict": (),
}
CALLS = tuple(_METHODS)


class PublicShape(NamedTuple):
    """What a plan knows of ``X``: nothing of its values."""

    n_samples: int | None = None
    n_features: int | None = None

    @classmethod
    def of(cls, X):
        """Shape of a table or a stack of clouds, or of a list of rows or clouds."""
        if isinstance(X, list | tuple) and len(X):
            first = X[0].shape if hasattr(X[0], "shape") else np.shape(X[0])
            return cls(len(X), first[-1] if first else None)
        shape = getattr(X, "shape", ())
        return cls(shape[0] if shape else None, shape[-1] if len(shape) > 1 else None)

    def n_splits(self, cv):
        """Number of splits of cross-validation."""
        if hasattr(cv, "__next__"):
            raise ValueError("cv is an iterator, which a plan would use up: pass a list of splits.")
        rows = None if self.n_samples is None else np.empty((self.n_samples, 0))
        return check_cv(cv).get_n_splits(rows)


@singledispatch
def paid_by(estimator, call, shape):
    """Plan of what a call of an estimator pays.

    ``fit_transform`` stands for ``fit`` and ``transform``, ``predict`` for any method of a last
    step that predicts.
    """
    ahead = getattr(estimator, "_releases_ahead", None)
    if ahead is None:
        return _refuse_hidden(estimator)
    if getattr(ahead, "__func__", None) is PrivateEstimatorMixin._releases_ahead:
        # It speaks for itself alone.
        _refuse_hidden(estimator)
    return together(
        PlannedLoss((PlannedRelease(type(payer).__name__, guarantee, 1, payer.accountant),))
        for method in _METHODS[call]
        for payer, guarantee in ahead(method, shape.n_features)
    )


def _refuse_hidden(estimator):
    """Nothing is paid by what holds no private estimator; of other composites nobody knows."""
    if _holds_private(_parameters(estimator)):
        raise ValueError(
            f"{type(estimator).__name__} holds private estimators, and it is not known how often "
            "it fits them: plan them one by one."
        )
    return PlannedLoss()


def _holds_private(value):
    """Whether there is a private estimator in lists, parameters of others, or behind a method."""
    if isinstance(value, dict | list | tuple):
        return any(map(_holds_private, value.values() if isinstance(value, dict) else value))
    owner = getattr(value, "__self__", value)
    return hasattr(owner, "_guarantee_ahead") or _holds_private(_parameters(owner))


def _parameters(estimator):
    known = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    return estimator.get_params(deep=False) if known else {}


@paid_by.register
def _(pipeline: Pipeline, call, shape):
    # Steps before the last: a fit transforms on the way.
    before = {"fit": "fit_transform", "fit_transform": "fit_transform"}.get(call, "transform")
    plans = []
    for place, (_, step) in enumerate(pipeline.steps):
        if step not in (None, "passthrough"):
            last = place == len(pipeline.steps) - 1
            plans.append(paid_by(step, call if last else before, shape))
            shape = PublicShape(shape.n_samples)
    plan = together(plans)
    # A cache may answer for a step with a seed.
    return plan if pipeline.memory is None else plan.as_bound()


@paid_by.register
def _(union: FeatureUnion, call, shape):
    return _of_parts([step for _, step in union.transformer_list], call, shape)


@paid_by.register
def _(columns: ColumnTransformer, call, shape):
    parts = [step for _, step, _ in columns.transformers] + [columns.remainder]
    # Its fit is a fit_transform.
    call = {"fit": "fit_transform"}.get(call, call)
    plan = _of_parts(parts, call, PublicShape(shape.n_samples))
    # Who is given no columns is not called.
    return plan.as_bound()


def _of_parts(parts, call, shape):
    steps = [step for step in parts if step is not None and not isinstance(step, str)]
    return together(paid_by(step, call, shape) for step in steps)


@paid_by.register
def _(search: BaseSearchCV, call, shape):
    if not isinstance(search, GridSearchCV | RandomizedSearchCV | HalvingGridSearchCV):
        return _refuse_hidden(search)
    others = getattr(search, "resource", "n_samples") != "n_samples"
    if others and _holds_private(search.estimator):
        raise ValueError(
            f"resource={search.resource!r}: what the rounds of a halving search change may be "
            "what they cost, so that this cannot be planned."
        )
    candidates, exactly = _candidates(search)
    plans = []
    if call in ("fit", "fit_transform"):
        folds = [_paid_by_folds(each, search, shape) for each in candidates]
        plans.append(together(folds) if exactly else worst(folds) * search.n_iter)
        if isinstance(search, HalvingGridSearchCV):
            later = worst(folds) * _later_candidates(len(folds), search.factor)
            plans.append(later.as_bound())
        if search.refit is not False:
            plans.append(worst(paid_by(each, "fit", shape) for each in candidates))
    after = {"fit": None, "fit_transform": "transform"}.get(call, call)
    if after is not None:
        times = 1 if after != "score" else _predictions(search.estimator, search.scoring, one=True)
        plans.append(worst(_scored(each, after, times, shape) for each in candidates))
    return together(plans)


def _candidates(search):
    """Estimators that a search tries, and whether all of them or some."""
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
            "random_state of the search must be given, or lists for all parameters: its "
            "candidates are not known before it draws them."
        )
    grid = list(ParameterGrid(kinds))
    return grid, search.n_iter >= len(grid)


def _later_candidates(number, factor):
    """Candidates of all rounds of halving but the first; few rows have fewer rounds."""
    later = 0
    for _ in range(math.floor(math.log(number, factor))):
        number = math.ceil(number / factor)
        later += number
    return later


def _paid_by_folds(estimator, search, shape):
    return paid_by_folds(estimator, search.cv, search.scoring, search.return_train_score, shape)


def paid_by_folds(estimator, cv, scoring, return_train_score, shape):
    """Plan of a fit for each split of cross-validation, and of its scores."""
    call = "score" if scoring is None else "predict"
    # A fit on rows of a fold sees as many columns.
    once = paid_by(estimator, "fit", shape)
    times = (1 + bool(return_train_score)) * _predictions(estimator, scoring)
    scores = _scored(estimator, call, times, shape)
    return (once + scores) * shape.n_splits(cv)


def _scored(estimator, call, times, shape):
    plan = paid_by(estimator, call, shape)
    if plan.releases and not np.isfinite(times):
        raise ValueError(
            "scoring is a function, and what it calls is not known: pass the name of a score, or "
            "the result of make_scorer."
        )
    return plan * int(times) if plan.releases else plan


def _predictions(estimator, scoring, one=False):
    """How often a score lets an estimator predict, ``inf`` for unknown; ``one`` of several."""
    if scoring is None:
        return 1
    scorer = check_scoring(estimator, scoring)
    scorers = getattr(scorer, "_scorers", {"score": scorer}).values()
    methods = [getattr(each, "_response_method", None) for each in scorers]
    if None in methods:
        return np.inf
    # Scores that need the same predictions share them.
    return 1 if one else len({_first_known(estimator, method) for method in methods})


def _first_known(estimator, methods):
    names = [methods] if isinstance(methods, str) else list(methods)
    return next((name for name in names if hasattr(estimator, name)), names[0])

"""The runs of a private search: what all of them cost together, and one run.

Proof: doc/theory/private_search.md, "The best of a random number of runs".
"""

import math
import secrets
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration._estimator import BaseFiltration
from sklearn_dptda.model_selection._dry_run import _paid_by, _PublicShape
from sklearn_dptda.model_selection._pipeline_guarantee import OF_LABELS
from sklearn_dptda.model_selection._planned_releases import PlannedLoss
from sklearn_dptda.model_selection._release_once import (
    ledger_of,
    paid_by,
    parameters_named,
    same_copies,
)
from sklearn_dptda.model_selection._row_scores import RowScore, ScoreNoise, row_score
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
)
from sklearn_dptda.privacy._accountant import NamedAccountant
from sklearn_dptda.privacy._best_of_runs import NumberOfRuns, draw_below
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.privacy._guarantee import Sums, curve_of, kind_of_unit, sum_of_laws
from sklearn_dptda.privacy._learning_steps import learners_in
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release_key import ReleaseKey
from sklearn_dptda.privacy._risk import Curve, LossLaw

# The accountant of a run refuses a run that is dearer than planned, up to rounding.
_ROUNDING = 1 + 1e-9
# Share of the loss of a run that a private score costs. It decides about accuracy only.
_SCORE_SHARE = 0.1
# Bits of the number that decides between runs with equal scores.
_TIE_BITS = 62
# The scale of all epsilons of the candidates is found up to this share.
_TOLERANCE, _MOST_STEPS = 1e-4, 60


class Run(NamedTuple):
    """Score, tie-breaking number, place in the grid, and fitted model, None after a failure."""

    score: float
    tie: int
    place: int
    model: Any


@dataclass(frozen=True)
class SearchPlan:
    """All that the runs of a search depend on, apart from records: parameters and public numbers.

    ``n_front`` is the number of steps up to the last release in ``transform``, if only steps
    without privacy follow.
    """

    candidates: list[Any]
    settings: list[dict[str, Any]]
    number: NumberOfRuns
    guarantee: PrivacyGuarantee
    # Epsilon and delta of one run of each candidate, without its score.
    budgets: list[tuple[float, float]]
    score: RowScore | None
    noise: ScoreNoise | None
    n_front: int | None
    scoring: Any

    @classmethod
    def of(cls, search: Any, shape: _PublicShape) -> "SearchPlan":
        """Return the plan of a search, or raise an error that its parameters cause."""
        if search.estimator is None or search.param_grid is None:
            raise ValueError("estimator and param_grid must be given.")
        payer = ledger_of(search._payer())
        _check_parameters(search.estimator, payer)
        with same_copies(search.estimator):
            settings, templates = candidates_of(search)
        for each in templates:
            _check_parameters(each, payer)
        if search.epsilon is None:
            return cls._of(search, settings, templates, shape)
        return cls._of_epsilon(search, settings, templates, shape)

    @classmethod
    def _of(cls, search: Any, settings: list[Any], candidates: list[Any], shape: Any) -> Self:
        for candidate in candidates:
            _check_places(candidate)
        n_front = _common([_n_front(each) for each in candidates], "release in the same step")
        score = None
        if n_front is None:
            # The column of ids is none of those that are scored.
            ids = set(parameters_named(candidates[0], "groups").values()) - {None}
            columns = None if shape.n_features is None else shape.n_features - len(ids)
            score, *_ = [row_score(search.scoring, each, columns) for each in candidates]
        elif search.scoring is not None:
            check_scoring(candidates[0], search.scoring)
        parts = [each if n_front is None else each[:n_front] for each in candidates]
        call = "fit" if n_front is None else "fit_transform"
        runs = [_paid_by(part, call, shape) for part in parts]
        first = _common_guarantee(runs)
        sums = [Sums.of((each.guarantee.charge, each.count) for each in r.releases) for r in runs]
        # A bound of several plans is one of their sums, but not of their laws.
        laws = [
            None if r.at_most else sum_of_laws([(e.guarantee, e.count) for e in r.releases])
            for r in runs
        ]
        budgets = [(float(each.epsilon), float(each.delta)) for each in sums]
        budget, noise = _largest(sums), None
        if score is not None:
            noise = _score_noise(_SCORE_SHARE, first, laws, budget)
            extra = Sums.of([(noise.charge, 1)])
            sums = [each.plus(extra) for each in sums]
            laws = [None if law is None else law + noise.loss_law for law in laws]
        pairs = dict.fromkeys(zip(sums, laws, strict=True))
        curves = [curve_of(*pair) for pair in pairs]
        number = _number_of_runs(search)
        cost = number.loss(_highest(curves), *_largest(sums), goal=budget[1])
        most, n = len(number.weights), len(candidates)
        learnt = OF_LABELS if n_front is not None and predicts(candidates[0][-1]) else ""
        guarantee = replace(
            first,
            epsilon=cost[0],
            delta=cost[1],
            rho=None,
            law=None,
            # Private steps of the best run share this release.
            release_id=secrets.token_hex(16),
            mechanism=f"best of a random number of runs, each by the {first.mechanism}",
            released=f"the best of 1 to {most} runs over {n} candidates: {first.released}{learnt}",
            seeded=search.random_state is not None,
            public_parameters=not any(learners_in([each])[0] for each in candidates),
            exact=all(each.guarantee.exact for r in runs for each in r.releases),
        )
        return cls(
            candidates,
            settings,
            number,
            guarantee,
            budgets,
            score,
            noise,
            n_front,
            search.scoring,
        )

    @classmethod
    def _of_epsilon(
        cls, search: Any, settings: list[Any], templates: list[Any], shape: Any
    ) -> "SearchPlan":
        """Scale the epsilons of all candidates by one factor, so that the search costs epsilon."""
        goal = float(search.epsilon)
        low, high, scale = 0.0, math.inf, math.inf if math.isinf(goal) else 1.0
        best: SearchPlan | None = None
        for _ in range(_MOST_STEPS):
            if best is not None and best.guarantee.epsilon >= goal * (1 - _TOLERANCE):
                break
            try:
                plan = cls._of(search, settings, [_scaled(t, scale) for t in templates], shape)
            except ValueError as error:
                if scale in (1.0, math.inf):
                    raise
                raise ValueError(
                    f"epsilon={quoted(search.epsilon)} is too small or too large for this search."
                ) from error
            cost = plan.guarantee.epsilon
            if math.isinf(cost) and math.isfinite(goal):
                raise ValueError(
                    "epsilon of a candidate is inf, which cannot be scaled. Give candidates finite "
                    "epsilons, or leave epsilon of the search at None."
                )
            if cost <= goal:
                low, best = scale, plan
            else:
                high = scale
            # The cost rises with the scale, almost linearly.
            linear = scale * goal / cost * (1 - _TOLERANCE / 3)
            scale = linear if low < linear < high else min((low + high) / 2, 2 * linear)
        if best is None:
            raise ValueError(f"epsilon={quoted(search.epsilon)} is too small for this search.")
        return replace(best, guarantee=replace(best.guarantee, epsilon=goal))


def one_run(plan: SearchPlan, data: tuple[Any, ...], seed: Any) -> Run:
    """Draw a candidate, release with it, and score the release.

    A failure is an outcome like others: it has the lowest score, and its message is dropped,
    because it may quote records.
    """
    X, y, rows, ids, splits = data
    source = NoiseSource(part_of(seed, 0))
    place = draw_below(source, len(plan.candidates))
    tie = draw_below(source, 1 << _TIE_BITS)
    model = paying(plan, place, seed)
    try:
        with _without_warnings():
            if plan.n_front is not None:
                released = model[: plan.n_front].fit_transform(X)
                score = fit_behind_release(plan, model, released, y, splits)
            else:
                model.fit(X, y)
                score = _private_score(plan, model, rows, y, ids, source)
    except MemoryError:
        raise
    except Exception:
        return Run(-math.inf, tie, place, None)
    if math.isnan(score):
        return Run(-math.inf, tie, place, None)
    return Run(score, tie, place, model)


def _without_warnings() -> AbstractContextManager[Any]:
    """Drop the warnings of a run, in a worker process as well as here.

    The filters of warnings belong to the process, so that threads must not set them.
    """
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return warnings.catch_warnings(action="ignore")


def fit_behind_release(
    plan: SearchPlan, model: Pipeline, released: Any, y: Any, splits: Any
) -> float:
    """Fit later steps to one release, and return their cross-validation."""
    later = model[plan.n_front :]
    scores = cross_val_score(
        later, released, y, cv=splits, scoring=plan.scoring, error_score="raise"
    )
    later.fit(released, y)
    return float(np.mean(scores))


def _private_score(
    plan: SearchPlan, model: Any, rows: Any, y: Any, ids: Any, source: NoiseSource
) -> float:
    """Return the sum of scores with noise, in units of half the range of the score of a row."""
    assert plan.score is not None and plan.noise is not None
    return plan.score.in_units(plan.noise.add(plan.score.total(model, rows, y, ids), source))


def paying(plan: SearchPlan, place: int, seed: Any) -> Any:
    """Return a candidate that pays to an accountant of its own, and draws from a seed."""
    model = clone(plan.candidates[place])
    epsilon, delta = plan.budgets[place]
    meter = PrivacyAccountant(epsilon * _ROUNDING, min(delta * _ROUNDING, 1.0))
    if isinstance(seed, ReleaseKey):
        # Without a name, the records are always the same.
        meter = NamedAccountant(meter, seed.child("run"), None, b"")
    model = paid_by(model, model, lambda payer: meter)
    names = [n for n, value in parameters_named(model, "random_state").items() if value is None]
    if not isinstance(seed, int):
        # Private steps have the system's entropy, or keys. Others must not draw from the state of
        # NumPy, which would count the runs.
        names = [n for n in names if not is_private(_owner(model, n))]
    seeds = spawn_seeds(draw_below(NoiseSource(part_of(seed, 1)), 1 << 32), len(names))
    return model.set_params(**dict(zip(names, seeds, strict=True)))


def part_of(seed: Any, place: int) -> Any:
    """Return an independent seed or key for a part of the work; None for the system's entropy."""
    if seed is None:
        return None
    if isinstance(seed, ReleaseKey):
        return seed.child(place)
    return int(np.random.SeedSequence([int(seed), place]).generate_state(1)[0])


def steps_of(estimator: Any) -> Iterator[Any]:
    """Yield an estimator and all that it contains."""
    yield estimator
    for value in estimator.get_params(deep=True).values():
        if isinstance(value, BaseEstimator):
            yield value


def leaves_of(step: Any) -> Iterator[Any]:
    """Yield the steps of pipelines and unions, which fit the steps themselves, and no copies."""
    if isinstance(step, Pipeline | FeatureUnion):
        for _, part in step.steps if isinstance(step, Pipeline) else step.transformer_list:
            yield from leaves_of(part)
    elif isinstance(step, BaseEstimator):
        yield step


def predicts(step: Any) -> bool:
    return is_classifier(step) or is_regressor(step)


def _is_search(step: Any) -> bool:
    return bool({"param_grid", "param_distributions"} & step.get_params(deep=False).keys())


def _owner(estimator: Any, name: str) -> Any:
    """Return the step to which a parameter belongs."""
    return estimator.get_params().get(name.rpartition("__")[0], estimator)


def candidates_of(search: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the settings of the grid, and unfitted estimators with them."""
    grid = search.param_grid
    kinds = [grid] if isinstance(grid, Mapping) else list(grid)
    if any(hasattr(values, "rvs") for kind in kinds for values in kind.values()):
        raise ValueError(
            "param_grid must have lists of values. Draw some values of a distribution first, "
            "without looking at the records."
        )
    settings = list(ParameterGrid(kinds))
    if not settings:
        raise ValueError("param_grid has no candidates.")
    template = clone(search.estimator)
    candidates = [clone(template).set_params(**clone(each, safe=False)) for each in settings]
    for candidate in candidates:
        # Messages about progress would name the runs.
        candidate.set_params(**dict.fromkeys(parameters_named(candidate, "verbose"), False))
        for step in steps_of(candidate):
            if isinstance(step, FeatureUnion):
                # The steps of a run share the accountant of the run, so they share a process.
                step.set_params(n_jobs=1)
        for name, value in parameters_named(candidate, "random_state").items():
            if value is not None and is_private(_owner(candidate, name)):
                raise ValueError(
                    f"{name} must be None, because equal noise in all runs is not private. Set "
                    "random_state of the search, for tests and study only."
                )
        for step in steps_of(candidate):
            # Other errors would be those of a run, and cost as much.
            if hasattr(step, "_parameter_constraints"):
                step._validate_params()
    return settings, candidates


def _check_parameters(candidate: Any, payer: Any) -> None:
    """Refuse candidates that search, pay or remember by themselves."""
    if any(map(_is_search, steps_of(candidate))):
        raise ValueError("A search cannot contain other searches.")
    # In a block with a default accountant, pickles of steps have it.
    given = parameters_named(candidate, "accountant").values()
    if any(each is not None and ledger_of(each) != payer for each in given):
        raise ValueError(
            "accountant of a candidate must be None. Give the accountant to the search itself."
        )
    if any(isinstance(s, Pipeline) and s.memory is not None for s in steps_of(candidate)):
        raise ValueError("memory of a pipeline must be None, because it would keep all runs.")


def _check_places(candidate: Any) -> None:
    """Refuse private steps whose copies would pay for later releases to the accountant of a run."""
    for step in leaves_of(candidate):
        if _contains_private(step) and not (is_private(step) or isinstance(step, BaseFiltration)):
            raise ValueError(
                f"A search cannot hold private steps inside of {type(step).__name__}. Make them "
                "steps of a pipeline or of a union."
            )
    for union in steps_of(candidate):
        if isinstance(union, FeatureUnion) and _contains_private(union):
            parts = [part for _, part in union.transformer_list if part != "drop"]
            if not all("transform" in _releasing_methods(part) for part in parts):
                raise ValueError(
                    "Each part of a union must release in transform, because the others would "
                    "pass records on without privacy."
                )
    for step in _of_records_after_payment(candidate):
        raise ValueError(
            f"{type(step).__name__} stands after a private step that releases in fit, where it "
            "receives records. If it failed for some of them, or made values too large for the "
            "next step, the result of the search would tell. Make it the first step, where its "
            "refusals are seen before anything is paid."
        )
    for step in _random_before_payment(candidate):
        raise ValueError(
            f"{type(step).__name__} is random and comes before a private step, so that each run "
            "would see other rows than those that were checked. Set its random_state."
        )
    if _n_front(candidate) is None and "transform" in _releasing_methods(candidate):
        raise ValueError(
            "After a step that releases in transform, all steps must be without privacy, and there "
            "must be one, so that a score is not another release."
        )


def _of_records_after_payment(candidate: Any) -> Iterator[Any]:
    """Yield steps without privacy that receive records after a payment.

    Of steps that learn from records, a warning says that no guarantee covers them.
    """
    paid = False
    for step in leaves_of(candidate):
        if is_private(step):
            if get_tags(step).privacy.releases == "transform":
                return
            paid = True
        elif paid and not learners_in([step])[0]:
            yield step


def _random_before_payment(candidate: Any) -> Iterator[Any]:
    """Yield steps without privacy and without a seed before a private one."""
    waiting: list[Any] = []
    for step in leaves_of(candidate):
        if is_private(step):
            yield from waiting
        elif getattr(step, "random_state", 0) is None:
            waiting.append(step)


def _releasing_methods(step: Any) -> set[str]:
    return {get_tags(leaf).privacy.releases for leaf in leaves_of(step) if is_private(leaf)}


def _number_of_runs(search: Any) -> NumberOfRuns:
    if isinstance(search.law, str):
        number: NumberOfRuns = getattr(NumberOfRuns, search.law)(int(search.max_runs))
        return number
    weights = np.asarray(search.law)
    usable = weights.ndim == 1 and weights.dtype.kind in "iu" and len(weights) > 0
    if not usable or (weights < 0).any() or weights[0] == 0 or len(weights) > search.max_runs:
        raise ValueError(
            f"law={quoted(search.law)} must be 'reciprocal', 'geometric', or whole numbers, the "
            "weights of 1, 2, ... runs, at most max_runs of them, of which the first is positive."
        )
    return NumberOfRuns(tuple(weights.tolist()))


def _n_front(estimator: Any) -> int | None:
    """Return the number of steps up to the last release in ``transform``, or None.

    None means that a score must be private: there is no such step, or a private step follows.
    """
    if not isinstance(estimator, Pipeline):
        return None
    private = [i for i, (_, step) in enumerate(estimator.steps) if _contains_private(step)]
    last = private[-1] if private else -1
    if last < 0 or last == len(estimator.steps) - 1:
        return None
    return last + 1 if _releasing_methods(estimator.steps[last][1]) == {"transform"} else None


def _contains_private(step: Any) -> bool:
    return isinstance(step, BaseEstimator) and any(map(is_private, steps_of(step)))


def _common(values: list[Any], what: str) -> Any:
    if any(value != values[0] for value in values):
        raise ValueError(f"All candidates of a search must {what}.")
    return values[0]


def _common_guarantee(runs: list[PlannedLoss]) -> PrivacyGuarantee:
    """Return the guarantee of a release; ValueError if the neighbours of releases differ."""
    if not all(each.releases for each in runs):
        raise ValueError("All candidates of a search must have a private step.")
    guarantees = [each.guarantee for r in runs for each in r.releases]
    if any(type(each) is not PrivacyGuarantee for each in guarantees):
        raise ValueError("Candidates under metric privacy cannot be searched.")
    _common([each.adjacency for each in guarantees], "have the same adjacency")
    _common([kind_of_unit(each.unit) for each in guarantees], "protect the same unit")
    _common([{each.guarantee.unit for each in r.releases} for r in runs], "protect the same unit")
    return guarantees[-1]


def _score_noise(
    share: float,
    first: PrivacyGuarantee,
    laws: list[LossLaw | None],
    budget: tuple[float, float],
) -> ScoreNoise:
    """Return the noise of the score: Gaussian if all candidates with a delta are zCDP."""
    share = share / (1 - share)
    rhos = [math.inf if law is None else law.rho for law in laws]
    if budget[1] == 0 or math.isinf(max(rhos)):
        return ScoreNoise("pure", share * budget[0], first.adjacency)
    return ScoreNoise("gaussian", math.sqrt(2 * share * max(rhos)), first.adjacency, budget[1])


def _largest(sums: list[Sums]) -> tuple[float, float]:
    """Return the largest epsilon and the largest delta of several releases."""
    return float(max(s.epsilon for s in sums)), float(max(s.delta for s in sums))


def _highest(curves: list[Curve]) -> Curve:
    def curve(losses: FloatArray) -> FloatArray:
        highest: FloatArray = np.max([each(losses) for each in curves], axis=0)
        return highest

    return curve


def _scaled(estimator: Any, scale: float) -> Any:
    """Return a copy whose private steps have this multiple of their epsilon."""
    given = parameters_named(estimator, "epsilon").items()
    scaled = {n: value * scale for n, value in given if is_private(_owner(estimator, n))}
    return clone(estimator).set_params(**scaled)

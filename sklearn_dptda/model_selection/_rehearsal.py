"""What a private search checks before its payment: refusals of records, and mistakes of the user.

Whether a run fails must not depend on records. All candidates are therefore asked what they refuse,
and rehearsed on made-up input, which shows failures that have nothing to do with records.

Proof: doc/theory/private_search.md, "Refusals".
"""

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sklearn_dptda._typing import Bounds
from sklearn_dptda.filtration._estimator import BaseFiltration
from sklearn_dptda.model_selection._release_once import parameters_named
from sklearn_dptda.model_selection._search_runs import SearchPlan, fit_behind_release, paying
from sklearn_dptda.privacy import NoiseWarning, PrivacyLeakWarning
from sklearn_dptda.privacy._asking import REHEARSING, Accepted, Stop, asking, output_if_unpaid
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.utils._frames import frame_like, open_frame, without_column

# Sizes of made-up tables, of made-up clouds, and of lists of clouds, which are repeated beyond it.
# They do not depend on the records, whose number may be private.
_ROWS, _POINTS, _CLOUDS = 1000, 300, 6
# A run may fail because of its noise. A candidate that fails so many times in a row is refused.
_ATTEMPTS = 3
# Longer lists are data, which are not compared.
_LONG = 10


def check_input(plan: SearchPlan, X: Any, y: Any) -> None:
    """Raise the error of any candidate that refuses its input, before anything is paid.

    A candidate computes as far as its first payment, and all but the first one only as far as
    exact statistics. Warnings that follow from public numbers are issued once.
    """
    said: dict[tuple[type[Warning], str], None] = {}
    for place, candidate in enumerate(plan.candidates):
        model = _front(plan, candidate)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _ask(model, X, y, "statistic" if place and not _computes_between(model) else "payment")
        kinds = PrivacyLeakWarning if place else (PrivacyLeakWarning, NoiseWarning)
        heard = [each for each in caught if issubclass(each.category, kinds)]
        said |= {(each.category, str(each.message)): None for each in heard}
    for category, message in said:
        warn_caller(message, category)


def _front(plan: SearchPlan, candidate: Any) -> Any:
    """Return the steps that receive the records."""
    return candidate if plan.n_front is None else candidate[: plan.n_front]


def _ask(model: Any, X: Any, y: Any, stop: Stop) -> None:
    with asking(stop), suppress(Accepted):
        output_if_unpaid(model, X, y)


def _computes_between(model: Any) -> bool:
    """Whether a step without privacy receives exact statistics, of which it may refuse some."""
    if not isinstance(model, Pipeline):
        return False
    steps = [step for _, step in model.steps if isinstance(step, BaseEstimator)]
    places = [place for place, step in enumerate(steps) if isinstance(step, BaseFiltration)]
    behind = steps[places[0] + 1 :] if places else []
    return not all(isinstance(step, BaseFiltration) or is_private(step) for step in behind)


def rehearse(plan: SearchPlan, X: Any, y: Any, splits: Any) -> None:
    """Raise the error of a candidate that always fails on made-up input, before anything is paid.

    Each value of a parameter is rehearsed in one candidate; all real numbers count as one value.
    """
    for place in _unlike(plan.candidates):
        for attempt in range(_ATTEMPTS):
            # What the function sets ends with the copy of the context.
            arguments = plan, place, attempt, X, y, splits
            error, paid = copy_context().run(_error_of_rehearsal, *arguments)
            if error is not None and not paid:
                # What fails before a payment may be only the made-up input.
                with warnings.catch_warnings(action="ignore"):
                    _ask(_front(plan, plan.candidates[place]), X, y, "payment")
            if error is None or not paid:
                break
        else:
            # Labels of records may be in the message.
            public = y is None or plan.n_front is not None
            settings = (f"{name}={quoted(v)}" for name, v in plan.settings[place].items())
            raise ValueError(
                f"The candidate {', '.join(settings) or 'itself'} fails on made-up input "
                f"({type(error).__name__}{f': {error}' if public else ''}), so that its runs would "
                "be paid for and lost. Correct the step or the score that fails, or leave the "
                "candidate out. Nothing was spent."
            ) from (error if public else None)


def _error_of_rehearsal(
    plan: SearchPlan, place: int, seed: int, X: Any, y: Any, splits: Any
) -> tuple[Exception | None, bool]:
    """Return the error of one run on made-up input, if any, and whether the run had paid."""
    REHEARSING.set(True)
    model = paying(plan, place, seed)
    # Labels of a release, and therefore the number of samples, are public.
    n_rows = _ROWS if plan.n_front is None else len(X)
    made_up = _made_up(X, model, n_rows, np.random.default_rng(seed))
    if made_up is None:
        return None, False
    try:
        with warnings.catch_warnings(action="ignore"):
            if plan.n_front is None:
                _rehearse_rows(plan, model, made_up, y)
            else:
                _rehearse_release(plan, model, made_up, y, splits)
    except Exception as error:
        return error, _has_paid(model)
    return None, True


def _rehearse_rows(plan: SearchPlan, model: Any, rows: Any, y: Any) -> None:
    assert plan.score is not None
    labels = _made_up_labels(y, model, len(rows))
    model.fit(rows, labels)
    if labels is None and y is not None:
        # Which labels the score takes is only known from the records.
        return
    (column,) = {None, *parameters_named(model, "groups").values()} - {None} or {None}
    plan.score.steps(model, without_column(rows, column), labels)


def _rehearse_release(plan: SearchPlan, model: Any, clouds: Any, y: Any, splits: Any) -> None:
    n = len(clouds)
    some = model[: plan.n_front].fit_transform(clouds[:_CLOUDS])
    places = np.arange(n) % min(n, _CLOUDS)
    released = _safe_indexing(some, places) if hasattr(some, "shape") else [some[i] for i in places]
    fit_behind_release(plan, model, released, y, splits)


def _has_paid(model: Any) -> bool:
    meters = parameters_named(model, "accountant").values()
    return any(meter is not None and len(meter) for meter in meters)


def _unlike(candidates: Sequence[Any]) -> Iterator[int]:
    """Yield the places of candidates that have a value which those before them do not have."""
    seen: set[tuple[str, Any]] = set()
    for place, candidate in enumerate(candidates):
        kinds = {(name, _kind(value)) for name, value in candidate.get_params().items()}
        if kinds - seen:
            seen |= kinds
            yield place


def _kind(value: Any) -> Any:
    # Integers are sizes, dimensions and numbers of steps, of which some may be impossible.
    if isinstance(value, str | Integral | np.bool_ | None):
        return value
    if isinstance(value, Real):
        return Real
    if isinstance(value, list | tuple) and len(value) < _LONG:
        return type(value), tuple(map(_kind, value))
    if isinstance(value, BaseEstimator | Sequence | Mapping | np.ndarray):
        return type(value)
    return value if callable(value) and isinstance(value, Hashable) else type(value)


# Made-up input.


def _made_up(X: Any, model: Any, n_rows: int, rng: np.random.Generator) -> Any:
    """Return made-up input like ``X``, a table or a list of clouds, or None for other input."""
    box = _box(model)
    if isinstance(X, list | tuple) or np.ndim(X) == 3:
        clouds = [_made_up_cloud(each, box, rng) for each in X]
        return None if any(each is None for each in clouds) else clouds
    return _made_up_table(X, n_rows, box, rng)


def _made_up_cloud(cloud: Any, box: Bounds, rng: np.random.Generator) -> Any:
    if isinstance(cloud, list | tuple) and np.ndim(cloud[0]) == 2:
        # One array for each person.
        return [_made_up_table(each, 2, box, rng) for each in cloud[:_POINTS]]
    return _made_up_table(cloud, _POINTS, box, rng)


def _made_up_table(table: Any, n_rows: int, box: Bounds, rng: np.random.Generator) -> Any:
    low, high = map(np.asarray, box)
    if open_frame(table) is not None:
        return frame_like(table, n_rows, lambda n: rng.uniform(np.min(low), np.max(high), n))
    if not isinstance(table, np.ndarray | list) or np.ndim(table) != 2:
        return None
    n_columns = np.shape(table)[1]
    if np.size(low) not in (1, n_columns):
        low, high = np.min(low), np.max(high)
    return rng.uniform(low, high, (n_rows, n_columns))


def _box(model: Any) -> Bounds:
    """Return the first public box of a candidate, or the unit box."""
    for bounds in parameters_named(model, "bounds").values():
        with suppress(TypeError, ValueError):
            low, high = (np.asarray(ends, dtype=float) for ends in bounds)
            if np.all(low < high):
                return low, high
    return np.zeros(1), np.ones(1)


def _made_up_labels(y: Any, model: Any, n: int) -> Any:
    """Return labels from a public list, or None if there is none."""
    lists = [each for each in parameters_named(model, "classes").values() if each is not None]
    if y is None or not lists:
        return None
    kinds = np.unique(np.asarray(lists[0]))
    return kinds[np.arange(n) % len(kinds)]

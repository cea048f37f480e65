"""What would refuse its input, asked before the first payment of a whole call.

A refusal is visible, and after a payment it would be an output that was not paid for. Before a
private estimator pays inside of a pipeline, a union or a column transformer, the other parts are
therefore asked what they would refuse. Inside of a search or a cross-validation of scikit-learn,
its whole cost is compared with the budget.

Proof: doc/theory/private_search.md, "Refusals".
"""

import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from types import FrameType
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

import numpy as np
import sklearn.model_selection._search
import sklearn.model_selection._validation
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_consistent_length,
    check_random_state,
)
from sklearn.utils.multiclass import check_classification_targets

from sklearn_dptda.privacy._learning_steps import fits_around, nested, place_of
from sklearn_dptda.privacy._warnings import PrivacyBudgetExceeded, frames

# Where a fit stops while it is asked: at its payment, or before exact statistics as well.
Stop = Literal["payment", "statistic"]
_STOP: ContextVar[Stop | None] = ContextVar("_STOP", default=None)
# Whether the records of this thread are made up, so that nothing has to be paid for.
REHEARSING: ContextVar[bool] = ContextVar("REHEARSING", default=False)


class Accepted(BaseException):
    """Nothing was refused before the first payment or statistic.

    It derives from BaseException, so that no handler of errors takes it for a failure.
    """


@contextmanager
def asking(stop: Stop) -> Iterator[None]:
    """Let fits in this block raise :class:`Accepted` in place of a payment."""
    token = _STOP.set(stop)
    # Steps that draw from NumPy's global state draw the same numbers when they are fitted.
    of_numpy = check_random_state(None)
    state = of_numpy.get_state()
    try:
        # Other threads and processes would not know that they are only asked.
        with parallel_config(backend="sequential", n_jobs=1):
            yield
    finally:
        of_numpy.set_state(state)
        _STOP.reset(token)


def is_asked() -> bool:
    """Whether this fit is only asked what it refuses."""
    return _STOP.get() is not None


def output_if_unpaid(
    estimator: Any, X: Any, y: Any = None, params: Mapping[str, Any] | None = None
) -> Any:
    """Fit a clone in a block of :func:`asking`, and return its output; Accepted if it would pay."""
    if estimator is None or isinstance(estimator, str):
        return X
    copy, labels = clone(estimator), () if y is None else (y,)
    if hasattr(copy, "fit_transform"):
        return copy.fit_transform(X, *labels, **params or {})
    copy.fit(X, *labels, **params or {})
    return copy.transform(X) if hasattr(copy, "transform") else X


class _Part(NamedTuple):
    """A part of a composite, its name, and the input that it receives."""

    name: str
    estimator: Any
    X: Any


def _of_part(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments of ``fit`` with the name of a step. Routed ones are unknown."""
    prefix = f"{name}__"
    return {key.removeprefix(prefix): v for key, v in params.items() if key.startswith(prefix)}


def ask_later(steps: Sequence[tuple[Any, ...]], X: Any, y: Any, params: Mapping[str, Any]) -> None:
    """Ask later steps of a pipeline, given the labels, and the ids in the input of the pipeline."""
    for name, step, *_ in steps:
        own = _of_part(params, name)
        if isinstance(step, Pipeline | FeatureUnion | ColumnTransformer):
            ask_later(_named_parts(step), X, y, own)
        elif hasattr(type(step), "_refuse_later"):
            step._refuse_later(X, y, **{k: v for k, v in own.items() if k == "groups"})
        elif y is not None and _predicts(step):
            _check_labels(step, X, y)


def _named_parts(composite: Any) -> Sequence[tuple[Any, ...]]:
    if isinstance(composite, Pipeline):
        return list(composite.steps)
    if isinstance(composite, FeatureUnion):
        return list(composite.transformer_list)
    return [*composite.transformers, ("remainder", composite.remainder)]


def _predicts(step: Any) -> bool:
    """Whether a step of scikit-learn predicts labels, for which it has the usual requirements."""
    ours = isinstance(step, BaseEstimator) and type(step).__module__.startswith("sklearn.")
    return ours and (is_classifier(step) or is_regressor(step))


def check_lengths(X: Any, y: Any) -> None:
    """Refuse labels if there are more or fewer of them than samples."""
    # Other input, such as the name of a file, is read by the first step.
    read = hasattr(X, "shape") or isinstance(X, list | tuple)
    if read and not any(hasattr(each, "dask") for each in (X, y)):
        check_consistent_length(X, y)


def _check_labels(step: Any, X: Any, y: Any) -> None:
    """Refuse labels that a step of scikit-learn would refuse when an earlier step has paid."""
    if hasattr(y, "tocsr") or hasattr(y, "dask"):
        return
    check_lengths(X, y)
    try:
        labels = np.asarray(y)
        if labels.dtype.kind in "fcO":
            assert_all_finite(labels)
        if is_classifier(step):
            with warnings.catch_warnings(action="ignore"):
                check_classification_targets(labels)
    except (TypeError, ValueError):
        raise ValueError(
            f"y has labels that {type(step).__name__} would refuse after an earlier step was paid "
            "for: labels must be of one kind, and none may be missing."
        ) from None


# What is asked when an estimator is about to pay.


def ask_before(estimator: Any, before: Stop = "payment") -> None:
    """Refuse now what would be refused after this payment, in composites in the call stack.

    If the fit is only asked what it refuses, it ends here with :class:`Accepted`. Composites whose
    parts run in other threads or processes are not found.
    """
    stop = _STOP.get()
    if before == "statistic" and stop != "statistic":
        return
    # A fit that is asked has no composites around the function that asks.
    for composite, X, y, params in fits_around(output_if_unpaid):
        parts = _parts_of(composite, X)
        place = place_of(estimator, [part.estimator for part in parts])
        if place is None:
            continue
        later = parts[place + 1 :]
        with _quiet():
            if isinstance(composite, Pipeline):
                ask_later(later, X, y, params)
            elif not any(holds_payer(part.estimator) for part in parts[:place]):
                with asking("statistic"):
                    for part in later:
                        with suppress(Accepted):
                            output_if_unpaid(part.estimator, part.X, y, params)
    if stop is not None:
        raise Accepted


def _quiet() -> AbstractContextManager[Any]:
    """Drop warnings, which parts repeat in their own fits. Filters belong to the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return warnings.catch_warnings(action="ignore")


def _parts_of(composite: Any, X: Any) -> list[_Part]:
    """List the parts of a composite that is being fitted, with their columns."""
    if not isinstance(composite, ColumnTransformer):
        return [_Part(name, part, X) for name, part, *_ in _named_parts(composite)]
    parts = composite._iter(
        fitted=False, column_as_labels=False, skip_drop=True, skip_empty_columns=True
    )
    return [
        _Part(name, each, _safe_indexing(X, columns, axis=1)) for name, each, columns, _ in parts
    ]


def holds_payer(part: Any) -> bool:
    """Whether an estimator is or holds one that pays."""
    return any(hasattr(each, "_releasing_method") for each in (part, *nested(part)))


# Searches and cross-validations.

# Tasks of cross-validations whose cost was compared with the budget.
_PLANNED: WeakSet[Any] = WeakSet()
_PLANNING: ContextVar[bool] = ContextVar("_PLANNING", default=False)


def refuse_dear_search() -> None:
    """Refuse a search, or a cross-validation, in the call stack that costs more than is left.

    Each of them clones its estimator before it fits anything, and calls this function then. If the
    cost is unknown, fits are paid for as long as the budget lasts.
    """
    if _PLANNING.get():
        return
    for frame in frames():
        call = _planned_call(frame)
        if call is None or _has_name(call["estimator"]):
            continue
        token = _PLANNING.set(True)
        # Costs are planned on a higher floor, which is loaded only if there is a search.
        package = sys.modules[__name__.partition(".")[0]]
        try:
            with _quiet(), suppress(ValueError, TypeError):
                plan = package.model_selection.planned_loss(**call)
                # A bound may be more than the search will cost.
                if not plan.at_most:
                    plan.check()
        except PrivacyBudgetExceeded as error:
            error.add_note("This is the cost of all fits. planned_loss lists them.")
            raise
        finally:
            _PLANNING.reset(token)


def _has_name(estimator: Any) -> bool:
    """Whether a step pays under a name, where a search that is made again pays nothing."""
    return any(hasattr(value, "without_key") for value in nested(estimator))


def _planned_call(frame: FrameType) -> dict[str, Any] | None:
    """Return the arguments of a plan for a search or a cross-validation that begins to clone."""
    # Local variables of a frame are only read where they are needed, because Python copies them.
    where = frame.f_code.co_filename, frame.f_code.co_name
    if where == (sklearn.model_selection._search.__file__, "fit"):
        found = frame.f_locals
        # Later clones are those of candidates.
        if "parallel" in found:
            return None
        given = {"estimator": found["self"], "method": "fit"}
    elif where == (sklearn.model_selection._validation.__file__, "cross_validate"):
        found = frame.f_locals
        if found.get("parallel") is None or found["parallel"] in _PLANNED:
            return None
        _PLANNED.add(found["parallel"])
        given = {key: found[key] for key in ("estimator", "cv", "scoring", "return_train_score")}
    else:
        return None
    return {"X": found["X"], "y": found["y"], **given}

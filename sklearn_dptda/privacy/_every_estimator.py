"""What every estimator does for scikit-learn: progress, links to its page, refused weights.

A fit reports itself, and each of its longer steps, to the callbacks of scikit-learn 1.9 and later.
Callbacks receive the estimator, but no records, so that they cannot compute a score on them.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9, where no estimator has callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in without methods."""

    def with_callbacks(method: Any) -> Any:
        """Return a method unchanged."""
        return method


_Method = TypeVar("_Method", bound=Callable[..., Any])
# The innermost fit that reports to callbacks, with its context.
_REPORTING: ContextVar[tuple[Any, Any] | None] = ContextVar("_REPORTING", default=None)
# What a callback may ask for in order to compute a score.
_OF_RECORDS = {"X", "y", "metadata", "fitted_estimator"}


def with_progress(fit: _Method) -> _Method:
    """Decorate a fit, such that it reports itself to callbacks."""

    @with_callbacks
    def reported(self: Any, *args: Any, **kwargs: Any) -> Any:
        # The number of steps depends on released numbers, so it is not known before.
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self)
        token = _REPORTING.set((self, context))
        try:
            result = fit(self, *args, **kwargs)
        finally:
            _REPORTING.reset(token)
        context.call_on_fit_task_end(estimator=self)
        return result

    @wraps(fit)
    def fit_with_progress(self: Any, *args: Any, **kwargs: Any) -> Any:
        has_callbacks = hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")
        return (reported if has_callbacks else fit)(self, *args, **kwargs)

    return fit_with_progress  # type: ignore[return-value]


@contextmanager
def step(name: str) -> Iterator[None]:
    """Report a step of the fit that is running in this thread, if it has callbacks."""
    current = _REPORTING.get()
    if current is None:
        yield
        return
    estimator, context = current
    task = context.subcontext(task_name=name)
    task.call_on_fit_task_begin(estimator=estimator)
    yield
    task.call_on_fit_task_end(estimator=estimator)


def scoring_callbacks(estimator: Any) -> list[str]:
    """Names of the callbacks of the estimators around one that ask for records."""
    context, callbacks = getattr(estimator, "_parent_callback_ctx", None), []
    while context is not None:
        callbacks += context._callbacks
        context = context.parent
    return sorted({type(each).__name__ for each in callbacks if _asks_for_records(each)})


def _asks_for_records(callback: Any) -> bool:
    hooks = callback.on_fit_task_begin, callback.on_fit_task_end
    return any(_OF_RECORDS & inspect.signature(hook).parameters.keys() for hook in hooks)


class EstimatorMixin(CallbackSupportMixin):
    """Mixin for all estimators: callbacks follow their fits, and HTML links to their pages."""

    _doc_link_module = "sklearn_dptda"

    @property
    def _doc_link_template(self) -> str:
        return f"{documentation()}/generated/{{estimator_module}}.{{estimator_name}}.html"

    def _get_doc_link(self) -> str:
        return str(super()._get_doc_link()) if documentation() else ""


@cache
def documentation() -> str:
    """Address of the documentation in the metadata of the installed package, or nothing."""
    try:
        named = metadata("sklearn-dptda").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    addresses = dict(re.split(r",\s*", each, maxsplit=1) for each in named)
    return addresses.get("Documentation", "").rstrip("/")


def without_weights(fit: _Method) -> _Method:
    """Decorate a fit, such that it refuses weights of the records in words."""

    @wraps(fit)
    def unweighted(self: Any, *args: Any, sample_weight: Any = None, **kwargs: Any) -> Any:
        if sample_weight is not None:
            raise ValueError(
                f"fit of {type(self).__name__} takes no sample_weight. All records count the same, "
                "because a weight would decide how much a record can change the result. Leave it "
                "out."
            )
        return fit(self, *args, **kwargs)

    return unweighted  # type: ignore[return-value]

"""Methods that estimators of rows share; a class assigns them as attributes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.privacy._estimator import plain_arithmetic
from sklearn_dptda.privacy._every_estimator import without_weights
from sklearn_dptda.rows._rows import Tally
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import _get_output_config
from sklearn_dptda.utils._tasks import DaskParts, parts_elsewhere, whole_rows

_T = TypeVar("_T", bound=Callable[..., Any])
_NOT_SHIPPED = {"accountant", "random_state"}


def by_rows(method: _T) -> _T:
    """Decorate a method of rows such that it accepts Dask collections.

    For these it returns Dask arrays or delayed parts, which are computed where the rows are.
    """
    name = method.__name__

    @wraps(method)
    @plain_arithmetic()
    def of_rows(self: Any, X: Any) -> Any:
        parts = parts_elsewhere(X)
        if parts is None:
            return method(self, X)
        check_is_fitted(self)
        refuse_unmapped(self, X, name)
        each = partial(_called, fitted=_Fitted.of(self), name=name)
        if parts.head is None:
            return parts.mapped(each)
        # The method is called on an artificial row, so that wrong columns are refused now.
        one = method(self, _one_row(parts.head))
        if hasattr(type(X), "columns"):
            return X.map_partitions(each, meta=one[:0])
        width = {"drop_axis": 1} if one.ndim == 1 else {"chunks": (X.chunks[0], one.shape[1:])}
        return whole_rows(X).map_blocks(each, dtype=one.dtype, meta=one[:0], **width)

    return of_rows  # type: ignore[return-value]


def refuse_unmapped(estimator: Any, X: Any, name: str) -> None:
    """Refuse rows that are not in memory, before anything is paid, if a method cannot map them."""
    parts = parts_elsewhere(X)
    if parts is not None and not isinstance(parts, DaskParts):
        raise ValueError(
            f"X only gives sums over its parts, by map_reduce, but {name} returns a value for each "
            f"row. Call fit on X, and then {name} on each part, where the part is."
        )
    if parts is not None and name == "transform" and _makes_frames(estimator):
        raise ValueError(
            "set_output makes data frames in memory, but from a Dask collection, transform makes "
            "Dask arrays. Call set_output(transform='default') first."
        )


@without_weights
def fit_transform(
    self: Any, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None
) -> FloatArray:
    """Fit, and transform the training rows. The result is *not* private.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or Dask collection
    y : Ignored
    groups : array-like of shape (n_samples,), default=None
        Ids of the people that the rows belong to, passed to ``fit``.

    Returns
    -------
    ndarray of shape (n_samples, n_features_out)
        For a Dask collection, a Dask array that has not been computed.
    """
    refuse_unmapped(self, X, "transform")
    result: FloatArray = self.fit(X, groups=groups).transform(X)
    return result


@without_weights
def fit_predict(
    self: Any, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None
) -> IntArray:
    """Fit, and assign the training rows to clusters. The labels are *not* private.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or Dask collection
    y : Ignored
    groups : array-like of shape (n_samples,), default=None
        Ids of the people that the rows belong to, passed to ``fit``.

    Returns
    -------
    ndarray of shape (n_samples,)
        For a Dask collection, a Dask array that has not been computed.
    """
    refuse_unmapped(self, X, "predict")
    result: IntArray = self.fit(X, groups=groups).predict(X)
    return result


@plain_arithmetic()
def sum_by_rows(estimator: Any, X: Any, name: str) -> tuple[int, Any]:
    """Number of rows, and the sum of the values of a method, computed where the rows are."""
    check_is_fitted(estimator)
    parts = parts_elsewhere(X)
    if parts is None:
        values = getattr(estimator, name)(X)
        return len(values), values.sum()
    each = partial(_called, fitted=_Fitted.of(estimator), name=name)
    tally = parts.map_reduce(partial(Tally.of, partial(_summed, each=each))).checked()
    return tally.n_rows, tally.total


@dataclass(frozen=True)
class _Fitted:
    """Parameters and released values of an estimator, without its accountant and its seed.

    An estimator without a seed has a different pickle each time, so that no cache returns an old
    release for a new fit; but the results of a method that uses only released values may be cached.
    """

    kind: type
    state: dict[str, Any]

    @classmethod
    def of(cls, value: Any) -> Any:
        """Convert an estimator and the estimators in its attributes; return others unchanged."""
        if not isinstance(value, BaseEstimator):
            return value
        state = {name: cls.of(held) for name, held in vars(value).items()}
        return cls(type(value), state | dict.fromkeys(_NOT_SHIPPED & state.keys()))

    def made(self) -> Any:
        """Make an estimator with the methods of the fitted one that need only released values."""
        made: Any = object.__new__(self.kind)
        for name, held in self.state.items():
            vars(made)[name] = held.made() if isinstance(held, _Fitted) else held
        return made


def _makes_frames(estimator: Any) -> bool:
    return bool(_get_output_config("transform", estimator)["dense"] != "default")


def _called(part: Any, fitted: "_Fitted", name: str) -> Any:
    method = getattr(fitted.made(), name)
    # A part may have no rows, for example after a filter.
    return method(part) if len(part) else method(_one_row(part))[:0]


def _one_row(table: Any) -> Any:
    """Artificial row of zeros, in a table of the same kind."""
    width = table.shape[1]
    return Columns.of(table, width).table(list(np.zeros((width, 1))))


def _summed(part: Any, each: Callable[[Any], Any]) -> Tally:
    values = each(part)
    return Tally(len(values), values.sum())

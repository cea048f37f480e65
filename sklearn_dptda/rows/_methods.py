"""Methods that estimators of rows share, on rows that may be anywhere: assign them in a class."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.rows._rows import Tally
from sklearn_dptda.utils._frames import DaskParts, parts_elsewhere, whole_rows
from sklearn_dptda.utils._sklearn import _get_output_config

_T = TypeVar("_T", bound=Callable[..., Any])
_NOT_SHIPPED = {"accountant", "random_state"}


def by_rows(method: _T) -> _T:
    """Decorate a method of rows: of a Dask array or data frame it makes a Dask array.

    Of something delayed it makes the same. Nothing is read before that is computed, by whoever
    holds the rows.
    """
    name = method.__name__

    @wraps(method)
    @silent_arithmetic()
    def of_rows(self: Any, X: Any) -> Any:
        parts = parts_elsewhere(X)
        if parts is None:
            return method(self, X)
        check_is_fitted(self)
        refuse_unmapped(self, X, name)
        each = partial(_called, fitted=_Fitted.of(self), name=name)
        if parts.head is None:
            return parts.mapped(each)
        # One row that is none of theirs: what columns are wrong for is refused now.
        one = method(self, _one_row(parts.head))
        if hasattr(type(X), "columns"):
            return X.map_partitions(each, meta=one[:0])
        width = {"drop_axis": 1} if one.ndim == 1 else {"chunks": (X.chunks[0], one.shape[1:])}
        return whole_rows(X).map_blocks(each, dtype=one.dtype, meta=one[:0], **width)

    return of_rows  # type: ignore[return-value]


def refuse_unmapped(estimator: Any, X: Any, name: str) -> None:
    """Refuse rows elsewhere that a method cannot be mapped over; ``fit_...``: before it pays."""
    parts = parts_elsewhere(X)
    if parts is not None and not isinstance(parts, DaskParts):
        raise ValueError(
            f"X gives sums over its parts alone, by map_reduce, and {name} makes something of each "
            f"row: call fit, and {name} of each part where that is."
        )
    if parts is not None and name == "transform" and _makes_frames(estimator):
        raise ValueError("set_output makes frames in memory: of Dask, arrays are made.")


def fit_transform(
    self: Any, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None
) -> FloatArray:
    """Fit, and transform the training rows: the result is *not* private.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or Dask collection
    y : Ignored
    groups : array-like of shape (n_samples,), default=None
        As in ``fit``.

    Returns
    -------
    ndarray of shape (n_samples, n_features_out)
        Of a Dask collection one that is not computed.
    """
    refuse_unmapped(self, X, "transform")
    result: FloatArray = self.fit(X, groups=groups).transform(X)
    return result


def fit_predict(
    self: Any, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None
) -> IntArray:
    """Fit and assign the training rows: the labels are *not* private.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or Dask collection
    y : Ignored
    groups : array-like of shape (n_samples,), default=None
        As in ``fit``.

    Returns
    -------
    ndarray of shape (n_samples,)
        Of a Dask collection one that is not computed.
    """
    refuse_unmapped(self, X, "predict")
    result: IntArray = self.fit(X, groups=groups).predict(X)
    return result


@silent_arithmetic()
def sum_by_rows(estimator: Any, X: Any, name: str) -> tuple[int, Any]:
    """Number of rows, and the sum of what a method makes of each of them, where they are."""
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
    """Parameters and released values of an estimator, without its budget and its seed.

    These are no machine's business that only maps a method. An unseeded estimator itself differs
    in every pickle, so that no cache returns an old release for a new fit; what a method makes of
    rows by values that are released already may be cached.
    """

    kind: type
    state: dict[str, Any]

    @classmethod
    def of(cls, value: Any) -> Any:
        """The same of an estimator, and of those that it holds; other values as they are."""
        if not isinstance(value, BaseEstimator):
            return value
        state = {name: cls.of(held) for name, held in vars(value).items()}
        return cls(type(value), state | dict.fromkeys(_NOT_SHIPPED & state.keys()))

    def made(self) -> Any:
        """An estimator that can do what the fitted one can do with rows."""
        made: Any = object.__new__(self.kind)
        for name, held in self.state.items():
            vars(made)[name] = held.made() if isinstance(held, _Fitted) else held
        return made


def _makes_frames(estimator: Any) -> bool:
    return bool(_get_output_config("transform", estimator)["dense"] != "default")


def _called(part: Any, fitted: "_Fitted", name: str) -> Any:
    method = getattr(fitted.made(), name)
    # Filters leave parts without rows.
    return method(part) if len(part) else method(_one_row(part))[:0]


def _one_row(table: Any) -> Any:
    zero = np.zeros((1, table.shape[1]))
    return type(table)(zero, columns=table.columns) if hasattr(table, "columns") else zero


def _summed(part: Any, each: Callable[[Any], Any]) -> Tally:
    values = each(part)
    return Tally(len(values), values.sum())

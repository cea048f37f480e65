"""Methods that treat each row by itself, mapped over collections of Dask."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.utils._dask_parts import DaskParts, is_dask, refuse_dask, whole_rows
from sklearn_dptda.utils._sklearn import _get_output_config

_T = TypeVar("_T", bound=Callable[..., Any])


def by_rows(method: _T) -> _T:
    """Decorate a method of rows: of a Dask array or data frame it makes a Dask array.

    Nothing is read before that is computed, by whoever holds the rows.
    """

    @wraps(method)
    @silent_arithmetic()
    def of_rows(self, X):
        if not is_dask(X):
            return method(self, X)
        check_is_fitted(self)
        head = DaskParts(X).head
        if head is None:
            refuse_dask(X)
        if method.__name__ == "transform" and _makes_frames(self):
            raise ValueError("set_output makes frames in memory: of Dask, arrays are made.")
        # One row that is none of theirs: what columns are wrong for is refused now.
        zero = np.zeros((1, head.shape[1]))
        named = hasattr(head, "columns")
        one = method(self, type(head)(zero, columns=head.columns) if named else zero)
        each = partial(_called, model=self, name=method.__name__)
        if named:
            return X.map_partitions(each, meta=one[:0])
        width = {"drop_axis": 1} if one.ndim == 1 else {"chunks": (X.chunks[0], one.shape[1:])}
        return whole_rows(X).map_blocks(each, dtype=one.dtype, meta=one[:0], **width)

    return of_rows  # type: ignore[return-value]


def _makes_frames(estimator):
    return _get_output_config("transform", estimator)["dense"] != "default"


def _called(part, model, name):
    return getattr(model, name)(part)

"""Tables of rows as they come: checked, in chunks, with several rows of one person."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sklearn_dptda._typing import Chunks, FloatArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.rows._rows import BATCH, CHANGED, Rows, Tally, checksum, slices
from sklearn_dptda.utils._frames import (
    NOT_FINITE,
    Columns,
    frame_library,
    parts_elsewhere,
    refuse_lossy,
    without_quotes,
)

# NaN, None and lists are none of these, or differ from themselves.
_IDS = (str, bytes, Real)


def first_rows(tables: Iterable[Any], groups: str | None, most: int) -> Iterator[Any]:
    """Tables without the column of groups, with the first ``most`` rows of each group in them all.

    Which rows of a person are kept follows from that person's rows alone: one person more or less
    is at most ``most`` rows more or less.
    Proof: doc/theory/noise_and_calibration.md, "People with several rows".
    """
    if groups is None:
        yield from tables
        return
    counts: Counter[Any] = Counter()
    for table in tables:
        names = _column_names(table)
        if names.count(groups) != 1 or len(names) == 1:
            raise ValueError(
                f"groups={quoted(groups)} must be the name of one column of a data frame "
                "of pandas or polars, beside others."
            )
        kept = _first_places(table[groups].to_list(), most, counts)
        yield without_column(getattr(table, "iloc", table)[kept], groups)


def without_column(X: Any, name: str | None) -> Any:
    """A table without the columns of a name, if there is one and it has any."""
    if name is None or name not in _column_names(X):
        return X
    others = [place for place, other in enumerate(X.columns) if other != name]
    return getattr(X, "iloc", X)[:, others]


def _column_names(X: Any) -> list[Any]:
    return [] if frame_library(X) is None else list(X.columns)


def _first_places(ids: list[Any], most: int, counts: Counter[Any]) -> list[int]:
    """Places of ids that have come up less than ``most`` times, as counted so far."""
    kept = []
    for place, group in enumerate(ids):
        if not isinstance(group, _IDS) or group != group:
            raise ValueError("groups must have a number or a string for each row; some have none.")
        if counts[group] < most:
            kept.append(place)
            counts[group] += 1
    return kept


def check_rows(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> FloatArray:
    """Validate a table by scikit-learn's ``validate_data``, and keep its values out of errors.

    Returns it as float64; ValueError if it is refused, NaN and infinity included. A column that
    says whose a row is, by the estimator's ``groups``, is no feature.
    """
    X = without_column(X, getattr(estimator, "groups", None))
    with without_quotes():
        refuse_lossy(X, complex_too=False)
        rows: FloatArray = validate_data(estimator, X, dtype=np.float64, **options)
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise ValueError(f"X contains {NOT_FINITE}")
    return rows


_GROUPS_ELSEWHERE = (
    "groups needs the first rows of each person in one order, which parts on other machines do not "
    "have: give fit_chunks a function that reads them one by one, such as "
    "lambda: (part.compute() for part in X.partitions)."
)


def as_given(chunk: Any) -> tuple[Any, Mapping[int, list[Any]]]:
    """A chunk of numbers, which stand for nothing else."""
    return chunk, {}


def open_chunks(
    estimator: Any,
    chunks: Chunks,
    check: Callable[[Any], object],
    coded: Callable[[Any], tuple[Any, Mapping[int, list[Any]]]] = as_given,
) -> Rows:
    """Read chunks once, to refuse them before anything is paid, and return their rows.

    ``check`` sees the first chunk, or one without rows that is like it. ``coded`` makes of a chunk
    a table of numbers, and public lists of what some of them stand for. A ValueError says that the
    stream can be read only once, is empty, or has a chunk that is refused.
    """
    parts = parts_elsewhere(chunks)
    if parts is None:
        if len(getattr(chunks, "shape", ())) == 2:
            raise ValueError("chunks is one table: pass it to fit, or as [X].")
        with without_quotes("a chunk"):
            first = partial(first_rows, groups=estimator.groups, most=estimator.rows_per_group)
            parts = _Stream(chunks, first)
    elif estimator.groups is not None:
        raise ValueError(_GROUPS_ELSEWHERE)
    head = getattr(parts, "head", None)
    if head is not None:
        check(head)
    with without_quotes("a chunk"):
        seen = parts.map_reduce(partial(_survey, coded=coded))
    if not isinstance(seen, Tally) or seen.checked().n_rows == 0:
        raise ValueError("chunks are empty: at least one row is needed.")
    header = seen.total
    if head is None:
        check(header.head)
    batches = _Batches(coded, header.n_features, header.names)
    return Rows(parts, batches, seen.n_rows, header.n_features, header.columns, seen.checksum)


class _Stream:
    """Chunks that are read one by one, as often as they are needed."""

    def __init__(self, chunks: Any, prepared: Callable[[Iterable[Any]], Iterator[Any]]) -> None:
        self._chunks, self._prepared = chunks, prepared
        first = self._open()
        if isinstance(chunks, Iterator) or first is self._open():
            raise ValueError(
                "chunks can be read only once, and every step reads them: pass a list of arrays, "
                "an object with __iter__, or a function that returns a new iterator."
            )
        self.head = next(iter(prepared(first)), None)

    def _open(self) -> Iterator[Any]:
        return iter(self._chunks() if callable(self._chunks) else self._chunks)

    def map_reduce(self, function: Callable[[Any], Tally]) -> Any:
        total: Any = 0
        for chunk in self._prepared(self._open()):
            total = total + function(chunk)
            if total.refused is not None:
                break
        return total


@dataclass(frozen=True)
class _Header:
    """What all chunks must have in common, and a table of theirs without rows."""

    n_features: int
    names: list[Any] | None
    columns: Columns
    head: Any

    def __add__(self, other: "_Header") -> "_Header":
        if (self.n_features, self.names) != (other.n_features, other.names):
            raise ValueError("chunks differ in the number or the names of their columns.")
        if self.columns.choices != other.columns.choices:
            raise ValueError("chunks differ in which columns hold truth values.")
        return replace(self, columns=self.columns.shared(other.columns))


def _survey(chunk: Any, coded: Callable[[Any], tuple[Any, Mapping[int, list[Any]]]]) -> Tally:
    """Tally of a chunk's rows, with its header."""

    def seen(chunk: Any) -> Tally:
        table, choices = coded(chunk)
        array = _as_array(table)
        columns = Columns.of(chunk, array.shape[1], choices)
        head = getattr(chunk, "iloc", chunk)[:0] if hasattr(chunk, "shape") else array[:0]
        header = _Header(array.shape[1], _names(chunk), columns, head)
        return Tally(len(array), header, checksum=checksum(array))

    return Tally.of(seen, chunk)


@dataclass(frozen=True)
class _Batches:
    """Arrays of a chunk, whose columns must be those of the first pass."""

    coded: Callable
    n_features: int
    names: list[Any] | None

    def __call__(self, chunk: Any) -> Iterator[FloatArray]:
        array = _as_array(self.coded(chunk)[0])
        if array.shape[1] != self.n_features or _names(chunk) != self.names:
            raise ValueError(CHANGED)
        return slices(array, BATCH)


def _names(chunk: Any) -> list[Any] | None:
    return list(chunk.columns) if hasattr(chunk, "columns") else None


def _as_array(chunk: Any) -> FloatArray:
    refuse_lossy(chunk, "chunks", complex_too=False)
    with without_quotes():
        # Chunks without rows are no mistake of a reader.
        part: FloatArray = check_array(
            chunk, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0
        )
    if not np.isfinite(part).all():
        raise ValueError(f"chunks contain {NOT_FINITE}")
    return part

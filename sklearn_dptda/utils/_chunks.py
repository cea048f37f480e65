"""Rows in chunks that must be the same at every pass: of a stream, or on other machines."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from sklearn_dptda.utils import refuse_lossy
from sklearn_dptda.utils._columns import Columns
from sklearn_dptda.utils._dask_parts import parts_elsewhere
from sklearn_dptda.utils._reading import NOT_FINITE, without_quotes
from sklearn_dptda.utils._row_batches import BATCH, CHANGED, Rows, Tally, checksum, slices

_GROUPS = (
    "groups needs the first rows of each person in one order, which parts on other machines do not "
    "have: give fit_chunks a function that reads them one by one, such as "
    "lambda: (part.compute() for part in X.partitions)."
)


def _as_given(chunk):
    return chunk, {}


def open_chunks(estimator, chunks, check, coded=_as_given):
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
            parts = _Stream(chunks, estimator._first_rows)
    elif estimator.groups is not None:
        raise ValueError(_GROUPS)
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

    def __init__(self, chunks, prepared):
        self._chunks, self._prepared = chunks, prepared
        first = self._open()
        if isinstance(chunks, Iterator) or first is self._open():
            raise ValueError(
                "chunks can be read only once, and every step reads them: pass a list of arrays, "
                "an object with __iter__, or a function that returns a new iterator."
            )
        self.head = next(iter(prepared(first)), None)

    def _open(self):
        return iter(self._chunks() if callable(self._chunks) else self._chunks)

    def map_reduce(self, function):
        total = 0
        for chunk in self._prepared(self._open()):
            total = total + function(chunk)
            if total.refused is not None:
                break
        return total


@dataclass(frozen=True)
class _Header:
    """What all chunks must have in common, and a table of theirs without rows."""

    n_features: int
    names: list | None
    choices: dict
    columns: Columns
    head: Any

    def __add__(self, other):
        if (self.n_features, self.names) != (other.n_features, other.names):
            raise ValueError("chunks differ in the number or the names of their columns.")
        if self.choices != other.choices:
            raise ValueError("chunks differ in which columns hold truth values.")
        return replace(self, columns=self.columns.shared(other.columns))


def _survey(chunk, coded):
    """Tally of a chunk's rows, with its header."""

    def seen(chunk):
        table, choices = coded(chunk)
        array = _as_array(table)
        columns = Columns.of(chunk, array.shape[1], choices)
        head = getattr(chunk, "iloc", chunk)[:0] if hasattr(chunk, "shape") else array[:0]
        header = _Header(array.shape[1], _names(chunk), choices, columns, head)
        return Tally(len(array), header, checksum=checksum(array))

    return Tally.of(seen, chunk)


@dataclass(frozen=True)
class _Batches:
    """Arrays of a chunk, whose columns must be those of the first pass."""

    coded: Callable
    n_features: int
    names: list | None

    def __call__(self, chunk):
        array = _as_array(self.coded(chunk)[0])
        if array.shape[1] != self.n_features or _names(chunk) != self.names:
            raise ValueError(CHANGED)
        return slices(array, BATCH)


def _names(chunk):
    return list(chunk.columns) if hasattr(chunk, "columns") else None


def _as_array(chunk):
    refuse_lossy(chunk, "chunks", complex_too=False)
    with without_quotes():
        # Chunks without rows are no mistake of a reader.
        part = check_array(chunk, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0)
    if not np.isfinite(part).all():
        raise ValueError(f"chunks contain {NOT_FINITE}")
    return part

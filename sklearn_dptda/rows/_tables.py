"""Input tables: validation, chunks, and tables with several rows of one person."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sklearn_dptda._typing import Chunks, FloatArray
from sklearn_dptda.rows._rows import BATCH, CHANGED, Batch, Rows, Tally, checksum, slices, weighted
from sklearn_dptda.utils._frames import (
    HOLDS_TEXT,
    NOT_FINITE,
    Columns,
    parts_elsewhere,
    refuse_lossy,
    refused_text,
    text_columns,
    without_quotes,
)
from sklearn_dptda.utils._people import (
    PeopleCounts,
    check_number_of_people,
    check_one_label,
    split_people,
    without_column,
)

_LOG = logging.getLogger(__name__)


def check_rows(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> FloatArray:
    """Validate a table with scikit-learn's ``validate_data``, without its values in errors.

    Returns the table as float64, without the column of ``groups``. A table that contains NaN or
    infinity, or is invalid otherwise, raises a ``ValueError``.
    """
    # The estimator may contain the mixture that has the parameter.
    owner = estimator if hasattr(estimator, "groups") else getattr(estimator, "estimator_", None)
    X = without_column(X, getattr(owner, "groups", None))
    try:
        with without_quotes():
            refuse_lossy(X, complex_too=False)
            rows: FloatArray = validate_data(estimator, X, dtype=np.float64, **options)
    except ValueError as error:
        names = text_columns(X) if HOLDS_TEXT in str(error) else []
        raise (refused_text(names) if names else error) from None
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise ValueError(f"X contains {NOT_FINITE}")
    return rows


def as_given(chunk: Any) -> tuple[Any, Mapping[int, list[Any]]]:
    """Return a chunk of numbers without coded values."""
    return chunk, {}


def open_chunks(
    estimator: Any,
    chunks: Chunks,
    check: Callable[[Any], object],
    coded: Callable[[Any], tuple[Any, Mapping[int, list[Any]]]] = as_given,
    label: str | None = None,
) -> Rows:
    """Read chunks once, to refuse invalid ones before anything is paid, and return their rows.

    ``check`` is called on the first chunk, or on a similar chunk without rows. ``coded`` converts a
    chunk to a table of numbers. ``label`` is a column that has one value for each person. A
    ``ValueError`` refuses chunks that can be read only once, are empty, or are invalid.
    """
    groups, parts = estimator.groups, parts_elsewhere(chunks)
    if parts is None:
        if len(getattr(chunks, "shape", ())) == 2:
            raise ValueError(
                "chunks is a single table: pass it to fit, or as the list [X] to fit_chunks."
            )
        with without_quotes("a chunk"):
            parts = _Stream(chunks)
    head = getattr(parts, "head", None)
    if head is not None:
        check(head if groups is None else split_people(head, groups, None)[0])
    people, n_people = _NOBODY, None
    if groups is not None:
        counts = _surveyed(parts, partial(_count_people, groups=groups)).total.total()
        # Only people with rows in several parts are listed. A part knows the numbers of the others.
        spread = {i: found for i, found in counts.items() if found[1] > 1}
        people, n_people = _People(groups, spread), len(counts)
        check_number_of_people(n_people)
        if label is not None:
            pairs = _surveyed(parts, partial(_count_people, groups=groups, label=label)).total
            check_one_label(n_people, pairs.distinct())
    seen = _surveyed(parts, partial(_survey, coded=coded, people=people))
    header = seen.total
    if head is None:
        check(header.head)
    return Rows(
        parts,
        _Batches(coded, people, header.n_features, header.names),
        seen.n_rows,
        header.n_features,
        header.columns,
        seen.checksum,
        n_people=n_people,
    )


def _surveyed(parts: Any, function: Callable[[Any], Tally]) -> Tally:
    """Tally of all parts, at least one of which must have a row."""
    with without_quotes("a chunk"):
        seen = parts.map_reduce(function)
    if not isinstance(seen, Tally) or seen.checked().n_rows == 0:
        raise ValueError("chunks are empty: at least one row is needed.")
    return seen


@dataclass(frozen=True)
class _People:
    """The column of ids of people, and the number of rows of people with rows in several parts."""

    groups: str | None = None
    spread: Mapping[Any, tuple[int, int]] = field(default_factory=dict)

    def split(self, chunk: Any) -> tuple[Any, list[Any] | None]:
        """A chunk without the column of ids, and the ids, or None if there are no people."""
        return (chunk, None) if self.groups is None else split_people(chunk, self.groups, None)

    def batches(self, rows: FloatArray, ids: list[Any] | None) -> Iterator[Batch]:
        """Yield batches of the rows of a chunk."""
        if ids is None:
            return map(Batch, slices(rows, BATCH))
        return weighted(rows, ids, self.spread)


_NOBODY = _People()


def _count_people(chunk: Any, groups: str, label: str | None = None) -> Tally:
    """Count the rows of each person, or of each pair of a person and a label."""

    def counted(chunk: Any) -> Tally:
        table, ids = split_people(chunk, groups, None)
        pairs = ids if label is None else zip(ids, table[label].to_list(), strict=True)
        return Tally(len(ids), PeopleCounts.of(pairs))

    return Tally.of(counted, chunk)


def _opened(chunks: Any) -> Iterator[Any]:
    return iter(chunks() if callable(chunks) else chunks)


def opened_anew(chunks: Any) -> Iterator[Any]:
    """Return a new iterator of chunks; chunks that can be read only once are refused."""
    first = _opened(chunks)
    if isinstance(chunks, Iterator) or first is _opened(chunks):
        raise ValueError(
            "chunks can be read only once, but every step of the fit reads them. Pass a list of "
            "arrays, an object with __iter__, or a function that returns a new iterator."
        )
    return first


class _Stream:
    """Chunks that are read one by one, as often as necessary."""

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks
        self.head = next(iter(opened_anew(chunks)), None)

    def map_reduce(self, function: Callable[[Any], Tally]) -> Any:
        total: Any = 0
        for number, chunk in enumerate(_opened(self._chunks), 1):
            total = total + function(chunk)
            _LOG.debug("chunk %d of this pass is counted", number)
            if total.refused is not None:
                break
        return total


@dataclass(frozen=True)
class _Header:
    """The properties that all chunks must share, and a table of theirs without rows."""

    n_features: int
    names: list[Any] | None
    columns: Columns
    head: Any

    def __add__(self, other: "_Header") -> "_Header":
        if (self.n_features, self.names) != (other.n_features, other.names):
            raise ValueError("chunks differ in the number or the names of their columns.")
        if self.columns.choices != other.columns.choices:
            raise ValueError(
                "chunks differ in which columns contain truth values. Convert these columns to one "
                "type in all chunks."
            )
        return replace(self, columns=self.columns.shared(other.columns))


def _survey(
    chunk: Any, coded: Callable[[Any], tuple[Any, Mapping[int, list[Any]]]], people: _People
) -> Tally:
    """Tally of a chunk's rows, with its header."""

    def seen(chunk: Any) -> Tally:
        chunk, ids = people.split(chunk)
        table, choices = coded(chunk)
        array = _as_array(table)
        columns = Columns.of(chunk, array.shape[1], choices)
        head = getattr(chunk, "iloc", chunk)[:0] if hasattr(chunk, "shape") else array[:0]
        header = _Header(array.shape[1], _names(chunk), columns, head)
        # Rows are counted in the same way as in each later pass.
        found = [(weight, rows) for rows, weight in people.batches(array, ids)]
        n_counted = sum(weight * len(rows) for weight, rows in found)
        total = sum(weight * checksum(rows) for weight, rows in found) % 2**64
        return Tally(n_counted, header, checksum=total)

    return Tally.of(seen, chunk)


@dataclass(frozen=True)
class _Batches:
    """Function from a chunk to arrays, whose columns must be those of the first pass."""

    coded: Callable
    people: _People
    n_features: int
    names: list[Any] | None

    def __call__(self, chunk: Any) -> Iterator[Batch]:
        chunk, ids = self.people.split(chunk)
        array = _as_array(self.coded(chunk)[0])
        if array.shape[1] != self.n_features or _names(chunk) != self.names:
            raise ValueError(CHANGED)
        return self.people.batches(array, ids)


def _names(chunk: Any) -> list[Any] | None:
    return list(chunk.columns) if hasattr(chunk, "columns") else None


def _as_array(chunk: Any) -> FloatArray:
    refuse_lossy(chunk, "chunks", complex_too=False)
    with without_quotes():
        # A reader may return chunks without rows.
        part: FloatArray = check_array(
            chunk, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0
        )
    if not np.isfinite(part).all():
        raise ValueError(f"chunks contain {NOT_FINITE}")
    return part

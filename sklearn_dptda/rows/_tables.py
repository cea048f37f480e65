"""Input tables: validation, chunks, and tables with several rows of one person."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sklearn_dptda._typing import Chunks, FloatArray
from sklearn_dptda.rows._rows import BATCH, CHANGED, Batch, Rows, Tally, checksum, slices, weighted
from sklearn_dptda.utils._frames import Columns, open_frame, text_columns, without_column
from sklearn_dptda.utils._people import (
    PeopleCounts,
    check_number_of_people,
    check_one_label,
    split_people,
)
from sklearn_dptda.utils._tasks import parts_elsewhere
from sklearn_dptda.utils._validation import HOLDS_TEXT, NOT_FINITE, refuse_lossy, without_quotes

_LOG = logging.getLogger(__name__)


class Coded(NamedTuple):
    """A table of numbers, public lists of coded values, and the columns with missing values."""

    table: Any
    choices: Mapping[int, list[Any]] = {}
    gaps: frozenset[int] = frozenset()


def check_rows(
    estimator: BaseEstimator, X: ArrayLike, gaps: frozenset[int] = frozenset(), **options: Any
) -> FloatArray:
    """Validate a table with scikit-learn's ``validate_data``, without its values in errors.

    Returns the table as float64, without the column of ``groups``. A table that contains infinity,
    or NaN outside of the columns ``gaps``, or is invalid otherwise, raises a ``ValueError``.
    """
    if gaps:
        options["ensure_all_finite"] = False
    # The estimator may contain the mixture that has the parameter.
    owner = estimator if hasattr(estimator, "groups") else getattr(estimator, "estimator_", None)
    X = without_column(X, getattr(owner, "groups", None))
    try:
        with without_quotes():
            refuse_lossy(X, complex_too=False)
            rows: FloatArray = validate_data(estimator, X, dtype=np.float64, **options)
    except ValueError as error:
        if HOLDS_TEXT not in str(error) or not (names := text_columns(X)):
            raise
        shown = ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)
        raise ValueError(f"X {HOLDS_TEXT} These columns are not numeric: {shown}.") from None
    _refuse_infinite(rows, gaps, "X contains")
    return rows


def _refuse_infinite(rows: Any, gaps: frozenset[int], contains: str) -> None:
    """Refuse rows that contain infinity, or values that are missing outside of ``gaps``."""
    if gaps:
        # Sparse tables are refused before, because their zeros are not missing.
        others = np.isin(np.arange(rows.shape[1]), list(gaps), invert=True)
        if np.isinf(rows).any():
            raise ValueError(f"{contains} infinity. Replace it by NaN, or by a public constant.")
        rows = rows[:, others]
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise ValueError(f"{contains} {NOT_FINITE}")


@without_quotes()
def with_gaps(missing: bool | Sequence[Any], table: Any) -> Coded:
    """Return a table of numbers, with the columns in which values may be missing."""
    if isinstance(missing, bool | np.bool_) and not missing:
        return Coded(table)
    if not hasattr(table, "shape"):
        table = np.asarray(table, dtype=float)
    if len(table.shape) != 2 or issparse(table):
        # Later checks refuse it.
        return Coded(table)
    return Coded(table, gaps=Columns.of(table, table.shape[1]).may_miss(missing).gaps)


def open_chunks(
    estimator: Any,
    chunks: Chunks,
    check: Callable[[Any], object],
    coded: Callable[[Any], Coded] = Coded,
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
    reader, n_people = _Reader(coded), None
    if groups is not None:
        count = partial(_count_people, groups=groups, label=label)
        people, pairs = _surveyed(parts, count).total
        counts = people.total()
        # Only people with rows in several parts are listed. A part knows the numbers of the others.
        spread = {i: found for i, found in counts.items() if found[1] > 1}
        reader, n_people = _Reader(coded, groups, spread), len(counts)
        check_number_of_people(n_people)
        if label is not None:
            check_one_label(n_people, pairs.distinct())
    seen = _surveyed(parts, partial(_survey, reader=reader))
    columns = seen.total.columns
    if head is None:
        check(seen.total.head)
    return Rows(
        parts,
        _Batches(reader, columns.names),
        seen.n_rows,
        len(columns.names),
        columns,
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


def _count_people(chunk: Any, groups: str, label: str | None) -> Tally:
    """Count the rows of each person, and of each pair of a person and a label."""

    def counted(chunk: Any) -> Tally:
        table, ids = split_people(chunk, groups, None)
        people, pairs = PeopleCounts.of(ids), None
        if label is not None:
            labels = open_frame(table)[label].to_list()
            pairs = PeopleCounts.of(zip(ids, labels, strict=True))
        return Tally(len(ids), (people, pairs))

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
    """The columns, which all chunks must share, and a table of theirs without rows."""

    columns: Columns
    head: Any

    def __add__(self, other: "_Header") -> "_Header":
        if self.columns.names != other.columns.names:
            raise ValueError("chunks differ in the number or the names of their columns.")
        if self.columns.choices != other.columns.choices:
            raise ValueError(
                "chunks differ in which columns contain truth values. Convert these columns to one "
                "type in all chunks."
            )
        return replace(self, columns=self.columns.shared(other.columns))


@dataclass(frozen=True)
class _Reader:
    """Reading of a chunk: the codes of its columns, and the column of ids if there are people.

    ``spread`` has the numbers of rows and parts of people with rows in several parts.
    """

    coded: Callable[[Any], Coded]
    groups: str | None = None
    spread: Mapping[Any, tuple[int, int]] = field(default_factory=dict)

    def read(self, chunk: Any) -> tuple[_Header, Iterator[Batch]]:
        """Return the header and the batches of a chunk."""
        ids = None
        if self.groups is not None:
            chunk, ids = split_people(chunk, self.groups, None)
        table, choices, gaps = self.coded(chunk)
        array = _as_array(table, gaps)
        head = getattr(chunk, "iloc", chunk)[:0] if hasattr(chunk, "shape") else array[:0]
        columns = Columns.of(chunk, array.shape[1], choices)
        places = [columns.names[place] for place in gaps]
        header = _Header(columns.may_miss(places), head)
        if ids is None:
            return header, map(Batch, slices(array, BATCH))
        return header, weighted(array, ids, self.spread)


def _survey(chunk: Any, reader: _Reader) -> Tally:
    """Tally of a chunk's rows, with its header."""

    def seen(chunk: Any) -> Tally:
        # Rows are counted in the same way as in each later pass.
        header, batches = reader.read(chunk)
        n_counted = total = 0
        for rows, weight in batches:
            n_counted += weight * len(rows)
            total += weight * checksum(rows)
        return Tally(n_counted, header, checksum=total % 2**64)

    return Tally.of(seen, chunk)


@dataclass(frozen=True)
class _Batches:
    """Function from a chunk to batches, whose columns must be those of the first pass."""

    reader: _Reader
    names: Sequence[Any]

    def __call__(self, chunk: Any) -> Iterator[Batch]:
        header, batches = self.reader.read(chunk)
        if header.columns.names != self.names:
            raise ValueError(CHANGED)
        return batches


def _as_array(chunk: Any, gaps: frozenset[int]) -> FloatArray:
    refuse_lossy(chunk, "chunks", complex_too=False)
    with without_quotes():
        # A reader may return chunks without rows.
        part: FloatArray = check_array(
            chunk,
            dtype=np.float64,
            ensure_all_finite=not gaps,
            ensure_min_samples=0,
            ensure_min_features=0,
            # Errors have the same words for each chunk.
            input_name="X",
        )
    _refuse_infinite(part, gaps, "X contains")
    return part

"""Rows in batches, whole or in parts elsewhere, and the box that they are scaled to."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self, cast

import numpy as np

from sklearn_dptda._typing import FloatArray, Parts
from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.utils._frames import Columns, without_quotes, without_values
from sklearn_dptda.utils._people import codes_of

_LOG = logging.getLogger(__name__)

BATCH = 1 << 15
# Rows and numbers that are computed with at a time: they fit a cache, and their memory is used
# again for the next ones where larger pieces would be fetched and returned each time.
_PIECE, _NUMBERS = 1 << 12, 1 << 18
_PART = "a part of the rows"
# What all rows of a person weigh together: rows of up to 16 have equal weights without a rest, and
# those of a thousand lose less than a seven hundredth of it.
MASS = 720_720
# What has changed may be private.
CHANGED = (
    "chunks have changed between two passes: all passes must see the same rows, bit for bit. Store "
    "rows that each pass would draw or compute anew, or read from a table that changes. What was "
    "paid stays spent."
)


class Batch(NamedTuple):
    """Rows that count so many times each."""

    rows: FloatArray
    weight: int = 1


def weighted(
    rows: FloatArray, ids: list[Any], elsewhere: Mapping[Any, tuple[int, int]]
) -> Iterator[Batch]:
    """Batches in which all rows of a person weigh ``MASS`` together, less what does not divide.

    ``elsewhere`` has the number of rows of people whose rows are not all here. The weight of a row
    follows from the number of rows of that person alone, in whatever order and parts they come.
    Proof: doc/theory/people.md, "Tables of people".
    """
    people, codes = codes_of(ids)
    counts = np.bincount(codes, minlength=len(people))
    if elsewhere:
        counts = np.array(
            [elsewhere.get(i, (n, 1))[0] for i, n in zip(people, counts.tolist(), strict=True)]
        )
    weights = (MASS // counts)[codes]
    # Sums are exact in any order: rows of one weight are summed together.
    order = np.argsort(weights, kind="stable")
    rows, weights = rows[order], weights[order]
    steps = np.flatnonzero(weights[1:] != weights[:-1]) + 1
    for start, stop in pairwise([0, *steps, len(rows)]):
        for piece in slices(rows[start:stop], BATCH):
            yield Batch(piece, int(weights[start]))


@dataclass(frozen=True)
class Tally:
    """Number of rows of some parts, the sum over them, why they were refused, their checksum.

    A row counts as often as it weighs.

    Tallies add up in any order. What is wrong with rows is told by value: no machine logs it
    beside them.
    """

    n_rows: int
    total: Any = None
    refused: Exception | None = None
    checksum: int = 0

    @classmethod
    def of(cls, count: Callable[[Any], "Tally"], part: Any) -> "Tally":
        """What ``count`` makes of a part, or its refusal."""
        try:
            with silent_arithmetic():
                return count(part)
        except Exception as error:
            return cls(0, None, without_values(error, _PART))

    def __add__(self, other: object) -> "Tally":
        if not isinstance(other, Tally):
            return self if other == 0 else NotImplemented
        return Tally.of(self._with, other)

    __radd__ = __add__

    def _with(self, other: "Tally") -> "Tally":
        refused = self.refused or other.refused
        total = None if refused else _added(self.total, other.total)
        checksum = (self.checksum + other.checksum) % 2**64
        return Tally(self.n_rows + other.n_rows, total, refused, checksum)

    def checked(self) -> "Tally":
        """The same, unless parts were refused."""
        if self.refused is not None:
            raise self.refused
        return self


def _added(first: Any, second: Any) -> Any:
    """Sum of two totals, item by item for tuples; None of no rows."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, tuple):
        return tuple(map(_added, first, second))
    return first + second


def _times(weight: int, total: Any) -> Any:
    """A total, so many times."""
    if weight == 1:
        return total
    return tuple(_times(weight, each) for each in total) if type(total) is tuple else weight * total


@dataclass(frozen=True)
class _Pass:
    """Sum of ``count`` over the batches of a part, which ``functions`` have gone over before."""

    batches: Callable[[Any], Iterable[Batch]]
    functions: tuple[Callable[[FloatArray], FloatArray], ...]
    count: Callable[[Any], Any]
    size: int
    may_change: bool

    def __call__(self, part: Any) -> Tally:
        return Tally.of(self._sum, part)

    def _sum(self, part: Any) -> Tally:
        total: Any = None
        n_rows = seen = 0
        for batch, weight in self.batches(part):
            n_rows += weight * len(batch)
            if self.may_change:
                seen += weight * checksum(batch)
            for piece in slices(batch, self.size):
                for function in self.functions:
                    piece = function(piece)
                total = _added(total, _times(weight, self.count(piece)))
        return Tally(n_rows, total, checksum=seen % 2**64)


@dataclass(frozen=True)
class Rows:
    """Rows of a table in parts, of which ``batches`` makes arrays with ``n_features`` columns.

    ``n_counted`` is their number, each as often as it weighs. ``columns`` are those of the tables
    that the rows came in, where that matters; ``checksum`` is that of all rows, where they are read
    anew for each sum. ``unit`` says what one record is, and ``mass`` what it weighs at most. Where
    ``n_people`` is known, all rows of a person weigh as much together.
    """

    parts: Parts
    batches: Callable[[Any], Iterable[Batch]]
    n_counted: int
    n_features: int
    columns: Columns | None = None
    checksum: int | None = None
    functions: tuple[Callable[[FloatArray], FloatArray], ...] = ()
    n_people: int | None = None
    unit: str = "one row"
    mass: int = 1

    @property
    def weight_of_person(self) -> int:
        """How many rows a person counts as, and a row where nobody knows whose it is."""
        return 1 if self.n_people is None else self.mass

    @property
    def n_rows(self) -> int:
        """Number of rows, or of people as often as they weigh."""
        return self.n_counted if self.n_people is None else self.n_people * self.mass

    @classmethod
    def of_array(cls, X: FloatArray, columns: Columns | None = None) -> Self:
        """Rows of one array."""
        return cls.of_arrays([X], columns)

    @classmethod
    def of_people(cls, X: FloatArray, columns: Columns | None, ids: list[Any]) -> Self:
        """Rows of one array, of the people that the ids name."""
        batches = list(weighted(X, ids, {}))
        n_counted = sum(weight * len(rows) for rows, weight in batches)
        n_people = len(set(ids))
        held = _Held(batches)
        return cls(held, iter, n_counted, X.shape[1], columns, n_people=n_people, mass=MASS)

    @classmethod
    def of_arrays(cls, arrays: list[FloatArray], columns: Columns | None = None) -> Self:
        """Rows of several arrays."""
        batches = [Batch(batch) for X in arrays for batch in slices(X, BATCH)]
        return cls(_Held(batches), iter, sum(map(len, arrays)), arrays[0].shape[1], columns)

    def sum(self, count: Callable[[FloatArray], Any], width: int = 1, n_cells: int = 1) -> Any:
        """Sum what ``count`` makes of batches of rows, each row of them by itself.

        Arrays, tuples of them, or what adds up by ``+``: exact, in whatever order. ``count`` is
        small, can be pickled, and holds public or released values alone; ``width`` numbers are
        what it needs for each row, and ``n_cells`` those that it makes of a batch.
        """
        size = max(batch_size(width), min(n_cells, BATCH))
        a_pass = _Pass(self.batches, self.functions, count, size, self.checksum is not None)
        start = time.monotonic()
        with without_quotes(_PART):
            tally = self.parts.map_reduce(a_pass)
        if not isinstance(self.parts, _Held):
            _LOG.info("one pass over all rows took %.1f s", time.monotonic() - start)
        if not isinstance(tally, Tally):
            raise ValueError("map_reduce must return the sum, by +, of function(part) over parts.")
        tally.checked()
        if (tally.n_rows, tally.checksum) != (self.n_counted, self.checksum or 0):
            raise ValueError(CHANGED)
        return tally.total

    def map(self, function: Callable[[FloatArray], FloatArray]) -> Self:
        """Rows after a function that treats each row by itself, and keeps their number."""
        if isinstance(self.parts, _Held):
            held = [Batch(function(rows), weight) for rows, weight in self.parts.batches]
            return replace(self, parts=_Held(held))
        return replace(self, functions=(*self.functions, function))

    def as_array(self) -> FloatArray:
        """Rows in memory, together, whatever they weigh."""
        held = cast(_Held, self.parts)
        return np.concatenate([rows for rows, _ in held.batches])

    def in_memory(self) -> Any:
        """Everything about the rows, for a digest; None where they are elsewhere."""
        if not isinstance(self.parts, _Held):
            return None
        return self.parts.batches, self.n_features, self.columns, self.n_people, self.mass

    def selected(self, chosen: Any) -> Self:
        """Some of the columns, by their indices."""
        return replace(self.map(partial(_columns, chosen=chosen)), n_features=len(chosen))


@dataclass(frozen=True)
class _Held:
    """Batches in memory, as one part: what is mapped once is not mapped again."""

    batches: list[Batch]

    def map_reduce(self, function: Callable[[list[Batch]], Any]) -> Any:
        return function(self.batches)


def _columns(X: FloatArray, chosen: Any) -> FloatArray:
    return X[:, chosen]


def checksum(X: FloatArray) -> int:
    """Sum of a hash of each row, modulo 2**64: the same in whatever order and parts they come."""
    # Rows are hashed whole: a sum over columns would not see values that change places.
    factors = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | 1
    total = 0
    words: Any = X.view(np.uint64)
    piece: Any
    for piece in slices(words, batch_size(X.shape[1])):
        # Round numbers use their upper bits alone.
        total += int(_mixed((piece ^ (piece >> 32)) @ factors).sum())
    return total % 2**64


def _mixed(h: Any) -> Any:
    """Integers in which each bit depends on all of them, as in SplitMix64."""
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB
    return h ^ (h >> 31)


def count_beyond(X: FloatArray, low: FloatArray, high: FloatArray) -> int:
    """Number of rows beyond bounds."""
    return int(((low > X) | (high < X)).any(axis=1).sum())


def batch_size(width: int) -> int:
    """Rows of a batch for computations that need ``width`` numbers for each."""
    return max(1, min(_PIECE, _NUMBERS // max(width, 1)))


def slices(X: FloatArray, size: int) -> Iterator[FloatArray]:
    """Pieces of at most ``size`` rows."""
    return (X[start : start + size] for start in range(0, len(X), size))


# Lower and upper ends of the columns.
Ends = tuple[FloatArray, FloatArray]
# Widths of columns for which nothing overflows.
_WIDTHS = (1e-100, 1e100)


@dataclass(frozen=True)
class Box:
    """Bounds that rows are clipped to; from ``origin``, in ``unit``, they make a cube.

    Arrays of shape (n_features,), and the least coordinate of the cube, whose largest is 1.
    """

    low: FloatArray
    high: FloatArray
    origin: FloatArray
    unit: FloatArray
    least: float

    def __post_init__(self) -> None:
        if not ((self.unit > _WIDTHS[0]) & (self.unit < _WIDTHS[1])).all():
            raise ValueError("bounds are too wide or too narrow for floating-point numbers.")

    @classmethod
    def centred(
        cls, low: FloatArray, high: FloatArray, one_unit: bool = False, units: Ends | None = None
    ) -> Self:
        """Box that becomes ``[-1, 1]**d``, or a part of it where one unit serves all columns.

        With ``units``, the ends of intervals that hold the box, these become ``[-1, 1]``.
        """
        left, right = (low, high) if units is None else units
        unit = (right - left) / 2
        if one_unit:
            unit = np.full_like(unit, unit.max())
        return cls(low, high, (left + right) / 2, unit, -1.0)

    @classmethod
    def cornered(cls, low: FloatArray, high: FloatArray) -> Self:
        """Box that becomes ``[0, 1]**d``."""
        return cls(low, high, low, high - low, 0.0)

    def to_cube(self, X: FloatArray) -> FloatArray:
        """Rows of shape (n, d), each by itself, in the cube."""
        rows = np.clip(X, self.low, self.high)
        rows -= self.origin
        rows /= self.unit
        return np.clip(rows, self.least, 1.0, out=rows)

    def points(self, cube: FloatArray) -> FloatArray:
        """Points of the cube in the box's own units."""
        return self.origin + self.unit * cube

    def covariances(self, cube: FloatArray) -> FloatArray:
        """Covariances of shape (..., d, d) in the box's own units."""
        return self.unit[:, None] * self.unit * cube

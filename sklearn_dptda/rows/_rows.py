"""Rows in batches, in memory or in parts on other machines, and the box that scales them."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np

from sklearn_dptda._typing import FloatArray, Parts
from sklearn_dptda.privacy._estimator import plain_arithmetic
from sklearn_dptda.privacy._every_estimator import step
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._people import codes_of
from sklearn_dptda.utils._validation import without_quotes, without_values

_LOG = logging.getLogger(__name__)

# Largest number of rows of a batch.
# Proof: doc/theory/private_components.md, "The sum of outer products".
BATCH = 1 << 15
# Accuracy only: these sizes change no result, since sums are exact in any order.
# Largest numbers of rows and of entries in one computation. Pieces of this size fit a cache, and
# their memory is reused for the next piece. Larger pieces would be allocated and freed each time.
_PIECE, _NUMBERS = 1 << 12, 1 << 18
_PART = "a part of the rows"
# Proof: doc/theory/people.md, "Tables of people".
# Total weight of all rows of a person. Up to 16 rows have equal weights without a remainder, and
# for a thousand rows the remainder is less than 1/700 of the total weight.
MASS = 720_720
# The message does not say what has changed, because that may be private.
CHANGED = (
    "chunks have changed between two passes, but all passes must read the same rows, bit for bit. "
    "If each pass draws or computes the rows again, or reads them from a table that changes, store "
    "them first. Budget that was already spent stays spent."
)


class Batch(NamedTuple):
    """Rows, and the weight with which each of them counts."""

    rows: FloatArray
    weight: int = 1


def weighted(
    rows: FloatArray, ids: list[Any], elsewhere: Mapping[Any, tuple[int, int]]
) -> Iterator[Batch]:
    """Yield batches in which all rows of a person have the total weight ``MASS``.

    It is smaller if ``MASS`` is not a multiple of the number of rows. ``elsewhere`` has the number
    of rows of each person whose rows are not all here. No weight depends on other people.
    Proof: doc/theory/people.md, "Tables of people".
    """
    people, codes = codes_of(ids)
    counts = np.bincount(codes, minlength=len(people))
    if elsewhere:
        counts = np.array(
            [elsewhere.get(i, (n, 1))[0] for i, n in zip(people, counts.tolist(), strict=True)]
        )
    weights = (MASS // counts)[codes]
    # Sums are exact in any order, so rows of the same weight are summed together.
    order = np.argsort(weights, kind="stable")
    rows, weights = rows[order], weights[order]
    steps = np.flatnonzero(weights[1:] != weights[:-1]) + 1
    for start, stop in pairwise([0, *steps, len(rows)]):
        for piece in slices(rows[start:stop], BATCH):
            yield Batch(piece, int(weights[start]))


@dataclass(frozen=True)
class Tally:
    """Number of rows of some parts, the sum over them, the reason of a refusal, and a checksum.

    Tallies can be added in any order. A refusal is a value, so that no machine logs it together
    with the rows.
    """

    n_rows: int
    total: Any = None
    refused: Exception | None = None
    checksum: int = 0

    @classmethod
    def of(cls, count: Callable[[Any], "Tally"], part: Any) -> "Tally":
        """Result of ``count`` for a part, or its refusal."""
        try:
            with plain_arithmetic():
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
        """Return the tally, or raise the refusal of a part."""
        if self.refused is not None:
            raise self.refused
        return self


def _added(first: Any, second: Any) -> Any:
    """Sum of two totals, item by item for tuples; None stands for no rows."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, tuple):
        return tuple(map(_added, first, second))
    return first + second


def _times(weight: int, total: Any) -> Any:
    """A total multiplied by a weight."""
    if weight == 1:
        return total
    return tuple(_times(weight, each) for each in total) if type(total) is tuple else weight * total


@dataclass(frozen=True)
class _Pass:
    """Sum of ``count`` over the batches of a part, after ``functions`` were applied to them."""

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
            for piece in _pieces(batch, self.size):
                for function in self.functions:
                    piece = function(piece)
                total = _added(total, _times(weight, self.count(piece)))
        return Tally(n_rows, total, checksum=seen % 2**64)


@dataclass(frozen=True)
class Rows:
    """Rows of a table in parts, which ``batches`` converts to arrays of ``n_features`` columns.

    Missing values are NaN, if the estimator takes them; ``known`` is then the released share of the
    other values of each column. ``n_counted`` is the sum of the weights of the rows. ``columns``
    describes the original tables. ``checksum`` is that of all rows, if they are read again for each
    sum. If ``n_people`` is not None, a record is all rows of a person.
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
    known: FloatArray | None = None

    @property
    def mass(self) -> int:
        """Largest total weight of one record."""
        return 1 if self.n_people is None else MASS

    @property
    def n_rows(self) -> int:
        """Number of rows, or the total weight of all people."""
        return self.n_counted if self.n_people is None else self.n_people * self.mass

    @classmethod
    def of_array(
        cls,
        X: FloatArray,
        columns: Columns | None = None,
        ids: list[Any] | None = None,
        unit: str = "one row",
    ) -> Self:
        """Rows of one array, which belong to the people with the given ids, if there are any."""
        if ids is None:
            n_people, batches = None, [Batch(batch) for batch in slices(X, BATCH)]
        else:
            n_people, batches = len(set(ids)), list(weighted(X, ids, {}))
        n_counted = sum(weight * len(rows) for rows, weight in batches)
        held = _Held(batches)
        return cls(held, iter, n_counted, X.shape[1], columns, n_people=n_people, unit=unit)

    def sum(self, count: Callable[[FloatArray], Any], width: int = 1, n_cells: int = 1) -> Any:
        """Sum the results of ``count`` over batches of rows; it treats each row separately.

        The results are arrays, tuples of arrays, or objects with ``+``, and their sum is exact in
        every order. ``count`` must be small, must support pickling, and may hold only public or
        released values. It needs ``width`` values for each row, and returns ``n_cells``.
        """
        size = max(batch_size(width), min(n_cells, BATCH))
        a_pass = _Pass(self.batches, self.functions, count, size, self.checksum is not None)
        start = time.monotonic()
        with step("pass over the rows"), without_quotes(_PART):
            tally = self.parts.map_reduce(a_pass)
        if not isinstance(self.parts, _Held):
            _LOG.info("one pass over all rows took %.1f s", time.monotonic() - start)
        if not isinstance(tally, Tally):
            raise ValueError(
                "map_reduce must return the sum of function(part) over all parts, computed with +."
            )
        tally.checked()
        if (tally.n_rows, tally.checksum) != (self.n_counted, self.checksum or 0):
            raise ValueError(CHANGED)
        return tally.total

    def through(self, function: Callable[[FloatArray], FloatArray]) -> Self:
        """Apply a function to each piece of each later pass, which takes no memory.

        It treats each row separately, and keeps the number of rows.
        """
        return replace(self, functions=(*self.functions, function))

    def map(self, function: Callable[[FloatArray], FloatArray], *, reuse: bool = False) -> Self:
        """Apply a function as :meth:`through` does, but once if the rows are in memory.

        With ``reuse``, the result takes the memory of these rows if they are the result of a
        function, and they must not be used afterwards.
        """
        later = self.through(function)
        if not isinstance(self.parts, _Held):
            return later
        held = self.parts.after(later.functions, reuse)
        return replace(self, parts=held, functions=())

    def within(self, low: FloatArray, high: FloatArray) -> Self:
        """Only the rows within bounds. The others add nothing to any sum."""
        later = self.through(partial(_inside, low=low, high=high))
        if not isinstance(self.parts, _Held):
            return later
        return replace(self, parts=self.parts.chosen(later.functions), functions=())

    def onto(self, function: Callable[[FloatArray], FloatArray], n_features: int) -> Self:
        """Apply a function as :meth:`map` does, which returns rows of this many columns."""
        return replace(self.map(function), n_features=n_features)

    def in_memory(self) -> Any:
        """All data of the rows, for a digest; None if the rows are not in memory."""
        if not isinstance(self.parts, _Held):
            return None
        return self.parts.batches, self.n_features, self.columns, self.n_people

    def selected(self, chosen: Any) -> Self:
        """Select columns by their indices."""
        first, n = int(chosen[0]), len(chosen)
        neighbours = np.array_equal(chosen, np.arange(first, first + n))
        if neighbours and n == self.n_features:
            return self
        known = None if self.known is None else self.known[chosen]
        # Neighbouring columns are not copied.
        columns = slice(first, first + n) if neighbours else chosen
        taken = self.through(itemgetter((slice(None), columns)))
        return replace(taken, n_features=n, known=known)

    def kept(self) -> Self:
        """The same rows, whose memory no later step may take."""
        if not isinstance(self.parts, _Held):
            return self
        return replace(self, parts=_Held(self.parts.batches))


@dataclass(frozen=True)
class _Held:
    """Batches in memory as one part; ``made`` says whether they are results of functions.

    ``n_left_out`` is the weight of the rows that have been left out.
    """

    batches: list[Batch]
    made: bool = False
    n_left_out: int = 0

    def map_reduce(self, function: Callable[[list[Batch]], Any]) -> Any:
        return function(self.batches) + Tally(self.n_left_out)

    def after(self, functions: Sequence[Callable[[FloatArray], FloatArray]], reuse: bool) -> Self:
        """Apply functions once; the memory of these batches may be used again."""
        reuse = reuse and self.made
        made = [
            Batch(_applied(functions, rows, rows if reuse else None), weight)
            for rows, weight in self.batches
        ]
        if reuse:
            # Later passes over the rows that were here then raise an error.
            self.batches.clear()
        return replace(self, batches=made, made=True)

    def chosen(self, functions: Sequence[Callable[[FloatArray], FloatArray]]) -> Self:
        """Apply functions of which one leaves rows out."""
        made, n_left_out = [], self.n_left_out
        for rows, weight in self.batches:
            pieces = []
            for piece in _pieces(rows, batch_size(rows.shape[1])):
                for function in functions:
                    piece = function(piece)
                pieces.append(piece)
            made.append(Batch(np.concatenate(pieces), weight))
            n_left_out += weight * (len(rows) - len(made[-1].rows))
        return replace(self, batches=made, made=True, n_left_out=n_left_out)


def _applied(
    functions: Sequence[Callable[[FloatArray], FloatArray]],
    rows: FloatArray,
    place: FloatArray | None,
) -> FloatArray:
    """Apply functions to pieces of rows, so that only the result is as large as the rows."""
    size, start = batch_size(rows.shape[1]), 0
    for piece in _pieces(rows, size):
        for function in functions:
            piece = function(piece)
        if place is None or place.shape[1] != piece.shape[1]:
            place = np.empty((len(rows), piece.shape[1]), order="F")
        place[start : start + size] = piece
        start += size
    return rows if place is None else place


def _pieces(rows: FloatArray, size: int) -> Iterator[FloatArray]:
    """Pieces of at most ``size`` rows, whose columns are contiguous.

    NumPy loops over the longer axis if it is contiguous, and a row is short.
    """
    # Of no rows, there is one piece, so that sums have their shapes.
    for piece in slices(rows, size) if len(rows) else [rows]:
        yield piece if piece.strides[0] == piece.itemsize else np.asfortranarray(piece)


def checksum(X: FloatArray) -> int:
    """Sum of a hash of each row, modulo 2**64, which is the same in every order and partition."""
    # Each row is hashed as a whole. A sum over columns would not detect values that swap places.
    factors = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | 1
    total = 0
    words: Any = X.view(np.uint64)
    piece: Any
    for piece in slices(words, batch_size(X.shape[1])):
        # Round numbers have zeros in their lower bits, so the upper bits are mixed in.
        total += int(_mixed((piece ^ (piece >> 32)) @ factors).sum())
    return total % 2**64


def _mixed(h: Any) -> Any:
    """Mix the bits of integers as in SplitMix64, so that each bit depends on all others."""
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB
    return h ^ (h >> 31)


def about(X: FloatArray, centre: FloatArray) -> FloatArray:
    """Differences from a centre. Those of missing values are zero."""
    differences = X - centre
    if (gaps := np.isnan(differences)).any():
        differences[gaps] = 0.0
    return differences


def count_beyond(X: FloatArray, low: FloatArray, high: FloatArray) -> int:
    """Number of rows outside the bounds."""
    beyond = low > X
    beyond |= high < X
    return int(beyond.any(axis=1).sum()) if beyond.any() else 0


def _inside(X: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Rows within the bounds, of which missing values are no reason to leave them out."""
    return X[~((low > X) | (high < X)).any(axis=1)]


def batch_size(width: int) -> int:
    """Number of rows of a batch for computations that need ``width`` numbers for each row."""
    return max(1, min(_PIECE, _NUMBERS // max(width, 1)))


def slices(X: FloatArray, size: int) -> Iterator[FloatArray]:
    """Pieces of at most ``size`` rows."""
    return (X[start : start + size] for start in range(0, len(X), size))


# Lower and upper ends of the columns.
Ends = tuple[FloatArray, FloatArray]
# Accuracy only: other widths are refused.
# Range of the widths of columns in which nothing overflows.
_WIDTHS = (1e-100, 1e100)


@dataclass(frozen=True)
class Box:
    """Bounds to which rows are clipped, and the scaling of rows to a cube.

    ``origin`` and ``unit`` are those of the cube in each column. ``least`` is the smallest
    coordinate of the cube; the largest one is 1. ``spreads`` are released standard deviations of
    the columns in the cube, NaN or None where there are none.
    """

    low: FloatArray
    high: FloatArray
    origin: FloatArray
    unit: FloatArray
    least: float
    spreads: FloatArray | None = None

    def __post_init__(self) -> None:
        if not ((self.unit > _WIDTHS[0]) & (self.unit < _WIDTHS[1])).all():
            raise ValueError(
                "bounds are too wide or too narrow for floating-point numbers. Change the units of "
                "the columns."
            )

    @classmethod
    def centred(
        cls, low: FloatArray, high: FloatArray, one_unit: bool = False, units: Ends | None = None
    ) -> Self:
        """Box that is scaled to ``[-1, 1]**d``, or to a part of it if all columns share one unit.

        If ``units`` are given, these intervals, which contain the box, are scaled to ``[-1, 1]``.
        """
        left, right = (low, high) if units is None else units
        unit = (right - left) / 2
        if one_unit:
            unit = np.full_like(unit, unit.max())
        return cls(low, high, (left + right) / 2, unit, -1.0)

    @classmethod
    def cornered(cls, low: FloatArray, high: FloatArray) -> Self:
        """Box that is scaled to ``[0, 1]**d``."""
        return cls(low, high, low, high - low, 0.0)

    def to_cube(self, X: FloatArray) -> FloatArray:
        """Scale rows of shape (n, d) to the cube, each row separately."""
        rows = np.clip(X, self.low, self.high)
        rows -= self.origin
        rows /= self.unit
        return np.clip(rows, self.least, 1.0, out=rows)

    def points(self, cube: FloatArray) -> FloatArray:
        """Convert points of the cube to the units of the box."""
        return self.origin + self.unit * cube

    def inside(self, cube: FloatArray) -> FloatArray:
        """Convert points of the cube to the units of the box, and move them into the bounds.

        Noise may put a mean outside of the bounds of all rows.
        """
        return np.clip(self.points(cube), self.low, self.high)

    def covariances(self, cube: FloatArray) -> FloatArray:
        """Convert covariances of shape (..., d, d) to the units of the box."""
        return self.unit[:, None] * self.unit * cube

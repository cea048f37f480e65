"""Tables with categorical columns: public lists of values, and codes in their place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sklearn_dptda._typing import BoolArray, FloatArray, Table
from sklearn_dptda.rows._rows import Box
from sklearn_dptda.rows._tables import Coded
from sklearn_dptda.utils._frames import Columns, is_missing, kind_of, open_frame
from sklearn_dptda.utils._validation import refuse_lossy, without_quotes

# Accuracy only: numbers of values are public.
# Axes with more values than this count as continuous, since halvings never get that far.
_MOST_VALUES = 1 << 32
# Largest number of values of an axis on which a missing one is one more value. Axes of more values
# have cells of several ones.
_MOST_BESIDE_GAPS = 16


@dataclass(frozen=True)
class CodedTable:
    """Columns, some of which contain codes in place of categories."""

    columns: Columns

    @property
    def numeric(self) -> list[int]:
        """Numbers of the columns that are not categorical."""
        return [
            place for place in range(len(self.columns.names)) if place not in self.columns.choices
        ]

    @property
    def may_miss(self) -> BoolArray:
        """Whether values of each column may be missing."""
        return np.isin(np.arange(len(self.columns.names)), list(self.columns.gaps))

    def in_types(self, places: list[int], low: FloatArray, high: FloatArray) -> FloatArray:
        """Private bounds of numeric columns. Bounds of integers stay within their types."""
        ends = np.array([low, high])
        for j, place in enumerate(places):
            if self.columns.is_integer(place):
                least, most = self.columns.limits(place, -np.inf, np.inf)
                ends[:, j] = np.clip([np.floor(low[j]), np.ceil(high[j])], least, most)
        return ends

    def axes(self, low: FloatArray, high: FloatArray) -> "Axes":
        """Axes of the unit cube, from the bounds of numeric columns.

        Integers and codes are in the middle of cells of width one.
        """
        ends = np.zeros((2, len(self.columns.names)))
        sizes = np.full(len(self.columns.names), np.inf)
        for place, values in self.columns.choices.items():
            ends[1, place] = len(values) - 1
        for place, *bounds in zip(self.numeric, low, high, strict=True):
            ends[:, place] = self.columns.limits(place, *bounds)
            if ends[0, place] > ends[1, place]:
                name = self.columns.names[place]
                raise ValueError(
                    f"the bounds of column {name!r} have no whole number between them. Pass wider "
                    "bounds."
                )
        whole = [
            j for j in range(len(sizes)) if j in self.columns.choices or self.columns.is_integer(j)
        ]
        sizes[whole] = ends[1, whole] - ends[0, whole] + 1
        ends[:, whole] += [[-0.5], [0.5]]
        sizes = np.where(sizes > _MOST_VALUES, np.inf, sizes)
        return Axes(Box.cornered(*ends), sizes, self.may_miss)

    def decode(self, points: FloatArray, axes: "Axes") -> Table:
        """Points of the unit cube as a table of the kind that was given to fit."""
        decoded = []
        rows, missing = axes.rows(points)
        for place, values in enumerate(rows.T):
            if place in self.columns.choices:
                column = self._category(place, values, missing[:, place])
            else:
                ends = axes.box.low[place], axes.box.high[place]
                column = self.columns.numbers(place, values, *ends, missing=missing[:, place])
            decoded.append(column)
        return self.columns.table(decoded)

    def _category(self, place, values, missing):
        choices = self.columns.choices[place]
        codes = np.clip(np.rint(values), 0, len(choices) - 1).astype(np.int64)
        found = [
            None if gap else choices[code]
            for code, gap in zip(codes.tolist(), missing.tolist(), strict=True)
        ]
        return self.columns.values(place, found)


@dataclass(frozen=True)
class Axes:
    """The unit cube of a table: its box, numbers of values, and which values may be missing.

    An axis of few values has one more for a missing one. An axis of numbers or of many values has
    these in its lower half, and its upper half stands for a missing one, so that one halving tells
    them apart.
    """

    box: Box
    n_values: FloatArray
    gaps: BoolArray

    @property
    def sizes(self) -> FloatArray:
        """Numbers of values of the axes, infinite for numbers."""
        long = self.gaps & (self.n_values > _MOST_BESIDE_GAPS)
        return np.where(long, np.inf, self.n_values + self.gaps)

    @property
    def _shares(self):
        """Shares of the axes that values take."""
        with np.errstate(invalid="ignore"):
            part = np.where(np.isinf(self.sizes), 0.5, self.n_values / self.sizes)
        return np.where(self.gaps, part, 1.0)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scale rows to the unit cube, each row separately."""
        cube = self.box.to_cube(X)
        if not self.gaps.any():
            return cube
        shares = self._shares
        cube = np.where(self.gaps, np.minimum(cube * shares, np.nextafter(shares, 0)), cube)
        return np.where(self.gaps & np.isnan(X), (1 + shares) / 2, cube)

    def rows(self, cube: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Rows in the units of the columns, and which values are missing."""
        missing = self.gaps & (cube >= self._shares)
        return self.box.points(np.minimum(cube / self._shares, 1.0)), missing

    def line(self, place: int, ends: FloatArray, below: FloatArray) -> FloatArray:
        """Ends of the cells of a column in its units, beside the mass below each.

        The last mass is that of all values, if some are missing.
        """
        share = self._shares[place]
        # A cell of a long list may contain the last value and the missing ones.
        most, inside = np.interp(share, ends, below), ends < share
        ends, below = np.r_[ends[inside], share], np.r_[below[inside], most]
        points = self.box.origin[place] + self.box.unit[place] * ends / share
        return np.column_stack([points, below])


@without_quotes()
def code_table(
    X: Any, categories: Mapping[Any, Any] | None, missing: bool | Sequence[Any] = False
) -> Coded:
    """The table with codes in place of categories, and their public lists by number of column.

    Values that are missing in columns in which they may be become NaN. Input that does not have two
    dimensions is returned unchanged, so that later checks refuse it.
    """
    refuse_lossy(X, complex_too=False)
    if (categories or missing) and not hasattr(X, "shape"):
        X = np.array(X, dtype=object)
    if len(getattr(X, "shape", ())) != 2 or issparse(X):
        return Coded(X)
    columns = Columns.of(X, X.shape[1]).may_miss(missing)
    gaps = columns.gaps
    choices = _choices(X, columns.names, categories or {}, gaps)
    typed = Columns.of(X, X.shape[1], choices)
    if not choices and not gaps:
        return Coded(X)
    for place, listed in choices.items():
        _check_type(typed, place, listed)
    coded = []
    for place, column in enumerate(_columns(X)):
        if place in choices:
            column = _codes(column, choices[place], columns.names[place], place in gaps)
        elif place in gaps:
            column = _numbers(column)
        coded.append(column)
    return Coded(columns.table(coded), choices, gaps)


def _numbers(column):
    """Numbers, NaN where they are missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return column.astype(np.float64)
    values = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
    return np.array([np.nan if is_missing(value) else float(value) for value in values])


def _columns(X):
    """Columns of an array or a data frame, one by one."""
    frame = open_frame(X)
    return np.asarray(X).T if frame is None else frame.iter_columns()


def _choices(X, names, categories, gaps):
    """Checked lists by number of column. Those of Boolean columns are known."""
    unknown = [name for name in categories if name not in names]
    if unknown:
        raise ValueError(f"categories has columns that X does not have: {unknown!r}.")
    choices = {}
    for place, (name, column) in enumerate(zip(names, _columns(X), strict=True)):
        if name in categories:
            choices[place] = _checked(categories[name], name)
        elif kind_of(column) == "b" or (place in gaps and _holds_booleans(column)):
            choices[place] = [False, True]
        elif not _is_numeric(column):
            raise ValueError(
                f"column {name!r} is not numeric. Pass categories={{{name!r}: [...]}}, the list of "
                "its values, which must not depend on the rows, or convert it to numbers."
            )
    return choices


def _holds_booleans(column):
    """Whether a column without a type holds truth values, of which some are missing."""
    # In a frame, other objects are refused. In an array, they would be numbers, so that one record
    # would decide about the kind of its column.
    if isinstance(column, np.ndarray) or kind_of(column) != "O":
        return False
    known = [value for value in column if not is_missing(value)]
    return len(known) > 0 and all(isinstance(value, bool | np.bool_) for value in known)


def _is_numeric(column):
    if kind_of(column) not in "OUS":
        return True
    if not isinstance(column, np.ndarray):
        return False
    try:
        column.astype(float)
    except ValueError:
        return False
    except TypeError:
        pass  # scikit-learn refuses it later
    return True


def _checked(values, name):
    try:
        listed = [] if isinstance(values, str) else list(values)
        repeated = len(set(listed)) < len(listed)
    except TypeError:
        listed, repeated = [], False
    if not listed or repeated:
        raise ValueError(
            f"categories of column {name!r} must be a list of at least one value, without "
            "duplicates."
        )
    return listed


def _codes(column, choices, name, has_gaps):
    """Places of the values of a column in the list. Errors do not quote other values."""
    codes = {value: float(code) for code, value in enumerate(choices)}
    values = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
    try:
        if not has_gaps:
            return np.array([codes[value] for value in values])
        return np.array(
            [
                np.nan if value not in codes and is_missing(value) else codes[value]
                for value in values
            ]
        )
    except (KeyError, TypeError):
        raise ValueError(
            f"column {name!r} has values that are missing, or not in its list of categories. The "
            "list must contain all possible values. To keep missing values, pass missing=True."
        ) from None


def _check_type(columns, place, listed):
    """Refuse lists whose values would change in a column of this type."""
    try:
        kept = list(columns.values(place, listed)) == listed
    except Exception:  # each library raises its own exceptions
        kept = False
    if not kept:
        name = columns.names[place]
        raise ValueError(f"categories of column {name!r} are not of the type of the column.")

"""Tables with categorical columns: public lists of values, and codes in their place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sklearn_dptda._typing import FloatArray, Table
from sklearn_dptda.rows._rows import Box
from sklearn_dptda.utils._frames import Columns, kind_of, open_frame
from sklearn_dptda.utils._validation import refuse_lossy, without_quotes

# Axes with more values than this count as continuous, since halvings never get that far.
_MOST_VALUES = 1 << 32


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

    def in_types(self, places: list[int], low: FloatArray, high: FloatArray) -> FloatArray:
        """Private bounds of numeric columns. Bounds of integers stay within their types."""
        ends = np.array([low, high])
        for j, place in enumerate(places):
            if self.columns.is_integer(place):
                least, most = self.columns.limits(place, -np.inf, np.inf)
                ends[:, j] = np.clip([np.floor(low[j]), np.ceil(high[j])], least, most)
        return ends

    def cells(self, low: FloatArray, high: FloatArray) -> tuple[Box, FloatArray]:
        """Box, and number of values along each of its axes, from the bounds of numeric columns.

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
        return Box.cornered(*ends), np.where(sizes > _MOST_VALUES, np.inf, sizes)

    def decode(self, points: FloatArray, box: Box) -> Table:
        """Points of the box as a table of the kind that was given to fit."""
        decoded = []
        for place, values in enumerate(points.T):
            if place in self.columns.choices:
                decoded.append(self._category(place, values))
            else:
                ends = box.low[place], box.high[place]
                decoded.append(self.columns.numbers(place, values, *ends))
        return self.columns.table(decoded)

    def _category(self, place, values):
        choices = self.columns.choices[place]
        codes = np.clip(np.rint(values), 0, len(choices) - 1).astype(np.int64)
        return self.columns.values(place, [choices[code] for code in codes])


@without_quotes()
def code_table(X: Any, categories: Mapping[Any, Any] | None) -> tuple[Any, dict[int, list[Any]]]:
    """The table with codes in place of categories, and their public lists by number of column.

    Input that does not have two dimensions is returned unchanged, so that later checks refuse it.
    """
    refuse_lossy(X, complex_too=False)
    if categories and not hasattr(X, "shape"):
        X = np.array(X, dtype=object)
    if len(getattr(X, "shape", ())) != 2 or issparse(X):
        return X, {}
    columns = Columns.of(X, X.shape[1])
    choices = _choices(X, columns.names, categories or {})
    if not choices:
        return X, {}
    typed = Columns.of(X, X.shape[1], choices)
    for place, listed in choices.items():
        _check_type(typed, place, listed)
    coded = [
        _codes(column, choices[place], columns.names[place]) if place in choices else column
        for place, column in enumerate(_columns(X))
    ]
    return columns.table(coded), choices


def _columns(X):
    """Columns of an array or a data frame, one by one."""
    frame = open_frame(X)
    return np.asarray(X).T if frame is None else frame.iter_columns()


def _choices(X, names, categories):
    """Checked lists by number of column. Those of Boolean columns are known."""
    unknown = [name for name in categories if name not in names]
    if unknown:
        raise ValueError(f"categories has columns that X does not have: {unknown!r}.")
    choices = {}
    for place, (name, column) in enumerate(zip(names, _columns(X), strict=True)):
        if name in categories:
            choices[place] = _checked(categories[name], name)
        elif kind_of(column) == "b":
            choices[place] = [False, True]
        elif not _is_numeric(column):
            raise ValueError(
                f"column {name!r} is not numeric. Pass categories={{{name!r}: [...]}}, the list of "
                "its values, which must not depend on the rows, or convert it to numbers."
            )
    return choices


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


def _codes(column, choices, name):
    """Places of the values of a column in the list. Errors do not quote other values."""
    codes = {value: code for code, value in enumerate(choices)}
    try:
        return np.array([codes[value] for value in column], dtype=np.int64)
    except (KeyError, TypeError):
        raise ValueError(
            f"column {name!r} has values that are missing, or not in its list of categories. The "
            "list must contain all possible values."
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

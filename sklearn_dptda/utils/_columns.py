"""Columns of a table as it was given: its container, their names and types, which are public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np

_FRAMES = ("pandas", "polars")


def kind_of(dtype: Any) -> str:
    """NumPy's letter for a type of NumPy, pandas or polars; ``"O"`` for what has none."""
    if hasattr(dtype, "is_temporal"):  # polars
        kinds = {
            "M": dtype.is_temporal(),
            "b": str(dtype) == "Boolean",
            "i": dtype.is_integer(),
            "f": dtype.is_numeric(),
        }
        return next((kind for kind, is_it in kinds.items() if is_it), "O")
    # Periods of pandas are objects to NumPy.
    return "M" if hasattr(dtype, "freq") else getattr(dtype, "kind", "O")


def frame_library(X: Any) -> str | None:
    """The library whose data frame this is, of those that frames are made for."""
    library = type(X).__module__.partition(".")[0]
    return library if library in _FRAMES and len(getattr(X, "shape", ())) == 2 else None


@dataclass(frozen=True)
class Columns:
    """Container, names and types of a table: what is public without its rows.

    ``library`` is None for arrays, whose names are numbers. A type is kept for integers, truth
    values and public lists alone: what the others learnt from their rows is not.
    """

    library: str | None
    names: Sequence[Any]
    dtypes: Sequence[Any]

    @classmethod
    def of(cls, X: Any, n_features: int, choices: Mapping[int, list] | None = None) -> Self:
        """Columns of a table, some with public lists of values, by their numbers."""
        library = frame_library(X)
        if library is None:
            names, dtypes = list(range(n_features)), [getattr(X, "dtype", None)] * n_features
        else:
            names, dtypes = list(X.columns), list(X.dtypes)
        choices = choices or {}
        kept = [_public(dtype, choices.get(place)) for place, dtype in enumerate(dtypes)]
        return cls(library, names, kept)

    def shared(self, other: Self) -> Self:
        """Columns of both tables together: whole numbers and others make others."""
        pairs = zip(self.dtypes, other.dtypes, strict=True)
        dtypes = [mine if mine == theirs else None for mine, theirs in pairs]
        return type(self)(self.library, self.names, dtypes)

    def is_integer(self, place: int) -> bool:
        """Whether a column holds whole numbers."""
        return kind_of(self.dtypes[place]) in "iu"

    def limits(self, place: int, low: float, high: float) -> tuple[float, float]:
        """Ends of a column within bounds: of integers the last ones that its type has."""
        kind = kind_of(self.dtypes[place])
        if kind == "b":
            return 0.0, 1.0
        if kind not in "iu":
            return low, high
        info = np.iinfo(_numpy_type(self.dtypes[place]))
        # The float next to the largest integer of 64 bits is one too many.
        most = info.max if info.bits < 64 else np.nextafter(float(info.max), 0.0)
        return max(float(np.ceil(low)), float(info.min)), min(float(np.floor(high)), float(most))

    def numbers(self, place: int, values: np.ndarray, low: float, high: float) -> Any:
        """Numbers as a column: integers are rounded, within bounds."""
        if kind_of(self.dtypes[place]) not in "iub":
            return values
        whole = np.rint(np.clip(values, *self.limits(place, low, high)))
        return self.values(place, whole.astype(_numpy_type(self.dtypes[place])))

    def values(self, place: int, values: list[Any] | np.ndarray) -> Any:
        """Values as a column of its type."""
        dtype = self.dtypes[place]
        if self.library is None:
            return np.array(values, dtype=object if dtype is None else dtype)
        series = import_module(self.library).Series(values)
        if dtype is None:
            return series
        return series.cast(dtype) if self.library == "polars" else series.astype(dtype)

    def table(self, columns: Sequence[Any]) -> Any:
        """A table of the same kind."""
        if self.library is None:
            return np.column_stack(columns)
        # By number first: names need not be strings, nor differ.
        numbered = {str(place): column for place, column in enumerate(columns)}
        frame = import_module(self.library).DataFrame(numbered)
        frame.columns = self.names
        return frame

    def of_numbers(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
        """A table of the same kind from an array of floats."""
        return self.table(
            [self.numbers(j, X[:, j], low[j], high[j]) for j in range(len(self.names))]
        )


def _public(dtype, choices):
    if choices is None:
        return dtype if kind_of(dtype) in "iub" else None
    if getattr(dtype, "ordered", None) is not None:  # of pandas
        return type(dtype)(choices, dtype.ordered)
    if type(dtype).__name__ == "Enum":  # of polars
        return type(dtype)(choices)
    if isinstance(dtype, np.dtype) and dtype.kind in "US":
        # Their length is that of the longest record.
        return np.dtype(dtype.kind)
    return dtype


def _numpy_type(dtype):
    name = str(getattr(dtype, "numpy_dtype", dtype)).lower()
    return np.dtype("bool" if name == "boolean" else name)

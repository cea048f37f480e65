"""Kinds of tables, where their parts are, and how they are refused without quoting a value."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from traceback import walk_tb
from typing import Any, Self

import numpy as np
import scipy
import sklearn
from numpy.typing import ArrayLike

from sklearn_dptda._typing import Table
from sklearn_dptda.privacy._warnings import code_of

HOLDS_DATES = (
    "holds dates or times: turn them into numbers, such as days since a public day, first "
    "(user guide, 'Your table')."
)
NOT_FINITE = (
    "NaN or infinity. Fill missing values with public constants: an imputer learns exact "
    "statistics of the records (user guide, 'Your table')."
)
# What scikit-learn or NumPy say, and what is said here: without the values that they quote.
_QUOTING = (
    (r"(?s)\narray=.*\.\n(?=Reshape)", " "),
    (r"(?s)(Complex data not supported).*", r"\1"),
    (r"(?s)could not convert string .*", "X contains strings that are no numbers."),
    # They recommend imputers.
    (r"(?s)(Input )?X contains (NaN|infinity).*", f"X contains {NOT_FINITE}"),
    (r"(?s)float\(\) argument must be .* not 'NAType'", f"X contains {NOT_FINITE}"),
    (r"(?s)invalid literal for .*", "X contains strings that are no numbers."),
)
# Code whose messages are known: ours, and what reads arrays for it.
_KNOWN = (*code_of(np, scipy, sklearn), contextlib.__file__)
# What NumPy says of an object of Python or pandas that is a date or a time.
_DATES = re.compile(
    r"not '(?:\w+\.)*(date|datetime|time|timedelta|Timestamp|Timedelta|Period|NaTType)'"
)


@contextmanager
def without_quotes(name: str = "X") -> Iterator[None]:
    """Keep the values of records out of what is said while they are read, by whatever code."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        raise without_values(error, name) from None


def without_values(error: Exception, name: str = "X") -> Exception:
    """What may be told of an error that was raised while records were read.

    What scikit-learn and NumPy say, without the values that they quote; of other code, such as a
    reader of files, the type of the error alone.
    """
    message = str(error)
    for pattern, replacement in _QUOTING:
        message = re.sub(pattern, replacement, message)
    if isinstance(error, TypeError) and _DATES.search(message):
        return ValueError(f"{name} {HOLDS_DATES}")
    if message != str(error):
        return ValueError(message)
    if _is_known(error):
        return error
    return ValueError(f"{name} could not be read ({type(error).__name__}).")


def _is_known(error: Exception) -> bool:
    """Whether an error is a refusal by code whose messages are known, and that called no other."""
    frames = walk_tb(error.__traceback__)
    return type(error) in (ValueError, TypeError) and all(
        frame.f_code.co_filename.startswith(_KNOWN) for frame, _ in frames
    )


_FRAMES = ("pandas", "polars")
# Sums that one task of Dask adds up: enough for a shallow tree, and few at once on one worker.
_SUMS_PER_TASK = 8
_GATHERED = (
    "is a Dask collection, and nothing is gathered in silence. Private estimators of rows count it "
    "where it is, in fit, and map predict and transform over it; X.compute() brings it here."
)
_SUMS_ALONE = (
    "gives sums over its parts alone, by map_reduce, which private estimators of rows take in fit; "
    "here rows in memory are needed."
)


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
    # Public lists of the values of columns of categories, by their numbers.
    choices: Mapping[int, list[Any]] = field(default_factory=dict)

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
        return cls(library, names, kept, choices)

    def shared(self, other: Self) -> Self:
        """Columns of both tables together: whole numbers and others make others."""
        pairs = zip(self.dtypes, other.dtypes, strict=True)
        dtypes = [mine if mine == theirs else None for mine, theirs in pairs]
        return type(self)(self.library, self.names, dtypes, self.choices)

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
        # Columns get their numbers as names first: names need not be strings, nor differ.
        numbered = {str(place): column for place, column in enumerate(columns)}
        frame = import_module(self.library).DataFrame(numbered)
        frame.columns = self.names
        return frame

    def of_numbers(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
        """A table of the same kind from an array of floats."""
        return self.table(
            [self.numbers(j, X[:, j], low[j], high[j]) for j in range(len(self.names))]
        )


def _public(dtype: Any, choices: list[Any] | None) -> Any:
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


def _numpy_type(dtype: Any) -> np.dtype[Any]:
    name = str(getattr(dtype, "numpy_dtype", dtype)).lower()
    return np.dtype("bool" if name == "boolean" else name)


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask: an array, a data frame, something delayed."""
    return any(kind.__module__.startswith("dask") for kind in type(X).__mro__) or (
        # Collections of other libraries may also hold what is here.
        hasattr(type(X), "__dask_graph__") and X.__dask_graph__() is not None
    )


def refuse_dask(X: Any, name: str = "X") -> None:
    """Refuse what NumPy would gather into memory without a word, and what it could not gather."""
    # One item of each type in a list is enough; most lists are of one type.
    items = {type(item): item for item in X}.values() if isinstance(X, list | tuple) else ()
    if any(map(is_dask, (X, *items))):
        raise ValueError(f"{name} {_GATHERED}")
    if _has_map_reduce(X):
        raise ValueError(f"{name} {_SUMS_ALONE}")


def parts_elsewhere(X: Any) -> Any:
    """What sums over the parts of rows that lie elsewhere, or None where they do not.

    Objects with a method ``map_reduce`` do so themselves.
    """
    if of_dask(X):
        return DaskParts(X)
    return X if _has_map_reduce(X) else None


def _has_map_reduce(X: Any) -> bool:
    # A column of a frame may have the name.
    return callable(getattr(X, "map_reduce", None))


def of_dask(X: Any) -> bool:
    """Whether X is a collection of Dask, or a list of what is delayed."""
    return is_dask(X) or (isinstance(X, list | tuple) and len(X) > 0 and all(map(is_dask, X)))


class DaskParts:
    """Parts of a Dask array or data frame, or of a list of delayed ones."""

    def __init__(self, X: Any) -> None:
        if hasattr(type(X), "to_delayed") and len(getattr(X, "shape", ())) != 2:
            raise ValueError(
                f"X is no table but a {type(X).__name__}: of Dask's collections, arrays of two "
                "dimensions, data frames and lists of delayed tables are read."
            )
        self._X = X

    @property
    def head(self) -> Table | None:
        """A table without rows that is like them; None where that is not known ahead."""
        if hasattr(type(self._X), "columns"):
            return self._X._meta
        if hasattr(type(self._X), "to_delayed"):
            return np.empty((0, self._X.shape[1]), self._X.dtype)
        return None

    @cached_property
    def _parts(self) -> list[Any]:
        return delayed_parts(self._X)

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """What is delayed in place of delayed tables: a list of a list, else one."""
        from dask import delayed

        each = delayed(function, traverse=False)
        mapped = [each(part) for part in self._parts]
        return mapped if isinstance(self._X, list | tuple) else mapped[0]

    def map_reduce(self, function: Callable[[Any], Any]) -> Any:
        """Apply a function to each part where it is, and add up by a tree."""
        from dask import delayed

        # Sent once to each machine, and not looked into for collections.
        shared = delayed(function, traverse=False)
        sums = [delayed(_applied)(shared, part) for part in self._parts]
        while len(sums) > 1:
            sums = [
                delayed(sum)(sums[i : i + _SUMS_PER_TASK])
                for i in range(0, len(sums), _SUMS_PER_TASK)
            ]
        return sums[0].compute()


def whole_rows(X: Any) -> Any:
    """An array of Dask in chunks that hold all columns; frames do already."""
    return X.rechunk({1: -1}) if hasattr(type(X), "rechunk") and X.ndim == 2 else X


def delayed_parts(X: Any) -> list[Any]:
    """Parts of a collection of Dask, or of a list of them, each with all columns."""
    if isinstance(X, list | tuple):
        return [part for each in X for part in delayed_parts(each)]
    if not hasattr(type(X), "to_delayed"):
        return [X]
    parts = whole_rows(X).to_delayed()
    return list(parts.ravel() if hasattr(parts, "ravel") else parts)


def _applied(function: Callable[[Any], Any], part: Any) -> Any:
    return function(part)


def refuse_lossy(value: ArrayLike, name: str = "X", *, complex_too: bool = True) -> None:
    """Refuse masks, dates, imaginary parts, and what lies on other machines.

    Parameters
    ----------
    value : array-like
        Of a list the items are looked at.
    name : str
    complex_too : bool, default=True
        False where imaginary parts are refused elsewhere.

    Raises
    ------
    ValueError
        Without any value.
    """
    refuse_dask(value, name)
    parts = [value, *value] if isinstance(value, list | tuple) else [value]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} has masked entries, which would count as if they were none: drop or fill them."
        )
    if frame_library(value) is None:
        dates = [name for part in parts if kind_of(getattr(part, "dtype", None)) in "mM"]
    else:
        columns = zip(value.columns, value.dtypes, strict=True)  # type: ignore[union-attr]
        dates = [f"column {label!r}" for label, dtype in columns if kind_of(dtype) in "mM"]
    if dates:
        raise ValueError(f"{dates[0]} {HOLDS_DATES}")
    try:
        lossy = complex_too and np.iscomplexobj(value)
    except Exception:
        # Ragged, or not to be read, which is refused by whoever needs an array.
        return
    if lossy:
        raise ValueError(f"{name} must be real, not complex.")

"""Kinds of tables, the parts of tables on other machines, and errors that quote no values."""

import contextlib
import re
from collections import Counter
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
    "holds dates or times. Convert them to numbers first, such as days since a public day "
    "(user guide, 'Your table')."
)
HOLDS_TEXT = (
    "contains strings that are not numbers. Leave such columns out, or code them by public lists "
    "of values (user guide, 'Your table')."
)
NOT_FINITE = (
    "NaN or infinity. Fill missing values with public constants, because an imputer learns exact "
    "statistics of the records (user guide, 'Your table')."
)
# Messages of scikit-learn and NumPy, and their replacements without the values that they quote.
_QUOTING = (
    (r"(?s)\narray=.*\.\n(?=Reshape)", " "),
    (r"(?s)(Complex data not supported).*", r"\1"),
    (r"(?s)could not convert string .*", f"X {HOLDS_TEXT}"),
    # These messages recommend imputers, which are not private.
    (r"(?s)(Input )?X contains (NaN|infinity).*", f"X contains {NOT_FINITE}"),
    (r"(?s)float\(\) argument must be .* not 'NAType'", f"X contains {NOT_FINITE}"),
    (r"(?s)invalid literal for .*", f"X {HOLDS_TEXT}"),
)
# Code whose messages are known: this package, and the packages that read arrays for it.
_KNOWN = (*code_of(np, scipy, sklearn), contextlib.__file__)
# NumPy's message about an object of Python or pandas that is a date or a time.
_DATES = re.compile(
    r"not '(?:\w+\.)*(date|datetime|time|timedelta|Timestamp|Timedelta|Period|NaTType)'"
)


@contextmanager
def without_quotes(name: str = "X") -> Iterator[None]:
    """Remove the values of records from error messages while records are read."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        raise without_values(error, name) from None


def without_values(error: Exception, name: str = "X") -> Exception:
    """Return an error without the values of records, for one that was raised while reading them.

    Messages of scikit-learn and NumPy are kept without the values that they quote. For errors of
    other code, such as a reader of files, only the type of the error is kept.
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
    """Whether an error was raised by code whose messages are known, without other code involved."""
    frames = walk_tb(error.__traceback__)
    return type(error) in (ValueError, TypeError) and all(
        frame.f_code.co_filename.startswith(_KNOWN) for frame, _ in frames
    )


_FRAMES = ("pandas", "polars")
# Number of sums that one Dask task adds. The tree of tasks is then shallow, and one worker holds
# only a few sums at a time.
_SUMS_PER_TASK = 8
_GATHERED = (
    "is a Dask collection, which is not loaded into memory automatically. Private estimators of "
    "rows accept it in fit, predict and transform. Elsewhere, load it with X.compute()."
)
_SUMS_ALONE = (
    "gives sums over its parts alone, by map_reduce. Private estimators of rows accept it in fit, "
    "but rows in memory are needed here."
)


def text_columns(X: Any) -> list[Any]:
    """Names of the columns of a data frame whose types are not numeric."""
    if frame_library(X) is None:
        return []
    kinds = zip(X.columns, map(kind_of, X.dtypes), strict=True)
    return [name for name, kind in kinds if kind not in "buif"]


def refused_text(names: list[Any]) -> ValueError:
    """Return the error for columns of text."""
    shown = ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)
    return ValueError(f"X {HOLDS_TEXT} These columns are not numeric: {shown}.")


def kind_of(dtype: Any) -> str:
    """Return NumPy's letter for a type of NumPy, pandas or polars; ``"O"`` if there is none."""
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
    """Return the library of a data frame, ``"pandas"`` or ``"polars"``, or None."""
    library = type(X).__module__.partition(".")[0]
    return library if library in _FRAMES and len(getattr(X, "shape", ())) == 2 else None


@dataclass(frozen=True)
class Columns:
    """Container, names and types of a table, which are public properties.

    ``library`` is None for arrays, whose column names are numbers. A type is kept only for columns
    of integers, booleans or public lists of values, because other types depend on the rows.
    """

    library: str | None
    names: Sequence[Any]
    dtypes: Sequence[Any]
    # Public lists of the values of categorical columns, by column number.
    choices: Mapping[int, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, n_features: int, choices: Mapping[int, list] | None = None) -> Self:
        """Return the columns of a table, with public lists of values for some column numbers."""
        library = frame_library(X)
        if library is None:
            names, dtypes = list(range(n_features)), [getattr(X, "dtype", None)] * n_features
        else:
            names, dtypes = list(X.columns), list(X.dtypes)
        choices = choices or {}
        kept = [_public(dtype, choices.get(place)) for place, dtype in enumerate(dtypes)]
        return cls(library, names, kept, choices)

    def shared(self, other: Self) -> Self:
        """Return the columns of both tables together; different types become None."""
        pairs = zip(self.dtypes, other.dtypes, strict=True)
        dtypes = [mine if mine == theirs else None for mine, theirs in pairs]
        return type(self)(self.library, self.names, dtypes, self.choices)

    def is_integer(self, place: int) -> bool:
        """Whether a column holds integers."""
        return kind_of(self.dtypes[place]) in "iu"

    def limits(self, place: int, low: float, high: float) -> tuple[float, float]:
        """Return the limits of a column within bounds, restricted to the values of its type."""
        kind = kind_of(self.dtypes[place])
        if kind == "b":
            return 0.0, 1.0
        if kind not in "iu":
            return low, high
        info = np.iinfo(_numpy_type(self.dtypes[place]))
        # The largest integer of 64 bits rounds up to a float that is too large by one.
        most = info.max if info.bits < 64 else np.nextafter(float(info.max), 0.0)
        return max(float(np.ceil(low)), float(info.min)), min(float(np.floor(high)), float(most))

    def numbers(self, place: int, values: np.ndarray, low: float, high: float) -> Any:
        """Convert numbers to a column; for integer types, they are rounded within the bounds."""
        if kind_of(self.dtypes[place]) not in "iub":
            return values
        whole = np.rint(np.clip(values, *self.limits(place, low, high)))
        return self.values(place, whole.astype(_numpy_type(self.dtypes[place])))

    def values(self, place: int, values: list[Any] | np.ndarray) -> Any:
        """Convert values to a column of its type."""
        dtype = self.dtypes[place]
        if self.library is None:
            return np.array(values, dtype=object if dtype is None else dtype)
        series = import_module(self.library).Series(values)
        if dtype is None:
            return series
        return series.cast(dtype) if self.library == "polars" else series.astype(dtype)

    def table(self, columns: Sequence[Any]) -> Any:
        """Make a table of the same kind from columns."""
        if self.library is None:
            return np.column_stack(columns)
        # The columns are named by numbers first, because names need not be strings or unique.
        numbered = {str(place): column for place, column in enumerate(columns)}
        frame = import_module(self.library).DataFrame(numbered)
        frame.columns = self.names
        return frame

    def of_numbers(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
        """Make a table of the same kind from an array of floats."""
        return self.table(
            [self.numbers(j, X[:, j], low[j], high[j]) for j in range(len(self.names))]
        )


def _public(dtype: Any, choices: list[Any] | None) -> Any:
    if choices is None:
        return dtype if kind_of(dtype) in "iub" else None
    if getattr(dtype, "ordered", None) is not None:  # pandas
        return type(dtype)(choices, dtype.ordered)
    if type(dtype).__name__ == "Enum":  # polars
        return type(dtype)(choices)
    if isinstance(dtype, np.dtype) and dtype.kind in "US":
        # The length is removed from the type, because it is that of the longest record.
        return np.dtype(dtype.kind)
    return dtype


def _numpy_type(dtype: Any) -> np.dtype[Any]:
    name = str(getattr(dtype, "numpy_dtype", dtype)).lower()
    return np.dtype("bool" if name == "boolean" else name)


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection: an array, a data frame or a delayed object."""
    return any(kind.__module__.startswith("dask") for kind in type(X).__mro__) or (
        # Collections of other libraries may also hold data in memory, without a graph.
        hasattr(type(X), "__dask_graph__") and X.__dask_graph__() is not None
    )


def refuse_dask(X: Any, name: str = "X") -> None:
    """Refuse Dask collections, which NumPy would load into memory, and objects it cannot load."""
    # It is enough to check one item of each type in a list.
    items = {type(item): item for item in X}.values() if isinstance(X, list | tuple) else ()
    if any(map(is_dask, (X, *items))):
        raise ValueError(f"{name} {_GATHERED}")
    if _has_map_reduce(X):
        raise ValueError(f"{name} {_SUMS_ALONE}")


def parts_elsewhere(X: Any) -> Any:
    """Return an object that sums over parts of rows on other machines, or None for other input.

    An object with a method ``map_reduce`` is returned itself.
    """
    if of_dask(X):
        return DaskParts(X)
    return X if _has_map_reduce(X) else None


def _has_map_reduce(X: Any) -> bool:
    # A column of a data frame may have this name.
    return callable(getattr(X, "map_reduce", None))


def of_dask(X: Any) -> bool:
    """Whether X is a Dask collection, or a list of Dask collections."""
    return is_dask(X) or (isinstance(X, list | tuple) and len(X) > 0 and all(map(is_dask, X)))


class DaskParts:
    """Parts of a Dask array or data frame, or of a list of delayed tables."""

    def __init__(self, X: Any) -> None:
        if hasattr(type(X), "to_delayed") and len(getattr(X, "shape", ())) != 2:
            raise ValueError(
                f"X is not a table: its type is {type(X).__name__}. The supported Dask collections "
                "are arrays of two dimensions, data frames and lists of delayed tables."
            )
        self._X, self._was_read = X, False

    @property
    def head(self) -> Table | None:
        """Empty table with the columns of the parts; None if the columns are not known yet."""
        if hasattr(type(self._X), "columns"):
            return self._X._meta
        if hasattr(type(self._X), "to_delayed"):
            return np.empty((0, self._X.shape[1]), self._X.dtype)
        return None

    @cached_property
    def _parts(self) -> list[Any]:
        return delayed_parts(self._X)

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Apply a function to delayed tables; a list gives a list of delayed results."""
        from dask import delayed

        each = delayed(function, traverse=False)
        mapped = [each(part) for part in self._parts]
        return mapped if isinstance(self._X, list | tuple) else mapped[0]

    def map_reduce(self, function: Callable[[Any], Any]) -> Any:
        """Apply a function to each part where it is, and add the results in a tree.

        The first call, which is made before anything is paid, refuses a cluster without workers.
        """
        from dask import delayed

        if not self._was_read:
            _refuse_no_workers()
            self._was_read = True
        # The function is sent once to each machine. Dask does not search it for collections.
        shared = delayed(function, traverse=False)
        sums = [delayed(_applied)(shared, part) for part in self._parts]
        while len(sums) > 1:
            sums = [
                delayed(sum)(sums[i : i + _SUMS_PER_TASK])
                for i in range(0, len(sums), _SUMS_PER_TASK)
            ]
        return sums[0].compute()


def _refuse_no_workers() -> None:
    """Raise ValueError if Dask would wait without end, because its cluster has no workers."""
    from dask.base import get_scheduler

    # Without a client of a cluster, Dask computes on this machine.
    client: Any = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "nthreads") or client.asynchronous:
        return
    # An adaptive cluster starts workers as soon as there is work.
    if getattr(client.cluster, "_adaptive", None) is None and not client.nthreads():
        raise ValueError(
            "X is a Dask collection, but the Dask cluster has no workers, so that the computation "
            "would never start. Start workers, for example with cluster.scale(1), or close the "
            "client to compute on this machine."
        )


def whole_rows(X: Any) -> Any:
    """Return a Dask array in chunks with all columns. Data frames are returned unchanged."""
    return X.rechunk({1: -1}) if hasattr(type(X), "rechunk") and X.ndim == 2 else X


def delayed_parts(X: Any) -> list[Any]:
    """Parts of a Dask collection, or of a list of Dask collections, each with all columns."""
    if isinstance(X, list | tuple):
        return [part for each in X for part in delayed_parts(each)]
    if not hasattr(type(X), "to_delayed"):
        return [X]
    parts = whole_rows(X).to_delayed()
    return list(parts.ravel() if hasattr(parts, "ravel") else parts)


def _applied(function: Callable[[Any], Any], part: Any) -> Any:
    return function(part)


def refuse_repeated_names(frame: Any, name: str = "X") -> None:
    """Refuse a data frame with equal names of columns, of which a parameter could mean any."""
    for label, count in Counter(frame.columns).items():
        if count > 1:
            raise ValueError(
                f"{name} has {count} columns with the name {label!r}. Rename or drop all but one "
                "of them."
            )


def refuse_lossy(value: ArrayLike, name: str = "X", *, complex_too: bool = True) -> None:
    """Refuse masked entries, dates, complex numbers, repeated names and Dask collections.

    The items of a list are checked too. ``name`` is that of the parameter. ``complex_too`` is False
    if complex numbers are refused elsewhere.
    """
    refuse_dask(value, name)
    parts = [value, *value] if isinstance(value, list | tuple) else [value]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} has masked entries, whose masks would be ignored. Drop or fill these entries."
        )
    if frame_library(value) is None:
        dates = [name for part in parts if kind_of(getattr(part, "dtype", None)) in "mM"]
    else:
        refuse_repeated_names(value, name)
        columns = zip(value.columns, value.dtypes, strict=True)  # type: ignore[union-attr]
        dates = [f"column {label!r}" for label, dtype in columns if kind_of(dtype) in "mM"]
    if dates:
        raise ValueError(f"{dates[0]} {HOLDS_DATES}")
    try:
        lossy = complex_too and np.iscomplexobj(value)
    except Exception:
        # The input is ragged or cannot be read. The code that needs an array refuses it later.
        return
    if lossy:
        raise ValueError(f"{name} must be real, not complex.")

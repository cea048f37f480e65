"""Validation of arrays, point clouds and collections, with errors that quote no values."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._estimator import plain_arithmetic
from sklearn_dptda.privacy._warnings import code_of
from sklearn_dptda.utils._frames import kind_of, open_frame
from sklearn_dptda.utils._tasks import has_map_reduce, is_dask

HOLDS_DATES = (
    "holds dates or times. Convert them to numbers first, such as days since a public day "
    "(user guide, 'Your table')."
)
HOLDS_TEXT = (
    "contains values that are not numbers. Leave such columns out, or code them by public lists "
    "of values (user guide, 'Your table')."
)
NOT_FINITE = (
    "NaN or infinity. Pass missing=True where the estimator has it, or fill missing values with "
    "public constants, because an imputer learns exact statistics (user guide, 'Your table')."
)
# Messages of scikit-learn and NumPy, and their replacements without the values that they quote.
_QUOTING = (
    (r"(?s)\narray=.*\.\n(?=Reshape)", " "),
    (r"(?s)(Complex data not supported).*", r"\1"),
    (r"(?s)could not convert string .*", f"X {HOLDS_TEXT}"),
    # These messages recommend imputers, which are not private.
    (r"(?s)(Input )?([XY]) contains (NaN|infinity).*", rf"\2 contains {NOT_FINITE}"),
    (r"(?s)float\(\) argument must be .* not 'NAType'", f"X contains {NOT_FINITE}"),
    (r"(?s)invalid literal for .*", f"X {HOLDS_TEXT}"),
)
# Code whose messages are known: this package, and the packages that read arrays for it.
_KNOWN = (*code_of(np, scipy, sklearn), contextlib.__file__)
# NumPy's message about an object of Python or pandas that is a date or a time.
_DATES = re.compile(
    r"not '(?:\w+\.)*(date|datetime|time|timedelta|Timestamp|Timedelta|Period|NaTType)'"
)
_GATHERED = (
    "is a Dask collection, which is not loaded into memory automatically. Private estimators of "
    "rows accept it in fit, predict and transform. Elsewhere, load it with X.compute()."
)
_SUMS_ALONE = (
    "gives sums over its parts alone, by map_reduce. Private estimators of rows accept it in fit, "
    "but rows in memory are needed here."
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
    if isinstance(error, TypeError) and message.startswith("float() argument must be"):
        # An object of another kind, such as an interval of pandas.
        return ValueError(f"{name} {HOLDS_TEXT}")
    return ValueError(f"{name} could not be read ({type(error).__name__}).")


def _is_known(error: Exception) -> bool:
    """Whether an error was raised by code whose messages are known, without other code involved."""
    frames = walk_tb(error.__traceback__)
    return type(error) in (ValueError, TypeError) and all(
        frame.f_code.co_filename.startswith(_KNOWN) for frame, _ in frames
    )


def refuse_dask(X: Any, name: str = "X") -> None:
    """Refuse Dask collections, which NumPy would load into memory, and objects it cannot load."""
    # It is enough to check one item of each type in a list.
    items = {type(item): item for item in X}.values() if isinstance(X, list | tuple) else ()
    if any(map(is_dask, (X, *items))):
        raise ValueError(f"{name} {_GATHERED}")
    if any(type(each).__name__ == "LazyFrame" for each in (X, *items)):
        raise ValueError(f"{name} is a lazy frame, which holds no rows yet: pass its collect().")
    if has_map_reduce(X):
        raise ValueError(f"{name} {_SUMS_ALONE}")


def refuse_lossy(value: ArrayLike, name: str = "X", *, complex_too: bool = True) -> None:
    """Refuse masked entries, dates, complex numbers, repeated names and Dask collections.

    The items of a list are checked too. ``name`` is that of the parameter. ``complex_too`` is False
    if complex numbers are refused elsewhere.
    """
    # A plain array of numbers has none of them, and small ones are checked often.
    if type(value) is np.ndarray and value.dtype.kind in "fiub":
        return
    refuse_dask(value, name)
    parts = [value, *value] if isinstance(value, list | tuple) else [value]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} has masked entries, whose masks would be ignored. Drop or fill these entries."
        )
    frame = open_frame(value, name)
    if frame is None:
        dates = [name for part in parts if kind_of(part) in "mM"]
    else:
        dates = [f"column {c.name!r}" for c in frame.iter_columns() if kind_of(c) == "M"]
    if dates:
        raise ValueError(f"{dates[0]} {HOLDS_DATES}")
    try:
        lossy = complex_too and np.iscomplexobj(value)
    except Exception:
        # The input is ragged or cannot be read. The code that needs an array refuses it later.
        return
    if lossy:
        raise ValueError(f"{name} must be real, not complex.")


@plain_arithmetic()
def check_cloud(
    cloud: ArrayLike, name: str = "X", n_features: int | None = None, min_points: int = 2
) -> FloatArray:
    """Check one point cloud, and return it as floats of shape (n, d)."""
    refuse_lossy(cloud, name)
    try:
        # A series of lists, as polars has it, is a list of points.
        points = cloud.to_list() if hasattr(cloud, "to_list") else cloud
        array = np.asarray(points, dtype=np.float64)
    except Exception:
        raise ValueError(
            f"{name} must be a numeric array of shape (n_points, n_features)."
        ) from None
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n_points, n_features); got {array.ndim} dimension(s)."
        )
    if array.shape[1] == 0:
        raise ValueError(f"{name} has 0 features.")
    if len(array) < min_points:
        raise ValueError(f"{name} has {len(array)} point(s); at least {min_points} are needed.")
    if n_features is not None and array.shape[1] != n_features:
        raise ValueError(
            f"{name} has {array.shape[1]} features, but {n_features} are expected: "
            "all clouds must have the same number of features."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains {NOT_FINITE}")
    return array


def check_collection(X: Iterable[Any], name: str = "X") -> list[Any]:
    """Return the items of a non-empty sequence; refuse other containers and single clouds."""
    refuse_dask(X, name)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object:
        raise ValueError(
            f"{name} is a single array of shape {X.shape}; a list of arrays, or an array with one "
            f"more dimension, is expected. Pass [{name}]."
        )
    if hasattr(X, "sensitivity"):
        raise ValueError(f"{name} is one filtration; a list of them is expected. Pass [{name}].")
    if hasattr(X, "columns"):
        raise ValueError(f"{name} is one table; a list of clouds is expected. Pass [{name}].")
    try:
        with without_quotes(name):
            items = list(X)
    except TypeError:
        raise ValueError(f"{name} must be a list of clouds; got {type(X).__name__}.") from None
    if not items:
        raise ValueError(
            f"{name} is empty, and at least one item is needed. An iterator can be read only once: "
            "pass a list."
        )
    return items


def first_places(items: Sequence[Any]) -> list[int]:
    """Return for each item of a collection the index of its first occurrence.

    Objects are compared by identity, and arrays by their place in memory, but never by contents,
    which are private. Empty items and tuples count as different, because identity does not
    distinguish them.
    """
    seen: dict[object, int] = {}
    return [seen.setdefault(_place(item, i), i) for i, item in enumerate(items)]


def refuse_repeated(items: Sequence[Any], name: str = "X") -> None:
    """Refuse a collection that contains one item several times.

    One payment covers one release of each item.
    """
    if first_places(items) != list(range(len(items))):
        raise ValueError(
            f"{name} holds one object several times. Each time would be a release of the same "
            "records, and one payment covers only one release. To make several releases and pay "
            "for each, use release_replicates."
        )


def _place(item: Any, number: int) -> object:
    if isinstance(item, tuple) or (hasattr(item, "__len__") and len(item) == 0):
        return "nowhere", number
    if isinstance(item, np.ndarray) and item.dtype != object:
        memory = item.__array_interface__["data"][0]
        return memory, item.shape, item.strides, item.dtype.str
    return id(item)

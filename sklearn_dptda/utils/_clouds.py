"""Validation of point clouds and collections of point clouds."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.utils._frames import NOT_FINITE, refuse_dask, refuse_lossy, without_quotes


@silent_arithmetic()
def check_cloud(
    cloud: ArrayLike, name: str = "X", n_features: int | None = None, min_points: int = 2
) -> FloatArray:
    """Check one point cloud, and return it as floats of shape (n, d)."""
    refuse_lossy(cloud, name)
    try:
        array = np.asarray(cloud, dtype=np.float64)
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

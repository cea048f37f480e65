"""Collections of Dask: their parts, and sums over these where they are."""

from functools import cached_property

import numpy as np

# Sums that are added at a time on their way to one.
_FAN_IN = 8
_GATHERED = (
    "is a Dask collection, and nothing is gathered in silence. Private estimators of rows count it "
    "where it is, in fit, and map predict and transform over it; X.compute() brings it here."
)
_SUMS_ALONE = (
    "gives sums over its parts alone, by map_reduce, which private estimators of rows take in fit; "
    "here rows in memory are needed."
)


def is_dask(X):
    """Whether X is a collection of Dask: an array, a data frame, something delayed."""
    return any(kind.__module__.startswith("dask") for kind in type(X).__mro__) or (
        # Of other libraries, which may also hold what is here.
        hasattr(type(X), "__dask_graph__") and X.__dask_graph__() is not None
    )


def refuse_dask(X, name="X"):
    """Refuse what NumPy would gather into memory without a word, and what it could not gather."""
    # Of a list a single one is enough; most lists are of one type.
    items = {type(item): item for item in X}.values() if isinstance(X, list | tuple) else ()
    if any(map(is_dask, (X, *items))):
        raise ValueError(f"{name} {_GATHERED}")
    if _has_map_reduce(X):
        raise ValueError(f"{name} {_SUMS_ALONE}")


def parts_elsewhere(X):
    """What sums over the parts of rows that lie elsewhere, or None where they do not.

    Objects with a method ``map_reduce`` do so themselves.
    """
    if is_dask(X) or _are_delayed(X):
        return DaskParts(X)
    return X if _has_map_reduce(X) else None


def _has_map_reduce(X):
    # A column of a frame may have the name.
    return callable(getattr(X, "map_reduce", None))


def _are_delayed(X):
    return isinstance(X, list | tuple) and len(X) > 0 and all(map(is_dask, X))


class DaskParts:
    """Parts of a Dask array or data frame, or of a list of delayed ones."""

    def __init__(self, X):
        if hasattr(type(X), "to_delayed") and len(getattr(X, "shape", ())) != 2:
            raise ValueError(
                f"X is no table but a {type(X).__name__}: of Dask's collections, arrays of two "
                "dimensions, data frames and lists of delayed tables are read."
            )
        self._X = X

    @property
    def head(self):
        """A table without rows that is like them; None where that is not known ahead."""
        if hasattr(type(self._X), "columns"):
            return self._X._meta
        if hasattr(type(self._X), "to_delayed"):
            return np.empty((0, self._X.shape[1]), self._X.dtype)
        return None

    @cached_property
    def _parts(self):
        return _delayed_parts(self._X)

    def mapped(self, function):
        """What is delayed in place of delayed tables: a list of a list, else one."""
        from dask import delayed

        each = delayed(function, traverse=False)
        mapped = [each(part) for part in self._parts]
        return mapped if isinstance(self._X, list | tuple) else mapped[0]

    def map_reduce(self, function):
        """Apply a function to each part where it is, and add up by a tree."""
        from dask import delayed

        # Sent once to each machine, and not looked into for collections.
        shared = delayed(function, traverse=False)
        sums = [delayed(_applied)(shared, part) for part in self._parts]
        while len(sums) > 1:
            sums = [delayed(sum)(sums[i : i + _FAN_IN]) for i in range(0, len(sums), _FAN_IN)]
        return sums[0].compute()


def whole_rows(X):
    """An array of Dask in chunks that hold all columns; frames do already."""
    return X.rechunk({1: -1}) if hasattr(type(X), "rechunk") else X


def _delayed_parts(X):
    if isinstance(X, list | tuple):
        return [part for each in X for part in _delayed_parts(each)]
    if not hasattr(type(X), "to_delayed"):
        return [X]
    parts = whole_rows(X).to_delayed()
    return list(parts.ravel() if hasattr(parts, "ravel") else parts)


def _applied(function, part):
    return function(part)

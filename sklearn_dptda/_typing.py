"""Type aliases for many signatures."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import sparray, spmatrix

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.integer[Any]]
# An array, or a data frame of pandas, polars or PyArrow, none of which needs to be installed.
Table: TypeAlias = Any
SparseLike: TypeAlias = sparray | spmatrix
# An array or a sequence: it has a length and slices.
ListLike: TypeAlias = Sequence[Any] | NDArray[Any]
# Lower and upper bounds: a pair of numbers or of arrays, or an array of two rows.
Bounds: TypeAlias = Sequence[ArrayLike] | NDArray[Any]
# Bounds, or a mapping from the names of some columns to such pairs.
RowBounds: TypeAlias = Bounds | Mapping[str, Bounds]
ColumnUnits: TypeAlias = Literal["columns", "bounds"] | ArrayLike
PathLike: TypeAlias = str | os.PathLike[str]

# The random states that private estimators accept.
RandomStateLike: TypeAlias = int | np.random.RandomState | np.random.Generator | None
# The random states that scikit-learn's check_random_state accepts.
LegacyRandomStateLike: TypeAlias = int | np.random.RandomState | None

Adjacency: TypeAlias = Literal["add-remove", "replace-one"]
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]


class Parts(Protocol):
    """Parts of a table, possibly on other machines, over which functions are summed."""

    def map_reduce(self, function: Callable[[Any], Any]) -> Any:
        """Return the sum, by ``+``, of the results of a function for each part."""


# Tables that are read one by one, as often as needed, or the parts of a table.
Chunks: TypeAlias = Iterable[Any] | Callable[[], Iterable[Any]] | Parts

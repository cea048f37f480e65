"""Types that many signatures share."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import sparray, spmatrix

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.integer[Any]]
# An array, or a data frame of pandas or polars, neither of which need be installed.
Table: TypeAlias = Any
SparseLike: TypeAlias = sparray | spmatrix
# What is an array, or may be made one that has a length and slices.
ListLike: TypeAlias = Sequence[Any] | NDArray[Any]
# Lower and upper ends: a pair of numbers or of arrays, or an array of two rows.
Bounds: TypeAlias = Sequence[ArrayLike] | NDArray[Any]
# The same, or such a pair for each of some columns, by their names.
RowBounds: TypeAlias = Bounds | Mapping[str, Bounds]
PathLike: TypeAlias = str | os.PathLike[str]

# Where noise is private, a generator serves as well.
RandomStateLike: TypeAlias = int | np.random.RandomState | np.random.Generator | None
# What scikit-learn's check_random_state takes.
LegacyRandomStateLike: TypeAlias = int | np.random.RandomState | None

Adjacency: TypeAlias = Literal["add-remove", "replace-one"]
CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical"]


class Parts(Protocol):
    """Parts of a table, wherever they are: summed over there."""

    def map_reduce(self, function: Callable[[Any], Any]) -> Any:
        """The sum, by ``+``, of what a function returns for each part."""


# Tables that are read one by one, as often as needed; or parts.
Chunks: TypeAlias = Iterable[Any] | Callable[[], Iterable[Any]] | Parts

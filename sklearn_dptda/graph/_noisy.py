"""Noisy adjacency matrices, which know how often their edges were flipped."""

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from sklearn_dptda._typing import SparseLike
from sklearn_dptda.privacy._stored_release import storable

# Zeros and ones that are unpacked together: they should stay in a processor's cache.
_ENTRIES_AT_ONCE = 1 << 20


class NoisyAdjacency(csr_array):
    """Sparse adjacency matrix of which each pair was flipped with a known probability.

    The probability stays with copies and selections. Arithmetic takes it away,
    since results are no zeros and ones any more.

    Attributes
    ----------
    flip_probability : float or None
        Public: embeddings take the bias of the flips off with it. None where it
        was lost.
    links : bool
        Whether rows are other nodes than columns.
    """

    flip_probability: float | None = None
    links: bool = False

    @classmethod
    def of(
        cls, adjacency: ArrayLike | SparseLike, flip_probability: float, links: bool = False
    ) -> Self:
        """Adjacency with its probability of flips."""
        noisy = cls(adjacency)
        noisy.flip_probability, noisy.links = float(flip_probability), links
        return noisy

    def _like(self, other: Any) -> Any:
        if not isinstance(other, NoisyAdjacency):
            return other
        other.flip_probability = self.flip_probability
        other.links = self.links or other.shape[0] != other.shape[1]
        return other

    def copy(self) -> Self:
        """Copy, of the same probability."""
        return self._like(super().copy())

    def astype(self, dtype: DTypeLike, casting: str = "unsafe", copy: bool = True) -> Self:
        """Copy of another type, of the same probability."""
        return self._like(super().astype(dtype, casting=casting, copy=copy))

    def __getitem__(self, key: Any) -> Any:
        return self._like(super().__getitem__(key))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()


class PackedAdjacency(LinearOperator):
    """Dense noisy adjacency matrix, eight pairs to a byte.

    Multiplies vectors like any operator of SciPy, in single precision and a few rows
    at a time.

    Parameters
    ----------
    octets : ndarray of shape (n_rows, ceil(n_columns / 8)), dtype uint8
        Bits from the highest of each byte on.
    n_columns : int
    flip_probability : float
    kind : {"undirected", "directed", "bipartite"}, default="undirected"
        Whether pairs have a direction, or rows are other nodes than columns.
    """

    def __init__(
        self,
        octets: NDArray[np.uint8],
        n_columns: int,
        flip_probability: float,
        kind: Literal["undirected", "directed", "bipartite"] = "undirected",
    ) -> None:
        super().__init__(np.float32, (len(octets), n_columns))
        self.octets, self.flip_probability, self.kind = octets, float(flip_probability), kind

    @property
    def links(self) -> bool:
        """Whether rows are other nodes than columns."""
        return self.kind == "bipartite"

    def rows(self, part: slice) -> NDArray[np.float32]:
        """Some rows as zeros and ones.

        Parameters
        ----------
        part : slice

        Returns
        -------
        ndarray of dtype float32
        """
        bits = np.unpackbits(self.octets[part], axis=1, count=self.shape[1])
        return bits.astype(np.float32)

    def toarray(self) -> NDArray[np.float32]:
        """Everything as zeros and ones."""
        return self.rows(slice(None))

    def parts(self) -> Iterator[slice]:
        """Slices of rows that are unpacked together."""
        step = max(_ENTRIES_AT_ONCE // self.shape[1], 1)
        return (slice(i, i + step) for i in range(0, self.shape[0], step))

    def _matmat(self, X: ArrayLike) -> NDArray[np.float32]:
        X = np.asarray(X, dtype=np.float32)
        return np.vstack([self.rows(part) @ X for part in self.parts()])

    def _matvec(self, x: ArrayLike) -> NDArray[np.float32]:
        return self._matmat(np.reshape(x, (-1, 1)))[:, 0]

    def _rmatmat(self, X: ArrayLike) -> NDArray[np.float32]:
        X = np.asarray(X, dtype=np.float32)
        return sum(self.rows(part).T @ X[part] for part in self.parts())

    def _rmatvec(self, x: ArrayLike) -> NDArray[np.float32]:
        return self._rmatmat(np.reshape(x, (-1, 1)))[:, 0]


def _noisy_adjacency(adjacency: Any, flip_probability: float | None, links: bool) -> Any:
    noisy = NoisyAdjacency(adjacency)
    noisy.flip_probability, noisy.links = flip_probability, links
    return noisy


storable(
    "NoisyAdjacency",
    NoisyAdjacency,
    lambda noisy: {
        "adjacency": csr_array(noisy),
        "flip_probability": noisy.flip_probability,
        "links": noisy.links,
    },
    _noisy_adjacency,
)
storable(
    "PackedAdjacency",
    PackedAdjacency,
    lambda packed: {
        "octets": packed.octets,
        "n_columns": packed.shape[1],
        "flip_probability": packed.flip_probability,
        "kind": packed.kind,
    },
    PackedAdjacency,
)

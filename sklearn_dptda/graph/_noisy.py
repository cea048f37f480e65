"""Noisy adjacency matrices, which know how often their edges were flipped."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

_ROWS = 2048


class NoisyAdjacency(csr_array):
    """Sparse adjacency matrix of which each pair was flipped with a known probability.

    What is computed from it is an ordinary sparse array again.

    Attributes
    ----------
    flip_probability : float
        Public: embeddings take the bias of the flips off with it.
    """

    flip_probability = 0.0

    @classmethod
    def of(cls, adjacency, flip_probability):
        """Adjacency with its probability of flips."""
        noisy = cls(adjacency)
        noisy.flip_probability = float(flip_probability)
        return noisy

    def __getstate__(self):
        return self.__dict__.copy()


class PackedAdjacency(LinearOperator):
    """Dense noisy adjacency matrix, eight pairs to a byte.

    Multiplies vectors like any operator of SciPy, a few thousand rows at a time.

    Parameters
    ----------
    octets : ndarray of shape (n_rows, ceil(n_columns / 8)), dtype uint8
        Bits from the highest of each byte on.
    n_columns : int
    flip_probability : float
    """

    def __init__(self, octets, n_columns, flip_probability):
        super().__init__(np.float32, (len(octets), n_columns))
        self.octets, self.flip_probability = octets, float(flip_probability)

    def rows(self, part):
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

    def toarray(self):
        """Everything as zeros and ones."""
        return self.rows(slice(None))

    def parts(self):
        """Slices of rows that are unpacked together."""
        return (slice(i, i + _ROWS) for i in range(0, self.shape[0], _ROWS))

    def _matmat(self, X):
        return np.vstack([self.rows(part) @ X for part in self.parts()])

    def _matvec(self, x):
        return self._matmat(np.reshape(x, (-1, 1)))[:, 0]

    def _rmatmat(self, X):
        return sum(self.rows(part).T @ X[part] for part in self.parts())

    def _rmatvec(self, x):
        return self._rmatmat(np.reshape(x, (-1, 1)))[:, 0]

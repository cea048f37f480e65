"""Rows of a table, a batch at a time, as often as an algorithm reads them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_array

_BATCH = 1 << 15


@dataclass(frozen=True)
class Rows:
    """Batches of rows, in memory or read anew at every pass.

    Parameters
    ----------
    parts : list of ndarray, or callable that returns an iterator of them
    n_features : int
    """

    parts: list | Callable
    n_features: int

    @classmethod
    def of_array(cls, X):
        """Rows of one array."""
        return cls(list(_batches(X)), X.shape[1])

    def __iter__(self):
        return iter(self.parts() if callable(self.parts) else self.parts)

    def map(self, function):
        """Rows after a function that treats each row by itself.

        Parameters
        ----------
        function : callable
            From an array to an array with as many rows.

        Returns
        -------
        Rows
        """
        if callable(self.parts):
            return Rows(lambda: (function(part) for part in self.parts()), self.n_features)
        return Rows([function(part) for part in self.parts], self.n_features)


def open_chunks(chunks, first_check):
    """Read a stream once, to check it, and return it as rows.

    Parameters
    ----------
    chunks : iterable of array-like, or callable that returns one
        Can be read more than once.
    first_check : callable
        Applied to the first chunk, and returns it as an array.

    Returns
    -------
    Rows

    Raises
    ------
    ValueError
        If the stream can be read only once, is empty, or has a chunk that is
        refused.
    """
    if isinstance(chunks, Iterator):
        raise ValueError(
            "chunks can be read only once, and every step reads them: pass a list of arrays, an "
            "object with __iter__, or a function that returns a new iterator."
        )

    def read():
        for chunk in chunks() if callable(chunks) else chunks:
            # Chunks without rows are no mistake of a reader.
            yield check_array(chunk, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0)

    n_features, n_rows = None, 0
    for chunk in read():
        if n_features is None:
            n_features = first_check(chunk).shape[1]
        if chunk.shape[1] != n_features:
            raise ValueError(f"chunks have {n_features} columns, and then {chunk.shape[1]}.")
        n_rows += len(chunk)
    if n_rows == 0:
        raise ValueError("chunks are empty: at least one row is needed.")
    return Rows(lambda: (part for chunk in read() for part in _batches(chunk)), n_features)


def _batches(X):
    return (X[start : start + _BATCH] for start in range(0, len(X), _BATCH))

"""Chunks of rows that must be the same at every pass."""

from collections.abc import Iterator

import numpy as np
from sklearn.utils import check_array

from sklearn_dptda.utils import refuse_lossy
from sklearn_dptda.utils._columns import Columns
from sklearn_dptda.utils._row_batches import BATCH, Rows, slices
from sklearn_dptda.utils._rows import without_quotes

# What has changed may be private.
_CHANGED = "chunks have changed between two passes: all passes must see the same rows."


class _Stream:
    """Chunks that must be the same at every pass."""

    def __init__(self, chunks, first_check, prepared):
        self._chunks, self._first_check, self._prepared = chunks, first_check, prepared
        if isinstance(chunks, Iterator) or self._open() is self._open():
            raise ValueError(
                "chunks can be read only once, and every step reads them: pass a list of arrays, "
                "an object with __iter__, or a function that returns a new iterator."
            )
        self._names = self.columns = None
        self._n_rows, self.n_features = self._count()

    def _open(self):
        return iter(self._chunks() if callable(self._chunks) else self._chunks)

    def _pass(self):
        return self._prepared(self._open())

    def _count(self):
        """Read everything once, to refuse it before anything is paid."""
        n_features, n_rows = None, 0
        for chunk in self._pass():
            if n_features is None:
                part = self._first_check(chunk)
                n_features, self._names = part.shape[1], _names(chunk)
            else:
                part = _as_array(chunk)
            if part.shape[1] != n_features or _names(chunk) != self._names:
                raise ValueError("chunks differ in the number or the names of their columns.")
            n_rows += len(part)
            columns = Columns.of(chunk, n_features)
            if self.columns is None:
                self.columns = columns
            elif columns != self.columns:
                # As in the table of all chunks: whole numbers and others make others.
                self.columns = self.columns.without_integers()
        if n_rows == 0:
            raise ValueError("chunks are empty: at least one row is needed.")
        return n_rows, n_features

    def read(self):
        """Yield batches of one pass."""
        n_rows = 0
        for chunk in self._pass():
            part = _as_array(chunk)
            if part.shape[1] != self.n_features or _names(chunk) != self._names:
                raise ValueError(_CHANGED)
            n_rows += len(part)
            yield from slices(part, BATCH)
        if n_rows != self._n_rows:
            raise ValueError(_CHANGED)


def _names(chunk):
    return list(chunk.columns) if hasattr(chunk, "columns") else None


def _as_array(chunk):
    refuse_lossy(chunk, "chunks", complex_too=False)
    with without_quotes():
        # Chunks without rows are no mistake of a reader.
        part = check_array(chunk, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0)
    if not np.isfinite(part).all():
        raise ValueError("chunks contain NaN or infinity.")
    return part


def open_chunks(chunks, first_check, prepared=iter):
    """Read a stream once, to check it, and return it as rows.

    ``first_check`` makes an array of the first chunk; ``prepared`` takes the chunks of each pass,
    and returns those that are read. A ValueError says that the stream can be read only once, is
    empty, or has a chunk that is refused.
    """
    stream = _Stream(chunks, first_check, prepared)
    return Rows(stream.read, stream.n_features, stream.columns)

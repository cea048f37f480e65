"""Numbering of pairs of nodes, and the edges of a graph after some pairs were flipped.

Proof: doc/theory/graphs.md, "Drawing them".
"""

import os

import numpy as np
from scipy.sparse import csr_array

from sklearn_dptda.graph._adjacency import NoisyAdjacency, PackedAdjacency

# Bytes per edge in a sparse matrix, including its transpose while it is built.
_BYTES_OF_EDGE = 25
# Number of rows of a matrix and its transpose that are merged at a time.
_ROWS_AT_ONCE = 1024


class Pairs:
    """Numbering of the pairs of nodes that a graph can join.

    ``kind`` is "undirected" (pairs ``(i, j)`` with ``i < j``, row by row), "directed" (all pairs of
    different nodes, row by row), or "bipartite" (all pairs of a row and a column).
    """

    def __init__(self, n_rows, n_columns, kind):
        self.n_rows, self.n_columns, self.kind = n_rows, n_columns, kind
        rows = np.arange(n_rows + 1, dtype=np.int64)
        if kind == "undirected":
            self._starts = rows * n_columns - rows * (rows + 1) // 2
        else:
            self._starts = rows * (n_columns - (kind == "directed"))

    def __len__(self):
        return int(self._starts[self.n_rows])

    def rank(self, rows, columns):
        """Return the rank of each pair, in int64 like its row and column."""
        if self.kind == "undirected":
            return self._starts[rows] + columns - rows - 1
        skipped = (columns > rows) if self.kind == "directed" else 0
        return self._starts[rows] + columns - skipped

    def n_different(self, A, other):
        """Return the number of pairs that are an edge of one of two graphs only."""
        return float(len(np.setxor1d(_edges(A, self), _edges(other, self), assume_unique=True)))

    def pair(self, ranks):
        """Return the rows and columns of the pairs with these ranks."""
        rows = np.searchsorted(self._starts, ranks, side="right") - 1
        # A row without pairs has the same start as the next row.
        columns = ranks - self._starts[rows]
        if self.kind == "undirected":
            return rows, columns + rows + 1
        if self.kind == "directed":
            return rows, columns + (columns >= rows)
        return rows, columns


def refuse_too_large(pairs, packed, probability):
    """Raise ValueError if a release needs too much memory, judged by public numbers only."""
    needed = (
        pairs.n_rows * -(-pairs.n_columns // 8)
        if packed
        else _BYTES_OF_EDGE * probability * len(pairs)
    )
    if needed > _memory():
        raise ValueError(
            f"A release of {pairs.n_rows} x {pairs.n_columns} pairs needs about "
            f"{needed / 2**30:.3g} GiB, more memory than this machine has. Nothing was spent. "
            "Raise epsilon, or use iter_edges to get the edges block by block."
        )


def _memory():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Some systems do not report it.
        return float("inf")


def flip_sparse(A, pairs, flips, probability):
    noisy = _of_sorted_pairs((pairs.pair(ranks) for ranks in changed(A, pairs, flips)), A.shape)
    if pairs.kind == "undirected":
        noisy = _with_transpose(noisy)
    return NoisyAdjacency.of(noisy, probability, pairs.kind == "bipartite")


def _of_sorted_pairs(parts, shape):
    """Return the matrix, in int8, of pairs that come in parts, sorted by row and column.

    It needs hardly more memory than the result.
    """
    counts, columns = np.zeros(shape[0], dtype=np.int64), []
    for rows, part in parts:
        counts += np.bincount(rows, minlength=shape[0])
        columns.append(part.astype(np.int32))
    indices = np.concatenate(columns)
    data = np.ones(len(indices), dtype=np.int8)
    return csr_array((data, indices, _starts(counts)), shape)


def _with_transpose(upper):
    """Return the symmetric matrix, in float32, of a sorted upper triangle; indices stay sorted."""
    lower = upper.T.tocsr()
    counts = np.diff(lower.indptr), np.diff(upper.indptr)
    starts = _starts(counts[0].astype(np.int64) + counts[1])
    indices = np.empty(starts[-1], dtype=np.int32)
    n = upper.shape[0]
    for first in range(0, n, _ROWS_AT_ONCE):
        part = slice(first, min(first + _ROWS_AT_ONCE, n))
        places = np.arange(starts[part.start], starts[part.stop])
        # In each row, the columns of the lower triangle come first.
        ends = (starts[part] + counts[0][part]).astype(np.int64)
        below = places < np.repeat(ends, counts[0][part] + counts[1][part])
        here = indices[starts[part.start] : starts[part.stop]]
        for half, chosen in ((lower, below), (upper, ~below)):
            here[chosen] = half.indices[half.indptr[part.start] : half.indptr[part.stop]]
    del lower
    return csr_array((np.ones(len(indices), dtype=np.float32), indices, starts), upper.shape)


def _starts(counts):
    starts = np.r_[0, np.cumsum(counts)]
    # Indices of 32 bits save half of the memory if their number fits into 32 bits, too.
    return starts.astype(np.int32) if starts[-1] <= np.iinfo(np.int32).max else starts


def changed(A, pairs, flips):
    """Yield the ranks of the edges after the flips, part by part and in order."""
    edges, done = _edges(A, pairs), 0
    for part in flips:
        if len(part):
            end = np.searchsorted(edges, part[-1], side="right")
            yield np.setxor1d(part, edges[done:end], assume_unique=True)
            done = end
    yield edges[done:]


def in_blocks(parts, size):
    """Yield the same numbers in parts of ``size``, except for the last part.

    The parts that :func:`changed` yields would reveal which edges are flips.
    """
    held, n_held = [], 0
    for part in parts:
        held.append(part)
        n_held += len(part)
        if n_held >= size:
            together = np.concatenate(held)
            cut = n_held - n_held % size
            yield from np.split(together[:cut], range(size, cut, size))
            held, n_held = [together[cut:]], n_held - cut
    if n_held:
        yield np.concatenate(held)


def flip_packed(A, pairs, flips, probability):
    width = -(-A.shape[1] // 8)
    octets = np.zeros((A.shape[0], width), dtype=np.uint8)
    flat = octets.reshape(-1)
    for ranks in (_edges(A, pairs), *flips):
        rows, columns = pairs.pair(ranks)
        _toggle(flat, rows, columns, width)
        if pairs.kind == "undirected":
            _toggle(flat, columns, rows, width)
    return PackedAdjacency(octets, A.shape[1], probability, pairs.kind)


def _toggle(flat, rows, columns, width):
    bits = (128 >> (columns & 7)).astype(np.uint8)
    np.bitwise_xor.at(flat, rows * width + (columns >> 3), bits)


def _edges(A, pairs):
    """Return the ranks of the edges, in order."""
    A = A.tocoo()
    rows, columns = A.row.astype(np.int64), A.col.astype(np.int64)
    if pairs.kind == "undirected":
        upper = rows < columns
        rows, columns = rows[upper], columns[upper]
    return np.sort(pairs.rank(rows, columns))

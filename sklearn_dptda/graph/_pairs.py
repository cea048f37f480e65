"""Pairs of nodes and their ranks, in exact integers."""

import numpy as np


class Pairs:
    """Numbering of the pairs that a graph can join.

    ``kind`` is "undirected": pairs ``(i, j)`` with ``i < j``, row by row; "directed": all pairs
    of different nodes, row by row; or "bipartite": all pairs of a row and a column.
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
        """Rank of each pair, in int64 like its row and column."""
        if self.kind == "undirected":
            return self._starts[rows] + columns - rows - 1
        skipped = (columns > rows) if self.kind == "directed" else 0
        return self._starts[rows] + columns - skipped

    def pair(self, ranks):
        """Rows and columns of ranks."""
        rows = np.searchsorted(self._starts, ranks, side="right") - 1
        # Rows without pairs share their start with the next row.
        columns = ranks - self._starts[rows]
        if self.kind == "undirected":
            return rows, columns + rows + 1
        if self.kind == "directed":
            return rows, columns + (columns >= rows)
        return rows, columns

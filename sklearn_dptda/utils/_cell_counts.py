"""Counts of the cells of a lattice that hold rows, of which there may be too many to hold all."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CellCounts:
    """Cells, as whole numbers of shape (n_cells, n_axes), and their numbers of rows, in pieces.

    A cell may be in several pieces until they are merged: sums of many small counts and a large
    one then take no longer than their cells are many.
    """

    pieces: list

    @classmethod
    def of(cls, cells):
        """Counts of rows, by the cell of each."""
        return cls([merged(cells, np.ones(len(cells), dtype=np.int64))])

    def __add__(self, other):
        pieces = [*self.pieces, *other.pieces]
        sizes = [len(counts) for _, counts in pieces]
        return CellCounts(pieces if 2 * max(sizes) > sum(sizes) else [_concatenated(pieces)])

    def merged(self):
        """Cells in lexicographic order, and their counts."""
        return self.pieces[0] if len(self.pieces) == 1 else _concatenated(self.pieces)

    def coarser(self, bits):
        """The same for cells that hold 2**bits of these along each axis."""
        cells, counts = self.merged()
        return CellCounts([merged(cells >> bits, counts)])


def _concatenated(pieces):
    return merged(*map(np.concatenate, zip(*pieces, strict=True)))


def merged(cells, counts):
    """Cells without repetition, in lexicographic order, and their counts together."""
    if len(cells) == 0:
        return cells, counts
    order = np.lexsort(cells.T[::-1])
    cells = cells[order]
    first = np.flatnonzero(np.r_[True, (cells[1:] != cells[:-1]).any(axis=1)])
    return cells[first], np.add.reduceat(counts[order], first)

"""Counts of the cells of a lattice that hold rows, of which there may be too many to hold all."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_dptda.privacy._choice import choose_member
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.utils._bounds import Extremes


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


# A private cube around points, by one draw of the exponential mechanism over cubes of all sizes.
#
# Costs are whole numbers: minus the points inside, plus a public price for each level of size.
# One point more, one less, or one replaced moves each cost by at most one, whatever is rounded,
# since each point is in a cell of its own.

# Powers of two between which cubes around the origin are nested.
_EXPONENTS = np.arange(-30, 61)
# Of a draw's epsilon, for the cubes around the origin where there is no start.
NESTED_SHARE = 1 / 3
# Of the epsilon of intervals: for the number of rows, where it is private.
_NUMBER_SHARE = 0.1
# Levels of size, by a factor of the root of two each.
_N_LEVELS = 24
# What one level of size is worth, in nats for each axis: larger cubes have more places around the
# same points, and must not be drawn for that.
_NATS = 2.5
# Shifts of a cube for each of its lengths, along all axes together.
_MOST_SHIFTS = 64


def private_intervals(rows, epsilon, adjacency, noise):
    """Lower and upper bounds of all columns, an interval for each, at ``epsilon`` together."""
    if math.isinf(epsilon):
        return rows.sum(Extremes.of).bounds()
    n, ways = rows.n_rows, 2
    if adjacency == "add-remove":
        scale = ROUND_UP / (_NUMBER_SHARE * epsilon)
        n, ways = max(n + int(noise.discrete_laplace(scale, 1)[0]), 1), 1
        epsilon *= 1 - _NUMBER_SHARE
    parts = [[j] for j in range(rows.n_features)]
    return private_cubes(rows, parts, None, epsilon / len(parts), ways, n, noise)


def private_cubes(rows, parts, start, epsilon, ways, n, noise):
    """Lower and upper bounds of all columns: a cube for each part of them, at ``epsilon`` each.

    ``start`` are bounds, or None; a replaced row moves costs both ways, ``ways`` being two, one row
    more or less moves all the same way.
    """
    low, high = np.empty((2, rows.n_features))
    for columns in parts:
        part, left = rows.selected(columns), epsilon
        if start is None:
            half = nested_cube(part, NESTED_SHARE * epsilon, n, noise)
            corner, width = np.full(len(columns), -half), 2 * half
            left *= 1 - NESTED_SHARE
        else:
            corner, width = start[0][columns], float((start[1] - start[0])[columns].max())
        low[columns], side = shifted_cube(part, corner, width, left / ways, n, noise)
        high[columns] = low[columns] + side
    return low, high


def _price(rate, n, n_levels, n_axes):
    """Price of a level: all levels together are worth a third of the points at most."""
    return min(math.ceil(_NATS * n_axes / rate), max(n // (3 * n_levels), 1))


def nested_cube(rows, rate, n, noise):
    """Half width of a cube around the origin, a power of two.

    All costs of nested cubes move the same way when one point is replaced: the draw is
    ``rate``-differentially private for that as well.
    """
    inside = rows.sum(_least_cubes)
    each = _price(rate, n, len(_EXPONENTS), 1)
    costs = [each * i - count for i, count in enumerate(np.cumsum(inside).tolist())]
    index, _ = choose_member(costs, [1] * len(costs), rate, noise)
    return 2.0 ** int(_EXPONENTS[index])


def _least_cubes(part):
    """Counts of the least of the nested cubes that hold each row; of none for the largest rows."""
    mantissas, exponents = np.frexp(np.abs(part).max(axis=1))
    # The least power of two that is not exceeded; a zero is in every cube.
    exponents = np.where(mantissas == 0, _EXPONENTS[0], exponents - (mantissas == 0.5))
    least = np.maximum(exponents - _EXPONENTS[0], 0)
    return np.bincount(least[least < len(_EXPONENTS)], minlength=len(_EXPONENTS))


@dataclass(frozen=True)
class _Level:
    """Cubes of one size in a start cube: corners on a lattice of a part of their side."""

    low: np.ndarray
    width: float
    level: int
    n_shifts: int

    @property
    def side(self):
        # Of every second level exactly half: its cells are unions of those two levels on.
        root = 0.5**0.5 if self.level % 2 else 1.0
        return math.ldexp(self.width * root, -(self.level // 2))

    @property
    def step(self):
        return self.side / self.n_shifts

    @property
    def n_corners(self):
        """Corners along each axis; the last cube may stick out of the start."""
        return math.ceil((self.width - self.side) / self.step - 1e-9) + 1

    def cells(self, X):
        """Cell of the lattice that each row is in; those at the ends hold what lies beyond."""
        last = self.n_corners + self.n_shifts - 2
        # Clipped before, so that nothing overflows, and after, for what is rounded.
        near = np.clip(X, self.low, self.low + (last + 1) * self.step)
        return np.clip(np.floor((near - self.low) / self.step), 0, last).astype(np.int64)

    def inside(self, counted):
        """Cubes that hold points, as corners in lexicographic order, and how many points.

        From the counts of the cells of this level.
        """
        corners, counts = counted.merged()
        for axis in range(len(self.low)):
            shifted = np.repeat(corners[None], self.n_shifts, axis=0)
            shifted[..., axis] -= np.arange(self.n_shifts)[:, None]
            shifted, weights = shifted.reshape(-1, len(self.low)), np.tile(counts, self.n_shifts)
            valid = (shifted[:, axis] >= 0) & (shifted[:, axis] < self.n_corners)
            corners, counts = merged(shifted[valid], weights[valid])
        return corners, counts


def shifted_cube(rows, low, width, rate, n, noise):
    """Lower corner and side of a cube within a start cube."""
    d = len(low)
    n_shifts = max(i for i in (1, 2, 4) if i**d <= _MOST_SHIFTS)
    levels = [_Level(low, width, level, n_shifts) for level in range(_N_LEVELS)]
    # Cubes without points must not be drawn for their number: a public cut.
    while len(levels) > 2 and d * math.log(levels[-1].n_corners) > rate * n / 4:
        levels.pop()
    each = _price(rate, n, len(levels), d)
    finest = rows.sum(partial(_in_cells, levels=levels[-2:]))
    groups = []
    for level in levels:
        _, counts = _inside(level, levels, finest)
        values, sizes = np.unique(counts, return_counts=True)
        empty = level.n_corners**d - len(counts)
        groups += [(level, *group) for group in zip(values.tolist(), sizes.tolist(), strict=True)]
        groups.append((level, 0, empty))
    costs = [each * (len(levels) - 1 - level.level) - count for level, count, _ in groups]
    group, member = choose_member(costs, [size for _, _, size in groups], rate, noise)
    level, count, _ = groups[group]
    corner = _corner(level, *_inside(level, levels, finest), count, member, noise)
    return level.low + corner * level.step, level.side


def _in_cells(part, levels):
    """Counts of the cells of each of some levels."""
    return tuple(CellCounts.of(level.cells(part)) for level in levels)


def _inside(level, levels, finest):
    """Cubes of a level that hold points, from the cells of the two finest ones."""
    finer, odd = divmod(len(levels) - 1 - level.level, 2)
    return level.inside(finest[1 - odd].coarser(finer))


def _corner(level, corners, counts, count, member, noise):
    if count > 0:
        return corners[counts == count][member]
    full = {tuple(corner) for corner in corners.tolist()}
    while True:
        corner = tuple(noise.below(level.n_corners) for _ in level.low)
        if corner not in full:
            return np.array(corner)

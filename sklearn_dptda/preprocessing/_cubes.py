"""A private cube around points, by one draw of the exponential mechanism over cubes of all sizes.

Costs are whole numbers: minus the points inside, plus a public price for each level of size. One
point more, one less, or one replaced moves each cost by at most one, whatever is rounded, since
each point is in a cell of its own.
"""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_dptda.privacy._choice import choose_member

# Powers of two between which cubes around the origin are nested.
_EXPONENTS = np.arange(-30, 61)
# Of a draw's epsilon, for the cubes around the origin where there is no start.
NESTED_SHARE = 1 / 3
# Levels of size, by a factor of the root of two each.
_N_LEVELS = 24
# What one level of size is worth, in nats for each axis: larger cubes have more places around the
# same points, and must not be drawn for that.
_NATS = 2.5
# Shifts of a cube for each of its lengths, along all axes together.
_MOST_SHIFTS = 64


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
    inside = np.zeros(len(_EXPONENTS), dtype=np.int64)
    for part in rows:
        mantissas, exponents = np.frexp(np.abs(part).max(axis=1))
        # The least power of two that is not exceeded; a zero is in every cube.
        exponents = np.where(mantissas == 0, _EXPONENTS[0], exponents - (mantissas == 0.5))
        least = np.maximum(exponents - _EXPONENTS[0], 0)
        inside += np.bincount(least[least < len(inside)], minlength=len(inside))
    each = _price(rate, n, len(_EXPONENTS), 1)
    costs = [each * i - count for i, count in enumerate(np.cumsum(inside).tolist())]
    index, _ = choose_member(costs, [1] * len(costs), rate, noise)
    return 2.0 ** int(_EXPONENTS[index])


@dataclass(frozen=True)
class _Level:
    """Cubes of one size in a start cube: corners on a lattice of a part of their side."""

    low: np.ndarray
    width: float
    level: int
    n_shifts: int

    @property
    def side(self):
        return self.width * 2.0 ** (-self.level / 2)

    @property
    def step(self):
        return self.side / self.n_shifts

    @property
    def n_corners(self):
        """Corners along each axis; the last cube may stick out of the start."""
        return math.ceil((self.width - self.side) / self.step - 1e-9) + 1

    def inside(self, rows):
        """Cubes that hold points, as corners in lexicographic order, and how many points."""
        last = self.n_corners + self.n_shifts - 2
        cells = [_counted(np.clip(np.floor((x - self.low) / self.step), 0, last)) for x in rows]
        corners, counts = _summed(*(np.concatenate(column) for column in zip(*cells, strict=True)))
        for axis in range(len(self.low)):
            shifted = np.repeat(corners[None], self.n_shifts, axis=0)
            shifted[..., axis] -= np.arange(self.n_shifts)[:, None]
            shifted, weights = shifted.reshape(-1, len(self.low)), np.tile(counts, self.n_shifts)
            valid = (shifted[:, axis] >= 0) & (shifted[:, axis] < self.n_corners)
            corners, counts = _summed(shifted[valid], weights[valid])
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
    groups = []
    for level in levels:
        _, counts = level.inside(rows)
        values, sizes = np.unique(counts, return_counts=True)
        empty = level.n_corners**d - len(counts)
        groups += [(level, *group) for group in zip(values.tolist(), sizes.tolist(), strict=True)]
        groups.append((level, 0, empty))
    costs = [each * (len(levels) - 1 - level.level) - count for level, count, _ in groups]
    group, member = choose_member(costs, [size for _, _, size in groups], rate, noise)
    level, count, _ = groups[group]
    corner = _corner(level, rows, count, member, noise)
    return level.low + corner * level.step, level.side


def _corner(level, rows, count, member, noise):
    corners, counts = level.inside(rows)
    if count > 0:
        return corners[counts == count][member]
    full = {tuple(corner) for corner in corners.tolist()}
    while True:
        corner = tuple(noise.below(level.n_corners) for _ in level.low)
        if corner not in full:
            return np.array(corner)


def _counted(cells):
    return np.unique(cells.astype(np.int64), axis=0, return_counts=True)


def _summed(cells, counts):
    """Cells without repetition, in lexicographic order, and their counts together."""
    if len(cells) == 0:
        return cells, counts
    order = np.lexsort(cells.T[::-1])
    cells = cells[order]
    first = np.flatnonzero(np.r_[True, (cells[1:] != cells[:-1]).any(axis=1)])
    return cells[first], np.add.reduceat(counts[order], first)

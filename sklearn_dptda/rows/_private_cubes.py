"""Private cubes around rows, or intervals of single columns, by one draw for each.

:func:`private_cubes` draws from the exponential mechanism over cubes of all sizes, or over
intervals of single columns. Costs are minus the number of points inside, plus a public price for
each level of size.
Proof: doc/theory/private_bounds.md, "The candidates".
Proof: doc/theory/private_bounds.md, "Cost and sensitivity".
Proof: doc/theory/private_bounds.md, "Drawing from more candidates than can be listed".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from sklearn_dptda._typing import Adjacency, FloatArray, IntArray
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._choice import choose_member
from sklearn_dptda.rows._rows import Rows


@dataclass(frozen=True)
class _CubeRules:
    """Public constants of :func:`private_cubes`.

    Accuracy only: how near a cube is, not what it costs.
    """

    # Smallest and largest power of two of the nested cubes around the origin.
    least_exponent: int = -30
    largest_exponent: int = 60
    # Share of the epsilon of a draw for the cubes around the origin, if there is no start.
    nested_share: float = 1 / 3
    # Number of levels of size. The sizes of two neighbouring levels differ by the factor sqrt(2).
    n_levels: int = 24
    # Price of one level of size, in nats for each axis. Larger cubes have more positions around the
    # same points, and must not be drawn more often because of that.
    nats: float = 2.5
    # Largest number of shifts of a cube by parts of its side, along all axes together.
    most_shifts: int = 64
    # Cubes that contain less than this share of all points have the cost of this share.
    few: float = 1 / 16


CUBE = _CubeRules()
# Accuracy only: larger numbers of cells are sorted without keys.
# Largest number of cells that keys of 64 bits distinguish.
_LARGEST_KEY = 1 << 62
_EXPONENTS = np.arange(CUBE.least_exponent, CUBE.largest_exponent + 1)


@dataclass(frozen=True)
class CellCounts:
    """Cells, as whole numbers of shape (n_cells, n_axes), and their numbers of rows, in pieces.

    A cell may occur in several pieces. They are merged late, so that many small sums stay cheap.
    """

    pieces: list[tuple[IntArray, IntArray]]

    @classmethod
    def of(cls, cells: IntArray) -> Self:
        """Count rows by their cells."""
        return cls([merged(cells, np.ones(len(cells), dtype=np.int64))])

    def __add__(self, other: "CellCounts") -> "CellCounts":
        pieces = [*self.pieces, *other.pieces]
        sizes = [len(counts) for _, counts in pieces]
        return CellCounts(pieces if 2 * max(sizes) > sum(sizes) else [_concatenated(pieces)])

    def __rmul__(self, weight: int) -> "CellCounts":
        return CellCounts([(cells, weight * counts) for cells, counts in self.pieces])

    def merged(self) -> tuple[IntArray, IntArray]:
        """Cells in lexicographic order, and their counts."""
        return self.pieces[0] if len(self.pieces) == 1 else _concatenated(self.pieces)

    def coarser(self, bits: int) -> "CellCounts":
        """The counts of larger cells, which contain 2**bits of these cells along each axis."""
        cells, counts = self.merged()
        return CellCounts([merged(cells >> bits, counts)])


def _concatenated(pieces: list[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    cells, counts = zip(*pieces, strict=True)
    return merged(np.concatenate(cells), np.concatenate(counts))


def merged(cells: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Cells without repetition, in lexicographic order, and their total counts."""
    if len(cells) == 0:
        return cells, counts
    low = cells.min(axis=0)
    sides = [int(side) + 1 for side in cells.max(axis=0) - low]
    if math.prod(sides) < _LARGEST_KEY:
        # One number for each cell, in the same order, because sorting numbers is much faster.
        keys = np.zeros(len(cells), dtype=np.int64)
        for column, least, side in zip(cells.T, low, sides, strict=True):
            keys *= side
            keys += column - least
        order = np.argsort(keys)
        keys = keys[order]
        new = keys[1:] != keys[:-1]
    else:
        order = np.lexsort(cells.T[::-1])
        new = (np.diff(cells[order], axis=0) != 0).any(axis=1)
    # Faster than np.r_, for the few cells of most levels.
    first = np.flatnonzero(np.concatenate(([True], new)))
    return cells[order[first]], np.add.reduceat(counts[order], first)


def private_cubes(
    rows: Rows,
    parts: Sequence[list[int]],
    *,
    start: tuple[FloatArray, FloatArray] | None,
    epsilon: float,
    adjacency: Adjacency,
    n: int,
    noise: NoiseSource,
    least_gain: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of all columns: a cube for each part of them, for ``epsilon`` each.

    ``start`` contains public bounds, or is None. ``n`` is the public or private number of rows. A
    cube of the next size must contain a share of them more of at least ``least_gain``, however
    small the noise is.
    """
    # A replaced row may increase some costs and decrease others. An added or removed row changes
    # all costs in the same direction.
    directions = 1 if adjacency == "add-remove" else 2
    low, high = np.empty((2, rows.n_features))
    for columns in parts:
        part, left = rows.selected(columns), epsilon
        if start is None:
            share = CUBE.nested_share * epsilon
            half = nested_cube(part, share, n, noise)
            corner, width = np.full(len(columns), -half), 2 * half
            left *= 1 - CUBE.nested_share
        else:
            corner, width = start[0][columns], float((start[1] - start[0])[columns].max())
        rate = left / directions
        given = part, corner, width, rate, n, noise, directions, least_gain
        low[columns], side = shifted_cube(*given)
        high[columns] = low[columns] + side
    return low, high


def _price(rate: float, n: int, n_levels: int, n_axes: int) -> int:
    """Price of a level, such that all levels together cost at most a third of the points."""
    return min(math.ceil(CUBE.nats * n_axes / rate), max(n // (3 * n_levels), 1))


def nats_of_a_level(epsilon: float, n: int) -> float:
    """Logarithm of how much rarer the next larger nested cube is drawn, if no row decides."""
    rate = CUBE.nested_share * epsilon
    return rate * _price(rate, n, len(_EXPONENTS), 1)


def nested_cube(rows: Rows, rate: float, n: int, noise: NoiseSource) -> float:
    """Half width of a cube around the origin, a power of two.

    The loss is the rate under either adjacency.
    Proof: doc/theory/private_bounds.md, "The candidates".
    """
    inside = rows.sum(_least_cubes)
    each = _price(rate, n, len(_EXPONENTS), 1)
    costs = [each * i - count for i, count in enumerate(np.cumsum(inside).tolist())]
    index = noise.cross(
        costs,
        lambda costs: choose_member(costs, [1] * len(costs), rate, noise)[0],
        metric="range",
        sensitivity=rows.mass,
        rate=rate,
        law="range",
    )
    return 2.0 ** int(_EXPONENTS[index])


def _least_cubes(part: FloatArray) -> IntArray:
    """Counts of rows by the smallest nested cube that contains them, if there is one."""
    mantissas, exponents = np.frexp(np.abs(part).max(axis=1))
    # The smallest power of two that the row does not exceed. Zero is in every cube.
    exponents = np.where(mantissas == 0, _EXPONENTS[0], exponents - (mantissas == 0.5))
    least = np.maximum(exponents - _EXPONENTS[0], 0)
    return np.bincount(least[least < len(_EXPONENTS)], minlength=len(_EXPONENTS))


# Accuracy only: the candidates are public, and how they are looked for changes no result.
# Logarithm of the largest number of cubes of a level. No cube has a probability of less than 1e-60
# of the most likely one, or exp(-138), so together they stay far below it.
_MOST_NATS = 110.0
# Up to this number of corners, looking for those near many points takes longer than it saves.
_FEW_CORNERS = 1000


@dataclass(frozen=True)
class _Level:
    """Cubes of one size in a start cube, with corners on a lattice of a part of their side."""

    low: FloatArray
    width: float
    level: int
    n_shifts: int

    @property
    def side(self) -> float:
        # The side is exactly halved every two levels, so each cell is a union of cells two levels
        # further on.
        root = 0.5**0.5 if self.level % 2 else 1.0
        return math.ldexp(self.width * root, -(self.level // 2))

    @property
    def step(self) -> float:
        return self.side / self.n_shifts

    @property
    def n_corners(self) -> int:
        """Number of corners along each axis; the last cube may extend beyond the start cube."""
        return math.ceil((self.width - self.side) / self.step - 1e-9) + 1

    @property
    def nats(self) -> float:
        """Logarithm of the number of cubes."""
        return len(self.low) * math.log(self.n_corners)

    def cells(self, X: FloatArray) -> IntArray:
        """Lattice cell of each row; the cells at the ends also contain the rows outside."""
        last = self.n_corners + self.n_shifts - 2
        # Rows are clipped before the division to avoid overflow, and after it because of rounding.
        near = np.clip(X, self.low, self.low + (last + 1) * self.step)
        near -= self.low
        near /= self.step
        cells = np.clip(np.floor(near, out=near), 0, last, out=near)
        # Nearly every row may have a cell of its own, so small numbers keep the memory small.
        return cells.astype(np.int16 if last < np.iinfo(np.int16).max else np.int64)

    def inside(self, counted: CellCounts, few: int = 0) -> tuple[IntArray, IntArray]:
        """Cubes of more than ``few`` points, as corners in lexicographic order, and counts."""
        corners, counts = counted.merged()
        if len(corners) * self.n_shifts ** (len(self.low) - 1) > _FEW_CORNERS:
            corners, counts = self._near_many(corners, counts, few)
        for axis in range(len(self.low)):
            shifted = np.repeat(corners[None], self.n_shifts, axis=0)
            shifted[..., axis] -= np.arange(self.n_shifts)[:, None]
            shifted, weights = shifted.reshape(-1, len(self.low)), np.tile(counts, self.n_shifts)
            valid = (shifted[:, axis] >= 0) & (shifted[:, axis] < self.n_corners)
            corners, counts = merged(shifted[valid], weights[valid])
        return corners[counts > few], counts[counts > few]

    def _near_many(self, cells: IntArray, counts: IntArray, few: int) -> tuple[IntArray, IntArray]:
        """Cells that may be in a cube of more than ``few`` points, which are usually much fewer.

        Such a cube intersects at most two blocks of its size along each axis. One of these has an
        equal share of the points or more, and all cells are in it or in its neighbours.
        """
        blocks = cells // self.n_shifts
        places, points = merged(blocks, counts)
        many = places[points > few >> len(self.low)]
        near = np.ones(len(cells), dtype=bool)
        for axis in range(len(self.low)):
            around = np.unique(many[:, axis])[:, None] + [-1, 0, 1]
            near &= np.isin(blocks[:, axis], around)
        return cells[near], counts[near]


def shifted_cube(
    rows: Rows,
    low: FloatArray,
    width: float,
    rate: float,
    n: int,
    noise: NoiseSource,
    directions: int = 1,
    least_gain: float = 0.0,
) -> tuple[FloatArray, float]:
    """Lower corner and side of a cube; a record changes costs in one or both ``directions``."""
    d = len(low)
    n_shifts = max(i for i in (1, 2, 4) if i**d <= CUBE.most_shifts)
    levels = [_Level(low, width, level, n_shifts) for level in range(CUBE.n_levels)]
    # Empty cubes must not be drawn only because there are many. This cut is public.
    while len(levels) > 2 and levels[-1].nats > rate * n / 4:
        levels.pop()
    while levels[-1].nats > _MOST_NATS:
        levels.pop()
    each, few = _price(rate, n, len(levels), d), int(CUBE.few * n)
    if math.isfinite(rate):
        # Without noise and without privacy, the cube contains every row.
        each = max(each, int(least_gain * n))
    level, corner = noise.cross(
        _cubes_of_many(levels, rows.sum(partial(_in_cells, levels=levels[-2:])), few),
        partial(_drawn_cube, levels=levels, each=each, few=few, rate=rate, noise=noise),
        metric=partial(_range_of_changes, few=few),
        sensitivity=directions * rows.mass,
        rate=rate,
        law="range",
    )
    return level.low + corner * level.step, level.side


def _drawn_cube(
    found: list[tuple[IntArray, IntArray]],
    levels: list[_Level],
    each: int,
    few: int,
    rate: float,
    noise: NoiseSource,
) -> tuple[_Level, IntArray]:
    """Draw a level and a corner, given the cubes of many points of each level and their counts."""
    groups = []
    for level, (_, counts) in zip(levels, found, strict=True):
        values, sizes = np.unique(counts, return_counts=True)
        others = level.n_corners ** len(level.low) - len(counts)
        groups += [(level, *group) for group in zip(values.tolist(), sizes.tolist(), strict=True)]
        groups.append((level, few, others))
    costs = [each * (len(levels) - 1 - level.level) - count for level, count, _ in groups]
    group, member = choose_member(costs, [size for _, _, size in groups], rate, noise)
    level, count, _ = groups[group]
    corners, counts = found[level.level]
    if count > few:
        return level, corners[counts == count][member]
    return level, _other_corner(level, corners, noise)


def _range_of_changes(
    one: list[tuple[IntArray, IntArray]], other: list[tuple[IntArray, IntArray]], few: int
) -> float:
    """Largest minus smallest change of the count of a cube; other cubes count as ``few``."""
    # Every level has cubes of few points, which do not change, unless all of them are found.
    changes = [0]
    for first, second in zip(one, other, strict=True):
        counted = [
            dict(zip(map(tuple, corners.tolist()), counts.tolist(), strict=True))
            for corners, counts in (first, second)
        ]
        for corner in counted[0].keys() | counted[1].keys():
            changes.append(counted[0].get(corner, few) - counted[1].get(corner, few))
    return float(max(changes) - min(changes))


def _in_cells(part: FloatArray, levels: list[_Level]) -> tuple[CellCounts, ...]:
    """Counts of the cells of each of some levels."""
    # A row without a value is in no cube.
    known = part[~np.isnan(part).any(axis=1)]
    return tuple(CellCounts.of(level.cells(known)) for level in levels)


def _cubes_of_many(
    levels: list[_Level], finest: tuple[CellCounts, ...], few: int
) -> list[tuple[IntArray, IntArray]]:
    """Cubes of more than ``few`` points of each level, from the cells of the two finest levels."""
    found = []
    cells = list(finest)
    for level in reversed(levels):
        counted = cells.pop()
        found.append(level.inside(counted, few))
        # The side of the cubes doubles every two levels.
        cells.insert(0, counted.coarser(1))
    return found[::-1]


def _other_corner(level: _Level, corners: IntArray, noise: NoiseSource) -> IntArray:
    """Draw uniformly among the cubes of a level that are not in ``corners``."""
    taken = {tuple(corner) for corner in corners.tolist()}
    while True:
        corner = tuple(noise.below(level.n_corners) for _ in level.low)
        if corner not in taken:
            return np.array(corner)

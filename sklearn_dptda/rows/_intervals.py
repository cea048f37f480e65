"""Private intervals for columns that have no public bounds, by either of two mechanisms.

:func:`private_box` serves fits that release noisy histograms: of magnitudes by powers of two, then
of cells, then of distances from the mean. An interval is as wide as the extremes of a normally
distributed column, extrapolated from the quantiles that the noise leaves visible.
Proof: doc/theory/private_bounds.md, "Columns of a table".

:func:`private_cubes` draws once from the exponential mechanism over cubes of all sizes, or over
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
from scipy.stats import norm

from sklearn_dptda._typing import Adjacency, BoolArray, FloatArray, IntArray
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._choice import choose_member
from sklearn_dptda.rows._localisation import (
    Budget,
    counts_by_column,
    mean_place,
    of_columns,
    standing_out,
)
from sklearn_dptda.rows._moments import KEPT, FitBudget
from sklearn_dptda.rows._rows import Box, Ends, Rows, count_beyond
from sklearn_dptda.utils._bounds import Extremes


@dataclass(frozen=True)
class _HistogramRules:
    """Public constants of :func:`private_box`: how narrow a box is, not what it costs."""

    # Shares of the budget of the box: for the magnitudes, for each narrower histogram, and for the
    # distances.
    sizes: float = 0.15
    look: float = 0.1
    distances: float = 0.45
    most_looks: int = 4
    # Range of the powers of two. Smaller numbers count as zero, and larger ones as the largest.
    least_exponent: int = -40
    largest_exponent: int = 60
    # Standard deviations of noise above which a magnitude is accepted. The threshold is high,
    # because a wrong magnitude would be far too large.
    clear_size: float = 4.0
    # The same threshold for a first run of cells other than that of the zeros. If the run is only
    # noise, the cell of zeros is used as well.
    clear_run: float = 9.0
    # The next histogram is narrower if the rows are in less than this share of the cells. It then
    # has the given number of spare cells.
    narrow: float = 1 / 4
    spare_cells: int = 4
    parts_per_octave: int = 2
    octaves: int = 40
    # Smallest and largest share of the rows beyond the far quantiles (the noise decides which one
    # is used), and the share beyond one standard deviation of a normal column.
    far: tuple[float, float] = (0.01, 0.08)
    near: tuple[float, float] = (0.16, 0.16)
    # Number of rows beyond a far quantile, in standard deviations of the noise.
    worth: float = 4.0
    # Half width of a box, in standard deviations of a normal column. One row in 5,000 is outside.
    half_width: float = 3.55
    # Part of the share for bounds within given ones that is spent on checking whether there are
    # enough rows, and smallest part of the width that may remain.
    number_share: float = 0.05
    least_part: float = 2.0**-40
    least_beside_ends: float = 2.0**-34
    # If an estimated interval is narrower than this part of the given width, the given bounds are
    # generous. If they are not, and there are fewer rows than this multiple of the necessary
    # number, the noise in the units would cost more than the narrower interval gains.
    generous: float = 1 / 5
    sure_rows: float = 3.5
    # Intervals that are narrower than the given ones by this factor are rejected if more than the
    # share ``reaching`` of the rows lies beyond ``far_out`` times the interval. Few rows of a
    # lognormal distribution do.
    much_narrower: float = 1 / 16
    far_out: float = 4.0
    reaching: float = 0.0025
    # Growth of the quantiles relative to those of the normal distribution, as exponents, for
    # bounded tails and for heavy ones.
    tails: tuple[float, float] = (0.3, 1.6)


@dataclass(frozen=True)
class _CubeRules:
    """Public constants of :func:`private_cubes`: how near a cube is, not what it costs."""

    # Smallest and largest power of two of the nested cubes around the origin.
    least_exponent: int = -30
    largest_exponent: int = 60
    # Share of the epsilon of a draw for the cubes around the origin, if there is no start.
    nested_share: float = 1 / 3
    # Share of the epsilon of intervals for the number of rows, if it is private.
    number_share: float = 0.1
    # Number of levels of size. The sizes of two neighbouring levels differ by the factor sqrt(2).
    n_levels: int = 24
    # Price of one level of size, in nats for each axis. Larger cubes have more positions around the
    # same points, and must not be drawn more often because of that.
    nats: float = 2.5
    # Largest number of shifts of a cube by parts of its side, along all axes together.
    most_shifts: int = 64
    # Cubes that contain less than this share of all points have the cost of this share.
    few: float = 1 / 16


_BOX, CUBE = _HistogramRules(), _CubeRules()
# Largest number of cells that keys of 64 bits distinguish.
_LARGEST_KEY = 1 << 62
_EXPONENTS = np.arange(CUBE.least_exponent, CUBE.largest_exponent + 1)


def private_box(
    rows: Rows, budget: FitBudget, share: float
) -> tuple[FloatArray, FloatArray, float]:
    """Lower and upper bounds of all columns, and their cost, which is at most ``share``."""
    d = rows.n_features
    rows = rows.map(
        partial(
            np.clip,
            a_min=-(2.0**_BOX.largest_exponent),
            a_max=2.0**_BOX.largest_exponent,
        )
    )
    counts, sd = budget.noisy_counts(rows.sum(_of_sizes), d, _BOX.sizes * share)
    largest = np.array([_largest(column, sd) for column in counts])
    middle, n_looks = _middle(rows, largest, budget, _BOX.look * share)
    reach = largest + np.abs(middle)
    counts = rows.sum(partial(_of_distances, middle=middle, reach=reach))
    counts, sd = budget.noisy_counts(counts, d, _BOX.distances * share)
    ends = np.array([_ends(column, sd, counts.sum() / d) for column in counts])
    low, high = middle + reach * ends[:, 0], middle + reach * ends[:, 1]
    return (
        low,
        high,
        (_BOX.sizes + n_looks * _BOX.look + _BOX.distances) * share,
    )


def box_within(
    rows: Rows,
    low: FloatArray,
    high: FloatArray,
    budget: Budget,
    share: float,
    others_are_found: bool = False,
) -> tuple[Ends, Ends, Budget]:
    """Bounds within given ones, units of the columns, and the remaining budget.

    The bounds cost at most ``share``. If noise would hide the far quantiles, the given bounds are
    returned. The units are the bounds. If some given bounds are generous or others were estimated,
    they are the intervals before these are cut off at the given bounds, unless they are wider.
    """
    number_share = _BOX.number_share * share
    counts, _ = budget.noisy_counts(np.array([rows.n_rows]), 1, number_share)
    budget, share = budget.rest(number_share), share - 2 * number_share
    needed = rows_for_box(rows.n_features, budget, share)
    if counts[0] < needed:
        return (low, high), (low, high), budget
    # The search is done in the cube, so the result does not depend on the units of the columns.
    box = Box.centred(low, high)
    cube = rows.map(box.to_cube)
    *ends, spent = private_box(cube, budget, share)
    left, right = np.clip(ends, -1.0, 1.0)
    budget = budget.rest(spent)
    # Noise alone may produce a tiny interval, and so may a column of a single value.
    ends_in_units = np.maximum(np.abs(low), np.abs(high)) / box.unit
    found = right - left > np.maximum(_BOX.least_part, _BOX.least_beside_ends * ends_in_units)
    far = found & (right - left < 2 * _BOX.much_narrower)
    if far.any():
        budget, reached = _reaches_out(cube, left, right, far, budget, share)
        found &= ~(far & reached)
    of_one_kind = others_are_found or bool((found & (right - left < 2 * _BOX.generous)).any())
    found &= of_one_kind or counts[0] >= _BOX.sure_rows * needed
    # Given ends are returned unchanged, without rounding.
    lower = np.where(found & (left > -1), np.maximum(box.points(left), low), low)
    upper = np.where(found & (right < 1), np.minimum(box.points(right), high), high)
    if not of_one_kind:
        return (lower, upper), (lower, upper), budget
    uncut = np.minimum(ends[0], left), np.maximum(ends[1], right)
    # Noise may extrapolate an interval far beyond the given ends, which contain all rows.
    found &= uncut[1] - uncut[0] <= 2
    units = (
        np.where(found, box.points(uncut[0]), low),
        np.where(found, box.points(uncut[1]), high),
    )
    return (lower, upper), units, budget


def _reaches_out(
    rows: Rows,
    left: FloatArray,
    right: FloatArray,
    far: BoolArray,
    budget: Budget,
    share: float,
) -> tuple[Budget, bool]:
    """Whether rows lie far outside the intervals of the cube, in any of the columns ``far``.

    Bounds that such rows reach are not generous.
    """
    middle, reach = (left + right) / 2, _BOX.far_out * (right - left) / 2
    low, high = np.where(far, middle - reach, -1.0), np.where(far, middle + reach, 1.0)
    outside = rows.sum(partial(count_beyond, low=low, high=high))
    share *= _BOX.number_share
    counts, sd = budget.noisy_counts(np.array([rows.n_rows - outside, outside]), 1, share)
    enough = max(KEPT * sd, _BOX.reaching * counts.sum())
    return budget.rest(share), bool(counts[1] > enough)


def rows_for_box(n_features: int, budget: FitBudget, share: float) -> float:
    """Number of rows below which the noise hides the far quantiles of a column."""
    sd = budget.deviation(budget.scale_of_counts(n_features, _BOX.distances * share))
    return _BOX.worth * sd / _BOX.far[1]


def _middle(
    rows: Rows, largest: FloatArray, budget: FitBudget, share: float
) -> tuple[FloatArray, int]:
    """Means of the rows that stand out in each column, and the number of histograms used."""
    centre, half, active = np.zeros(len(largest)), largest.copy(), np.arange(len(largest))
    n_looks = 0
    while len(active) and n_looks < _BOX.most_looks:
        n_looks += 1
        look = partial(of_columns, centre=centre[active], half=half[active])
        counts = rows.selected(active).sum(look)
        counts, sd = budget.noisy_counts(counts, len(active), share)
        again = []
        for column, j in zip(counts, active, strict=True):
            # The cells at the ends contain the rows outside the current interval.
            run = standing_out(column[1:-1], sd)
            centre[j] += half[j] * (1 - 2 / len(column)) * mean_place(column[1:-1], sd)
            if np.diff(run) < _BOX.narrow * len(column):
                half[j] *= (np.diff(run).item() + _BOX.spare_cells) / len(column)
                again.append(j)
        active = np.array(again, dtype=int)
    return centre, n_looks


def _of_sizes(part: FloatArray) -> IntArray:
    """Counts of numbers by the power of two that they are below, in decreasing order."""
    mantissas, exponents = np.frexp(part)
    exponents = np.where(
        mantissas == 0,
        _BOX.least_exponent,
        np.clip(exponents, _BOX.least_exponent, _BOX.largest_exponent),
    )
    return counts_by_column(
        _BOX.largest_exponent - exponents,
        _BOX.largest_exponent - _BOX.least_exponent + 1,
    )


def _largest(counts: FloatArray, sd: float) -> float:
    """Power of two that almost no number exceeds; 1 if all counts are noise."""
    # Zeros are in the last cell, and there may be so many that they hide the other numbers.
    start, stop = standing_out(counts[:-1], sd, _BOX.clear_size, _BOX.clear_run)
    if stop - start == len(counts) - 1:
        start, stop = standing_out(counts, sd, _BOX.clear_size)
    # One octave is added, because noise may have hidden some numbers.
    return 2.0 ** (_BOX.largest_exponent + 1 - start) if stop - start < len(counts) else 1.0


def _of_distances(part: FloatArray, middle: FloatArray, reach: FloatArray) -> IntArray:
    """Counts of distances by parts of octaves, from far to near, below and above the middle."""
    n = _BOX.parts_per_octave * _BOX.octaves
    # Comparisons are used, because the rounding of logarithms may depend on the place in an array.
    ends = _sizes_of_parts()[1:-1][::-1]
    offsets = (part - middle) / reach
    cells = n - 1 - np.searchsorted(ends, np.abs(offsets)) + np.where(offsets < 0, 0, n)
    return counts_by_column(cells, 2 * n)


def _sizes_of_parts() -> FloatArray:
    """Ends of the parts of octaves, from 1 down to 0."""
    return np.r_[
        2.0 ** (-np.arange(_BOX.parts_per_octave * _BOX.octaves) / _BOX.parts_per_octave),
        0.0,
    ]


def _ends(counts: FloatArray, sd: float, n: float) -> tuple[float, float]:
    """Ends of a column's interval, in units of the reach."""
    n, least = max(n, 3 * sd, 1.0), _sizes_of_parts()[-2]
    sides = np.split(counts, 2)
    (low, below), (high, above) = (_quantile(side, _BOX.far, sd, n) for side in sides)
    inner = sum(_quantile(side, _BOX.near, sd, n)[0] for side in sides) / 2
    outer = max((low + high) / 2, least)
    z = norm.isf((below + above) / 2)
    exponent = math.log(outer / np.clip(inner, least, outer)) / math.log(z)
    half = outer * (_BOX.half_width / z) ** np.clip(exponent, *_BOX.tails)
    return (high - low) / 2 - half, (high - low) / 2 + half


def _quantile(
    counts: FloatArray, shares: tuple[float, float], sd: float, n: float
) -> tuple[float, float]:
    """Distance beyond which a share of the rows lies, and this share, between two ``shares``."""
    start, _ = standing_out(counts, sd)
    counts, edges = counts[start:], _sizes_of_parts()[start:]
    sums, noise = np.cumsum(counts), _BOX.worth * sd * np.sqrt(np.arange(1, len(counts) + 1))
    wanted = np.clip(noise, shares[0] * n, shares[1] * n)
    enough = sums >= wanted
    cell = int(enough.argmax()) if enough.any() else len(counts) - 1
    part = (wanted[cell] - sums[cell] + counts[cell]) / max(counts[cell], 1e-9)
    place = edges[cell] + np.clip(part, 0.0, 1.0) * (edges[cell + 1] - edges[cell])
    return place, wanted[cell] / n


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


def private_intervals(
    rows: Rows, epsilon: float, adjacency: Adjacency, noise: NoiseSource
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of all columns, one interval for each, for ``epsilon`` in total."""
    if math.isinf(epsilon):
        return rows.sum(Extremes.of).bounds()
    n = rows.n_rows
    if adjacency == "add-remove":
        n = max(noise.noisy_count(n, rows.mass, CUBE.number_share * epsilon)[0], 1)
        epsilon *= 1 - CUBE.number_share
    parts = [[j] for j in range(rows.n_features)]
    each = epsilon / len(parts)
    return private_cubes(
        rows, parts, start=None, epsilon=each, adjacency=adjacency, n=n, noise=noise
    )


def private_cubes(
    rows: Rows,
    parts: Sequence[list[int]],
    *,
    start: tuple[FloatArray, FloatArray] | None,
    epsilon: float,
    adjacency: Adjacency,
    n: int,
    noise: NoiseSource,
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of all columns: a cube for each part of them, for ``epsilon`` each.

    ``start`` contains public bounds, or is None. ``n`` is the public or private number of rows.
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
        low[columns], side = shifted_cube(part, corner, width, rate, n, noise, directions)
        high[columns] = low[columns] + side
    return low, high


def _price(rate: float, n: int, n_levels: int, n_axes: int) -> int:
    """Price of a level, such that all levels together cost at most a third of the points."""
    return min(math.ceil(CUBE.nats * n_axes / rate), max(n // (3 * n_levels), 1))


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
        return np.clip(np.floor((near - self.low) / self.step), 0, last).astype(np.int64)

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
    return tuple(CellCounts.of(level.cells(part)) for level in levels)


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

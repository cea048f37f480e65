"""Measures by a tree of pairs of columns, which are counted together with a hub of small columns.

Proof: doc/theory/metric_privacy.md, "A tree of pairs around small columns".
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.rows._rows import BATCH, Rows
from sklearn_dptda.synthetic._box_measure import Line, NoisyTrees, between

# Accuracy only: lines, choices and tables share the budget, and cells were released.
# Largest number of cells of the columns that are joined to a hub.
_HUB_CELLS = 8
# Share of the budget for the columns one by one, and share of the rest for the choice of pairs.
# Scores are of the order of the number of rows, so a small share chooses well.
_SHARE_OF_LINES, _SHARE_OF_CHOICE = 0.4, 1 / 12
# Largest number of cells of a column, and number of cells when pairs are chosen. Columns of fewer
# values have a cell for each of them.
_MOST_CELLS, _SCORE_CELLS = 32, 8
# Least mean count of a cell of a table, in standard deviations of its noise.
_ROWS_PER_NOISE = 4.0
# Largest number of counts from which pairs are chosen.
MOST_SCORED = 1 << 23
# Number of times that a table is scaled to its margins, and least share of a cell.
_RAKINGS, _LEAST_SHARE = 20, 1e-9


@dataclass(frozen=True)
class Hub:
    """The joined columns of the fewest values, as the last axis behind the others.

    ``sizes`` are numbers of values of all columns, infinite for numbers. In columns with ``gaps``,
    the upper half of the numbers stands for a missing one.
    """

    sizes: FloatArray
    joined: tuple[int, ...]
    gaps: BoolArray

    @classmethod
    def of(cls, sizes: FloatArray, hint: int | None = None, gaps: Any = False) -> "Hub":
        """Join the columns of the fewest values, and before them the column of the hint.

        Missing values do not count as values.
        """
        values = sizes - np.asarray(gaps, dtype=int)
        joined, n_cells = [] if hint is None else [hint], 1.0 if hint is None else values[hint]
        for column in np.argsort(values, kind="stable").tolist():
            if column != hint and n_cells * values[column] <= _HUB_CELLS:
                joined.append(column)
                n_cells *= values[column]
        return cls(sizes, tuple(joined), np.isinf(sizes) & gaps)

    @property
    def others(self) -> list[int]:
        """Columns outside the hub."""
        return [a for a in range(len(self.sizes)) if a not in self.joined]

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of values of the joined columns."""
        return tuple(int(self.sizes[a]) for a in self.joined)

    @property
    def axis_sizes(self) -> FloatArray:
        """Numbers of values of the axes: of the others, and then of the hub if there is one."""
        sizes = self.sizes[self.others]
        return np.r_[sizes, math.prod(self.shape)] if self.joined else sizes

    @property
    def halved(self) -> set[int]:
        """Axes whose upper half stands for a missing number."""
        return {axis for axis, column in enumerate(self.others) if self.gaps[column]}

    def n_scored(self) -> int:
        """Number of counts from which pairs are chosen, at most."""
        sizes = self.sizes[self.others]
        cells = np.where(sizes <= _MOST_CELLS, sizes, _SCORE_CELLS)
        pairs = (cells.sum() ** 2 - (cells**2).sum()) / 2
        return int(pairs * math.prod(self.shape))

    def axes(self, part: FloatArray) -> FloatArray:
        """Convert rows of all columns to rows of the axes."""
        if not self.joined:
            return part
        sizes = self.sizes[list(self.joined)]
        values = np.minimum((part[:, list(self.joined)] * sizes).astype(np.int64), sizes - 1)
        codes = np.ravel_multi_index(tuple(values.astype(np.int64).T), self.shape)
        return np.column_stack([part[:, self.others], (codes + 0.5) / math.prod(self.shape)])

    def columns(self, points: FloatArray) -> FloatArray:
        """Convert rows of the axes to rows of all columns."""
        if not self.joined:
            return points
        found = np.empty((len(points), len(self.sizes)))
        found[:, self.others] = points[:, :-1]
        codes = (points[:, -1] * math.prod(self.shape)).astype(np.int64)
        for column, values in zip(self.joined, np.unravel_index(codes, self.shape), strict=True):
            found[:, column] = (values + 0.5) / self.sizes[column]
        return found

    def lines(self, of_axes: list[Line]) -> list[Line]:
        """Convert the lines of the axes to those of all columns."""
        found = dict(zip(self.others, of_axes, strict=False))
        if self.joined:
            ends, below = of_axes[-1]
            places = np.arange(math.prod(self.shape) + 1) / math.prod(self.shape)
            masses = np.diff(np.interp(places, ends, below)).reshape(self.shape)
            for place, column in enumerate(self.joined):
                other_axes = tuple(k for k in range(masses.ndim) if k != place)
                sums = np.cumsum(masses.sum(axis=other_axes))
                ends = np.arange(len(sums) + 1) / len(sums)
                found[column] = ends, np.r_[0.0, sums[:-1], 1.0]
        return [found[a] for a in range(len(self.sizes))]


@dataclass(frozen=True)
class Family:
    """Axes whose counts are released together, inner ends of their cells, and masses of cells.

    The last of the axes is drawn given the others.
    """

    axes: tuple[int, ...]
    cuts: tuple[FloatArray, ...]
    table: FloatArray

    def margin(self, axis: int) -> FloatArray:
        """Masses of the cells of an axis."""
        place = self.axes.index(axis)
        return self.table.sum(axis=tuple(k for k in range(len(self.axes)) if k != place))

    def cells(self, points: FloatArray, rng: np.random.Generator) -> IntArray:
        """Cell of the last axis, drawn for each point given its other coordinates."""
        given = [
            np.searchsorted(cut, points[:, axis], side="right")
            for axis, cut in zip(self.axes[:-1], self.cuts[:-1], strict=True)
        ]
        *shape, n_cells = self.table.shape
        rows = np.ravel_multi_index(given, shape) if given else np.zeros(len(points), np.intp)
        sums = np.cumsum(self.table, axis=-1).reshape(-1, n_cells)
        draws = rng.random(len(points)) * sums[rows, -1]
        return np.minimum(_numbers_up_to(draws, sums, rows), n_cells - 1)


def _numbers_up_to(values: FloatArray, lines: FloatArray, rows: IntArray) -> IntArray:
    """How many numbers of its row of ``lines``, which increase, are at most each value."""
    n = lines.shape[1]
    step: int = 1 << n.bit_length() - 1
    padded = np.pad(lines, [(0, 0), (0, 2 * step - n)], constant_values=np.inf)
    starts, found = rows * (2 * step), np.zeros(len(values), dtype=np.intp)
    while step:
        found += step * (padded.ravel()[starts + found + (step - 1)] <= values)
        step //= 2
    return found


@dataclass(frozen=True)
class TreeMeasure:
    """A released measure: the lines of the axes, and families in the order of drawing."""

    hub: Hub
    lines: list[Line]
    families: list[Family]
    edges: list[tuple[int, int]] = field(default_factory=list)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw points of the unit cube."""
        parts = [self._drawn(min(BATCH, n - start), rng) for start in range(0, n, BATCH)]
        return self.hub.columns(np.concatenate(parts))

    def _drawn(self, n, rng):
        points = np.zeros((n, len(self.lines)))
        for family in self.families:
            axis = family.axes[-1]
            cells = family.cells(points, rng)
            line, ends = self.lines[axis], np.r_[0.0, family.cuts[-1], 1.0]
            # Cells are few, so that the masses below their ends are looked up once.
            below = np.asarray(np.interp(ends, *line))
            sides, masses = ((each[cells], each[cells + 1]) for each in (ends, below))
            drawn = between(line, sides, masses, rng.random(n))
            if math.isfinite(size := self.hub.axis_sizes[axis]):
                # The next column is drawn given the value to which this one is rounded.
                drawn = (np.clip(np.floor(drawn * size), 0, size - 1) + 0.5) / size
            points[:, axis] = drawn
        return points


def tree_measure(noisy: NoisyTrees, hub: Hub, marginal_share: float | None) -> TreeMeasure:
    """Release a tree of pairs around a hub, from noisy counts of the axes of the hub."""
    d = noisy.rows.n_features
    others, centre = list(range(len(hub.others))), d - 1 if hub.joined else None
    of_lines = _SHARE_OF_LINES if marginal_share is None else marginal_share
    of_line = noisy.line if of_lines else noisy.even_line
    found = [of_line(axis, of_lines / d) for axis in range(d)]
    cells = _Cells(noisy.sizes, [line for line, _ in found], centre, hub.halved)
    of_choice = _SHARE_OF_CHOICE * (1 - of_lines) if len(others) > 2 else 0.0
    edges = _chosen_tree(noisy, cells, others, centre, of_choice)
    first = () if centre is None else (centre,)
    sets = [(*first, a, b) for a, b in edges] or [(*first, *others)]
    share = 1 - of_lines - of_choice
    tables = _released_tables(noisy, cells, sets, share)
    variance = noisy.variance(len(sets), share)
    lines = [
        _told(axis, line, variances, [t for t in tables if axis in t.axes], variance)
        for axis, (line, variances) in enumerate(found)
    ]
    tables = [_raked(table, lines) for table in tables]
    return TreeMeasure(hub, lines, _families(tables, bool(edges)), edges)


class _Cells:
    """Cells of about equal mass along each axis."""

    def __init__(
        self,
        sizes: FloatArray,
        lines: Sequence[Line],
        centre: int | None,
        halved: Collection[int] = (),
    ) -> None:
        self.sizes, self.lines, self.centre, self.halved = sizes, lines, centre, halved
        self.cut, self.margin = cache(self._cut), cache(self._margin)

    def _cut(self, axis, n_cells):
        """Inner ends of at most ``n_cells`` cells, each an end of a cell of the line."""
        ends, masses = self.lines[axis]
        if self.sizes[axis] <= _MOST_CELLS or axis == self.centre:
            return np.arange(1, self.sizes[axis]) / self.sizes[axis]
        first = np.unique(np.searchsorted(masses, np.arange(1, n_cells) / n_cells))
        inner = ends[first[(first > 0) & (first < len(ends) - 1)]]
        return np.union1d(inner, 0.5) if axis in self.halved else inner

    def _margin(self, axis, n_cells):
        """Masses of the cells of a line."""
        return margin_of(self.lines[axis], self.cut(axis, n_cells))


def margin_of(line: Line, cut: FloatArray) -> FloatArray:
    """Masses of the cells of a line between inner ends."""
    ends, masses = line
    return np.diff(np.r_[0.0, np.interp(cut, ends, masses), 1.0])


@dataclass(frozen=True)
class _Counts:
    """Function from rows to their counts in tables of some axes, one table after the other.

    ``keys`` has a key of the ends of the cells for each axis of each table, so that equal ones are
    looked up once.
    """

    axes: Sequence[tuple[int, ...]]
    cuts: dict[tuple[int, int], FloatArray]
    n_cells: list[int]

    def __call__(self, part: FloatArray) -> IntArray:
        codes = {
            (axis, k): np.searchsorted(cut, part[:, axis], side="right")
            for (axis, k), cut in self.cuts.items()
        }
        tables = []
        for axes, k in zip(self.axes, self.n_cells, strict=True):
            shape = self.shape(axes, k)
            places = np.ravel_multi_index([codes[axis, k] for axis in axes], shape)
            tables.append(np.bincount(places, minlength=math.prod(shape)))
        return np.concatenate(tables)

    def shape(self, axes: tuple[int, ...], k: int) -> tuple[int, ...]:
        """Numbers of cells of a table."""
        return tuple(len(self.cuts[axis, k]) + 1 for axis in axes)

    @classmethod
    def of(cls, cells: _Cells, axes: Sequence[tuple[int, ...]], n_cells: list[int]) -> "_Counts":
        """Tables of some axes, each with a number of cells for axes of many values."""
        pairs = {(a, k) for each, k in zip(axes, n_cells, strict=True) for a in each}
        return cls(axes, {(a, k): cells.cut(a, k) for a, k in pairs}, n_cells)

    def exact(self, rows: Rows) -> list[IntArray]:
        """Exact tables."""
        shapes = [self.shape(axes, k) for axes, k in zip(self.axes, self.n_cells, strict=True)]
        sizes = [math.prod(shape) for shape in shapes]
        total = rows.sum(self, n_cells=sum(sizes))
        parts = np.split(total, np.cumsum(sizes)[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _chosen_tree(noisy, cells, others, centre, share):
    """Edges of a tree of the others, from the root outwards. Each is chosen among all pairs."""
    if len(others) < 3:
        return list(pairwise(others))
    pairs = list(combinations(others, 2))
    sets = [pair if centre is None else (centre, *pair) for pair in pairs]
    tables = _Counts.of(cells, sets, [_SCORE_CELLS] * len(sets)).exact(noisy.rows)
    scores = {
        pair: score(table, _expected(noisy.n_rows, cells, axes))
        for pair, axes, table in zip(pairs, sets, tables, strict=True)
    }
    ends, costs = np.array(pairs), -np.array([scores[pair] for pair in pairs])
    part, chosen = np.arange(max(others) + 1), []
    for _ in others[1:]:
        (able,) = np.nonzero(part[ends[:, 0]] != part[ends[:, 1]])
        # The largest difference of the changes of two scores by an added row is two.
        index = noisy.budget.choose(costs[able].tolist(), 2, share / (len(others) - 1))
        a, b = pairs[able[index]]
        part[part == part[b]] = part[a]
        chosen.append((a, b))
    return _from_root(others, chosen)


def score(table: IntArray, expected: IntArray) -> int:
    """Distance of exact from expected counts. An added row changes it by one, up or down."""
    return int(np.abs(table - expected).sum())


def _expected(n_rows, cells, axes):
    """Counts of independent axes with the released margins, rounded to integers."""
    margins = [cells.margin(axis, _SCORE_CELLS) for axis in axes]
    table = margins[0]
    for margin in margins[1:]:
        table = table[..., None] * margin
    return np.rint(n_rows * table).astype(np.int64)


def _from_root(others, pairs):
    """Pairs of a parent and a child. The root is the axis with the most pairs."""
    root = max(others, key=lambda a: sum(a in pair for pair in pairs))
    seen, edges, left = {root}, [], list(pairs)
    while left:
        pair = next(p for p in left if (p[0] in seen) != (p[1] in seen))
        edges.append(pair if pair[0] in seen else pair[::-1])
        seen |= set(pair)
        left.remove(pair)
    return edges


def _released_tables(noisy, cells, sets, share):
    """Noisy tables, each moved to the nearest one without negative masses."""
    deviation = math.sqrt(noisy.variance(len(sets), share))
    counts = _Counts.of(cells, sets, [_finest(noisy, cells, axes, deviation) for axes in sets])
    exact = counts.exact(noisy.rows)
    noised = noisy.with_noise(np.concatenate([e.ravel() for e in exact]), len(sets), share)
    parts = np.split(noised, np.cumsum([e.size for e in exact])[:-1])
    return [
        Family(
            axes,
            tuple(counts.cuts[a, k] for a in axes),
            _nearest_masses(part.reshape(table.shape), noisy.n_rows),
        )
        for axes, k, part, table in zip(sets, counts.n_cells, parts, exact, strict=True)
    ]


def _finest(noisy, cells, axes, deviation):
    """Largest number of cells for which a table's mean count is well above its noise."""
    n_cells = 2
    while n_cells < _MOST_CELLS:
        size = math.prod(len(cells.cut(axis, n_cells + 1)) + 1 for axis in axes)
        if size * _ROWS_PER_NOISE * deviation > noisy.n_rows:
            break
        n_cells += 1
    return n_cells


def _nearest_masses(table, total):
    """The nearest table of masses, in the sense of least squares, to a table of noisy counts."""
    flat = np.sort(table.ravel())[::-1].astype(float)
    excess = (np.cumsum(flat) - total) / np.arange(1, len(flat) + 1)
    return np.maximum(table - excess[np.flatnonzero(flat > excess)[-1]], 0.0) / total


def _told(axis, line, variances, tables, variance):
    """The line, with masses of cells that are averages of its own and those of the tables.

    Each cell keeps the shape of the line, and is even where the line has no mass.
    """
    by_cut: dict[bytes, list[Family]] = {}
    for table in tables:
        by_cut.setdefault(table.cuts[table.axes.index(axis)].tobytes(), []).append(table)
    same = max(by_cut.values(), key=lambda found: sum(1 / t.table.size for t in found))
    cut = same[0].cuts[same[0].axes.index(axis)]
    level = min(math.ceil(math.log2(len(cut) + 1)), len(variances))
    if not len(cut) or not variances[level - 1]:
        return line
    margins, weights = [margin_of(line, cut)], [1 / variances[level - 1]]
    for table in same:
        margins.append(table.margin(axis))
        # Without noise, a line that was not counted has no weight.
        weights.append((len(cut) + 1) / (variance * table.table.size) if variance else 1.0)
    return _stretched(line, cut, np.average(margins, axis=0, weights=weights))


def _stretched(line, cut, masses):
    """The line, with given masses of its cells."""
    ends, below = line
    inner = np.r_[0.0, np.interp(cut, ends, below), 1.0]
    shares = np.maximum(masses, 0.0) + _LEAST_SHARE
    steps = np.r_[0.0, np.cumsum(shares / shares.sum())]
    sides = np.r_[0.0, cut, 1.0]
    cell = np.minimum(np.searchsorted(cut, ends, side="right"), len(cut))
    mass, width = np.diff(inner)[cell], np.diff(sides)[cell]
    even = (ends - sides[cell]) / width
    place = np.where(mass > _LEAST_SHARE, (below - inner[cell]) / np.maximum(mass, 1e-300), even)
    told = steps[cell] + np.clip(place, 0.0, 1.0) * np.diff(steps)[cell]
    told[0], told[-1] = 0.0, 1.0
    return ends, np.maximum.accumulate(told)


def _raked(family, lines):
    """The table, scaled to the margins of the lines in turn."""
    table = family.table + _LEAST_SHARE / family.table.size
    margins = [margin_of(lines[a], cut) for a, cut in zip(family.axes, family.cuts, strict=True)]
    for _ in range(_RAKINGS):
        for place, margin in enumerate(margins):
            other_axes = tuple(k for k in range(table.ndim) if k != place)
            own = np.maximum(table.sum(axis=other_axes, keepdims=True), 1e-300)
            table = table * (margin.reshape(own.shape) / own)
    return Family(family.axes, family.cuts, table / table.sum())


def _families(tables, has_edges):
    """Families in the order of drawing: the axes of the first table one by one, and the tables."""
    first = tables[0]
    prefixes = [
        Family(
            first.axes[:size],
            first.cuts[:size],
            first.table.sum(axis=tuple(range(size, len(first.axes)))),
        )
        for size in range(1, len(first.axes) + 1 - has_edges)
    ]
    return prefixes + tables * has_edges

"""Measures by noisy counts of halved boxes, and bounds of their distance from the rows.

Proof: doc/theory/metric_privacy.md, "Measures".
Proof: doc/theory/metric_privacy.md, "How far a released measure is off".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, TypeAlias

import numpy as np

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.privacy._fixed_point import ROUND_UP, Sensitivity
from sklearn_dptda.privacy._noise import inverse
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._rows import Rows

# Ends of the cells of a column, and the mass below each.
Line: TypeAlias = tuple[FloatArray, FloatArray]
# Accuracy only: how near to the error a bound of it is.
# Rate of the exponential moments of the noise, as a share of the largest rate at which they exist.
# It is near the best one for any tree.
_RATE = 0.7
# Least number of steps into which a scale of noise is divided, and number of scales beyond which
# nothing counts.
_FINE, _FAR = 64, 200


@dataclass(frozen=True)
class BoxNoise:
    """Noise of the counts of halved boxes, and of the number of rows.

    Counts of ``sensitivity`` share ``epsilon`` over ``depth`` levels.
    """

    sizes: np.ndarray
    depth: int
    sensitivity: float
    epsilon: float
    n_rows: int
    row_scale: float

    def error_bound(self, weights, risk):
        """Bound that the distance exceeds with a probability of at most ``risk``.

        Its rate and its depth are chosen for even masses, before masses are known.
        """
        if self.depth == 0:
            return 0.0
        missed = 0.0
        if self.row_scale > 0:
            risk /= 2
            missed = _laplace_quantile(self.row_scale, risk)
        numbers = np.r_[1, box_numbers(self.axes, self.sizes)[:-1]]
        even = [(np.array([2 * self.n_rows / number]), number) for number in numbers]
        depths = range(1, self.depth + 1)
        depth = min(depths, key=lambda depth: self.bound(depth, even, missed, risk))
        return min(self.bound(depth, self.caps(weights), missed, risk), self.widths[0])

    @property
    def axes(self):
        """Axes of the halvings."""
        return halvings(self.sizes, self.depth)

    @property
    def widths(self):
        """Widths of the boxes before and after each halving."""
        return level_widths(self.axes, self.sizes)

    def bound(self, depth, caps, missed, risk):
        """Bound from ``depth`` levels, given caps of the effect of each pair of noises."""
        shares = level_shares(self.axes, self.sizes)
        scales = level_scales(shares, self.sensitivity, self.epsilon)[:depth]
        paths = (self.widths[:depth] - self.widths[depth]) / 2
        most, noise = (paths * scales).max(), 0.0
        if most > 0:
            rate = _RATE / most
            moments = [
                number * _log_moments(rate * path, scale, cap).sum()
                for path, scale, (cap, number) in zip(paths, scales, caps, strict=False)
                if path > 0
            ]
            noise = (math.log(1 / risk) + sum(moments)) / rate
        return self.widths[depth] + (2 * paths[0] * missed + noise) / self.n_rows

    def caps(self, weights):
        """Twice the released mass of each box that noise divides, by level, and the number one."""
        low, high = boxes(self.axes, cell_ends(self.axes, self.sizes))
        there = (low < high).all(axis=1)
        masses = np.zeros(len(there))
        masses[there] = 2 * self.n_rows * weights
        levels = level_sums(masses), level_sums(there.astype(np.int64))
        for parts, kept in zip(*levels, strict=True):
            halved = (kept.reshape(-1, 2) > 0).all(axis=1)
            yield parts.reshape(-1, 2).sum(axis=1)[halved], 1


def _laplace_quantile(scale, risk):
    """Size that a discrete Laplace variable exceeds with a probability of at most ``risk``."""
    return scale * math.log(2 / ((1 + math.exp(-1 / scale)) * risk))


def _log_moments(rate, scale, caps):
    """Logarithm of ``E exp(rate min(|D|, cap))`` for each cap, or slightly more.

    ``D`` is the difference of two discrete Laplace variables, on a lattice that is no finer than
    necessary. ``E exp(X) - 1`` is a sum over the tail of X.
    """
    lattice = max(1, int(scale / _FINE))
    last = int(min(_FAR * scale, caps.max(initial=0.0)) / lattice) + 2
    steps = np.arange(1, last + 1)
    # Rounded up, since |D| exceeds k - 1 steps.
    beyond = lattice * (steps - 1.0) + 1
    a = math.exp(-1 / scale)
    tails = 2 * np.exp(-beyond / scale) / (1 + a) ** 2
    tails *= beyond * -math.expm1(-1 / scale) + a + (1 + a * a) / (1 + a)
    terms = -np.expm1(-rate * lattice) * np.exp(rate * lattice * steps) * np.minimum(tails, 1.0)
    sums = np.r_[0.0, np.cumsum(terms)]
    return np.log1p(sums[np.minimum(np.ceil(caps / lattice), last).astype(np.int64)])


# The functions below are about boxes of the unit cube that are halved along the first, the second,
# ... axis in turn. An axis of a finite size ``K`` contains ``K`` values, each in the middle of an
# interval of width ``1 / K``, and is halved until every value is alone. An axis of infinite size
# can be halved without end.


def halvings(sizes, depth):
    """Axes of at most ``depth`` halvings: in turn, while there is something to halve."""
    most = [depth if math.isinf(size) else (int(size) - 1).bit_length() for size in sizes]
    turns = [(turn, axis) for axis, bits in enumerate(most) for turn in range(min(bits, depth))]
    return [axis for _, axis in sorted(turns)[:depth]]


def cell_ends(axes, sizes):
    """Ends of the cells along each axis, in increasing order. Cells of equal ends are empty."""
    ends = []
    for axis, size in enumerate(sizes):
        bits = axes.count(axis)
        cells = np.arange((1 << bits) + 1)
        ends.append(cells / 2.0**bits if math.isinf(size) else (cells * int(size) >> bits) / size)
    return ends


def leaf_of(points, axes, ends):
    """Number of the box of each point, in int64. Its first bit is that of the first halving."""
    cells = [_cells_of(points[:, axis], line) for axis, line in enumerate(ends)]
    if len(cells) == 1:
        return cells[0]
    leaves = np.zeros(len(points), dtype=np.int64)
    for level, axis in enumerate(axes):
        leaves = leaves << 1 | (cells[axis] >> axes[level + 1 :].count(axis) & 1)
    return leaves


def _cells_of(values, line):
    """Cells of coordinates, by the ends of the cells."""
    n = len(line) - 1
    if np.array_equal(line * n, np.arange(n + 1)):
        # Cells of equal width: their number is a power of two, so that the product is exact.
        cells = (values * n).astype(np.int64)
    else:
        cells = np.searchsorted(line, values, side="right") - 1
    return np.minimum(cells, n - 1)


def boxes(axes, ends):
    """Lower and upper ends of all boxes, each of shape (2**depth, d)."""
    leaves = np.arange(1 << len(axes))
    cells = np.zeros((len(ends), len(leaves)), dtype=np.int64)
    for level, axis in enumerate(axes):
        cells[axis] = cells[axis] << 1 | (leaves >> (len(axes) - 1 - level) & 1)
    return tuple(
        np.column_stack([line[cell + end] for line, cell in zip(ends, cells, strict=True)])
        for end in (0, 1)
    )


def box_numbers(axes, sizes):
    """Number of boxes after each halving, of shape (depth,)."""
    cells = np.ones(len(sizes))
    numbers = []
    for axis in axes:
        cells[axis] = min(2 * cells[axis], sizes[axis])
        numbers.append(cells.prod())
    return np.array(numbers)


def level_shares(axes, sizes):
    """Shares of the budget of each level below the root, which sum to one.

    Errors of a count move mass by the width of its box. Deeper levels, which have more boxes of
    smaller width, get more.
    """
    widths = 2.0 ** -(np.arange(len(axes)) / len(sizes))
    weights = np.sqrt(box_numbers(axes, sizes) * widths)
    return weights / weights.sum()


def level_scales(shares, sensitivity, epsilon):
    """Scales of the Laplace noise of the counts of each level."""
    # Rounded up, so that rounding does not reduce the noise.
    return [sensitivity / (share * epsilon) * ROUND_UP for share in shares]


def level_sums(leaves):
    """Sums of numbers of the smallest boxes over the boxes of each level, except for the root."""
    levels = []
    while len(leaves) > 1:
        levels.append(leaves)
        leaves = leaves.reshape(-1, 2).sum(axis=1)
    return levels[::-1]


def level_widths(axes, sizes):
    """Largest distance of values of one box, in the maximum norm, of shape (depth + 1,)."""
    bits, widths = np.zeros(len(sizes), dtype=int), []
    for axis in [None, *axes]:
        if axis is not None:
            bits[axis] += 1
        sides = [
            0.5**b if math.isinf(size) else (math.ceil(size / 2**b) - 1) / size
            for b, size in zip(bits.tolist(), sizes, strict=True)
        ]
        widths.append(max(sides))
    return np.array(widths)


# Accuracy only: shares leave the rest of the budget to the other counts.
# Largest depth of a tree, since noise of more boxes takes minutes.
MOST_LEVELS = 18
# Share of epsilon for a private number of rows, which determines the depth.
_SIZE_SHARE = 0.05
# Share of epsilon for the columns one by one: beside boxes of all columns that are halved this
# often along each column, and beside coarser boxes, which contain little information.
_SHARE_BESIDE_FINE, _FINE_BOXES = 0.5, 2
_SHARE_BESIDE_COARSE = 0.8
# Number of halvings of a column that is not counted by itself.
_EVEN_HALVINGS = 4
# Laplace noise grows with the number of counted levels, so only one of so many is counted.
_LEVELS_APART = 5
# Least number of halvings of a single column. With coarser cells, the error of the cells exceeds
# that of the noise.
_LEAST_LINE = 5
# Smaller masses are lost in cumulative sums of floating-point numbers.
_LEAST_MASS = 1e-12


@dataclass(frozen=True)
class UnitMeasure:
    """A released measure of the unit cube: boxes, the noise of their masses, and marginals."""

    centres: FloatArray
    widths: FloatArray
    masses: FloatArray
    lines: list[Line]
    noise: BoxNoise


def box_measure(noisy: "NoisyTrees", marginal_share: float | None) -> UnitMeasure:
    """Release the smallest boxes of all columns; the share of marginals is chosen if it is None."""
    d, sizes, budget = noisy.rows.n_features, noisy.sizes, noisy.budget
    if marginal_share is None:
        depth = depth_for(noisy.n_rows, budget.total, sizes)
        marginal_share = _share_beside(len(halvings(sizes, depth)), sizes)
    # First the columns one by one, then all of them together.
    lines = [noisy.line(a, marginal_share / d)[0] for a in range(d if marginal_share else 0)]
    epsilon = budget.total * (1 - marginal_share)
    depth = len(halvings(sizes, depth_for(noisy.n_rows, epsilon, sizes)))
    low, high, masses = noisy.boxes(depth, 1 - marginal_share)
    moved = budget.sensitivity_of_counts(1).value
    noise = BoxNoise(sizes, depth, moved, epsilon, noisy.n_rows, noisy.row_scale)
    return UnitMeasure((low + high) / 2, high - low, masses, lines, noise)


@dataclass(frozen=True)
class NoisyTrees:
    """Trees of boxes of some columns, with noisy counts, of rows in [0, 1]**d.

    ``sizes`` are numbers of values. The number of rows is public, or noisy with the scale
    ``row_scale``. The counts take shares of the ``budget``.
    """

    rows: Rows
    sizes: FloatArray
    budget: FitBudget
    n_rows: int
    row_scale: float

    @classmethod
    def of(cls, rows: Rows, sizes: FloatArray, budget: FitBudget) -> Self:
        """Release the number of rows, unless neighbours have the same number."""
        if budget.adjacency == "replace-one":
            return cls(rows, sizes, budget, max(rows.n_rows, 1), 0.0)
        rest = cls(rows, sizes, budget.rest(_SIZE_SHARE), 1, 0.0)
        scale = budget.scale_of_counts(1, _SIZE_SHARE)
        (n_rows,) = _with_noise(np.array([rows.n_rows]), 1, budget, _SIZE_SHARE)
        return replace(rest, n_rows=max(int(n_rows), 1), row_scale=scale)

    def with_noise(self, counts: IntArray, touched: int, share: float) -> IntArray:
        """Counts with noise, for a share of the budget; each row is in ``touched`` of them."""
        return _with_noise(counts, touched, self.budget, share)

    def line(self, column: int, share: float) -> tuple[Line, FloatArray]:
        """The line of a column, and the variances of the counts of its levels.

        Counts of larger cells are also estimated from smaller ones.
        """
        budget, sizes = self.budget, self.sizes[[column]]
        # The epsilon of Laplace noise with this deviation.
        one = budget.scale(Sensitivity(1.0, budget.norm, budget.adjacency), share)
        epsilon = inverse(budget.deviation(one) / math.sqrt(2))
        depth = min(max(depth_for(self.n_rows, epsilon / 2, sizes), _LEAST_LINE), MOST_LEVELS)
        axes = halvings(sizes, depth)
        # With these shares, the sum of all variances is least.
        weights = (np.cbrt if budget.norm == "l1" else np.sqrt)(box_numbers(axes, sizes))
        if budget.norm == "l1":
            weights[np.arange(len(axes))[::-1] % _LEVELS_APART != 0] = 0.0
        shares = weights / weights.sum() * share
        low, high, there, counts = self._counted([column], axes, shares)
        variances = np.array([self.variance(1, each) if each else np.inf for each in shares])
        if counts:
            counts, variances = told_from_below(counts, variances, _levels_there(there))
        masses = self._masses(counts, there)
        return (np.r_[low[:, 0], high[-1]], np.r_[0.0, np.cumsum(masses[:-1]), 1.0]), variances

    def even_line(self, column: int, _: float = 0.0) -> tuple[Line, FloatArray]:
        """The line of even masses, with ends between values, which says nothing of the rows."""
        sizes = self.sizes[[column]]
        (ends,) = cell_ends(halvings(sizes, _EVEN_HALVINGS), sizes)
        # There is nothing between neighbouring values.
        ends = np.unique(ends)
        return (ends, ends), np.full(_EVEN_HALVINGS, np.inf)

    def variance(self, touched: int, share: float) -> float:
        """Variance of the noise of :meth:`with_noise`."""
        return self.budget.deviation(self.budget.scale_of_counts(touched, share)) ** 2

    def boxes(self, depth: int, share: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends and masses of the smallest boxes of all columns.

        Ends have the shape (n_boxes, n_columns). The shares of the levels minimise how far mass is
        moved, as error bounds assume.
        """
        axes = halvings(self.sizes, depth)
        shares = level_shares(axes, self.sizes) * share
        low, high, there, counts = self._counted(list(range(len(self.sizes))), axes, shares)
        return low, high, self._masses(counts, there)

    def _counted(
        self, columns: list[int], axes: list[int], shares: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray, list[FloatArray]]:
        """Ends of the smallest boxes that exist, which ones exist, and noisy counts by level."""
        ends = cell_ends(axes, self.sizes[columns])
        low, high = boxes(axes, ends)
        # There is nothing between two neighbouring values. This is public, and needs no noise.
        there = (low < high).all(axis=1)
        count = partial(_counts, columns=columns, axes=axes, ends=ends)
        counts = level_sums(self.rows.sum(count, n_cells=len(there)))
        for exact, kept, share in zip(counts, _levels_there(there), shares, strict=True):
            if share:
                exact[kept] = self.with_noise(exact[kept], 1, share)
        return low[there], high[there], there, counts

    def _masses(self, counts: Sequence[FloatArray], there: BoolArray) -> FloatArray:
        masses = consistent(self.n_rows, counts, _levels_there(there))[there]
        return masses / masses.sum()


def _with_noise(counts, touched, budget, share):
    """Integers with integer noise, which error bounds assume."""
    moved = budget.sensitivity_of_counts(touched).value
    return budget.add_noise((counts,), moved, budget.scale_of_counts(touched, share))[0]


def _levels_there(there):
    """Which boxes of each level contain one of the smallest boxes that exist."""
    return [sums > 0 for sums in level_sums(there.astype(np.int64))]


def _share_beside(n_halvings, sizes):
    """Share of epsilon for the columns one by one, by the size of the boxes of all columns."""
    bits = [MOST_LEVELS if math.isinf(size) else (int(size) - 1).bit_length() for size in sizes]
    if n_halvings >= sum(bits):
        # Every value is alone in its box.
        return 0.0
    fine = min(sum(min(_FINE_BOXES, b) for b in bits), MOST_LEVELS)
    return _SHARE_BESIDE_FINE if n_halvings >= fine else _SHARE_BESIDE_COARSE


def _counts(part, columns, axes, ends):
    """Exact counts of the smallest boxes."""
    return np.bincount(leaf_of(part[:, columns], axes, ends), minlength=1 << len(axes))


def told_from_below(noisy, variances, there):
    """Counts of each level, averaged with the sums of their halves, and their variances.

    Averages are weighted by the inverse variances. The variances that are returned are means over
    a level. With :func:`consistent`, the counts are the least squares of M. Hay, V. Rastogi, G.
    Miklau, D. Suciu, "Boosting the accuracy of differentially private histograms through
    consistency", 2010, if all halves exist and no mass is negative.
    """
    counts, spread = noisy[-1], np.where(there[-1], variances[-1], 0.0)
    told = [(counts, spread[there[-1]].mean())]
    for own, variance, kept in zip(noisy[-2::-1], variances[-2::-1], there[-2::-1], strict=True):
        below, spread = (part.reshape(-1, 2).sum(axis=1) for part in (counts, spread))
        weight = np.ones_like(spread)
        if 0 < variance < np.inf:
            weight = np.where(kept, variance / np.where(kept, variance + spread, 1.0), 0.0)
        counts, spread = weight * below + (1 - weight) * own, weight * spread
        told.append((counts, spread[kept].mean()))
    return [list(part) for part in zip(*told[::-1], strict=True)]


def within(line, low, high, places):
    """Points between ends, by places in (0, 1) and the masses of a line, or evenly without any."""
    return between(line, (low, high), [np.interp(end, *line) for end in (low, high)], places)


def between(line, sides, masses, places):
    """Points as :func:`within` draws, between sides with given masses of the line below them."""
    (low, high), (below, above), (ends, below_ends) = sides, masses, line
    points = np.interp(below + places * (above - below), below_ends, ends)
    return np.where(
        above - below > _LEAST_MASS, np.clip(points, low, high), low + places * (high - low)
    )


def consistent(total, noisy, there):
    """Masses of the smallest boxes, from noisy counts of each level and a positive total.

    The difference between a box and the sum of its halves is divided evenly between these, and each
    half stays between zero and the mass of the box.
    """
    masses = np.array([float(total)])
    for counts, kept in zip(noisy, there, strict=True):
        pairs, halves = counts.reshape(-1, 2).astype(float), kept.reshape(-1, 2)
        first = pairs[:, 0] + (masses - pairs.sum(axis=1)) / 2
        first = np.clip(first, 0.0, masses)
        first = np.select([~halves[:, 1], ~halves[:, 0]], [masses, 0.0], first)
        masses = np.column_stack([first, masses - first]).ravel()
    return masses


def depth_for(size, epsilon, sizes):
    """Depth beyond which counts of single boxes are lost in the noise.

    At this depth, the expected number of rows in a box is about four times the noise of its count.
    """
    numbers = box_numbers(halvings(sizes, MOST_LEVELS), sizes)
    return max(1, int((numbers <= math.sqrt(2) * epsilon * size / 4).sum()))

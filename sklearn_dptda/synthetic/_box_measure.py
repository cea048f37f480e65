"""Measures by noisy counts of halved boxes, and bounds of their distance from the rows.

Proof: doc/theory/metric_privacy.md, "Measures".
Proof: doc/theory/metric_privacy.md, "How far a released measure is off".
"""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Self, TypeAlias

import numpy as np

from sklearn_dptda._typing import Adjacency, FloatArray, IntArray
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._noise import inverse
from sklearn_dptda.rows._rows import Rows

# Ends of the cells of a column, and the mass below each.
Line: TypeAlias = tuple[FloatArray, FloatArray]
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
    cells = [
        np.minimum(np.searchsorted(line, points[:, axis], side="right") - 1, len(line) - 2)
        for axis, line in enumerate(ends)
    ]
    leaves = np.zeros(len(points), dtype=np.int64)
    for level, axis in enumerate(axes):
        leaves = leaves << 1 | (cells[axis] >> axes[level + 1 :].count(axis) & 1)
    return leaves


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


# Largest depth of a tree, since noise of more boxes takes minutes.
MOST_LEVELS = 18
# Share of epsilon for a private number of rows, which determines the depth.
_SIZE_SHARE = 0.05
# Share of epsilon for the columns one by one: beside boxes of all columns that are halved this
# often along each column, and beside coarser boxes, which contain little information.
_SHARE_BESIDE_FINE, _FINE_BOXES = 0.5, 2
_SHARE_BESIDE_COARSE = 0.8
# Least number of halvings of a single column. With coarser cells, the error of the cells exceeds
# that of the noise.
_LEAST_LINE = 5
# Smaller masses are lost in cumulative sums of floating-point numbers.
_LEAST_MASS = 1e-12


@dataclass(frozen=True)
class UnitMeasure:
    """A released measure of the unit cube.

    ``centres``, ``widths`` and ``masses`` are those of boxes, and ``lines`` are marginals. With a
    target, each box is a class with ``lines_of_classes``, and there is no ``noise`` for a bound.
    """

    centres: FloatArray
    widths: FloatArray
    masses: FloatArray
    lines: list[Line]
    lines_of_classes: list[list[Line]] = field(default_factory=list)
    noise: BoxNoise | None = None


def box_measure(noisy: "NoisyTrees", marginal_share: float | None) -> UnitMeasure:
    """Release the smallest boxes of all columns; the share of marginals is chosen if it is None."""
    d, epsilon, sizes = noisy.rows.n_features, noisy.epsilon, noisy.sizes
    if marginal_share is None:
        depth = depth_for(noisy.n_rows, epsilon, sizes)
        marginal_share = _share_beside(len(halvings(sizes, depth)), sizes)
    # First the columns one by one, then all of them together.
    lines = [noisy.line(a, epsilon * marginal_share / d) for a in range(d if marginal_share else 0)]
    epsilon *= 1 - marginal_share
    depth = len(halvings(sizes, depth_for(noisy.n_rows, epsilon, sizes)))
    low, high, masses = noisy.tree(list(range(d)), depth, epsilon)
    noise = BoxNoise(sizes, depth, noisy.moved, epsilon, noisy.n_rows, noisy.row_scale)
    return UnitMeasure((low + high) / 2, high - low, masses, lines, noise=noise)


@dataclass(frozen=True)
class NoisyTrees:
    """Trees of boxes of some columns, with noisy counts, of rows in [0, 1]**d.

    ``sizes`` are numbers of values. A row changes the counts of a level by ``moved`` in sum. The
    number of rows is public, or noisy with the scale ``row_scale``. ``epsilon`` is left for the
    trees.
    """

    rows: Rows
    sizes: FloatArray
    noise: NoiseSource
    epsilon: float
    n_rows: int
    moved: float
    row_scale: float

    @classmethod
    def of(
        cls, rows: Rows, sizes: FloatArray, noise: NoiseSource, epsilon: float, adjacency: Adjacency
    ) -> Self:
        """Release the number of rows, unless neighbours have the same number."""
        if adjacency == "replace-one":
            return cls(rows, sizes, noise, epsilon, max(rows.n_rows, 1), 2.0, 0.0)
        n_rows, scale = noise.noisy_count(rows.n_rows, rows.mass, _SIZE_SHARE * epsilon)
        left = epsilon * (1 - _SIZE_SHARE)
        return cls(rows, sizes, noise, left, max(int(n_rows), 1), 1.0, scale)

    def with_noise(self, counts: IntArray, times: int, scale: float) -> IntArray:
        """Counts with Laplace noise; each row is counted this number of times."""
        return self.noise.cross(
            counts,
            lambda counts: counts + self.noise.discrete_laplace(scale, len(counts)),
            metric="l1",
            sensitivity=times * self.moved * self.rows.mass,
            rate=inverse(scale),
        )

    def line(self, column: int, epsilon: float, most: int = MOST_LEVELS) -> Line:
        """Ends of the cells of a column, halved at most ``most`` times, and the mass below each."""
        sizes = self.sizes[[column]]
        depth = min(max(depth_for(self.n_rows, epsilon / 2, sizes), _LEAST_LINE), most)
        # With these shares, the sum of all variances is least.
        shares = np.cbrt(box_numbers(halvings(sizes, depth), sizes))
        low, high, masses = self.tree([column], depth, epsilon, shares / shares.sum())
        return np.r_[low[:, 0], high[-1]], np.r_[0.0, np.cumsum(masses[:-1]), 1.0]

    def tree(
        self, columns: list[int], depth: int, epsilon: float, shares: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends and masses of the smallest boxes of some columns.

        Ends have the shape (n_boxes, n_columns). With given ``shares`` of epsilon for the levels,
        counts of larger boxes are also estimated from smaller ones. Otherwise, the shares minimise
        how far mass is moved, as error bounds assume.
        """
        sizes = self.sizes[columns]
        axes = halvings(sizes, depth)
        ends = cell_ends(axes, sizes)
        low, high = boxes(axes, ends)
        # There is nothing between two neighbouring values. This is public, and needs no noise.
        there = (low < high).all(axis=1)
        count = partial(_counts, columns=columns, axes=axes, ends=ends)
        counts = level_sums(self.rows.sum(count, n_cells=len(there)))
        are_there = [sums > 0 for sums in level_sums(there.astype(np.int64))]
        from_below = shares is not None
        shares = level_shares(axes, sizes) if shares is None else shares
        scales = level_scales(shares, self.moved, epsilon)
        for exact, kept, scale in zip(counts, are_there, scales, strict=True):
            exact[kept] = self.with_noise(exact[kept], 1, scale)
        if from_below and counts:
            counts = told_from_below(counts, shares, are_there)
        masses = consistent(self.n_rows, counts, are_there)[there]
        return low[there], high[there], masses / masses.sum()


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


def told_from_below(noisy, shares, there):
    """Counts of each level, averaged with the sums of their halves by the inverse variances.

    With :func:`consistent`, the results are the least squares of M. Hay, V. Rastogi, G. Miklau, D.
    Suciu, "Boosting the accuracy of differentially private histograms through consistency", 2010,
    if all halves exist and no mass is negative.
    """
    counts, spread = noisy[-1], np.where(there[-1], 1 / shares[-1] ** 2, 0.0)
    told = [counts]
    for own, share, kept in zip(noisy[-2::-1], shares[-2::-1], there[-2::-1], strict=True):
        below, spread = (part.reshape(-1, 2).sum(axis=1) for part in (counts, spread))
        weight = np.where(kept, 1 / (1 + spread * share**2), 0.0)
        counts, spread = weight * below + (1 - weight) * own, weight * spread
        told.append(counts)
    return told[::-1]


def within(line, low, high, places):
    """Points between ends, by places in (0, 1) and the masses of a line, or evenly without any."""
    ends, masses = line.T
    below, above = np.interp(low, ends, masses), np.interp(high, ends, masses)
    points = np.interp(below + places * (above - below), masses, ends)
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

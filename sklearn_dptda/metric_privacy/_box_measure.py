"""Private measures by counts of ever smaller boxes of the unit cube.

Boxes are halved along the first, the second, ... axis in turn. An axis of a finite size ``K`` holds
``K`` values, each in the middle of a ``K``-th of it, and is halved until every value is alone; one
of an infinite size is halved for ever.
"""

import math

import numpy as np
from scipy.stats import wasserstein_distance

from sklearn_dptda.privacy._rounding import ROUND_UP

# Deepest tree that is chosen without being asked for: noise of more boxes takes minutes.
MOST_LEVELS = 18
# Of the budget: the number of rows, which the depth follows.
_SIZE_SHARE = 0.05
# Of what cumulative masses in floating point tell apart.
_LEAST_MASS = 1e-12


def box_measure(points, sizes, depth, marginal_share, noise, epsilon, size_is_public):
    """Centres, widths and masses of the smallest boxes, marginals, and the number of points.

    Points in [0, 1] of shape (n, d); a depth of None is chosen. Marginals, of which there are none
    without a share of ``epsilon``, are pairs of ends of cells and cumulative masses. A private size
    is paid for with a part of ``epsilon``, for one point more or less; a public one is for one
    that is replaced.
    """
    size, d = points.shape
    moved = 2.0
    if not size_is_public:
        moved = 1.0
        size += int(_laplace(noise, moved, _SIZE_SHARE * epsilon, 1)[0])
        epsilon *= 1 - _SIZE_SHARE
    size = max(size, 1)

    def release(axes, depth, epsilon):
        return _tree(points[:, axes], sizes[axes], depth, size, moved, noise, epsilon)

    # The columns one by one, then all of them together.
    lines = [
        release([a], None, epsilon * marginal_share / d) for a in range(d if marginal_share else 0)
    ]
    low, high, masses = release(list(range(d)), depth, epsilon * (1 - marginal_share))
    return (low + high) / 2, high - low, masses, [_cumulative(*line) for line in lines], size


def _tree(points, sizes, depth, size, moved, noise, epsilon):
    """Lower and upper ends of the smallest boxes, of shape (n_boxes, d), and their masses."""
    axes = halvings(sizes, depth_for(size, epsilon, sizes) if depth is None else depth)
    ends = cell_ends(axes, sizes)
    low, high = boxes(axes, ends)
    # Between two neighbouring values there is nothing, which is public and needs no noise.
    there = (low < high).all(axis=1)
    counts = level_sums(np.bincount(leaf_of(points, axes, ends), minlength=len(there)))
    are_there = [sums > 0 for sums in level_sums(there.astype(np.int64))]
    for exact, kept, share in zip(counts, are_there, level_shares(axes, sizes), strict=True):
        exact[kept] += _laplace(noise, moved, share * epsilon, int(kept.sum()))
    masses = consistent(size, counts, are_there)[there]
    return low[there], high[there], masses / masses.sum()


def _cumulative(low, high, masses):
    """Ends of the cells of a line, and the mass below each."""
    return np.r_[low[:, 0], high[-1]], np.r_[0.0, np.cumsum(masses)]


def within(line, low, high, places):
    """Points between ends that have places in (0, 1), by the masses of a line.

    Where the line has none they are spread evenly.
    """
    ends, masses = line.T
    below, above = np.interp(low, ends, masses), np.interp(high, ends, masses)
    points = np.interp(below + places * (above - below), masses, ends)
    return np.where(
        above - below > _LEAST_MASS, np.clip(points, low, high), low + places * (high - low)
    )


def _laplace(noise, sensitivity, epsilon, size):
    # Rounded up: no loss of a last digit.
    return noise.discrete_laplace(sensitivity / epsilon * ROUND_UP, size)


def halvings(sizes, depth):
    """Axes of the halvings, at most ``depth`` of them: in turn, while there is something to halve.

    A ``K`` of values is halved until they are alone.
    """
    most = [depth if math.isinf(size) else (int(size) - 1).bit_length() for size in sizes]
    turns = [(turn, axis) for axis, bits in enumerate(most) for turn in range(min(bits, depth))]
    return [axis for _, axis in sorted(turns)[:depth]]


def cell_ends(axes, sizes):
    """Ends of the cells along each axis, in increasing order; where two are equal nothing lies."""
    ends = []
    for axis, size in enumerate(sizes):
        bits = axes.count(axis)
        cells = np.arange((1 << bits) + 1)
        ends.append(cells / 2.0**bits if math.isinf(size) else (cells * int(size) >> bits) / size)
    return ends


def leaf_of(points, axes, ends):
    """Number of the box that each point falls into, of shape (n,) and type int64.

    From 0 to ``2**depth - 1``; the first bit is that of the first halving.
    """
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
    """How many boxes there are after each halving, of shape (depth,)."""
    cells = np.ones(len(sizes))
    numbers = []
    for axis in axes:
        cells[axis] = min(2 * cells[axis], sizes[axis])
        numbers.append(cells.prod())
    return np.array(numbers)


def level_shares(axes, sizes):
    """Parts of the budget of each level below the root, which sum to one.

    Errors of a count move mass by the width of its box: deeper levels, which
    have more boxes of less width, get more.
    """
    widths = 2.0 ** -(np.arange(len(axes)) / len(sizes))
    weights = np.sqrt(box_numbers(axes, sizes) * widths)
    return weights / weights.sum()


def level_sums(leaves):
    """Sums of numbers of the smallest boxes over those of each level, from the first halving on."""
    levels = []
    while len(leaves) > 1:
        levels.append(leaves)
        leaves = leaves.reshape(-1, 2).sum(axis=1)
    return levels[::-1]


def consistent(total, noisy, there):
    """Masses of the smallest boxes, from noisy counts of each level and a positive total.

    What the halves of a box have more or less than it is split evenly, within zero and all of it:
    masses are not negative, and sum to the total. A half that is not there has none of it.
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

    There are about four times as many expected rows in a box as the noise of
    its count.
    """
    numbers = box_numbers(halvings(sizes, MOST_LEVELS), sizes)
    return max(1, int((numbers <= math.sqrt(2) * epsilon * size / 4).sum()))


def marginal_distance(first, second):
    """Sum of the Wasserstein distances of the marginals of two releases."""
    columns = zip(first["support_"].T, second["support_"].T, strict=True)
    return sum(
        wasserstein_distance(*pair, first["weights_"], second["weights_"]) for pair in columns
    )

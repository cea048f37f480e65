"""Private measures by counts of ever smaller boxes of the unit cube."""

import math
from functools import partial

import numpy as np

from sklearn_dptda.metric_privacy._halvings import (
    box_numbers,
    boxes,
    cell_ends,
    halvings,
    leaf_of,
    level_scales,
    level_sums,
)
from sklearn_dptda.metric_privacy._measure_error import BoxNoise
from sklearn_dptda.privacy._rounding import ROUND_UP

# Deepest tree that is chosen without being asked for: noise of more boxes takes minutes.
MOST_LEVELS = 18
# Of the budget: the number of rows, which the depth follows.
_SIZE_SHARE = 0.05
# Of what cumulative masses in floating point tell apart.
_LEAST_MASS = 1e-12


def box_measure(rows, sizes, depth, marginal_share, noise, epsilon, size_is_public):
    """Centres, widths and masses of the smallest boxes, marginals, and the noise of the masses.

    Of rows of [0, 1]**d; a depth of None is chosen. Marginals, of which there are none
    without a share of ``epsilon``, are pairs of ends of cells and cumulative masses. A private size
    is paid for with a part of ``epsilon``, for one point more or less; a public one is for one
    that is replaced.
    """
    size, d = rows.n_rows, rows.n_features
    moved, size_scale = 2.0, 0.0
    if not size_is_public:
        moved = 1.0
        # Rounded up: no loss of a last digit.
        size_scale = moved / (_SIZE_SHARE * epsilon) * ROUND_UP
        size += int(noise.discrete_laplace(size_scale, 1)[0])
        epsilon *= 1 - _SIZE_SHARE
    size = max(size, 1)

    def release(axes, depth, epsilon):
        return _tree(rows, axes, sizes[axes], depth, size, moved, noise, epsilon)

    # The columns one by one, then all of them together.
    lines = [
        release([a], None, epsilon * marginal_share / d)[:3]
        for a in range(d if marginal_share else 0)
    ]
    epsilon *= 1 - marginal_share
    low, high, masses, depth = release(list(range(d)), depth, epsilon)
    law = BoxNoise(sizes, depth, moved, epsilon, size, size_scale)
    return (low + high) / 2, high - low, masses, [_cumulative(*line) for line in lines], law


def _tree(rows, columns, sizes, depth, size, moved, noise, epsilon):
    """Lower and upper ends of the smallest boxes of some columns, and their masses.

    Ends of shape (n_boxes, n_columns), and the number of halvings.
    """
    axes = halvings(sizes, depth_for(size, epsilon, sizes) if depth is None else depth)
    ends = cell_ends(axes, sizes)
    low, high = boxes(axes, ends)
    # Between two neighbouring values there is nothing, which is public and needs no noise.
    there = (low < high).all(axis=1)
    count = partial(_counts, columns=columns, axes=axes, ends=ends)
    counts = level_sums(rows.sum(count, n_cells=len(there)))
    are_there = [sums > 0 for sums in level_sums(there.astype(np.int64))]
    scales = level_scales(axes, sizes, moved, epsilon)
    for exact, kept, scale in zip(counts, are_there, scales, strict=True):
        exact[kept] += noise.discrete_laplace(scale, int(kept.sum()))
    masses = consistent(size, counts, are_there)[there]
    return low[there], high[there], masses / masses.sum(), len(axes)


def _counts(part, columns, axes, ends):
    """Exact counts of the smallest boxes."""
    return np.bincount(leaf_of(part[:, columns], axes, ends), minlength=1 << len(axes))


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

"""Private measures by counts of ever smaller boxes of the unit cube.

Boxes are halved along the first, the second, ... axis in turn.
"""

import math

import numpy as np

from sklearn_dptda.privacy._rounding import ROUND_UP

# Deepest tree that is chosen without being asked for: noise of more boxes takes minutes.
MOST_LEVELS = 18
# Of the budget: the number of rows, which the depth follows.
_SIZE_SHARE = 0.05


def box_measure(points, depth, noise, epsilon, size_is_public):
    """Centres, masses and widths of the smallest boxes, and the number of points.

    Points in [0, 1] of shape (n, d); a depth of None is chosen. A private size is paid for with a
    part of ``epsilon``, for one point more or less; a public one is for one that is replaced.
    """
    size, d = points.shape
    moved = 2.0
    if not size_is_public:
        moved = 1.0
        size += int(_laplace(noise, moved, _SIZE_SHARE * epsilon, 1)[0])
        epsilon *= 1 - _SIZE_SHARE
    size = max(size, 1)
    depth = depth or depth_for(size, epsilon)
    counts = level_counts(leaf_of(points, depth), depth)
    noisy = [
        exact + _laplace(noise, moved, share * epsilon, len(exact))
        for exact, share in zip(counts, level_shares(depth, d), strict=True)
    ]
    masses = consistent(size, noisy)
    centres, widths = boxes(depth, d)
    return centres, masses / masses.sum(), widths, size


def _laplace(noise, sensitivity, epsilon, size):
    # Rounded up: no loss of a last digit.
    return noise.discrete_laplace(sensitivity / epsilon * ROUND_UP, size)


def leaf_of(points, depth):
    """Number of the box that each point falls into, of shape (n,) and type int64.

    From 0 to ``2**depth - 1``; the first bit is that of the first halving.
    """
    d = points.shape[1]
    halvings = _halvings(depth, d)
    cells = [
        np.minimum((points[:, axis] * 2.0**bits).astype(np.int64), (1 << bits) - 1)
        for axis, bits in enumerate(halvings)
    ]
    leaves = np.zeros(len(points), dtype=np.int64)
    for level in range(depth):
        axis, place = level % d, level // d
        bit = cells[axis] >> (halvings[axis] - 1 - place) & 1
        leaves = leaves << 1 | bit
    return leaves


def boxes(depth, d):
    """Centres of all boxes, of shape (2**depth, d), and their common widths, of shape (d,)."""
    leaves = np.arange(1 << depth)
    cells = np.zeros((d, len(leaves)), dtype=np.int64)
    for level in range(depth):
        bit = leaves >> (depth - 1 - level) & 1
        cells[level % d] = cells[level % d] << 1 | bit
    widths = np.array([2.0**-bits for bits in _halvings(depth, d)])
    return (cells.T + 0.5) * widths, widths


def _halvings(depth, d):
    """How often each axis is halved."""
    return [len(range(axis, depth, d)) for axis in range(d)]


def level_shares(depth, d):
    """Parts of the budget of each level below the root, which sum to one.

    Errors of a count move mass by the width of its box: deeper levels, which
    have more boxes of less width, get more.
    """
    weights = 2.0 ** (np.arange(depth) * (1 - 1 / d) / 2)
    return weights / weights.sum()


def level_counts(leaves, depth):
    """Exact counts of the boxes of each level, from the first halving on."""
    levels = [np.bincount(leaves, minlength=1 << depth)]
    for _ in range(depth - 1):
        levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
    return levels[::-1]


def consistent(total, noisy):
    """Masses of the smallest boxes, from noisy counts of each level and a positive total.

    What the halves of a box have more or less than it is split evenly, within zero and all of it:
    masses are not negative, and sum to the total.
    """
    masses = np.array([float(total)])
    for counts in noisy:
        pairs = counts.reshape(-1, 2).astype(float)
        first = pairs[:, 0] + (masses - pairs.sum(axis=1)) / 2
        first = np.clip(first, 0.0, masses)
        masses = np.column_stack([first, masses - first]).ravel()
    return masses


def depth_for(size, epsilon):
    """Depth beyond which counts of single boxes are lost in the noise.

    There are about four times as many expected rows in a box as the noise of
    its count.
    """
    if math.isinf(epsilon):
        return MOST_LEVELS
    return int(np.clip(round(math.log2(max(epsilon * size / 4, 2.0))), 1, MOST_LEVELS))

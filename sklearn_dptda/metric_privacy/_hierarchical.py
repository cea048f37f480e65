"""Private measures by counts of ever smaller boxes."""

import math

import numpy as np

# Deepest tree that is chosen without being asked for: noise of more boxes takes minutes.
MOST_LEVELS = 18


def leaf_of(points, depth):
    """Number of the box of the unit cube that each point falls into.

    Boxes are halved along the first, the second, ... axis in turn.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        In [0, 1].
    depth : int

    Returns
    -------
    ndarray of shape (n,), dtype int64
        From 0 to ``2**depth - 1``; the first bit is that of the first halving.
    """
    d = points.shape[1]
    halvings = [len(range(axis, depth, d)) for axis in range(d)]
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
    """Centres of all boxes, and their common widths.

    Parameters
    ----------
    depth : int
    d : int

    Returns
    -------
    centres : ndarray of shape (2**depth, d)
    widths : ndarray of shape (d,)
    """
    leaves = np.arange(1 << depth)
    cells = np.zeros((d, len(leaves)), dtype=np.int64)
    for level in range(depth):
        bit = leaves >> (depth - 1 - level) & 1
        cells[level % d] = cells[level % d] << 1 | bit
    widths = np.array([2.0 ** -len(range(axis, depth, d)) for axis in range(d)])
    return (cells.T + 0.5) * widths, widths


def level_shares(depth, d):
    """Parts of the budget of each level below the root.

    Errors of a count move mass by the width of its box: deeper levels, which
    have more boxes of less width, get more.

    Parameters
    ----------
    depth : int
    d : int

    Returns
    -------
    ndarray of shape (depth,)
        Sums to one.
    """
    weights = 2.0 ** (np.arange(depth) * (1 - 1 / d) / 2)
    return weights / weights.sum()


def level_counts(leaves, depth):
    """Exact counts of the boxes of each level, from the first halving on."""
    counts = np.bincount(leaves, minlength=1 << depth)
    found = [counts]
    for _ in range(depth - 1):
        found.append(found[-1].reshape(-1, 2).sum(axis=1))
    return found[::-1]


def consistent(total, noisy):
    """Masses of the smallest boxes, from noisy counts of each level.

    What the halves of a box have more or less than it is split evenly, within
    zero and all of it.

    Parameters
    ----------
    total : float
        Positive: the mass of everything.
    noisy : list of ndarray
        Counts of the levels, from two boxes on.

    Returns
    -------
    ndarray
        Not negative, of sum ``total``.
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

"""Boxes of the unit cube that are halved along the first, the second, ... axis in turn.

An axis of a finite size ``K`` holds ``K`` values, each in the middle of a ``K``-th of it, and is
halved until every value is alone; one of an infinite size is halved for ever.
"""

import math

import numpy as np

from sklearn_dptda.privacy._rounding import ROUND_UP


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


def level_scales(axes, sizes, sensitivity, epsilon):
    """Scales of Laplace noise of the counts of each level."""
    # Rounded up: no loss of a last digit.
    return [sensitivity / (share * epsilon) * ROUND_UP for share in level_shares(axes, sizes)]


def level_sums(leaves):
    """Sums of numbers of the smallest boxes over those of each level, from the first halving on."""
    levels = []
    while len(leaves) > 1:
        levels.append(leaves)
        leaves = leaves.reshape(-1, 2).sum(axis=1)
    return levels[::-1]


def level_widths(axes, sizes):
    """How far apart points of one box are, in the maximum norm, of shape (depth + 1,).

    Values of a finite axis are apart by whole steps, from one to the next.
    """
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

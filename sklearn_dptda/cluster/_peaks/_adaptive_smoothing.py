"""Adaptive smoothing of a noisy histogram: cells are averaged with near ones that are like them.

J. Polzehl, V. Spokoiny, "Propagation-separation approach for local likelihood estimation",
Probability Theory and Related Fields 135, 2006.
"""

import math
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

# Cells of the widest window, and growth of its radius from step to step.
_MOST_CELLS, _GROWTH = 100, 1.25
# Beyond it windows hold the cells that share a face.
_MOST_CORNERS = 4
# Likelihood ratio, chi-squared of one degree, from which cells are not averaged: one in forty of
# equal expectation.
_UNLIKE = 5.0
# Anscombe's correction of a count.
_ANSCOMBE = 0.375


def stabilise(counts, variance):
    """Heights: expected counts on the scale on which one noisy count has unit variance.

    A count of expectation ``s`` has variance ``s + variance``, that of sampling and of the noise.
    The transform is Anscombe's with this variance, linear below zero.
    """
    c = variance + _ANSCOMBE
    above = 2 * (np.sqrt(np.maximum(counts, 0) + c) - math.sqrt(c))
    return above + np.minimum(counts, 0) / math.sqrt(c)


def expected_counts(heights, variance):
    """Inverse of :func:`stabilise`."""
    c = variance + _ANSCOMBE
    return np.where(
        heights > 0, (heights / 2 + math.sqrt(c)) ** 2 - c, np.multiply(heights, math.sqrt(c))
    )


def block_means(noisy, width):
    """Mean counts of all blocks of so many cells a side."""
    sides = tuple(range(-noisy.ndim, 0))
    return sliding_window_view(noisy.astype(float), (width,) * noisy.ndim).mean(axis=sides)


def adaptive_heights(noisy, width, variance):
    """Smoothed heights of all blocks, and how many cells each is a mean of.

    Blocks of a width are averaged with those in a window that grows. The weight of another falls
    with its distance and with the likelihood ratio of what both are by then: windows stop at
    edges, and fill what is flat. So the scale is the cells' own.
    """
    blocks, d = block_means(noisy, width), noisy.ndim
    means, sizes = blocks, np.full(blocks.shape, float(width**d))
    for radius in _radii(d):
        heights = stabilise(means, variance)
        totals, weights, squares = blocks.copy(), np.ones_like(blocks), np.ones_like(blocks)
        for step, near in _steps(blocks.shape, radius):
            here, there = _moved(step)
            ratio = 0.5 * sizes[here] * (heights[here] - heights[there]) ** 2
            weight = near * np.clip(2 - 2 * ratio / _UNLIKE, 0, 1)
            totals[here] += weight * blocks[there]
            weights[here] += weight
            squares[here] += weight**2
        means = totals / weights
        # Squared widths add: those of a block and of a window around it.
        spread = width**2 + (weights**2 / squares) ** (2 / d) - 1
        sizes = spread ** (d / 2)
    return stabilise(means, variance), sizes


def _radii(n_dims):
    if n_dims > _MOST_CORNERS:
        return [_GROWTH]
    ball = math.pi ** (n_dims / 2) / math.gamma(n_dims / 2 + 1)
    last = (_MOST_CELLS / ball) ** (1 / n_dims)
    n_steps = math.ceil(math.log(last, _GROWTH))
    return [min(_GROWTH**i, last) for i in range(1, n_steps + 1)]


def _steps(shape, radius):
    """Steps within a radius and the grid, with weights that fall to zero at the radius."""
    if len(shape) > _MOST_CORNERS:
        steps = [tuple(side * row) for row in np.eye(len(shape), dtype=int) for side in (-1, 1)]
    else:
        sides = [range(-reach, reach + 1) for reach in (min(int(radius), n - 1) for n in shape)]
        steps = [step for step in product(*sides) if any(step)]
    for step in steps:
        square = sum(x * x for x in step) / radius**2
        if square < 1:
            yield step, 1 - square


def _moved(step):
    """Slices of the cells from which a step stays on the grid, and of those it leads to."""
    here = tuple(slice(max(0, -x), min(0, -x) or None) for x in step)
    there = tuple(slice(max(0, x), min(0, x) or None) for x in step)
    return here, there

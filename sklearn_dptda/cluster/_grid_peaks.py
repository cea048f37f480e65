"""Adaptive smoothing of a noisy histogram: cells are averaged with near ones that are like them.

J. Polzehl, V. Spokoiny, "Propagation-separation approach for local likelihood estimation",
Probability Theory and Related Fields 135, 2006.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import gaussian_filter

from sklearn_dptda.cluster._peak_hierarchy import Peaks, find_peaks, places_of, strict

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


# Background of a noisy histogram: the cells that do not stand out from the empty ones.

# Rows live where it is denser than the background by this factor, or there is none.
_DENSER = 2


def background_cells(noisy, variance, threshold):
    """Whether each cell is background, which stands out from its level by no more than a threshold.

    The level is the mean count of the lower of Otsu's two classes of cells. Where rows as a rule
    live at hardly more than it, there is no background.
    """
    heights, sizes = adaptive_heights(noisy, 1, variance)
    level = max(noisy[heights <= _between_classes(heights)].mean(), 0.0)
    if _count_around_a_row(noisy, variance) < _DENSER * level:
        return np.zeros(noisy.shape, dtype=bool)
    return (heights - stabilise(level, variance)) * np.sqrt(sizes) <= threshold


def _count_around_a_row(noisy, variance):
    """Expected count of the cell of a row drawn at random, without bias by sampling and noise."""
    counts = noisy.astype(float)
    return (counts**2 - counts - variance).sum() / max(counts.sum(), 1.0)


def _between_classes(values):
    """Threshold between the two classes whose means explain most of the variance.

    N. Otsu, "A threshold selection method from gray-level histograms", IEEE Transactions on
    Systems, Man, and Cybernetics 9, 1979.
    """
    rising = np.sort(values, axis=None)
    n, below = len(rising), np.arange(1, len(rising))
    sums = np.cumsum(rising)
    apart = sums[:-1] / below - (sums[-1] - sums[:-1]) / (n - below)
    last = np.argmax(below * (n - below) * apart**2)
    return 0.5 * (rising[last] + rising[last + 1])


# How far two sides of a pass stand out from it: the splits of a smoothed histogram.

# A curve thinner than a cell fills blocks by the length within them, from 2 to 2.8 cells.
_THIN = 0.85
# Scale of a Laplace variable of unit variance: the highest of m is about log(m) scales.
_SCALE = math.sqrt(0.5)
_TINY = np.finfo(float).tiny
# Nodes of a side that are looked at, from the highest down.
_ENOUGH = 1024


def split_scores(peaks, heights, sizes, variance, fewest):
    """How many standard deviations the weaker side of each peak's pass stands out.

    A side of a pass, a connected component of what is higher, stands out as far as itself or any
    split within it. The highest peak has no pass, and stands out infinitely. ``fewest`` cells at
    least are behind each node, however few of them are averaged.
    """
    scores = np.full(len(peaks.into), np.inf)
    inside = np.full(len(scores), -np.inf)
    root = np.arange(len(scores))
    sides = _by_owner(peaks.owners, heights)
    passes = peaks.diagram[:, 1]
    at_passes = sizes[places_of(np.maximum(passes, heights.min()), heights)]
    for peak in np.argsort(-passes)[: len(scores) - 1]:
        level = passes[peak]
        size = at_passes[peak]
        pair = root[peak], root[peaks.into[peak]]
        scores[peak] = min(
            max(inside[side], _excess(sides[side], level, size, variance, len(heights), fewest))
            for side in pair
        )
        low, high = pair
        inside[low] = max(inside[low], inside[high], scores[peak])
        sides[low] = np.sort(np.r_[sides[low], sides[high]], kind="stable")[-_ENOUGH:]
        root[root == high] = low
    return scores


def _by_owner(owners, heights):
    """Rising heights of the highest nodes of each peak."""
    order = np.lexsort((heights, owners))
    parts = np.split(heights[order], np.flatnonzero(np.diff(owners[order])) + 1)
    return [part[-_ENOUGH:] for part in parts]


def _excess(rising, level, size, variance, n_cells, fewest):
    """How many standard deviations the highest nodes are above a pass, at best over their number.

    The standard deviation is that of a mean of so many nodes and of the pass, itself a mean of
    ``size`` cells, beyond what the highest of all noises does to the mean.
    """
    falling = rising[np.searchsorted(rising, level, side="right") :][::-1]
    n = np.arange(1, len(falling) + 1)
    counts = expected_counts(np.cumsum(falling) / n, variance)
    n = np.maximum(n, fewest)
    lowered = np.where(counts > 0, _THIN * counts, counts)
    noise = np.sqrt(variance / (np.maximum(counts, 0) + max(variance, _TINY)))
    gain = stabilise(lowered, variance) - level - _SCALE * math.log(n_cells) * noise / n
    return np.max(gain / np.sqrt(1 / size + 1 / n))


# Peaks of a noisy histogram: how many stand out, and clusters of so many.

_MOST_CORNERS = 4
# Sides of blocks, in cells. A curve thinner than a cell is whole in some block of two.
_WIDTHS = (2, 3, 4)
# Fewer blocks of a width along an axis show hardly a valley.
_FEWEST_BLOCKS = 8
# Standard deviations of smoothing kernels, in cells: areas double.
SCALES = (0.7, 1.0, 1.4, 2.0, 2.8)
# Only for more clusters than these leave peaks.
_FINEST = 0.5


@dataclass(frozen=True)
class GridPeaks:
    """Peaks of the heights of the cells of a grid, smoothed at a scale in cells.

    ``scores`` say how far each peak is split from the rest, in standard deviations.
    """

    scale: float
    shape: tuple
    heights: np.ndarray
    peaks: Peaks
    scores: np.ndarray

    def weakest(self, n_clusters):
        """Score of the last split into so many clusters."""
        ranked = np.sort(self.scores)[::-1]
        return ranked[n_clusters - 1] if n_clusters <= len(ranked) else -np.inf

    def diagram(self):
        """Birth and death of the peaks in the order of scores, which are birth less death.

        The highest peak is as long as the highest and the lowest cell are apart.
        """
        order = np.argsort(-self.scores, kind="stable")
        deaths, scores = self.peaks.diagram[order, 1], np.maximum(self.scores[order], 0)
        deaths[0] = self.heights.min()
        scores[0] = max(self.heights.max() - deaths[0], scores[1:2].max(initial=0.0))
        return np.column_stack([deaths + scores, deaths])

    def cut(self, n_clusters):
        """Cluster of each cell, in the order of the diagram."""
        labels = np.full(len(self.scores), -1)
        labels[np.argsort(-self.scores, kind="stable")[:n_clusters]] = np.arange(n_clusters)
        # Peaks merge into more prominent ones, which come first.
        for peak in np.flatnonzero(labels < 0):
            labels[peak] = labels[self.peaks.into[peak]]
        return labels[self.peaks.owners].reshape(self.shape)

    def tops(self, labels):
        """Indices of the highest cell of each cluster."""
        highest = np.full(labels.max() + 1, -np.inf)
        np.maximum.at(highest, labels.ravel(), self.heights)
        return np.column_stack(np.unravel_index(places_of(highest, self.heights), self.shape))


def grid_neighbours(shape):
    """Cells that touch each cell, itself where it lies at the rim; one row for each cell.

    Beyond four dimensions, cells that share a face.
    """
    cells = np.indices(shape, dtype=np.int32).reshape(len(shape), -1)
    if len(shape) <= _MOST_CORNERS:
        steps = [step for step in product((-1, 0, 1), repeat=len(shape)) if any(step)]
    else:
        steps = np.vstack([np.eye(len(shape), dtype=int), -np.eye(len(shape), dtype=int)]).tolist()
    neighbours = np.empty((cells.shape[1], len(steps)), dtype=np.int32)
    limits = np.array(shape, dtype=np.int32)[:, None]
    # One step at a time: all moved cells together would not fit.
    for column, step in zip(neighbours.T, steps, strict=True):
        moved = cells + np.array(step, dtype=np.int32)[:, None]
        inside = ((moved >= 0) & (moved < limits)).all(axis=0)
        column[:] = np.arange(cells.shape[1])
        column[inside] = np.ravel_multi_index(tuple(moved[:, inside]), shape)
    return neighbours


def count_clusters(noisy, variance, threshold):
    """Number of clusters whose splits exceed a threshold, over the widths that axes have room for.

    The most over the widths: what splits a histogram at one is not undone by another that does
    not see it.
    """
    n_bins = noisy.shape[0]
    widths = [width for width in _WIDTHS if n_bins >= _FEWEST_BLOCKS * width] or [1]
    # Windows that were chosen on the same counts are not trusted beyond a cell for each block.
    found = (
        _peaks(width, *adaptive_heights(noisy, width, variance), variance, 1) for width in widths
    )
    return max(int((peaks.scores > threshold).sum()) for peaks in found)


def clearest_peaks(noisy, variance, n_clusters):
    """Peaks at the scale of Gaussian smoothing that splits off so many clusters most clearly."""
    found = [_smoothed(noisy, scale, variance) for scale in SCALES]
    if all(len(peaks.scores) < n_clusters for peaks in found):
        found.append(_smoothed(noisy, _FINEST, variance))
    return max(
        found, key=lambda peaks: (min(len(peaks.scores), n_clusters), peaks.weakest(n_clusters))
    )


def smoothed_heights(noisy, scale, variance):
    """Heights of Gaussian means of counts, and of how many cells each is a mean."""
    spike = np.zeros(int(2 * math.ceil(4 * scale) + 3))
    spike[len(spike) // 2] = 1.0
    squares = (gaussian_filter(spike, scale, mode="constant") ** 2).sum() ** noisy.ndim
    means = gaussian_filter(noisy.astype(float), scale, mode="constant")
    return stabilise(means, variance), np.full(means.shape, 1 / squares)


def _smoothed(noisy, scale, variance):
    heights, sizes = smoothed_heights(noisy, scale, variance)
    return _peaks(scale, heights, sizes, variance, sizes.min())


def _peaks(scale, heights, sizes, variance, fewest):
    flat = strict(heights.ravel())
    peaks = find_peaks(grid_neighbours(heights.shape), flat)
    scores = split_scores(peaks, flat, sizes.ravel(), variance, fewest)
    return GridPeaks(scale, heights.shape, flat, peaks, scores)

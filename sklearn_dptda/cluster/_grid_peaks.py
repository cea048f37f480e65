"""Peaks of a noisy histogram: its smoothing, its background, and the peaks that are clusters.

Everything here reads the noisy histogram alone, and spends no budget. The statistics are those of
``doc/theory/private_peaks.md``.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import distance_transform_edt, gaussian_filter
from sklearn.utils import gen_batches

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.cluster._tomato import Peaks, break_ties, find_peaks, indices_of

# Accuracy only: all that these constants are applied to has been released.
# Number of dimensions up to which all cells that touch are neighbours. Beyond it, only those that
# share a face are, since the number of the others grows as 3**d.
_MAX_CORNER_DIMENSIONS = 4
# Anscombe's correction of a count, with which transformed Poisson counts have unit variance.
_ANSCOMBE = 0.375
# Number of cells of the widest window, and growth of its radius from step to step. The simulations
# of doc/theory/private_peaks.md, "How many clusters", use these numbers.
_MAX_WINDOW_CELLS, _RADIUS_GROWTH = 100, 1.25
# Number of cells of windows that are compared at once: few enough for the cache of a processor.
_BATCH = 1 << 15
# Likelihood ratio (chi-squared with one degree of freedom) from which cells are not averaged. One
# in forty pairs of equal expectation exceeds it.
_UNLIKE = 5.0
# Factor by which the density around rows must exceed the background. Otherwise there is no
# background.
_MIN_DENSITY_RATIO = 2
# Number of standard deviations by which the count of a cell far from clusters must be above zero
# for a background to exist, and the least share of the rows that this count must be if every cell
# had it.
_CLEAR_LEVEL, _LEAST_BACKGROUND = 3.0, 0.02
# Share of its expected count that the blocks of a thin curve certainly have. A curve thinner than a
# cell fills blocks by its length within them, which is from 2 to 2.8 cells.
_THIN_CURVE_SHARE = 0.85
# Scale of a Laplace variable of unit variance. The highest of m such variables is about log(m)
# scales.
_UNIT_LAPLACE_SCALE = math.sqrt(0.5)
# Largest number of blocks on one side of a saddle that are examined, from the highest down, which
# bounds the time.
_MAX_BLOCKS = 1024
# Sides of blocks, in cells, and the least number of blocks along an axis, since fewer blocks hardly
# show a valley. Some block of two contains the whole width of a curve thinner than a cell.
_BLOCK_WIDTHS, _MIN_BLOCKS = (2, 3, 4), 8
# Standard deviations of smoothing kernels, in cells; areas double from one to the next. The finest
# one is used only if the others leave fewer peaks than clusters.
SCALES, _FINEST_SCALE = (0.7, 1.0, 1.4, 2.0, 2.8), 0.5
# Smoothing of the counts that flow across borders, in cells; the flow that makes two parts one
# cluster, in units of half the harmonic mean of their masses; and the least flow, since noise has
# no logarithm.
_FLOW_SCALE, _MOST_FLOW, _LEAST_FLOW = 0.5, 8.0, 1e-9


def stabilise(counts: FloatArray | float, variance: float) -> FloatArray:
    """Heights: expected counts on the scale on which one noisy count has unit variance.

    The transform is that of Anscombe, with the variance of sampling and noise; linear below zero.

    Proof: doc/theory/private_peaks.md, "Heights of unit variance".
    """
    c = variance + _ANSCOMBE
    above = 2 * (np.sqrt(np.maximum(counts, 0) + c) - math.sqrt(c))
    return above + np.minimum(counts, 0) / math.sqrt(c)


def expected_counts(heights: FloatArray, variance: float) -> FloatArray:
    """Inverse of :func:`stabilise`."""
    c = variance + _ANSCOMBE
    return np.where(
        heights > 0, (heights / 2 + math.sqrt(c)) ** 2 - c, np.multiply(heights, math.sqrt(c))
    )


def adaptive_heights(noisy: IntArray, width: int, variance: float) -> tuple[FloatArray, FloatArray]:
    """Smoothed heights of all blocks of ``width`` cells a side, and number of cells behind each.

    Each block is averaged with others in a growing window. Their weights fall with the distance,
    and with the likelihood ratio of the present means.
    """
    d = noisy.ndim
    axes = tuple(range(-d, 0))
    blocks = sliding_window_view(noisy.astype(float), (width,) * d).mean(axis=axes)
    shape, own = blocks.shape, blocks.ravel()
    means, sizes = own, np.full(len(own), float(width**d))
    for radius in _radii(d):
        reach = int(radius)
        steps, near = _window(shape, radius)
        heights = stabilise(means, variance)
        # Beyond the edges, an infinite height makes the weight zero.
        far_heights = np.pad(heights.reshape(shape), reach, constant_values=np.inf).ravel()
        far_blocks = np.pad(blocks, reach)
        strides = np.array(far_blocks.strides) // far_blocks.itemsize
        cells = (np.indices(shape).reshape(d, -1).T + reach) @ strides
        far_blocks = far_blocks.ravel()
        totals, weights, squares = (np.empty_like(own) for _ in range(3))
        for part in gen_batches(len(own), max(1, _BATCH // len(steps))):
            there = cells[part] + (steps @ strides)[:, None]
            twice_ratio = sizes[part] * np.square(heights[part] - far_heights.take(there))
            # Faster than np.clip for the small arrays of most grids.
            weight = near[:, None] * np.minimum(np.maximum(2 - twice_ratio / _UNLIKE, 0), 1)
            weights[part] = weight.sum(axis=0)
            squares[part] = np.square(weight).sum(axis=0)
            totals[part] = (weight * far_blocks.take(there)).sum(axis=0)
        means = totals / weights
        # Squared widths add up: those of a block and of the window around it.
        spread = width**2 + (weights**2 / squares) ** (2 / d) - 1
        sizes = spread ** (d / 2)
    return stabilise(means, variance).reshape(shape), sizes.reshape(shape)


@lru_cache
def _window(shape: tuple[int, ...], radius: float) -> tuple[IntArray, FloatArray]:
    """Steps to the cells nearer than a radius, from zero on, and their weights by distance."""
    steps = np.array([(0,) * len(shape), *_steps(shape, int(radius))])
    near = 1 - (steps**2).sum(axis=1) / radius**2
    return steps[near > 0], near[near > 0]


def _radii(n_dims: int) -> list[float]:
    if n_dims > _MAX_CORNER_DIMENSIONS:
        return [_RADIUS_GROWTH]
    ball = math.pi ** (n_dims / 2) / math.gamma(n_dims / 2 + 1)
    last = (_MAX_WINDOW_CELLS / ball) ** (1 / n_dims)
    n_steps = math.ceil(math.log(last, _RADIUS_GROWTH))
    return [min(_RADIUS_GROWTH**i, last) for i in range(1, n_steps + 1)]


def _steps(shape: tuple[int, ...], reach: int) -> Iterator[tuple[int, ...]]:
    """Steps of up to ``reach`` cells along each axis; with many axes, only those across a face."""
    if len(shape) > _MAX_CORNER_DIMENSIONS:
        return (tuple(side * row) for row in np.eye(len(shape), dtype=int) for side in (-1, 1))
    sides = [range(-r, r + 1) for r in (min(reach, n - 1) for n in shape)]
    return (step for step in product(*sides) if any(step))


def smoothed_heights(
    noisy: IntArray, scale: float, variance: float
) -> tuple[FloatArray, FloatArray]:
    """Heights of Gaussian means of counts, and the number of cells that each is a mean of."""
    spike = np.zeros(int(2 * math.ceil(4 * scale) + 3))
    spike[len(spike) // 2] = 1.0
    squares = (gaussian_filter(spike, scale, mode="constant") ** 2).sum() ** noisy.ndim
    means = gaussian_filter(noisy.astype(float), scale, mode="constant")
    return stabilise(means, variance), np.full(means.shape, 1 / squares)


def background_cells(noisy: IntArray, variance: float, threshold: float) -> BoolArray:
    """Whether each cell is background: it exceeds the background level by at most a threshold.

    The level is the mean count of the sparse cells, the lower of Otsu's two classes. There is no
    background if the sparse cells far from dense ones have hardly any rows, or if the density
    around most rows is hardly more than the level.

    Proof: doc/theory/private_peaks.md, "Background".
    """
    heights, sizes = adaptive_heights(noisy, 1, variance)
    sparse = heights <= _between_classes(heights)
    far, level = noisy[_farthest_half(sparse)], max(noisy[sparse].mean(), 0.0)
    counts, n_rows = noisy.astype(float), max(float(noisy.sum()), 1.0)
    noise_of_far = math.sqrt((max(far.mean(), 0.0) + variance) / far.size)
    # Expected count of the cell of a row drawn at random, without bias by sampling and noise.
    around_a_row = (counts**2 - counts - variance).sum() / n_rows
    least = max(_CLEAR_LEVEL * noise_of_far, _LEAST_BACKGROUND * n_rows / noisy.size)
    if far.mean() <= least or around_a_row < _MIN_DENSITY_RATIO * level:
        return np.zeros(noisy.shape, dtype=bool)
    return (heights - stabilise(level, variance)) * np.sqrt(sizes) <= threshold


def _farthest_half(sparse: BoolArray) -> BoolArray:
    """The half of some cells, or more of them, that is farthest from all others."""
    if sparse.all():
        return sparse
    away = distance_transform_edt(sparse)
    return sparse & (away >= np.median(away[sparse]))


def _between_classes(values: FloatArray) -> float:
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


@dataclass(frozen=True)
class GridPeaks:
    """Peaks of the heights of the cells of a grid, smoothed at a scale in cells.

    ``scores`` tell how far each peak stands out from the rest, in standard deviations.
    """

    scale: float
    shape: tuple[int, ...]
    heights: FloatArray
    peaks: Peaks
    scores: FloatArray

    def weakest(self, n_clusters: int) -> float:
        """Score of the last split into this number of clusters."""
        ranked = np.sort(self.scores)[::-1]
        return ranked[n_clusters - 1] if n_clusters <= len(ranked) else -np.inf

    def diagram(self) -> FloatArray:
        """Birth and death of the peaks; the highest one dies at the lowest cell."""
        order = np.argsort(-self.scores, kind="stable")
        deaths, scores = self.peaks.diagram[order, 1], np.maximum(self.scores[order], 0)
        deaths[0] = self.heights.min()
        scores[0] = max(self.heights.max() - deaths[0], scores[1:2].max(initial=0.0))
        return np.column_stack([deaths + scores, deaths])

    def cut(self, n_clusters: int) -> IntArray:
        """Cluster of each cell, in the order of the diagram."""
        labels = np.full(len(self.scores), -1)
        labels[np.argsort(-self.scores, kind="stable")[:n_clusters]] = np.arange(n_clusters)
        # Peaks merge into more prominent ones, which come first.
        for peak in np.flatnonzero(labels < 0):
            labels[peak] = labels[self.peaks.into[peak]]
        return labels[self.peaks.owners].reshape(self.shape)

    def tops(self, labels: IntArray) -> IntArray:
        """Indices of the highest cell of each cluster."""
        highest = np.full(labels.max() + 1, -np.inf)
        np.maximum.at(highest, labels.ravel(), self.heights)
        return np.column_stack(np.unravel_index(indices_of(highest, self.heights), self.shape))


def count_clusters(noisy: IntArray, variance: float, threshold: float) -> int:
    """Number of clusters whose splits exceed a threshold.

    It is the largest number over the block widths that the axes have room for.

    Proof: doc/theory/private_peaks.md, "How many clusters".
    """
    numbers = []
    n_bins = round(noisy.size ** (1 / noisy.ndim))
    for width in [width for width in _BLOCK_WIDTHS if n_bins >= _MIN_BLOCKS * width] or [1]:
        heights, sizes = adaptive_heights(noisy, width, variance)
        # Windows were chosen by the same counts, so they are not trusted beyond one cell for each
        # block.
        peaks = _grid_peaks(width, heights, sizes, variance, 1)
        numbers.append(int((peaks.scores > threshold).sum()))
    return max(numbers)


def clearest_peaks(noisy: IntArray, variance: float, n_clusters: int) -> GridPeaks:
    """Peaks at the scale of Gaussian smoothing that separates the clusters most clearly.

    Proof: doc/theory/private_peaks.md, "Which clusters".
    """

    def peaks_at(scale: float) -> GridPeaks:
        heights, sizes = smoothed_heights(noisy, scale, variance)
        return _grid_peaks(scale, heights, sizes, variance, sizes.min())

    # All scales separate a single cluster equally well, and the first of equal ones is chosen.
    found = [peaks_at(scale) for scale in SCALES[: None if n_clusters > 1 else 1]]
    if all(len(peaks.scores) < n_clusters for peaks in found):
        found.append(peaks_at(_FINEST_SCALE))
    return max(
        found, key=lambda peaks: (min(len(peaks.scores), n_clusters), peaks.weakest(n_clusters))
    )


def joined_parts(noisy: IntArray, labels: IntArray, n_clusters: int) -> IntArray:
    """Join the parts of the grid that are least apart, until the number of clusters is reached.

    The flow between two parts is the sum of the lesser counts of each two cells that touch across
    their border. The order of the joined parts is that of their first ones.

    Proof: doc/theory/private_peaks.md, "Fewer clusters than peaks".
    """
    if labels.max() < n_clusters:
        return labels
    counts = np.maximum(gaussian_filter(noisy.astype(float), _FLOW_SCALE, mode="constant"), 0)
    counts, parts = counts.ravel(), labels.ravel()
    n_parts = int(parts.max()) + 1
    mass = np.bincount(parts, counts, minlength=n_parts).astype(float)
    flow = np.zeros((n_parts, n_parts))
    for near in grid_neighbours(labels.shape).T:
        np.add.at(flow, (parts, parts[near]), np.minimum(counts, counts[near]) / 2)
    flow += flow.T
    live = np.arange(n_parts)
    place = live.copy()
    while len(live) > n_clusters:
        i, j = live[list(_least_apart(mass[live], flow[np.ix_(live, live)]))]
        mass[i] += mass[j]
        flow[i] += flow[j]
        flow[:, i] += flow[:, j]
        place[place == j] = i
        live = live[live != j]
    return np.searchsorted(live, place)[labels]


def _least_apart(mass: FloatArray, flow: FloatArray) -> tuple[int, int]:
    """Places of the two parts that are least apart, in their order."""
    tiny = np.finfo(float).tiny
    half = np.maximum(mass[:, None] * mass / np.maximum(mass[:, None] + mass, tiny), tiny)
    shares = np.clip(flow / (_MOST_FLOW * half), _LEAST_FLOW, 1)
    apart = -np.sqrt(half) * np.log(shares)
    apart[np.tril_indices(len(mass))] = np.inf
    i, j = divmod(int(np.argmin(apart)), len(mass))
    return i, j


def _grid_peaks(
    scale: float, heights: FloatArray, sizes: FloatArray, variance: float, min_cells: float
) -> GridPeaks:
    flat = break_ties(heights.ravel())
    peaks = find_peaks(grid_neighbours(heights.shape), flat)
    scores = _split_scores(peaks, flat, sizes.ravel(), variance, min_cells)
    return GridPeaks(scale, heights.shape, flat, peaks, scores)


def grid_neighbours(shape: tuple[int, ...]) -> IntArray:
    """Cells that touch each cell; with more than four axes, those that share a face.

    At the boundary, the cell itself takes the place of missing neighbours.
    """
    cells = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    around = np.pad(cells, 1, constant_values=-1)
    steps = list(_steps(shape, 1))
    neighbours = np.empty((cells.size, len(steps)), dtype=np.int32)
    # One step at a time, since all moved cells together would not fit into memory.
    for column, step in zip(neighbours.T, steps, strict=True):
        moved = around[tuple(slice(1 + x, 1 + x + n) for x, n in zip(step, shape, strict=True))]
        column[:] = np.where(moved < 0, cells, moved).ravel()
    return neighbours


def _split_scores(
    peaks: Peaks, heights: FloatArray, sizes: FloatArray, variance: float, min_cells: float
) -> FloatArray:
    """Number of standard deviations by which the weaker side of the saddle of each peak stands out.

    A side stands out as far as itself or any split within it. The score of the highest peak is
    infinite. At least ``min_cells`` cells count for each node, even if fewer are averaged.
    """
    scores = np.full(len(peaks.into), np.inf)
    inside = np.full(len(scores), -np.inf)
    root = np.arange(len(scores))
    # Heights of the highest nodes of each peak, in increasing order.
    order = np.lexsort((heights, peaks.owners))
    parts = np.split(heights[order], np.flatnonzero(np.diff(peaks.owners[order])) + 1)
    sides = [part[-_MAX_BLOCKS:] for part in parts]
    saddles = peaks.diagram[:, 1]
    at_saddles = sizes[indices_of(np.maximum(saddles, heights.min()), heights)]
    for peak in np.argsort(-saddles)[: len(scores) - 1]:
        low, high = pair = root[peak], root[peaks.into[peak]]
        scores[peak] = min(
            max(
                inside[side],
                _excess(
                    sides[side], saddles[peak], at_saddles[peak], variance, len(heights), min_cells
                ),
            )
            for side in pair
        )
        inside[low] = max(inside[low], inside[high], scores[peak])
        sides[low] = np.sort(np.concatenate((sides[low], sides[high])), kind="stable")[
            -_MAX_BLOCKS:
        ]
        root[root == high] = low
    return scores


def _excess(
    rising: FloatArray, level: float, size: float, variance: float, n_cells: int, min_cells: float
) -> float:
    """Largest number of standard deviations by which the highest nodes are above a saddle.

    It is the maximum over the number of nodes. The saddle is a mean of ``size`` cells. What the
    highest of all noises adds to a mean is subtracted first.
    """
    falling = rising[np.searchsorted(rising, level, side="right") :][::-1]
    n = np.arange(1, len(falling) + 1)
    counts = expected_counts(np.cumsum(falling) / n, variance)
    n = np.maximum(n, min_cells)
    lowered = np.where(counts > 0, _THIN_CURVE_SHARE * counts, counts)
    # Without noise and counts, the share of the noise is zero rather than undefined.
    noise = np.sqrt(variance / (np.maximum(counts, 0) + max(variance, np.finfo(float).tiny)))
    gain = stabilise(lowered, variance) - level
    gain -= _UNIT_LAPLACE_SCALE * math.log(n_cells) * noise / n
    return np.max(gain / np.sqrt(1 / size + 1 / n))

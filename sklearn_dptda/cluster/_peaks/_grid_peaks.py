"""Peaks of a noisy histogram: how many stand out, and clusters of so many."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.ndimage import gaussian_filter

from sklearn_dptda.cluster._peaks._adaptive_smoothing import adaptive_heights, stabilise
from sklearn_dptda.cluster._peaks._peak_hierarchy import Peaks, find_peaks, places_of, strict
from sklearn_dptda.cluster._peaks._splits import split_scores

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

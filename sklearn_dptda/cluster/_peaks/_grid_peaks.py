"""Peaks of a noisy histogram, smoothed to unit variance over several scales."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.ndimage import gaussian_filter

from sklearn_dptda.cluster._peaks._peak_hierarchy import Peaks, find_peaks, strict

_TINY = np.finfo(float).tiny
_MOST_CORNERS = 4
# Ratio of prominences from which a number of clusters is clear.
_CLEAR = 1.4
# Share of the threshold below which prominences are not told apart.
_NOISE = 2 / 3
# At fine scales hardly more than one count is smoothed, with the heavy tails of its noise.
_HEAVY_TAILS = {0.5: 1.3, 0.75: 1.1}
# On a line all passes are minima, and prominences of noise are those of extremes both ways.
_ON_A_LINE = 1.7
# Standard deviations of the smoothing kernel, in cells.
SCALES = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class SmoothedPeaks:
    """Peaks at one scale, the standard deviation of the kernel in cells of an ``n_dims`` grid.

    ``peaks``, and the ``heights`` of the cells, are in standard deviations of the noise.
    """

    scale: float
    n_dims: int
    peaks: Peaks
    heights: np.ndarray

    def gap(self, n_clusters):
        """How far the last of so many peaks stands out from the next."""
        prominences = np.zeros(max(n_clusters + 1, len(self.peaks.diagram)))
        prominences[: len(self.peaks.diagram)] = self.peaks.prominences
        prominences[0] = self.heights.max() - self.heights.min()
        return prominences[n_clusters - 1] - prominences[n_clusters]

    def contrast(self, threshold):
        """Largest ratio of successive prominences, and the number of peaks above it.

        Prominences are not compared with less than two thirds of the
        threshold, which noise alone reaches.
        """
        threshold = threshold * _HEAVY_TAILS.get(self.scale, 1.0)
        if self.n_dims == 1:
            threshold = threshold * _ON_A_LINE
        prominences = np.r_[self.peaks.prominences[1:], 0.0]
        prominences = prominences[: int((prominences > threshold).sum()) + 1]
        if len(prominences) == 1:
            return 0.0, 1
        ratios = prominences[:-1] / np.maximum(prominences[1:], max(_NOISE * threshold, _TINY))
        return ratios.max(), int(ratios.argmax()) + 2


def stabilised(noisy, scale, variance):
    """Smooth a histogram whose counts have noise of a variance, and transform it to unit variance.

    A smoothed count ``S`` with kernel ``k`` has variance about ``kappa E S + k2 variance``, with
    ``k2`` the sum of squares of the kernel and ``kappa = k2 / k1``: that of sampling, and that of
    the noise. The transform is Anscombe's with this variance, linear below zero.
    """
    smooth = gaussian_filter(noisy.astype(float), scale, mode="constant")
    spike = np.zeros(int(2 * math.ceil(4 * scale) + 3))
    spike[len(spike) // 2] = 1.0
    line = gaussian_filter(spike, scale, mode="constant")
    k1, k2 = line.sum() ** noisy.ndim, (line**2).sum() ** noisy.ndim
    kappa = k2 / k1
    c = k2 * variance + 0.375 * kappa * k1
    above = 2 / kappa * (np.sqrt(kappa * np.maximum(smooth, 0) + c) - math.sqrt(c))
    return above + np.minimum(smooth, 0) / math.sqrt(c)


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


def smoothed_peaks(noisy, variance):
    """Peaks of a noisy histogram at every scale."""
    neighbours = grid_neighbours(noisy.shape)
    smoothed = [strict(stabilised(noisy, scale, variance).ravel()) for scale in SCALES]
    return [
        SmoothedPeaks(scale, noisy.ndim, find_peaks(neighbours, heights), heights)
        for scale, heights in zip(SCALES, smoothed, strict=True)
    ]


def choose(candidates, n_clusters, threshold):
    """Scale and number of clusters, of peaks above a threshold in standard deviations.

    Without ``n_clusters``: at each scale, the number at which the last peak stands out most from
    the next, as a ratio of prominences; over the scales, the largest number that stands out
    clearly, or else what stands out most.
    """
    if n_clusters is None:
        contrasts = [c.contrast(threshold) for c in candidates]
        clear = [i for i, (ratio, _) in enumerate(contrasts) if ratio >= _CLEAR]
        # Coarse scales stand out most, and fine ones see more.
        if clear:
            best = max(clear, key=lambda i: contrasts[i][::-1])
        else:
            best = max(range(len(contrasts)), key=lambda i: contrasts[i][0])
        if contrasts[best][0] > 0:
            return candidates[best], contrasts[best][1]
        n_clusters = 1
    best = max(candidates, key=lambda c: (len(c.peaks.diagram) >= n_clusters, c.gap(n_clusters)))
    return best, min(n_clusters, len(best.peaks.diagram))

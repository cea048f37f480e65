"""Peaks of a noisy histogram, smoothed to unit variance over several scales."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.ndimage import gaussian_filter

from sklearn_dptda.cluster._peaks import Peaks, find_peaks, strict

_MOST_CORNERS = 4
# Ratio of prominences from which a number of clusters is clear.
_CLEAR = 1.4
# Share of the threshold below which prominences are not told apart.
_NOISE = 2 / 3
# At the finest scale hardly more than one count is smoothed, with the heavy tails of its noise.
_HEAVY_TAILS = {0.5: 1.3}
# Standard deviations of the smoothing kernel, in cells.
SCALES = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class SmoothedPeaks:
    """Peaks at one scale.

    Attributes
    ----------
    scale : float
        Standard deviation of the kernel, in cells.
    peaks : Peaks
        In standard deviations of the noise.
    heights : ndarray of shape (n_cells,)
    """

    scale: float
    peaks: Peaks
    heights: np.ndarray

    def gap(self, n_clusters):
        """How far the last of so many peaks stands out from the next."""
        found = np.r_[self.peaks.prominences, np.zeros(n_clusters + 1)]
        found[0] = self.heights.max() - self.heights.min()
        return found[n_clusters - 1] - found[n_clusters]

    def contrast(self, threshold):
        """Largest ratio of successive prominences, and the number of peaks above it.

        Prominences are not compared with less than two thirds of the
        threshold, which noise alone reaches.
        """
        threshold = threshold * _HEAVY_TAILS.get(self.scale, 1.0)
        found = np.r_[self.peaks.prominences[1:], 0.0]
        last = found[:-1]
        ratios = np.where(last > threshold, last / np.maximum(found[1:], _NOISE * threshold), 0.0)
        if not ratios.any():
            return 0.0, 1
        return ratios.max(), int(ratios.argmax()) + 2


def stabilised(noisy, scale, variance):
    """Smooth a noisy histogram, and transform it to unit variance.

    Parameters
    ----------
    noisy : ndarray
        Counts with noise.
    scale : float
        Of the Gaussian kernel, in cells.
    variance : float
        Of the noise of one count.

    Returns
    -------
    ndarray of the same shape

    Notes
    -----
    A smoothed count ``S`` with kernel ``k`` has variance about
    ``kappa E S + k2 variance``, with ``k2`` the sum of squares of the kernel
    and ``kappa = k2 / k1``: that of sampling, and that of the noise. The
    transform is Anscombe's with this variance, linear below zero.
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
    """Cells that touch each cell, itself where it lies at the rim.

    Beyond four dimensions, cells that share a face.

    Parameters
    ----------
    shape : tuple of int

    Returns
    -------
    ndarray of shape (n_cells, 3**n_dims - 1), or (n_cells, 2 * n_dims)
    """
    cells = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    cells = cells.reshape(-1, len(shape))
    if len(shape) <= _MOST_CORNERS:
        steps = np.array([step for step in product((-1, 0, 1), repeat=len(shape)) if any(step)])
    else:
        steps = np.vstack([np.eye(len(shape), dtype=int), -np.eye(len(shape), dtype=int)])
    moved = cells[:, None] + steps
    inside = ((moved >= 0) & (moved < shape)).all(axis=2)
    clipped = np.clip(moved, 0, np.array(shape) - 1)
    flat = np.ravel_multi_index(tuple(np.moveaxis(clipped, 2, 0)), shape)
    return np.where(inside, flat, np.arange(len(cells))[:, None])


def smoothed_peaks(noisy, variance):
    """Peaks at every scale.

    Parameters
    ----------
    noisy : ndarray
    variance : float

    Returns
    -------
    list of SmoothedPeaks
    """
    neighbours = grid_neighbours(noisy.shape)
    found = []
    for scale in SCALES:
        heights = strict(stabilised(noisy, scale, variance).ravel())
        found.append(SmoothedPeaks(scale, find_peaks(neighbours, heights), heights))
    return found


def choose(candidates, n_clusters, threshold):
    """Scale and number of clusters.

    Parameters
    ----------
    candidates : list of SmoothedPeaks
    n_clusters : int or None
        None: at each scale, the number at which the last peak stands out most
        from the next, as a ratio of prominences; over the scales, the largest
        number that stands out clearly, or else what stands out most.
    threshold : float
        Peaks below it, in standard deviations, are no clusters.

    Returns
    -------
    SmoothedPeaks, int
    """
    if n_clusters is None:
        found = [(*c.contrast(threshold), c) for c in candidates]
        clear = [one for one in found if one[0] >= _CLEAR]
        # Coarse scales stand out most, and fine ones see more.
        best = (
            max(clear, key=lambda one: one[1::-1]) if clear else max(found, key=lambda one: one[0])
        )
        if best[0] > 0:
            return best[2], best[1]
        n_clusters = 1
    best = max(candidates, key=lambda c: (len(c.peaks.diagram) >= n_clusters, c.gap(n_clusters)))
    return best, min(n_clusters, len(best.peaks.diagram))

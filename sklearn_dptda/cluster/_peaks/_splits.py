"""How far two sides of a pass stand out from it: the splits of a smoothed histogram."""

import math

import numpy as np

from sklearn_dptda.cluster._peaks._adaptive_smoothing import expected_counts, stabilise
from sklearn_dptda.cluster._peaks._peak_hierarchy import places_of

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

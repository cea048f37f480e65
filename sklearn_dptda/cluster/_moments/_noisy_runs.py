"""Runs of noisy counts that stand out from their noise."""

import math

import numpy as np

# Standard deviations of noise above which a run of cells, and a first run, stand out.
_GROWN, _FIRST = 3.0, 4.5


def standing_out(counts, sd, grown=_GROWN):
    """Cells from the shortest dyadic run that stands out, grown by neighbouring runs that do."""
    sums, n = np.r_[0.0, np.cumsum(counts)], len(counts)
    length = 1
    while length < n:
        runs = sums[length:] - sums[:-length]
        start = int(runs.argmax())
        if runs[start] > _FIRST * sd * math.sqrt(length):
            break
        length *= 2
    else:
        return 0, n
    stop, moved = start + length, True
    while moved:
        moved = False
        for length in (2**i for i in range((n - 1).bit_length() + 1)):
            below, above = max(start - length, 0), min(stop + length, n)
            if sums[start] - sums[below] > grown * sd * math.sqrt(start - below) + 0.5:
                start, moved = below, True
            if sums[above] - sums[stop] > grown * sd * math.sqrt(above - stop) + 0.5:
                stop, moved = above, True
    return start, stop


def mean_place(counts, sd):
    """Mean of the run that stands out, from -1 to 1."""
    start, stop = standing_out(counts, sd)
    middles = (2 * np.arange(start, stop) + 1) / len(counts) - 1
    weights = counts[start:stop]
    mean = (weights * middles).sum() / max(weights.sum(), 3 * sd, 1.0)
    return float(np.clip(mean, 2 * start / len(counts) - 1, 2 * stop / len(counts) - 1))

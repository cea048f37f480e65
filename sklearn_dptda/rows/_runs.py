"""Counts by cells, and runs of cells that stand out of noise.

Counts are noisy; what stands out of them is post-processing.
"""

import math

import numpy as np

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray

# Accuracy only: counts have been released.
# Standard deviations of noise above which a first run of cells stands out, and above which
# neighbouring cells are added to it.
_FIRST_RUN, _GROWN_RUN = 4.5, 3.0
# Format of floats: bits below the exponent, a mask of the exponent above them, and the bits of 1.
MANTISSA_BITS, EXPONENTS, ONE = 52, 0x7FF, 0x3FF << 52


def counts_by_column(
    cells: FloatArray | IntArray, n_cells: int, gaps: BoolArray | None = None
) -> IntArray:
    """Number of rows in each cell, of shape (n_columns, n_cells); missing values are in no cell.

    ``gaps`` says which values are missing, or they are NaN.
    """
    gaps = np.isnan(cells) if gaps is None else gaps
    if gaps.any():
        # Missing values are counted in a cell of their own, which is dropped.
        cells = np.where(gaps, n_cells, cells)
    whole = cells.astype(np.intp)
    counts = [np.bincount(column, minlength=n_cells + 1)[:n_cells] for column in whole.T]
    return np.array(counts)


def standing_out(
    counts: FloatArray,
    sd: float,
    grown: float = _GROWN_RUN,
    first: float = _FIRST_RUN,
) -> tuple[int, int]:
    """Cells of the shortest dyadic run that stands out, and of neighbouring runs that stand out."""
    sums, n = np.r_[0.0, np.cumsum(counts)], len(counts)
    length = 1
    while length < n:
        runs = sums[length:] - sums[:-length]
        start = int(runs.argmax())
        if runs[start] > first * sd * math.sqrt(length):
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


def without_ends(
    counts: FloatArray, sd: float, run: tuple[int, int], grown: float
) -> tuple[int, int]:
    """The same run without the longest ends that do not stand out.

    A run grows by many cells at a time, of which only the inner ones may have rows.
    """
    start, stop = run
    least = grown * sd * np.sqrt(np.arange(1, stop - start + 1)) + 0.5
    upper = np.flatnonzero(np.cumsum(counts[start:stop]) <= least)
    lower = np.flatnonzero(np.cumsum(counts[start:stop][::-1]) <= least)
    ends = [0 if not len(end) else int(end[-1]) + 1 for end in (upper, lower)]
    return (start + ends[0], stop - ends[1]) if sum(ends) < stop - start else run


def mean_place(counts: FloatArray, sd: float) -> float:
    """Mean of the run that stands out, from -1 to 1."""
    start, stop = standing_out(counts, sd)
    middles = (2 * np.arange(start, stop) + 1) / len(counts) - 1
    weights = counts[start:stop]
    mean = (weights * middles).sum() / max(weights.sum(), 3 * sd, 1.0)
    return float(np.clip(mean, 2 * start / len(counts) - 1, 2 * stop / len(counts) - 1))

"""Runs of noisy counts that stand out from their noise.

Proof: doc/theory/private_mixtures.md, "Localisation: why the width of the box hardly matters".
"""

import math
from functools import partial

import numpy as np

from sklearn_dptda.rows._assignments import euclidean

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


# Where rows are in the cube: a private ball around them, however wide the box is.
#
# In each stage a joint histogram of all columns gives a centre, and one of the distances from it
# a radius; where the ball is small beside what was looked at, the next stage looks there. How
# many stages there are follows from what they release, and what they spend is known before each:
# the sum of the shares is a filter.

# Of the budget, for the columns and for the distances of one stage. Losses of pure noise add
# without squares: it takes more of them to be heard.
_SHARES = {"l2": (0.015, 0.005), "l1": (0.04, 0.015)}
_MOST_STAGES = 5
_CELLS, _PER_OCTAVE, _OCTAVES = 64, 4, 8
# Standard deviations of noise above which a tail stands out. A tail of noise alone does so with a
# probability of 1e-3 at most, by the union over cells.
_TAIL = 4.0
# Share of the rows that may lie outside of the ball.
_OUTSIDE = 0.02
# Share of the rows that noise may hide where the ball is less than three times smaller than the
# cube's own.
_HIDDEN, _GAIN = 0.1, 1 / 3
# Part of the cube's own ball from which on its 64 cells have resolved the centre.
_RESOLVED = 1 / 8
# Beyond what is looked at rows are only missing where the noise hid them.
_ROOM = 1.1


def localise(rows, budget):
    """Centre and radius of a ball around rows of the cube, and the share that they have cost."""
    d = rows.n_features
    for_columns, for_distances = _SHARES[budget.norm]
    centre, half, spent = np.zeros(d), 1.0, 0.0
    for _ in range(_MOST_STAGES):
        counts = rows.sum(partial(of_columns, centre=centre, half=half))
        counts, sd = budget.counts(counts, d, for_columns)
        centre = centre + half * np.array([mean_place(column, sd) for column in counts])
        reach = 2 * d**0.5 * half
        counts = rows.sum(partial(of_distances, centre=centre, reach=reach))
        counts, sd = budget.counts(counts, 1, for_distances)
        spent += for_columns + for_distances
        radius = reach * outer(counts, sd, _OUTSIDE * max(counts.sum(), 1.0))
        if not radius <= reach / 2 or (half == 1.0 and _in_doubt(counts, sd, radius / d**0.5)):
            # All noise, or nearly all of the cube: its own ball holds every row.
            return np.zeros(d), d**0.5, spent
        if radius > _RESOLVED * d**0.5 * half:
            break
        half = min(half, _ROOM * radius)
    return centre, radius, spent


def of_columns(part, centre, half):
    """Counts of the cells of each column; the cells at the ends hold what lies beyond."""
    cells = np.floor((part - (centre - half)) * (_CELLS / (2 * half)))
    return counts_by_column(np.clip(cells, 0, _CELLS - 1).astype(np.int64), _CELLS)


def counts_by_column(cells, n_cells):
    """How many rows are in each cell, of shape (n_columns, n_cells)."""
    return np.array([np.bincount(column, minlength=n_cells) for column in cells.T])


def of_distances(part, centre, reach, per_octave=_PER_OCTAVE):
    """Counts of parts of octaves of the distances, from the largest down."""
    n_cells = per_octave * _OCTAVES
    # Comparisons, not logarithms: these may be rounded otherwise at another place of an array.
    ends = 2.0 ** (-np.arange(n_cells - 1, 0, -1) / per_octave)
    cells = n_cells - 1 - np.searchsorted(ends, euclidean(part - centre) / reach)
    return np.bincount(cells, minlength=n_cells)


def outer(counts, sd, least, per_octave=_PER_OCTAVE):
    """Part of the reach beyond which so few rows lie at most; NaN where all is noise."""
    n_cells = np.arange(1, len(counts) + 1)
    kept = np.cumsum(counts) > np.maximum(least, _TAIL * sd * np.sqrt(n_cells))
    return 2.0 ** (-int(kept.argmax()) / per_octave) if kept.any() else math.nan


def _in_doubt(counts, sd, part):
    """Whether noise can hide a tenth of the rows, and a ball of this part gains little anyway."""
    hidden = _TAIL * sd * math.sqrt(2 * _PER_OCTAVE)
    return part > _GAIN and hidden > _HIDDEN * max(counts.sum(), 1.0)

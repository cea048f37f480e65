"""Private intervals of columns."""

import math
from functools import partial

import numpy as np
from scipy.stats import norm

from sklearn_dptda.rows._localisation import counts_by_column, mean_place, of_columns, standing_out

# Of the share for the box: sizes, each closer look, distances.
_SIZES, _LOOK, _DISTANCES = 0.15, 0.1, 0.45
_MOST_LOOKS = 4
# Powers of two of the numbers; smaller ones count as zero, larger ones as the largest.
_LEAST, _MOST = -40, 60
# Standard deviations of noise above which sizes are no noise: a false one would be far out.
_TAIL = 4.0
# A look is closer where the rows are in less than this part of the cells; cells to spare.
_FEW, _SPARE = 1 / 4, 4
_PER_OCTAVE, _OCTAVES = 2, 40
# Shares of the rows beyond quantiles: of the far ones, at least and at most, as the noise lets one
# see them, and of a normal column beyond one standard deviation.
_FAR_SHARES, _NEAR_SHARES = (0.01, 0.08), (0.16, 0.16)
# Standard deviations of noise that the rows beyond a far quantile are worth.
_WORTH = 4.0
# Half width of a box, in standard deviations of a normal column: one row in 5,000 is beyond.
_HALF_WIDTH = 3.55
# Growth of quantiles in those of the normal law, as exponents: bounded, and heavy, tails.
_EXPONENTS = (0.3, 1.6)


def private_box(rows, budget, share):
    """Lower and upper bounds of all columns, and what they have cost of at most ``share``."""
    d = rows.n_features
    rows = rows.map(partial(np.clip, a_min=-(2.0**_MOST), a_max=2.0**_MOST))
    counts, sd = budget.counts(rows.sum(_of_sizes), d, _SIZES * share)
    largest = np.array([_largest(column, sd) for column in counts])
    middle, n_looks = _middle(rows, largest, budget, _LOOK * share)
    reach = largest + np.abs(middle)
    counts = rows.sum(partial(_of_distances, middle=middle, reach=reach))
    counts, sd = budget.counts(counts, d, _DISTANCES * share)
    ends = np.array([_ends(column, sd, counts.sum() / d) for column in counts])
    low, high = middle + reach * ends[:, 0], middle + reach * ends[:, 1]
    return low, high, (_SIZES + n_looks * _LOOK + _DISTANCES) * share


def rows_for_box(n_features, budget, share):
    """Rows with fewer of which the noise hides the far quantiles of a column."""
    sd = budget.deviation(budget.scale_of_counts(n_features, _DISTANCES * share))
    return _WORTH * sd / _FAR_SHARES[1]


def _middle(rows, largest, budget, share):
    """Means of the rows that stand out in each column, and the number of looks at them."""
    centre, half, active = np.zeros(len(largest)), largest.copy(), np.arange(len(largest))
    n_looks = 0
    while len(active) and n_looks < _MOST_LOOKS:
        n_looks += 1
        look = partial(of_columns, centre=centre[active], half=half[active])
        counts = rows.selected(active).sum(look)
        counts, sd = budget.counts(counts, len(active), share)
        again = []
        for column, j in zip(counts, active, strict=True):
            # Cells at the ends hold what is not looked at any more.
            run = standing_out(column[1:-1], sd)
            centre[j] += half[j] * (1 - 2 / len(column)) * mean_place(column[1:-1], sd)
            if np.diff(run) < _FEW * len(column):
                half[j] *= (np.diff(run).item() + _SPARE) / len(column)
                again.append(j)
        active = np.array(again, dtype=int)
    return centre, n_looks


def _of_sizes(part):
    """Counts of the powers of two that numbers are below, from the largest down."""
    mantissas, exponents = np.frexp(part)
    exponents = np.where(mantissas == 0, _LEAST, np.clip(exponents, _LEAST, _MOST))
    return counts_by_column(_MOST - exponents, _MOST - _LEAST + 1)


def _largest(counts, sd):
    """Power of two that hardly a number is above; one where all is noise."""
    start, stop = standing_out(counts, sd, _TAIL)
    # An octave to spare: noise may have hidden some.
    return 2.0 ** (_MOST + 1 - start) if stop - start < len(counts) else 1.0


def _of_distances(part, middle, reach):
    """Counts of parts of octaves of distances, from far to near, below the middle and above."""
    n = _PER_OCTAVE * _OCTAVES
    # Comparisons, not logarithms: these may be rounded otherwise at another place of an array.
    ends = _sizes_of_parts()[1:-1][::-1]
    offsets = (part - middle) / reach
    cells = n - 1 - np.searchsorted(ends, np.abs(offsets)) + np.where(offsets < 0, 0, n)
    return counts_by_column(cells, 2 * n)


def _sizes_of_parts():
    """Ends of the parts of octaves, from one down to zero."""
    return np.r_[2.0 ** (-np.arange(_PER_OCTAVE * _OCTAVES) / _PER_OCTAVE), 0.0]


def _ends(counts, sd, n):
    """Ends of a column's interval, in units of the reach."""
    n, least = max(n, 3 * sd, 1.0), _sizes_of_parts()[-2]
    sides = np.split(counts, 2)
    (low, below), (high, above) = (_quantile(side, _FAR_SHARES, sd, n) for side in sides)
    inner = sum(_quantile(side, _NEAR_SHARES, sd, n)[0] for side in sides) / 2
    outer = max((low + high) / 2, least)
    z = norm.isf((below + above) / 2)
    exponent = math.log(outer / np.clip(inner, least, outer)) / math.log(z)
    half = outer * (_HALF_WIDTH / z) ** np.clip(exponent, *_EXPONENTS)
    return (high - low) / 2 - half, (high - low) / 2 + half


def _quantile(counts, shares, sd, n):
    """Distance beyond which a share of the rows lies, in bounds, and the share."""
    start, _ = standing_out(counts, sd)
    counts, edges = counts[start:], _sizes_of_parts()[start:]
    sums, noise = np.cumsum(counts), _WORTH * sd * np.sqrt(np.arange(1, len(counts) + 1))
    wanted = np.clip(noise, shares[0] * n, shares[1] * n)
    enough = sums >= wanted
    cell = int(enough.argmax()) if enough.any() else len(counts) - 1
    part = (wanted[cell] - sums[cell] + counts[cell]) / max(counts[cell], 1e-9)
    place = edges[cell] + np.clip(part, 0.0, 1.0) * (edges[cell + 1] - edges[cell])
    return place, wanted[cell] / n

"""Localisation of rows in the cube: runs of noisy counts, and a private ball around the rows.

In each stage, a joint histogram of all columns gives a centre, and a histogram of the distances
from it gives a radius. If the ball is much smaller than the current cube, the next stage searches
around it. The number of stages depends only on released values, and their shares form a filter.
Proof: doc/theory/private_mixtures.md, "Localisation: why the width of the box hardly matters".
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.rows._assignments import euclidean, in_norm, one_cell
from sklearn_dptda.rows._moments import FitBudget, MomentWeights
from sklearn_dptda.rows._rows import Rows

Budget = TypeVar("Budget", bound=FitBudget)


@dataclass(frozen=True)
class _LocalisationRules:
    """Public constants of runs and balls, measured in doc/measured/clusters.md."""

    # Standard deviations of noise above which a first run of cells stands out, and above which
    # neighbouring cells are added to it.
    first_run: float = 4.5
    grown_run: float = 3.0
    # Shares of the budget for the columns and for the distances of one stage, by the norm of the
    # noise. Pure losses add up linearly, not in squares, so a larger share is needed for a signal.
    shares: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {"l2": (0.015, 0.005), "l1": (0.04, 0.015)}
    )
    most_stages: int = 5
    # Number of cells of a column, of cells of an octave of distances, and of octaves.
    cells: int = 64
    cells_per_octave: int = 4
    octaves: int = 8
    # Standard deviations of noise above which a tail stands out. A tail of pure noise does so with
    # a probability of at most 1e-3, by a union bound over the cells.
    tail: float = 4.0
    # Share of the rows that may lie outside the ball.
    outside: float = 0.02
    # A ball is rejected if noise can hide more than the share ``hidden`` of the rows and the ball
    # is larger than the part ``gain`` of the ball around the cube.
    hidden: float = 0.1
    gain: float = 1 / 3
    # The cells have resolved the centre if the radius is above this part of the ball around the
    # cube.
    resolved: float = 1 / 8
    # The cube of the next stage is wider than the ball by this factor. It misses only rows that the
    # noise has hidden.
    room: float = 1.1


_RULES = _LocalisationRules()


def standing_out(
    counts: FloatArray,
    sd: float,
    grown: float = _RULES.grown_run,
    first: float = _RULES.first_run,
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


def mean_place(counts: FloatArray, sd: float) -> float:
    """Mean of the run that stands out, from -1 to 1."""
    start, stop = standing_out(counts, sd)
    middles = (2 * np.arange(start, stop) + 1) / len(counts) - 1
    weights = counts[start:stop]
    mean = (weights * middles).sum() / max(weights.sum(), 3 * sd, 1.0)
    return float(np.clip(mean, 2 * start / len(counts) - 1, 2 * stop / len(counts) - 1))


def localise(rows: Rows, budget: FitBudget) -> tuple[FloatArray, float, float]:
    """Centre and radius of a ball around rows of the cube, and the share of the budget spent."""
    d = rows.n_features
    for_columns, for_distances = _RULES.shares[budget.norm]
    centre, half, spent = np.zeros(d), 1.0, 0.0
    for _ in range(_RULES.most_stages):
        counts = rows.sum(partial(of_columns, centre=centre, half=half))
        counts, sd = budget.noisy_counts(counts, d, for_columns)
        centre = centre + half * np.array([mean_place(column, sd) for column in counts])
        reach = 2 * d**0.5 * half
        counts = rows.sum(partial(of_distances, centre=centre, reach=reach))
        counts, sd = budget.noisy_counts(counts, 1, for_distances)
        spent += for_columns + for_distances
        radius = reach * outer(counts, sd, _RULES.outside * max(counts.sum(), 1.0))
        if not radius <= reach / 2 or (half == 1.0 and _in_doubt(counts, sd, radius / d**0.5)):
            # The counts are pure noise, or the ball covers almost the whole cube. The ball around
            # the cube contains every row.
            return np.zeros(d), d**0.5, spent
        if radius > _RULES.resolved * d**0.5 * half:
            break
        half = min(half, _RULES.room * radius)
    return centre, radius, spent


def of_columns(part: FloatArray, centre: FloatArray, half: Any) -> IntArray:
    """Counts of the cells of each column; the cells at the ends also contain the rows outside."""
    cells = np.floor((part - (centre - half)) * (_RULES.cells / (2 * half)))
    return counts_by_column(np.clip(cells, 0, _RULES.cells - 1).astype(np.int64), _RULES.cells)


def counts_by_column(cells: IntArray, n_cells: int) -> IntArray:
    """Number of rows in each cell, of shape (n_columns, n_cells)."""
    return np.array([np.bincount(column, minlength=n_cells) for column in cells.T])


def of_distances(
    part: FloatArray,
    centre: FloatArray,
    reach: float,
    per_octave: int = _RULES.cells_per_octave,
) -> IntArray:
    """Counts of distances by parts of octaves, in decreasing order."""
    n_cells = per_octave * _RULES.octaves
    # Comparisons are used, because the rounding of logarithms may depend on the place in an array.
    ends = 2.0 ** (-np.arange(n_cells - 1, 0, -1) / per_octave)
    cells = n_cells - 1 - np.searchsorted(ends, euclidean(part - centre) / reach)
    return np.bincount(cells, minlength=n_cells)


def outer(
    counts: FloatArray, sd: float, least: float, per_octave: int = _RULES.cells_per_octave
) -> float:
    """Part of the reach beyond which at most ``least`` rows lie; NaN if all counts are noise."""
    n_cells = np.arange(1, len(counts) + 1)
    kept = np.cumsum(counts) > np.maximum(least, _RULES.tail * sd * np.sqrt(n_cells))
    return 2.0 ** (-int(kept.argmax()) / per_octave) if kept.any() else math.nan


def mean_in_ball(
    rows: Rows,
    centre: FloatArray,
    radius: float,
    budget: Budget,
    weights: MomentWeights,
    share: float,
) -> tuple[FloatArray, float, float, Budget]:
    """Mean of rows in a ball, its noise, the number of all rows, and the remaining budget."""
    reach = in_norm(radius, rows.n_features, budget.norm)
    assign = one_cell(centre, reach, budget.norm)
    moments = budget.release(rows, assign, 1, weights=weights, share=share)
    n = float(moments.floored_counts[0])
    mean = centre + reach * moments.shrunk_steps()[0]
    return mean, reach * moments.sd_sum / n, n, budget.rest(share)


def distances_beyond(
    rows: Rows,
    centre: FloatArray,
    reach: float,
    budget: Budget,
    share: float,
    per_octave: int,
) -> tuple[Callable[[float], float], Budget]:
    """Release distances. Return a function from a number of rows to a distance, and the budget."""
    count = partial(of_distances, centre=centre, reach=reach, per_octave=per_octave)
    counts, sd = budget.noisy_counts(rows.sum(count), 1, share)

    def beyond(least: float) -> float:
        part = outer(counts, sd, least, per_octave)
        # If all counts are noise, this is the ball that was examined.
        return reach * (0.5 if math.isnan(part) else part)

    return beyond, budget.rest(share)


def _in_doubt(counts: FloatArray, sd: float, part: float) -> bool:
    """Whether noise can hide a tenth of the rows, and a ball of this size gains little anyway."""
    hidden = _RULES.tail * sd * math.sqrt(2 * _RULES.cells_per_octave)
    return part > _RULES.gain and hidden > _RULES.hidden * max(counts.sum(), 1.0)

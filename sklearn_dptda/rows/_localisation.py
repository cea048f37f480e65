"""Localisation of rows by runs of noisy counts: a private ball in the cube, and a private box.

:func:`localise` finds a ball. In each stage, a joint histogram of all columns gives a centre, and a
histogram of the distances from it gives a radius. If the ball is much smaller than the current
cube, the next stage searches around it. The number of stages depends only on released values, and
their shares form a filter.
Proof: doc/theory/private_mixtures.md, "Localisation: why the width of the box hardly matters".

:func:`private_box` serves fits in columns that have no public bounds. It releases noisy histograms:
of magnitudes by powers of two, then of cells, then of distances from the mean. An interval is as
wide as the extremes of a normally distributed column, extrapolated from the quantiles that the
noise leaves visible.
Proof: doc/theory/private_bounds.md, "Columns of a table".
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy.stats import chi, norm

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.rows._assignments import Cells, euclidean, in_norm
from sklearn_dptda.rows._moments import KEPT, FitBudget, MomentWeights
from sklearn_dptda.rows._rows import Box, Rows, about, count_beyond
from sklearn_dptda.rows._runs import MANTISSA_BITS, ONE, counts_by_column, mean_place, standing_out
from sklearn_dptda.rows._sizes import LARGEST_SIZE, SIZES_SHARE, Sizes

Budget = TypeVar("Budget", bound=FitBudget)


@dataclass(frozen=True)
class _LocalisationRules:
    """Public constants of runs and balls, measured in doc/measured/clusters.md.

    Accuracy only: what is spent is taken off the budget, whatever the shares are.
    """

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
    # Share of the rows that may lie outside the ball. If noise hides more than this share, a radius
    # is extrapolated as that of a normal cloud. If it hides more than the second share, the rows
    # may be anywhere.
    outside: float = 0.02
    hidden: float = 0.95
    # The cells have resolved the centre if the radius is above this part of the ball around the
    # cube.
    resolved: float = 1 / 8
    # The cube of the next stage is wider than the ball by this factor. It misses only rows that the
    # noise has hidden.
    room: float = 1.1


@dataclass(frozen=True)
class _HistogramRules:
    """Public constants of :func:`private_box`.

    Accuracy only: how narrow a box is. What it costs is taken off the budget.
    """

    # Shares of the budget of the box: for each narrower histogram, and for the distances.
    look: float = 0.1
    distances: float = 0.45
    most_looks: int = 4
    # The next histogram is narrower if the rows are in less than this share of the cells. It then
    # has the given number of spare cells.
    narrow: float = 1 / 4
    spare_cells: int = 4
    parts_per_octave: int = 2
    octaves: int = 40
    # Share of the rows beyond the far quantiles, and beyond one standard deviation of a normal
    # column. They are the same for any noise: with a smaller share for less noise, an interval
    # would reach farther out to rows that are no part of any cluster, the larger epsilon is.
    far: float = 0.06
    near: float = 0.16
    # Number of rows beyond a far quantile, in standard deviations of the noise, from which on the
    # quantile is visible.
    worth: float = 3.0
    # Half width of a box, in standard deviations of a normal column. One row in 5,000 is outside.
    half_width: float = 3.55
    # Part of the share for bounds within given ones that is spent on checking whether there are
    # enough rows, and smallest part of the width that may remain.
    number_share: float = 0.05
    least_part: float = 2.0**-40
    least_beside_ends: float = 2.0**-34
    # If an estimated interval is narrower than this part of the given width, the given bounds are
    # generous. If they are not, and there are fewer rows than this multiple of the necessary
    # number, the noise in the units would cost more than the narrower interval gains.
    generous: float = 1 / 5
    sure_rows: float = 2.0
    # Intervals that are narrower than the given ones by this factor are rejected if more than the
    # share ``reaching`` of the rows lies beyond ``far_out`` times the interval: about
    # as many as the far quantiles leave out.
    much_narrower: float = 1 / 16
    far_out: float = 4.0
    reaching: float = 0.08
    # Largest end of an interval that is a unit, in half widths of the given bounds. These contain
    # all rows, and noise may extrapolate an interval far beyond them.
    beyond_ends: float = 1.1
    # Growth of the quantiles relative to those of the normal distribution, as exponents, for
    # bounded tails and for heavy ones.
    tails: tuple[float, float] = (0.3, 1.6)


_RULES, _BOX = _LocalisationRules(), _HistogramRules()
# Standard deviation of a normal column in its interval, in half widths.
NORMAL_SPREAD = 1 / _BOX.half_width


class Intervals(NamedTuple):
    """Intervals of the columns: bounds to which rows are clipped, and units, which contain them.

    ``spreads`` are standard deviations of the columns, NaN where no histogram was released.
    """

    low: FloatArray
    high: FloatArray
    left: FloatArray
    right: FloatArray
    spreads: FloatArray

    @classmethod
    def given(cls, low: FloatArray, high: FloatArray) -> Self:
        """Public bounds, which are the units."""
        return cls(low, high, low, high, np.full_like(low, np.nan))

    def in_units(self, units: FloatArray) -> "Intervals":
        """The same bounds, and public units in these proportions, as small as contain them."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        reach = units * (half / units).max()
        left, right = np.minimum(middle - reach, self.low), np.maximum(middle + reach, self.high)
        return Intervals(self.low, self.high, left, right, np.full_like(half, np.nan))

    def box(self, one_unit: bool) -> Box:
        """Box whose cube is the units."""
        box = Box.centred(self.low, self.high, one_unit, (self.left, self.right))
        return replace(box, spreads=self.spreads / box.unit)


def localise(rows: Rows, budget: FitBudget) -> tuple[FloatArray, float, float, float]:
    """Centre and radius of a ball around rows of the cube, their number, and the share spent."""
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
        n_rows = max(float(counts.sum()), 1.0)
        radius = reach * _part_of_ball(counts, sd, n_rows, d)
        if not radius <= reach / 2:
            # The counts are pure noise, or the ball covers almost the whole cube. The ball around
            # the cube contains every row.
            return np.zeros(d), d**0.5, n_rows, spent
        if radius > _RULES.resolved * d**0.5 * half:
            break
        half = min(half, _RULES.room * radius)
    return centre, radius, n_rows, spent


def of_columns(part: FloatArray, centre: FloatArray, half: Any) -> IntArray:
    """Counts of the cells of each column; the cells at the ends also contain the rows outside."""
    cells = part - (centre - half)
    cells *= _RULES.cells / (2 * half)
    np.floor(cells, out=cells)
    np.clip(cells, 0, _RULES.cells - 1, out=cells)
    return counts_by_column(cells, _RULES.cells)


def of_distances(
    part: FloatArray,
    centre: FloatArray,
    reach: float,
    per_octave: int = _RULES.cells_per_octave,
) -> IntArray:
    """Counts of distances by parts of octaves, in decreasing order."""
    n_cells = per_octave * _RULES.octaves
    distances = euclidean(about(part, centre)) / reach
    cells = n_cells - 1 - parts_below(distances, per_octave, n_cells - 1)
    return np.bincount(cells, minlength=n_cells)


def parts_below(sizes: FloatArray, per_octave: int, n: int) -> IntArray:
    """How many of the ``n`` largest parts of octaves below 1 end below each size.

    The ends are ``2**(-j / per_octave)`` for ``j`` from 1 to ``n``. Comparisons are used, because
    the rounding of logarithms may depend on the place in an array.
    """
    # The bits of positive floats are integers in the same order, whose upper ones are the exponent.
    # The part of an octave is the number of additions that carry into the exponent.
    bits = sizes.view(np.int64) - 1
    mantissas = (2.0 ** (-np.arange(per_octave) / per_octave)).view(np.int64)
    cells = np.zeros(bits.shape, dtype=np.int64)
    for mantissa in mantissas.tolist():
        cells += bits + (ONE - mantissa) >> MANTISSA_BITS
    cells += n - per_octave * (ONE >> MANTISSA_BITS) + 1
    return np.clip(cells, 0, n, out=cells)


def outer(
    counts: FloatArray, sd: float, least: float, per_octave: int = _RULES.cells_per_octave
) -> tuple[float, float]:
    """Part of the reach beyond which few rows lie, and how many; NaN if all counts are noise.

    They are at most ``least``, unless noise hides more.
    """
    few = np.maximum(least, _RULES.tail * sd * np.sqrt(np.arange(1, len(counts) + 1)))
    kept = np.cumsum(counts) > few
    if not kept.any():
        return math.nan, math.nan
    first = int(kept.argmax())
    return 2.0 ** (-first / per_octave), float(few[first])


def _part_of_ball(counts: FloatArray, sd: float, n_rows: float, n_features: int) -> float:
    """Radius, as a part of the reach, of a ball around all but the share ``outside`` of the rows.

    It is NaN if noise hides where the rows are.
    """
    part, beyond = outer(counts, sd, _RULES.outside * n_rows)
    if not beyond <= _RULES.hidden * n_rows:
        return math.nan
    shares = np.array([_RULES.outside, max(beyond / n_rows, _RULES.outside)])
    all_but_few, seen = chi.isf(shares, n_features).tolist()
    return part * all_but_few / seen


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
    cell = Cells(centre[None], reach, budget.norm)
    moments = budget.release(rows, cell, 1, weights=weights, share=share).of_known(rows.known)
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
        part, _ = outer(counts, sd, least, per_octave)
        # If all counts are noise, this is the ball that was examined.
        return reach * (0.5 if math.isnan(part) else part)

    return beyond, budget.rest(share)


def private_box(
    rows: Rows, budget: FitBudget, share: float, largest: FloatArray | None = None
) -> tuple[Intervals, float]:
    """Intervals of all columns, and their cost, which is at most ``share``.

    ``largest`` are released sizes of the columns, if their part of the share has been spent.
    """
    d, known = rows.n_features, largest is not None
    rows = rows.through(partial(np.clip, a_min=-LARGEST_SIZE, a_max=LARGEST_SIZE))
    if largest is None:
        largest = Sizes.release(rows, budget, SIZES_SHARE * share).largest()
    middle, n_looks = _middle(rows, largest, budget, _BOX.look * share)
    reach = largest + np.abs(middle)
    counts = rows.sum(partial(_of_offsets, middle=middle, reach=reach))
    counts, sd = budget.noisy_counts(counts, d, _BOX.distances * share)
    ends = np.array([_ends(column, sd, counts.sum() / d) for column in counts])
    low, high = middle + reach * ends[:, 0], middle + reach * ends[:, 1]
    spreads = reach * np.array([_spread(column, sd) for column in counts])
    spent = ((0.0 if known else SIZES_SHARE) + n_looks * _BOX.look + _BOX.distances) * share
    return Intervals(low, high, low, high, spreads), spent


def box_within(
    rows: Rows,
    low: FloatArray,
    high: FloatArray,
    budget: Budget,
    share: float,
    others_are_found: bool = False,
) -> tuple[Intervals, Budget]:
    """Intervals within given bounds, and the remaining budget.

    They cost at most ``share``. If noise would hide the far quantiles, they are the given bounds.
    Otherwise the units are the intervals before these are cut off at the given bounds, and end at
    most a tenth beyond them.
    """
    if rows.n_features == 1 and not others_are_found:
        # The unit of a single column has no effect.
        return Intervals.given(low, high), budget
    number_share = _BOX.number_share * share
    counts, _ = budget.noisy_counts(np.array([rows.n_rows]), 1, number_share)
    budget, share = budget.rest(number_share), share - 2 * number_share
    needed = rows_for_box(rows.n_features, budget, share)
    if counts[0] < needed:
        return Intervals.given(low, high), budget
    # The search is done in the cube, so the result does not depend on the units of the columns.
    box = Box.centred(low, high)
    cube = rows.map(box.to_cube)
    inner, spent = private_box(cube, budget, share)
    left, right = np.clip([inner.low, inner.high], -1.0, 1.0)
    budget = budget.rest(spent)
    # Noise alone may produce a tiny interval, and so may a column of a single value.
    ends_in_units = np.maximum(np.abs(low), np.abs(high)) / box.unit
    found = right - left > np.maximum(_BOX.least_part, _BOX.least_beside_ends * ends_in_units)
    far = found & (right - left < 2 * _BOX.much_narrower)
    if far.any():
        budget, reached = _reaches_out(cube, left, right, far, budget, share)
        found &= ~(far & reached)
    generous = bool((found & (right - left < 2 * _BOX.generous)).any())
    found &= others_are_found or generous or counts[0] >= _BOX.sure_rows * needed
    # Given ends are returned unchanged, without rounding.
    lower = np.where(found & (left > -1), np.maximum(box.points(left), low), low)
    upper = np.where(found & (right < 1), np.minimum(box.points(right), high), high)
    uncut = np.minimum(inner.low, left), np.maximum(inner.high, right)
    uncut = np.clip(uncut, -_BOX.beyond_ends, _BOX.beyond_ends)
    left = np.where(found, box.points(uncut[0]), low)
    right = np.where(found, box.points(uncut[1]), high)
    return Intervals(lower, upper, left, right, box.unit * inner.spreads), budget


def _reaches_out(
    rows: Rows,
    left: FloatArray,
    right: FloatArray,
    far: BoolArray,
    budget: Budget,
    share: float,
) -> tuple[Budget, bool]:
    """Whether rows lie far outside the intervals of the cube, in any of the columns ``far``.

    Bounds that such rows reach are not generous.
    """
    middle, reach = (left + right) / 2, _BOX.far_out * (right - left) / 2
    low, high = np.where(far, middle - reach, -1.0), np.where(far, middle + reach, 1.0)
    outside = rows.sum(partial(count_beyond, low=low, high=high))
    share *= _BOX.number_share
    counts, sd = budget.noisy_counts(np.array([rows.n_rows - outside, outside]), 1, share)
    enough = max(KEPT * sd, _BOX.reaching * counts.sum())
    return budget.rest(share), bool(counts[1] > enough)


def rows_for_box(n_features: int, budget: FitBudget, share: float) -> float:
    """Number of rows below which the noise hides the far quantiles of a column."""
    sd = budget.deviation(budget.scale_of_counts(n_features, _BOX.distances * share))
    return _BOX.worth * sd / _BOX.far


def _middle(
    rows: Rows, largest: FloatArray, budget: FitBudget, share: float
) -> tuple[FloatArray, int]:
    """Means of the rows that stand out in each column, and the number of histograms used."""
    centre, half, active = np.zeros(len(largest)), largest.copy(), np.arange(len(largest))
    n_looks = 0
    while len(active) and n_looks < _BOX.most_looks:
        n_looks += 1
        look = partial(of_columns, centre=centre[active], half=half[active])
        counts = rows.selected(active).sum(look)
        counts, sd = budget.noisy_counts(counts, len(active), share)
        again = []
        for column, j in zip(counts, active, strict=True):
            # The cells at the ends contain the rows outside the current interval.
            run = standing_out(column[1:-1], sd)
            centre[j] += half[j] * (1 - 2 / len(column)) * mean_place(column[1:-1], sd)
            if np.diff(run) < _BOX.narrow * len(column):
                half[j] *= (np.diff(run).item() + _BOX.spare_cells) / len(column)
                again.append(j)
        active = np.array(again, dtype=int)
    return centre, n_looks


def _of_offsets(part: FloatArray, middle: FloatArray, reach: FloatArray) -> IntArray:
    """Counts of distances by parts of octaves, from far to near, below and above the middle."""
    n = _BOX.parts_per_octave * _BOX.octaves
    offsets = part - middle
    offsets /= reach
    above = offsets >= 0
    cells = parts_below(np.abs(offsets, out=offsets), _BOX.parts_per_octave, n - 1)
    np.subtract(n - 1, cells, out=cells)
    np.add(cells, n, out=cells, where=above)
    return counts_by_column(cells, 2 * n, np.isnan(offsets))


def _sizes_of_parts() -> FloatArray:
    """Ends of the parts of octaves, from 1 down to 0."""
    return np.r_[
        2.0 ** (-np.arange(_BOX.parts_per_octave * _BOX.octaves) / _BOX.parts_per_octave),
        0.0,
    ]


def _ends(counts: FloatArray, sd: float, n: float) -> tuple[float, float]:
    """Ends of a column's interval, in units of the reach."""
    n, least = max(n, 3 * sd, 1.0), _sizes_of_parts()[-2]
    sides = np.split(counts, 2)
    low, high = (_quantile(side, _BOX.far, sd, n) for side in sides)
    inner = sum(_quantile(side, _BOX.near, sd, n) for side in sides) / 2
    outer = max((low + high) / 2, least)
    z = norm.isf(_BOX.far)
    exponent = math.log(outer / np.clip(inner, least, outer)) / math.log(z)
    half = outer * (_BOX.half_width / z) ** np.clip(exponent, *_BOX.tails)
    return (high - low) / 2 - half, (high - low) / 2 + half


def _spread(counts: FloatArray, sd: float) -> float:
    """Standard deviation of a column, in units of the reach, from cells that stand out of noise."""
    ends = _sizes_of_parts()
    far, near = ends[:-1], ends[1:]
    sides = []
    for side in np.split(counts, 2):
        seen = np.cumsum(side) > _RULES.tail * sd * np.sqrt(np.arange(1, len(side) + 1))
        first = int(seen.argmax()) if seen.any() else len(side)
        sides.append(np.where(np.arange(len(side)) < first, 0.0, side))
    below, above = sides
    total = max(below.sum() + above.sum(), 3 * sd, 1.0)
    mean = ((above - below) * (far + near) / 2).sum() / total
    square = ((above + below) * (far**2 + far * near + near**2) / 3).sum() / total
    return math.sqrt(max(square - mean**2, 0.0))


def _quantile(counts: FloatArray, share: float, sd: float, n: float) -> float:
    """Distance beyond which a share of the rows lies."""
    start, _ = standing_out(counts, sd)
    counts, edges = counts[start:], _sizes_of_parts()[start:]
    sums, wanted = np.cumsum(counts), share * n
    enough = sums >= wanted
    cell = int(enough.argmax()) if enough.any() else len(counts) - 1
    part = (wanted - sums[cell] + counts[cell]) / max(counts[cell], 1e-9)
    return float(edges[cell] + np.clip(part, 0.0, 1.0) * (edges[cell + 1] - edges[cell]))

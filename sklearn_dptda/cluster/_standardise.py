"""Rows about a private centre, in units of private scales of the columns.

Proof: doc/theory/private_mixtures.md, "Units of the columns".
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.rows._assignments import Cells, ExactProducts, clip_norm, in_norm
from sklearn_dptda.rows._localisation import NORMAL_SPREAD, localise
from sklearn_dptda.rows._moments import KEPT, FitBudget, MomentWeights
from sklearn_dptda.rows._rows import Rows, about


@dataclass(frozen=True)
class _UnitRules:
    """Public constants of the units, chosen on the laws of doc/measured/units.md.

    Accuracy only: rows are clipped to any radius, and shares are taken off the budget.
    """

    # Share for standardising, of the budget that localisation has left.
    standard_share: float = 0.08
    # Least trace of the covariance, in standard deviations of its noise.
    least_trace: float = 0.25
    # Radius at which rows are clipped once they are standardised, in root mean squares.
    row_radius: float = 2.0
    # Largest number of columns with principal axes. With more columns, these axes would be noise,
    # and slow; the columns take their place.
    most_turned: int = 64
    # Least eigenvalue of the axes, as a share of the mean variance. Below it, the noise of a
    # covariance says nothing about a direction.
    flat: float = 0.02
    # Least and largest radius of the ball around the rows, in root mean squares of the released
    # spreads, and the noise of a correlation that decides.
    ball: tuple[float, float] = (2.0, 3.0)
    noise: float = 0.1
    # Largest factor by which a column is wider than a normal one, and the factor above which it has
    # two values: a uniform column has 1.8 to 2.05.
    widest: float = 4.0
    two_values: float = 2.2
    # Sums of squared correlations of a column up to which they say nothing, and from which they
    # are evidence of clusters.
    matters: tuple[float, float] = (0.05, 0.15)
    # The sum from which a column is part of the clusters, unless the largest sum is smaller.
    dependent: float = 0.3
    # Least share of a column that others do not explain.
    least_rest: float = 0.7
    # Least variance, as a share of the mean one.
    least_variance: float = 0.02


UNITS = _UnitRules()
# Accuracy only: noise has the scale of any weights.
_STANDARD_WEIGHTS = MomentWeights(0.2, 0.4, 0.4)


@dataclass(frozen=True)
class Standardised:
    """Records about a private centre, in units of private scales.

    The norms of ``rows`` are at most the public ``limit``. The columns of ``axes`` are private
    principal axes, as long as the standard deviations. ``budget`` is left for all later steps.
    """

    rows: Rows
    centre: FloatArray
    scales: FloatArray
    axes: FloatArray
    n_rows: float
    budget: FitBudget
    # Share of the variance that each column certainly has.
    shares: FloatArray

    @property
    def n_features(self) -> int:
        """Dimension of the records."""
        return self.rows.n_features

    @property
    def limit(self) -> float:
        """Largest norm of a record, which is public."""
        return largest_norm(self.n_features)

    def rows_beside(self, centres: FloatArray) -> Rows:
        """Rows whose missing values are those of the centre that is nearest by the other values."""
        if self.rows.known is None:
            return self.rows
        return self.rows.map(partial(with_nearest_values, centres=centres, limit=self.limit))

    def remarks(self) -> list[str]:
        """Text of a warning if one column decides the clusters."""
        j = int(self.shares.argmax())
        name = j if self.rows.columns is None else self.rows.columns.names[j]
        if self.n_features == 1 or self.shares[j] <= 0.5 + 0.5 / self.n_features:
            return []
        return [
            f"Column {name!r} has {self.shares[j]:.0%} of the variance in units_, and "
            "decides the clusters. To give the others more weight, pass units."
        ]

    def back(self, means: FloatArray) -> FloatArray:
        """Means in the units of the cube."""
        return self.centre + self.scales * means

    def covariances_back(self, covariances: FloatArray) -> FloatArray:
        """Covariances of shape (..., d, d) in the units of the cube."""
        return self.scales[:, None] * self.scales * covariances


def largest_norm(n_features: int) -> float:
    """Largest norm of standardised records."""
    return UNITS.row_radius * n_features**0.5


def standardise(
    rows: Rows, budget: FitBudget, spreads: FloatArray | None = None, one_unit: bool = False
) -> Standardised:
    """Release centre, scales and principal axes of records of the cube, and apply the first two.

    The result takes the memory of ``rows``, which must not be used afterwards.
    ``spreads`` are released standard deviations of the columns, NaN where there are none.
    """
    d = rows.n_features
    # The noise of moments is relative to a ball, so a private ball comes first. In it, no column is
    # wider than a normal one in its interval.
    known = None if spreads is None or one_unit or np.isnan(spreads).all() else spreads
    wide = np.ones(d) if known is None else widths(known)
    divided = rows if known is None else rows.through(partial(_divided, by=wide))
    middle, ball, n_rows, spent = localise(divided, budget)
    budget = budget.rest(spent)
    if known is not None:
        size = float(np.linalg.norm(np.where(np.isnan(known), 1.0, NORMAL_SPREAD)))
        ball = min(ball, size * _ball(d, n_rows, budget))
    radius = in_norm(ball, d, budget.norm)
    moments = budget.release(
        divided,
        Cells(middle[None], radius, budget.norm),
        1,
        weights=_STANDARD_WEIGHTS,
        share=UNITS.standard_share,
        kind="full" if d <= UNITS.most_turned else "diag",
    ).of_known(rows.known)
    count = moments.floored_counts[0]
    offset = radius * moments.sums[0] / count
    offset = offset / max(float(np.linalg.norm(offset)) / ball, 1.0)
    assert moments.second_moments is not None
    covariance = radius**2 * moments.second_moments[0] / count - np.outer(offset, offset)
    if d > UNITS.most_turned:
        covariance = np.diag(np.diag(covariance))
    centre, most = middle + offset, ball**2 / d
    # A trace that noise makes too small would clip rows to a point, and all clusters with them.
    noise = radius**2 * math.sqrt(moments.var_trace) / count
    least = min(max(1e-4 * most, UNITS.least_trace * noise / d), most)
    mean = float(np.clip(np.trace(covariance) / d, least, most))
    scales = np.full(d, math.sqrt(mean))
    if known is not None:
        scales = _scales(covariance, wide, mean, noise / d**0.5, float(count), least)
    values, vectors = np.linalg.eigh(covariance / np.outer(scales, scales))
    shares = (np.diag(covariance) - KEPT * noise / d**0.5) / (d * np.square(scales))
    centre, scales = wide * centre, wide * scales
    return Standardised(
        rows.map(
            partial(_in_units, centre=centre, scales=scales, limit=largest_norm(d)), reuse=True
        ),
        centre,
        scales,
        vectors * np.sqrt(np.clip(values, UNITS.flat, d)),
        float(count),
        budget.rest(UNITS.standard_share),
        shares,
    )


def _ball(d: int, n_rows: float, budget: FitBudget) -> float:
    """Radius of a ball, in root mean squares. A larger one clips less, and has more noise."""
    declared = _STANDARD_WEIGHTS.sensitivity(budget.adjacency, budget.norm)
    scale = budget.scale(declared, UNITS.standard_share)
    noise = budget.deviation(scale) / _STANDARD_WEIGHTS.roots[2]
    allowed = UNITS.noise * n_rows / (d * noise) if noise else math.inf
    return float(np.clip(math.sqrt(allowed), *UNITS.ball))


def widths(spreads: FloatArray) -> FloatArray:
    """How many times as wide as a normal column each column is, from 1; 1 if it is unknown."""
    wide = np.clip(spreads / NORMAL_SPREAD, 1.0, UNITS.widest)
    return np.where(np.isnan(wide), 1.0, wide)


def _scales(
    covariance: FloatArray, wide: FloatArray, mean: float, noise: float, count: float, least: float
) -> FloatArray:
    """Units of columns that have been divided by their widths, such that the mean variance is 1.

    ``noise`` is the standard deviation of the noise of a variance.
    """
    variances = _shrunk(np.diag(covariance), mean, noise, least)
    products = np.outer(variances, variances)
    # Of a product of two columns, the noise is smaller than that of a square.
    squares, expected = covariance**2 / products, noise**2 / 2 / products + 1 / count
    excess = np.where(np.eye(len(wide), dtype=bool), 0.0, squares - expected)
    dependence = np.clip(excess.sum(axis=1), 0.0, 1.0)
    largest = float(dependence.max())
    low, high = UNITS.matters
    evidence = float(np.clip((largest - low) / (high - low), 0.0, 1.0))
    # Noise may have hidden a tail from the histograms.
    total = wide * np.clip(np.sqrt(variances) / NORMAL_SPREAD, 1.0, UNITS.widest / wide)
    # 0 for columns that keep their interval as the unit, 1 for those that are as wide as a normal
    # one. Without evidence, all columns keep it, but for those with two values.
    enough = max(min(largest, UNITS.dependent), low)
    apart = evidence * (1 - np.minimum(dependence / enough, 1.0))
    of_two = np.maximum(apart, evidence / 2) + (1 - evidence)
    apart = np.where(total > UNITS.two_values, of_two, apart)
    heavier = np.maximum(1 - dependence, UNITS.least_rest) ** (evidence / 2)
    units = heavier * total**apart / wide
    scales: FloatArray = units * math.sqrt((variances / units**2).mean())
    return scales


def _shrunk(variances: FloatArray, mean: float, noise: float, least: float) -> FloatArray:
    """Variances, moved towards their mean by what noise explains of their differences."""
    differences = variances - mean
    kept = max(1 - noise**2 / max(float(np.square(differences).mean()), 1e-300), 0.0)
    return np.maximum(mean + kept * differences, max(least, UNITS.least_variance * mean))


def _divided(part: FloatArray, by: FloatArray) -> FloatArray:
    return part / by


def _in_units(part: FloatArray, centre: FloatArray, scales: FloatArray, limit: float) -> FloatArray:
    clipped = clip_norm(about(part, centre) / scales, limit)
    clipped *= limit
    if (gaps := np.isnan(part)).any():
        clipped[gaps] = np.nan
    return clipped


def with_nearest_values(part: FloatArray, centres: FloatArray, limit: float) -> FloatArray:
    """Rows whose missing values are those of the centre that is nearest by the other values.

    The rows have been clipped to ``limit``.
    Proof: doc/theory/private_mixtures.md, "Missing values".
    """
    gaps = np.isnan(part)
    some = np.flatnonzero(gaps.any(axis=1))
    filled, gaps = part.copy(), gaps[some]
    known = np.where(gaps, 0.0, part[some])
    halves = 0.5 * centres**2
    products = ExactProducts.of(-centres, limit).batches(known)
    # The square of a centre is without its coordinates of the missing values.
    of_gaps = ExactProducts.of(halves, 1.0).batches(gaps.astype(float))
    for (rows, scores), (_, squares) in zip(products, of_gaps, strict=True):
        nearest = (scores + (halves.sum(axis=1) - squares)).argmin(axis=1)
        filled[some[rows]] = np.where(gaps[rows], centres[nearest], known[rows])
    return filled

"""Noisy counts, sums and second moments of rows, released jointly for a share of a budget.

Proof: doc/theory/private_mixtures.md, "Gaussian noise: L2".
Proof: doc/theory/private_mixtures.md, "Laplace noise: L1".
Proof: doc/theory/private_mixtures.md, "Rounding".
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.sparse import csc_array

from sklearn_dptda._typing import Adjacency, BoolArray, CovarianceType, FloatArray, IntArray
from sklearn_dptda.privacy import (
    FixedPoint,
    NoiseSource,
    Sensitivity,
    private_choice,
)
from sklearn_dptda.privacy._fixed_point import ROUND_DOWN, ROUND_UP
from sklearn_dptda.privacy._noise import inverse
from sklearn_dptda.rows._assignments import (
    Assignment,
    Norm,
    row_products,
)
from sklearn_dptda.rows._rows import Rows

CovarianceKind: TypeAlias = CovarianceType | None

# Proof: doc/theory/private_mixtures.md, "Rounding".
# Smallest scale of noise for which a lattice is chosen, so that sums of 2**35 rows stay within 64
# bits.
FINEST_SCALE = 4.0
# Rows of people are rounded to a lattice that is coarser by this factor than the noise of one row
# requires, so that sums of 2**23 people, each of weight 720,720, stay within 64 bits.
_COARSER_FOR_PEOPLE = 2.0**9
# Proof: doc/theory/private_components.md, "The sum of outer products".
# Number of bits of residuals in products. Sums of the products of 2**17 rows stay below 2**53,
# where floats represent integers exactly, and sums of 2**27 rows stay within 64 bits.
_BITS = 18
# The same for people, of whom 2**23 may be summed.
_BITS_FOR_PEOPLE = 10
# Accuracy only: the constants below. Sums that exceed 64 bits wrap around, which loses no privacy.
# Above this scale of noise, rows have fewer bits, so that noise in squared steps stays within 64
# bits.
_LARGEST_SCALE = 2.0**14
# The same for people, who have weights of up to 720,720.
_LARGEST_SCALE_FOR_PEOPLE = 2.0**12
# Smallest variance of the pooled covariance, times the dimension, in squared clipping radii. It
# keeps matrices invertible.
_LEAST_VARIANCE = 1e-3
# Smallest divisor, which prevents divisions by zero.
_TINY = 1e-300
# Up to this number of cells, a matrix product is the fastest way to sums of cells.
_FEW_CELLS = 64
# Threshold of a count in standard deviations of its noise, below which a cell may have no rows.
# Pure noise exceeds it in one of 740 cells if it is Gaussian, and in one of 139 if it is Laplace.
KEPT = 3.0


@dataclass(frozen=True)
class MomentWeights:
    """Squared weights of the count, the sum and the second moment in one joint release.

    A record contributes ``(w0, w1 u, w2 q(u))`` to its cell, where the residual ``u`` has a norm
    of at most one. With L2, ``q`` stacks the diagonal of ``u u'`` and ``sqrt(2)`` times its upper
    triangle, or only the diagonal, or the trace. With L1, the triangle has no factor. In each case,
    the norm of ``q(u)`` is at most one.
    """

    count: float
    sum: float = 0.0
    second_moment: float = 0.0

    @property
    def roots(self) -> tuple[float, float, float]:
        """The weights themselves."""
        return self.count**0.5, self.sum**0.5, self.second_moment**0.5

    def sensitivity(self, adjacency: Adjacency, norm: Norm = "l2") -> Sensitivity:
        """Sensitivity of the moments of all cells together.

        An additional record changes one cell by at most one contribution. A replaced record changes
        two cells, or one by the difference of two contributions, whose inner product in L2 is at
        least ``least``.
        """
        if norm == "l1":
            factor = 1 if adjacency == "add-remove" else 2
            return Sensitivity(factor * sum(self.roots), "l1", adjacency)
        total = self.count + self.sum + self.second_moment
        if adjacency == "add-remove":
            return Sensitivity(total**0.5, "l2", adjacency)
        steep = 2 * self.second_moment
        t = -1.0 if steep <= self.sum else -self.sum / steep
        least = self.count + self.sum * t + self.second_moment * t * t
        return Sensitivity((2 * total - 2 * min(least, 0.0)) ** 0.5, "l2", adjacency)


@dataclass(frozen=True)
class Moments:
    """Noisy moments of residuals, in units of the clipping radius.

    Second moments have shape (n_cells, n_features, n_features), or one for all cells if tied.
    ``var_second_moment`` is the expected squared Frobenius norm of the noise of one of them, and
    ``var_trace`` the variance of the trace of this noise.
    """

    counts: FloatArray
    sums: FloatArray
    second_moments: FloatArray | None
    sd_count: float
    sd_sum: float
    var_second_moment: float = 0.0
    var_trace: float = 0.0

    @property
    def floored_counts(self) -> FloatArray:
        """Counts, raised to at least one standard deviation of their noise and at least 0.5."""
        return np.maximum(self.counts, max(self.sd_count, 0.5))

    @property
    def above_noise(self) -> BoolArray:
        """Mask of the cells to keep, by their noisy counts; at least one cell is kept."""
        kept: BoolArray = self.counts > KEPT * self.sd_count
        counts = self.floored_counts
        return kept if kept.any() else counts == counts.max()

    def shrunk_steps(self) -> FloatArray:
        """Means of the residuals, shrunk by the known size of their noise (James and Stein)."""
        counts = self.floored_counts
        steps = self.sums / counts[:, None]
        noise = steps.shape[1] * (self.sd_sum / counts) ** 2
        steps = steps * _signal(noise, (steps**2).sum(axis=1))[:, None]
        norms = np.linalg.norm(steps, axis=1)
        return steps / np.maximum(norms, 1.0)[:, None]

    def shrunk_covariances(self, steps: FloatArray, floor: float) -> tuple[FloatArray, float]:
        """Covariances about the stepped centres, shrunk towards a scaled pooled one.

        ``floor`` is the smallest eigenvalue, as a share of the mean pooled variance. Returns also
        the part of the differences between the covariances that is not noise.
        """
        assert self.second_moments is not None
        counts = self.floored_counts
        k, d = steps.shape
        outer = steps[:, :, None] * steps[:, None, :]
        if len(self.second_moments) < k:
            return self._tied_covariances(self.second_moments[0], outer, floor), 0.0
        raw = _like(self.second_moments, self.second_moments / counts[:, None, None] - outer)
        shares = np.maximum(self.counts, 0.0)
        shares = shares / shares.sum() if shares.sum() > 0 else np.full(k, 1 / k)
        pooled = _within(np.einsum("k,kij->ij", shares, raw), _LEAST_VARIANCE / d)
        pooled_trace = np.trace(pooled) / d
        # Mean variances of the cells, shrunk towards the pooled one by the variance of their noise.
        traces = np.trace(raw, axis1=1, axis2=2) / d
        traces = _towards(traces, pooled_trace, self.var_trace / (d * counts) ** 2)
        traces = np.clip(traces, floor * pooled_trace, None)
        target = pooled * (traces / pooled_trace)[:, None, None]
        deviation = raw - target
        kept = _common_signal(self.var_second_moment / counts**2, (deviation**2).sum(axis=(1, 2)))
        mixed = target + kept[:, None, None] * deviation
        return _within(mixed, floor * pooled_trace), float(np.average(kept, weights=counts))

    def _tied_covariances(
        self, second_moment: FloatArray, outer: FloatArray, floor: float
    ) -> FloatArray:
        """One covariance for all cells."""
        k, d = outer.shape[:2]
        counts = self.floored_counts
        total = counts.sum()
        raw = second_moment / total - np.einsum("k,kij->ij", counts / total, outer)
        pooled = _within(raw, _LEAST_VARIANCE / d)
        pooled = _within(pooled, floor * np.trace(pooled) / d)
        return np.tile(pooled, (k, 1, 1))

    def of_known(self, known: FloatArray | None) -> "Moments":
        """Moments of complete rows, if the residuals of missing values are zero.

        ``known`` is the share of the other values of each column, or None if none is missing.
        """
        if known is None:
            return self
        mean, products = float(known.mean()), np.outer(known, known)
        np.fill_diagonal(products, known)
        second = self.second_moments
        return replace(
            self,
            sums=self.sums / known,
            second_moments=None if second is None else second / products,
            sd_sum=self.sd_sum / mean,
            var_second_moment=self.var_second_moment / mean**2,
            var_trace=self.var_trace / mean**2,
        )

    def redrawn(self, rng: np.random.Generator) -> "Moments":
        """Moments with additional normal noise of the same size, to assess their accuracy."""
        assert self.second_moments is not None
        shape = self.second_moments.shape
        noise = rng.standard_normal(shape)
        noise = (noise + np.swapaxes(noise, 1, 2)) / 2
        # Only entries that the kind of second moments has receive noise.
        noise = np.where(self.second_moments == 0, 0.0, noise)
        size = np.sqrt((noise**2).sum(axis=(1, 2), keepdims=True))
        scale = np.sqrt(self.var_second_moment) / np.maximum(size, _TINY)
        return replace(
            self,
            counts=self.counts + self.sd_count * rng.standard_normal(self.counts.shape),
            sums=self.sums + self.sd_sum * rng.standard_normal(self.sums.shape),
            second_moments=self.second_moments + scale * noise,
        )


def _like(second_moments: FloatArray, raw: FloatArray) -> FloatArray:
    """Covariances with the structure of the second moments: diagonal, or isotropic."""
    d = raw.shape[1]
    off = ~np.eye(d, dtype=bool)
    if d == 1 or (second_moments[:, off] != 0).any():
        return raw
    diagonals = np.diagonal(raw, axis1=1, axis2=2)
    seen = np.diagonal(second_moments, axis1=1, axis2=2)
    if (seen == seen[:, :1]).all():
        diagonals = np.repeat(diagonals.mean(axis=1, keepdims=True), d, axis=1)
    return diagonals[:, :, None] * np.eye(d)


def _towards(values: FloatArray, centre: float, noise: FloatArray) -> FloatArray:
    deviation = values - centre
    return centre + deviation * _common_signal(noise, deviation**2)


def _signal(noise: FloatArray, squared: FloatArray) -> FloatArray:
    """Part of a squared deviation that the expected noise does not explain."""
    return np.clip(1 - noise / np.maximum(squared, _TINY), 0.0, 1.0)


def _common_signal(noise: FloatArray, squared: FloatArray) -> FloatArray:
    """Part of each of many deviations that is not noise, if all come from one normal distribution.

    This is the empirical Bayes rule of Efron and Morris: the variance of the distribution is
    estimated from the squares minus the expected noise, and pure noise becomes zero.
    """
    noise = np.maximum(np.broadcast_to(noise, squared.shape), _TINY)
    variance = max(float(np.average(squared - noise, weights=noise.min() / noise)), 0.0)
    return variance / (variance + noise)


def clip_eigenvalues(matrices: FloatArray, least: float, most: float) -> FloatArray:
    """Symmetric matrices with eigenvalues from ``least`` to ``most``."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.clip(values, least, most)
    return (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _within(matrices: FloatArray, least: float) -> FloatArray:
    """Covariances of residuals with variances of at most 1, because their norm is at most 1."""
    clipped = clip_eigenvalues(matrices, least, 1.0)
    return 0.5 * (clipped + np.swapaxes(clipped, -1, -2))


class SecondMoments:
    """Conversion of second moments of one kind (or none) to stacked entries and back."""

    def __init__(self, kind: CovarianceKind, n_features: int, norm: Norm) -> None:
        self.kind, self.n_features = kind, n_features
        matrix = kind in ("full", "tied")
        # Positions of the stacked entries of a matrix, for the kinds that have a full matrix.
        self.rows, self.columns = np.triu_indices(n_features if matrix else 0)
        if matrix:
            off = 1.0 if norm == "l1" else np.sqrt(2.0)
            self.stretch = np.where(self.rows == self.columns, 1.0, off)

    @property
    def width(self) -> int:
        """Number of entries."""
        d = self.n_features
        sizes = {None: 0, "spherical": 1, "diag": d}
        return sizes.get(self.kind, d * (d + 1) // 2)

    def stack(self, u: FloatArray) -> FloatArray:
        """Entries of the second moments of residuals, with one row for each residual."""
        if self.kind == "spherical":
            return row_products(u, u)[:, None]
        if self.kind == "diag":
            return u * u
        columns = u.T
        entries = columns[self.rows]
        entries *= self.stretch[:, None]
        entries *= columns[self.columns]
        return entries.T

    def matrices(self, entries: FloatArray) -> FloatArray:
        """Second moments of shape (n, n_features, n_features)."""
        d = self.n_features
        if self.kind == "spherical":
            return entries[:, :, None] / d * np.eye(d)
        if self.kind == "diag":
            return entries[:, :, None] * np.eye(d)
        out = np.zeros((len(entries), d, d))
        out[:, self.rows, self.columns] = entries / self.stretch
        out[:, self.columns, self.rows] = out[:, self.rows, self.columns]
        return out

    def noise(self, sd: float) -> tuple[float, float]:
        """Expected squared Frobenius norm and variance of the trace of the noise of entries."""
        d = self.n_features
        if self.kind == "spherical":
            return sd**2 / d, sd**2
        if self.kind == "diag":
            return d * sd**2, d * sd**2
        weights = np.where(self.rows == self.columns, 1.0, 2.0) / self.stretch**2
        return float(weights.sum()) * sd**2, d * sd**2


@dataclass(frozen=True)
class FitBudget(ABC):
    """The privacy budget of one fit, of which each release takes a share.

    ``total``, the loss of a row of weight one, is the parameter mu of Gaussian noise or the epsilon
    of Laplace noise; ``inf`` means no noise. The class does not check that the shares add up to at
    most 1: the proof of the estimator must show it. After ``rest(spent)``, shares refer to the
    remaining budget. ``mass`` is the weight of one record.
    """

    total: float
    adjacency: Adjacency
    noise: NoiseSource
    mass: int = 1

    @property
    @abstractmethod
    def norm(self) -> Norm:
        """Norm of the sensitivities."""

    @abstractmethod
    def scale(self, sensitivity: Sensitivity, share: float) -> float:
        """Scale of the noise of a release."""

    @abstractmethod
    def draw(self, scale: float, size: Any) -> IntArray:
        """Integer noise."""

    @staticmethod
    @abstractmethod
    def deviation(scale: float) -> float:
        """Standard deviation of noise."""

    @abstractmethod
    def choice_epsilon(self, share: float) -> float:
        """Privacy loss of a choice."""

    @abstractmethod
    def rest(self, spent: float) -> Self:
        """Remaining budget after a share, which may depend on earlier releases."""

    def release(
        self,
        rows: Rows,
        assign: Assignment,
        n_cells: int,
        *,
        weights: MomentWeights,
        share: float,
        kind: CovarianceKind = None,
        width: int | None = None,
    ) -> Moments:
        """Sum the contributions of all records exactly, and add noise.

        ``assign`` returns the cell of each row of a batch, and its residual, of a norm of at most
        one. They must be functions of the row and of earlier releases. ``kind`` is that of second
        moments, if any, and ``width`` the number of coordinates of residuals, if it differs from
        that of rows.
        """
        width = rows.n_features if width is None else width
        second_moments = SecondMoments(kind, width, self.norm)
        declared = weights.sensitivity(self.adjacency, self.norm)
        scale = self.scale(declared, share)
        w0, w1, w2 = weights.roots
        # On this lattice, sums stay within 64 bits.
        if rows.n_people is None:
            lattice = FixedPoint.for_scale(max(scale, FINEST_SCALE) if scale > 0 else 1.0)
        else:
            finest = max(scale / rows.mass, FINEST_SCALE)
            lattice = FixedPoint.for_scale(finest * _COARSER_FOR_PEOPLE)
        contributions = _Contributions(assign, n_cells, weights.roots, second_moments, lattice)
        low, high = rows.sum(contributions, 1 + width * (w1 > 0) + second_moments.width)
        # Rounding to the lattice adds at most one step to each number that a record can change: in
        # two cells, which tied second moments sum.
        moves = 2 * low.shape[1] + (4 if kind == "tied" else 2) * high.shape[1]
        in_steps = lattice.sum_sensitivity(declared, moves).value
        grown = in_steps * lattice.step / declared.value
        noise = scale * grown / lattice.step
        low, high = map(lattice.decode, self.add_noise((low, high), in_steps, noise))
        deviation = self.deviation(scale)
        frobenius, trace = second_moments.noise(deviation / w2) if kind is not None else (0.0, 0.0)
        return Moments(
            counts=low[:, 0] / w0,
            sums=low[:, 1:] / w1 if w1 else np.zeros((n_cells, width)),
            second_moments=second_moments.matrices(high / w2) if kind is not None else None,
            sd_count=deviation / w0,
            sd_sum=deviation / w1 if w1 else 0.0,
            var_second_moment=frobenius,
            var_trace=trace,
        )

    def noisy_counts(
        self, counts: IntArray, touched: int, share: float
    ) -> tuple[FloatArray, float]:
        """Noisy counts and the standard deviation of the noise; a row is in ``touched`` cells."""
        scale = self.scale_of_counts(touched, share)
        deviation = self.deviation(scale)
        # The steps are at most 1, so counts are whole multiples of them and rounding has no effect.
        finest = FINEST_SCALE * (1 if self.mass == 1 else _COARSER_FOR_PEOPLE)
        lattice = FixedPoint(min(FixedPoint.for_scale(max(scale, finest)).exponent, 0))
        in_steps = self.sensitivity_of_counts(touched).value / lattice.step
        (noisy,) = self.add_noise((lattice.encode(counts),), in_steps, scale / lattice.step)
        return lattice.decode(noisy), deviation

    def sensitivity_of_counts(self, touched: int) -> Sensitivity:
        """Sensitivity of counts if one row is in ``touched`` cells."""
        moves = touched if self.adjacency == "add-remove" else 2 * touched
        value = float(moves) if self.norm == "l1" else math.sqrt(moves)
        return Sensitivity(value, self.norm, self.adjacency)

    def scale_of_counts(self, touched: int, share: float) -> float:
        """Scale of the noise of counts if one row is in ``touched`` cells."""
        return self.scale(self.sensitivity_of_counts(touched), share)

    def add_noise(
        self, exact: tuple[IntArray, ...], sensitivity: float, scale: float
    ) -> tuple[IntArray, ...]:
        """Add noise to integers that a row of weight one moves by ``sensitivity`` together."""
        return self.noise.cross(
            exact,
            lambda parts: tuple(part + self.draw(scale, part.shape) for part in parts),
            metric=self.norm,
            sensitivity=sensitivity * self.mass,
            rate=inverse(scale),
            law="gaussian" if self.norm == "l2" else "pure",
        )

    def choose(self, costs: Sequence[int], largest: int, share: float) -> int:
        """Choose an index of small cost; each cost is a sum over records of costs in 0..largest."""
        # An additional record changes all costs in the same direction, a replaced one in both.
        span = largest if self.adjacency == "add-remove" else 2 * largest
        rate = self.choice_epsilon(share) / span
        return private_choice(
            costs,
            rate,
            self.noise,
            bounded_range=self.norm == "l2",
            change=span * self.mass,
        )


class GaussianBudget(FitBudget):
    """Gaussian noise with the privacy parameter ``total``, of whose square shares are taken.

    With choices, the releases together are ``total**2 / 2``-zCDP.
    """

    norm: Norm = "l2"

    def scale(self, sensitivity: Sensitivity, share: float) -> float:
        return sensitivity.value / (self.total * math.sqrt(share))

    def draw(self, scale: float, size: Any) -> IntArray:
        return self.noise.discrete_gaussian(scale, size)

    def rest(self, spent: float) -> Self:
        return replace(self, total=self.total * math.sqrt(1 - spent))

    @staticmethod
    def deviation(scale: float) -> float:
        return scale

    def choice_epsilon(self, share: float) -> float:
        # The zCDP of a choice is one eighth of the square of its loss (bounded range).
        return 2 * self.total * math.sqrt(share)


class LaplaceBudget(FitBudget):
    """Laplace noise; ``total`` is the epsilon of all releases together."""

    norm: Norm = "l1"

    def scale(self, sensitivity: Sensitivity, share: float) -> float:
        # The scale is rounded up, so that rounding never increases the privacy loss.
        return sensitivity.value / (self.total * share) * ROUND_UP

    def draw(self, scale: float, size: Any) -> IntArray:
        return self.noise.discrete_laplace(scale, size)

    def rest(self, spent: float) -> Self:
        return replace(self, total=self.total * (1 - spent))

    @staticmethod
    def deviation(scale: float) -> float:
        return math.sqrt(2) * scale

    def choice_epsilon(self, share: float) -> float:
        return self.total * share * ROUND_DOWN


@dataclass(frozen=True)
class _Contributions:
    """Weighted counts and sums of the cells, and second moments, in steps of the lattice."""

    assign: Assignment
    n_cells: int
    roots: tuple[float, float, float]
    second_moments: SecondMoments
    lattice: FixedPoint

    def __call__(self, batch: FloatArray) -> tuple[IntArray, IntArray]:
        w0, w1, w2 = self.roots
        tied = self.second_moments.kind == "tied"
        cells, residuals = self.assign(batch)
        counts = np.bincount(cells, minlength=self.n_cells)
        low = counts[:, None] * self.lattice.encode(w0)
        if w1:
            low = np.hstack([low, _sums_by_cell(cells, self.n_cells, self.lattice, w1, residuals)])
        if self.second_moments.kind is None:
            return low, np.zeros((self.n_cells, 0), dtype=np.int64)
        entries = self.second_moments.stack(residuals)
        n_cells = 1 if tied else self.n_cells
        return low, _sums_by_cell(cells, n_cells, self.lattice, w2, entries)


def _sums_by_cell(
    cells: IntArray, n_cells: int, lattice: FixedPoint, weight: float, values: FloatArray
) -> IntArray:
    """Exact sums of weighted values of at most one, in steps of the lattice, modulo 2**64."""
    # Floats add whole numbers exactly, in every order, as long as all sums stay below 2**53.
    if weight * math.ldexp(len(values), -lattice.exponent) >= 2.0**52:
        return by_cell(cells, n_cells) @ lattice.encode(weight * values)
    # Scaling by a power of two does not change how a product is rounded.
    steps = values * (math.ldexp(weight, -lattice.exponent))
    np.trunc(steps, out=steps)
    if n_cells == 1:
        sums = steps.sum(axis=0, keepdims=True)
    elif n_cells <= _FEW_CELLS:
        belongs = np.zeros((n_cells, len(steps)))
        belongs[cells, np.arange(len(steps))] = 1.0
        sums = belongs @ steps
    else:
        columns = [np.bincount(cells, column, minlength=n_cells) for column in steps.T]
        sums = np.column_stack(columns)
    return sums.astype(np.int64)


def by_cell(cells: IntArray, n_cells: int) -> csc_array:
    """Matrix that sums rows by cell, with one entry in each column."""
    n = len(cells)
    return csc_array((np.ones(n, np.int64), cells, np.arange(n + 1)), (n_cells, n))


# The weights of a release of outer products alone, which are not multiplied by them.
# Proof: doc/theory/private_components.md, "The sum of outer products".
_OUTER_PRODUCT = MomentWeights(0.0, 0.0, 1.0)


def entry_noise(budget: FitBudget, share: float) -> tuple[float, float]:
    """Scales of the noise of entries off and on the diagonal, for residuals of norm one."""
    scale = budget.scale(_OUTER_PRODUCT.sensitivity(budget.adjacency, budget.norm), share)
    # In L2, a product off the diagonal counts twice, because it is two entries of the matrix.
    return (math.sqrt(0.5) if budget.norm == "l2" else 1.0) * scale, scale


def release_outer_products(
    rows: Rows, residuals: Callable[[FloatArray], FloatArray], budget: FitBudget, share: float
) -> FloatArray:
    """Release the noisy sum of the outer products of residuals of norm at most one.

    Residuals are rounded towards zero first, so that they stay in the ball.
    Proof: doc/theory/private_components.md, "The sum of outer products".
    """
    d, (off, on) = rows.n_features, entry_noise(budget, share)
    declared = _OUTER_PRODUCT.sensitivity(budget.adjacency, budget.norm)
    most, largest = _BITS, _LARGEST_SCALE
    if rows.n_people is not None:
        most, largest = _BITS_FOR_PEOPLE, _LARGEST_SCALE_FOR_PEOPLE
    large = max(on / rows.mass / largest, 1.0)
    bits = most - math.ceil(math.log2(large) / 2)
    total = rows.sum(partial(_outer_products, residuals=residuals, bits=bits), width=d)
    upper = np.triu_indices(d, 1)
    scales = [math.ldexp(scale, 2 * bits) for scale in (off, on)]
    above, diagonal = budget.noise.cross(
        (total[upper], np.diag(total)),
        lambda parts: [
            part + budget.draw(scale, len(part)) for part, scale in zip(parts, scales, strict=True)
        ],
        metric=budget.norm,
        sensitivity=math.ldexp(declared.value * budget.mass, 2 * bits),
        rate=inverse(scales[1]),
        law="gaussian" if budget.norm == "l2" else "pure",
        # In L2, an entry off the diagonal counts twice, and has less noise.
        weights=(math.sqrt(2.0) if budget.norm == "l2" else 1.0, 1.0),
    )
    noisy = np.zeros((d, d), dtype=np.int64)
    noisy[upper] = above
    noisy += noisy.T
    noisy[np.diag_indices(d)] = diagonal
    return np.ldexp(noisy.astype(float), -2 * bits)


def _outer_products(batch: FloatArray, residuals: Any, bits: int) -> IntArray:
    """Exact sum, in squared steps."""
    steps = np.trunc(np.ldexp(residuals(batch), bits))
    # Products and their sums are exact, in every order of the operations.
    return (steps.T @ steps).astype(np.int64)

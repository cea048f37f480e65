"""Noisy counts, sums and second moments of rows, released together."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.sparse import csc_array

from sklearn_dptda.privacy import FixedPoint, Sensitivity
from sklearn_dptda.rows._arithmetic import INSIDE, clip_norm, row_products


@dataclass(frozen=True)
class MomentWeights:
    """Squared weights of count, sum and second moment in one joint release.

    A record in its cell contributes ``(w0, w1 u, w2 q(u))`` with a residual ``u`` of norm at most
    one.

    **L2.** ``q`` stacks the diagonal of ``u u'`` and ``sqrt(2)`` times its upper triangle, or the
    diagonal alone, or the trace. In each case ``norm(q(u)) <= 1``, and contributions of ``u`` and
    ``v`` have an inner product of at least ``k(t) = w0**2 + w1**2 t + w2**2 t**2`` with ``t = u .
    v``, or are no further apart than if they had.

    **L1.** ``q`` stacks the upper triangle without the factor; then the L1 norm of ``q(u)`` is at
    most one where that of ``u`` is.
    """

    count: float
    sum: float = 0.0
    second_moment: float = 0.0

    @property
    def roots(self):
        """The weights themselves."""
        return self.count**0.5, self.sum**0.5, self.second_moment**0.5

    def sensitivity(self, adjacency, norm="l2"):
        """Sensitivity of the moments of all cells together.

        One more record changes one cell by at most the norm of one contribution. A replaced record
        changes two cells, or one cell by the difference of two contributions: squared, in L2, at
        most twice the total less twice the least ``k``.
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

    Second moments have shape (n_cells, n_features, n_features), or one for all cells where they
    are tied. ``sd_count`` and ``sd_sum`` are standard deviations of the noise of a count and of a
    coordinate of a sum, ``var_second_moment`` the expected squared Frobenius norm of the noise of a
    second moment, and ``var_trace`` the variance of its trace.
    """

    counts: np.ndarray
    sums: np.ndarray
    second_moments: np.ndarray | None
    sd_count: float
    sd_sum: float
    var_second_moment: float = 0.0
    var_trace: float = 0.0

    def redrawn(self, rng):
        """Moments with as much noise once more, normal: how far they are to be trusted."""
        shape = self.second_moments.shape
        noise = rng.standard_normal(shape)
        noise = (noise + np.swapaxes(noise, 1, 2)) / 2
        # As many entries have noise as the kind of second moments has.
        noise = np.where(self.second_moments == 0, 0.0, noise)
        size = np.sqrt((noise**2).sum(axis=(1, 2), keepdims=True))
        scale = np.sqrt(self.var_second_moment) / np.maximum(size, 1e-300)
        return replace(
            self,
            counts=self.counts + self.sd_count * rng.standard_normal(self.counts.shape),
            sums=self.sums + self.sd_sum * rng.standard_normal(self.sums.shape),
            second_moments=self.second_moments + scale * noise,
        )


class SecondMoments:
    """How second moments of one kind, if any, are stacked, and read back as matrices."""

    def __init__(self, kind, n_features, norm):
        self.kind, self.n_features = kind, n_features
        matrix = kind in ("full", "tied")
        self.rows, self.columns = np.triu_indices(n_features) if matrix else (None, None)
        if matrix:
            off = 1.0 if norm == "l1" else np.sqrt(2.0)
            self.stretch = np.where(self.rows == self.columns, 1.0, off)

    @property
    def width(self):
        """Number of entries."""
        d = self.n_features
        sizes = {None: 0, "spherical": 1, "diag": d}
        return sizes.get(self.kind, d * (d + 1) // 2)

    def stack(self, u):
        """Entries of the second moments of residuals, one row each."""
        if self.kind == "spherical":
            return row_products(u, u)[:, None]
        if self.kind == "diag":
            return u * u
        entries = u[:, self.rows]
        entries *= self.stretch
        entries *= u[:, self.columns]
        return entries

    def matrices(self, entries):
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

    def noise(self, sd):
        """Expected squared Frobenius norm, and variance of the trace, of noise of entries."""
        d = self.n_features
        if self.kind == "spherical":
            return sd**2 / d, sd**2
        if self.kind == "diag":
            return d * sd**2, d * sd**2
        weights = np.where(self.rows == self.columns, 1.0, 2.0) / self.stretch**2
        return float(weights.sum()) * sd**2, d * sd**2


# The lattice is no finer than for this scale, so that sums of 2**35 records stay within 64 bits.
_FINEST = 4.0


def release_moments(rows, assign, n_cells, weights, budget, share, kind=None, soft=False):
    """Sum the contributions of all records exactly and add noise.

    ``assign`` makes of a batch an iterator of ``(cells, parts, residuals)``: the cell of each row,
    the part of it that belongs there (1, or numbers whose sum over the iterator is at most 1), and
    its residual of norm at most one: functions of the row and of earlier releases. ``kind`` is
    that of second moments, None releasing none; with ``soft``, a row can have parts in all cells.
    """
    second_moments = SecondMoments(kind, rows.n_features, budget.norm)
    declared = weights.sensitivity(budget.adjacency, budget.norm)
    scale = budget.scale(declared, share)
    lattice = FixedPoint.for_scale(max(scale, _FINEST) if scale > 0 else 1.0)
    contributions = _Contributions(assign, n_cells, weights.roots, second_moments, lattice)
    low, high = rows.sum(contributions, contributions.width(rows.n_features))
    # Rounding to the lattice adds at most one step to each number that a record can move.
    touched = n_cells if soft else 2
    # Tied second moments are sums over all the cells that a record touches.
    touched_high = touched**2 if kind == "tied" else touched
    moves = touched * low.shape[1] + touched_high * high.shape[1]
    grown = lattice.sum_sensitivity(declared, moves).value * lattice.step / declared.value
    noise = scale * grown / lattice.step
    low = lattice.decode(low + budget.draw(noise, low.shape))
    high = lattice.decode(high + budget.draw(noise, high.shape))
    w0, w1, w2 = weights.roots
    deviation = budget.deviation(scale)
    frobenius, trace = second_moments.noise(deviation / w2) if kind is not None else (0.0, 0.0)
    return Moments(
        counts=low[:, 0] / w0,
        sums=low[:, 1:] / w1 if w1 else np.zeros((n_cells, rows.n_features)),
        second_moments=second_moments.matrices(high / w2) if kind is not None else None,
        sd_count=deviation / w0,
        sd_sum=deviation / w1 if w1 else 0.0,
        var_second_moment=frobenius,
        var_trace=trace,
    )


@dataclass(frozen=True)
class _Contributions:
    """Weighted counts and sums of the cells, and second moments, in steps of the lattice."""

    assign: Callable
    n_cells: int
    roots: tuple
    second_moments: SecondMoments
    lattice: FixedPoint

    def width(self, n_features):
        """Numbers that one row contributes."""
        return 1 + n_features * (self.roots[1] > 0) + self.second_moments.width

    def __call__(self, batch):
        w0, w1, w2 = self.roots
        tied = self.second_moments.kind == "tied"
        low = np.zeros((self.n_cells, 1 + batch.shape[1] if w1 else 1), dtype=np.int64)
        high = np.zeros((1 if tied else self.n_cells, self.second_moments.width), dtype=np.int64)
        for cells, parts, u in self.assign(batch):
            part = np.broadcast_to(np.asarray(parts, dtype=float), len(batch))[:, None]
            contribution = np.empty((len(batch), low.shape[1]))
            contribution[:, :1] = w0 * part
            if w1:
                np.multiply(w1 * part, u, out=contribution[:, 1:])
            low += by_cell(cells, self.n_cells) @ self.lattice.encode(contribution)
            if self.second_moments.kind is not None:
                steps = self.lattice.encode(w2 * part * self.second_moments.stack(u))
                high += steps.sum(axis=0) if tied else by_cell(cells, self.n_cells) @ steps
        return low, high


def by_cell(cells, n_cells):
    """Matrix that adds rows up by cell: one entry in each column."""
    n = len(cells)
    return csc_array((np.ones(n, np.int64), cells, np.arange(n + 1)), (n_cells, n))


def hard_assignment(cell_of, residuals):
    """Assign each row to the cell that ``cell_of`` gives, as :func:`release_moments` takes it.

    ``residuals`` makes clipped residuals of a batch and its cells.
    """
    return partial(_hard, cell_of=cell_of, residuals=residuals)


def _hard(batch, cell_of, residuals):
    cells = cell_of(batch)
    yield cells, 1.0, residuals(batch, cells)


def one_cell(centre, radius, norm):
    """Assign all rows to one cell, with residuals about its centre."""
    return partial(_one, centre=centre, radius=radius, norm=norm)


def _one(batch, centre, radius, norm):
    yield np.zeros(len(batch), dtype=np.intp), 1.0, clip_norm(batch - centre, radius, norm)


def soft_assignment(parts, residuals, n_cells):
    """Assign ``parts`` of each row to all cells, as :func:`release_moments` takes it.

    ``parts`` makes of a batch nonnegative numbers of shape (n, n_cells), rows of which sum to one;
    ``residuals`` makes clipped residuals of a batch and its cells.
    """
    return partial(_soft, parts=parts, residuals=residuals, n_cells=n_cells)


def _soft(batch, parts, residuals, n_cells):
    shares = parts(batch) * INSIDE
    for k in range(n_cells):
        cells = np.full(len(batch), k)
        yield cells, shares[:, k], residuals(batch, cells)


# Products of 2**17 rows stay below 2**53, where floats hold integers, and sums of 2**27 rows within
# 64 bits.
_BITS = 18
# Noise stays below a scale of 2**52; beyond this one rows take fewer bits.
_LARGEST_SCALE = 2.0**14


def entry_noise(budget, share):
    """Scales of the noise of entries off the diagonal and on it, for residuals of norm one."""
    declared = MomentWeights(0.0, 0.0, 1.0).sensitivity(budget.adjacency, budget.norm)
    scale = budget.scale(declared, share)
    # In L2 a product off the diagonal counts twice: as two entries.
    return (math.sqrt(0.5) if budget.norm == "l2" else 1.0) * scale, scale


def release_outer_products(rows, residuals, budget, share):
    """Release the sum of the outer products of residuals of norm at most one, with noise.

    A symmetric matrix. Residuals are rounded towards zero before they are multiplied, so that they
    stay in the ball, and the sensitivity is what it was.
    """
    d, (off, on) = rows.n_features, entry_noise(budget, share)
    bits = _BITS - max(0, math.ceil(math.log2(max(on, _LARGEST_SCALE) / _LARGEST_SCALE) / 2))
    total = rows.sum(partial(_outer_products, residuals=residuals, bits=bits), width=d)
    upper = np.triu_indices(d, 1)
    noise = np.zeros((d, d), dtype=np.int64)
    noise[upper] = budget.draw(math.ldexp(off, 2 * bits), len(upper[0]))
    noise += noise.T
    noise[np.diag_indices(d)] = budget.draw(math.ldexp(on, 2 * bits), d)
    return np.ldexp((total + noise).astype(float), -2 * bits)


def _outer_products(batch, residuals, bits):
    """Exact sum, in squared steps."""
    steps = np.trunc(np.ldexp(residuals(batch), bits))
    # No product and no sum of them is rounded, in whatever order a library adds.
    return (steps.T @ steps).astype(np.int64)

"""Release of the moments of a partition of private rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csc_array

from sklearn_dptda.cluster._moments._joint_moments import Moments
from sklearn_dptda.cluster._moments._row_arithmetic import INSIDE, clip_norm
from sklearn_dptda.cluster._moments._second_moments import SecondMoments
from sklearn_dptda.privacy import FixedPoint

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

"""Private choice of centres among candidates, by swaps."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_dptda.cluster._moments._moment_release import by_cell
from sklearn_dptda.utils._cell_counts import CellCounts
from sklearn_dptda.utils._row_batches import batch_size, slices

# Steps of the radius, and so the largest cost of one record, in whole numbers.
_STEPS = 1 << 10
LARGEST_COST = _STEPS**2
# Cells of all axes together that rows are counted in, and of each at least: sides of some tenths of
# a standard deviation, where those of the boxes that candidates are centres of are several.
_CELLS, _FEWEST_CELLS = 1 << 20, 8
# Rows of one entry: with as many entries as a piece has, sums of costs stay below 2**53.
_MOST_ROWS = 1 << 20


class Candidates:
    """Points that centres are chosen from, and what they cost a record.

    Beyond ``radius`` costs do not grow. Coordinates are rounded to whole steps first. From there
    on all numbers are integers below 2**53, which floating-point arithmetic treats exactly, in
    whatever order: costs of a record depend on no other one.
    """

    def __init__(self, points, radius):
        self.points, self.radius = points, radius
        steps = self._round(points)
        squared_norms = (steps**2).sum(axis=1, keepdims=True)
        self._factors = np.hstack([-2 * steps, np.ones_like(squared_norms), squared_norms]).T

    def __len__(self):
        return len(self.points)

    def _round(self, points):
        # Beyond 2**20 steps costs are the largest anyway.
        return np.clip(np.rint(points * (_STEPS / self.radius)), -(2.0**20), 2.0**20)

    def costs(self, part):
        """Squared distances of records of shape (n, n_axes) to all candidates, in squared steps.

        Whole numbers up to the largest cost, of shape (n, n_candidates).
        """
        steps = self._round(part)
        squared_norms = (steps**2).sum(axis=1, keepdims=True)
        factors = np.hstack([steps, squared_norms, np.ones_like(squared_norms)])
        squared_distances = factors @ self._factors
        return np.minimum(squared_distances, LARGEST_COST, out=squared_distances)


@dataclass(frozen=True)
class CountedRows:
    """Numbers of rows in the cells of a public lattice over a box, each row at a cell's centre.

    One pass counts them, however many swaps there are, and a row moves the costs by those of its
    own cell, which are at most the largest. ``points`` has shape (n_cells, n_axes).
    """

    points: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, rows, low, high):
        """Count rows; those beyond the box are in the cells at its rim."""
        n_axes = len(low)
        n_cells = min(max(int(_CELLS ** (1 / n_axes)), _FEWEST_CELLS), _STEPS)
        side = (high - low) / n_cells
        counted = rows.sum(partial(_in_cells, low=low, side=side, n_cells=n_cells))
        return cls.in_entries(*counted.merged(), low, side)

    @classmethod
    def in_entries(cls, cells, counts, low, side):
        """The same from cells and their counts; very full cells have several entries."""
        entries = -(-counts // _MOST_ROWS)
        points = np.repeat(low + (cells + 0.5) * side, entries, axis=0)
        shares = np.full(len(points), _MOST_ROWS)
        shares[np.cumsum(entries) - 1] = counts - (entries - 1) * _MOST_ROWS
        return cls(points, shares.astype(float))

    def pieces(self, width):
        """Pieces for computations that need ``width`` numbers for each cell."""
        size = batch_size(width)
        return zip(slices(self.points, size), slices(self.counts, size), strict=True)


def _in_cells(part, low, side, n_cells):
    cells = np.clip(np.floor((part - low) / side), 0, n_cells - 1)
    return CellCounts.of(cells.astype(np.int64))


def swap_costs(candidates, rows, chosen):
    """Cost of each set that differs from the ``k`` chosen candidates by one centre.

    Integers of shape (k, n_candidates): entry (o, c) has c in the place of the o-th centre.
    """
    k = len(chosen)
    total = np.zeros((k, len(candidates)), dtype=np.int64)
    for points, counts in rows.pieces(len(candidates)):
        costs = candidates.costs(points)
        present = costs[:, chosen]
        nearest = present.argmin(axis=1)
        nearest_cost = present.min(axis=1)
        # With its centre gone, a record goes to the second, or pays most.
        present[np.arange(len(points)), nearest] = LARGEST_COST
        second_cost = present.min(axis=1)
        kept = np.minimum(costs, nearest_cost[:, None])
        total += (counts @ kept).astype(np.int64)
        # What the second adds, where the new centre is farther than the nearest.
        added = np.minimum(costs, second_cost[:, None], out=costs)
        added -= kept
        total += ((by_cell(nearest, k) * counts) @ added).astype(np.int64)
    return total


def set_costs(candidates, rows, sets):
    """Cost of each of some sets of candidates, as a list of int."""
    total = np.zeros(len(sets), dtype=np.int64)
    for points, counts in rows.pieces(len(candidates)):
        costs = candidates.costs(points)
        total += [int(counts @ costs[:, chosen].min(axis=1)) for chosen in sets]
    return total.tolist()


def search(candidates, rows, start, n_swaps, budget, share):
    """Swap centres privately, and choose the best set met on the way, by a share of the budget."""
    each = share / (n_swaps + 1)
    sets = [np.array(start)]
    for _ in range(n_swaps):
        costs = swap_costs(candidates, rows, sets[-1])
        index = budget.choose(costs.ravel().tolist(), LARGEST_COST, each)
        out, into = divmod(index, costs.shape[1])
        swapped = sets[-1].copy()
        swapped[out] = into
        sets.append(swapped)
    return sets[budget.choose(set_costs(candidates, rows, sets), LARGEST_COST, each)]

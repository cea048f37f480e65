"""The distance-to-measure of counts on a lattice, at nodes of the lattice."""

from itertools import pairwise

import numpy as np

from sklearn_dptda.filtration._grid_filtration import grid_nodes


def lattice_grid_values(histogram, refinement, power):
    """Distance-to-measure on a grid that is every ``refinement``-th lattice node.

    The sum of the ``k`` smallest values is the integral over the radius of how many of the ``k``
    neighbours are still missing. Offsets between a node and the lattice are the same for all
    nodes, so shells of equal distance are visited once, nearest first, for the whole grid
    together; the cost does not depend on the number of points.
    """
    shape = np.array(histogram.shape)
    spacing = (histogram.high - histogram.low) / (shape - 1)
    # Shells beyond the cap all count as the cap: they need not be visited.
    reach = np.minimum(shape - 1, np.floor(power.cap / spacing).astype(int))
    # Half as many bytes to move, where they hold the number of points.
    narrow = np.int32 if histogram.n_points < 2**31 else np.int64
    padded = np.pad(histogram.counts.astype(narrow), [(r, r) for r in reach])
    offsets, levels = _shells(reach, spacing, power)
    window = [slice(0, s, refinement) for s in shape]
    grid = tuple(len(range(s)[w]) for s, w in zip(shape, window, strict=True))
    reached = np.zeros(grid, dtype=narrow)
    missing_integral = np.zeros(grid, dtype=np.int64)
    distinct, starts = np.unique(levels, return_index=True)
    previous = 0
    for level, (begin, end) in zip(distinct, pairwise([*starts, len(levels)]), strict=True):
        missing = np.maximum(power.k - reached, 0).astype(np.int64)
        if not missing.any():
            break
        missing_integral += missing * (level - previous)
        previous = level
        for offset in offsets[begin:end]:
            view = tuple(
                slice(r + o, r + o + s, refinement)
                for r, o, s in zip(reach, offset, shape, strict=True)
            )
            reached += padded[view]
    missing = np.maximum(power.k - reached, 0).astype(np.int64)
    missing_integral += missing * (2**power.bits - previous)
    return power.values(missing_integral.ravel())


def _shells(reach, spacing, power):
    """Offsets within the cap and their integer distances, nearest first."""
    offsets = grid_nodes([np.arange(-r, r + 1) for r in reach])
    levels = power.integers(((offsets * spacing) ** 2).sum(axis=1))
    inside = levels < 2**power.bits
    order = np.argsort(levels[inside], kind="stable")
    return offsets[inside][order], levels[inside][order]

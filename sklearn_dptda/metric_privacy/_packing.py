"""Packing numbers: exactly on few points, and by nets and partitions on many."""

import numpy as np

from sklearn_dptda.utils._distances import farthest_first

# Most points for which independent sets are searched exactly.
EXACT_POINTS = 30


def bit_mask(chosen):
    """Subset of points, given by a truth value for each, as the bits of an integer."""
    return sum(1 << int(i) for i in np.flatnonzero(chosen))


class ExactPacking:
    """Largest subsets, of subsets of a few points, whose points are further apart than a scale.

    A separated set is an independent set of the graph that joins near points.
    Branches on a point of most neighbours, takes points of one neighbour or
    none, and remembers what it found.
    """

    def __init__(self, D, scale):
        near = scale >= D
        np.fill_diagonal(near, False)
        self._neighbours = [bit_mask(row) for row in near]
        self._sizes = {0: 0}

    def size(self, subset):
        """Size of the largest separated part of a subset, a bit mask of points."""
        if subset in self._sizes:
            return self._sizes[subset]
        taken, rest = 0, subset
        busiest, degree = None, -1
        pending = rest
        while pending:
            point = (pending & -pending).bit_length() - 1
            pending &= pending - 1
            near = self._neighbours[point] & rest
            count = near.bit_count()
            if count <= 1:
                # Some largest set contains it. What was seen before may have fewer
                # neighbours now.
                taken, rest = taken + 1, rest & ~(near | 1 << point)
                pending = rest
                busiest, degree = None, -1
            elif count > degree:
                busiest, degree = point, count
        if busiest is not None:
            without = rest & ~(1 << busiest)
            taken += max(
                1 + self.size(without & ~self._neighbours[busiest]),
                self.size(without),
            )
        self._sizes[subset] = taken
        return taken


def exact_packing(D, scale):
    """Most points of a small space that are further apart than a scale."""
    return ExactPacking(D, scale).size((1 << len(D)) - 1)


class Traversal:
    """Points in farthest-first ``order``: each prefix is a net.

    ``radii`` are the distances of each point of the order from those before it; the first is
    ``inf``.
    """

    def __init__(self, D):
        # From a public place in the middle: balls around it cover most.
        start = int(D.max(axis=1).argmin())
        self.order, self.radii = farthest_first(D.__getitem__, len(D), start)

    def net(self, scale):
        """Points that are further apart than the scale, and within it of all others."""
        return self.order[self.radii > scale]


def cells_of_net(D, net):
    """Cells of points nearest to those of a net, numbered from 0."""
    _, cells = np.unique(D[:, net].argmin(axis=1), return_inverse=True)
    return cells


def nearest_of_cells(D, cells):
    """Distance of each point from each cell, of shape (n_points, n_cells)."""
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(cells.max() + 1))
    return np.minimum.reduceat(D[:, order], starts, axis=1)

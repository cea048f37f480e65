"""Packing numbers: exactly on few points, and by nets and partitions on many."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

# Most points for which independent sets are searched exactly.
EXACT_POINTS = 30


class ExactPacking:
    """Largest separated subsets of subsets of a few points.

    A separated set is an independent set of the graph that joins near points.
    Branches on a point of most neighbours, takes points of one neighbour or
    none, and remembers what it found.

    Parameters
    ----------
    D : ndarray of shape (n, n)
    scale : float
        Points further apart than this are separated.
    """

    def __init__(self, D, scale):
        near = scale >= D
        np.fill_diagonal(near, False)
        self.neighbours = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in near]
        self.found = {0: 0}

    def size(self, subset):
        """Largest separated part of a subset.

        Parameters
        ----------
        subset : int
            Bit mask of points.

        Returns
        -------
        int
        """
        if subset in self.found:
            return self.found[subset]
        taken, rest = 0, subset
        busiest, degree = None, -1
        pending = rest
        while pending:
            point = (pending & -pending).bit_length() - 1
            pending &= pending - 1
            near = self.neighbours[point] & rest
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
                1 + self.size(without & ~self.neighbours[busiest]),
                self.size(without),
            )
        self.found[subset] = taken
        return taken


class Traversal:
    """Points in farthest-first order: each prefix is a net.

    Attributes
    ----------
    order : ndarray of shape (n,)
    radii : ndarray of shape (n,)
        Distance of each point of the order from those before it; the first is
        ``inf``.
    """

    def __init__(self, D):
        n = len(D)
        self.order = np.empty(n, dtype=int)
        self.radii = np.empty(n)
        # From a public place in the middle: balls around it cover most.
        start = int(D.max(axis=1).argmin())
        gaps = np.full(n, np.inf)
        for i in range(n):
            at = start if i == 0 else int(gaps.argmax())
            self.order[i], self.radii[i] = at, gaps[at]
            gaps = np.minimum(gaps, D[at])

    def net(self, scale):
        """Points that are further apart than the scale, and within it of all others."""
        return self.order[self.radii > scale]


def complete_tree(D):
    """Complete linkage, whose clusters at a height have no larger diameter."""
    return linkage(squareform(D, checks=False), "complete")


def cells_of_tree(tree, n, scale):
    """Cells of diameter at most the scale, numbered from 0."""
    if n == 1:
        return np.zeros(1, dtype=int)
    return fcluster(tree, scale, "distance") - 1


def cells_of_net(D, net):
    """Cells of points nearest to those of a net, numbered from 0."""
    _, cells = np.unique(D[:, net].argmin(axis=1), return_inverse=True)
    return cells


def nearest_of_cells(D, cells):
    """Distance of each point from each cell.

    Parameters
    ----------
    D : ndarray of shape (n, n)
    cells : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n, n_cells)
    """
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(cells.max() + 1))
    return np.minimum.reduceat(D[:, order], starts, axis=1)

"""A private tree of boxes, divided into halves where the noisy counts are large.

Proof: doc/theory/private_mixtures.md, "The tree of `DPTree`".
"""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.rows._assignments import hard_assignment, row_products
from sklearn_dptda.rows._moments import FitBudget, MomentWeights
from sklearn_dptda.rows._rows import Rows

_COUNT_WEIGHTS = MomentWeights(1.0)
# Boxes with a side shorter than this share of the root are not split. Boxes at the boundary also
# contain what lies outside.
_LEAST_SIDE = 2.0**-12
# Half width of the root box, in standard deviations of its axes.
_ROOT_HALF_WIDTH = 2.5
# A box is split if its count exceeds this number of standard deviations of noise, and this share of
# a cluster of average size.
_SPLIT_DEVIATIONS = 6.0
_SPLIT_PART = 0.1


@dataclass
class BoxTree:
    """Boxes of a binary tree, in coordinates along the columns of ``directions``.

    ``low`` and ``high``, of shape (n_nodes, n_axes), are the boxes; those at the boundary also
    represent what lies outside. ``axis``, ``cut`` and ``left`` tell where each node is divided, and
    which node is its lower child (-1 for a leaf). The upper child is the next node.
    """

    directions: np.ndarray
    low: np.ndarray
    high: np.ndarray
    axis: np.ndarray
    cut: np.ndarray
    left: np.ndarray

    @classmethod
    def root(cls, directions, half_widths):
        """One box around the origin."""
        half = np.asarray(half_widths, dtype=float)[None]
        return cls(directions, -half, half, np.full(1, -1), np.zeros(1), np.full(1, -1))

    @property
    def leaves(self):
        """Indices of the nodes that are not split."""
        return np.flatnonzero(self.left < 0)

    @property
    def centres(self):
        """Centres of the boxes, in their coordinates."""
        return (self.low + self.high) / 2

    def coordinates(self, part):
        """Coordinates of records, each computed by itself."""
        return row_products(part, self.directions.T[:, None]).T

    def leaf_of(self, part):
        """Index of the leaf of each record, among :attr:`leaves`."""
        coordinates = self.coordinates(part)
        rows, node = np.arange(len(part)), np.zeros(len(part), dtype=np.intp)
        while (self.left[node] >= 0).any():
            inner = self.left[node] >= 0
            above = coordinates[rows, self.axis[node]] > self.cut[node]
            node = np.where(inner, self.left[node] + above, node)
        return np.searchsorted(self.leaves, node)

    def split(self, nodes):
        """Halve boxes across their longest side, down to a least length."""
        least = _LEAST_SIDE * (self.high[0] - self.low[0]).max()
        for node in nodes:
            sides = self.high[node] - self.low[node]
            axis = int(np.argmax(sides))
            if sides[axis] <= least:
                continue
            middle = (self.low[node, axis] + self.high[node, axis]) / 2
            below, above = self.high[node].copy(), self.low[node].copy()
            below[axis] = above[axis] = middle
            self.axis[node], self.cut[node], self.left[node] = axis, middle, len(self.low)
            self.low = np.vstack([self.low, self.low[node], above])
            self.high = np.vstack([self.high, below, self.high[node]])
            self.axis = np.append(self.axis, [-1, -1])
            self.cut = np.append(self.cut, [0.0, 0.0])
            self.left = np.append(self.left, [-1, -1])


def grow(
    rows: Rows,
    directions: FloatArray,
    half_widths: FloatArray,
    *,
    n_clusters: int,
    depth: int,
    budget: FitBudget,
    share: float,
) -> BoxTree:
    """Grow a tree level by level from noisy counts of its leaves.

    ``half_widths`` of the root box are in standard deviations of the axes.
    """
    tree = BoxTree.root(directions, _ROOT_HALF_WIDTH * np.asarray(half_widths))
    for _ in range(depth):
        leaves = tree.leaves
        moments = budget.release(
            rows,
            hard_assignment(tree.leaf_of, _no_residuals),
            len(leaves),
            weights=_COUNT_WEIGHTS,
            share=share / depth,
        )
        total = max(float(moments.counts.sum()), 1.0)
        enough = max(_SPLIT_DEVIATIONS * moments.sd_count, _SPLIT_PART * total / n_clusters)
        tree.split(leaves[moments.counts >= enough])
    return tree


def _no_residuals(part, cells):
    """Residuals of a release of counts alone, which are not used."""
    return part


def default_depth(n_clusters):
    """Two more levels than are needed for about ten boxes per cluster."""
    return math.ceil(math.log2(n_clusters / _SPLIT_PART)) + 2

"""Sums over the k nearest points at every node of a grid, a tile of nodes at a time.

The distance to the k-th nearest point differs by no more than the nodes are
apart. So of a tile with centre ``c`` and radius ``t``, points nearer to ``c``
than ``r_k(c) - 2 t`` are among the nearest of each of its nodes, and points
beyond ``r_k(c) + 2 t`` of none: only the ring between is looked at node by node.
"""

import itertools
import math

import numpy as np
from scipy.spatial import KDTree

from sklearn_dptda.filtration._nearest import tree_is_cheaper

# Nodes of a tile: more make the ring wider, fewer make more tiles.
_NODES = 64
# What rounding of distances may move a point across the edge of a ring, relatively.
_SLACK = 1e-9
_CACHE = 16 * 2**20


def tiled_sums(points, axes, power, memory):
    """Sum the integers of the ``power.k`` nearest points at every node of a grid, as int64.

    ``axes`` are the increasing coordinates of the nodes; the work takes at most ``memory`` MiB,
    down to one node at a time.
    """
    # What the rounding of coordinates themselves may move a point by.
    blur = 2.0**-49 * max(float(np.abs(axis).max()) for axis in axes)
    neighbours = _Neighbours(points, power.k, blur)
    size = max(1, int(min(memory * 2**20, _CACHE) // 8))
    sums = np.empty(tuple(map(len, axes)), dtype=np.int64)
    for tile, centre, radius in _tiles(axes):
        places = [axis[part] for axis, part in zip(axes, tile, strict=True)]
        sure, ring = neighbours(centre, radius, power.cap)
        sums[tile] = _sums(places, sure, ring, power, size).reshape(sums[tile].shape)
    return sums


def _tiles(axes):
    """Slices, centre and radius of boxes of neighbouring nodes."""
    side = max(1, round(_NODES ** (1 / len(axes))))
    parts = [
        [(slice(i, i + side), axis[i : i + side]) for i in range(0, len(axis), side)]
        for axis in axes
    ]
    for tile in itertools.product(*parts):
        ends = np.array([(places[0], places[-1]) for _, places in tile])
        centre, half = ends.mean(axis=1), np.ptp(ends, axis=1) / 2
        yield tuple(part for part, _ in tile), centre, float(np.linalg.norm(half))


class _Neighbours:
    """Points that are among the nearest of all nodes of a tile, and those that may be of some."""

    def __init__(self, points, k, blur):
        self._points, self._k, self._blur = points, k, blur
        # Sorting into equal halves takes longer than it saves.
        options = {"balanced_tree": False, "compact_nodes": False}
        few = tree_is_cheaper(len(points), k)
        self._tree = KDTree(points, **options) if few else None

    def __call__(self, centre, radius, cap):
        """Return the points that are sure, and the ring of those that are not."""
        points = self._points
        if self._tree is None:
            distances = _distances(points, centre)
            kth = np.partition(distances, self._k - 1)[self._k - 1]
        else:
            kth = self._tree.query(centre, [self._k])[0][0]
        # Beyond the cap all points count alike.
        reach = min(kth + 2 * radius, cap + radius) * (1 + _SLACK) + self._blur
        if self._tree is None:
            near = distances <= reach
            points, distances = points[near], distances[near]
        else:
            points = points[self._tree.query_ball_point(centre, reach)]
            distances = _distances(points, centre)
        sure = distances < (kth - 2 * radius) * (1 - _SLACK) - self._blur
        return points[sure], points[~sure]


def _distances(points, centre):
    return np.sqrt(_squared([np.array([c]) for c in centre], points)[0])


def _squared(places, points):
    """Squared distances of the nodes of a box from points, axis by axis."""
    squared = np.zeros((1, len(points)))
    for axis, coordinates in enumerate(places):
        step = (coordinates[:, None] - points[:, axis]) ** 2
        squared = (squared[:, None] + step).reshape(len(squared) * len(step), len(points))
    return squared


def _sums(places, sure, ring, power, size):
    """Sums at the nodes of one tile, in parts that fit into the cache."""
    n_nodes = math.prod(map(len, places))
    # What is neither sure nor in the ring lies beyond the cap.
    rest = min(power.k - len(sure), len(ring))
    sums = np.full(n_nodes, (power.k - len(sure) - rest) << power.bits, dtype=np.int64)
    width = max(1, size // n_nodes)
    for start in range(0, len(sure), width):
        sums += power.integers(_squared(places, sure[start : start + width])).sum(axis=1)
    if rest == 0:
        return sums
    first, *others = places
    step = math.prod(map(len, others))
    rows = max(1, size // (step * len(ring)))
    for start in range(0, len(first), rows):
        squared = _squared([first[start : start + rows], *others], ring)
        if rest < len(ring):
            squared.partition(rest - 1, axis=1)
        part = slice(start * step, start * step + len(squared))
        sums[part] += power.integers(squared[:, :rest]).sum(axis=1)
    return sums

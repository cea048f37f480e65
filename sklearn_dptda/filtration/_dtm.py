"""Sums over the k nearest points at every node of a grid, a tile of nodes at a time.

The distance to the k-th nearest point differs by no more than the nodes are
apart. So of a tile with centre ``c`` and radius ``t``, points nearer to ``c``
than ``r_k(c) - 2 t`` are among the nearest of each of its nodes, and points
beyond ``r_k(c) + 2 t`` of none: only the ring between is looked at node by node.
"""

import itertools
import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import numpy as np
from scipy.spatial import KDTree

from sklearn_dptda._typing import Bounds
from sklearn_dptda.filtration._base_filtration import BaseGridFiltration
from sklearn_dptda.filtration._distance_to_measure import tree_is_cheaper
from sklearn_dptda.filtration._lattice import lattice_grid_values
from sklearn_dptda.filtration._sensitivities import neighbour_count, sensitivity_dtm
from sklearn_dptda.utils._sklearn import Interval

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


# Powers of distances in fixed point.


class FixedPointPower:
    """``p``-th powers of capped distances as integers, so that sums are exact.

    A distance ``t`` becomes ``round(2**bits * min(t / cap, 1)**p)``: a map of one record at a
    time, with values in ``{0, ..., 2**bits}``. The sum of the ``k`` smallest is then an exact
    integer, and replacing one record moves it by at most ``2**bits``, whatever the order of the
    summation.
    """

    def __init__(self, cap, p, k):
        self.cap, self.p, self.k = cap, p, k
        self.bits = min(40, 62 - int(k).bit_length())

    def integers(self, squared):
        """Turn squared distances into integers."""
        power = np.sqrt(squared)
        power /= self.cap
        np.minimum(power, 1.0, out=power)
        if self.p != 1:
            power **= self.p
        power *= 2.0**self.bits
        return np.rint(power, out=power).astype(np.int64)

    def values(self, sums):
        """Turn sums of ``k`` integers into values of the distance-to-measure."""
        mean = np.asarray(sums, dtype=float) / (self.k * 2.0**self.bits)
        return self.cap * (mean if self.p == 1 else mean ** (1 / self.p))

    @property
    def rounding(self):
        """Bound of the floating-point error of :meth:`values`, both neighbours together."""
        return self.cap * 2.0**-48


# The distance-to-measure of point clouds on a public grid.

# Nanoseconds, measured: one element of a partitioned row of distances, one
# neighbour from a k-d tree, one grid node per lattice offset.
_ROW_ELEMENT, _TREE_ELEMENT, _LATTICE_ELEMENT = 3.0, 100.0, 1.2


class DTMFiltration(BaseGridFiltration):
    r"""Distance to the empirical measure of each cloud, on a public grid.

    The ``p``-mean of the distances from a grid node to its
    ``k = ceil(m n)`` nearest points. Its sublevel sets are a robust version
    of unions of balls: a point more or less hardly matters, which is what
    makes the persistence diagrams cheap to release under differential
    privacy.

    Parameters
    ----------
    m : float, default=0.1
        Mass: the share of the points that each value looks at, in (0, 1].
    p : float, default=1
        Order of the mean, at least 1. ``p=1`` has the smallest sensitivity.
    bounds : tuple (low, high) or PrivateBounds, default=None
        Public bounding box, numbers or one per coordinate. Points outside are
        clipped to it. A :class:`~sklearn_dptda.preprocessing.PrivateBounds` is
        fitted to the clouds of ``fit``, which pays for it; private diagrams
        add its guarantee to theirs. None computes the box from the data and
        warns, because this is not private.
    resolution : int or tuple of int, default=None
        Grid nodes along each axis. None: 1001, 101, 41 or 17 in dimensions 1
        to 4.
    max_distance : float, default=None
        Public cap: longer distances count as this one. The sensitivity is
        proportional to it. None: half the longest side of the box, which cuts
        hardly a feature but components in opposite corners; ``inf`` does not
        cap.
    method : {"auto", "exact", "lattice"}, default="auto"
        ``"exact"`` uses the points. ``"lattice"`` moves each point to the
        nearest node of a public lattice first and works with counts: the cost
        after one pass over the points does not depend on their number, the
        sensitivity is the same, and the values are off by at most half the
        diagonal of a lattice cell. ``"auto"`` takes the cheaper one, but
        exact values where that error is above the sensitivity and they take
        half a minute at most.
    refinement : int, default=None
        Lattice steps per grid step. None: 4, 2, 1, 1 in dimensions 1 to 4.
    memory : float, default=256.0
        Bound of the working memory per cloud, in MiB.
    n_jobs : int, default=None
        Number of clouds that are worked on at a time, by joblib.

    Attributes
    ----------
    bounds_ : tuple of two ndarray of shape (d,)
        The box, public or paid for.
    bounds_guarantee_ : PrivacyGuarantee or None
        What was paid for a private box.
    clipped_share_ : float
        Private share of the points outside a private box, which it released
        with itself. Of public bounds :class:`~sklearn_dptda.PrivatePersistence`
        releases it with ``clipped_share=True``.
    axes_ : tuple of ndarray
        The public grid.
    refinement_ : int
        Lattice steps per grid step.
    n_features_in_ : int
        Dimension of the points.

    See Also
    --------
    PrivatePersistence : Releases the persistence diagrams under differential privacy.
    KernelDistanceFiltration : A smooth alternative with a bandwidth.

    Notes
    -----
    .. rubric:: Privacy

    The filtrations are exact and *not* private. Each carries its
    sensitivity: replacing one point of a cloud changes every value by at most
    ``max_distance / k**(1/p)``. The sums are exact integers, so rounding does
    not widen it.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis". F. Chazal, D. Cohen-Steiner, Q. Mérigot, "Geometric inference
    for probability measures", 2011.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(1000, random_state=0)
    >>> filtration, = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform([X])
    >>> filtration.shape, round(filtration.sensitivity, 4)
    ((101, 101), 0.0163)
    """

    _parameter_constraints = {
        **BaseGridFiltration._parameter_constraints,
        "m": [Interval(Real, 0, 1, closed="right")],
        "p": [Interval(Real, 1, None, closed="left")],
        "max_distance": [Interval(Real, 0, None, closed="right"), None],
    }

    def __init__(
        self,
        m: float = 0.1,
        p: float = 1,
        bounds: Bounds | None = None,
        resolution: int | Sequence[int] | None = None,
        *,
        max_distance: float | None = None,
        method: Literal["auto", "exact", "lattice"] = "auto",
        refinement: int | None = None,
        memory: float = 256.0,
        n_jobs: int | None = None,
    ) -> None:
        self.m = m
        self.p = p
        self.bounds = bounds
        self.resolution = resolution
        self.max_distance = max_distance
        self.method = method
        self.refinement = refinement
        self.memory = memory
        self.n_jobs = n_jobs

    def _statistic(self):
        return f"L{self.p:g} distance-to-measure, m={self.m:g}"

    def _check_scale(self):
        if self._cap() < 1e-9 * self._diameter():
            raise ValueError("max_distance is negligible against the bounds.")

    def _cap(self):
        if self.max_distance is None:
            low, high = self.bounds_
            return float((high - low).max()) / 2
        return min(float(self.max_distance), self._diameter())

    def _power(self, n):
        return FixedPointPower(self._cap(), self.p, neighbour_count(self.m, n))

    def _bounds_of_values(self, n):
        sensitivity = sensitivity_dtm(self.m, n, self.p, self._cap()) + self._power(n).rounding
        return sensitivity, min(self._cap(), self._diameter() / 2)

    def _exact(self, points):
        power = self._power(len(points))
        return power.values(tiled_sums(points, self.axes_, power, self.memory)).ravel()

    def _from_histogram(self, histogram):
        needed = self._lattice_mebibytes()
        if needed > self.memory:
            raise ValueError(
                f"The lattice needs about {needed:.0f} MiB, but memory={self.memory:g} MiB: lower "
                "refinement, resolution or max_distance, or raise memory."
            )
        return lattice_grid_values(histogram, self.refinement_, self._power(histogram.n_points))

    def _reach(self):
        """Nodes of the lattice along each axis, and how many of them the cap spans."""
        sides = np.array(self._lattice_shape())
        low, high = self.bounds_
        spacing = (high - low) / (sides - 1)
        return sides, np.minimum(self._cap() // spacing, sides - 1)

    def _lattice_mebibytes(self):
        """Memory for the padded counts and the sorted offsets."""
        sides, reach = self._reach()
        numbers = np.prod(sides + 2 * reach) + (2 * len(sides) + 4) * np.prod(2 * reach + 1)
        return 8 * numbers / 2**20

    def _costs(self, n, n_nodes):
        """Nanoseconds, roughly, of the exact values and of those from a lattice."""
        k = neighbour_count(self.m, n)
        exact = n_nodes * (_TREE_ELEMENT * k if tree_is_cheaper(n, k) else _ROW_ELEMENT * n)
        if self._lattice_mebibytes() > self.memory:
            return exact, math.inf
        n_offsets = float(np.prod(2 * self._reach()[1] + 1))
        return exact, n_offsets * (n_nodes * _LATTICE_ELEMENT + 2000.0)

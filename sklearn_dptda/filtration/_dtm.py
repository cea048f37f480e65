"""The distance-to-measure of point clouds on a public grid."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import numpy as np

from sklearn_dptda._typing import Bounds
from sklearn_dptda.filtration._base_filtration import BaseGridFiltration
from sklearn_dptda.filtration._filtration_sensitivity import neighbour_count, sensitivity_dtm
from sklearn_dptda.filtration._fixed_point_power import FixedPointPower
from sklearn_dptda.filtration._lattice_dtm import lattice_grid_values
from sklearn_dptda.filtration._nearest import tree_is_cheaper
from sklearn_dptda.filtration._tiles import tiled_sums
from sklearn_dptda.utils._sklearn import Interval

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

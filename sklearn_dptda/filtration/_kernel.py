"""The kernel distance of point clouds on a public grid."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import numpy as np

from sklearn_dptda._typing import Bounds
from sklearn_dptda.filtration._base_filtration import BaseGridFiltration
from sklearn_dptda.filtration._sensitivities import sensitivity_kernel_distance
from sklearn_dptda.utils._sklearn import Interval

# Points per matrix product: it bounds the rounding of the inner products.
_BLOCK = 512


class KernelDistanceFiltration(BaseGridFiltration):
    r"""Gaussian kernel distance to the empirical measure, on a public grid.

    The distance, in the reproducing kernel Hilbert space of
    ``K(x, y) = exp(-|x - y|^2 / (2 bandwidth^2))``, between the embedding of a
    grid node and the mean embedding of the cloud. Low where the points are
    dense; smooth; with no units.

    Parameters
    ----------
    bandwidth : float, default=1.0
        Standard deviation of the kernel, in the units of the data.
    bounds, resolution, method, refinement, memory, n_jobs
        As in :class:`DTMFiltration`.

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

    Notes
    -----
    .. rubric:: Privacy

    The filtrations are exact and *not* private. Replacing one of
    ``n`` points moves the mean embedding, and so every value, by at most
    ``sqrt(2 - 2 K_min) / n`` with ``K_min`` the kernel at the diameter of the
    box; a cloud that sits at one point attains it. The squared distance has
    twice the sensitivity relative to its range, so the plain one is used.
    Values below the sensitivity are raised to it (a map that does not expand
    distances): there the square root would blow up rounding errors.

    References
    ----------
    J. M. Phillips, B. Wang, Y. Zheng, "Geometric inference on kernel density
    estimates", SoCG 2015.

    Examples
    --------
    >>> from sklearn_dptda import KernelDistanceFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(1000, random_state=0)
    >>> filtration, = KernelDistanceFiltration(0.3, bounds=(-3, 3.5)).fit_transform([X])
    >>> round(filtration.sensitivity, 5), round(filtration.upper, 4)
    (0.00141, 1.4142)
    """

    _parameter_constraints = {
        **BaseGridFiltration._parameter_constraints,
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        bandwidth: float = 1.0,
        bounds: Bounds | None = None,
        resolution: int | Sequence[int] | None = None,
        *,
        method: Literal["auto", "exact", "lattice"] = "auto",
        refinement: int | None = None,
        memory: float = 256.0,
        n_jobs: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.bounds = bounds
        self.resolution = resolution
        self.method = method
        self.refinement = refinement
        self.memory = memory
        self.n_jobs = n_jobs

    def _statistic(self):
        return f"Gaussian kernel distance, bandwidth={self.bandwidth:g}"

    def _check_scale(self):
        if not 1e-6 < self.bandwidth / self._diameter() < 1e6:
            raise ValueError(
                "bandwidth is out of proportion to the bounds: their quotient must be between "
                "1e-6 and 1e6."
            )

    def _lipschitz(self):
        # |phi(x) - phi(y)| <= |x - y| / bandwidth.
        return 1.0 / self.bandwidth

    def _plain_sensitivity(self, n):
        """Sensitivity before what pays for roundings."""
        return sensitivity_kernel_distance(n, self.bandwidth, self._diameter())

    def _bounds_of_values(self, n):
        sensitivity = self._plain_sensitivity(n)
        return sensitivity + self._squared_error(n) / sensitivity, math.sqrt(2)

    def _squared_error(self, n):
        """Bound of the rounding of squared distances, both neighbours together.

        Three means of numbers in [0, 1]; an inner product of ``t`` terms, in
        any order, is off by at most ``t`` half units in the last place.
        """
        block = min(n, _BLOCK, self._most_rows(max(self._floats_per_point(), 3 * n)))
        terms = 64 + max(block + n / block, sum(self._lattice_shape()))
        return 8 * terms * 2.0**-53

    def _distance(self, self_energy, mean_kernel, n):
        squared = 1.0 + self_energy - 2.0 * mean_kernel
        return np.sqrt(np.maximum(squared, self._plain_sensitivity(n) ** 2))

    def _gauss(self, a, b):
        scaled = (a[:, None] - b) / self.bandwidth
        return np.exp(-0.5 * scaled**2)

    def _exact(self, points):
        total = np.zeros(self._grid_shape())
        for chunk in self._chunks(points, self._floats_per_point(), _BLOCK):
            # Khatri-Rao product of all axes but the last, then one matrix product.
            product = np.ones((1, len(chunk)))
            for axis, coordinates in enumerate(self.axes_[:-1]):
                factor = self._gauss(coordinates, chunk[:, axis])
                product = (product[:, None, :] * factor).reshape(-1, len(chunk))
            last = self._gauss(self.axes_[-1], chunk[:, -1])
            total += (product @ last.T).reshape(total.shape)
        return self._distance(self._self_energy(points), total.ravel() / len(points), len(points))

    def _self_energy(self, points):
        total = 0.0
        for chunk in self._chunks(points, 3 * len(points)):
            squared = np.zeros((len(chunk), len(points)))
            for axis in range(points.shape[1]):
                squared += (chunk[:, axis, None] - points[:, axis]) ** 2
            total += np.exp(squared / (-2 * self.bandwidth**2)).sum()
        return total / len(points) ** 2

    def _floats_per_point(self):
        shape = self._grid_shape()
        return sum(shape) + math.prod(shape[:-1])

    def _most_rows(self, floats_per_point):
        return max(1, int(self.memory * 2**20 // (8 * floats_per_point)))

    def _chunks(self, points, floats_per_point, most=None):
        rows = self._most_rows(floats_per_point)
        rows = rows if most is None else min(rows, most)
        return (points[i : i + rows] for i in range(0, len(points), rows))

    def _from_histogram(self, histogram):
        weights = histogram.counts / histogram.n_points
        smooth = weights
        for axis, size in enumerate(histogram.shape):
            coordinates = np.linspace(histogram.low[axis], histogram.high[axis], size)
            factor = self._gauss(coordinates, coordinates)
            smooth = np.moveaxis(np.tensordot(factor, smooth, axes=(1, axis)), 0, axis)
        step = tuple(slice(None, None, self.refinement_) for _ in histogram.shape)
        return self._distance(
            float((weights * smooth).sum()), smooth[step].ravel(), histogram.n_points
        )

    def _costs(self, n, n_nodes):
        """Kernel values, a nanosecond each, of the exact values and of those from a lattice."""
        # The self energy costs n**2 kernel values, the counts one product per axis.
        sides = self._lattice_shape()
        return 10.0 * n * n + 1.0 * n * n_nodes, float(np.prod(sides)) * sum(sides)

"""The kernel distance of point clouds on a public grid, and its sensitivity.

Proof: doc/theory/sensitivity.md, "Kernel distance".
"""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import numpy as np

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Bounds, FloatArray, IntArray
from sklearn_dptda.filtration._cloud import LatticeHistogram
from sklearn_dptda.filtration._grid_filtration import BaseGridFiltration, ValuesAhead
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.utils._bounds import diameter
from sklearn_dptda.utils._sklearn import Interval

# Points per matrix product. The number bounds the rounding error of the inner products.
_POINTS_PER_PRODUCT = 512


def sensitivity_kernel_distance(
    n: int, bandwidth: float | None = None, diameter: float | None = None, squared: bool = False
) -> float:
    """Compute the sup-norm sensitivity of the Gaussian kernel distance.

    Replacing one point changes the distance by at most ``sqrt(2 - 2 K(X, X')) / n``, which a
    cloud whose points all coincide attains. The squared distance changes by up to
    ``(4 - 2 / n) / n``, which is more relative to its range. The bound is public, as all
    parameters are.

    Parameters
    ----------
    n : int
        Number of points, or of people if each person is one record.
    bandwidth : float, default=None
        Standard deviation of the kernel, in the units of the data.
    diameter : float, default=None
        Largest distance between two points of the box, in the units of the data. If both
        ``bandwidth`` and ``diameter`` are given,
        ``K(X, X') >= exp(-diameter**2 / (2 bandwidth**2))`` sharpens the bound. Otherwise,
        the bound only uses that the kernel is non-negative.
    squared : bool, default=False
        Whether to return the sensitivity of the squared distance.

    Returns
    -------
    float
        The sensitivity. The kernel distance has no unit.

    Examples
    --------
    >>> from sklearn_dptda.filtration import sensitivity_kernel_distance
    >>> round(sensitivity_kernel_distance(1000), 6)
    0.001414
    """
    step = math.sqrt(2)
    if bandwidth is not None and diameter is not None:
        step = math.sqrt(-2 * math.expm1(-((diameter / bandwidth) ** 2) / 2))
    if squared:
        # The change is (2/n) [K(x,X') - K(x,X) - (1/n) sum_j (K(Xj,X') - K(Xj,X))]. The sum is over
        # the n - 1 unchanged points, and every difference of kernel values is at most 1 - lowest.
        return step * step * (2 - 1 / n) / n
    return step / n


@fill_doc
class KernelDistanceFiltration(BaseGridFiltration):
    """Gaussian kernel distance to the empirical measure of each point cloud, on a public grid.

    This is the distance between a grid node and the cloud in the reproducing kernel Hilbert
    space of ``K(x, y) = exp(-|x - y|^2 / (2 bandwidth^2))``. It is smooth, has no unit, and
    is small where the points are dense.

    Parameters
    ----------
    bandwidth : float, default=1.0
        Standard deviation of the kernel, in the units of the data. A small bandwidth
        resolves small features.
    %(grid_of_clouds)s
    method : {"auto", "exact", "lattice"}, default="auto"
        How to compute the values. It does not affect the sensitivity.

        - ``"exact"`` uses the points.
        - ``"lattice"`` first moves each point to the nearest node of a public lattice, which
          changes values by at most half the diagonal of a cell, divided by ``bandwidth``. It
          is fast for many points.
        - ``"auto"`` chooses the faster method, or exact values if the error of the lattice is
          larger than the sensitivity and they take at most about three seconds.
    %(refinement)s
    %(people_memory_and_jobs)s

    Attributes
    ----------
    bounds_ : tuple of two ndarray of shape (d,)
        Lower and upper bounds of the box, public or released privately.
    bounds_guarantee_ : PrivacyGuarantee or None
        Guarantee of a private box. None if nothing was spent.
    clipped_share_ : float
        Private share of the points outside a private box.
    axes_ : tuple of ndarray
        Coordinates of the public grid along each axis.
    refinement_ : int
        Number of lattice steps per grid step.
    n_features_in_ : int
        Dimension of the points.

    See Also
    --------
    DTMFiltration : The distance-to-measure, in the units of the data.
    PrivatePersistence : Releases the persistence diagrams under differential privacy.

    Notes
    -----
    .. rubric:: Privacy

    The filtrations are exact and *not* private. Each carries its sensitivity: that of
    :func:`sensitivity_kernel_distance` for the diameter of the box, and a bound on rounding
    errors. With ``groups``, it is that of ``n`` people and the replacement of all points of
    one person. Values below the sensitivity are raised to it.

    References
    ----------
    J. M. Phillips, B. Wang, Y. Zheng, "Geometric inference on kernel density estimates",
    SoCG 2015.

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
        bounds: Bounds | PrivateBounds | None = None,
        resolution: int | Sequence[int] | None = None,
        *,
        method: Literal["auto", "exact", "lattice"] = "auto",
        refinement: int | None = None,
        groups: str | bool | None = None,
        memory: float = 256.0,
        n_jobs: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.bounds = bounds
        self.resolution = resolution
        self.method = method
        self.refinement = refinement
        self.groups = groups
        self.memory = memory
        self.n_jobs = n_jobs

    def _check_scale(self) -> None:
        if not 1e-6 < self.bandwidth / diameter(*self.bounds_) < 1e6:
            raise ValueError(
                "bandwidth does not fit the size of bounds: bandwidth divided by the diagonal of "
                "the box must be between 1e-6 and 1e6."
            )

    def _values_ahead(self, n: int) -> ValuesAhead:
        sensitivity = self._plain_sensitivity(n)
        n_nodes, sides = math.prod(map(len, self.axes_)), self._lattice_shape
        return ValuesAhead(
            statistic=f"Gaussian kernel distance, bandwidth={self.bandwidth:g}",
            sensitivity=sensitivity + self._squared_error(n) / sensitivity,
            upper=math.sqrt(2),
            # |phi(x) - phi(y)| <= |x - y| / bandwidth.
            lattice_error=self._lattice_shift * (1.0 / self.bandwidth),
            # One nanosecond per kernel value, and ten per kernel value of the self energy. Counts
            # need one matrix product per axis.
            exact_cost=10.0 * n * n + 1.0 * n * n_nodes,
            lattice_cost=float(np.prod(sides)) * sum(sides),
        )

    def _plain_sensitivity(self, n: int) -> float:
        """Return the sensitivity without the allowance for rounding errors."""
        return sensitivity_kernel_distance(n, self.bandwidth, diameter(*self.bounds_))

    def _squared_error(self, n: int) -> float:
        """Bound the rounding error of squared distances of both neighbours together.

        A squared distance consists of three means of numbers in [0, 1]. An inner product of ``t``
        terms has an error of at most ``t`` half units in the last place.
        """
        rows = self._rows_in_memory(max(self._floats_per_point(), 3 * n))
        block = min(n, _POINTS_PER_PRODUCT, rows)
        terms = 64 + max(block + n / block, sum(self._lattice_shape))
        return 8 * terms * 2.0**-53

    def _exact(self, points: FloatArray) -> list[FloatArray]:
        return [self._of_measure(points, None)]

    def _from_weights(self, points: FloatArray, weights: IntArray) -> FloatArray:
        return self._of_measure(points, weights.astype(float))

    def _of_measure(self, points: FloatArray, weights: FloatArray | None) -> FloatArray:
        """Compute the distance from the points with these weights, or all with the same."""
        n, total = len(points), len(points) if weights is None else float(weights.sum())
        mean_kernel = np.zeros(tuple(map(len, self.axes_)))
        rows = min(self._rows_in_memory(self._floats_per_point()), _POINTS_PER_PRODUCT)
        for start in range(0, n, rows):
            chunk = points[start : start + rows]
            # A Khatri-Rao product of all axes but the last, followed by one matrix product.
            product = (
                np.ones((1, len(chunk))) if weights is None else weights[None, start:][:, :rows]
            )
            for axis, coordinates in enumerate(self.axes_[:-1]):
                factor = self._gauss(coordinates, chunk[:, axis])
                product = (product[:, None, :] * factor).reshape(-1, len(chunk))
            last = self._gauss(self.axes_[-1], chunk[:, -1])
            mean_kernel += (product @ last.T).reshape(mean_kernel.shape)
        mean_kernel /= total
        self_energy, rows = 0.0, self._rows_in_memory(3 * n)
        for start in range(0, n, rows):
            chunk = points[start : start + rows]
            squared = np.zeros((len(chunk), n))
            for axis in range(points.shape[1]):
                squared += (chunk[:, axis, None] - points[:, axis]) ** 2
            kernel = np.exp(squared / (-2 * self.bandwidth**2))
            if weights is None:
                self_energy += kernel.sum()
            else:
                self_energy += float(weights[start : start + rows] @ kernel @ weights)
        return self._distance(self_energy / total**2, mean_kernel, n if weights is None else None)

    def _from_histogram(self, histogram: LatticeHistogram) -> list[FloatArray]:
        weights = histogram.counts / (histogram.n_points << histogram.weight_bits)
        smooth = weights
        for axis, size in enumerate(histogram.shape):
            coordinates = np.linspace(histogram.low[axis], histogram.high[axis], size)
            factor = self._gauss(coordinates, coordinates)
            smooth = np.moveaxis(np.tensordot(factor, smooth, axes=(1, axis)), 0, axis)
        step = tuple(slice(None, None, self.refinement_) for _ in histogram.shape)
        self_energy = float((weights * smooth).sum())
        return [self._distance(self_energy, smooth[step], histogram.n_points)]

    def _distance(self, self_energy: float, mean_kernel: FloatArray, n: int | None) -> FloatArray:
        """Return the distance, at least as large as its sensitivity for ``n`` records."""
        squared = 1.0 + self_energy - 2.0 * mean_kernel
        least = 0.0 if n is None else self._plain_sensitivity(n)
        return np.sqrt(np.maximum(squared, least**2))

    def _gauss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        scaled = (a[:, None] - b) / self.bandwidth
        return np.exp(-0.5 * scaled**2)

    def _floats_per_point(self) -> int:
        sizes = [len(axis) for axis in self.axes_]
        return sum(sizes) + math.prod(sizes[:-1])

    def _rows_in_memory(self, floats_per_row: int) -> int:
        return max(1, int(self.memory * 2**20 // (8 * floats_per_row)))

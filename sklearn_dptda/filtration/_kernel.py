"""The kernel distance of point clouds on a public grid, and its sensitivity.

Proof: doc/theory/sensitivity.md, "Kernel distance".
"""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import numpy as np

from sklearn_dptda._typing import Bounds, FloatArray
from sklearn_dptda.filtration._grid_filtration import BaseGridFiltration, ValuesAhead
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.utils._bounds import diameter
from sklearn_dptda.utils._sklearn import Interval

# Points per matrix product: their number bounds the rounding of the inner products.
_POINTS_PER_PRODUCT = 512


def sensitivity_kernel_distance(
    n: int, bandwidth: float | None = None, diameter: float | None = None, squared: bool = False
) -> float:
    """Sup-norm sensitivity of the Gaussian kernel distance.

    One replaced point moves the mean embedding by ``(phi(X') - phi(X)) / n``,
    of norm at most ``sqrt(2 - 2 K(X, X')) / n``; by the triangle inequality
    the distance to the embedding moves by no more, and a cloud that sits at
    one point attains it. The squared distance moves by up to
    ``(4 - 2 / n) / n``: over a range of 2 against ``sqrt(2)`` this is worse,
    so the filtration uses the plain distance.

    Parameters
    ----------
    n : int
        Number of points.
    bandwidth, diameter : float or None
        With both, ``K(X, X') >= exp(-diameter**2 / (2 bandwidth**2))``
        sharpens the bound; without, the kernel is only known to be
        non-negative.
    squared : bool, default=False
        Return the sensitivity of the squared distance.

    Returns
    -------
    float
    """
    step = math.sqrt(2)
    if bandwidth is not None and diameter is not None:
        step = math.sqrt(-2 * math.expm1(-((diameter / bandwidth) ** 2) / 2))
    if squared:
        # (2/n) [K(x,X') - K(x,X) - (1/n) sum_j (K(Xj,X') - K(Xj,X))], the sum over the n - 1
        # points that stay, and every difference of kernel values at most 1 - lowest.
        return step * step * (2 - 1 / n) / n
    return step / n


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
    bounds, resolution, method, refinement, groups, memory, n_jobs
        As in :class:`DTMFiltration`.

    Attributes
    ----------
    bounds_, bounds_guarantee_, clipped_share_, axes_, refinement_, n_features_in_
        As in :class:`DTMFiltration`.

    Notes
    -----
    .. rubric:: Privacy

    The filtrations are exact and *not* private. Replacing one of
    ``n`` points moves the mean embedding, and so every value, by at most
    ``sqrt(2 - 2 K_min) / n`` with ``K_min`` the kernel at the diameter of the
    box; a cloud that sits at one point attains it. With ``groups`` the same
    holds of ``n`` people, and all points of one of them. The squared distance has
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
                "bandwidth is out of proportion to the bounds: their quotient must be between "
                "1e-6 and 1e6."
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
            # One nanosecond for each kernel value, of which the counts need one product per axis;
            # ten for each of the self energy.
            exact_cost=10.0 * n * n + 1.0 * n * n_nodes,
            lattice_cost=float(np.prod(sides)) * sum(sides),
        )

    def _plain_sensitivity(self, n: int) -> float:
        """Sensitivity before what pays for roundings."""
        return sensitivity_kernel_distance(n, self.bandwidth, diameter(*self.bounds_))

    def _squared_error(self, n: int) -> float:
        """Bound of the rounding of squared distances, both neighbours together.

        Three means of numbers in [0, 1]; an inner product of ``t`` terms, in
        any order, is off by at most ``t`` half units in the last place.
        """
        rows = self._rows_in_memory(max(self._floats_per_point(), 3 * n))
        block = min(n, _POINTS_PER_PRODUCT, rows)
        terms = 64 + max(block + n / block, sum(self._lattice_shape))
        return 8 * terms * 2.0**-53

    def _exact(self, points: FloatArray) -> list[FloatArray]:
        n = len(points)
        mean_kernel = np.zeros(tuple(map(len, self.axes_)))
        rows = min(self._rows_in_memory(self._floats_per_point()), _POINTS_PER_PRODUCT)
        for chunk in (points[i : i + rows] for i in range(0, n, rows)):
            # Khatri-Rao product of all axes but the last, then one matrix product.
            product = np.ones((1, len(chunk)))
            for axis, coordinates in enumerate(self.axes_[:-1]):
                factor = self._gauss(coordinates, chunk[:, axis])
                product = (product[:, None, :] * factor).reshape(-1, len(chunk))
            last = self._gauss(self.axes_[-1], chunk[:, -1])
            mean_kernel += (product @ last.T).reshape(mean_kernel.shape)
        mean_kernel /= n
        self_energy, rows = 0.0, self._rows_in_memory(3 * n)
        for chunk in (points[i : i + rows] for i in range(0, n, rows)):
            squared = np.zeros((len(chunk), n))
            for axis in range(points.shape[1]):
                squared += (chunk[:, axis, None] - points[:, axis]) ** 2
            self_energy += np.exp(squared / (-2 * self.bandwidth**2)).sum()
        return [self._distance(self_energy / n**2, mean_kernel, n)]

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

    def _distance(self, self_energy: float, mean_kernel: FloatArray, n: int) -> FloatArray:
        squared = 1.0 + self_energy - 2.0 * mean_kernel
        return np.sqrt(np.maximum(squared, self._plain_sensitivity(n) ** 2))

    def _gauss(self, a: FloatArray, b: FloatArray) -> FloatArray:
        scaled = (a[:, None] - b) / self.bandwidth
        return np.exp(-0.5 * scaled**2)

    def _floats_per_point(self) -> int:
        sizes = [len(axis) for axis in self.axes_]
        return sum(sizes) + math.prod(sizes[:-1])

    def _rows_in_memory(self, floats_per_row: int) -> int:
        return max(1, int(self.memory * 2**20 // (8 * floats_per_row)))

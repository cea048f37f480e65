"""Weighted clouds that were released under differential privacy: public input from then on.

Proof: doc/theory/private_cloud.md, "Post-processing".
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray, RandomStateLike
from sklearn_dptda.privacy._noise import NoiseSource, public_generator, spawn_seeds
from sklearn_dptda.privacy._stored_release import storable

# The integer weights of a cloud add up to this number: sums of distances fit into 64 bits.
TOTAL_WEIGHT = 1 << 22
# The grid of cells has loops of its own. If each node of a lattice has the mass of a value, the
# distance is zero at nodes and 1 / sqrt(2) of a cell in the middle of four of them, which edges
# close at one half.
_LOOP_OF_CELLS = 2**-0.5 - 0.5


@dataclass(frozen=True, eq=False)
class ReleasedCloud:
    """A weighted cloud that :class:`PrivateCloud` released: cells of a box, with private counts.

    It is public. Estimators of this package that take clouds take it at no further cost, for any
    parameters: :class:`DTMFiltration` and :class:`KernelDistanceFiltration` as the weighted
    ``points``, and any other estimator the rows of :meth:`sample`.

    Parameters
    ----------
    counts : ndarray of int64, of n_features dimensions
        Noisy numbers of points in the cells, some of them negative; with people, sums of weights.
    low, high : ndarray of shape (n_features,)
        The box, in the units of the data.
    n_points : int
        Number of points, or of people: public, or released.
    scale : float
        Scale of the noise of a count; 0 for exact counts.
    weight : int, default=1
        Weight of one record in ``counts``.

    Attributes
    ----------
    points : ndarray of shape (n_cells, n_features)
        Centres of the cells with a positive weight.
    weights : ndarray of shape (n_cells,)
        Their weights, in records. They add up to ``n_points``, and are the non-negative numbers
        nearest to the noisy counts that do so.
    cell : ndarray of shape (n_features,)
        Sides of a cell, in the units of the data.
    lattice_loop : float
        Persistence of loops that the cells themselves have in a distance-to-measure: 0.21 of the
        longest side of a cell. Shorter loops say nothing about the records.
    n_features : int
        Dimension of the points.

    See Also
    --------
    PrivateCloud : Releases such clouds.

    Examples
    --------
    >>> from sklearn_dptda import PrivateCloud
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(1000, random_state=0)
    >>> cloud, = PrivateCloud(1.0, bounds=(-2.5, 3), random_state=0).fit_transform([X])
    >>> cloud.counts.shape, round(float(cloud.weights.sum()))
    ((13, 13), 1000)
    >>> cloud.sample(200, random_state=0).shape
    (200, 2)
    """

    counts: IntArray = field(repr=False)
    low: FloatArray
    high: FloatArray
    n_points: int
    scale: float
    weight: int = 1

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return self.counts.ndim

    @property
    def cell(self) -> FloatArray:
        """Sides of a cell."""
        return (self.high - self.low) / np.array(self.counts.shape)

    @property
    def lattice_loop(self) -> float:
        """Persistence of loops that the cells themselves have."""
        return _LOOP_OF_CELLS * float(self.cell.max())

    @cached_property
    def _masses(self) -> FloatArray:
        """Masses of all cells, in records."""
        return projected(self.counts.ravel() / self.weight, self.n_points)

    @property
    def weights(self) -> FloatArray:
        """Weights of the centres, in records."""
        return self._masses[self._masses > 0]

    @property
    def points(self) -> FloatArray:
        """Centres of the cells with a positive weight."""
        places = np.array(np.unravel_index(np.flatnonzero(self._masses > 0), self.counts.shape)).T
        return self.low + (places + 0.5) * self.cell

    def integer_weights(self) -> tuple[FloatArray, IntArray]:
        """Return the centres and their weights as integers, whose sum is 2**22.

        Returns
        -------
        points : ndarray of shape (n_cells, n_features)
        weights : ndarray of int64, of shape (n_cells,)
        """
        upto = np.cumsum(self.weights)
        weights = np.diff(np.rint(upto * (TOTAL_WEIGHT / upto[-1])).astype(np.int64), prepend=0)
        return self.points[weights > 0], weights[weights > 0]

    def sample(self, n_samples: int | None = None, random_state: RandomStateLike = None) -> Any:
        """Draw points from the released measure, evenly within each cell: post-processing.

        Parameters
        ----------
        n_samples : int, default=None
            Number of points. None: ``n_points``.
        random_state : int, RandomState instance, Generator or None, default=None
            Source of the draw.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Points within the box.
        """
        rng = public_generator(spawn_seeds(random_state, 1)[0])
        n = self.n_points if n_samples is None else int(n_samples)
        cells = rng.choice(len(self._masses), n, p=self._masses / self._masses.sum())
        places = np.array(np.unravel_index(cells, self.counts.shape)).T
        return self.low + (places + rng.random(places.shape)) * self.cell

    def resample(self, random_state: RandomStateLike = None) -> Self:
        """Release the released measure once more, with new noise of the same law.

        How much a result differs between resamples shows how much of it is noise.

        Parameters
        ----------
        random_state : int, RandomState instance, Generator or None, default=None
            Source of the noise.

        Returns
        -------
        ReleasedCloud
        """
        noise = NoiseSource(spawn_seeds(random_state, 1)[0])
        exact = np.rint(self._masses * self.weight).astype(np.int64).reshape(self.counts.shape)
        noisy = exact + noise.discrete_laplace(self.scale, self.counts.shape)
        return replace(self, counts=noisy)


def projected(values: FloatArray, total: float) -> FloatArray:
    """Return the non-negative numbers with this sum that are nearest to the given ones."""
    descending = np.sort(values)[::-1]
    shifts = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    return np.maximum(values - shifts[np.flatnonzero(descending > shifts)[-1]], 0.0)


storable(
    "released cloud",
    ReleasedCloud,
    lambda cloud: {
        name: getattr(cloud, name)
        for name in ("counts", "low", "high", "n_points", "scale", "weight")
    },
    ReleasedCloud,
)

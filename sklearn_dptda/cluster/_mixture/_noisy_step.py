"""A step from noisy moments: where centres go, and how much noise they take along."""

from dataclasses import dataclass

import numpy as np

from sklearn_dptda.cluster._mixture._centres import inside
from sklearn_dptda.cluster._moments._joint_moments import Moments
from sklearn_dptda.cluster._moments._shrinkage import KEPT, floored_counts, shrunk_steps


@dataclass(frozen=True)
class NoisyClusters:
    """Centres and numbers of rows, and standard deviations of the noise in both.

    The noise is that of one release, given all before it, to first order: relative to numbers of
    rows, and without shrinkage, which makes errors smaller on average.
    """

    centres: np.ndarray
    counts: np.ndarray
    sd_centres: np.ndarray
    sd_counts: np.ndarray

    @property
    def weights(self):
        """Shares of the rows."""
        return self.counts / self.counts.sum()

    @property
    def sd_weights(self):
        """Standard deviations of the noise in the shares: counts over a sum that has it too."""
        variances, weights = self.sd_counts**2, self.weights
        total = variances * (1 - 2 * weights) + weights**2 * variances.sum()
        return np.sqrt(total) / self.counts.sum()

    @property
    def within_noise(self):
        """Which clusters have no more rows than noise makes."""
        return self.counts <= KEPT * self.sd_counts


@dataclass(frozen=True)
class NoisyStep:
    """Moments of cells about some centres, in units of a radius, and what follows from them.

    The radius is a number, or one for each cell, of shape (n_cells, 1).
    """

    centres: np.ndarray
    radius: float | np.ndarray
    moments: Moments

    @property
    def counts(self):
        """Noisy counts, floored."""
        return floored_counts(self.moments)

    @property
    def means(self):
        """Means of the cells."""
        return inside(self.centres + self.radius * shrunk_steps(self.moments))

    def clusters(self):
        """Each cell as a cluster."""
        everything = np.arange(len(self.centres))
        return self.pooled(everything, everything, self.means)

    def pooled(self, cells, labels, means, sd_counts=None):
        """Clusters of some cells, by their labels, about the means of their rows.

        A row that noise makes in a cell pulls a mean to the cell's centre, since the moments are
        about that one. ``sd_counts``, of all cells, are as they were released where none are given.
        """
        k, d = means.shape
        if sd_counts is None:
            sd_counts = np.full(len(self.centres), self.moments.sd_count)
        radii = np.broadcast_to(self.radius, (len(self.centres), 1))[cells]
        pulls = sd_counts[cells, None] * (self.centres[cells] - means[labels])
        variances = np.zeros((k, d))
        np.add.at(variances, labels, pulls**2 + (radii * self.moments.sd_sum) ** 2)
        counts = np.bincount(labels, self.counts[cells], minlength=k)
        return NoisyClusters(
            means,
            counts,
            np.sqrt(variances) / counts[:, None],
            np.sqrt(np.bincount(labels, sd_counts[cells] ** 2, minlength=k)),
        )

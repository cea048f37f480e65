"""Joint moments of the cells of a partition, and their sensitivity."""

from dataclasses import dataclass, replace

import numpy as np

from sklearn_dptda.privacy import Sensitivity


@dataclass(frozen=True)
class MomentWeights:
    """Squared weights of count, sum and second moment in one joint release.

    A record in its cell contributes ``(w0, w1 u, w2 q(u))`` with a residual ``u`` of norm at most
    one.

    **L2.** ``q`` stacks the diagonal of ``u u'`` and ``sqrt(2)`` times its upper triangle, or the
    diagonal alone, or the trace. In each case ``norm(q(u)) <= 1``, and contributions of ``u`` and
    ``v`` have an inner product of at least ``k(t) = w0**2 + w1**2 t + w2**2 t**2`` with ``t = u .
    v``, or are no further apart than if they had.

    **L1.** ``q`` stacks the upper triangle without the factor; then the L1 norm of ``q(u)`` is at
    most one where that of ``u`` is.
    """

    count: float
    sum: float = 0.0
    second_moment: float = 0.0

    @property
    def roots(self):
        """The weights themselves."""
        return self.count**0.5, self.sum**0.5, self.second_moment**0.5

    def sensitivity(self, adjacency, norm="l2"):
        """Sensitivity of the moments of all cells together.

        One more record changes one cell by at most the norm of one contribution. A replaced record
        changes two cells, or one cell by the difference of two contributions: squared, in L2, at
        most twice the total less twice the least ``k``.
        """
        if norm == "l1":
            factor = 1 if adjacency == "add-remove" else 2
            return Sensitivity(factor * sum(self.roots), "l1", adjacency)
        total = self.count + self.sum + self.second_moment
        if adjacency == "add-remove":
            return Sensitivity(total**0.5, "l2", adjacency)
        steep = 2 * self.second_moment
        t = -1.0 if steep <= self.sum else -self.sum / steep
        least = self.count + self.sum * t + self.second_moment * t * t
        return Sensitivity((2 * total - 2 * min(least, 0.0)) ** 0.5, "l2", adjacency)


@dataclass(frozen=True)
class Moments:
    """Noisy moments of residuals, in units of the clipping radius.

    Second moments have shape (n_cells, n_features, n_features), or one for all cells where they
    are tied. ``sd_count`` and ``sd_sum`` are standard deviations of the noise of a count and of a
    coordinate of a sum, ``var_second_moment`` the expected squared Frobenius norm of the noise of a
    second moment, and ``var_trace`` the variance of its trace.
    """

    counts: np.ndarray
    sums: np.ndarray
    second_moments: np.ndarray | None
    sd_count: float
    sd_sum: float
    var_second_moment: float = 0.0
    var_trace: float = 0.0

    def redrawn(self, rng):
        """Moments with as much noise once more, normal: how far they are to be trusted."""
        shape = self.second_moments.shape
        noise = rng.standard_normal(shape)
        noise = (noise + np.swapaxes(noise, 1, 2)) / 2
        # As many entries have noise as the kind of second moments has.
        noise = np.where(self.second_moments == 0, 0.0, noise)
        size = np.sqrt((noise**2).sum(axis=(1, 2), keepdims=True))
        scale = np.sqrt(self.var_second_moment) / np.maximum(size, 1e-300)
        return replace(
            self,
            counts=self.counts + self.sd_count * rng.standard_normal(self.counts.shape),
            sums=self.sums + self.sd_sum * rng.standard_normal(self.sums.shape),
            second_moments=self.second_moments + scale * noise,
        )

"""Noise for a share of a budget: releases of moments, and choices."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from sklearn_dptda.privacy import FixedPoint, NoiseSource, Sensitivity, private_choice
from sklearn_dptda.privacy._fixed_point import ROUND_DOWN, ROUND_UP
from sklearn_dptda.rows._moments import release_moments

# No finer lattice than for this scale: sums of 2**35 rows stay within 64 bits.
_FINEST = 4.0


@dataclass(frozen=True)
class Budget(ABC):
    """What all releases of one fit may lose together; each takes a share of it.

    ``total`` is in the terms of the kind of noise; ``inf`` takes none. ``norm`` is the one in
    which sensitivities are measured.
    """

    total: float
    adjacency: str
    noise: NoiseSource

    @abstractmethod
    def scale(self, sensitivity, share):
        """Scale of the noise of a release."""

    @abstractmethod
    def draw(self, scale, size):
        """Integer noise."""

    @staticmethod
    @abstractmethod
    def deviation(scale):
        """Standard deviation of noise."""

    @abstractmethod
    def choice_epsilon(self, share):
        """Loss of a choice."""

    @abstractmethod
    def rest(self, spent):
        """What is left after a share; shares may follow from what earlier ones have released."""

    def release(self, rows, assign, n_cells, weights, share, kind=None, soft=False):
        """Release moments; see :func:`release_moments`."""
        return release_moments(rows, assign, n_cells, weights, self, share, kind, soft)

    def counts(self, counts, touched, share):
        """Counts with noise, and its standard deviation; one row is in ``touched`` of the cells."""
        scale = self.scale_of_counts(touched, share)
        # Steps of one at most: counts are whole multiples of them, and rounding moves nothing.
        lattice = FixedPoint(min(FixedPoint.for_scale(max(scale, _FINEST)).exponent, 0))
        noise = self.draw(scale / lattice.step, counts.shape)
        return lattice.decode(lattice.encode(counts) + noise), self.deviation(scale)

    def scale_of_counts(self, touched, share):
        """Scale of the noise of counts, of which one row is in ``touched``."""
        moves = touched if self.adjacency == "add-remove" else 2 * touched
        value = float(moves) if self.norm == "l1" else math.sqrt(moves)
        return self.scale(Sensitivity(value, self.norm, self.adjacency), share)

    def choose(self, costs, largest, share):
        """Choose an index of small cost, each cost a sum over records of costs in 0..largest."""
        # One more record moves all costs the same way, a replaced one both ways.
        span = largest if self.adjacency == "add-remove" else 2 * largest
        rate = self.choice_epsilon(share) / span
        return private_choice(costs, rate, self.noise, bounded_range=self.norm == "l2")


class GaussianBudget(Budget):
    """Gaussian noise; ``total`` is the Gaussian privacy parameter of all releases together.

    Shares are of its square. With choices among the releases they are ``total**2 / 2``-zCDP
    together.
    """

    norm = "l2"

    def scale(self, sensitivity, share):
        return sensitivity.value / (self.total * math.sqrt(share))

    def draw(self, scale, size):
        return self.noise.discrete_gaussian(scale, size)

    def rest(self, spent):
        return replace(self, total=self.total * math.sqrt(1 - spent))

    @staticmethod
    def deviation(scale):
        return scale

    def choice_epsilon(self, share):
        # The zCDP of a choice is one eighth of the square of its loss (bounded range).
        return 2 * self.total * math.sqrt(share)


class LaplaceBudget(Budget):
    """Laplace noise; ``total`` is the epsilon of all releases together."""

    norm = "l1"

    def scale(self, sensitivity, share):
        # Rounded up: no loss of a last digit.
        return sensitivity.value / (self.total * share) * ROUND_UP

    def draw(self, scale, size):
        return self.noise.discrete_laplace(scale, size)

    def rest(self, spent):
        return replace(self, total=self.total * (1 - spent))

    @staticmethod
    def deviation(scale):
        return math.sqrt(2) * scale

    def choice_epsilon(self, share):
        return self.total * share * ROUND_DOWN

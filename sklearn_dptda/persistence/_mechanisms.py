"""The public grid on which private diagrams live."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice

import numpy as np

from sklearn_dptda.persistence._base_measure import make_base_measure, spike_of_range
from sklearn_dptda.persistence._exact_sampler import ExactSampler, decay_table
from sklearn_dptda.persistence._level_sets import BirthBall, DiagramBall
from sklearn_dptda.privacy import (
    NoiseSource,
    bounded_range_rate,
)
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import bottleneck_distance

# Part of the entropic scale of one point of a diagram that a step is: finer is slower, and no
# private mechanism is accurate enough to tell.
PART_OF_SCALE = 8
MIN_SIZE, MAX_SIZE = 64, 2**16
# Share of epsilon that the share of clipped points is released with, where that is asked for.
CLIPPED_SHARE = 0.05
# Room for the roundings between a value and its grid index.
MARGIN = 1 + 2.0**-30


@dataclass(frozen=True)
class DiagramGrid:
    """Coordinates ``0, step, ..., size * step`` of births and deaths, up to the bound ``upper``.

    Diagrams of neighbours are at most ``sensitivity`` steps apart; ``upper`` is the death of the
    class that never dies.
    """

    step: float
    size: int
    sensitivity: int
    upper: float

    def integers(self, diagram):
        """Round a diagram to the grid and drop what falls on the diagonal.

        Rounding is one monotone map of the coordinates: when ``x' <= x + sensitivity * step``,
        the rounded values obey the same inequality in steps, so rounding costs no privacy.
        """
        rounded = self._rounded(np.asarray(diagram, dtype=float).reshape(-1, 2)).astype(np.int64)
        return rounded[rounded[:, 1] > rounded[:, 0]]

    def integer(self, value):
        """Round one value to the grid."""
        return int(self._rounded(value))

    def _rounded(self, values):
        return np.clip(np.floor(values / self.step + 0.5), 0, self.size)

    def values(self, points):
        """Turn grid points into a diagram, sorted, without zero persistence."""
        diagram = np.array(sorted(points), dtype=float).reshape(-1, 2) * self.step
        diagram = np.minimum(diagram, self.upper)
        return diagram[diagram[:, 1] > diagram[:, 0]]


def make_grid(sensitivity, upper, epsilon):
    """Choose the grid from public numbers: bottleneck sensitivity, bound of the values, loss.

    The step divides the sensitivity, so that this is a whole number of steps and nothing is lost;
    only where it is less than one step of the finest grid, it counts as one. It is at most a part
    of the entropic scale of one point, which moves in a plane with the maximum norm:
    ``4 log(2) / epsilon`` sensitivities (Boedihardjo, Strohmer, Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Theorem 6.1; what ``normed_scale(2, alpha=epsilon)`` is).
    """
    padded = sensitivity * MARGIN
    # In units of the sensitivity.
    entropic_scale = 4 * math.log(2) / epsilon
    steps = max(math.ceil(PART_OF_SCALE / entropic_scale), math.ceil(MIN_SIZE * padded / upper), 1)
    # So many at most: still whole numbers, so that the sensitivity is not rounded up.
    steps = min(steps, max(math.floor(MAX_SIZE * padded / upper), 1))
    step = max(padded / steps, upper / MAX_SIZE * MARGIN)
    return DiagramGrid(step, math.ceil(upper / step), steps, upper)


def epsilon_of_draws(estimator):
    """Privacy loss of the diagrams of a :class:`PrivatePersistence`, without that of a count."""
    return float(estimator.epsilon) * (1 - CLIPPED_SHARE * estimator.clipped_share)


def rate_of_draw(epsilon, delta, utility, dimensions):
    """Privacy loss of one draw: all of it, or the share of one dimension of ``dimensions``."""
    if utility == "max":
        return float(epsilon)
    return bounded_range_rate(float(epsilon), float(delta), len(dimensions))


# One diagram in, one private diagram out: the mechanisms behind the estimator.


def _out_of_range(sensitivity, upper):
    return ValueError(
        f"sensitivity={quoted(sensitivity)} and upper={quoted(upper)} are too far apart for "
        "floating point."
    )


@dataclass(frozen=True)
class ExactMechanism:
    """Exponential mechanism of the bottleneck distance, drawn exactly.

    One draw has a privacy loss of ``rate``; ``joint`` makes one draw for all dimensions, by their
    largest distance, instead of one per dimension. The others make the base measure.
    """

    rate: float
    joint: bool
    max_points: int
    base_measure: str
    spike: float | str
    mean_points: float
    linear: bool

    def release(self, diagrams, dimensions, sensitivity, upper, seed):
        """Draw private diagrams by exact ones; ``sensitivity`` and ``upper`` are public."""
        grid, table = self.prepare(sensitivity, upper)
        source = NoiseSource(seed)
        measure = self.measure(sensitivity, upper)
        balls = [
            _balls(diagram, q, grid, measure)
            for diagram, q in zip(diagrams, dimensions, strict=True)
        ]
        common = [[ball for group in balls for ball in group]] if self.joint else balls
        parts = chain.from_iterable(ExactSampler(group, table).draw(source) for group in common)
        return [grid.values(chain.from_iterable(islice(parts, len(group)))) for group in balls]

    def check(self, sensitivity, upper):
        """Raise ValueError if these public numbers leave the range of floats."""
        try:
            self.prepare(sensitivity, upper)
        except (OverflowError, ZeroDivisionError):
            raise _out_of_range(sensitivity, upper) from None

    def measure(self, sensitivity, upper):
        """Make the base measure of one diagram: public."""
        grid, _ = self.prepare(sensitivity, upper)
        spike = self.spike
        if spike == "auto":
            spike = spike_of_range(self.rate * upper / sensitivity, self.max_points)
        return make_base_measure(
            self.base_measure,
            grid.size,
            self.max_points,
            spike=spike,
            mean=self.mean_points,
            linear=self.linear,
        )

    def prepare(self, sensitivity, upper):
        """Make the grid and the weights of the levels: public, and the same for neighbours."""
        grid = make_grid(sensitivity, upper, self.rate)
        per_step = Fraction(self.rate) / (2 * grid.sensitivity)
        # Births can be grid.size apart: the last level must hold every diagram, or supports
        # would depend on the data.
        table = decay_table(per_step.numerator, per_step.denominator, grid.size + 1)
        return grid, table


def _balls(diagram, q, grid, measure):
    """Balls of one dimension: finite classes, and the one that never dies."""
    if q > 0:
        return [DiagramBall(grid.integers(diagram), measure)]
    if len(diagram) == 0:
        # The whole function sits at its upper bound, which is rounded like any birth.
        diagram = np.array([[grid.upper, grid.upper]])
    # The oldest component is the one that never dies; its death is public.
    first = int(np.lexsort((-diagram[:, 1], diagram[:, 0]))[0])
    rest = np.delete(diagram, first, axis=0)
    birth = grid.integer(diagram[first, 0])
    return [DiagramBall(grid.integers(rest), measure), BirthBall(birth, grid.size)]


@dataclass(frozen=True)
class MarkovChainMechanism:
    """Metropolis-Hastings, all points moved at once, from public starting values.

    Its stationary law is the exponential mechanism with exactly ``max_points`` uniform points, at
    a privacy loss of ``rate`` per draw; the law after finitely many steps only approximates it,
    so the privacy bound is nominal. ``joint`` runs one chain for all dimensions, by their largest
    distance; steps have the standard deviation ``proposal_scale``, in the units of the filtration.
    """

    rate: float
    joint: bool
    max_points: int
    n_iter: int
    proposal_scale: float

    def check(self, sensitivity, upper):
        """Raise ValueError if these public numbers leave the range of floats."""
        if not (2 * sensitivity > 0 and math.isfinite(self.rate / (2 * sensitivity))):
            raise _out_of_range(sensitivity, upper)

    def release(self, diagrams, dimensions, sensitivity, upper, seed):
        """Run the chain; see :meth:`ExactMechanism.release`."""
        rng = NoiseSource(seed).generator()
        slope = self.rate / (2 * sensitivity)
        if self.joint:
            return self._chain(list(diagrams), slope, upper, rng)
        return [self._chain([diagram], slope, upper, rng)[0] for diagram in diagrams]

    def _chain(self, diagrams, slope, upper, rng):
        state = np.sort(rng.uniform(0, upper, (len(diagrams), self.max_points, 2)), axis=2)
        cost = self._cost(state, diagrams)
        for _ in range(self.n_iter):
            proposal = state + self.proposal_scale * rng.standard_normal(state.shape)
            inside = (
                (proposal >= 0).all()
                and (proposal <= upper).all()
                and (proposal[..., 0] <= proposal[..., 1]).all()
            )
            if not inside:
                continue
            new_cost = self._cost(proposal, diagrams)
            if math.log1p(-rng.random()) < slope * (cost - new_cost):
                state, cost = proposal, new_cost
        return [part[np.lexsort((part[:, 1], part[:, 0]))] for part in state]

    def _cost(self, state, diagrams):
        return max(
            bottleneck_distance(part, diagram)
            for part, diagram in zip(state, diagrams, strict=True)
        )


def mechanism_of(estimator, dimensions):
    """Mechanism by the parameters of a :class:`PrivatePersistence`; None where it is exact."""
    if math.isinf(estimator.epsilon):
        return None
    epsilon = epsilon_of_draws(estimator)
    rate = rate_of_draw(epsilon, estimator.delta, estimator.utility, dimensions)
    common = (rate, estimator.utility == "max", int(estimator.max_points))
    if estimator.mechanism == "mcmc":
        return MarkovChainMechanism(*common, estimator.n_iter, estimator.proposal_scale)
    return ExactMechanism(
        *common,
        estimator.base_measure,
        estimator.spike,
        estimator.mean_points,
        estimator.slab == "persistence",
    )

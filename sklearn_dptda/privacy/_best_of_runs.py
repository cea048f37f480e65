"""The best of a random number of private runs: the law of the number, and what the best run loses.

A run has any loss whose curve is known. Its law is a function of public numbers alone.

Proof: doc/theory/private_search.md, "The best of a random number of runs".
"""

import math
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from typing import Self

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._noise import NoiseSource
from sklearn_dptda.privacy._risk import LARGEST_LOSS, Curve

# Mean of the geometric law before it is cut, and the bits of its weights.
_GEOMETRIC_MEAN, _WEIGHT_BITS = 10, 64
# Losses at which the curve of a run is evaluated, in relation to the loss of the run.
_TANGENTS = np.concatenate([np.linspace(0, 1, 129), np.linspace(1, 4, 97)[1:]])
# Cells of shares of runs, by their logarithm, and how much a bound may exceed the exact loss.
_LEAST_SHARE, _N_CELLS, _TOLERANCE, _MOST_CELLS = 1e-12, 400, 1e-4, 20_000
_MOST_HALVINGS = 40
# Covers rounding errors of sums of at most 2**10 positive terms, of logarithms and exponentials.
_UP, _UP_BY, _ROUNDING = 1 + 2.0**-40, 1e-12, 2.0**-50


@dataclass(frozen=True)
class NumberOfRuns:
    """Law of a number of runs: whole weights of 1, 2, ... runs, of which the first is positive."""

    weights: tuple[int, ...]

    @classmethod
    def reciprocal(cls, most: int) -> Self:
        """Return the law whose weights are 1, 1/2, ..., 1/most. It costs at most two pure runs."""
        common = math.lcm(*range(1, most + 1))
        return cls(tuple(common // k for k in range(1, most + 1)))

    @classmethod
    def geometric(cls, most: int) -> Self:
        """Return the geometric law of mean 10, cut at ``most`` runs."""
        first, stays = 1 << _WEIGHT_BITS, _GEOMETRIC_MEAN - 1
        return cls(tuple(first * stays**k // _GEOMETRIC_MEAN**k for k in range(most)))

    @property
    def mean(self) -> float:
        """Mean number of runs."""
        return sum(k * w for k, w in enumerate(self.weights, 1)) / sum(self.weights)

    @property
    def _is_at_most_reciprocal(self) -> bool:
        """Whether the law is smaller in likelihood ratio than weights of 1, 1/2, 1/3, ..."""
        masses = [k * w for k, w in enumerate(self.weights, 1)]
        return all(a >= b for a, b in pairwise(masses))

    def draw(self, source: NoiseSource) -> int:
        """Draw a number of runs exactly."""
        rank = draw_below(source, sum(self.weights))
        return 1 + sum(rank >= end for end in accumulate(self.weights[:-1]))

    def loss(self, curve: Curve, epsilon: float, delta: float, goal: float) -> tuple[float, float]:
        """Return a loss of the best run, and its delta.

        Parameters
        ----------
        curve : callable
            Delta of one run at each of several losses.
        epsilon, delta : float
            A loss of one run, which is on or above the curve.
        goal : float
            Delta that the best run should have. If no loss of a run has so small a delta, the delta
            is the mean number of runs times ``delta``.
        """
        if math.isinf(epsilon):
            return math.inf, delta
        log_ratio = self._log_ratio(curve, epsilon, delta)
        own = None
        # Beyond the largest loss, curves are those of this loss.
        if delta and goal and epsilon <= LARGEST_LOSS:
            own = _loss_at(curve, epsilon, goal / self.mean)
        if own is None:
            loss = self._rounded(epsilon + log_ratio)
            if delta == 0 and self._is_at_most_reciprocal:
                loss = min(loss, 2 * epsilon)
            return loss, min(1.0, self.mean * delta)
        return self._rounded(own + log_ratio), goal

    @staticmethod
    def _rounded(loss: float) -> float:
        return loss * _UP + _UP_BY if loss else 0.0

    def _log_ratio(self, curve: Curve, epsilon: float, delta: float) -> float:
        """Return a bound of the log of ``G'(x) / G'(low(x))``, where ``G(x)`` is the mean of x**K.

        ``low(x)`` is the least probability, on a neighbour, of an event of probability ``x``. In a
        cell from ``a`` to ``b`` of ``1 - x``, the ratio is at most ``G'(1 - a) / G'(low(1 - b))``.
        Cells whose bound is too far above a value that is attained are divided.
        """
        # As G' increases, the ratio is at most that of its ends.
        most = math.log(self.mean * sum(self.weights) / self.weights[0])
        if most == 0 or epsilon == 0:
            return 0.0
        if epsilon > LARGEST_LOSS:
            return most
        losses = np.minimum(_TANGENTS * epsilon, LARGEST_LOSS)
        deltas = np.minimum(curve(losses) * _UP, 1.0)
        at = int(np.searchsorted(losses, epsilon))
        deltas[at] = min(deltas[at], delta) if losses[at] == epsilon else deltas[at]
        missed = _MissedShare(losses, deltas)
        edges = np.concatenate([[0.0], np.geomspace(_LEAST_SHARE, 1.0, _N_CELLS)])
        low, high, closed, best = edges[:-1], edges[1:], -math.inf, -math.inf
        for n_halvings in count():
            below = self._log_slope(missed(high))
            bound = self._log_slope(low) - below
            best = max(best, float((self._log_slope(high) - below).max()))
            is_open = bound > best + _TOLERANCE * epsilon
            closed = max(closed, float(bound[~is_open].max(initial=-math.inf)))
            if not is_open.any() or len(low) > _MOST_CELLS or n_halvings == _MOST_HALVINGS:
                return min(max(closed, float(bound[is_open].max(initial=-math.inf)), 0.0), most)
            low, high = low[is_open], high[is_open]
            middle = np.where(low > 0, np.sqrt(low * high), high / 2)
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        raise AssertionError("the loop ends")

    def _log_slope(self, missed: FloatArray) -> FloatArray:
        """Return ``log G'(1 - missed)``, up to a constant."""
        total = sum(self.weights)
        terms = [(k - 1, math.log(k * w / total)) for k, w in enumerate(self.weights, 1) if w]
        powers, logs = np.array(terms).T
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(powers == 0, 0.0, powers * np.log1p(-missed[:, None])) + logs
        slope: FloatArray = np.logaddexp.reduce(each, axis=1)
        return slope


def draw_below(source: NoiseSource, n: int) -> int:
    """Draw a uniform integer below ``n``. No record enters this draw."""
    return source.cross(
        [0], lambda nothing: source.below(n), metric="l1", sensitivity=1.0, rate=0.0
    )


class _MissedShare:
    """The largest probability, on a neighbour, that a run is not in an event.

    It is bounded by tangents of the curve of the run: ``1 - x`` becomes at most ``delta + exp(loss)
    (1 - x)``, and at most ``1 - exp(-loss) (x - delta)``.
    """

    def __init__(self, losses: FloatArray, deltas: FloatArray) -> None:
        self._losses, self._deltas = losses, deltas

    def __call__(self, missed: FloatArray) -> FloatArray:
        share = missed[:, None]
        bounds = np.minimum(
            self._deltas + np.exp(self._losses) * share,
            1 - np.exp(-self._losses) * (1 - share - self._deltas),
        )
        return np.clip(bounds.min(axis=1) * _UP + _ROUNDING, missed, 1.0)


def _loss_at(curve: Curve, epsilon: float, delta: float) -> float | None:
    """Return a loss at which the curve of a run is at most ``delta``, or None."""
    low, high = 0.0, max(epsilon, 1e-3)
    while curve(np.array([high]))[0] > delta:
        low, high = high, 2 * high
        if high > LARGEST_LOSS:
            return None
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2
        enough = curve(np.array([middle]))[0] <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high

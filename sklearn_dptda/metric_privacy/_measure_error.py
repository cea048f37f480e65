"""How far a released measure is from that of its rows, from its noise and itself alone."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import gamma

from sklearn_dptda.metric_privacy._halvings import (
    box_numbers,
    boxes,
    cell_ends,
    halvings,
    level_scales,
    level_sums,
    level_widths,
)

# Of the largest rate at which the noise has exponential moments: near the best for any tree.
_RATE = 0.7
# Steps that a scale of noise is cut into, at least, and scales beyond which there is nothing.
_FINE, _FAR = 64, 200


@dataclass(frozen=True)
class LineNoise:
    """Noise of the integrals of a distribution function over cells of a line."""

    n_cells: int
    scale: float
    step: float

    def error_bound(self, weights, risk):
        """What the distance exceeds with a probability of ``risk`` at most."""
        # A discrete Laplace variable is at most a continuous one and a step; rounding is another.
        noise = self.scale * gamma.isf(risk, self.n_cells) + 2 * self.n_cells * self.step
        return min(0.5 / self.n_cells + noise, 1.0)


@dataclass(frozen=True)
class BoxNoise:
    """Noise of the counts of halved boxes, and of the number of rows: as little as tells the rest.

    Counts of ``sensitivity`` share ``epsilon`` over ``depth`` levels.
    """

    sizes: np.ndarray
    depth: int
    sensitivity: float
    epsilon: float
    n_rows: int
    row_scale: float

    def error_bound(self, weights, risk):
        """What the distance exceeds with a probability of ``risk`` at most.

        The rate of the exponential moments, and the depth from which boxes count as one, must be
        chosen before masses are known: for even ones.
        """
        if self.depth == 0:
            return 0.0
        missed = 0.0
        if self.row_scale > 0:
            risk /= 2
            missed = _laplace_quantile(self.row_scale, risk)
        numbers = np.r_[1, box_numbers(self.axes, self.sizes)[:-1]]
        even = [(np.array([2 * self.n_rows / number]), number) for number in numbers]
        depths = range(1, self.depth + 1)
        depth = min(depths, key=lambda depth: self.bound(depth, even, missed, risk))
        return min(self.bound(depth, self.caps(weights), missed, risk), self.widths[0])

    @property
    def axes(self):
        """Axes of the halvings."""
        return halvings(self.sizes, self.depth)

    @property
    def widths(self):
        """Widths of the boxes before and after each halving."""
        return level_widths(self.axes, self.sizes)

    def bound(self, depth, caps, missed, risk):
        """Bound from so many levels, given caps of what each pair of noises can do."""
        scales = level_scales(self.axes, self.sizes, self.sensitivity, self.epsilon)[:depth]
        paths = (self.widths[:depth] - self.widths[depth]) / 2
        most, noise = (paths * scales).max(), 0.0
        if most > 0:
            rate = _RATE / most
            moments = [
                number * _log_moments(rate * path, scale, cap).sum()
                for path, scale, (cap, number) in zip(paths, scales, caps, strict=False)
                if path > 0
            ]
            noise = (math.log(1 / risk) + sum(moments)) / rate
        return self.widths[depth] + (2 * paths[0] * missed + noise) / self.n_rows

    def caps(self, weights):
        """Twice the released masses of the boxes that noise halves, and one, level by level."""
        low, high = boxes(self.axes, cell_ends(self.axes, self.sizes))
        there = (low < high).all(axis=1)
        masses = np.zeros(len(there))
        masses[there] = 2 * self.n_rows * weights
        levels = level_sums(masses), level_sums(there.astype(np.int64))
        for parts, kept in zip(*levels, strict=True):
            halved = (kept.reshape(-1, 2) > 0).all(axis=1)
            yield parts.reshape(-1, 2).sum(axis=1)[halved], 1


def _laplace_quantile(scale, risk):
    """What the size of a discrete Laplace variable exceeds with so small a probability."""
    return scale * math.log(2 / ((1 + math.exp(-1 / scale)) * risk))


def _log_moments(rate, scale, caps):
    """Log of ``E exp(rate min(|D|, cap))`` for each cap, or somewhat more.

    ``D`` is the difference of two discrete Laplace variables, on a lattice that is no finer than
    it need be; ``E exp(X) - 1`` is a sum over what the tail of X is.
    """
    lattice = max(1, int(scale / _FINE))
    last = int(min(_FAR * scale, caps.max(initial=0.0)) / lattice) + 2
    steps = np.arange(1, last + 1)
    # Rounded up: |D| is beyond k - 1 steps.
    beyond = lattice * (steps - 1.0) + 1
    a = math.exp(-1 / scale)
    tails = 2 * np.exp(-beyond / scale) / (1 + a) ** 2
    tails *= beyond * -math.expm1(-1 / scale) + a + (1 + a * a) / (1 + a)
    terms = -np.expm1(-rate * lattice) * np.exp(rate * lattice * steps) * np.minimum(tails, 1.0)
    sums = np.r_[0.0, np.cumsum(terms)]
    return np.log1p(sums[np.minimum(np.ceil(caps / lattice), last).astype(np.int64)])

"""Mean and covariance of rows of any width, released about a private ball.

In each stage a noisy sum gives a centre, and a histogram of the distances from it a ball; where
that is small beside the last one, the next stage looks there. The noise of a sum is relative to the
ball, and hardly more in many columns; how many stages there are follows from what they release.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_dptda.cluster._mixture._localisation import of_distances, outer
from sklearn_dptda.cluster._moments._joint_moments import MomentWeights
from sklearn_dptda.cluster._moments._moment_release import one_cell
from sklearn_dptda.cluster._moments._outer_products import entry_noise, release_outer_products
from sklearn_dptda.cluster._moments._row_arithmetic import clip_norm, in_norm
from sklearn_dptda.cluster._moments._shrinkage import floored_counts, shrunk_steps

# Shares of what is left, for count and sum, and for the distances, of a stage. Losses of pure noise
# add without squares.
_SHARES = {"l2": (0.1, 0.01), "l1": (0.15, 0.03)}
_MEAN_WEIGHTS = MomentWeights(0.1, 0.9)
_MOST_STAGES = 4
# Shares of the rows that may lie outside of the next stage's ball, and of the last one.
_OUTSIDE, _DRAWN_IN = 0.02, 0.5
_PER_OCTAVE = 8


@dataclass(frozen=True)
class NoisyCovariance:
    """Private mean and covariance, and standard deviations of the noise of one entry of each.

    Of covariances off the diagonal; Gaussian noise on it has sqrt(2) times that.
    """

    mean: np.ndarray
    covariance: np.ndarray
    sd_mean: float
    sd: float


def noisy_covariance(rows, budget):
    """Release mean and covariance; rows far from the mean are drawn in."""
    d, norm = rows.n_features, budget.norm
    mean, ball = np.zeros(d), d**0.5
    for _ in range(_MOST_STAGES):
        last = ball
        mean, sd_mean, n, budget = _mean_in_ball(rows, mean, last, budget)
        beyond, budget = _distances(rows, mean, 2 * last, budget)
        sd = budget.deviation(entry_noise(budget, 1.0)[0])
        # The trace of what is cut and the Frobenius norm of the noise, both in terms of the squared
        # radius, have the least sum where as many rows are beyond as this norm is in units of it.
        worth = in_norm(1.0, d, norm) ** 2 * sd * math.sqrt(d * (d + 1))
        ball = beyond(min(worth, _OUTSIDE * n))
        if ball > last / 2:
            break
    radius = in_norm(beyond(min(worth, _DRAWN_IN * n)), d, norm)
    drawn_in = partial(_drawn_in, centre=mean, radius=radius, norm=norm)
    unit = radius**2 / max(n - 1, 1.0)
    total = release_outer_products(rows, drawn_in, budget, 1.0)
    return NoisyCovariance(mean, unit * total, sd_mean, unit * sd)


def _mean_in_ball(rows, centre, ball, budget):
    """Mean of rows in a ball, its noise, the number of all, and what is left of the budget."""
    share, reach = _SHARES[budget.norm][0], in_norm(ball, rows.n_features, budget.norm)
    assign = one_cell(centre, reach, budget.norm)
    moments = budget.release(rows, assign, 1, _MEAN_WEIGHTS, share)
    n = floored_counts(moments)[0]
    mean = centre + reach * shrunk_steps(moments)[0]
    return mean, reach * moments.sd_sum / n, n, budget.rest(share)


def _distances(rows, centre, reach, budget):
    """From a number of rows to the distance that so many are beyond, and the rest of the budget."""
    share = _SHARES[budget.norm][1]
    count = partial(of_distances, centre=centre, reach=reach, per_octave=_PER_OCTAVE)
    counts, sd = budget.counts(rows.sum(count), 1, share)

    def beyond(least):
        part = outer(counts, sd, least, _PER_OCTAVE)
        # All noise: the ball that was looked at.
        return reach * (0.5 if math.isnan(part) else part)

    return beyond, budget.rest(share)


def _drawn_in(part, centre, radius, norm):
    return clip_norm(part - centre, radius, norm)

"""How probable each number of features is, given private counts.

The law of permute-and-flip is known, and so is the score of each candidate for any exact diagram.
Exact diagrams are drawn with a fixed seed and weighted by ``prior * likelihood / density``.

Proof: doc/theory/posterior.md, "Counts".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import poisson

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.persistence._count_choice import UNBOUNDED_SCORE, UNIT, Choice
from sklearn_dptda.persistence._posterior_draws import LEAST, MEANS, SHORTEST
from sklearn_dptda.persistence._private_grid_persistence import Public

# Numbers of draws: to adapt proposals, in one run, and in all runs at most. Effective numbers that
# suffice to adapt, and at the end.
_PILOT, _RUN, _MOST = 1500, 2000, 24000
_ENOUGH_FOR_PILOT, _ENOUGH, _MOST_PILOTS = 150, 400, 12
# Numbers of scores in one run at most. It limits memory, and time if there are many candidates.
_MOST_SCORES = 3_000_000
# Cells of births and of log lengths, and the share of the first proposal in adapted ones.
_CELLS, _FIRST_SHARE = (8, 8), 0.1
# A draw has more features than there is room for with this probability.
_OVERFLOW = 1e-7
# Losses are rounded to multiples of this width. Larger losses than the last one have coins so rare
# that their logarithms are those of their sums.
_WIDTH, _LAST = 0.02, 8.0
# Points of the integral over the times at which candidates are tried.
_NODES = 64


class _Drawn(NamedTuple):
    """Numbers of features of shape (n,), and their places in the unit square of shape (n, m, 2).

    The coordinates are the birth, within what the length leaves, and the log of the length. Cells
    are those of the places, or -1 for unused slots.
    """

    numbers: IntArray
    places: FloatArray
    cells: IntArray


class _Proposal:
    """Features of one dimension whose log length is in a part of the range.

    The range has length 1. The number of features, and the cells of their births and log lengths,
    are drawn by weights. In the prior the number has a Poisson law, and all cells weigh the same.
    """

    def __init__(self, low: float, high: float, count: int, means: FloatArray) -> None:
        means = means * (high - low)
        self._low, self._high, self._means = low, high, means
        numbers = np.arange(int(poisson.isf(_OVERFLOW, means.max())) + count + 2)
        near = 2.0 ** -np.abs(numbers - count)
        usual = poisson.pmf(numbers[:, None], means).mean(axis=1)
        self._first = near / near.sum() / 2 + usual / usual.sum() / 2
        self.numbers, self.cells = self._first, np.full(math.prod(_CELLS), 1 / math.prod(_CELLS))

    def draw(self, n: int, rng: np.random.Generator) -> _Drawn:
        """Draw sets of features."""
        numbers = rng.choice(len(self.numbers), n, p=self.numbers)
        cells = rng.choice(len(self.cells), (n, max(1, int(numbers.max()))), p=self.cells)
        corner = np.stack(np.unravel_index(cells, _CELLS), axis=2)
        places = (corner + rng.random(corner.shape)) / _CELLS
        places[:, :, 1] = self._low + (self._high - self._low) * places[:, :, 1]
        used = np.arange(cells.shape[1]) < numbers[:, None]
        return _Drawn(numbers, places, np.where(used, cells, -1))

    def log_prior(self, drawn: _Drawn) -> FloatArray:
        """Return the log prior of the numbers, in one column for each mean."""
        log_prior: FloatArray = poisson.logpmf(drawn.numbers[:, None], self._means)
        return log_prior

    def log_density(self, drawn: _Drawn) -> FloatArray:
        """Return the log density, in relation to independent features of the prior."""
        by_cell = np.append(np.log(self.cells * len(self.cells)), 0.0)
        log_density: FloatArray = np.log(self.numbers[drawn.numbers])
        return log_density + by_cell[drawn.cells].sum(axis=1)

    def adapt(self, drawn: _Drawn, weights: FloatArray) -> None:
        """Draw like these weighted draws from now on, with a share of the first proposal."""
        numbers = np.bincount(drawn.numbers, weights, len(self.numbers))
        every = np.repeat(weights[:, None], drawn.cells.shape[1], axis=1)
        cells = np.bincount((drawn.cells + 1).ravel(), every.ravel(), len(self.cells) + 1)[1:]
        self.numbers = (1 - _FIRST_SHARE) * numbers + _FIRST_SHARE * self._first
        self.cells = (1 - _FIRST_SHARE) * cells / max(cells.sum(), 1e-12)
        self.cells += _FIRST_SHARE / len(cells)
        self.cells /= self.cells.sum()


def _normalised(log_weights: FloatArray) -> FloatArray:
    weights: FloatArray = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def _share_for(log_weights: FloatArray) -> float:
    """Return the largest exponent of the weights at which enough draws for a pilot have weight."""
    for share in np.append(1.0, 0.8 ** np.arange(1, 40)):
        if 1 / (_normalised(share * log_weights) ** 2).sum() >= _ENOUGH_FOR_PILOT:
            break
    return float(share)


@dataclass(frozen=True)
class ReleasedCounts:
    """Released counts, and the public numbers on which their law depends.

    ``chosen`` is the place of the thresholds among those of the choice.
    """

    dimensions: tuple[int, ...]
    counts: tuple[int, ...]
    choice: Choice
    caps: Sequence[Public]
    chosen: int
    max_count: int

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold of each dimension."""
        return self.choice.tried[self.chosen].thresholds

    @property
    def shortest(self) -> float:
        """Persistence from which on the prior counts features: three scales of noise.

        It is at most half of the lowest threshold.
        """
        lowest = min(min(t.thresholds) for t in self.choice.tried)
        return min(SHORTEST * self.caps[0][0] / (UNIT * self.choice.rate), lowest / 2)

    @property
    def numbers(self) -> list[int]:
        """Numbers of finite features that are told apart, by dimension."""
        return [self.max_count - (q == 0) for q in self.dimensions]

    @property
    def _shape(self) -> list[int]:
        return [number + 1 for number in self.numbers]

    @property
    def _finite(self) -> list[int]:
        return [c - (q == 0) for c, q in zip(self.counts, self.dimensions, strict=True)]

    def posterior(self, expected_features: float) -> FloatArray:
        """Return the probability of each count, of shape (n_dimensions, max_count + 1).

        The last one is that of ``max_count`` or more. NaN if too few draws agree with the release.
        """
        rng, proposals = np.random.default_rng(0), self._proposals(expected_features)
        n_candidates = len(self.choice.tried) * math.prod(self._shape)
        pilot, run = (min(n, _MOST_SCORES // n_candidates) for n in (_PILOT, _RUN))
        for _ in range(_MOST_PILOTS):
            drawn, weights = self._draw(proposals, pilot, rng)
            share = _share_for(weights)
            for proposal, each in zip(proposals, drawn, strict=True):
                proposal.adapt(each, _normalised(share * weights))
            if share == 1:
                break
        counts, log_weights = [], []
        while True:
            drawn, weights = self._draw(proposals, run, rng)
            counts.append(self._counts(self._features(drawn)))
            log_weights.append(weights)
            weights = _normalised(np.concatenate(log_weights))
            n_effective = 1 / (weights**2).sum()
            if n_effective >= _ENOUGH or len(weights) >= _MOST // _RUN * run:
                break
        if n_effective < LEAST:
            return np.full((len(self.dimensions), self.max_count + 1), np.nan)
        return np.array(
            [
                np.bincount(each, weights, self.max_count + 1)
                for each in np.concatenate(counts, axis=1)
            ]
        )

    def _counts(self, features: Sequence[FloatArray]) -> IntArray:
        """Return the counts of each dimension and draw, under the cap of the release."""
        cap = self.caps[self.choice.tried[self.chosen].place][1]
        return np.array(
            [
                np.minimum((_lives(each, cap) > threshold).sum(axis=1) + (q == 0), self.max_count)
                for q, threshold, each in zip(
                    self.dimensions, self.thresholds, features, strict=True
                )
            ]
        )

    def _proposals(self, expected_features: float) -> list[_Proposal]:
        """Return two for each dimension: of features above the threshold, and of those below."""
        means, both = expected_features * np.array(MEANS), math.log(self.caps[0][1] / self.shortest)
        proposals = []
        for count, threshold in zip(self._finite, self.thresholds, strict=True):
            split = math.log(threshold / self.shortest) / both
            proposals += [_Proposal(split, 1.0, count, means), _Proposal(0.0, split, 0, means)]
        return proposals

    def _draw(
        self, proposals: Sequence[_Proposal], n: int, rng: np.random.Generator
    ) -> tuple[list[_Drawn], FloatArray]:
        """Draw features for each proposal, and return log weights."""
        drawn = [proposal.draw(n, rng) for proposal in proposals]
        pairs = list(zip(proposals, drawn, strict=True))
        # The dimensions have a common mean.
        log_prior = np.sum([proposal.log_prior(each) for proposal, each in pairs], axis=0)
        log_weights = np.logaddexp.reduce(log_prior, axis=1)
        log_weights -= np.sum([proposal.log_density(each) for proposal, each in pairs], axis=0)
        return drawn, log_weights + self._log_likelihood(self._features(drawn))

    def _features(self, drawn: Sequence[_Drawn]) -> list[FloatArray]:
        """Return births and deaths of shape (n, m, 2) of each dimension."""
        upper, features = self.caps[0][1], []
        for above, below in zip(drawn[::2], drawn[1::2], strict=True):
            births, lengths = np.moveaxis(np.hstack([above.places, below.places]), 2, 0)
            length = self.shortest * (upper / self.shortest) ** lengths
            # Unused places are features of no persistence.
            length = np.where(np.hstack([above.cells, below.cells]) < 0, 0.0, length)
            births = births * (upper - length)
            features.append(np.stack([births, births + length], axis=2))
        return features

    def _log_likelihood(self, features: Sequence[FloatArray]) -> FloatArray:
        """Return the log probability of the release for each draw, up to a constant."""
        n, choice = len(features[0]), self.choice
        utilities = []
        lives = {
            place: [
                _longest(_lives(each, self.caps[place][1]), number)
                for each, number in zip(features, self.numbers, strict=True)
            ]
            for place in {t.place for t in choice.tried}
        }
        gates = self._gates(features)
        for t in choice.tried:
            joint = np.full((n, 1), np.inf)
            for each, threshold in zip(lives[t.place], t.thresholds, strict=True):
                joint = np.minimum(joint[:, :, None], _scores(each, threshold)[:, None, :])
                joint = joint.reshape(n, -1)
            allowed = choice.most / UNIT - gates[t.place]
            in_units = joint / (t.lattice.sensitivity * t.lattice.step)
            limited = np.minimum(in_units, np.minimum(choice.most / UNIT, allowed)[:, None])
            utilities.append(limited - t.price / UNIT)
        losses = np.hstack(utilities)
        losses = (losses.max(axis=1, keepdims=True) - losses) * choice.rate * UNIT
        place = int(np.ravel_multi_index(self._finite, self._shape))
        place += self.chosen * math.prod(self._shape)
        return log_chances(losses, place)

    def _gates(self, features: Sequence[FloatArray]) -> list[FloatArray]:
        """Return for each cap how much it hides of the features under the larger ones."""
        gates = []
        for j, (_, upper) in enumerate(self.caps):
            gate = np.zeros(len(features[0]))
            for sensitivity, larger in self.caps[:j]:
                for each in features:
                    low, high = np.minimum(each, larger)[:, :, 0], np.minimum(each, larger)[:, :, 1]
                    hidden = np.minimum(np.maximum(high - upper, 0.0), (high - low) / 2)
                    gate = np.maximum(gate, hidden.max(axis=1, initial=0.0) / sensitivity)
            gates.append(gate)
        return gates


def log_chances(losses: FloatArray, place: int) -> FloatArray:
    """Return the log probability that permute-and-flip draws a candidate.

    Candidates come at uniform times. The candidate wins if its coin, of probability ``exp(-loss)``,
    succeeds, and those of all earlier candidates fail.

    Parameters
    ----------
    losses : ndarray of shape (n, n_candidates)
        Privacy losses of the candidates, of which the least is 0, for each draw.
    place : int
        Index of the candidate.

    Returns
    -------
    ndarray of shape (n,)
    """
    nodes, parts = np.polynomial.legendre.leggauss(_NODES)
    times, parts = (nodes + 1) / 2, parts / 2
    own = losses[:, place]
    others = np.delete(losses, place, axis=1)
    n_bins = round(_LAST / _WIDTH) + 1
    bins = np.rint(np.minimum(others, _LAST + _WIDTH) / _WIDTH).astype(np.int64)
    rare = bins >= n_bins
    flat = (bins + np.arange(len(bins))[:, None] * (n_bins + 1)).ravel()
    histogram = np.bincount(flat, minlength=len(bins) * (n_bins + 1)).reshape(len(bins), -1)
    coins = np.exp(-_WIDTH * np.arange(n_bins))
    log_failed = histogram[:, :n_bins] @ np.log1p(-coins[:, None] * times)
    log_failed -= np.where(rare, np.exp(-others), 0.0).sum(axis=1)[:, None] * times
    highest = log_failed.max(axis=1)
    integral = np.exp(log_failed - highest[:, None]) @ parts
    log_chance: FloatArray = highest + np.log(integral) - own
    return log_chance


def _lives(features: FloatArray, cap: float) -> FloatArray:
    """Return the persistences of features that are cut at a cap."""
    lives: FloatArray = np.diff(np.minimum(features, cap), axis=2)[:, :, 0]
    return lives


def _longest(lives: FloatArray, number: int) -> FloatArray:
    """Return the longest persistences in decreasing order, padded with zeros."""
    padded = np.pad(lives, ((0, 0), (0, number)))
    return -np.sort(-padded, axis=1)[:, :number]


def _scores(lives: FloatArray, threshold: float) -> FloatArray:
    """Return the scores of the counts 0, 1, ..., for each draw."""
    end = np.full((len(lives), 1), float(UNBOUNDED_SCORE))
    above, below = np.hstack([end, lives - threshold]), np.hstack([threshold - lives, end])
    scores: FloatArray = np.minimum(above, below)
    return scores

"""How probable each number of features is, given private counts.

The law of permute-and-flip is known, and so is the score of each candidate for any exact diagram.
Lengths of exact features are drawn with a fixed seed and weighted by ``prior * likelihood /
density``.

Proof: doc/theory/posterior.md, "Counts".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import poisson

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.persistence._count_choice import UNIT, Choice
from sklearn_dptda.persistence._posterior_draws import GATE_DECAY, GATES, LEAST, MEANS, SHORTEST

# Numbers of draws: to adapt proposals, in one run, and in all runs at most. Effective numbers that
# suffice to adapt, as a share, and at the end.
_PILOT, _RUN, _MOST = 1500, 2000, 24000
_ENOUGH_FOR_PILOT, _ENOUGH, _MOST_PILOTS = 0.1, 400, 12
# Numbers of scores at a time. It limits memory.
_MOST_SCORES = 3_000_000
# Cells of log lengths, and the share of the first proposal in adapted ones.
_CELLS, _FIRST_SHARE = 16, 0.1
# A draw has more features than there is room for with this probability.
_OVERFLOW = 1e-7
# Losses are rounded to multiples of this width. Larger losses than the last one have coins so rare
# that their logarithms are those of their sums.
_WIDTH, _LAST = 0.02, 8.0
# Panels, and points in each of them, of the integral over the times at which candidates are tried.
# The first candidates of many come very early.
_PANELS, _POINTS = 18, 8


class _Drawn(NamedTuple):
    """Numbers of features of shape (n,), and log lengths of shape (n, m) with their cells.

    The range of log lengths has length 1. Cells are -1 for unused slots.
    """

    numbers: IntArray
    lengths: FloatArray
    cells: IntArray


class _Proposal:
    """Features of one dimension whose log length is in a part of the range.

    The number of features, and the cells of their log lengths, are drawn by weights. In the prior
    the number has a Poisson law, and all cells weigh the same.
    """

    def __init__(self, low: float, high: float, count: int, means: FloatArray) -> None:
        means = means * (high - low)
        self._low, self._high, self._means = low, high, means
        numbers = np.arange(int(poisson.isf(_OVERFLOW, means.max())) + count + 2)
        near = 2.0 ** -np.abs(numbers - count)
        usual = poisson.pmf(numbers[:, None], means).mean(axis=1)
        self._first = near / near.sum() / 2 + usual / usual.sum() / 2
        self.numbers, self.cells = self._first, np.full(_CELLS, 1 / _CELLS)

    def draw(self, n: int, rng: np.random.Generator) -> _Drawn:
        """Draw sets of features."""
        numbers = rng.choice(len(self.numbers), n, p=self.numbers)
        cells = rng.choice(_CELLS, (n, max(1, int(numbers.max()))), p=self.cells)
        lengths = self._low + (self._high - self._low) * (cells + rng.random(cells.shape)) / _CELLS
        used = np.arange(cells.shape[1]) < numbers[:, None]
        return _Drawn(numbers, lengths, np.where(used, cells, -1))

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
    enough = _ENOUGH_FOR_PILOT * len(log_weights)
    for share in np.append(1.0, 0.8 ** np.arange(1, 40)):
        if 1 / (_normalised(share * log_weights) ** 2).sum() >= enough:
            break
    return float(share)


@dataclass(frozen=True)
class ReleasedCounts:
    """Released counts, and the public numbers on which their law depends.

    ``choice`` has the thresholds under the cap that was drawn, whose upper bound is ``upper``, and
    ``chosen`` is the place of the drawn one. ``has_gate`` tells whether it is a smaller cap than
    the default one, whose gate is unknown.
    """

    dimensions: tuple[int, ...]
    counts: tuple[int, ...]
    choice: Choice
    chosen: int
    upper: float
    has_gate: bool
    max_count: int

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold of each dimension."""
        return self.choice.tried[self.chosen].thresholds

    @property
    def unit(self) -> float:
        """Largest change of a persistence by one record."""
        lattice = self.choice.tried[0].lattice
        return lattice.sensitivity * lattice.step

    @property
    def shortest(self) -> float:
        """Persistence from which on the prior counts features: three scales of noise.

        It is at most half of the lowest threshold.
        """
        lowest = min(min(t.thresholds) for t in self.choice.tried)
        return min(SHORTEST * self.unit / (2 * UNIT * self.choice.rate), lowest / 2)

    @property
    def numbers(self) -> list[int]:
        """Numbers of finite features that are told apart, by dimension."""
        return [self.max_count - (q == 0) for q in self.dimensions]

    def posterior(self, expected_features: float) -> FloatArray:
        """Return the probability of each count, of shape (n_dimensions, max_count + 1).

        The last one is that of ``max_count`` or more. NaN if too few draws agree with the release.
        """
        rng, proposals = np.random.default_rng(0), self._proposals(expected_features)
        for _ in range(_MOST_PILOTS):
            drawn, log_weights = self._draw(proposals, _PILOT, rng)
            share = _share_for(log_weights)
            for proposal, each in zip(proposals, drawn, strict=True):
                proposal.adapt(each, _normalised(share * log_weights))
            if share == 1:
                break
        counts, every = [], []
        while True:
            drawn, log_weights = self._draw(proposals, _RUN, rng)
            counts.append(self._counts(self._lengths(drawn)))
            every.append(log_weights)
            weights = _normalised(np.concatenate(every))
            n_effective = 1 / (weights**2).sum()
            if n_effective >= _ENOUGH or len(weights) >= _MOST:
                break
        if n_effective < LEAST:
            return np.full((len(self.dimensions), self.max_count + 1), np.nan)
        laws = np.array(
            [
                np.bincount(each, weights, self.max_count + 1)
                for each in np.concatenate(counts, axis=1)
            ]
        )
        # Sums are rounded: a certain count has probability 1, not slightly more.
        return np.minimum(laws, 1.0)

    def _counts(self, lengths: Sequence[FloatArray]) -> IntArray:
        """Return the counts of each dimension and draw."""
        pairs = zip(self.dimensions, self.thresholds, lengths, strict=True)
        counts = [(each > threshold).sum(axis=1) + (q == 0) for q, threshold, each in pairs]
        return np.minimum(counts, self.max_count)

    def _proposals(self, expected_features: float) -> list[_Proposal]:
        """Return two for each dimension: of features above the threshold, and of those below."""
        means, both = expected_features * np.array(MEANS), math.log(self.upper / self.shortest)
        proposals = []
        for count, threshold in zip(self._finite, self.thresholds, strict=True):
            split = math.log(threshold / self.shortest) / both
            proposals += [_Proposal(split, 1.0, count, means), _Proposal(0.0, split, 0, means)]
        return proposals

    @property
    def _finite(self) -> list[int]:
        return [c - (q == 0) for c, q in zip(self.counts, self.dimensions, strict=True)]

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
        gates = np.zeros(n)
        if self.has_gate:
            likely = np.exp(-GATE_DECAY * GATES)
            gates = rng.choice(GATES, n, p=likely / likely.sum())
        lengths = self._lengths(drawn)
        n_parts = -(-n * len(self.choice.tried) * math.prod(self._shape) // _MOST_SCORES)
        parts = [
            self._log_likelihood([each[rows] for each in lengths], gates[rows])
            for rows in np.array_split(np.arange(n), n_parts)
        ]
        return drawn, log_weights + np.concatenate(parts)

    def _lengths(self, drawn: Sequence[_Drawn]) -> list[FloatArray]:
        """Return the persistences of features in each dimension; unused slots have none."""
        lengths = []
        for above, below in zip(drawn[::2], drawn[1::2], strict=True):
            shares = np.hstack([above.lengths, below.lengths])
            length = self.shortest * (self.upper / self.shortest) ** shares
            lengths.append(np.where(np.hstack([above.cells, below.cells]) < 0, 0.0, length))
        return lengths

    @property
    def _shape(self) -> list[int]:
        return [number + 1 for number in self.numbers]

    def _log_likelihood(self, lengths: Sequence[FloatArray], gates: FloatArray) -> FloatArray:
        """Return the log probability of the release for each draw, up to a constant.

        The thresholds of other caps are not among the candidates: that this cap was drawn is given.
        ``gates`` are in scales of noise.
        """
        choice, noise = self.choice, 1 / (UNIT * self.choice.rate)
        longest = [
            _longest(each, number) for each, number in zip(lengths, self.numbers, strict=True)
        ]
        most = choice.most / UNIT - gates * noise
        utilities = []
        for t in choice.tried:
            joint = np.full((len(gates), 1), np.inf)
            for each, threshold in zip(longest, t.thresholds, strict=True):
                joint = np.minimum(joint[:, :, None], _scores(each, threshold)[:, None, :])
                joint = joint.reshape(len(gates), -1)
            utilities.append(np.minimum(joint / self.unit, most[:, None]) - t.price / UNIT)
        losses = np.hstack(utilities)
        losses = (losses.max(axis=1, keepdims=True) - losses) / noise
        place = int(np.ravel_multi_index(self._finite, self._shape))
        return log_chances(losses, place + self.chosen * math.prod(self._shape))


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
    edges = np.append(0.0, 2.0 ** -np.arange(_PANELS)[::-1])
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    widths = np.diff(edges)[:, None]
    times = (edges[:-1, None] + widths * (nodes + 1) / 2).ravel()
    parts = (widths * weights / 2).ravel()
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


def _longest(lives: FloatArray, number: int) -> FloatArray:
    """Return the longest persistences in decreasing order, padded with zeros."""
    padded = np.pad(lives, ((0, 0), (0, number)))
    return -np.sort(-padded, axis=1)[:, :number]


def _scores(lives: FloatArray, threshold: float) -> FloatArray:
    """Return the scores of the counts 0, 1, ..., for each draw."""
    end = np.full((len(lives), 1), np.inf)
    above, below = np.hstack([end, lives - threshold]), np.hstack([threshold - lives, end])
    scores: FloatArray = np.minimum(above, below)
    return scores

"""Weighted exact diagrams, given a private release: importance sampling with a fixed seed.

A draw selects a class first: a radius, and a mean number of features. The released points then
belong to features with probabilities of the class, and such a feature is uniform in the square of
the radius around its point. All other features were missed by the release: they are a Poisson
process of the prior, of persistences up to twice the radius. A draw has the weight ``prior *
likelihood / density``, where the density is that of the mixture of all classes.

Proof: doc/theory/posterior.md, "The sampler".
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import poisson

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.persistence._likelihood import Likelihood
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import bottleneck_of_finite

# Numbers of draws: to adapt the classes, in the first run, and in all runs at most. Runs end with
# this effective number of draws, or if it is hopeless. Below the least number there is no answer.
_PILOT, _FIRST, _MOST = 1500, 3000, 24000
_ENOUGH, LEAST, _HOPELESS = 300, 50, 4
# Radii grow by this factor, from this share of the scale of noise on.
_RADIUS_FACTOR, _LEAST_RADIUS = 1.4, 0.7
# The mean numbers of features of the prior, which are equally probable, and those of the classes,
# both in relation to the expected number. Large numbers of missed features matter if a release has
# many points.
MEANS, _MEANS_OF_CLASSES = (1 / 3, 1.0, 3.0), (1 / 3, 1.0, 3.0, 9.0)
# The prior counts features from this multiple of the scale of noise on. No release shows shorter
# ones.
SHORTEST = 3.0
# Gates of a smaller cap, which are unknown, in scales of noise, and how fast their prior falls.
GATES, GATE_DECAY = np.array([0.0, 1, 2, 3, 5, 8, 12, 18]), 1 / 3
# A draw has more missed features in one dimension than there is room for with this probability.
_OVERFLOW = 1e-7
# Labels of features that belong to no released point, and of unused slots.
MISSED, NONE = -1, -2


def check_expected_features(expected_features: Any) -> None:
    """Raise an error if this is no mean number of features of a prior."""
    number = isinstance(expected_features, Real) and not isinstance(expected_features, bool)
    if not (number and 0.01 <= expected_features <= 10):
        raise ValueError(
            f"expected_features must be from 0.01 to 10; got {quoted(expected_features)}."
        )


def posterior_of(released: Any, expected_features: float) -> Any:
    """Return the posterior of a release, in a worker as well as here."""
    return released.posterior(expected_features)


class Release(NamedTuple):
    """Released points of each dimension, in grid steps, and the birth of the essential component.

    Without dimension 0 the birth is None; otherwise, dimension 0 is the first.
    """

    diagrams: list[FloatArray]
    birth: float | None


@dataclass(frozen=True)
class Prior:
    """Public prior of exact diagrams, in grid steps.

    The number of features of each dimension has a Poisson law, whose mean is ``expected``, a third
    or three times as much. Features are at least ``shortest`` long. Their lengths are log-uniform,
    and births are uniform where the length fits. In dimension 0, features are younger than the
    essential component, whose birth is uniform. The *room* is the range of births and deaths.
    """

    expected: float
    shortest: float
    size: int

    def log_lengths(self, longest: FloatArray) -> FloatArray:
        """Return the integral of 1 / length from the shortest to the longest one."""
        return np.log(np.maximum(longest / self.shortest, 1 + 1e-9))

    def log_places(self, features: FloatArray, room: FloatArray) -> FloatArray:
        """Return the log density of each feature of an array (n, m, 2)."""
        length = features[:, :, 1] - features[:, :, 0]
        fits = (length >= self.shortest) & (length < room[:, None])
        fits &= features[:, :, 0] >= self.size - room[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_place = -np.log(length * (room[:, None] - length) * self.log_lengths(room)[:, None])
        return np.where(fits, log_place, -np.inf)

    def log_numbers(self, n_features: IntArray, rooms: list[FloatArray]) -> FloatArray:
        """Return the log density of total numbers of features, as that of unordered sets.

        Where no feature fits, there is none.
        """
        means = self.expected * np.array(MEANS)
        n_dimensions = np.sum([room > self.shortest for room in rooms], axis=0)
        each = n_features[:, None] * np.log(means) - n_dimensions[:, None] * means
        log_number: FloatArray = np.logaddexp.reduce(each, axis=1) - math.log(len(means))
        return log_number


class Draws(NamedTuple):
    """Weighted exact diagrams in grid steps, their effective number, and how many were drawn.

    ``features`` has one array (n, m, 2) for each dimension, in which a point of zero persistence
    stands for no feature.
    """

    features: list[FloatArray]
    births: FloatArray | None
    weights: FloatArray
    n_effective: float
    n_draws: int


class Proposal:
    """Proposed features of one dimension, in each class."""

    def __init__(
        self, points: FloatArray, radii: FloatArray, means: FloatArray, prior: Prior
    ) -> None:
        self.points, self.means, self.prior = points, means, prior
        self._longest = np.maximum(2 * radii, 1.01 * prior.shortest)
        half = np.diff(points) / 2
        # Beyond its half persistence, a point is as close to the diagonal.
        self._reach = np.minimum(radii, half)
        self._low = np.maximum(points[:, None] - self._reach[:, :, None], 0)
        self._high = np.minimum(points[:, None] + self._reach[:, :, None], prior.size)
        self.shown = np.where(radii < half, 0.95, 0.5)
        self._most_missed = int(poisson.isf(_OVERFLOW, means.max()))

    def draw(
        self, classes: IntArray, room: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, IntArray]:
        """Draw features of shape (n, m, 2), and their labels: a point, ``MISSED`` or ``NONE``."""
        n, k = len(classes), len(self.points)
        features = np.full((n, k + self._most_missed, 2), self.prior.size / 2)
        labels = np.full((n, k + self._most_missed), NONE)
        for i in range(k):
            low, high = self._low[i, classes], self._high[i, classes]
            low[:, 0] = np.maximum(low[:, 0], self.prior.size - room)
            shown = np.where(low[:, 0] < high[:, 0], self.shown[i, classes], 0.0)
            at = np.flatnonzero(rng.random(n) < shown)
            features[at, i] = low[at] + rng.random((len(at), 2)) * (high - low)[at]
            labels[at, i] = i
        longest = np.minimum(self._longest[classes], room)
        n_missed = rng.poisson(self._expected(room)[np.arange(n), classes])
        n_missed = np.minimum(n_missed, self._most_missed)
        for slot in range(self._most_missed):
            at = np.flatnonzero(n_missed > slot)
            length = self.prior.shortest * np.exp(
                rng.random(len(at)) * self.prior.log_lengths(longest[at])
            )
            births = self.prior.size - room[at] + rng.random(len(at)) * (room[at] - length)
            features[at, k + slot] = np.column_stack([births, births + length])
            labels[at, k + slot] = MISSED
        used = np.argsort(labels == NONE, axis=1, kind="stable")
        used = used[:, : max(1, int((labels != NONE).sum(axis=1).max(initial=0)))]
        labels = np.take_along_axis(labels, used, axis=1)
        return np.take_along_axis(features, used[:, :, None], axis=1), labels

    def _expected(self, room: FloatArray) -> FloatArray:
        """Return the mean number of missed features in each class, of shape (n, n_classes)."""
        longest = np.minimum(self._longest, room[:, None])
        log_lengths = self.prior.log_lengths(longest) / self.prior.log_lengths(room)[:, None]
        fits = (room > self.prior.shortest)[:, None]
        expected: FloatArray = np.where(fits, self.means * log_lengths, 0.0)
        return expected

    def log_density(self, features: FloatArray, labels: IntArray, room: FloatArray) -> FloatArray:
        """Return the log density of labelled features in each class, of shape (n, n_classes)."""
        missed = labels == MISSED
        places = np.where(missed, self.prior.log_places(features, room), 0.0).sum(axis=1)
        length = np.where(missed, features[:, :, 1] - features[:, :, 0], 0.0).max(axis=1)
        apart, areas = self._apart(features), self._areas(room)
        probable = np.where(areas > 0, self.shown, 0.0)
        with np.errstate(divide="ignore"):
            density = places[:, None] + missed.sum(axis=1)[:, None] * np.log(self.means)
            density += np.log(length[:, None] <= self._longest) - self._expected(room)
            shown = np.zeros((len(features), len(self.points)), dtype=bool)
            for slot in range(features.shape[1]):
                at = np.flatnonzero(labels[:, slot] >= 0)
                i = labels[at, slot]
                shown[at, i] = True
                inside = apart[at, slot, i][:, None] <= self._reach[i]
                density[at] += np.log(inside * probable[at, i] / np.maximum(areas[at, i], 1e-9))
        for i in range(len(self.points)):
            density += np.where(shown[:, i, None], 0.0, np.log1p(-probable[:, i]))
        return density

    def _areas(self, room: FloatArray) -> FloatArray:
        """Return the areas of the squares, of shape (n, n_points, n_classes)."""
        first = np.maximum(self._low[:, :, 0], (self.prior.size - room)[:, None, None])
        sides = np.maximum(self._high[:, :, 0] - first, 0)
        areas: FloatArray = sides * (self._high[:, :, 1] - self._low[:, :, 1])
        return areas

    def _apart(self, features: FloatArray) -> FloatArray:
        """Return the distances of features and points, of shape (n, m, n_points)."""
        apart: FloatArray = np.abs(features[:, :, None] - self.points).max(axis=3)
        return apart

    def labels(self, features: FloatArray) -> IntArray:
        """Return the labels of features, whatever drew them: the closest pairs belong together."""
        there = features[:, :, 1] > features[:, :, 0]
        apart, labels = self._apart(features), np.where(there, MISSED, NONE)
        n, m, k = apart.shape
        apart[~there] = np.inf
        apart[apart > self._reach[:, -1]] = np.inf
        for _ in range(min(m, k)):
            slot, i = np.unravel_index(apart.reshape(n, -1).argmin(axis=1), (m, k))
            rows = np.flatnonzero(np.isfinite(apart[np.arange(n), slot, i]))
            labels[rows, slot[rows]] = i[rows]
            apart[rows, slot[rows]] = np.inf
            apart[rows, :, i[rows]] = np.inf
        return labels

    def distances(self, features: FloatArray, labels: IntArray) -> FloatArray:
        """Return the bottleneck distances of labelled features and the released points."""
        half = (features[:, :, 1] - features[:, :, 0]) / 2
        points_half = (self.points[:, 1] - self.points[:, 0]) / 2
        apart = np.where((half > 0)[:, :, None], self._apart(features), np.inf)
        # A lower bound: each point and each feature is matched to the nearest one.
        of_features = np.minimum(half, apart.min(axis=2, initial=np.inf))
        of_points = np.minimum(points_half, apart.min(axis=1, initial=np.inf))
        lower = np.maximum(of_features.max(axis=1), of_points.max(axis=1, initial=0.0))
        # An upper bound: they are matched by their labels.
        upper = np.where(labels < 0, half, 0.0).max(axis=1)
        of_points = np.broadcast_to(points_half, (len(features), len(self.points))).copy()
        for slot in range(features.shape[1]):
            at = np.flatnonzero(labels[:, slot] >= 0)
            i = labels[at, slot]
            of_points[at, i] = np.minimum(
                apart[at, slot, i], np.maximum(half[at, slot], points_half[i])
            )
        distances = np.maximum(upper, of_points.max(axis=1, initial=0.0))
        for row in np.flatnonzero(lower < distances):
            there = features[row, :, 1] > features[row, :, 0]
            distances[row] = bottleneck_of_finite(self.points, features[row, there])
        return distances


def posterior_draws(
    likelihood: Likelihood,
    log_gates: FloatArray,
    release: Release,
    prior: Prior,
    *,
    seed: int = 0,
) -> Draws:
    """Return exact diagrams, weighted by their posterior given a release.

    ``log_gates`` are the log prior probabilities of the gates of the likelihood.
    """
    sampler = _ImportanceSampler(likelihood, log_gates, release, prior, seed)
    sampler.run(_PILOT)
    sampler.adapt_to_pilot()
    n_draws = _FIRST
    while True:
        draws = sampler.run(n_draws)
        hopeless = draws.n_effective < _HOPELESS and sampler.n_draws > _FIRST
        if draws.n_effective >= _ENOUGH or 2 * sampler.n_draws > _MOST or hopeless:
            return draws
        n_draws = sampler.n_draws


class _Batch(NamedTuple):
    """Draws with their log prior times likelihood, and their log density in each class."""

    features: list[FloatArray]
    births: FloatArray | None
    log_target: FloatArray
    log_density: FloatArray


class _ImportanceSampler:
    """Draws in batches, whose classes adapt to what they explained of the posterior so far."""

    def __init__(
        self,
        likelihood: Likelihood,
        log_gates: FloatArray,
        release: Release,
        prior: Prior,
        seed: int,
    ) -> None:
        self.likelihood, self.log_gates, self.release = likelihood, log_gates, release
        self.prior, self._rng = prior, np.random.default_rng(seed)
        n_points = sum(map(len, release.diagrams))
        longest = max(np.ptp(d, axis=1).max(initial=0.0) for d in release.diagrams)
        usual = max(0.6 * longest, (2 * n_points + 10) / likelihood.rate)
        least = max(1.0, _LEAST_RADIUS / likelihood.rate)
        n_usual = max(4, math.ceil(math.log(usual / least) / math.log(_RADIUS_FACTOR)))
        # Some releases miss even the longest features, so the last class contains all of them.
        doubled = usual * 2.0 ** np.arange(1, max(2, math.ceil(math.log2(prior.size / usual))))
        radii = np.minimum(np.append(np.geomspace(least, usual, n_usual), doubled), prior.size)
        self.radii = np.repeat(radii, len(_MEANS_OF_CLASSES))
        means = np.tile(prior.expected * np.array(_MEANS_OF_CLASSES), len(radii))
        self.proposals = [Proposal(d, self.radii, means, prior) for d in release.diagrams]
        self.classes = np.full(len(means), 1 / len(means))
        self._batches: list[_Batch] = []
        self._used: list[tuple[int, FloatArray]] = []

    @property
    def n_draws(self) -> int:
        """Number of draws so far, of which those without weight are not kept."""
        return sum(n for n, _ in self._used)

    def run(self, n: int) -> Draws:
        """Draw ``n`` more, and weigh all draws by the density of the mixture that drew them."""
        self._used.append((n, self.classes))
        self._batches.append(self._draw(self._rng.choice(len(self.radii), n, p=self.classes)))
        mixture = np.sum([m * classes for m, classes in self._used], axis=0) / self.n_draws
        by_class = np.concatenate([b.log_density for b in self._batches]) + np.log(mixture)
        log_density = np.logaddexp.reduce(by_class, axis=1)
        log_weights = np.concatenate([b.log_target for b in self._batches]) - log_density
        largest = log_weights.max(initial=-math.inf)
        # If no draw agrees with the release, none has a weight.
        some = largest > -math.inf
        weights = np.exp(log_weights - largest) if some else np.zeros(len(log_weights))
        weights /= max(weights.sum(), 1.0)
        births = [b.births for b in self._batches if b.births is not None]
        draws = Draws(
            [_joined([b.features[q] for b in self._batches]) for q in range(len(self.proposals))],
            np.concatenate(births) if births else None,
            weights,
            1 / float((weights**2).sum()) if weights.any() else 0.0,
            self.n_draws,
        )
        explained = np.zeros(by_class.shape)
        if weights.any():
            explained = weights[:, None] * np.exp(by_class - log_density[:, None])
            self.classes = 0.8 * explained.sum(axis=0) + 0.2 / len(mixture)
        self._draws, self._explained = draws, explained
        return draws

    def adapt_to_pilot(self) -> None:
        """Set how often released points belong to features, and forget the draws that tell it."""
        share = self._explained.sum(axis=0)
        for proposal, features in zip(self.proposals, self._draws.features, strict=True):
            labels = proposal.labels(features)
            for i in range(len(proposal.points)):
                shown = (labels == i).any(axis=1) @ self._explained + 0.02 * proposal.shown[i]
                proposal.shown[i] = np.clip(shown / (share + 0.02), 0.05, 0.95)
        self._batches, self._used = [], []

    def _draw(self, classes: IntArray) -> _Batch:
        n, births = len(classes), None
        rooms = [np.full(n, float(self.prior.size)) for _ in self.proposals]
        if self.release.birth is not None:
            low, high = self._births(self.release.birth)
            births = low[classes] + self._rng.random(n) * (high - low)[classes]
            rooms[0] = self.prior.size - births
        drawn = [
            proposal.draw(classes, room, self._rng)
            for proposal, room in zip(self.proposals, rooms, strict=True)
        ]
        places = [
            np.where(labels == NONE, 0.0, self.prior.log_places(features, room)).sum(axis=1)
            for (features, labels), room in zip(drawn, rooms, strict=True)
        ]
        # Draws whose labels are others than those of their features have the density zero.
        log_places = np.sum(places, axis=0)
        possible = np.isfinite(log_places)
        for proposal, (features, labels) in zip(self.proposals, drawn, strict=True):
            possible &= (proposal.labels(features) == labels).all(axis=1)
        return self._weigh(
            [(features[possible], labels[possible]) for features, labels in drawn],
            None if births is None else births[possible],
            [room[possible] for room in rooms],
            log_places[possible],
        )

    def _weigh(
        self,
        drawn: list[tuple[FloatArray, IntArray]],
        births: FloatArray | None,
        rooms: list[FloatArray],
        log_places: FloatArray,
    ) -> _Batch:
        distance = np.zeros(len(log_places))
        log_density = np.zeros((len(log_places), len(self.radii)))
        n_features = np.zeros(len(log_places), dtype=np.int64)
        if births is not None and self.release.birth is not None:
            distance = np.abs(births - self.release.birth)
            low, high = self._births(self.release.birth)
            with np.errstate(divide="ignore"):
                log_density += np.log((distance[:, None] <= self.radii) / (high - low))
        for proposal, (features, labels), room in zip(self.proposals, drawn, rooms, strict=True):
            distance = np.maximum(distance, proposal.distances(features, labels))
            log_density += proposal.log_density(features, labels, room)
            n_features += (labels != NONE).sum(axis=1)
        all_features = [features for features, _ in drawn]
        log_likelihood = self.likelihood.log_decay(distance)
        log_likelihood -= self.likelihood.log_normaliser(all_features, births)
        log_target = np.logaddexp.reduce(log_likelihood + self.log_gates, axis=1)
        log_target += log_places + self.prior.log_numbers(n_features, rooms)
        return _Batch(all_features, births, log_target, log_density)

    def _births(self, released: float) -> tuple[FloatArray, FloatArray]:
        """Return the first and the last birth of the essential component in each class."""
        last = np.minimum(released + self.radii, self.prior.size)
        return np.maximum(released - self.radii, 0), last


def _joined(parts: list[FloatArray]) -> FloatArray:
    """Join batches of features with different numbers of slots."""
    m = max(part.shape[1] for part in parts)
    return np.concatenate([np.pad(p, ((0, 0), (0, m - p.shape[1]), (0, 0))) for p in parts])

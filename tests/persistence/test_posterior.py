"""The posterior of a release: its likelihood, its sampler, and what users see of it."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.persistence._diagram_posterior import ReleasedDiagrams
from sklearn_dptda.persistence._exact_sampler import (
    BirthBall,
    DiagramBall,
    ExactSampler,
    decay_table,
)
from sklearn_dptda.persistence._likelihood import Likelihood
from sklearn_dptda.persistence._mechanisms import (
    DiagramGrid,
    LawOfDraw,
    make_base_measure,
    mechanism_of,
)
from sklearn_dptda.persistence._posterior_draws import Prior, Release, posterior_draws
from sklearn_dptda.persistence._private_grid_persistence import numbers_of
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.published import PublishedPersistence
from tests._refusals import refuses
from tests.persistence._oracles import law

# Bins of probabilities, and the false-alarm rate of one of them.
BINS, FALSE_ALARM = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.01), 1e-7


def law_of(size, max_points, rate, birth_decay=0, spike=0.9):
    """The public law of a release on a small grid."""
    return LawOfDraw(
        DiagramGrid(1.0, size, 1, float(size)),
        decay_table(*float(rate).as_integer_ratio(), size + 1),
        make_base_measure("spike-slab", size, max_points, spike=spike),
        birth_decay,
    )


def law_of_loss(loss):
    """The law of two dimensions for a privacy loss over the whole range."""
    private = PrivatePersistence(1.0)
    return mechanism_of(private, (0, 1)).prepare(1 / loss, 1.0)


def log_normaliser(public, diagram):
    found = Likelihood(public).log_normaliser([np.array(diagram, float).reshape(1, -1, 2)], None)
    return found[0, 0]


def enumerated(public, diagram):
    """The logarithm of Z from the weights of all diagrams."""
    measure, size = public.measure, public.grid.size
    area = size * (size + 1) // 2
    total = sum(omega * area**m for m, omega in enumerate(measure.count_weights))
    weight = sum(law(diagram, measure, public.table).values())
    return math.log(weight / (total * public.table.weight(0)))


@pytest.mark.parametrize(
    ("public", "diagrams", "within"),
    [
        (
            law_of(12, 1, 0.8),
            [[], [(2, 9)], [(0, 12)], [(3, 4)], [(0, 2), (8, 11)], [(0, 12), (0, 12)]],
            1e-9,
        ),
        (law_of(7, 2, 0.7, spike=0.97), [[], [(1, 5)], [(1, 5), (0, 6)], [(2, 6), (3, 7)]], 0.03),
    ],
    ids=["one slot", "several slots"],
)
def test_normaliser_is_that_of_all_diagrams(public, diagrams, within):
    for diagram in diagrams:
        found, expected = log_normaliser(public, diagram), enumerated(public, diagram)
        assert_allclose(found, expected, atol=within)


def test_gate_makes_all_levels_below_it_equal():
    public = law_of(12, 1, 0.8)
    likelihood = Likelihood(public, (0.0, 5.0))
    decay = likelihood.log_decay(np.array([0.0, 4.0, 6.0]))
    assert_allclose(decay[:, 1], [-4.0, -4.0, -4.8])
    empty = likelihood.log_normaliser([np.zeros((1, 1, 2))], None)
    # Only levels from the gate on remain.
    assert_allclose(empty[0, 1], math.log(math.exp(-4.0)), atol=0.2)


@pytest.mark.laws
@pytest.mark.parametrize("loss", [60, 200, 1000])
def test_normaliser_agrees_with_the_weights_of_the_sampler(loss):
    rng, public = np.random.default_rng(loss), law_of_loss(loss)
    size, measure = public.grid.size, public.measure
    area = size * (size + 1) // 2
    total = sum(omega * area**m for m, omega in enumerate(measure.count_weights))
    ones = Likelihood(public)
    errors = []
    for seed in range(15):
        diagrams = [np.sort(rng.integers(0, size + 1, (k, 2)), axis=1) for k in (2, 3)]
        diagrams = [d[d[:, 0] < d[:, 1]] for d in diagrams]
        birth = int(rng.integers(0, size + 1))
        ball = BirthBall(birth, size, public.birth_decay)
        sampler = ExactSampler(
            [DiagramBall(diagrams[0], measure), ball, DiagramBall(diagrams[1], measure)],
            public.table,
        )
        source = NoiseSource(seed)
        for _ in range(40):
            sampler.draw(source)
        births = ball.cover(size).weight(size)
        # A cover counts a diagram once for each proposal, of which this share is accepted.
        exact = math.log(sampler._cumulative[-1] * 40 // sampler.n_proposals_)
        exact -= 2 * math.log(total) + math.log(public.table.weight(0)) + math.log(births)
        found = ones.log_normaliser([d[None].astype(float) for d in diagrams], np.array([birth]))
        errors.append(found[0, 0] - exact)
    # The share of 40 accepted proposals has a standard deviation of at most .1 on this scale.
    assert np.abs(errors).max() < 0.5
    assert abs(np.mean(errors)) < 0.1


def release_of(public, diagrams, birth, seed):
    balls = [DiagramBall(d, public.measure) for d in diagrams]
    balls.insert(1, BirthBall(birth, public.grid.size, public.birth_decay))
    first, born, second = ExactSampler(balls, public.table).draw(NoiseSource(seed))
    as_points = [np.array(d, dtype=float).reshape(-1, 2) for d in (first, second)]
    return Release(as_points, float(born[0][0]))


def prior_of(public, expected=1.0):
    return Prior(expected, 3 / public.table.rate, public.grid.size)


def near_to(features, point):
    """Which draws have a feature that is closer to a point than both are to the diagonal."""
    reach = np.minimum(features[..., 1] - features[..., 0], point[1] - point[0]) / 2
    return ((np.abs(features - point).max(axis=-1) <= reach) & (reach > 0)).any(axis=-1)


def many_exact_diagrams(rng, public, n, most=25, expected=1.0):
    """Exact diagrams from the prior: arrays (n, most, 2) of two dimensions, and births."""
    size, shortest = float(public.grid.size), 3 / public.table.rate
    births = rng.uniform(0, size, n)
    means, features = expected * rng.choice([1 / 3, 1.0, 3.0], n), []
    for room in (size - births, np.full(n, size)):
        number = np.where(room > shortest, rng.poisson(means), 0)
        room = np.maximum(room, shortest)[:, None]
        length = shortest * (room / shortest) ** rng.random((n, most))
        born = size - room + rng.random((n, most)) * (room - length)
        there = (np.arange(most) < number[:, None])[:, :, None]
        features.append(np.where(there, np.stack([born, born + length], axis=2), size / 2))
    return features, births


def exact_diagrams(rng, public):
    """Those of one cloud, as integers."""
    features, (birth,) = many_exact_diagrams(rng, public, 1)
    there = [each[0][np.ptp(each[0], axis=1) > 0] for each in features]
    return [np.rint(each).astype(np.int64) for each in there], round(birth)


def distances_from_one(features, point):
    """Bottleneck distances of diagrams from a diagram of one point, by its possible partners."""
    half = np.ptp(features, axis=2) / 2
    best = np.maximum(half.max(axis=1), (point[1] - point[0]) / 2)
    for slot in range(features.shape[1]):
        rest = np.delete(half, slot, axis=1).max(axis=1)
        best = np.minimum(best, np.maximum(np.abs(features[:, slot] - point).max(axis=1), rest))
    return best


def weighted_prior(public, release, rng, expected=1.0):
    """Draws of the prior itself, weighted by their likelihood with distances by another code."""
    features, births = many_exact_diagrams(rng, public, 20_000, expected=expected)
    distance = np.abs(births - release.birth)
    for each, points in zip(features, release.diagrams, strict=True):
        empty = np.ptp(each, axis=2).max(axis=1) / 2
        distance = np.maximum(distance, distances_from_one(each, *points) if len(points) else empty)
    # The others have a likelihood below exp(-15) of that of the nearest ones.
    near, likelihood = distance < 25 / public.table.rate, Likelihood(public)
    features, births = [each[near] for each in features], births[near]
    log_likelihood = likelihood.log_decay(distance[near])
    weights = np.exp(log_likelihood - likelihood.log_normaliser(features, births))
    return features, weights[:, 0]


@pytest.mark.laws
@pytest.mark.parametrize("length", [10, 13])
def test_probability_agrees_with_draws_from_the_prior(length):
    public = law_of_loss(60)
    size, rate = public.grid.size, public.table.rate
    point = np.rint(np.array([0.3, 0.3 + length / (rate * size)]) * size)
    release = Release([np.empty((0, 2)), point[None]], 0.2 * size)
    runs = [weighted_prior(public, release, np.random.default_rng(seed)) for seed in range(6)]
    weights = np.concatenate([weights for _, weights in runs])
    true = np.concatenate([near_to(features[1], point) for features, _ in runs])
    weights /= weights.sum()
    expected = weights @ true
    draws = posterior_draws(Likelihood(public), np.zeros(1), release, prior_of(public))
    found = draws.weights @ near_to(draws.features[1], point)
    errors = [weights * (true - expected), np.sqrt(found * (1 - found) / draws.n_effective)]
    assert 1 / (weights**2).sum() > 300
    assert 0.1 < expected < 0.9
    assert abs(found - expected) < 5 * math.hypot(*map(np.linalg.norm, errors))


@pytest.mark.laws
@pytest.mark.parametrize("expected", [1.0, 3.0])
def test_numbers_of_features_agree_with_draws_from_the_prior(expected):
    public = law_of_loss(60)
    rate, size = public.table.rate, public.grid.size
    release = Release([np.empty((0, 2)), np.empty((0, 2))], 0.2 * size)
    features, weights = weighted_prior(public, release, np.random.default_rng(0), expected)
    weights /= weights.sum()
    draws = posterior_draws(Likelihood(public), np.zeros(1), release, prior_of(public, expected))
    for q in (0, 1):
        for longer in (0, 5 / rate):
            numbers = [
                (np.ptp(each[q], axis=2) > longer).sum(axis=1)
                for each in (features, draws.features)
            ]
            means = [w @ n for w, n in zip((weights, draws.weights), numbers, strict=True)]
            errors = [
                np.linalg.norm(w * (n - mean))
                for w, n, mean in zip((weights, draws.weights), numbers, means, strict=True)
            ]
            assert abs(means[1] - means[0]) < 5 * math.hypot(*errors)


def calibration(cases, likelihood_of):
    """Probabilities of released points with the truth, and ranks of the number of features."""
    points, ranks, rng = [], [], np.random.default_rng(0)
    for seed in range(cases):
        public = law_of_loss((50, 100, 200)[seed % 3])
        diagrams, birth = exact_diagrams(rng, public)
        release = release_of(public, diagrams, birth, seed)
        draws = posterior_draws(likelihood_of(public), np.zeros(1), release, prior_of(public))
        if draws.n_effective < 30:
            continue
        for q, released in enumerate(release.diagrams):
            for point in released[np.diff(released)[:, 0] > 2 / public.table.rate]:
                probability = draws.weights @ near_to(draws.features[q], point)
                points.append((probability, near_to(diagrams[q].astype(float), point)))
        number, exact = np.zeros(len(draws.weights)), 0
        for features, diagram in zip(draws.features, diagrams, strict=True):
            number += (np.ptp(features, axis=2) > 10 / public.table.rate).sum(axis=1)
            exact += (np.ptp(diagram, axis=1) > 10 / public.table.rate).sum()
        ties = rng.random() * (draws.weights @ (number == exact))
        ranks.append(draws.weights @ (number < exact) + ties)
    return np.array(points), np.array(ranks)


def tails(points, ranks):
    """The least two-sided probability of a bin of points, and that of the upper half of ranks."""
    least = 1.0
    for low, high in pairwise(BINS):
        own = points[(points[:, 0] >= low) & (points[:, 0] < high)]
        if len(own):
            mean = np.clip(own[:, 0].mean(), 1e-3, 1 - 1e-3)
            least = min(least, binomtest(int(own[:, 1].sum()), len(own), mean).pvalue)
    return least, binomtest(int((ranks > 0.5).sum()), len(ranks), 0.5).pvalue


@pytest.mark.nightly
def test_probabilities_are_those_of_diagrams_from_the_prior():
    # 8 tests, so that the false-alarm rate is 1e-6.
    assert min(tails(*calibration(300, Likelihood))) > FALSE_ALARM


@pytest.mark.nightly
def test_calibration_detects_a_likelihood_without_its_normaliser():
    class Broken(Likelihood):
        def log_normaliser(self, diagrams, births):
            return np.zeros((len(diagrams[0]), len(self.gates)))

    assert min(tails(*calibration(300, Broken))) < FALSE_ALARM


@pytest.fixture(scope="module")
def released():
    clouds = [make_two_circles(2000, random_state=i) for i in range(2)]
    functions = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=41).fit_transform(clouds)
    private = PrivatePersistence(2.0, random_state=0)
    return private, private.fit_transform(functions), functions


@pytest.fixture(scope="module")
def posteriors(released):
    private, diagrams, _ = released
    return private.posterior(diagrams)


def test_posterior_is_aligned_with_the_release_and_repeats(released, posteriors):
    private, diagrams, _ = released
    for posterior, again, release in zip(
        posteriors, private.posterior(diagrams), diagrams, strict=True
    ):
        assert posterior.converged and posterior.message == ""
        assert [len(p) for p in posterior.probability] == [len(d) for d in release]
        for one, other in zip(posterior.probability, again.probability, strict=True):
            assert_array_equal(one, other)
        # The essential component dies at the upper bound, and always exists.
        essential = release[0][:, 1].argmax()
        assert posterior.probability[0][essential] == 1.0
        # Both loops are certain, and their intervals contain the released points.
        longest = np.argsort(np.diff(release[1])[:, 0])[-2:]
        assert (posterior.probability[1][longest] > 0.95).all()
        intervals = posterior.interval(0.9999)
        assert (intervals[1][longest, :, 0] < release[1][longest]).all()
        assert (intervals[1][longest, :, 1] > release[1][longest]).all()


def test_count_and_sample_agree_with_each_other(posteriors):
    posterior = posteriors[0]
    for dimension in (0, 1):
        counts = posterior.count(dimension, 0.3)
        assert_allclose(counts.sum(), 1.0)
        draws = posterior.sample(2000)
        numbers = [(np.diff(d[dimension])[:, 0] > 0.3).sum() for d in draws]
        found = np.bincount(numbers, minlength=len(counts)) / len(draws)
        assert_allclose(found, counts, atol=0.05)


def test_prior_matters_for_what_is_not_shown(released):
    private, diagrams, _ = released
    few, many = (private.posterior(diagrams, expected)[0] for expected in (0.3, 3.0))
    shorter = [
        posterior.count(1, 0.1) @ np.arange(len(posterior.count(1, 0.1)))
        for posterior in (few, many)
    ]
    assert shorter[0] < shorter[1]


def test_posterior_is_pickled(posteriors):
    posterior = posteriors[0]
    copy = pickle.loads(pickle.dumps(posterior))
    assert_array_equal(copy.probability[1], posterior.probability[1])
    assert repr(copy) == repr(posterior)
    assert repr(copy).startswith("DiagramPosterior(H0: 1.00")


def test_one_dimension_gives_one_array(released):
    _, _, functions = released
    private = PrivatePersistence(2.0, homology_dimensions=1, random_state=0)
    diagrams = private.fit_transform(functions)
    (probability,) = private.posterior(diagrams)[0].probability
    assert len(probability) == len(diagrams[0])


def test_lattice_widens_intervals_and_narrows_the_reach(released):
    private, diagrams, _ = released
    mechanism = mechanism_of(private, private.homology_dimensions_)
    (caps, _), *_ = numbers_of(private.laws_)
    exact, moved = (
        ReleasedDiagrams.of(mechanism, diagrams[0], (0, 1), caps, private.cap_[0], error)
        for error in (0.0, 0.05)
    )
    exact, moved = exact.posterior(1.0), moved.posterior(1.0)
    assert (moved.probability[1] <= exact.probability[1] + 1e-12).all()
    widths = [np.diff(p.interval()[0])[0, 0] for p in (exact, moved)]
    assert_allclose(widths[1] - widths[0], 0.1)


def test_used_up_max_points_give_no_answer(released):
    _, _, functions = released
    private = PrivatePersistence(50.0, max_points=1, random_state=0)
    diagrams = private.fit_transform(functions)
    posterior = private.posterior(diagrams)[0]
    assert not posterior.converged
    assert "max_points=1" in posterior.message
    assert "max_points=1" in repr(posterior)
    assert np.isnan(posterior.probability[1]).all()
    assert np.isnan(posterior.interval()[1]).all()
    assert len(posterior.count(1, 0.3)) == 0
    assert posterior.sample() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:1], "the last transform of this estimator"),
        (lambda d: [[c[0], c[1] + 0.0123] for c in d], "not on the grid"),
        (lambda d: [[c[0][:, :1], c[1]] for c in d], r"must have shape \(n_points, 2\)"),
        (lambda d: [c[:1] for c in d], "one diagram for each"),
        (lambda d: [[c[0], c[1][:, ::-1]] for c in d], "death is not after its birth"),
    ],
)
def test_other_diagrams_are_refused(released, change, message):
    private, diagrams, _ = released
    refuses(message, private.posterior, change(diagrams))


def test_posterior_refuses_exact_releases_bad_numbers_and_other_fits(released):
    private, diagrams, functions = released
    exact = PrivatePersistence(math.inf)
    refuses("epsilon=inf", exact.posterior, exact.fit_transform(functions))
    for expected in (0.0, 11, math.nan, "many"):
        refuses("expected_features", private.posterior, diagrams, expected)
    refuses(None, clone(private).posterior, diagrams, error=NotFittedError)
    posterior = private.posterior(diagrams)[0]
    refuses("level", posterior.interval, 1.0)
    refuses("dimension", posterior.count, 2, 0.3)
    refuses("longer_than", posterior.count, 1, 1e-9)
    private = PrivatePersistence(2.0, random_state=0)
    diagrams = private.fit_transform(functions)
    private.set_params(epsilon=5.0).fit(functions)
    refuses("the last transform of this estimator", private.posterior, diagrams)


def test_variants_of_the_paper_have_no_posterior():
    for options in ({}, {"mechanism": "exact", "utility": "sum"}, {"base_measure": "poisson"}):
        assert not hasattr(PublishedPersistence(**options), "posterior")
    assert hasattr(PrivatePersistence(), "posterior")


def test_points_at_the_upper_bound_are_on_the_grid():
    # The last step of the grid is beyond the upper bound, at which it is released.
    values = np.ones((12, 12))
    values[3:9, 3:9] = 0.0
    values[5:7, 5:7] = 1.0
    private = PrivatePersistence(1.0, sensitivity=0.020102564102564103, upper=1.0, random_state=23)
    diagrams = private.fit_transform([values])
    assert (diagrams[0][1][:, 1] == 1.0).any()
    assert len(private.posterior(diagrams)) == 1


def test_default_cap_has_no_gate_even_if_others_could_be_drawn(released):
    private, _, _ = released
    mechanism = mechanism_of(private, private.homology_dimensions_)
    (caps, _), *_ = numbers_of(private.laws_)
    assert len(caps) > 1
    for _, upper in caps[:2]:
        on_grid = [[[0.0, caps[0][1]]], []]
        released = ReleasedDiagrams.of(mechanism, on_grid, (0, 1), caps, upper, 0.0)
        assert released.has_gate == (upper != caps[0][1])


def test_intervals_are_those_of_the_feature_that_belongs_to_the_point():
    # A long point, whose square contains many places of short features.
    public = law_of_loss(400)
    upper = public.grid.upper
    released = ReleasedDiagrams([np.array([[0.1, 0.9]]) * upper], (1,), public, upper, 0.0, False)
    steps = released.values(released.steps(released.diagrams[0]))
    released = ReleasedDiagrams([steps], (1,), public, upper, 0.0, False)
    (interval,) = released.posterior(3.0).interval()
    assert np.ptp(interval[0], axis=1).max() < 0.15 * upper


def test_posterior_has_no_answer_if_no_draw_agrees(filtration, monkeypatch):
    private = PrivatePersistence(5.0, random_state=0)
    diagrams = private.fit_transform([filtration])
    decay = Likelihood.log_decay
    monkeypatch.setattr(Likelihood, "log_decay", lambda self, d: decay(self, d) - math.inf)
    monkeypatch.setattr("sklearn_dptda.persistence._posterior_draws._FIRST", 500)
    (posterior,) = private.posterior(diagrams, expected_features=9.0)
    assert not posterior.converged and "only 0 of" in posterior.message

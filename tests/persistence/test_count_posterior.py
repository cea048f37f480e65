"""Probabilities of private counts: law of the draw, agreement with the prior, calibration."""

import pickle

import numpy as np
import pytest
from scipy.stats import binom

from sklearn_dptda import PrivateBettiNumbers
from sklearn_dptda.persistence._count_choice import scores_of
from sklearn_dptda.persistence._count_posterior import ReleasedCounts, log_chances
from sklearn_dptda.persistence._private_grid_persistence import GridFunction
from tests._refusals import refuses
from tests.persistence._long_features import filtration, loops
from tests.privacy._permute_and_flip import permute_and_flip_law_of_many

FALSE_ALARM = 1e-6
CAPS = [(0.05, 1.0), (0.02, 0.5)]


class FunctionOfDiagrams(GridFunction):
    """Knows its diagrams."""

    def diagrams(self, dimensions, n_caps=1):
        essential = np.array([[0.0, self.upper]])
        return [[np.vstack([essential[: q == 0], self.values[q]]) for q in dimensions]]


def exact_features(rng, shortest, expected=1.0, upper=1.0):
    """Draw features of the prior: components and loops."""
    mean, features = expected * rng.choice([1 / 3, 1.0, 3.0]), []
    for _ in range(2):
        length = shortest * (upper / shortest) ** rng.random(rng.poisson(mean))
        births = rng.random(len(length)) * (upper - length)
        features.append(np.column_stack([births, births + length]))
    return features


def law_of_counts(private, features, place):
    """Return the law of the candidates under a cap, by an integral of high degree."""
    function = FunctionOfDiagrams(features, *CAPS[place], 0.0)
    choice = private._choice(CAPS)
    tried = [t._replace(place=0) for t in choice.tried if t.place == place]
    found = scores_of(private._numbers(), function, choice._replace(tried=tried))
    return permute_and_flip_law_of_many(-np.concatenate([s.ravel() for s in found]), choice.rate)


def released(private, place, chosen, counts, has_gate=False):
    choice = private._choice(CAPS)
    tried = [t for t in choice.tried if t.place == place]
    upper = CAPS[place][1]
    return ReleasedCounts(
        (0, 1), counts, choice._replace(tried=tried), chosen, upper, has_gate, private.max_count
    )


def test_log_chances_are_those_of_permute_and_flip(rng):
    for size, scales in ((1, [1.0]), (7, [0.1, 2.0, 30.0]), (40, [0.1, 2.0]), (1500, [1e-3, 1.0])):
        for scale in scales:
            losses = rng.random((3, size)) * scale
            losses[:, 0] = 0
            place = int(rng.integers(size))
            expected = [np.log(permute_and_flip_law_of_many(each, 1.0)[place]) for each in losses]
            np.testing.assert_allclose(log_chances(losses, place), expected, atol=0.02)


@pytest.mark.parametrize(
    ("threshold", "epsilon"),
    [
        ((0.2, 0.3), 1.0),
        *(pytest.param(None, epsilon, marks=pytest.mark.laws) for epsilon in (0.5, 1.0)),
    ],
)
def test_probabilities_of_counts_agree_with_draws_from_the_prior(threshold, epsilon):
    private = PrivateBettiNumbers(
        epsilon, threshold, max_count=2, sensitivity=CAPS[0][0], upper=1.0
    ).fit([loops([0.3])])
    rng, n, most = np.random.default_rng(0), 4000, 2
    for place in (0,) if threshold else (0, 1):
        n_tried = sum(t.place == place for t in private._choice(CAPS).tried)
        release = released(private, place, n_tried - 1, (1, 1))
        upper, (first, second) = CAPS[place][1], release.thresholds
        weights, numbers = np.zeros(n), np.zeros((n, 2), dtype=int)
        for i in range(n):
            features = exact_features(rng, release.shortest, upper=upper)
            law = law_of_counts(private, features, place)
            weights[i] = law[6 * (n_tried - 1) + np.ravel_multi_index((0, 1), (2, 3))]
            components, circles = (np.ptp(each, axis=1) for each in features)
            exact = (components > first).sum() + 1, (circles > second).sum()
            numbers[i] = np.minimum(exact, most)
        weights /= weights.sum()
        laws = release.posterior(1.0)
        # Six standard errors of a difference of shares.
        off = 6 * np.sqrt(0.25 * ((weights**2).sum() + 1 / 400)) + 0.01
        for q in range(2):
            expected = np.bincount(numbers[:, q], weights, most + 1)
            np.testing.assert_allclose(laws[q], expected, atol=off)
            assert off < 0.3


def test_gate_of_a_smaller_cap_makes_counts_less_certain():
    private = PrivateBettiNumbers(2.0, max_count=2).fit([filtration(loops([0.3]), CAPS[0][0])])
    laws = [released(private, 1, 1, (2, 1), gate).posterior(1.0) for gate in (False, True)]
    assert (laws[0].max(axis=1) > laws[1].max(axis=1) + 0.01).all()


def claims_of(epsilon, told, n=250):
    """Return how many counts have a probability of at least 0.9, and how many of them are right.

    The features are those of the prior. ``told`` is the epsilon that the posterior is told.
    """
    rng, claims = np.random.default_rng(0), []
    private = PrivateBettiNumbers(epsilon, 0.2, 1, random_state=np.random.default_rng(1))
    twin = PrivateBettiNumbers(told, 0.2, 1)
    private.fit([filtration(loops([0.3]), CAPS[0][0])])
    shortest = released(private, 0, 0, (1, 0)).shortest
    for _ in range(n):
        lives = np.ptp(exact_features(rng, shortest)[1], axis=1)
        item = filtration(loops(lives, base=0.0), CAPS[0][0])
        counts = private.transform([item])
        twin.fit([item]).laws_ = private.laws_
        ((law,),) = twin.posterior(counts)
        if law.max() >= 0.9:
            claims.append(law.argmax() == min((lives > 0.2).sum(), 5))
    return len(claims), sum(claims)


@pytest.mark.laws
def test_claims_of_counts_are_right_and_those_of_a_twin_are_not():
    n, right = claims_of(1.0, told=1.0)
    assert n > 50 and right > binom.ppf(FALSE_ALARM, n, 0.9)
    # The twin believes that there is a tenth of the noise.
    n, right = claims_of(1.0, told=10.0)
    assert right < binom.ppf(FALSE_ALARM, n, 0.9)


def test_posterior_of_counts_says_more_than_a_statement():
    items = [filtration(loops([0.5, 0.4, 0.02]), 0.012)]
    private = PrivateBettiNumbers(1.0, 0.15, random_state=2)
    counts = private.fit_transform(items)
    assert counts.tolist() == [[1, 2]]
    assert "at least" not in private.statements(counts)[0]
    laws = private.posterior(counts)
    assert laws.shape == (1, 2, 6) and laws.sum(axis=2) == pytest.approx(np.ones((1, 2)))
    assert laws.argmax(axis=2).tolist() == [[1, 2]] and laws[0, 1, 2] > 0.7
    # It is deterministic, and a worker's answer is the same.
    again = pickle.loads(pickle.dumps(private)).set_params(n_jobs=2).posterior(counts)
    np.testing.assert_array_equal(laws, again)
    # If more features are expected, more are probable.
    few, many = (private.posterior(counts, mean)[0, 1, 3:].sum() for mean in (0.1, 10.0))
    assert few < many


def test_posterior_of_found_counts_is_of_the_last_release():
    items = [filtration(loops([0.5, 0.4, 0.02]), s) for s in (0.001, 0.01)]
    private = PrivateBettiNumbers(2.0, random_state=0)
    counts = private.fit_transform(items)
    first, second = private.posterior(counts)
    assert first[1].argmax() == 2 and first[1].max() > 0.95
    assert np.isfinite(second).all()
    refuses("counts has 1 rows", private.posterior, counts[:1])
    with pytest.raises(ValueError, match="counts has 2 rows, but there are 0"):
        PrivateBettiNumbers(2.0).fit(items).posterior(counts)


def test_counts_forget_their_law_when_they_are_fitted_again():
    items = [filtration(loops([0.5, 0.02]), 0.02)]
    private = PrivateBettiNumbers(1.0, random_state=0)
    counts = private.fit_transform(items)
    assert hasattr(private, "thresholds_")
    private.set_params(threshold=0.15).fit(items)
    assert not {"laws_", "thresholds_", "cap_", "release_margins_"} & vars(private).keys()
    refuses("but there are 0 filtrations", private.posterior, counts)
    private.transform(items)
    assert hasattr(private, "laws_") and not hasattr(private, "thresholds_")


def test_posterior_of_many_counts_has_an_answer():
    items = [filtration(loops([0.5, 0.4, 0.3]), 0.005)]
    for threshold, most in ((0.15, 100), (None, 16)):
        private = PrivateBettiNumbers(2.0, threshold, max_count=most, random_state=0)
        laws = private.posterior(private.fit_transform(items))
        assert laws[0].argmax(axis=1).tolist() == [1, 3] and laws.max() <= 1


def test_posterior_of_counts_refuses_what_has_no_answer():
    items = [filtration(loops([0.5, 0.02]), 0.02)]
    private = PrivateBettiNumbers(1.0, 0.15, random_state=0).fit(items)
    counts = private.transform(items)
    for wrong in (counts + 9, counts + 0.5, counts * 0):
        refuses("what the last transform", private.posterior, wrong)
    refuses("expected_features must be from", private.posterior, counts, True)
    exact = PrivateBettiNumbers(np.inf, 0.15)
    refuses("nothing is uncertain", exact.posterior, exact.fit_transform(items))

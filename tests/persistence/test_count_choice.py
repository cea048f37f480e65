"""Counts whose threshold and cap are chosen privately: loss, law, margins, and results."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from sklearn_dptda import DTMFiltration, PrivateBettiNumbers
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.persistence._count_choice import UNIT, make_choice
from tests._refusals import refuses
from tests.persistence._clouds import filtration_of, hostile_pairs
from tests.persistence._long_features import attacked, filtration, loops
from tests.persistence._oracles import p_value
from tests.persistence.test_betti_numbers import TwiceTheRate, scores
from tests.privacy._permute_and_flip import permute_and_flip_law, permute_and_flip_law_of_many


class WithoutUnits(PrivateBettiNumbers):
    """Takes smaller caps to have the sensitivity of the smallest one."""

    def _choice(self, function):
        choice = super()._choice(function)
        least = choice.tried[-1].lattice
        return choice._replace(tried=[t._replace(lattice=least) for t in choice.tried])


def test_permute_and_flip_law_of_many_equals_enumeration(rng):
    for size in (1, 2, 5, 6):
        costs = rng.integers(0, 9, size)
        for rate in (0.1, 1.0, 7.0):
            np.testing.assert_allclose(
                permute_and_flip_law_of_many(costs, rate),
                permute_and_flip_law(costs, rate),
                atol=1e-12,
            )


@pytest.mark.laws
def test_found_threshold_loses_epsilon_and_twins_lose_more():
    worst, moved = dict.fromkeys((PrivateBettiNumbers, TwiceTheRate, WithoutUnits), 0.0), 0
    pairs = [
        [filtration_of(cloud, k) for cloud in pair] for k in (2, 6) for pair in hostile_pairs(k)
    ]
    values = loops([0.5, 0.3])
    pairs.append([filtration(v, 2.0**-6) for v in (values, attacked(values, 2.0**-6, 0.26))])
    for items in pairs:
        for kind in worst:
            private = kind(2.0, max_count=2)
            found = [scores(private, item) for item in items]
            laws = [permute_and_flip_law_of_many(-s, choice.rate) for choice, s in found]
            loss = np.abs(np.log(laws[0]) - np.log(laws[1])).max()
            worst[kind] = max(worst[kind], loss / 2.0)
            if kind is PrivateBettiNumbers:
                moved = max(moved, np.abs(found[0][1] - found[1][1]).max())
    assert 0.9 * UNIT < moved <= UNIT
    assert 0.5 < worst[PrivateBettiNumbers] <= 1 + 1e-9
    assert worst[TwiceTheRate] > 1.2
    assert worst[WithoutUnits] > 1.2


@pytest.mark.laws
def test_found_threshold_is_of_the_enumerated_law():
    # 5,000 draws, at a false-alarm rate of 1e-6. Another rate is detected.
    item, n = filtration(loops([0.35, 0.3, 0.02]), 2.0**-6), 5000
    private = PrivateBettiNumbers(1.0, max_count=3, random_state=np.random.default_rng(0))
    choice, found = scores(private, item)
    counts = private.transform([filtration(item.values, 2.0**-6) for _ in range(n)])
    shape = (3, 4)
    places = np.searchsorted([t.thresholds[0] for t in choice.tried], private.thresholds_ - 1e-12)
    drawn = np.ravel_multi_index((places, *(counts - [1, 0]).T), (len(choice.tried), *shape))
    observed = np.bincount(drawn, minlength=len(found))
    for factor in (1.0, 0.8, 1.25):
        expected = n * permute_and_flip_law_of_many(-found, factor * choice.rate)
        assert (p_value(observed, expected) > 1e-6) == (factor == 1.0)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.5, 1.0, math.inf])
def test_found_threshold_counts_circles_and_blobs(epsilon):
    # 100 draws: each is wrong in at most one of a hundred cases. More than 12 have a probability
    # below 1e-6.
    rng = np.random.default_rng(0)
    clouds = {
        (2, 2): make_two_circles(4000, random_state=101),
        (1, 0): rng.normal(0.2, 0.6, (4000, 2)),
    }
    for expected, cloud in clouds.items():
        for box in ((-2.5, 3.0), (-8.0, 8.5)):
            item = DTMFiltration(0.1, bounds=box).fit_transform([cloud])
            private = PrivateBettiNumbers(epsilon, random_state=0).fit(item)
            wrong = 0
            for seed in range(50):
                (counts,) = private.set_params(random_state=seed).transform(item)
                wrong += tuple(counts) != expected
            assert wrong <= binom.isf(1e-6, 50, 0.05)
            assert private.cap_[0] <= item[0].upper
            assert 0 < private.thresholds_[0] < 0.9 * private.cap_[0] * 1.001


@pytest.mark.laws
def test_found_threshold_margins_hold_for_features_everywhere():
    # There are features around all thresholds. Failures of 20 % are stated: more than 266 of 1000
    # have a probability below 1e-6.
    lives = np.geomspace(0.02, 0.6, 24)[::-1]
    item = filtration(loops(lives, base=0.05), 2.0**-7)
    private = PrivateBettiNumbers(
        1.0, homology_dimensions=1, confidence=0.8, random_state=np.random.default_rng(0)
    ).fit([item])
    n, failed = 1000, 0
    counts = private.transform([filtration(item.values, 2.0**-7) for _ in range(n)])
    for (count,), t, margin in zip(
        counts, private.thresholds_, private.release_margins_, strict=True
    ):
        at_least = (lives > t - margin).sum() >= count
        at_most = count == private.max_count or (lives > t + margin).sum() <= count
        failed += not (at_least and at_most)
    assert failed <= binom.isf(1e-6, n, 0.2)
    assert (private.release_margins_ <= private.margins_[0]).all()


def test_found_threshold_statements_are_about_the_last_release():
    items = [filtration(loops([0.3, 0.1]), s) for s in (0.001, 0.01)]
    private = PrivateBettiNumbers(5.0, random_state=0).fit(items)
    counts = private.transform(items)
    first, second = private.statements(counts)
    assert "1 component longer than" in first and "(confidence 0.95)" in second
    refuses("counts has 1 rows", private.statements, counts[:1], items[:1])
    with pytest.raises(ValueError, match="counts has 1 rows, but the last transform drew 0"):
        PrivateBettiNumbers(5.0).fit(items[:1]).statements(counts[:1])


def test_make_choice_of_thresholds_is_public():
    caps = [(0.01, 2.0), (0.005, 1.0)]
    choice = make_choice(caps, 1.0, 2)
    for t in choice.tried:
        first, second = t.thresholds
        assert caps[t.place][1] * 0.9 >= first == second >= 1.8 * math.sqrt(0.005)
    prices = [t.price for t in choice.tried]
    assert min(prices) == 0
    # With more budget, the price of low thresholds falls, down to a limit.
    assert max(make_choice(caps, 0.5, 1).tried).price > max(prices)
    assert make_choice(caps, 100.0, 2) == make_choice(caps, 50.0, 2)._replace(rate=100 / (2 * UNIT))
    # If there is only noise, one threshold is left.
    assert [t.thresholds for t in make_choice([(1.0, 2.0)], 1.0, 1).tried] == [(1.8,)]

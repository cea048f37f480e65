"""The exponential mechanism: its law, and its privacy by exact weights."""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import permutations

import numpy as np
import pytest

from sklearn_dptda.privacy import NoiseSource, _choice, private_choice
from sklearn_dptda.privacy._choice import _ROUNDING, _weights, choose_member
from sklearn_dptda.privacy._exact_draws import ExactDraws
from sklearn_dptda.privacy._release_key import ReleaseKey
from tests._refusals import refuses
from tests.privacy._laws import p_value
from tests.privacy._permute_and_flip import permute_and_flip_law

COSTS, RATE, N = [0, 3, 5, 50], 0.3, 5000


def exponential_law(costs, rate):
    weights = np.exp(-rate * np.array(costs))
    return weights / weights.sum()


LAWS = {True: exponential_law, False: permute_and_flip_law}


@pytest.mark.laws
@pytest.mark.parametrize(("seed", "factor"), [(0, 1.2), (None, 1.5)])
@pytest.mark.parametrize("bounded_range", [True, False])
def test_private_choice_follows_its_law(bounded_range, seed, factor):
    noise = NoiseSource(seed)
    draws = [private_choice(COSTS, RATE, noise, bounded_range=bounded_range) for _ in range(N)]
    assert p_value(draws, LAWS[bounded_range](COSTS, RATE)) > 1e-6
    # A higher rate, and the other of the two laws, are detected. Without a seed, a rate that is
    # higher by a fifth would pass in one of 500 runs, and by a half with probability below 1e-20.
    assert p_value(draws, LAWS[bounded_range](COSTS, factor * RATE)) < 1e-6
    assert p_value(draws, LAWS[not bounded_range](COSTS, RATE)) < 1e-6


@pytest.mark.parametrize("law", LAWS.values())
def test_laws_of_choices_lose_no_more_than_the_rate(law, rng):
    # All costs rise by 0..D: epsilon is rate * D. For the exponential mechanism, so is the range.
    largest = 4
    for _ in range(100):
        before = rng.integers(0, 12, size=4)
        after = before + rng.integers(0, largest + 1, size=4)
        loss = np.log(law(before, RATE)) - np.log(law(after, RATE))
        assert np.abs(loss).max() <= RATE * largest + 1e-12
        if law is exponential_law:
            assert np.ptp(loss) <= RATE * largest + 1e-12


@pytest.mark.parametrize("rate", [1e-7, 0.01, 0.5, 3.0])
def test_weights_of_neighbours_differ_within_the_rate(rate, rng):
    # Exact log probabilities, without sampling. One record changes all costs by 0..D.
    largest = 10
    for _ in range(50):
        costs = rng.integers(0, 300, size=12)
        moved = costs + rng.integers(0, largest + 1, size=12)
        logs = []
        for c in (costs, moved):
            weights = _weights((c - c.min()).astype(float), rate)
            logs.append(np.array([math.log(w) for w in weights]) - math.log(sum(weights)))
        difference = logs[0] - logs[1]
        epsilon = rate * largest
        assert np.abs(difference).max() <= epsilon * (1 + 1e-12) + 1e-13
        assert np.ptp(difference) <= epsilon * (1 + 1e-12) + 1e-13


def test_weights_reach_the_rate_in_the_worst_case():
    # One cost changes, another does not: the range of the loss is the whole loss.
    a, b = _weights([0, 0], 0.5), _weights([0, 2], 0.5)
    loss = math.log(a[0] / sum(a) * sum(b) / b[0]), math.log(a[1] / sum(a) * sum(b) / b[1])
    assert loss[1] - loss[0] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("bounded_range", [True, False])
def test_private_choice_takes_extreme_costs_and_rates(bounded_range, seed):
    choose = partial(private_choice, noise=NoiseSource(seed), bounded_range=bounded_range)
    assert choose([5, 4, 4], math.inf) == 1
    # Without a seed, costs above 64 bits are cut off.
    assert choose([0, 10**30], 1.0) == choose([-(10**30), 0], 1.0) == 0
    for rate in (0.0, 5e-324):
        assert {choose([0, 10**9], rate) for _ in range(60)} == {0, 1}
    for name, costs, rate in (("rate", [1], -1.0), ("rate", [1], math.nan), ("costs", [], 1.0)):
        refuses(name, choose, costs, rate)


def test_weights_are_as_exact_as_the_rounding_paid_for():
    # Compared with 60 digits, for all values that are not raised to the floor.
    rng = np.random.default_rng(0)
    for rate in (1e-9, 0.0123, 0.5, 3.7):
        excesses = np.floor(rng.uniform(0, 138 / rate, 300))
        with localcontext() as context:
            context.prec = 60
            for excess, weight in zip(excesses, _weights(excesses, rate), strict=True):
                exact = (-Decimal(rate) * Decimal(excess)).exp() * 2**300
                assert abs(Decimal(weight) / exact - 1) < Decimal(2) ** -45
    assert _ROUNDING >= 4 * 2.0**-45
    largest, least = _weights([0.0, 1e30], 1.0)
    assert least / largest == pytest.approx(1e-60)


@pytest.mark.parametrize("bounded_range", [True, False])
def test_private_choice_without_a_seed_is_drawn_exactly_at_its_rate(bounded_range, monkeypatch):
    asked = []

    def choose(draws, excesses, rate, bounded):
        asked.append((excesses, rate, bounded))
        return 1

    monkeypatch.setattr(ExactDraws, "choose", choose)
    rng = np.random.default_rng(0)
    for rate in (*rng.uniform(1e-6, 1, 50), *rng.uniform(1, 100, 50)):
        assert private_choice([2, -5, 9], rate, NoiseSource(), bounded_range=bounded_range) == 1
        assert asked.pop() == ([7, 0, 14], rate, bounded_range)


def test_choose_member_takes_the_rounding_off_the_rate(monkeypatch):
    rates = []
    monkeypatch.setattr(
        _choice, "_weights", lambda excesses, rate: rates.append(rate) or [1] * len(excesses)
    )
    for rate in (1e-14, 0.3, 5.0):
        choose_member([3, 4, 5], [1, 0, 2], rate, NoiseSource(0))
    # The error of the loss for a change of one is less than the reduction of the rate.
    assert rates == [0.0, 0.3 - _ROUNDING, 5.0 - _ROUNDING]


class Scripted:
    """Integers that a list prescribes; beyond it, one asks for the next integer."""

    key, seeded = None, True

    class NextInteger(Exception):
        """The integer must be below the given number."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def below(self, n):
        try:
            return next(self.numbers)
        except StopIteration:
            raise self.NextInteger(n) from None

    def shuffle(self, items):
        orders = list(permutations(items))
        items[:] = orders[self.below(len(orders))]


def law_of(draw):
    """Exact probabilities of the results of a draw, over all integers that it may get."""
    law, waiting = Counter(), [((), Fraction(1))]
    while waiting:
        numbers, probability = waiting.pop()
        try:
            law[draw(Scripted(numbers))] += probability
        except Scripted.NextInteger as asked:
            (n,) = asked.args
            waiting += [((*numbers, number), probability / n) for number in range(n)]
    return law


@pytest.mark.parametrize("bounded_range", [True, False])
def test_private_choice_has_the_law_of_its_weights(bounded_range, monkeypatch):
    monkeypatch.setattr(_choice, "_CHOICE_WEIGHT_BITS", 2)
    monkeypatch.setattr(_choice, "_weights", lambda *_: [1, 4, 2])
    law = law_of(lambda source: _choice._chosen([0, 0, 0], 1.0, source, bounded_range))
    expected = LAWS[bounded_range](-np.log([0.25, 1.0, 0.5]), 1.0)
    assert [float(law[index]) for index in range(3)] == pytest.approx(expected, rel=1e-12)


def test_choose_member_has_the_law_of_all_members(monkeypatch):
    # Without noise, it is the first member of the first nonempty group of least cost.
    assert choose_member([5, 1, 2, 2], [3, 0, 7, 1], math.inf, NoiseSource(0)) == (2, 0)
    # No list could hold so many members.
    assert choose_member([10**6, 0], [10**40, 1], 1.0, NoiseSource(0)) == (1, 0)
    monkeypatch.setattr(_choice, "_weights", lambda *_: [1, 4, 2])
    law = law_of(lambda source: choose_member([0, 0, 0], [2, 0, 3], 1.0, source))
    expected = {(0, 0): 1, (0, 1): 1, (2, 0): 2, (2, 1): 2, (2, 2): 2}
    assert law == {member: Fraction(weight, 8) for member, weight in expected.items()}


def test_candidates_come_in_every_order_equally_often():
    law = law_of(lambda source: tuple(ExactDraws(source)._candidates(4, again=False)))
    assert law == dict.fromkeys(permutations(range(4)), Fraction(1, 24))


def test_private_choice_repeats_under_a_key():
    for bounded_range in (True, False):
        key = ReleaseKey()
        draws = [
            private_choice([0] * 99, 0.1, NoiseSource(key.child(i)), bounded_range=bounded_range)
            for i in (*range(5), *range(5))
        ]
        assert draws[:5] == draws[5:] and len(set(draws)) > 1

"""Keeping the best of a random number of runs: worst pairs attain the loss, and never more."""

import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._best_of_runs import NumberOfRuns
from sklearn_dptda.privacy._risk import LossLaw
from tests.privacy._laws import p_value

LAWS = {
    "reciprocal": NumberOfRuns.reciprocal(30),
    "geometric": NumberOfRuns.geometric(30),
    "one or five": NumberOfRuns((1, 0, 0, 0, 1)),
    "one or sixty": NumberOfRuns((9, *[0] * 58, 1)),
}


def weights(law):
    return np.array(law.weights, dtype=float) / sum(law.weights)


def law_of_best(p, outcomes):
    """Law of the best of K runs, given that of one run, from the worst outcome to the best."""
    total = np.minimum(np.cumsum(outcomes), 1.0)
    best = (p * total[:, None] ** np.arange(1, len(p) + 1)).sum(axis=1)
    return np.diff(np.append(0.0, best))


def shares(epsilon):
    """Shares of runs below an outcome: those at which the worst pair may be."""
    middle = math.exp(epsilon) / (1 + math.exp(epsilon))
    return [x for x in [middle, *(1 - np.geomspace(0.4, 1e-5, 80))] if x < 1]


def log_ratio(p, epsilon, x, h=1e-4):
    """Log ratio of the middle outcome of three, of which the first has probability about x."""
    e = math.exp(epsilon)
    low = max(x / e, 1 - e * (1 - x))
    h *= min(low, 1)
    pair = [x - h, h, 1 - x], [low - h / e, h / e, 1 - low]
    assert np.abs(np.log(np.divide(*pair))).max() <= epsilon * (1 + 1e-9)
    one, two = (law_of_best(p, np.array(each)) for each in pair)
    return np.abs(np.log(one / two)).max()


@cache
def stated(law, epsilon):
    return law.loss(LossLaw((epsilon,)).delta, epsilon, 0.0, 0.0)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_worst_pairs_attain_the_loss_of_pure_runs(name, epsilon):
    law = LAWS[name]
    loss, delta = stated(law, epsilon)
    attained = max(log_ratio(weights(law), epsilon, x) for x in shares(epsilon))
    assert delta == 0 and 0.97 * loss <= attained <= loss


def test_reciprocal_law_costs_at_most_two_runs():
    for most in (2, 30, 100):
        law = NumberOfRuns.reciprocal(most)
        assert np.allclose(weights(law) * np.arange(1, most + 1), weights(law)[0], rtol=1e-15)
        for epsilon in (1e-3, 0.1, 1.0, 5.0):
            assert stated(law, epsilon)[0] <= 2 * epsilon
    assert stated(LAWS["reciprocal"], 0.1)[0] > 1.999 * 0.1
    # A choice by the exponential mechanism costs less, and one run costs itself.
    curve = LossLaw(choices=(1.0,)).delta
    assert LAWS["reciprocal"].loss(curve, 1.0, 0.0, 0.0)[0] < 1.9
    assert stated(NumberOfRuns((3,)), 0.7)[0] == pytest.approx(0.7, rel=1e-9)
    assert stated(LAWS["reciprocal"], math.inf)[0] == math.inf


def test_loss_of_extreme_laws_and_runs_is_an_upper_bound():
    # Weights that differ by many orders of magnitude, and losses beyond the range of curves.
    loss, _ = stated(NumberOfRuns((1, 10**15)), 0.005)
    assert 0.01 <= loss < 36
    law, curve = LAWS["reciprocal"], LossLaw((800.0,), mu=0.1).delta
    assert law.loss(curve, 801.0, 1e-6, 1e-6)[0] >= 801


def test_twins_lose_more_on_the_worst_pair():
    p, e = weights(LAWS["reciprocal"]), math.e
    loss, _ = stated(LAWS["reciprocal"], 1.0)
    one_more = max(log_ratio(np.append(0.0, p), 1.0, x) for x in shares(1.0))
    always = max(log_ratio(np.eye(30)[29], 1.0, x) for x in shares(1.0))
    # Stop at the first good run: that there was none in 30 runs.
    first_good = 30 * math.log((e / (1 + e)) / (1 / (1 + e)))
    assert min(one_more, always, first_good) > 1.2 * loss
    assert one_more == pytest.approx(2.78, abs=0.01)
    # Both of the two best runs are shown: whether none, one or two of them are good.
    laws = []
    for good in (1 / (1 + e), e / (1 + e)):
        k = np.arange(1, 31)
        none = (p * (1 - good) ** k)[1:].sum()
        one = (p * k * good * (1 - good) ** (k - 1))[1:].sum()
        laws.append([none, one, 1 - p[0] - none - one])
    assert np.abs(np.log(np.divide(*laws))).max() == pytest.approx(2.58, abs=0.01)


def test_ties_that_a_random_number_breaks_lose_no_more(rng):
    worst = 0.0
    for _ in range(300):
        n, spent = int(rng.integers(2, 7)), float(rng.choice([0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5]))
        one, signs = rng.dirichlet(np.full(n, 0.5)), rng.choice([-1.0, 1.0], n)
        if np.ptp(signs) == 0:
            continue

        def pair(epsilon, one=one, signs=signs):
            two = one * np.exp(epsilon * signs)
            return two / two.sum()

        # The exponent at which a run loses just so much.
        def excess(epsilon, one=one, pair=pair, spent=spent):
            return np.abs(np.log(one / pair(epsilon))).max() - spent

        two = pair(brentq(excess, 0.0, 2 * spent, xtol=1e-13))
        # Outcomes with equal scores form a level.
        levels = np.sort(rng.integers(0, 3, n))
        law = LAWS[list(LAWS)[int(rng.integers(2))]]
        best = []
        for each in (one, two):
            of_level = np.bincount(levels, each, 3)
            best.append(law_of_best(weights(law), of_level)[levels] * each / of_level[levels])
        loss = np.abs(np.log(best[0] / best[1])).max()
        bound = stated(law, spent)[0]
        assert loss <= bound * (1 + 1e-9)
        worst = max(worst, loss / bound)
    assert worst > 0.8


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1.0, 1e-5)])
def test_delta_of_runs_that_may_fail_is_their_mean_number_times_it(epsilon, delta):
    law, h = LAWS["reciprocal"], 1e-3
    p, e = weights(law), math.exp(epsilon)

    def curve(losses):
        pure = LossLaw((epsilon,)).delta(losses)
        return np.where(losses >= epsilon, delta, delta + (1 - delta) * pure)

    loss, total = law.loss(curve, epsilon, delta, 0.0)
    assert total == pytest.approx(law.mean * delta)
    first, second = 1 / (1 + e), e / (1 + e)
    one = np.append((1 - delta) * np.array([second - h, h, first]), [delta, 0])
    two = np.append((1 - delta) * np.array([first - h / e, h / e, second]), [0, delta])
    worst = 0.0
    for order in permutations(range(5)):
        pair = [law_of_best(p, each[list(order)]) for each in (one, two)]
        for a, b in (pair, pair[::-1]):
            worst = max(worst, np.maximum(a - math.exp(loss) * b, 0).sum())
    assert 0.97 * total < worst <= total


@pytest.mark.parametrize("mu", [0.2, 1.0])
@pytest.mark.parametrize("name", ["reciprocal", "geometric"])
def test_gaussian_runs_lose_no_more_than_stated(name, mu, rng):
    # A run is its log ratio in cells, with scores in several orders. In the worst of them, cells of
    # the largest log ratios come where the rank of a run loses most.
    law, goal = LAWS[name], 1e-5
    loss, delta = law.loss(LossLaw(mu=mu).delta, 10.0, goal, goal)
    assert delta == goal
    edges = np.append(np.append(-np.inf, np.linspace(-6, 6 + mu, 1500)), np.inf)
    pair = [np.diff(norm.cdf(edges - shift)) for shift in (0.0, mu)]
    n, attained = len(pair[0]), []
    orders = [np.arange(n), *(rng.permutation(n) for _ in range(3))]
    for rare in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
        first = int(np.searchsorted(np.cumsum(pair[0]), rare))
        orders += [np.r_[first:i, 0:first, i:n] for i in range(first + 50, n, 50)]
    for order in orders:
        one, two = (law_of_best(weights(law), each[order]) for each in pair)
        for a, b in ((one, two), (two, one), (one[::-1], two[::-1])):
            attained.append([np.maximum(a - math.exp(c * loss) * b, 0).sum() for c in (1, 0.93)])
    # At a slightly smaller loss, the worst order fails more often than stated.
    assert np.max(attained, axis=0)[0] <= goal < np.max(attained, axis=0)[1]


def test_loss_of_gaussian_runs_is_below_that_of_another_library():
    accounting = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    delta, kind = 1e-6, accounting.dp_event.RepeatAndSelectDpEvent
    for mu in (0.1, 0.5):
        sigma = 1 / mu
        event = kind(accounting.GaussianDpEvent(sigma), 10.0, 1.0)
        accountant = rdp.RdpAccountant(np.append(1 + np.geomspace(1e-2, 1e3, 200), 2000.0))
        theirs = accountant.compose(event).get_epsilon(delta)
        # Before it is cut, our geometric law is theirs. Cutting it costs nothing.
        law = NumberOfRuns.geometric(100)
        assert law.mean == pytest.approx(10, rel=0.01)
        ours, _ = law.loss(LossLaw(zcdp=mu * mu / 2).delta, 50.0, delta, delta)
        exact, _ = law.loss(LossLaw(mu=mu).delta, 50.0, delta, delta)
        assert 0.6 * theirs < exact < min(ours, 0.95 * theirs)


@pytest.mark.parametrize("name", ["reciprocal", "geometric", "one or sixty"])
def test_numbers_of_runs_are_drawn_by_their_weights(name):
    law, source = LAWS[name], NoiseSource(0)
    drawn = np.array([law.draw(source) for _ in range(20_000)]) - 1
    assert (weights(law)[drawn] > 0).all() and p_value(drawn, weights(law)) > 1e-6
    assert law.mean == pytest.approx((weights(law) * np.arange(1, len(law.weights) + 1)).sum())

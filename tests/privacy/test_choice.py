"""The exponential mechanism: its law, and its privacy by exact weights."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from sklearn_dptda.privacy import NoiseSource, exponential_choice
from sklearn_dptda.privacy._choice import _weights


def test_law():
    # 20,000 draws, chi-squared at a false-alarm rate of 1e-6.
    costs, rate, noise = [0, 3, 5, 50], 0.3, NoiseSource(0)
    draws = [exponential_choice(costs, rate, noise) for _ in range(20_000)]
    expected = np.exp(-rate * np.array(costs))
    expected = 20_000 * expected / expected.sum()
    found = np.bincount(draws, minlength=4)
    kept = expected > 5
    statistic = ((found - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.isf(1e-6, kept.sum() - 1)
    # The same with a tenth more rate is told apart.
    other = np.exp(-1.1 * rate * np.array(costs))
    other = 20_000 * other / other.sum()
    assert ((found - other)[kept] ** 2 / other[kept]).sum() > chi2.isf(1e-6, kept.sum() - 1)


@pytest.mark.parametrize("rate", [1e-7, 0.01, 0.5, 3.0])
def test_neighbours_are_no_further_apart_than_the_rate_says(rate, rng):
    # Exact log probabilities: no sampling. One record moves all costs by 0..D.
    largest = 10
    for _ in range(50):
        costs = rng.integers(0, 300, size=12)
        moved = costs + rng.integers(0, largest + 1, size=12)
        logs = []
        for c in (costs, moved):
            weights = _weights([int(x) for x in c - c.min()], rate)
            logs.append(np.array([math.log(w) for w in weights]) - math.log(sum(weights)))
        difference = logs[0] - logs[1]
        epsilon = rate * largest
        assert np.abs(difference).max() <= epsilon * (1 + 1e-12) + 1e-13
        assert np.ptp(difference) <= epsilon * (1 + 1e-12) + 1e-13


def test_worst_case_reaches_the_rate():
    # One cost moves, another does not: the range of the loss is all of it.
    a, b = _weights([0, 0], 0.5), _weights([0, 2], 0.5)
    loss = math.log(a[0] / sum(a) * sum(b) / b[0]), math.log(a[1] / sum(a) * sum(b) / b[1])
    assert loss[1] - loss[0] == pytest.approx(1.0)


def test_extremes():
    noise = NoiseSource(0)
    assert exponential_choice([5, 4, 4], math.inf, noise) == 1
    assert exponential_choice([0, 10**30], 1.0, noise) == 0
    largest, least = _weights([0, 10**30], 1.0)
    assert least * 10**60 == largest
    assert {exponential_choice([0, 10**9], 0.0, noise) for _ in range(60)} == {0, 1}
    with pytest.raises(ValueError, match="rate"):
        exponential_choice([1], -1.0, noise)
    with pytest.raises(ValueError, match="rate"):
        exponential_choice([1], math.nan, noise)
    with pytest.raises(ValueError, match="costs"):
        exponential_choice([], 1.0, noise)

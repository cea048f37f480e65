from math import comb

import numpy as np
import pytest

from sklearn_dptda.privacy import zcdp_epsilon
from sklearn_dptda.privacy._calibration import bounded_range_delta, bounded_range_rate


def brute_delta(rate, k, epsilon):
    """Worst delta over a fine grid of the two-point laws that bounded range allows."""
    best = 0.0
    for t in np.linspace(0, rate, 20_001):
        p = np.exp(-t) * np.expm1(t - rate) / np.expm1(-rate)
        for_all = 0.0
        for i in range(k + 1):
            gain = np.exp(k * t - i * rate) - np.exp(epsilon)
            for_all += comb(k, i) * p ** (k - i) * (1 - p) ** i * max(gain, 0.0)
        best = max(best, for_all)
    return best


@pytest.mark.laws
@pytest.mark.parametrize(
    ("rate", "k", "epsilon"),
    [(0.5, 2, 0.8), (0.5, 2, 0.2), (1.0, 3, 2.0), (0.3, 10, 1.0), (2.0, 3, 0.1), (0.8, 1, 0.3)],
)
def test_bounded_range_delta_is_the_worst_case(rate, k, epsilon):
    assert bounded_range_delta(rate, k, epsilon) == pytest.approx(
        brute_delta(rate, k, epsilon), rel=1e-5
    )


@pytest.mark.laws
def test_rates_are_valid_and_never_below_the_pure_split():
    for k in (1, 2, 3, 10, 100):
        rate = bounded_range_rate(1.0, 1e-5, k)
        assert rate >= 1.0 / k
        if k > 1:
            assert (
                bounded_range_delta(rate, k, 1.0) <= 1e-5
                or zcdp_epsilon(k * rate**2 / 8, 1e-5) <= 1.0
            )
    assert bounded_range_rate(1.0, 0.0, 4) == 0.25


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [200.0, 500.0, 720.0, 5000.0])
def test_huge_budgets_do_not_overflow_into_free_releases(n, epsilon):
    assert bounded_range_delta(epsilon, n, epsilon) > 0.1
    rate = bounded_range_rate(epsilon, 1e-5, n)
    assert epsilon / n <= rate < epsilon

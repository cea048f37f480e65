"""Repeated choices of bounded range: their loss is that of the worst case."""

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


@pytest.mark.parametrize(
    ("rate", "k", "epsilon"),
    [
        (0.5, 2, 0.8),
        *[
            pytest.param(*case, marks=pytest.mark.laws)
            for case in ((1.0, 3, 2.0), (0.5, 2, 0.2), (0.3, 10, 1.0), (2.0, 3, 0.1), (0.8, 1, 0.3))
        ],
    ],
)
def test_bounded_range_delta_is_the_worst_case_of_a_grid(rate, k, epsilon):
    assert bounded_range_delta(rate, k, epsilon) == pytest.approx(
        brute_delta(rate, k, epsilon), rel=1e-5
    )


def test_bounded_range_rate_is_valid_and_no_less_than_a_split():
    for k in (1, 3, 10):
        rate = bounded_range_rate(1.0, 1e-5, k)
        assert rate >= 1.0 / k
        if k > 1:
            assert (
                bounded_range_delta(rate, k, 1.0) <= 1e-5
                or zcdp_epsilon(k * rate**2 / 8, 1e-5) <= 1.0
            )
    assert bounded_range_rate(1.0, 0.0, 4) == 0.25


@pytest.mark.parametrize("n", [2, 10])
def test_bounded_range_rate_does_not_overflow_at_huge_budgets(n):
    for epsilon in (200.0, 720.0, 5000.0):
        assert bounded_range_delta(epsilon, n, epsilon) > 0.1
        rate = bounded_range_rate(epsilon, 1e-5, n)
        assert epsilon / n <= rate < epsilon

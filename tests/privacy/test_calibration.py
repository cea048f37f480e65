"""Calibration, compared with dp-accounting, high precision, brute force and exact laws."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_dptda.privacy import (
    Sensitivity,
    bounded_range_rho,
    gaussian_delta,
    gaussian_mu,
    pure_rho,
    zcdp_epsilon,
    zcdp_rho,
)
from sklearn_dptda.privacy._calibration import (
    _log_delta_with_choice,
    bounded_range_delta,
    bounded_range_rate,
    gaussian_mu_with_choice,
)
from tests._refusals import refuses
from tests.privacy._calibrated import gaussian_epsilon, gaussian_scale

EPSILONS = [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0]
DELTAS = [1e-12, 1e-8, 1e-5, 1e-2]


@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_mu_agrees_with_dp_accounting(delta):
    accounting = pytest.importorskip("dp_accounting")
    for epsilon in EPSILONS:
        sigma = gaussian_scale(Sensitivity(1.0, "l2", "add-remove"), epsilon, delta)
        theirs = accounting.get_sigma_gaussian(epsilon, delta, tol=1e-10)
        assert sigma == pytest.approx(theirs, rel=1e-6)
        back = accounting.get_epsilon_gaussian(sigma, delta, tol=1e-10)
        assert gaussian_epsilon(1 / sigma, delta) == pytest.approx(back, rel=1e-6, abs=1e-9)


def test_gaussian_mu_has_the_documented_values():
    table = {10: 2.0005, 5: 1.1212, 2: 0.5016, 1: 0.2681, 0.5: 0.1422}
    for epsilon, mu in table.items():
        assert gaussian_mu(epsilon, 1e-5) == pytest.approx(mu, abs=1e-4)


@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_mu_is_private_and_tight(delta):
    for epsilon in (0.0, *EPSILONS, 1000.0):
        mu = gaussian_mu(epsilon, delta)
        assert gaussian_delta(epsilon, mu) <= delta
        assert gaussian_delta(epsilon, mu * (1 + 1e-8)) > delta
        assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)
        assert gaussian_delta(gaussian_epsilon(mu, delta), mu) <= delta


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0, 1e-9), (0, 1e-3), (1e-9, 1e-7), (1e-6, 1e-6), (1e-3, 3e-4), (0.1, 0.02), (3, 2)],
)
def test_gaussian_delta_agrees_with_80_digits(epsilon, mu):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        exact = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9)


def test_gaussian_mu_is_safe_for_tiny_budgets():
    mpmath = pytest.importorskip("mpmath")
    for epsilon, delta in ((0.0, 1e-20), (1e-15, 1e-20), (1e-12, 1e-15), (1e-9, 1e-300)):
        with mpmath.workdps(400):
            e, m = mpmath.mpf(epsilon), mpmath.mpf(gaussian_mu(epsilon, delta))
            exact = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
            assert delta * (1 - 1e-5) <= exact <= delta
    assert zcdp_epsilon(5e-324, 1e-5) >= 0


@pytest.mark.laws
def test_gaussian_shares_compose_to_the_whole_budget():
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    epsilon, delta, shares = 1.0, 1e-5, [0.1, 0.2, 0.3, 0.4]
    unit = Sensitivity(1.0, "l2", "add-remove")
    scales = [gaussian_scale(unit, epsilon, delta, share) for share in shares]
    mu = np.linalg.norm([1 / s for s in scales])
    assert mu == pytest.approx(gaussian_mu(epsilon, delta), rel=1e-12)
    assert accounting.get_epsilon_gaussian(1 / mu, delta, tol=1e-10) == pytest.approx(
        epsilon, rel=1e-6
    )
    # Numerical composition of the four steps, without the theory of their combined mu.
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for scale in scales:
        accountant.compose(accounting.GaussianDpEvent(scale))
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, abs=1e-3)


@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_epsilon_agrees_with_dp_accounting(delta):
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    for rho in (1e-6, 1e-3, 0.1, 1.0, 20.0):
        best = 1 + math.sqrt(math.log(1 / delta) / rho)
        # Their orders are a list, so one is chosen that brackets the best order closely.
        orders = 1 + (best - 1) * np.exp(np.linspace(-3, 3, 6001))
        theirs, _ = rdp.compute_epsilon(orders, rho * orders, delta)
        assert zcdp_epsilon(rho, delta) == pytest.approx(theirs, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_rho_inverts_zcdp_epsilon(delta):
    for epsilon in EPSILONS:
        rho = zcdp_rho(epsilon, delta)
        assert zcdp_epsilon(rho, delta) <= epsilon
        assert zcdp_epsilon(rho * (1 + 1e-9), delta) == pytest.approx(epsilon, rel=1e-6)
        # The Gaussian's own curve is never worse than its zCDP.
        assert gaussian_mu(epsilon, delta) ** 2 / 2 >= rho


def test_zcdp_rho_has_the_documented_values():
    # The cost of the conversion for a Gaussian at delta = 1e-5.
    for epsilon, mu in {10: 1.8882, 5: 1.0497, 2: 0.4653, 1: 0.2472, 0.5: 0.1304}.items():
        assert round(math.sqrt(2 * zcdp_rho(epsilon, 1e-5)), 4) == mu


def test_calibration_at_infinite_and_zero_budgets():
    assert gaussian_mu(math.inf, 1e-5) == math.inf
    assert gaussian_scale(Sensitivity(1.0, "l2", "add-remove"), math.inf, 1e-5) == 0
    assert gaussian_delta(1.0, 0.0) == 0 and gaussian_delta(1.0, math.inf) == 1
    assert zcdp_epsilon(0.0, 1e-5) == 0 and zcdp_epsilon(math.inf, 1e-5) == math.inf
    assert zcdp_rho(math.inf, 1e-5) == math.inf
    assert pure_rho(2.0) == 2.0 and bounded_range_rho(2.0) == 0.5


@pytest.mark.parametrize("function", [gaussian_mu, zcdp_rho])
def test_calibration_refuses_bad_budgets(function):
    for epsilon, delta, name in (
        (-1.0, 0.1, "epsilon"),
        (math.nan, 0.1, "epsilon"),
        (1.0, 0.0, "delta"),
        (1.0, 1.0, "delta"),
    ):
        refuses(name, function, epsilon, delta)


def test_sensitivity_mixes_no_adjacencies_and_norms():
    rows = Sensitivity(1.0, "l2", "add-remove")
    assert rows.for_replacement() == Sensitivity(2.0, "l2", "replace-one")
    assert rows.for_replacement().for_replacement() == rows.for_replacement()
    assert (rows + 2 * rows).value == pytest.approx(math.sqrt(5))
    ones = Sensitivity(1.0, "l1", "add-remove")
    assert (ones + ones).value == 2
    refuses("adjacency", lambda: rows + rows.for_replacement())
    refuses("norm", lambda: rows + ones)
    refuses("l2", ones.require, norm="l2")
    refuses("l1", rows.require, norm="l1")
    refuses("adjacency", rows.require, adjacency="replace-one")
    refuses(None, lambda: rows + 1.0, error=TypeError)
    for bad in ({"value": -1.0}, {"value": math.inf}, {"norm": "l3"}, {"adjacency": "unknown"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Sensitivity(**{"value": 1.0, "norm": "l1", "adjacency": "add-remove", **bad})


# One choice among Gaussian steps: their joint loss in the worst case.

SHARE = 0.04


def delta_by_integration(epsilon, mu, share, high):
    """Hockey-stick divergence of a choice of two outcomes and a normal step, by its definition."""
    reach, rest = 2 * mu * math.sqrt(share), mu * math.sqrt(1 - share)
    likely = math.expm1(high - reach) / math.expm1(-reach)
    total = 0.0
    for weight, loss in ((likely, high), (1 - likely, high - reach)):
        # The integrand is positive where the loss of the step exceeds the rest.
        start = (epsilon - loss) / rest - rest / 2

        def excess(z, loss=loss):
            # The loss of a step that gave rest + z: rest * z + rest**2 / 2.
            left = epsilon - loss - rest * z - rest**2 / 2
            return norm.pdf(z) * -math.expm1(left)

        total += weight * quad(excess, start, start + 40, epsabs=0, epsrel=1e-10)[0]
    return total


@pytest.mark.laws
@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.3), (1.0, 0.25), (3.0, 1.0), (0.05, 0.2)])
def test_log_delta_with_choice_agrees_with_integration(epsilon, mu):
    reach = 2 * mu * math.sqrt(SHARE)
    worst = max(
        delta_by_integration(epsilon, mu, SHARE, high) for high in np.linspace(1e-9, reach, 40)
    )
    assert _log_delta_with_choice(epsilon, mu, SHARE) == pytest.approx(math.log(worst), abs=2e-3)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.05, 0.5])
def test_gaussian_mu_with_choice_keeps_its_promise_at_smaller_shares(delta):
    for epsilon in (1e-4, 0.1, 1.0, 10.0, 1e3):
        mu = gaussian_mu_with_choice(epsilon, delta, SHARE)
        assert math.sqrt(2 * zcdp_rho(epsilon, delta)) <= mu <= gaussian_mu(epsilon, delta)
        for share in (1e-6, 0.01, 0.03, 0.0398, SHARE):
            assert _log_delta_with_choice(epsilon, mu, share) <= math.log(delta) + 1e-8


def test_gaussian_mu_alone_would_exceed_the_promise():
    # The broken twin: a choice that is counted as if it were Gaussian.
    epsilon, delta = 0.5, 0.05
    twin = gaussian_mu(epsilon, delta)
    assert _log_delta_with_choice(epsilon, twin, SHARE) > math.log(delta) + 1e-4
    assert gaussian_mu_with_choice(epsilon, delta, SHARE) < twin


def test_gaussian_mu_with_choice_is_infinite_without_noise():
    assert math.isinf(gaussian_mu_with_choice(math.inf, 1e-6, SHARE))


# Repeated choices of bounded range: their loss is that of the worst case.


def brute_delta(rate, k, epsilon):
    """Worst delta over a fine grid of the two-point laws that bounded range allows."""
    best = 0.0
    for t in np.linspace(0, rate, 20_001):
        p = np.exp(-t) * np.expm1(t - rate) / np.expm1(-rate)
        for_all = 0.0
        for i in range(k + 1):
            gain = np.exp(k * t - i * rate) - np.exp(epsilon)
            for_all += math.comb(k, i) * p ** (k - i) * (1 - p) ** i * max(gain, 0.0)
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

"""Calibration, compared with dp-accounting, high precision and brute force."""

import math

import numpy as np
import pytest

from sklearn_dptda.privacy import (
    Sensitivity,
    bounded_range_rho,
    gaussian_delta,
    gaussian_mu,
    pure_rho,
    zcdp_epsilon,
    zcdp_rho,
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

"""One choice among Gaussian steps: their joint loss in the worst case."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sklearn_dptda.privacy import gaussian_mu, zcdp_rho
from sklearn_dptda.privacy._calibration import _log_delta_with_choice, gaussian_mu_with_choice

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

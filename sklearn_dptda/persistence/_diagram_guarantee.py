"""What releases of diagrams promise, and at which rate their draws spend it."""

import math

from sklearn_dptda.persistence._diagram_grid import MAX_SIZE, PART_OF_SCALE
from sklearn_dptda.privacy import (
    PrivacyGuarantee,
    bounded_range_rate,
    bounded_range_rho,
    pure_rho,
)

_MECHANISMS = {
    "exact": "exponential mechanism (exact draw in integer arithmetic)",
    "mcmc": "exponential mechanism (Markov chain of finite length)",
}


# Share of epsilon that the share of clipped points is released with, where that is asked for.
CLIPPED_SHARE = 0.05


def epsilon_of_draws(estimator):
    """Privacy loss of the diagrams of a :class:`PrivatePersistence`, without that of a count."""
    return float(estimator.epsilon) * (1 - CLIPPED_SHARE * estimator.clipped_share)


def rate_of_draw(epsilon, delta, utility, dimensions):
    """Privacy loss of one draw: all of it, or the share of one dimension of ``dimensions``."""
    if utility == "max":
        return float(epsilon)
    return bounded_range_rate(float(epsilon), float(delta), len(dimensions))


def guarantee_of_diagrams(estimator, dimensions, public_bounds=True):
    """Guarantee of one call of ``transform`` of a :class:`PrivatePersistence`."""
    epsilon = float(estimator.epsilon)
    n_draws = 1 if estimator.utility == "max" else len(dimensions)
    free = math.isinf(epsilon)
    rate = for_diagrams = epsilon_of_draws(estimator)
    if not free:
        rate = rate_of_draw(for_diagrams, estimator.delta, estimator.utility, dimensions)
    pure = rate * n_draws <= for_diagrams
    rho = n_draws * bounded_range_rho(rate)
    names = ", ".join(f"H{q}" for q in dimensions)
    released = f"one persistence diagram per cloud and dimension ({names})"
    if estimator.mechanism == "exact" and math.isfinite(rate):
        least = f"1/{PART_OF_SCALE} of the entropic scale or 1/{MAX_SIZE // 2} of the range"
        released += f", in steps of {least}"
    counted = ""
    if estimator.clipped_share:
        counted = ", and the discrete Laplace mechanism"
        released += ", and the share of its points outside the bounds"
        rho += pure_rho(CLIPPED_SHARE * epsilon)
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=0.0 if pure else float(estimator.delta),
        adjacency="replace-one",
        unit="one point of a cloud",
        mechanism=_MECHANISMS[estimator.mechanism] + counted,
        released=released,
        seeded=estimator.random_state is not None,
        exact=estimator.mechanism == "exact" or free,
        public_parameters=public_bounds,
        rho=rho,
    )


def pure_guarantee(estimator, mechanism, released, public_bounds=True):
    """Guarantee of a release about clouds that needs no delta, drawn in integers."""
    epsilon = float(estimator.epsilon)
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=0.0,
        adjacency="replace-one",
        unit="one point of a cloud",
        mechanism=f"{mechanism} (exact draw in integer arithmetic)",
        released=released,
        seeded=estimator.random_state is not None,
        public_parameters=public_bounds,
        rho=pure_rho(epsilon),
    )


def have_public_bounds(X):
    """Whether no filtration says that its box was computed from the data."""
    return all(getattr(item, "public_bounds", True) for item in X)


def paid_bounds(X):
    """What was paid for the private box of the filtrations, or None; one box for all."""
    paid = [item for item in X if getattr(item, "bounds_guarantee", None) is not None]
    if not paid:
        return None
    # Two boxes that happen to be equal are two releases.
    boxes = {item.bounds_guarantee.release_id for item in paid}
    if len(boxes) > 1 or len(paid) < len(X):
        raise ValueError("X has filtrations in several boxes, and a private one among them.")
    return paid[0].bounds_guarantee

"""Private diagrams: what they promise and lose, their rates, grids and refusals."""

import copy
import itertools
import math

import numpy as np
import pytest

from sklearn_dptda import (
    DTMFiltration,
    GridFiltration,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda.persistence._mechanisms import make_grid, mechanism_of, spike_of_range
from sklearn_dptda.published import PublishedPersistence
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses, refuses_unpaid
from tests.persistence._variants import variant


@pytest.mark.parametrize(
    ("options", "random_state"),
    [
        ({}, None),
        ({"utility": "sum"}, 0),
        ({"base_measure": "uniform"}, None),
        ({"base_measure": "poisson"}, 0),
        ({"slab": "persistence"}, None),
        ({"homology_dimensions": 1}, 0),
        ({"homology_dimensions": (1, 0)}, None),
        ({"mechanism": "mcmc", "n_iter": 20}, 0),
    ],
)
def test_private_persistence_releases_valid_diagrams(small, options, random_state):
    n_points = 3 if options else 10
    estimator = variant(max_points=n_points, random_state=random_state, **options)
    sample = estimator.fit_transform([small])[0]
    diagrams = [sample] if options.get("homology_dimensions") == 1 else sample
    for diagram in diagrams:
        assert diagram.shape[1:] == (2,)
        assert len(diagram) <= n_points + 1
        assert (diagram[:, 0] >= 0).all() and (diagram[:, 1] <= small.upper).all()
        assert (diagram[:, 0] < diagram[:, 1]).all() or options.get("mechanism") == "mcmc"


def copies(filtration, n):
    """Equal functions, as if of different records."""
    return [copy.deepcopy(filtration) for _ in range(n)]


def test_private_persistence_refuses_to_release_one_object_twice(small):
    # One payment covers different records. The same ones twice would cost more.
    private = PrivatePersistence(1.0).fit([small])
    functions = np.broadcast_to(small.values, (3, *small.values.shape))
    for repeated in (
        [small] * 10,
        DTMFiltration(0.2, bounds=(-2, 2), resolution=9).fit_transform([np.eye(2)] * 2),
    ):
        refuses_unpaid("one object several times", private.transform, repeated)
    bare = PrivatePersistence(1.0, sensitivity=0.01, upper=1.0)
    for repeated in (functions, [small.values, small.values[:]]):
        refuses_unpaid("one object several times", bare.fit_transform, repeated)
    # Values that are not released may be repeated.
    assert len(PrivatePersistence(np.inf).fit_transform([small] * 3)) == 3
    assert len(private.transform(copies(small, 3))) == 3


@pytest.mark.nightly
def test_private_persistence_error_falls_with_epsilon(filtration):
    scores = [
        -PrivatePersistence(e, random_state=0).fit([filtration]).score(copies(filtration, 30))
        for e in (0.5, 5.0, 50.0)
    ]
    assert scores[0] > 1.5 * scores[1] > 2 * scores[2]
    estimator = PrivatePersistence(epsilon=1000.0, max_points=30).fit([filtration])
    assert -estimator.score([filtration]) < 0.02


def test_private_persistence_guarantee_names_chains_and_learnt_bounds(small, circles):
    chain = PublishedPersistence().fit([small]).privacy_guarantee_
    assert not chain.exact
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        leaky = DTMFiltration(0.2, resolution=11).fit_transform([circles])
    assert not PrivatePersistence().fit(leaky).privacy_guarantee_.holds
    refuses("computed from the data", PrivatePersistence().fit([small]).transform, leaky)


@pytest.mark.parametrize(
    ("epsilon", "delta", "dimensions"),
    [
        (1.0, 1e-3, (0, 1)),
        pytest.param(5.0, 1e-9, (0, 1), marks=pytest.mark.laws),
        pytest.param(0.5, 1e-9, (0, 1, 2), marks=pytest.mark.laws),
        pytest.param(1.0, 1e-3, (0, 1, 2), marks=pytest.mark.laws),
    ],
)
def test_private_persistence_sum_utility_loses_what_it_promises(epsilon, delta, dimensions):
    # The tight composition of a draw per dimension beats the pure split, and spends all of delta.
    guarantee, rate = sums(epsilon, delta, dimensions)
    assert (guarantee.epsilon, guarantee.delta) == (epsilon, delta)
    assert rate * len(dimensions) > epsilon
    assert 0.99 * delta < worst_delta(rate, len(dimensions), epsilon) <= delta * (1 + 1e-9)
    largest = len(dimensions) * worst_rho(rate)
    assert 0.9 * guarantee.rho < largest <= guarantee.rho * (1 + 1e-9)


@pytest.mark.parametrize(
    ("options", "dimensions"),
    [
        ({"delta": 0.0}, (0, 1, 2)),
        ({"delta": 1e-6}, (1,)),
        ({"delta": 1e-6, "utility": "max"}, (0, 1)),
        ({"delta": 1e-6, "epsilon": math.inf}, (0, 1)),
    ],
)
def test_private_persistence_spends_no_delta_for_a_pure_split(options, dimensions):
    epsilon = options.get("epsilon", 1.0)
    guarantee, rate = sums(**{"epsilon": 1.0, "dimensions": dimensions} | options)
    assert (guarantee.epsilon, guarantee.delta) == (epsilon, 0.0)
    n_draws = 1 if "utility" in options else len(dimensions)
    if math.isfinite(epsilon):
        assert rate == epsilon / n_draws
        assert n_draws * worst_rho(rate) <= guarantee.rho <= epsilon**2 / 8
    else:
        assert rate is None and guarantee.rho == math.inf


def sums(epsilon, delta, dimensions, utility="sum"):
    """What a release of several diagrams promises, and the loss of one of its draws."""
    accountant = PrivacyAccountant(math.inf)
    private = variant(
        epsilon=epsilon,
        delta=delta,
        homology_dimensions=dimensions,
        utility=utility,
        max_points=3,
        sensitivity=0.01,
        upper=3.0,
        accountant=accountant,
    )
    values = np.ones((2, 2, 2))
    guarantee = private.fit([values]).privacy_guarantee_
    private.transform([values])
    assert accountant.total() == (guarantee.epsilon, guarantee.delta)
    mechanism = mechanism_of(private, dimensions)
    return guarantee, None if mechanism is None else mechanism.rate


def mass_of_high_loss(t, rate):
    """Of the worst laws of range ``rate`` the losses are ``t`` and ``t - rate``."""
    return (1 - np.exp(t - rate)) / (np.exp(t) - np.exp(t - rate))


def worst_delta(rate, n, epsilon):
    """Delta of ``n`` draws together: all their outcomes, over a grid of their laws."""
    # Below it, no outcome loses more than epsilon.
    least = max(0.0, epsilon - (n - 1) * rate)
    t = np.linspace(least, rate, {2: 401, 3: 61}[n])
    high, delta = mass_of_high_loss(t, rate), 0.0
    for outcome in itertools.product((True, False), repeat=n):
        losses = np.ix_(*(t if is_high else t - rate for is_high in outcome))
        masses = np.ix_(*(high if is_high else 1 - high for is_high in outcome))
        excess = np.exp(sum(losses)) - math.exp(epsilon)
        delta = delta + math.prod(masses) * np.maximum(excess, 0.0)
    return delta.max()


def worst_rho(rate):
    """Largest Rényi divergence over its order, of one draw."""
    t = np.linspace(0, rate, 402)[1:-1]
    order = np.array([1.01, 1.5, 2.0, 5.0, 20.0])[:, None]
    high = mass_of_high_loss(t, rate)
    moments = high * np.exp(order * t) + (1 - high) * np.exp(order * (t - rate))
    return (np.log(moments) / (order - 1) / order).max()


def test_private_persistence_of_arrays_needs_sensitivity_and_upper(small):
    refuses("sensitivity and upper", PrivatePersistence().fit, [small.values])
    refuses("sensitivity and upper", PrivatePersistence(sensitivity=0.1).fit, [small.values])
    estimator = PrivatePersistence(sensitivity=0.01, upper=3.0).fit([small.values])
    assert len(estimator.transform([small.values])) == 1
    refuses("sensitivity must be None", PrivatePersistence(sensitivity=0.1).fit, [small])


@pytest.mark.parametrize(("n", "value"), [(1, 1.0), (2, 0.0), (2, 1.0), (3, 0.5)])
def test_private_persistence_releases_constant_functions(n, value):
    values, axes = np.full((4,) * n, value), (np.linspace(0, 1, 4),) * n
    item = GridFiltration(values, 0.01, 1.0, 100, "constant", axes=axes)
    components, loops = PrivatePersistence(max_points=2, random_state=0).fit_transform([item])[0]
    assert components.shape[1] == loops.shape[1] == 2


@pytest.mark.parametrize("n_grids", [100, pytest.param(1000, marks=pytest.mark.laws)])
def test_make_grid_rounding_never_widens_the_sensitivity(rng, n_grids):
    for _ in range(n_grids):
        sensitivity, upper = 10 ** rng.uniform(-4, 0, 2)
        grid = make_grid(sensitivity, upper, 10 ** rng.uniform(-3, 2))
        x = rng.uniform(0, upper, 50)
        y = np.minimum(x + sensitivity, upper)
        shifts = [grid.rounded(b) - grid.rounded(a) for a, b in zip(x, y, strict=True)]
        assert min(shifts) >= 0 and max(shifts) <= grid.sensitivity
        # The largest value is rounded like every other value.
        assert grid.rounded(upper) - grid.rounded(upper - sensitivity) <= grid.sensitivity
        assert math.isclose(grid.step * grid.sensitivity, sensitivity, rel_tol=0.1) or (
            grid.size >= 2**16
        )


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "upper"),
    [(0.1, 0.01, 1.0), (1.0, 0.3, 1.0), (1.0, 1e-5, 3.0), (30.0, 0.01, 1.0), (30.0, 1e-5, 3.0)],
)
def test_exact_mechanism_levels_lose_epsilon_over_two_sensitivities(epsilon, sensitivity, upper):
    # A level and the sum of all weights both change by one sensitivity, so half of epsilon is left
    # for each. The expected value is that of the exponential mechanism.
    mechanism = mechanism_of(PrivatePersistence(epsilon), (1,))
    grid, table, *_ = mechanism.prepare(sensitivity, upper)
    assert grid.step * grid.sensitivity >= sensitivity
    # Every level is possible, as far as the range reaches.
    assert table.weight(grid.size) > 0
    if 2 * grid.sensitivity <= grid.size:
        lost = 2 * (math.log(table.weight(0)) - math.log(table.weight(grid.sensitivity)))
        assert epsilon * 0.99 < lost <= epsilon * (1 + 1e-9)
        # This is also what the border is told.
        assert 2 * table.rate * grid.sensitivity == pytest.approx(epsilon)


@pytest.mark.parametrize("threshold", [None, 0.2])
def test_private_betti_numbers_choice_loses_epsilon(threshold, small):
    private = PrivateBettiNumbers(0.7, threshold, random_state=0)
    (draw,) = recorded(lambda: private.fit_transform([small])).crossings
    assert draw.metric == "range" and draw.loss == pytest.approx(0.7)


# The default prior of the number of points.


def test_spike_of_range_rule():
    def points(loss, n_slots=10):
        return n_slots * (1 - spike_of_range(loss, n_slots))

    assert points(1e-30) == points(39) == pytest.approx(0.02)
    assert points(40) == points(100) == pytest.approx(0.05)
    assert points(159) == pytest.approx(0.05)
    assert points(400) == pytest.approx(1)
    assert points(1000) == points(math.inf) == pytest.approx(2)
    # The mean number of points does not depend on the number of slots.
    assert points(300, 5) == pytest.approx(points(300, 20))


def test_spike_depends_on_the_loss_over_the_range_only():
    for scale in (1.0, 1e-6, 1e6):
        private = PrivatePersistence(1.0, sensitivity=0.01 * scale, upper=scale)
        measure = mechanism_of(private, (0, 1)).prepare(0.01 * scale, scale).measure
        odds = measure.count_weights[0] / measure.count_weights[1]
        # At a loss of 100, one slot in 200 is filled.
        assert odds * 10 / measure.staircase(measure.size) == pytest.approx(199)
        given = mechanism_of(private.set_params(spike=0.5), (0, 1)).prepare(0.01 * scale, scale)
        odds = given.measure.count_weights[0] / given.measure.count_weights[1]
        assert odds * 10 / measure.staircase(measure.size) == pytest.approx(1)

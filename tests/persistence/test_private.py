import copy
import itertools
import math
import pickle
import warnings

import numpy as np
import pytest

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    GridFiltration,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda.persistence._mechanisms import make_grid, mechanism_of
from sklearn_dptda.utils._privacy_checks._border_checks import recorded


def test_infinite_epsilon_is_the_exact_sibling(filtration):
    exact = CubicalPersistence().fit_transform([filtration])[0]
    free = PrivatePersistence(epsilon=np.inf).fit_transform([filtration])[0]
    for a, b in zip(exact, free, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"utility": "sum"},
        {"base_measure": "uniform"},
        {"base_measure": "poisson"},
        {"slab": "persistence"},
        {"homology_dimensions": 1},
        {"homology_dimensions": (1, 0)},
        {"mechanism": "mcmc", "n_iter": 20},
    ],
)
@pytest.mark.parametrize("random_state", [None, 0])
def test_output_is_valid(filtration, options, random_state):
    estimator = PrivatePersistence(random_state=random_state, **options)
    sample = estimator.fit_transform([filtration])[0]
    diagrams = [sample] if options.get("homology_dimensions") == 1 else sample
    for diagram in diagrams:
        assert diagram.shape[1:] == (2,)
        assert len(diagram) <= 11
        assert (diagram[:, 0] >= 0).all() and (diagram[:, 1] <= filtration.upper).all()
        assert (diagram[:, 0] < diagram[:, 1]).all() or options.get("mechanism") == "mcmc"


@pytest.mark.nightly
def test_large_epsilon_comes_close(filtration):
    estimator = PrivatePersistence(epsilon=1000.0, max_points=30).fit([filtration])
    assert -estimator.score([filtration]) < 0.02


def copies(filtration, n):
    """As if of different records."""
    return [copy.deepcopy(filtration) for _ in range(n)]


@pytest.mark.laws
def test_one_object_is_not_released_twice_for_one_payment(filtration):
    accountant = PrivacyAccountant(10.0)
    private = PrivatePersistence(1.0, accountant=accountant).fit([filtration])
    functions = np.broadcast_to(filtration.values, (3, *filtration.values.shape))
    for repeated in (
        [filtration] * 10,
        DTMFiltration(0.2, bounds=(-2, 2), resolution=9).fit_transform([np.eye(2)] * 2),
    ):
        with pytest.raises(ValueError, match="one object several times"):
            private.transform(repeated)
    bare = PrivatePersistence(1.0, sensitivity=0.001, upper=1.0, accountant=accountant)
    for repeated in (functions, [filtration.values, filtration.values[:]]):
        with pytest.raises(ValueError, match="one object several times"):
            bare.fit_transform(repeated)
    assert not accountant.spends()
    # Values that are not released may be repeated.
    assert len(PrivatePersistence(np.inf).fit_transform([filtration] * 3)) == 3
    assert len(private.transform(copies(filtration, 3))) == 3


@pytest.mark.nightly
def test_error_falls_with_epsilon(filtration):
    scores = [
        -PrivatePersistence(e, random_state=0).fit([filtration]).score(copies(filtration, 30))
        for e in (0.5, 5.0, 50.0)
    ]
    assert scores[0] > 1.5 * scores[1] > 2 * scores[2]


@pytest.mark.laws
def test_seed_reproduces_and_clouds_differ(filtration):
    def release():
        return PrivatePersistence(random_state=7).fit_transform(copies(filtration, 2))

    first, second = release(), release()
    np.testing.assert_array_equal(first[0][1], second[0][1])
    assert not np.array_equal(first[0][0], first[1][0])


@pytest.mark.engines
def test_n_jobs_changes_nothing(filtration):
    clouds = copies(filtration, 3)
    serial = PrivatePersistence(random_state=7).fit_transform(clouds)
    parallel = PrivatePersistence(random_state=7, n_jobs=2).fit_transform(clouds)
    for a, b in zip(serial, parallel, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_system_entropy_differs(filtration):
    estimator = PrivatePersistence().fit([filtration])
    a, b = estimator.transform(copies(filtration, 2))
    assert not np.array_equal(a[0], b[0])


def test_guarantee_tells_the_truth(filtration, circles):
    def guarantee(**options):
        return PrivatePersistence(**options).fit([filtration]).privacy_guarantee_

    assert guarantee().holds
    assert guarantee(delta=1e-6).delta == 0
    assert not guarantee(random_state=0).holds
    assert "known seed" in str(guarantee(random_state=0))
    assert not guarantee(mechanism="mcmc").exact
    assert "No privacy" in str(guarantee(epsilon=np.inf))
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        leaky = DTMFiltration(0.2, resolution=11).fit_transform([circles])
    assert not PrivatePersistence().fit(leaky).privacy_guarantee_.holds
    with pytest.raises(ValueError, match="computed from the data"):
        PrivatePersistence().fit([filtration]).transform(leaky)


@pytest.mark.laws
@pytest.mark.parametrize("dimensions", [(0, 1), (0, 1, 2)])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_a_draw_per_dimension_loses_what_is_promised(epsilon, delta, dimensions):
    # The tight composition beats the pure split, and all of delta is spent.
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
def test_no_delta_where_the_pure_split_does(options, dimensions):
    epsilon = options.pop("epsilon", 1.0)
    guarantee, rate = sums(epsilon, dimensions=dimensions, **options)
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
    private = PrivatePersistence(
        epsilon,
        delta,
        homology_dimensions=dimensions,
        utility=utility,
        sensitivity=0.01,
        upper=3.0,
        accountant=accountant,
    )
    values = np.ones((4, 4, 4))
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


def test_changed_parameters_are_refused(filtration):
    estimator = PrivatePersistence(epsilon=1.0).fit([filtration])
    estimator.set_params(epsilon=1e4)
    with pytest.raises(ValueError, match="fit again"):
        estimator.transform([filtration])


def test_bare_arrays_need_their_bounds(filtration):
    with pytest.raises(ValueError, match="sensitivity and upper"):
        PrivatePersistence().fit([filtration.values])
    with pytest.raises(ValueError, match="sensitivity and upper"):
        PrivatePersistence(sensitivity=0.1).fit([filtration.values])
    estimator = PrivatePersistence(sensitivity=0.01, upper=3.0).fit([filtration.values])
    assert len(estimator.transform([filtration.values])) == 1
    with pytest.raises(ValueError, match="sensitivity must be None"):
        PrivatePersistence(sensitivity=0.1).fit([filtration])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"utility": "min"}, "utility"),
        ({"base_measure": "flat"}, "base_measure"),
        ({"max_points": 0}, "max_points"),
        ({"max_points": 1000}, "max_points"),
        ({"spike": 1.0}, "spike"),
        ({"homology_dimensions": ()}, "homology_dimensions"),
        ({"homology_dimensions": (0, 0)}, "homology_dimensions"),
        ({"homology_dimensions": -1}, "homology_dimensions"),
        ({"upper": -1.0}, "upper"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters_are_named(filtration, options, message):
    with pytest.raises(ValueError, match=message):
        PrivatePersistence(**options).fit([filtration])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "empty"),
        ([[[np.nan, 0.0], [0.0, 1.0]]], "NaN"),
        ([np.array([[0.0, np.inf]])], "infinity"),
        (np.zeros((4, 4)), "single array"),
        (["a"], "neither"),
    ],
)
def test_bad_input_is_named(X, message):
    with pytest.raises(ValueError, match=message):
        PrivatePersistence(sensitivity=0.1, upper=1.0).fit(X)


def test_pickle_holds_no_data(circles):
    # The attributes of a fitted estimator must not contain a planted record.
    canary = 1.2345678901234567
    X = circles.copy()
    X[17] = canary
    filtrations = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=21).fit_transform([X])
    estimator = PrivatePersistence().fit(filtrations)
    estimator.transform(filtrations)
    blob = pickle.dumps(estimator)
    assert np.float64(canary).tobytes() not in blob
    assert filtrations[0].values[3, 3].tobytes() not in blob
    assert str(canary)[:10] not in repr(estimator) + estimator._repr_html_()
    one, ten = (pickle.dumps(PrivatePersistence().fit(filtrations * n)) for n in (1, 10))
    assert abs(len(one) - len(ten)) < 64
    assert len(blob) - len(one) < 256


@pytest.mark.parametrize("n", [1, 2, 3])
def test_constant_functions_and_functions_at_their_bound(n):
    axes = tuple(np.linspace(0, 1, 5) for _ in range(n))
    for value in (0.0, 0.5, 1.0):
        values = np.full((5,) * n, value)
        item = GridFiltration(values, 0.01, 1.0, 100, "constant", axes=axes)
        components, loops = PrivatePersistence(random_state=0).fit_transform([item])[0]
        assert components.shape[1] == loops.shape[1] == 2


@pytest.mark.laws
def test_rounding_never_widens_the_sensitivity(rng):
    for _ in range(2000):
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


@pytest.mark.laws
def test_neighbours_raise_and_warn_alike_and_leave_the_same_fitted_state():
    # 200 pairs, including degenerate ones. The first epsilon is too small for any signal, and the
    # warning depends on public numbers only.
    rng = np.random.default_rng(0)
    for i in range(200):
        n = int(rng.integers(2, 12))
        cloud = rng.choice([0.0, 0.5, 1.0], size=(n, 2))
        neighbour = cloud.copy()
        neighbour[0] = rng.choice([-5.0, 0.0, 1.0], size=2)
        states = []
        for points in (cloud, neighbour):
            dtm = DTMFiltration(1.0, bounds=(0, 1), resolution=4)
            private = PrivatePersistence(epsilon=0.1 + i, random_state=i)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                filtrations = dtm.fit_transform([points])
                private.fit_transform(filtrations)
            public = filtrations[0]
            said = [str(warning.message) for warning in seen]
            assert len(said) == (2 * private.error_bound_ >= 0.9 * public.upper)
            # The cap is chosen with the diagrams, and the statements under it follow from it.
            del private.cap_, private.error_bounds_
            states.append(
                pickle.dumps((dtm, private, public.sensitivity, public.upper, public.shape, said))
            )
        assert states[0] == states[1]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(("sensitivity", "upper"), [(0.01, 1.0), (0.3, 1.0), (1e-5, 3.0)])
def test_levels_lose_epsilon_over_two_sensitivities(epsilon, sensitivity, upper):
    # A level and the sum of all weights both change by one sensitivity, so half of epsilon is left
    # for each. The expected value is that of the exponential mechanism.
    mechanism = mechanism_of(PrivatePersistence(epsilon), (1,))
    grid, table, *_ = mechanism.prepare(sensitivity, upper)
    assert grid.step * grid.sensitivity >= sensitivity
    if 2 * grid.sensitivity <= grid.size:
        lost = 2 * (math.log(table.weight(0)) - math.log(table.weight(grid.sensitivity)))
        assert epsilon * 0.99 < lost <= epsilon * (1 + 1e-9)
        # This is also what the border is told.
        assert 2 * table.rate * grid.sensitivity == pytest.approx(epsilon)


@pytest.mark.parametrize("threshold", [None, 0.2])
def test_a_choice_of_counts_loses_epsilon(threshold, filtration):
    private = PrivateBettiNumbers(0.7, threshold, random_state=0)
    (draw,) = recorded(lambda: private.fit_transform([filtration])).crossings
    assert draw.metric == "range" and draw.loss == pytest.approx(0.7)

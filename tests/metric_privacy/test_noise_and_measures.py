"""Noise by norms, and private measures: laws, accuracy, audits, invalid input."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import chi2, kstest
from sklearn.base import clone

from sklearn_dptda import DTMFiltration
from sklearn_dptda.metric_privacy import (
    KNormMechanism,
    MetricPrivacyGuarantee,
    PrivateMeasure,
    _box_measure,
    _smooth_measure,
)
from sklearn_dptda.metric_privacy._smooth_measure import (
    hat_means,
    integrals,
    measure_of_integrals,
    nearest_measure,
    resolution_for,
    size_for,
)
from sklearn_dptda.privacy import (
    FixedPoint,
    NoiseSource,
    PrivacyAccountant,
)
from sklearn_dptda.privacy._lattice_noise import cube_radii, lattice_noise
from sklearn_dptda.rows import _intervals
from sklearn_dptda.utils.estimator_checks import privacy_checks

from ._audits import assert_audited
from ._spaces import pairwise

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


def blobs(n, d, seed):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.2, 0.8, (4, d))
    return np.clip(centres[rng.integers(4, size=n)] + rng.normal(scale=0.08, size=(n, d)), 0, 1)


def wasserstein(A, B, n=2000, seed=0):
    rng = np.random.default_rng(seed)
    A, B = (X[rng.choice(len(X), n, replace=len(X) < n)] for X in (A, B))
    costs = cdist(A, B, "chebyshev")
    return costs[linear_sum_assignment(costs)].mean()


@pytest.mark.parametrize(("norm", "d"), pairwise(ORDERS, [1, 2, 5]))
def test_k_norm_noise_has_law_of_its_norm(norm, d):
    # 10,000 norms, compared with their gamma distribution. A scale that is wrong by a fifth is
    # detected. False alarms below 1e-6.
    alpha = 3.0
    X = np.zeros((10_000, d))
    noise = KNormMechanism(alpha, norm, random_state=0).fit_transform(X)
    sizes = np.linalg.norm(noise, ORDERS[norm], axis=1)
    # The mean distance of a release is d / alpha: five standard errors.
    assert abs(sizes.mean() - d / alpha) < 5 * math.sqrt(d) / alpha / math.sqrt(len(X))
    assert kstest(alpha * sizes, "gamma", args=(d,)).pvalue > 1e-6
    for factor in (0.8, 1.25):
        assert kstest(factor * alpha * sizes, "gamma", args=(d,)).pvalue < 1e-6
    # No direction is preferred: the signs are fair.
    assert (np.abs((noise > 0).mean(axis=0) - 0.5) < 5 * 0.5 / math.sqrt(len(X))).all()


@pytest.mark.parametrize(
    ("norm", "seed", "n"),
    [
        ("l2", 0, 30_000),
        ("linf", 0, 30_000),
        # Secure draws, which are made by other code than draws with a seed.
        pytest.param("l2", None, 5000, marks=pytest.mark.laws),
    ],
)
def test_lattice_noise_law_is_exact(norm, seed, n):
    # On a coarse lattice in the plane, where every cell can be counted. With a false-alarm rate of
    # 1e-7, since the tail of the statistic is heavier than that of its limit.
    rate = 0.7
    z = lattice_noise(NoiseSource(seed), rate, (n, 2), norm)
    grid = np.arange(-40, 41)
    sizes = np.linalg.norm(np.stack(np.meshgrid(grid, grid), axis=-1), ORDERS[norm], axis=-1)

    def statistic(rate):
        weights = np.exp(-rate * np.ceil(sizes - 1e-9))
        expected = n * weights / weights.sum()
        near = np.abs(z).max(axis=1) <= 40
        observed = np.zeros_like(expected)
        np.add.at(observed, (z[near, 1] + 40, z[near, 0] + 40), 1)
        kept = expected > 50
        return ((observed - expected) ** 2 / expected)[kept].sum(), kept.sum()

    value, cells = statistic(rate)
    assert value < chi2.isf(1e-7, cells)
    for factor in (0.8, 1.25):
        assert statistic(factor * rate)[0] > chi2.isf(1e-7, cells)


def test_cube_radii_follow_law():
    # Probabilities proportional to (2 k + 1)**3 exp(-k / 2): chi-squared of 30,000, with a
    # false-alarm rate of 1e-6.
    k = cube_radii(NoiseSource(0), 0.5, 30_000, 3)
    weights = (2 * np.arange(60) + 1.0) ** 3 * np.exp(-0.5 * np.arange(60))
    expected = 30_000 * weights / weights.sum()
    observed = np.bincount(np.minimum(k, 59), minlength=60)
    kept = expected > 5
    assert ((observed - expected) ** 2 / expected)[kept].sum() < chi2.isf(1e-6, kept.sum())


def test_k_norm_releases_lattice_points_in_box():
    X = np.random.default_rng(0).uniform(-1, 2, (300, 2))
    private = KNormMechanism(5.0, bounds=(0, 1)).fit(X)
    released = private.transform(X)
    assert released.min() >= 0 and released.max() <= 1
    inside = (released > 0) & (released < 1)
    steps = released[inside] / private.resolution_
    assert np.array_equal(steps, np.round(steps))
    promise = private.privacy_guarantee_
    assert promise.epsilon == pytest.approx(5.0 * math.sqrt(2), abs=1e-4)
    # The guarantee includes rounding to the lattice, also between neighbouring points.
    assert promise.at_distance(0.0) >= 5.0 * (math.sqrt(2) + 1) * private.resolution_
    assert promise.epsilon == pytest.approx(promise.at_distance(math.inf))
    # Points are clipped before the noise is added.
    seeded = clone(private).set_params(random_state=0)
    assert np.array_equal(seeded.fit_transform(X), seeded.fit_transform(np.clip(X, 0, 1)))
    open_ended = KNormMechanism(5.0).fit(X)
    assert math.isinf(open_ended.privacy_guarantee_.epsilon) and open_ended.privacy_guarantee_.holds
    with pytest.raises(ValueError, match="bounds must be given"):
        clone(open_ended).set_params(accountant=PrivacyAccountant(9.0)).fit(X).transform(X)


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"alpha": 0.0}, np.eye(2), "alpha"),
        ({"bounds": (1, 0)}, np.eye(2), "bounds"),
        ({}, np.eye(11), "at most 10 columns"),
        ({}, [[np.nan, 1.0]], "NaN"),
        ({}, np.full((2, 2), 1e300), "Pass bounds"),
        ({"alpha": 1e9, "bounds": (0, 1e15)}, np.eye(2), "too wide"),
    ],
)
def test_k_norm_refuses_bad_input(options, X, message):
    with pytest.raises(ValueError, match=message):
        KNormMechanism(**options).fit(X).transform(X)


def tree_of(sizes, depth):
    axes = _box_measure.halvings(sizes, depth)
    return axes, _box_measure.cell_ends(axes, sizes)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_box_measure_boxes_contain_their_points(d, rng):
    X = rng.random((500, d))
    for depth in (1, 2, 5, 9):
        axes, ends = tree_of(np.full(d, np.inf), depth)
        leaves = _box_measure.leaf_of(X, axes, ends)
        low, high = _box_measure.boxes(axes, ends)
        assert (low[leaves] <= X).all() and (high[leaves] > X).all()
        assert np.prod(high - low, axis=1) == pytest.approx(2.0**-depth)
        counts = _box_measure.level_sums(np.bincount(leaves, minlength=len(low)))
        assert [len(level) for level in counts] == [2 << j for j in range(depth)]
        assert all(level.sum() == 500 for level in counts)
    assert _box_measure.leaf_of(np.ones((1, d)), *tree_of(np.full(d, np.inf), 6))[0] == 63


def test_box_measure_consistent_masses_add_up(rng):
    all_of_them = [np.ones(2 << j, dtype=bool) for j in range(6)]
    noisy = [rng.normal(5, 4, 2 << j) for j in range(6)]
    masses = _box_measure.consistent(40.0, noisy, all_of_them)
    assert masses.min() >= 0 and masses.sum() == pytest.approx(40.0)
    exact = _box_measure.level_sums(np.bincount(rng.integers(0, 64, 300), minlength=64))
    assert _box_measure.consistent(300, exact, all_of_them) == pytest.approx(exact[-1])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("d", "n", "most"), [(1, 10_000, 0.012), (2, 10_000, 0.035), (2, 1000, 0.05), (3, 10_000, 0.05)]
)
def test_private_measure_of_counts_is_near_data(d, n, most):
    X = blobs(n, d, 0)
    found = [
        wasserstein(X, PrivateMeasure(1.0, (0, 1), random_state=s).fit(X).sample(4000, 1))
        for s in range(3)
    ]
    assert np.mean(found) <= most


@pytest.mark.parametrize(
    ("d", "reached"),
    [(1, 0.99), *(pytest.param(*case, marks=pytest.mark.laws) for case in ((2, 0.8), (3, 0.65)))],
)
def test_smooth_measure_loses_what_it_declares(d, reached, rng, monkeypatch):
    # The loss of Laplace noise is the change of its centre over its scale. Points that move alone
    # or in pairs attack it, and their mean move bounds the distance of the measures.
    scales = []

    def for_scale(scale):
        scales.append(scale)
        return FixedPoint.for_scale(scale)

    monkeypatch.setattr(_smooth_measure, "FixedPoint", SimpleNamespace(for_scale=for_scale))
    private = PrivateMeasure(bounds=(0, 1), method="metric", alpha=50.0, random_state=0)
    guarantee = private.fit(rng.uniform(size=(20, d))).privacy_guarantee_
    k, released = resolution_for(50.0, d), integrals if d == 1 else hat_means
    worst = 0.0
    for reach in rng.choice([0.001, 0.01, 0.3], 500 if d == 1 else 2000):
        before = rng.uniform(size=(rng.integers(1, 3), d))
        after = np.clip(before + reach * rng.uniform(-1, 1, before.shape), 0, 1)
        loss = np.abs(released(before, k) - released(after, k)).sum() / min(scales)
        moved = np.abs(before - after).max(axis=1).mean()
        worst = max(worst, loss / guarantee.at_distance(moved))
    assert reached < worst <= 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("d", "alpha", "most"), [(1, 50, 0.2), (1, 800, 0.05), (2, 1e4, 0.09), (3, 1e4, 0.14)]
)
def test_private_measure_of_metric_method_is_near_data(d, alpha, most):
    X = blobs(3000, d, 0)
    found = []
    for seed in range(3):
        private = PrivateMeasure(
            bounds=(0, 1), method="metric", alpha=alpha, random_state=seed
        ).fit(X)
        found.append(wasserstein(X, private.sample(3000, 1), n=1000))
    assert np.mean(found) <= most


@pytest.mark.nightly
def test_private_measure_takes_million_points():
    X = np.random.default_rng(0).random((10**6, 2))
    private = PrivateMeasure(1.0, (0, 1), random_state=0).fit(X)
    assert 2**16 <= len(private.weights_) <= 2**18
    assert abs(private.n_samples_ - 10**6) < 1000
    # Each quarter of the square contains a quarter of the mass.
    corners = (private.support_ > 0.5) @ [1, 2]
    assert np.bincount(corners, weights=private.weights_) == pytest.approx([0.25] * 4, abs=0.003)


def test_private_measure_without_noise_is_measure_of_data():
    X = blobs(500, 2, 0)
    exact = PrivateMeasure(np.inf, (0, 1), adjacency="replace-one", depth=12).fit(X)
    assert (
        np.round(500 * exact.weights_, 9).tolist()
        == np.bincount(_box_measure.leaf_of(X, *tree_of([np.inf] * 2, 12)), minlength=4096).tolist()
    )
    line = blobs(500, 1, 0)
    noisy = integrals(line, 20)
    support, weights = measure_of_integrals(noisy)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    assert abs(support[:, 0] @ weights - line.mean()) < 1e-12
    support, weights = nearest_measure(hat_means(X, 5), 5, 2)
    assert support.T @ weights == pytest.approx(X.mean(axis=0))
    few = X[:20]
    smooth = PrivateMeasure(np.inf, (0, 1), method="metric", adjacency="replace-one").fit(few)
    assert smooth.support_.T @ smooth.weights_ == pytest.approx(few.mean(axis=0))


def test_nearest_measure_moves_least():
    # Noise that already is a transport costs nothing in addition.
    k, d = 3, 2
    weights = np.zeros(16)
    weights[[0, 15]] = [0.6, 0.4]
    moved = weights.copy()
    moved[1] -= 0.1
    moved[0] += 0.1
    _, nearest = nearest_measure(moved, k, d)
    assert nearest.min() >= 0 and nearest.sum() == pytest.approx(1)
    assert np.abs(nearest - weights).sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.nightly
def test_private_measure_audit_catches_broken_twin():
    # 4,000 runs per side of a measure of two halves, and 2,000 of a twin with an eighth of the
    # noise; false alarms below 1e-6.
    inside, outside = np.array([[0.1], [0.1]]), np.array([[0.1]])

    def release(X, random_state=None, epsilon=1.0):
        private = PrivateMeasure(epsilon, (0, 1), depth=1, random_state=random_state).fit(X)
        return private.weights_[0] * private.n_samples_

    assert_audited(release, inside, outside)


# Checks that draw many releases. Exact losses are in tests/test_border.py for all options, so these
# two are left to the nightly runs.
SAMPLED = {"check_noise_falls_with_epsilon", "check_noise_has_the_same_spread_without_a_seed"}
# Options that tests/test_privacy_checks.py does not try.
OPTIONS = [{}, {"depth": 3, "marginal_share": 0.5}]


def check_each(options, sampled):
    checks = dict(privacy_checks(PrivateMeasure(bounds=(0, 1), **options)))
    for name, check in checks.items():
        if (name in SAMPLED) == sampled:
            check()


@pytest.mark.conformance
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_private_measure_passes_privacy_checks(options):
    check_each(options, sampled=False)


@pytest.mark.nightly
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_private_measure_passes_sampled_privacy_checks(options):
    check_each(options, sampled=True)


def test_private_measure_metric_guarantee_counts_distance():
    X = blobs(200, 2, 0)
    accountant = PrivacyAccountant(2.0)
    metric = PrivateMeasure(
        1.0, (0, 1), method="metric", adjacency="replace-one", accountant=accountant
    ).fit(X)
    assert isinstance(metric.privacy_guarantee_, MetricPrivacyGuarantee)
    assert (metric.privacy_guarantee_.epsilon, metric.privacy_guarantee_.alpha) == (1.0, 200.0)
    assert accountant.total().epsilon == 1.0
    # A row costs epsilon, and all of them together cost the change of their measure.
    assert metric.privacy_guarantee_.at_distance(0.5) == pytest.approx(100.0)
    assert metric.privacy_guarantee_.at_distance(0.0) > 0


def test_private_measure_sample_is_cloud():
    X = blobs(200, 2, 0)
    unknown = PrivateMeasure(bounds=(0, 1), method="metric", alpha=50.0).fit(X)
    with pytest.raises(ValueError, match="n_samples"):
        unknown.sample()
    # A synthetic cloud can be used in place of a cloud.
    cloud = PrivateMeasure(1.0, (0, 1), random_state=0).fit(X).sample(300, random_state=0)
    assert DTMFiltration(0.1, bounds=(0, 1), resolution=9).fit_transform([cloud])[0].shape == (9, 9)


def test_smooth_measure_pays_for_rounding(monkeypatch):
    # Few records and a small epsilon, where a step of the lattice is not negligible against the
    # change by a row. The loss of a row, with a step for each number, stays within epsilon.
    drawn = []

    def without_noise(self, scale, size):
        drawn.append((scale, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(NoiseSource, "discrete_laplace", without_noise)
    for n, d, epsilon in ((50, 1, 1e-6), (10**4, 1, 1e-3), (500, 2, 1e-4)):
        X = np.random.default_rng(0).uniform(size=(n, d))
        PrivateMeasure(epsilon, (0, 1), method="metric", adjacency="replace-one").fit(X)
        scale, size = drawn.pop()
        assert size == size_for(epsilon * n, d)
        # In units of the change by one unit of distance: the noise, and the steps of the lattice.
        moved = 1.0 if d == 1 else 2.0 * d * (round(size ** (1 / d)) - 1)
        step = FixedPoint.for_scale(moved / (epsilon * n)).step
        loss = (moved / n / step + size) / scale
        assert loss <= epsilon * (1 + 1e-12)
        # Without the payment, it would not.
        unpaid = (moved / n / step + size) / (moved / (epsilon * n) / step)
        assert unpaid > epsilon * (1 + 1e-10)
    with pytest.raises(ValueError, match="epsilon is too small"):
        PrivateMeasure(1e-9, (0, 1), method="metric", adjacency="replace-one")._guarantee_of_shape(
            10**6, 1, False, "one row"
        )


@pytest.mark.laws
@pytest.mark.parametrize(("d", "n"), [(1, 10**6), (3, 10**5)])
def test_smooth_measure_order_and_number_of_rows_cost_nothing(d, n, monkeypatch):
    # Rows that are moved by less than floats of their sum can resolve, at the largest rate:
    # releases differ by no more than alpha times the distance and the resolution.
    drawn = []

    def without_noise(self, scale, size):
        drawn.append(scale)
        return np.zeros(size, dtype=np.int64)

    def released(X):
        private = PrivateMeasure(bounds=(0, 1), method="metric", alpha=1e9).fit(X)
        return values.pop(), drawn.pop(), private.privacy_guarantee_

    values, encode = [], FixedPoint.encode
    monkeypatch.setattr(NoiseSource, "discrete_laplace", without_noise)
    monkeypatch.setattr(
        FixedPoint, "encode", lambda self, x: values.append(encode(self, x)) or values[-1]
    )
    monkeypatch.setattr(
        _smooth_measure, "nearest_measure", lambda noisy, k, d: (noisy[:, None],) * 2
    )
    k = resolution_for(1e9, d)
    step = 2.0 ** (math.ceil(math.log2(n / 2)) - 53)
    rows = np.zeros((n, d))
    for first, second in ((0.49, 0.51), (0.4, 0.6)):
        sides = []
        for part in (first, second):
            rows[:, 0] = (3 + 0.5 + part * step) / k
            sides.append(released(rows))
        (a, scale, promise), (b, *_) = sides
        loss = np.abs(a - b).sum() / scale
        assert loss <= promise.at_distance((second - first) * step / k)
    rows = np.random.default_rng(0).random((n, d))
    first, second = (released(X)[0] for X in (rows, rows[np.argsort(rows[:, 0])]))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_private_measure_pays_for_missing_bounds(adjacency, monkeypatch):
    spent = []

    def choice(costs, sizes, rate, noise):
        # Costs of nested cubes, which are drawn from first, all change in the same direction.
        nested = len(costs) == 91
        spent.append(rate if nested or adjacency == "add-remove" else 2 * rate)
        return honest_choice(costs, sizes, rate, noise)

    def laplace(self, scale, size):
        spent.append(1 / scale)
        return honest_laplace(self, scale, size)

    honest_choice, honest_laplace = _intervals.choose_member, NoiseSource.discrete_laplace
    monkeypatch.setattr(_intervals, "choose_member", choice)
    monkeypatch.setattr(NoiseSource, "discrete_laplace", laplace)
    X = 100 + blobs(5000, 2, 0)
    frame = pd.DataFrame({"a": X[:, 0], "n": np.arange(5000) % 50})
    private = PrivateMeasure(
        2.0, {"a": (50, 150)}, depth=4, adjacency=adjacency, random_state=0
    ).fit(frame)
    low, high = private.bounds_
    assert (low[0], high[0]) == (50, 150) and -100 < low[1] <= 0 and 49 <= high[1] < 150
    guarantee = private.privacy_guarantee_
    assert guarantee.epsilon == 2.0 and guarantee.public_parameters
    assert guarantee.released == "bounds, a probability measure"
    # The draws take their share. A row changes one count of each level, a replaced row two.
    numbers = adjacency == "add-remove"
    draws = 2 + numbers
    assert sum(spent[:draws]) == pytest.approx(0.2 * 2.0, rel=1e-9)
    moved = 1 if numbers else 2
    assert moved * sum(spent[draws:]) <= 0.8 * 2.0 * (1 + 1e-9)
    assert private.sample(100, random_state=0)["n"].between(low[1], high[1]).all()


def test_private_measure_refuses_missing_bounds_it_needs():
    X = blobs(50, 2, 0)
    for options in ({"method": "metric", "alpha": 1.0}, {"method": "metric"}):
        with pytest.raises(ValueError, match="needs bounds"):
            PrivateMeasure(adjacency="replace-one", random_state=0, **options).fit(X)
    with pytest.raises(ValueError, match="'b'"):
        PrivateMeasure(bounds={"b": (0, 1)}).fit(X)
    exact = PrivateMeasure(math.inf, random_state=0).fit(X)
    assert np.array_equal(exact.bounds_, (X.min(axis=0), X.max(axis=0)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1e-9}, "epsilon"),
        ({"depth": 0}, "depth"),
        ({"depth": 40}, "depth"),
        ({"alpha": 5.0}, "alpha requires"),
        ({"method": "metric", "alpha": 5.0, "marginal_share": 0.5}, "marginal_share requires"),
        ({"marginal_share": 1.0}, "marginal_share"),
        ({"categories": [0, 1]}, "categories"),
        ({"method": "metric"}, "needs alpha"),
        ({"method": "metric", "alpha": 0.0}, "alpha"),
        ({"method": "metric", "alpha": 1e12}, "alpha"),
        ({"bounds": (0, 0)}, "bounds"),
    ],
)
def test_private_measure_refuses_bad_options_unpaid(options, message):
    accountant = PrivacyAccountant(math.inf)
    private = PrivateMeasure(bounds=(0, 1), accountant=accountant).set_params(**options)
    with pytest.raises(ValueError, match=message):
        private.fit(blobs(50, 2, 0))
    assert not accountant.spends()

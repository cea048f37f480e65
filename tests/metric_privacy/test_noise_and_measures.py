"""Noise by norms, and measures by smooth functions: laws, accuracy, rounding, invalid input."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest
from sklearn.base import clone

from sklearn_dptda.metric_privacy import (
    KNormMechanism,
    MetricMeasure,
    MetricPrivacyGuarantee,
    _metric_measure,
)
from sklearn_dptda.metric_privacy._metric_measure import (
    hat_means,
    integrals,
    measure_of_integrals,
    nearest_measure,
    resolution_for,
    size_for,
)
from sklearn_dptda.privacy import FixedPoint, NoiseSource, PrivacyAccountant
from sklearn_dptda.privacy._lattice_noise import cube_radii, lattice_noise
from tests._refusals import refuses, refuses_unpaid
from tests.privacy._laws import p_value
from tests.synthetic._measures import blobs, wasserstein

from ._spaces import pairwise

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


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
    # Probabilities proportional to (2 k + 1)**3 exp(-k / 2).
    k = cube_radii(NoiseSource(0), 0.5, 30_000, 3)
    weights = (2 * np.arange(60) + 1.0) ** 3 * np.exp(-0.5 * np.arange(60))
    assert p_value(np.minimum(k, 59), weights / weights.sum()) > 1e-6


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
    refuses(message, lambda: KNormMechanism(**options).fit(X).transform(X))


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

    monkeypatch.setattr(_metric_measure, "FixedPoint", SimpleNamespace(for_scale=for_scale))
    private = MetricMeasure(bounds=(0, 1), alpha=50.0, random_state=0)
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
def test_metric_measure_is_near_data(d, alpha, most):
    X = blobs(3000, d, 0)
    found = []
    for seed in range(3):
        private = MetricMeasure(bounds=(0, 1), alpha=alpha, random_state=seed).fit(X)
        found.append(wasserstein(X, private.sample(3000, 1), n=1000))
    assert np.mean(found) <= most


def test_metric_measure_without_noise_is_measure_of_data():
    X = blobs(500, 2, 0)
    line = blobs(500, 1, 0)
    noisy = integrals(line, 20)
    support, weights = measure_of_integrals(noisy)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    assert abs(support[:, 0] @ weights - line.mean()) < 1e-12
    support, weights = nearest_measure(hat_means(X, 5), 5, 2)
    assert support.T @ weights == pytest.approx(X.mean(axis=0))
    few = X[:20]
    smooth = MetricMeasure(np.inf, (0, 1)).fit(few)
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


def test_metric_measure_guarantee_counts_distance():
    X = blobs(200, 2, 0)
    accountant = PrivacyAccountant(2.0)
    metric = MetricMeasure(1.0, (0, 1), accountant=accountant).fit(X)
    assert isinstance(metric.privacy_guarantee_, MetricPrivacyGuarantee)
    assert (metric.privacy_guarantee_.epsilon, metric.privacy_guarantee_.alpha) == (1.0, 200.0)
    assert accountant.total().epsilon == 1.0
    # A row costs epsilon, and all of them together cost the change of their measure.
    assert metric.privacy_guarantee_.at_distance(0.5) == pytest.approx(100.0)
    assert metric.privacy_guarantee_.at_distance(0.0) > 0


def test_metric_measure_sample_needs_number_that_is_not_released():
    unknown = MetricMeasure(bounds=(0, 1), alpha=50.0).fit(blobs(200, 2, 0))
    refuses("n_samples", unknown.sample)
    assert len(unknown.sample(7)) == 7


def test_metric_measure_keeps_types_of_columns():
    X = pd.DataFrame({"n": pd.array([3, 3, 9], dtype="UInt8"), "yes": [True, False, True]})
    private = MetricMeasure(5.0, {"n": (0, 9), "yes": (0, 1)}, random_state=0).fit(X)
    synthetic = private.sample(20)
    assert synthetic.dtypes.tolist() == X.dtypes.tolist() and synthetic["n"].between(0, 9).all()


@pytest.fixture
def without_noise(monkeypatch):
    """Scales and numbers of the draws of Laplace noise, all of which are zero."""
    drawn = []

    def zeros(self, scale, size):
        drawn.append((scale, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(NoiseSource, "discrete_laplace", zeros)
    return drawn


def test_smooth_measure_pays_for_rounding(without_noise):
    # Few records and a small epsilon, where a step of the lattice is not negligible against the
    # change by a row. The loss of a row, with a step for each number, stays within epsilon.
    for n, d, epsilon in ((50, 1, 1e-6), (10**4, 1, 1e-3), (500, 2, 1e-4)):
        X = np.random.default_rng(0).uniform(size=(n, d))
        MetricMeasure(epsilon, (0, 1)).fit(X)
        scale, size = without_noise.pop()
        assert size == size_for(epsilon * n, d)
        # In units of the change by one unit of distance: the noise, and the steps of the lattice.
        moved = 1.0 if d == 1 else 2.0 * d * (round(size ** (1 / d)) - 1)
        step = FixedPoint.for_scale(moved / (epsilon * n)).step
        loss = (moved / n / step + size) / scale
        assert loss <= epsilon * (1 + 1e-12)
        # Without the payment, it would not.
        unpaid = (moved / n / step + size) / (moved / (epsilon * n) / step)
        assert unpaid > epsilon * (1 + 1e-10)
    refuses("epsilon is too small", MetricMeasure(1e-9, (0, 1))._guarantee_of_shape, 10**6, 1)


@pytest.mark.laws
@pytest.mark.parametrize(("d", "n"), [(1, 10**6), (3, 10**5)])
def test_smooth_measure_order_and_number_of_rows_cost_nothing(d, n, without_noise, monkeypatch):
    # Rows that are moved by less than floats of their sum can resolve, at the largest rate:
    # releases differ by no more than alpha times the distance and the resolution.
    def released(X):
        private = MetricMeasure(bounds=(0, 1), alpha=1e9).fit(X)
        return values.pop(), without_noise.pop()[0], private.privacy_guarantee_

    values, encode = [], FixedPoint.encode
    monkeypatch.setattr(
        FixedPoint, "encode", lambda self, x: values.append(encode(self, x)) or values[-1]
    )
    monkeypatch.setattr(
        _metric_measure, "nearest_measure", lambda noisy, k, d: (noisy[:, None],) * 2
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


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"bounds": None}, np.eye(2), "bounds"),
        ({"bounds": {"a": (0, 1)}}, pd.DataFrame(np.eye(2), columns=["a", "b"]), "for all columns"),
        ({"bounds": (0, 0)}, np.eye(2), "bounds"),
        ({"epsilon": 1e-9}, np.eye(2), "epsilon"),
        ({"alpha": 0.0}, np.eye(2), "alpha"),
        ({"alpha": 1e12}, np.eye(2), "alpha"),
        ({}, np.eye(13), "at most 12 columns"),
        ({}, pd.DataFrame({"job": ["cook", "clerk"]}), "'job'"),
        ({}, [["tutor", 1.0]], "not numbers"),
    ],
)
def test_metric_measure_refuses_bad_input_unpaid(options, X, message):
    private = MetricMeasure(bounds=(0, 1)).set_params(**options)
    refuses_unpaid(message, private.fit, X)
    assert not hasattr(private, "n_features_in_")

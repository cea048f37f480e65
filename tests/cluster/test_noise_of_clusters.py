"""The stated noise of private clusters, tested with draws of the last step and whole fits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chi2

from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPTree
from sklearn_dptda.cluster._noisy_steps import NoisyClusters, NoisyStep
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.published import DPCube, PublishedMixture
from sklearn_dptda.rows._assignments import Cells, nearest_to
from sklearn_dptda.rows._moments import GaussianBudget, LaplaceBudget, MomentWeights
from sklearn_dptda.rows._rows import Rows

# Of each test; and draws of a last step.
FALSE_ALARM, DRAWS = 1e-6, 1000
PLACES = np.array([[-1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])


def rows_about(sizes, width, seed=0):
    label = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).uniform(-width, width, (len(label), 2))
    return PLACES[label] + noise, label


def last_step(budget, X, centres, radius):
    """Step from fixed centres, so far from the means that these are hardly shrunk."""
    assign = Cells(centres, radius, budget.norm, nearest_to(centres, 4.0))
    weights = MomentWeights(0.3, 0.7)
    moments = budget.release(Rows.of_array(X), assign, len(centres), weights=weights, share=1.0)
    return NoisyStep(centres, radius, moments)


def exact_and_drawn_steps(kind):
    X, _ = rows_about([900, 600, 300], 0.3)
    centres, radius = PLACES + np.array([0.5, -0.3]), 2.0
    return [
        last_step(kind(total, "add-remove", NoiseSource(seed)), X, centres, radius)
        for seed, total in enumerate([math.inf] + [0.5] * DRAWS)
    ]


@pytest.fixture(scope="module")
def gaussian_steps():
    return exact_and_drawn_steps(GaussianBudget)


def studentised(steps, spoil=lambda step: step):
    """Errors of means and weights over what the step says of them, of all draws."""
    exact, means, weights = steps[0].clusters(), [], []
    for step in steps[1:]:
        noisy = spoil(step).clusters()
        means.append((noisy.centres - exact.centres) / noisy.sd_centres)
        weights.append((noisy.weights - exact.weights) / noisy.sd_weights)
    return np.array(means), np.array(weights)


def in_chi_squared_range(values):
    low, high = chi2.ppf([FALSE_ALARM / 12, 1 - FALSE_ALARM / 12], len(values))
    return low < (values**2).sum() < high


@pytest.mark.laws
def test_noisy_step_states_the_deviations_of_gaussian_noise(gaussian_steps):
    # Each column is independent between draws.
    means, weights = studentised(gaussian_steps)
    columns = [*means.reshape(DRAWS, -1).T, *weights.T]
    assert all(in_chi_squared_range(column) for column in columns)


@pytest.mark.laws
def test_noisy_step_states_the_deviations_of_laplace_noise():
    # Squares of Laplace variables in units of their variance have a variance of at most five, and
    # so have sums of them. The tolerance is 6 standard deviations of a mean of 1,000.
    means, weights = studentised(exact_and_drawn_steps(LaplaceBudget))
    squares = np.hstack([means.reshape(DRAWS, -1), weights]) ** 2
    assert np.abs(squares.mean(axis=0) - 1).max() < 6 * math.sqrt(5 / DRAWS)


@pytest.mark.laws
@pytest.mark.parametrize("name", ["sd_sum", "sd_count"])
def test_noisy_step_with_understated_noise_is_caught(name, gaussian_steps):
    def spoil(step):
        return replace(
            step, moments=replace(step.moments, **{name: 0.7 * getattr(step.moments, name)})
        )

    means, weights = studentised(gaussian_steps, spoil)
    caught = means.reshape(DRAWS, -1) if name == "sd_sum" else weights
    assert not any(in_chi_squared_range(column) for column in caught.T)


def test_noisy_step_pooled_adds_variances_of_cells():
    # Two cells of one cluster and one of another, with the formula written out.
    X, _ = rows_about([900, 600, 300], 0.3)
    step = last_step(GaussianBudget(0.5, "add-remove", NoiseSource(0)), X, PLACES, 2.0)
    labels, means = np.array([0, 0, 1]), np.array([[0.0, 0.2], [1.0, -1.0]])
    pooled = step.pooled(np.arange(3), labels, means)
    m = step.moments
    for k, cells in enumerate(([0, 1], [2])):
        n = step.moments.floored_counts[cells].sum()
        variance = sum(
            (2.0 * m.sd_sum) ** 2 + ((PLACES[c] - means[k]) * m.sd_count) ** 2 for c in cells
        )
        assert pooled.counts[k] == pytest.approx(n)
        np.testing.assert_allclose(pooled.sd_centres[k], np.sqrt(variance) / n)
        assert pooled.sd_counts[k] == pytest.approx(math.sqrt(len(cells)) * m.sd_count)


def test_noisy_clusters_state_the_deviations_of_weights():
    sizes, sds = np.array([5000.0, 800.0, 100.0]), np.array([10.0, 30.0, 5.0])
    noise = np.random.default_rng(0).standard_normal((DRAWS, 3)) * sds
    drawn = (sizes + noise) / (sizes + noise).sum(axis=1, keepdims=True)
    said = NoisyClusters(np.zeros((3, 2)), sizes, np.ones((3, 2)), sds).sd_weights
    for column in ((drawn - sizes / sizes.sum()) / said).T:
        assert in_chi_squared_range(column)


FITS = [
    (DPLloyd, {}),
    (DPLloyd, {"delta": 0.0}),
    (DPLloyd, {"covariance_share": 0.5}),
    (DPTree, {}),
    (DPTree, {"delta": 0.0}),
    (DPCube, {}),
    (DPCube, {"delta": 0.0}),
    (DPMoG, {}),
    (PublishedMixture, {"n_steps": 12}),
    (DPMoGMorse, {"n_components": 2}),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "parameters"), FITS, ids=str)
def test_private_clusters_are_as_near_as_they_say(kind, parameters):
    # 100 fits of two narrow clusters in columns of different units, without clipped rows.
    X, label = rows_about([1200, 800], 0.1)
    X = X * [1, 50]
    truth = np.array([X[label == k].mean(axis=0) for k in (0, 1)])
    errors, weights = [], []
    for seed in range(100):
        private = kind(
            2, epsilon=2.0, bounds=([-2, -100], [2, 100]), random_state=seed, **parameters
        ).fit(X)
        centres = "means_" if hasattr(private, "means_") else "cluster_centers_"
        means, noise = getattr(private, centres), getattr(private, f"{centres[:-1]}_noise_")
        if len(means) < 2:  # the published algorithm can start both components in one place
            assert kind is PublishedMixture
            continue
        order = means[:, 0].argsort()
        errors.append((means[order] - truth) / noise[order])
        weights.append((private.weights_[order] - [0.6, 0.4]) / private.weights_noise_[order])
        assert not private.within_noise_.any()
    errors, weights = np.abs(errors), np.abs(weights)[:, 0]
    # Beyond two deviations are .046 of normal and .059 of Laplace variables, fewer where steps were
    # shrunk, and a few of clipped rows: in each column no more than a share of .1 would have.
    n = len(errors)
    most = binom.isf(FALSE_ALARM / 5, n, 0.1)
    assert n >= 80 and ((errors > 2).sum(axis=0) <= most).all() and (weights > 2).sum() <= most
    # The stated noise is not too large either: the median of a normal variable is 0.67.
    assert 0.25 < np.median(errors) < 1.0 and 0.25 < np.median(weights) < 1.0


def test_dp_lloyd_says_which_clusters_are_noise():
    X, _ = rows_about([3000, 3000], 0.1)
    private = DPLloyd(6, epsilon=0.3, bounds=(-2, 2), n_iter=3, random_state=1).fit(X[:400])
    lost = private.within_noise_
    assert lost.any() and not lost.all()
    # For weights alone, 1 - 2 w + 6 w**2 of 6 clusters is at least 5 / 6.
    threshold = 3 / math.sqrt(5 / 6)
    assert (private.weights_ < threshold * private.weights_noise_)[lost].all()
    # If everything is within the noise, a mixture keeps one component and says so.
    nothing = DPMoG(2, epsilon=0.001, bounds=(-2, 2), random_state=0).fit(X[:10])
    assert nothing.within_noise_.all()


def test_dp_lloyd_states_no_noise_without_privacy():
    X, _ = rows_about([300, 200], 0.1)
    private = DPLloyd(2, epsilon=math.inf, bounds=(-2, 2), random_state=0).fit(X)
    assert not private.weights_noise_.any() and not private.cluster_centers_noise_.any()


def test_dp_mog_noise_follows_the_units_of_columns():
    # The noise scales with the units of the columns.
    X, _ = rows_about([1200, 800], 0.1)
    small, large = (
        DPMoG(2, bounds=([-2, -2 * unit], [2, 2 * unit]), random_state=0).fit(X * [1, unit])
        for unit in (1, 1000)
    )
    np.testing.assert_allclose(large.means_noise_, small.means_noise_ * [1, 1000], rtol=1e-6)
    np.testing.assert_allclose(large.weights_noise_, small.weights_noise_, rtol=1e-6)

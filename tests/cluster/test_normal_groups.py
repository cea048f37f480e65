"""Groups of components that cross, and clusters that do not."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sklearn_dptda.cluster import DPMoGMorse, MorseMerging
from sklearn_dptda.cluster._mixture_density import MixtureDensity
from sklearn_dptda.cluster._normal_groups import groups_that_cross
from sklearn_dptda.published import PublishedMerging


def crossing_lines(n, seed, slope=1.0):
    rng = np.random.default_rng(seed)
    y, u = rng.choice(2, n), rng.uniform(-4, 4, n)
    X = np.column_stack([u, slope * np.where(y == 0, u, -u)])
    return X + 0.25 * rng.standard_normal((n, 2)), y


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-3, 50.0)])
def test_crossing_lines_are_two_clusters(units):
    X, y = crossing_lines(5000, 0)
    private = DPMoGMorse(2, epsilon=2.0, random_state=0).fit(X * units)
    assert adjusted_rand_score(y, private.predict(X * units)) > 0.75
    # Modes, whose components may be of both clusters, have the label of most of their weight.
    assert set(private.mode_labels_) == {0, 1}
    assert len(private.component_labels_) == len(private.weights_)


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_clusters_about_one_centre_are_found_at_each_epsilon(epsilon):
    # More components describe heavy tails worse, and must not bring the merged modes back.
    rng = np.random.default_rng(1)
    y = rng.choice(3, 8000)
    strengths = np.array([[1, 1, 1, 1], [30, 30, 1, 1], [1, 1, 30, 30]])
    X = strengths[y] * rng.laplace(size=(8000, 4))
    private = DPMoGMorse(3, epsilon=epsilon, random_state=1).fit(X)
    assert adjusted_rand_score(y, private.predict(X)) > 0.6


def test_without_privacy_too_but_not_in_the_published_algorithm():
    X, y = crossing_lines(3000, 1, slope=0.6)
    base = GaussianMixture(16, random_state=0)
    assert adjusted_rand_score(y, MorseMerging(base, 2).fit_predict(X)) > 0.6
    assert adjusted_rand_score(y, PublishedMerging(base, 2).fit_predict(X)) < 0.3


def test_arms_of_a_cross_are_joined_by_hand():
    # Two bars of three components each through one centre, exactly.
    along = np.array([-3.0, 0.0, 3.0])
    means = np.concatenate(
        [np.column_stack([along, 0 * along]), np.column_stack([0 * along, along])]
    )
    covariances = np.array([np.diag([1.0, 0.05])] * 3 + [np.diag([0.05, 1.0])] * 3)
    density = MixtureDensity(np.full(6, 1 / 6), means, covariances)
    groups = groups_that_cross(density, np.array([0, 0, 0, 0, 0, 1]), 2)
    assert groups is not None
    assert len(set(groups[:3])) == len(set(groups[3:])) == 1 and groups[0] != groups[3]


@pytest.mark.parametrize("number", [1, 2, 7])
def test_nothing_changes_where_it_cannot(number):
    means = np.array([[0.0, 0.0], [6.0, 0.0]])
    density = MixtureDensity(np.array([0.5, 0.5]), means, np.array([np.eye(2)] * 2))
    assert groups_that_cross(density, np.array([0, 1]), number) is None


@pytest.mark.parametrize("seed", range(5))
def test_shapes_stay_merged_modes(seed):
    X, y = make_moons(5000, noise=0.07, random_state=seed)
    private = DPMoGMorse(2, epsilon=2.0, random_state=seed).fit(X)
    assert adjusted_rand_score(y, private.predict(X)) > 0.9

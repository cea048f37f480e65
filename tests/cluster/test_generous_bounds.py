"""Clusters in bounds that are far wider than the rows, where noise hides the scale of the rows."""

import numpy as np
import pytest

from sklearn_dptda.cluster import DPLloyd, DPMoG

BOUNDS = ([60, 10, 0], [250, 70, 300])


def patients(n=1500):
    """Three groups by blood pressure; the last column is skewed, and most of its box is empty."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    pressure = rng.normal(np.array([115, 140, 165])[group], 7)
    mass = rng.normal(np.array([22, 31, 26])[group], 1.5)
    return np.c_[pressure, mass, rng.lognormal(np.array([0.5, 1, 3])[group], 0.5)]


# These seeds made the noisy trace of the covariance negative: rows were clipped to a point, and all
# centres were the mean of the rows, with tiny stated noise.
@pytest.mark.parametrize("seed", [0, 1, 45, 70, 74, 85, 87, 88])
def test_noise_in_the_scale_does_not_merge_all_clusters(seed):
    X = patients()
    private = DPLloyd(3, epsilon=1.0, bounds=BOUNDS, random_state=seed).fit(X)
    assert np.ptp(private.cluster_centers_[:, 0]) > 30


@pytest.mark.slow
def test_few_runs_of_a_mixture_merge_all_clusters():
    X = patients()
    spans = [
        np.ptp(DPMoG(3, epsilon=1.0, bounds=BOUNDS, random_state=seed).fit(X).means_[:, 0])
        for seed in range(20)
    ]
    assert np.quantile(spans, 0.1) > 30

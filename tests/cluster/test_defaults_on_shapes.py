"""Shapes that the default parameters must find.

Each threshold is far below the medians that were measured, and far above those of the defaults
before: doc/measured/clusters.md.
"""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPMoGMorse, DPToMATo

SEEDS = range(3)


def two_waves(n, rng):
    y, t = rng.choice(2, n), rng.uniform(0, 4 * np.pi, n)
    return np.c_[t, 1.2 * np.sin(t) + 2.0 * y + 0.12 * rng.normal(size=n)], y


def rings_with_pupils(n, rng):
    y, t = rng.choice(4, n, p=[0.35, 0.35, 0.15, 0.15]), rng.uniform(0, 2 * np.pi, n)
    radius = np.where(y < 2, 1.0, 0.15) * (1 + 0.05 * rng.normal(size=n))
    return np.c_[np.where(y % 2, 1.25, -1.25) + radius * np.cos(t), radius * np.sin(t)], y


def letters(n, rng):
    """Strokes side by side, in a box of sides 6:1."""
    y, t = rng.choice(6, n), rng.uniform(-1, 1, n)
    bar = y % 2 == 0
    x = 3.0 * y + np.where(bar, 0.0, 0.8 * np.cos(t * np.pi))
    height = 1.3 * np.where(bar, t, np.sin(t * np.pi))
    return np.c_[x, height] + 0.08 * rng.normal(size=(n, 2)), y


def median_agreement(law, make, n=5000):
    found = []
    for seed in SEEDS:
        X, y = law(n, np.random.default_rng(seed))
        bounds = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
        found.append(
            adjusted_rand_score(y, make(bounds=bounds, random_state=seed).fit(X).predict(X))
        )
    return np.median(found)


@pytest.mark.laws
@pytest.mark.parametrize(("law", "n_clusters"), [(two_waves, 2), (rings_with_pupils, 4)])
@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_mixture_of_shapes_has_components_enough_in_the_plane(law, n_clusters, epsilon):
    def make(**options):
        return DPMoGMorse(n_clusters, epsilon=epsilon, **options)

    assert median_agreement(law, make) > 0.8


@pytest.mark.laws
def test_cells_are_cubes_where_one_side_is_a_few_times_longer():
    def make(**options):
        return DPToMATo(6, epsilon=1.0, **options)

    assert median_agreement(letters, make) > 0.9

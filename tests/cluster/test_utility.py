"""Utility of private clusters on shapes, and on tables with known classes if available.

Seeds are fixed, so the tests are deterministic. The thresholds are far below the means that the
benchmark shows.
"""

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPLloyd, DPMoGMorse
from sklearn_dptda.datasets import load_table

DELTA = 1e-5


def box(X):
    """Bounds at the extremes: of published tables and simulated shapes."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low, np.where(high > low, high, low + 1)


def mean_score(X, y, n_clusters, n_components, epsilon, n_seeds=5, units="columns"):
    scores = []
    for seed in range(n_seeds):
        private = DPMoGMorse(
            n_clusters, n_components, epsilon, DELTA, box(X), units=units, random_state=seed
        )
        scores.append(adjusted_rand_score(y, private.fit_predict(X)))
    return np.mean(scores)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("make", "options", "n_components"),
    [(make_moons, {"noise": 0.08}, 8), (make_circles, {"noise": 0.05, "factor": 0.4}, 16)],
    ids=["moons", "circles"],
)
def test_dp_mog_morse_finds_shapes_that_dp_lloyd_does_not(make, options, n_components):
    X, y = make(5000, random_state=0, **options)
    assert mean_score(X, y, 2, n_components, 2.0) >= 0.95
    lloyd = DPLloyd(2, 10.0, DELTA, box(X), random_state=0)
    assert adjusted_rand_score(y, lloyd.fit_predict(X)) < 0.6


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "n_components", "least"),
    [("pulsar", 6, 0.6), ("magic", 6, 0.19), ("shuttle", 12, 0.42)],
)
@pytest.mark.parametrize("epsilon", [10.0, 1.0])
def test_dp_mog_morse_finds_classes_of_published_tables(name, n_components, least, epsilon):
    try:
        data = load_table(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    n_clusters = len(data.target_names)
    # The classes of MAGIC are in a column that depends on no other, and is wide in the box.
    units = "bounds" if name == "magic" else "columns"
    score = mean_score(data.data, data.target, n_clusters, n_components, epsilon, units=units)
    assert score >= least

"""Clusters in bounds that are far wider than the rows, where noise hides the scale of the rows."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dptda.cluster import DPLloyd, DPMoG, DPTree, PrivateLandmarks
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.population import PrivateMean
from sklearn_dptda.published import DPCube
from tests.cluster._tables import case

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
def test_dp_lloyd_in_wide_bounds_keeps_clusters_apart(seed):
    X = patients()
    private = DPLloyd(3, epsilon=1.0, bounds=BOUNDS, random_state=seed).fit(X)
    assert np.ptp(private.cluster_centers_[:, 0]) > 30


@pytest.mark.nightly
def test_dp_mog_in_wide_bounds_seldom_merges_all_clusters():
    X = patients()
    spans = [
        np.ptp(DPMoG(3, epsilon=1.0, bounds=BOUNDS, random_state=seed).fit(X).means_[:, 0])
        for seed in range(20)
    ]
    assert np.quantile(spans, 0.1) > 30


WIDE = [
    DPLloyd(3, 1.0, n_iter=2),
    DPTree(3, 1.0, max_depth=3),
    DPCube(3, 1.0),
    DPMoG(3, epsilon=1.0, covariance_type="diag"),
    PrivateLandmarks(3, 1.0),
    PrivateMean(1.0),
    PrivatePCA(2, 1.0),
    DPLinearDiscriminantAnalysis(epsilon=1.0, classes=[0, 1]),
]


@pytest.mark.parametrize(
    ("private", "bounds"),
    [
        case(i % 2 == j, private, bounds, id=f"{type(private).__name__}-{bounds}")
        for i, private in enumerate(WIDE)
        for j, bounds in enumerate([None, (-1.0, 1.0)])
    ],
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("few_public_draws")
def test_private_rows_estimators_release_centres_within_bounds(private, bounds, monkeypatch):
    # Most columns hold hardly more than noise, whose extrapolation was thousands of widths wide.
    sides, honest = [], type(private)._search

    def watched(rows, low, high, *rest):
        found = honest(rows, low, high, *rest)
        sides.append(np.max((found[0].right - found[0].left) / (high - low)))
        return found

    if honest is not None:
        monkeypatch.setattr(type(private), "_search", staticmethod(watched))
    rng = np.random.default_rng(0)
    X = np.clip(np.exp(rng.normal(size=(3000, 1)) - 4) * rng.standard_t(2, (3000, 40)), -1, 1)
    labels = [(X[:, 0] > 0).astype(int)] if hasattr(private, "classes") else []
    fitted = clone(private).set_params(bounds=bounds, random_state=0).fit(X, *labels)
    low, high = fitted.bounds_
    centres = [
        getattr(fitted, name)
        for name in ("cluster_centers_", "means_", "mean_", "coreset_")
        if hasattr(fitted, name)
    ]
    assert centres and all(((low <= c) & (c <= high)).all() for c in centres)
    assert not sides or max(sides) <= 1.1 + 1e-9

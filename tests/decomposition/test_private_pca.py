"""Private principal components: exact without noise, costs, and accuracy."""

import math
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from sklearn_dptda.cluster import DPMoG, MorseMerging
from sklearn_dptda.datasets import load_table
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.decomposition._private_pca import _without_noise
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    audit_epsilon,
    gaussian_mu,
)
from sklearn_dptda.rows._moments import GaussianBudget, release_outer_products
from sklearn_dptda.rows._rows import Rows
from tests._refusals import refuses, refuses_unpaid
from tests.cluster._tables import ODD_TABLES

DATA = os.environ.get("SKLEARN_DPTDA_DATA")
BOX = (-10, 10)


def spiked(n, d, variances, seed=0):
    """Rows with a few large variances along random directions, about a mean that is not zero."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(d, d)))[0][: len(variances)]
    scores = rng.normal(size=(n, len(variances))) * np.sqrt(variances)
    return 1.0 + scores @ directions + 0.3 * rng.normal(size=(n, d)), directions


def captured(private, X):
    """Part of the variance of as many exact components that the private ones have."""
    exact = PCA(private.n_components_).fit(X)
    return (X @ private.components_.T).var(axis=0).sum() / exact.explained_variance_.sum()


SIDES = ([-10, -30, -9, -9, -20], [10, 30, 99, 9, 20])


@pytest.mark.parametrize(
    ("delta", "adjacency", "bounds"),
    [
        (1e-6, "add-remove", BOX),
        (0.0, "replace-one", BOX),
        (1e-6, "replace-one", SIDES),
        (0.0, "add-remove", SIDES),
    ],
)
def test_private_pca_without_noise_is_pca(delta, adjacency, bounds):
    X, _ = spiked(300, 5, [4.0, 2.0, 1.0])
    private = PrivatePCA(3, math.inf, delta, bounds, adjacency=adjacency).fit(X)
    exact = PCA(3, svd_solver="full").fit(X)
    for name in ("components_", "mean_", "explained_variance_", "explained_variance_ratio_"):
        found, expected = getattr(private, name), getattr(exact, name)
        if name == "components_":
            expected = expected * np.sign((found * expected).sum(axis=1))[:, None]
        assert found == pytest.approx(expected, abs=2e-4, rel=2e-4), name
    assert private.transform(X) == pytest.approx(PCA(3).fit_transform(X), abs=0.01)
    assert private.inverse_transform(private.transform(X)) == pytest.approx(
        exact.inverse_transform(exact.transform(X)), abs=0.01
    )
    assert PrivatePCA(None, math.inf, delta, bounds).fit(X).n_components_ == 5


@pytest.mark.nightly
def test_private_pca_captures_variance():
    X, _ = spiked(3000, 20, [4.0, 2.0])
    for bounds in (BOX, (-1e6, 1e6), None):
        private = PrivatePCA(2, 2.0, bounds=bounds, random_state=0).fit(X)
        assert captured(private, X) > 0.95
    X, _ = spiked(5000, 300, [9.0, 6.0, 4.0])
    private = PrivatePCA(3, 1.0, bounds=BOX, random_state=0)
    scores = [captured(clone(private).set_params(random_state=s).fit(X), X) for s in range(3)]
    assert min(scores) > 0.9
    private.fit(X)
    exact = PCA(3).fit(X)
    assert private.mean_ == pytest.approx(X.mean(axis=0), abs=0.5)
    assert private.explained_variance_ == pytest.approx(exact.explained_variance_, rel=0.3)


@pytest.mark.laws
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_private_pca_counts_components_beyond_the_noise(epsilon):
    # One component too many has a probability of at most twice exp(-9 / 2). Seeds are fixed.
    counts = []
    for seed in range(25):
        X = np.full((1000, 6), 0.5)
        private = PrivatePCA(None, epsilon, bounds=(0, 1), random_state=seed).fit(X)
        counts.append(private.explained_variance_[0] > private.noise_edge_)
        assert private.n_components_ == 1
    assert sum(counts) < 5
    X, _ = spiked(20_000, 10, [9.0, 9.0, 9.0])
    found = PrivatePCA(None, 1.0, bounds=BOX, random_state=0).fit(X)
    assert found.n_components_ >= 3 and found.noise_edge_ > 0


@pytest.mark.laws
@pytest.mark.parametrize("size", [1.5, 3.0, 10.0])
def test_without_noise_takes_known_noise_off_variances(size):
    # Largest eigenvalues of a matrix of rank one with noise, in units of half the edge of the
    # noise. The mean is over 20 of them, which differ by about 0.1.
    d, sd = 200, 200**-0.5
    rng, found = np.random.default_rng(0), []
    for _ in range(20):
        noise = np.triu(rng.normal(size=(d, d)) * sd)
        noise += noise.T
        noise[0, 0] += size
        found.append(_without_noise(np.linalg.eigvalsh(noise), sd)[-1])
    assert np.mean(found) == pytest.approx(size, abs=0.12)
    assert _without_noise(np.array([-1.0, 0.0]), sd).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ODD_TABLES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (10.0, 0.0), (math.inf, 1e-6)])
def test_private_pca_is_finite_for_odd_tables(name, epsilon, delta):
    X = ODD_TABLES[name]
    for n_components in (1, None):
        private = PrivatePCA(n_components, epsilon, delta, (-1, 1), random_state=0).fit(X)
        directions = private.components_
        assert directions @ directions.T == pytest.approx(np.eye(private.n_components_))
        assert (private.explained_variance_ >= 0).all()
        assert 0 <= private.explained_variance_ratio_.sum() <= 1 + 1e-9
        assert np.linalg.norm(private.mean_) <= 2 * math.sqrt(3)


@pytest.mark.laws
def test_private_pca_shares_a_budget_with_dp_mog():
    X, y = make_blobs(5000, n_features=40, centers=4, random_state=0)
    with PrivacyAccountant(2.0, 1e-5) as accountant:
        model = make_pipeline(
            PrivatePCA(3, 1.0, 5e-6, (-15, 15), random_state=0), DPMoG(4, 1.0, 5e-6, random_state=1)
        )
        assert adjusted_rand_score(y, model.fit(X).predict(X)) > 0.95
        assert accountant.total() == pytest.approx((2.0, 1e-5))
        refuses(None, PrivatePCA(2, bounds=(-15, 15)).fit, X, error=PrivacyBudgetExceeded)
    centres = model[0].inverse_transform(model[1].means_)
    assert centres.shape == (4, 40)


def test_private_pca_refuses_bad_parameters_unpaid():
    X, _ = spiked(100, 4, [1.0])
    private = PrivatePCA(5, bounds=BOX)
    refuses_unpaid("n_components=5", private.fit, X)
    refuses_unpaid("n_components=5", private.fit_chunks, [X])
    refuses_unpaid("is not a mixture", MorseMerging(private).fit, X)
    private.set_params(n_components=2).fit(X)
    refuses("3 columns; there are 2 components", private.inverse_transform, np.zeros((1, 3)))


@pytest.mark.nightly
@pytest.mark.skipif(
    not (DATA and Path(DATA, "usps.npz").is_file()),
    reason="usps.npz not found: set SKLEARN_DPTDA_DATA to a folder that holds it",
)
@pytest.mark.parametrize(("epsilon", "least"), [(2.0, 0.47), (5.0, 0.52)])
def test_private_pca_and_dp_mog_find_digits(epsilon, least):
    # k-means on eight exact components has 0.52.
    X, y = load_table("usps", return_X_y=True)
    scores = []
    for seed in range(5):
        model = make_pipeline(
            PrivatePCA(12, epsilon / 2, 5e-6, (-1, 1), random_state=seed),
            DPMoG(10, epsilon / 2, 5e-6, (-16, 16), covariance_type="tied", random_state=seed),
        )
        scores.append(adjusted_rand_score(y, model.fit_predict(X)))
    assert np.mean(scores) >= least


def one_release(X, random_state, factor=1.0):
    """Outer products of rows in the unit ball, with a factor less noise."""
    total = factor * gaussian_mu(1.0, 1e-2)
    budget = GaussianBudget(total, "add-remove", NoiseSource(random_state))
    return release_outer_products(Rows.of_array(X), lambda batch: batch, budget, 1.0)


@pytest.mark.nightly
def test_audit_of_outer_products_refutes_less_noise():
    # 2,000 runs per side, with the entry that a record along an axis changes; false alarms 1e-6.
    sides = np.eye(3)[[2, 2, 0]], np.eye(3)[[2, 2]]
    options = {
        "n_runs": 2000,
        "delta": 1e-2,
        "confidence": 1 - 1e-6,
        "random_state": 0,
        "event": lambda release: release[0, 0] > 1.3,
    }
    assert not audit_epsilon(one_release, *sides, **options).refutes(1.0)
    assert audit_epsilon(partial(one_release, factor=5.0), *sides, **options).refutes(1.0)

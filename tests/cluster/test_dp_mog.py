"""Private mixtures: budgets, agreement with mixtures without noise, synthetic rows, utility."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, MorseMerging
from sklearn_dptda.datasets import load_table
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.privacy import (
    NoiseWarning,
    gaussian_delta,
    gaussian_mu,
)
from sklearn_dptda.published import PublishedMixture
from tests._refusals import refuses
from tests.cluster._tables import ODD_TABLES


class FewSteps(DPMoG):
    """A mixture of one k-means step and three mixture steps."""

    _n_kmeans_steps, _n_mixture_steps = 1, 3


# The border of all estimators shows that draws lose exactly what is stated here.
@pytest.mark.parametrize("mixture", [DPMoG(3), FewSteps(3), PublishedMixture(3)], ids=str)
def test_dp_mog_states_the_zcdp_of_its_epsilon_and_delta(mixture):
    X, _ = make_blobs(200, centers=3, random_state=0)
    options = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-15, 15), "random_state": 0}
    rho = clone(mixture).set_params(**options).fit(X).privacy_guarantee_.rho
    assert rho == pytest.approx(gaussian_mu(1.0, 1e-5) ** 2 / 2, rel=1e-9)
    assert gaussian_delta(1.0, math.sqrt(2 * rho)) <= 1e-5 * (1 + 1e-9)


@pytest.mark.laws
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_dp_mog_is_near_the_mixture_of_scikit_learn(covariance_type):
    X, y = make_blobs(3000, n_features=3, centers=4, random_state=4)
    options = {"covariance_type": covariance_type, "random_state": 0}
    private = DPMoG(4, math.inf, bounds=(-15, 15), **options).fit(X)
    peer = GaussianMixture(4, covariance_type=covariance_type, random_state=0).fit(X)
    assert private.covariances_.shape == peer.covariances_.shape
    assert adjusted_rand_score(y, private.predict(X)) > 0.98
    assert private.score(X) == pytest.approx(peer.score(X), abs=0.1)
    # With noise, one start in three ends in another optimum, 0.7 nats lower.
    scores = [
        DPMoG(4, 2.0, bounds=(-15, 15), **options | {"random_state": seed}).fit(X).score(X)
        for seed in range(3)
    ]
    assert np.median(scores) == pytest.approx(peer.score(X), abs=0.4)


def test_dp_mog_spheres_are_round_in_unequal_bounds():
    X, _ = make_blobs(3000, centers=[[0, 0], [8, 0]], random_state=0)
    bounds = ([-20, -5], [20, 5])
    private = DPMoG(2, math.inf, bounds=bounds, covariance_type="spherical", random_state=0).fit(X)
    assert private.covariances_ == pytest.approx([1.0, 1.0], abs=0.15)


def test_dp_mog_by_the_paper_finds_blobs():
    X, y = make_blobs(5000, centers=3, random_state=0)
    paper = PublishedMixture(3, math.inf, bounds=(-15, 15)).fit(X)
    assert paper.means_.shape == (3, 2) and adjusted_rand_score(y, paper.predict(X)) > 0.7


@pytest.mark.nightly
def test_dp_mog_by_the_paper_keeps_its_components():
    # The single start, which no seed changes, leaves one of three components without rows.
    X, y = make_blobs(5000, centers=[[-9, -9], [9, -9], [0, 9]], random_state=0)
    for seed in range(5):
        paper = PublishedMixture(3, math.inf, bounds=(-15, 15), random_state=seed).fit(X)
        assert adjusted_rand_score(y, paper.predict(X)) > 0.99
    scores = []
    for seed in range(8):
        X, y = make_blobs(3000, centers=4, random_state=seed)
        paper = PublishedMixture(4, math.inf, bounds=(-15, 15)).fit(X)
        scores.append(adjusted_rand_score(y, paper.predict(X)))
    # It is 0.58 if they die.
    assert np.mean(scores) > 0.8


def test_morse_merging_of_dp_mog_keeps_no_labels():
    X, _ = make_blobs(1000, centers=3, random_state=0)
    morse = MorseMerging(DPMoG(6, bounds=(-15, 15), random_state=0), n_clusters=3).fit(X)
    assert not hasattr(morse, "labels_") and morse.predict(X).shape == (1000,)
    assert morse.estimator_.privacy_guarantee_.epsilon == 1.0


@pytest.mark.laws
@pytest.mark.parametrize("name", ODD_TABLES)
@pytest.mark.parametrize("epsilon", [0.1, 10.0, math.inf])
def test_dp_mog_morse_fits_odd_tables(name, epsilon):
    X = ODD_TABLES[name]
    for seed in range(2):
        private = DPMoGMorse(2, 6, epsilon, bounds=(-1, 1), random_state=seed).fit(X)
        assert np.isfinite(private.means_).all() and (np.abs(private.means_) <= 3).all()
        assert (np.linalg.eigvalsh(private.covariances_) > 0).all()
        assert private.weights_.sum() == pytest.approx(1.0)
        assert set(private.predict(X)) <= set(range(private.n_clusters_))


def test_dp_mog_samples_stay_within_the_bounds(rng):
    age = rng.exponential(20, (5000, 1))
    private = DPMoG(3, bounds=(0, 120), units="bounds", random_state=0).fit(age)
    drawn = private.sample(20_000, random_state=0)
    unbounded, _ = private._given_mixture(0).sample(20_000)
    assert (unbounded < 0).mean() > 0.01
    assert drawn.min() >= 0 and drawn.max() <= 120
    # Tails are reflected: there are as many rows near the bound as within and beyond it.
    near = (np.abs(unbounded) < 5).mean()
    assert (drawn < 5).mean() == pytest.approx(near, abs=0.02)


@pytest.mark.parametrize(
    ("private", "rows"),
    [
        (DPLloyd(2, 1e-6, bounds=(-4, 4)), 2000),
        (DPMoG(50, 1.0, bounds=(-4, 4)), 10),
        (PrivatePCA(2, 1.0, bounds=(-1000, 1000)), 100),
    ],
    ids=str,
)
def test_estimators_of_rows_warn_of_pure_noise(private, rows, rng):
    X = rng.normal(size=(rows, 2))
    with pytest.warns(NoiseWarning, match="noise (can|alone can) produce"):
        clone(private).set_params(random_state=0).fit(X)
    options = {"epsilon": 100.0, "bounds": (-4, 4), "random_state": 0}
    with warnings.catch_warnings(action="error", category=NoiseWarning):
        clone(private).set_params(**options).fit(rng.normal(size=(5000, 2)) * [1, 0.1])


@pytest.mark.parametrize("private", [DPLloyd(2), DPMoG(2)], ids=str)
def test_warning_of_pure_noise_is_a_function_of_the_release(private, rng):
    found = set()
    for seed in range(40):
        fitted = clone(private).set_params(bounds=(-4, 4), random_state=seed)
        with warnings.catch_warnings(record=True, action="always") as caught:
            fitted.fit(rng.normal(size=(40, 2)))
        warned = any("than noise can produce" in str(each.message) for each in caught)
        assert warned == fitted.within_noise_.all()
        found.add(warned)
    assert found == {False, True}


def test_dp_mog_samples_follow_the_mixture():
    X, _ = make_blobs(3000, centers=3, random_state=0)
    private = DPMoG(3, 5.0, bounds=(-15, 15), random_state=0).fit(X)
    rows = private.sample(20_000, random_state=0)
    assert rows.shape == (20_000, 2)
    assert np.bincount(private.predict(rows)).size == len(private.weights_)
    # Every part of the rows is a sample as well, because they are not sorted by component.
    assert np.ptp(private.predict(rows[:200])) > 0
    expected = private.weights_ @ private.means_
    # Six standard errors of 20,000 rows in these bounds.
    assert rows.mean(axis=0) == pytest.approx(expected, abs=0.3)
    assert private.score(rows) == pytest.approx(private.score_samples(rows).mean())


@pytest.mark.parametrize("kind", [DPMoG, pytest.param(DPMoGMorse, marks=pytest.mark.laws)])
def test_dp_mog_samples_have_the_columns_of_the_frame(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 1000).astype("int8"),
            "income": rng.normal(3, 1, 1000),
            "smokes": rng.random(1000) < 0.3,
            "kind": pd.Categorical(rng.integers(2, size=1000), [0, 1, 7531]),
        }
    )
    private = kind(n_components=2, bounds=([18, 0, 0, 0], [300, 9, 1, 1]), random_state=0).fit(X)
    synthetic = private.sample(500, random_state=0)
    assert list(synthetic.columns) == list(X.columns) and len(synthetic) == 500
    assert synthetic["age"].dtype == "int8" and synthetic["smokes"].dtype == bool
    assert synthetic["age"].between(18, 127).all()
    # Categories of a pandas type may come from the rows.
    assert synthetic["kind"].dtype == float
    assert "7531" not in str(vars(private._columns))
    assert len(private.predict(synthetic)) == 500
    whole = kind(n_components=2, bounds=(0, 90), random_state=0).fit(X[["age"]].to_numpy())
    assert whole.sample(9).dtype == np.int8
    assert whole.fit(X[["age"]].to_numpy().tolist()).sample(9).dtype == float


@pytest.mark.laws
def test_dp_mog_samples_of_chunks_have_their_columns():
    X = pd.DataFrame({"age": np.arange(200) % 90, "sons": np.arange(200) % 3})
    chunks = [X[:120], X[120:]]
    private = DPMoG(2, bounds=(0, 90), random_state=0).fit_chunks(chunks)
    synthetic = private.sample(20)
    assert list(synthetic.columns) == ["age", "sons"]
    assert [dtype.kind for dtype in synthetic.dtypes] == ["i", "i"]
    # The types are those of the table of all chunks, whose integers are floats if those of one
    # chunk are.
    mixed = private.fit_chunks([chunks[0], chunks[1].astype(float)]).sample(20)
    assert list(mixed.columns) == ["age", "sons"]
    assert [dtype.kind for dtype in mixed.dtypes] == ["f", "f"]


def test_dp_mog_refuses_with_a_remedy():
    X, _ = make_blobs(100, centers=3, random_state=0)
    refuses("exclude", DPMoGMorse(2, merge_threshold=1.0, bounds=(-15, 15)).fit, X)
    refuses("DPLloyd", DPMoG(delta=0.0, bounds=(-15, 15)).fit, X)


# Utility.


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
    X, y, n_clusters = data.data, data.target, len(data.target_names)
    # The classes of MAGIC are in a column that depends on no other, and is wide in the box.
    units = "bounds" if name == "magic" else "columns"
    low, high = X.min(axis=0), X.max(axis=0)
    bounds = low, np.where(high > low, high, low + 1)
    scores = []
    for seed in range(5):
        private = DPMoGMorse(n_clusters, n_components, epsilon, 1e-5, bounds, units=units)
        scores.append(adjusted_rand_score(y, private.set_params(random_state=seed).fit_predict(X)))
    assert np.mean(scores) >= least

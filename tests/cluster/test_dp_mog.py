"""Private mixtures: sensitivities by attack, control flow, utility, scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_dptda.cluster import DPMoG, DPMoGMorse, MorseMerging
from sklearn_dptda.cluster._moments import MomentWeights, clip_norm, release_moments
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyLeakWarning,
    gaussian_delta,
    gaussian_mu,
    zcdp_epsilon,
)

WEIGHTS = [
    MomentWeights(0.3, 0.7),
    MomentWeights(0.5, 0.5),
    MomentWeights(0.1, 0.3, 0.6),
    MomentWeights(0.2, 0.4, 0.4),
    MomentWeights(0.05, 0.9, 0.05),
    MomentWeights(1.0, 1.0, 1.0),
]


def contribution(u, cell, n_cells, weights):
    """Moments of one record, through the code that is released, without noise."""
    moments = release_moments(
        lambda part: np.atleast_2d(u)[part],
        np.array([cell]),
        n_cells,
        weights,
        0.0,
        "add-remove",
        NoiseSource(0),
    )
    parts = [np.sqrt(weights.count) * moments.counts, np.sqrt(weights.sum) * moments.sums]
    if weights.second:
        rows, columns = np.triu_indices(np.size(u))
        stretch = np.where(rows == columns, 1.0, np.sqrt(2.0))
        parts.append(np.sqrt(weights.second) * stretch * moments.seconds[:, rows, columns])
    return np.concatenate([part.ravel() for part in parts])


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_joint_sensitivity_is_never_exceeded_and_reached(weights, rng):
    # 400 random pairs and the worst directions, in and across cells.
    units = rng.normal(size=(400, 2, 3))
    units /= np.linalg.norm(units, axis=2, keepdims=True)
    units *= rng.uniform(0, 1, size=(400, 2, 1)) ** 0.2
    pairs = [(u, v, int(rng.integers(2))) for u, v in units]
    axis, other = np.eye(3)[:2]
    cosine = -1.0 if 2 * weights.second <= weights.sum else -weights.sum / (2 * weights.second)
    turned = cosine * axis + math.sqrt(1 - cosine**2) * other
    pairs += [(axis, turned, 0), (axis, axis, 1), (axis, -axis, 0)]
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    for u, v, cell in pairs:
        first = contribution(u, 0, 2, weights)
        second = contribution(v, cell, 2, weights)
        worst["add-remove"] = max(worst["add-remove"], np.linalg.norm(first))
        worst["replace-one"] = max(worst["replace-one"], np.linalg.norm(first - second))
    for adjacency, found in worst.items():
        declared = weights.sensitivity(adjacency).value
        assert found <= declared * (1 + 1e-8)
        assert found == pytest.approx(declared, rel=1e-6)


def test_replacing_is_not_root_two_of_adding():
    # Where sums weigh more than counts, a replaced record costs more than that.
    weights = MomentWeights(0.3, 0.7)
    assert weights.sensitivity("replace-one").value == pytest.approx(math.sqrt(2.8))
    assert weights.sensitivity("add-remove").value == 1.0


def test_clipping_bounds_every_norm(rng):
    residuals = rng.normal(size=(1000, 4)) * 10.0 ** rng.integers(-8, 8, size=(1000, 1))
    clipped = clip_norm(residuals, 0.7)
    assert np.linalg.norm(clipped, axis=1).max() <= 1
    small = np.linalg.norm(residuals, axis=1) < 0.7
    assert clipped[small] == pytest.approx(residuals[small] / 0.7, rel=1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kmeans_steps", [1, 6])
def test_steps_spend_exactly_the_budget(adjacency, kmeans_steps, monkeypatch):
    # What every release costs, from its own scale and sensitivity, adds up to mu squared.
    from sklearn_dptda.cluster import _hard_em

    spent = []

    def spy(residuals, cells, n_cells, weights, scale, given, noise):
        assert given == adjacency
        spent.append((weights.sensitivity(adjacency).value / scale) ** 2)
        return release_moments(residuals, cells, n_cells, weights, scale, given, noise)

    monkeypatch.setattr(_hard_em, "release_moments", spy)
    X, _ = make_blobs(200, centers=3, random_state=0)
    options = {"bounds": (-15, 15), "adjacency": adjacency, "kmeans_steps": kmeans_steps}
    private = DPMoG(3, 1.0, 1e-5, random_state=0, **options).fit(X)
    assert len(spent) == 1 + kmeans_steps + 2
    mu = math.sqrt(sum(spent))
    assert mu == pytest.approx(gaussian_mu(1.0, 1e-5), rel=1e-9)
    assert gaussian_delta(1.0, mu) <= 1e-5 * (1 + 1e-9)
    assert private.privacy_guarantee_.rho == pytest.approx(mu**2 / 2)


def test_no_row_changes_what_another_contributes(rng):
    # Bit for bit: neither cells nor clipped residuals may depend on the rows around.
    from sklearn_dptda.cluster._density import MixtureDensity
    from sklearn_dptda.cluster._hard_em import _likeliest, _nearest

    Z, centres = rng.normal(size=(257, 7)), rng.normal(size=(5, 7))
    density = MixtureDensity(np.ones(5), centres, np.array([np.eye(7) * 0.3] * 5))
    for rows in (slice(0, 256), slice(1, None), slice(3, 20), slice(100, 101)):
        for function in (
            lambda part: _nearest(part, centres),
            lambda part: _likeliest(part, density),
            lambda part: clip_norm(part, 0.7),
        ):
            assert np.array_equal(function(Z)[rows], function(Z[rows].copy()))
    assert np.array_equal(_likeliest(Z, density), density.log_joint(Z).argmax(axis=1))


def test_noise_of_a_release_has_its_scale():
    # 4,000 zero counts and sums: the noise's own scale within 5 standard errors.
    moments = release_moments(
        lambda part: np.zeros((0, 3)),
        np.zeros(0, dtype=int),
        4000,
        MomentWeights(0.1, 0.3, 0.6),
        7.0,
        "add-remove",
        NoiseSource(0),
    )
    for values, declared in (
        (moments.counts, moments.sd_count),
        (moments.sums, moments.sd_sum),
        (moments.seconds[:, [0, 1, 2], [0, 1, 2]], moments.sd_second),
        (moments.seconds[:, 0, 1] * math.sqrt(2), moments.sd_second),
    ):
        assert values.std() == pytest.approx(declared, rel=5 / math.sqrt(2 * values.size))


def test_order_of_rows_and_batches_change_nothing():
    X, _ = make_blobs(500, centers=3, random_state=0)
    private = DPMoG(4, bounds=(-15, 15), random_state=0)
    first = private.fit(X).means_
    assert np.array_equal(private.fit(X[::-1]).means_, first)


@pytest.mark.parametrize("epsilon", [math.inf, 5.0, 1.0])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_blobs_are_found(epsilon, adjacency):
    X, y = make_blobs(5000, n_features=8, centers=5, random_state=0)
    scores = []
    for seed in range(3):
        private = DPMoGMorse(
            5, 10, epsilon, 1e-5, (-15, 15), adjacency=adjacency, random_state=seed
        )
        scores.append(adjusted_rand_score(y, private.fit_predict(X)))
    assert np.mean(scores) >= 0.97


def test_merging_a_private_mixture_keeps_no_labels():
    X, _ = make_blobs(1000, centers=3, random_state=0)
    morse = MorseMerging(DPMoG(6, bounds=(-15, 15), random_state=0), n_clusters=3).fit(X)
    assert not hasattr(morse, "labels_") and morse.predict(X).shape == (1000,)
    assert morse.estimator_.privacy_guarantee_.epsilon == 1.0


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((50, 2)),
        np.tile([1.0, -1.0], (50, 1)),
        np.array([[0.3, 0.4]]),
        np.random.default_rng(0).uniform(size=(3, 2)),
        np.random.default_rng(0).uniform(size=(50, 1)),
    ],
    ids=["zeros", "one corner", "one row", "fewer rows than components", "one column"],
)
@pytest.mark.parametrize("epsilon", [0.1, 10.0, math.inf])
def test_odd_tables_are_no_special_case(X, epsilon):
    for seed in range(5):
        private = DPMoGMorse(2, 6, epsilon, bounds=(-1, 1), random_state=seed).fit(X)
        assert np.isfinite(private.means_).all() and (np.abs(private.means_) <= 3).all()
        assert (np.linalg.eigvalsh(private.covariances_) > 0).all()
        assert private.weights_.sum() == pytest.approx(1.0)
        assert set(private.predict(X)) <= set(range(private.n_clusters_))


def test_synthetic_rows_follow_the_mixture():
    X, _ = make_blobs(3000, centers=3, random_state=0)
    private = DPMoG(3, 5.0, bounds=(-15, 15), random_state=0).fit(X)
    rows, components = private.sample(20_000, random_state=0)
    assert rows.shape == (20_000, 2) and np.bincount(components).size == len(private.weights_)
    expected = private.weights_ @ private.means_
    assert rows.mean(axis=0) == pytest.approx(expected, abs=0.3)
    assert private.score(rows) == pytest.approx(private.score_samples(rows).mean())


def test_costs_are_counted_as_gaussian():
    X, _ = make_blobs(300, centers=3, random_state=0)
    accountant = PrivacyAccountant(5.0, 1e-5, composition="zcdp")
    private = DPMoG(3, 1.0, 1e-6, (-15, 15), accountant=accountant)
    for _ in range(3):
        private.fit(X)
    rho = 3 * private.privacy_guarantee_.rho
    assert accountant.total().epsilon == pytest.approx(zcdp_epsilon(rho, 1e-5))
    assert accountant.total().epsilon < 3.0


def test_bad_parameters():
    X, _ = make_blobs(100, centers=3, random_state=0)
    with pytest.warns(UserWarning, match="n_clusters=9"):
        DPMoGMorse(9, 3, bounds=(-15, 15)).fit(X)
    with pytest.raises(ValueError, match="exclude"):
        DPMoGMorse(2, merge_threshold=1.0, bounds=(-15, 15)).fit(X)
    with pytest.raises(ValueError, match="delta"):
        DPMoG(delta=0.0, bounds=(-15, 15)).fit(X)
    with pytest.raises(ValueError, match="bounds"):
        DPMoG(bounds=(1, 0)).fit(X)
    with pytest.warns(PrivacyLeakWarning, match="DPMoG was given no bounds"):
        DPMoG().fit(X)


@parametrize_with_checks(
    [
        DPMoG(3, bounds=(-100, 100)),
        DPMoGMorse(bounds=(-100, 100)),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)

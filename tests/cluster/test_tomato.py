"""ToMATo compared with GUDHI's implementation, and as an estimator."""

import numpy as np
import pytest
from gudhi.clustering.tomato import Tomato
from scipy.sparse import csc_array, csr_array
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KernelDensity, kneighbors_graph

from sklearn_dptda.cluster import ToMATo
from tests._refusals import refuses


def pyramid(X):
    return -np.abs(X).sum(axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_tomato_hierarchy_is_that_of_gudhi(seed):
    X, y = make_moons(1000, noise=0.07, random_state=seed)
    ours = ToMATo(n_clusters=2, n_neighbors=31).fit(X)
    peer = Tomato(k=31, q=2, n_clusters=2).fit(X)
    assert adjusted_rand_score(peer.labels_, ours.labels_) == 1.0
    assert adjusted_rand_score(y, ours.labels_) > 0.98
    finite = ours.diagram_[ours.n_connected_components_ :]
    assert np.sort(finite, axis=0) == pytest.approx(np.sort(peer.diagram_, axis=0))
    assert len(ours.children_) == len(finite)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_clusters": 4},
        {"n_neighbors": 5},
        {"n_neighbors": 1},
        {"density": "dtm", "n_neighbors": 40},
        {"density": "log_kde", "bandwidth": 0.3},
        {"density": "kde"},
        {"radius": 0.4},
        {"radius": 0.4, "density": "kde"},
        {"metric": "manhattan"},
        {"density": pyramid},
    ],
)
@pytest.mark.filterwarnings("ignore:n_clusters=")
def test_tomato_predict_repeats_the_labels(options):
    X, _ = make_blobs(200, centers=4, random_state=0)
    # Rounded rows have copies.
    for table in (X, np.round(X)):
        tomato = ToMATo(**options).fit(table)
        assert np.array_equal(tomato.predict(table), tomato.labels_)
        assert set(tomato.labels_) == set(range(tomato.n_clusters_))


def test_tomato_diagram_is_aligned_with_the_clusters():
    X, _ = make_blobs(600, centers=5, random_state=1)
    tomato = ToMATo(n_neighbors=20).fit(X)
    prominences = tomato.diagram_[:, 0] - tomato.diagram_[:, 1]
    assert (np.diff(prominences[tomato.n_connected_components_ :]) <= 0).all()
    for cluster in range(tomato.n_clusters_):
        members = tomato.labels_ == cluster
        assert tomato.density_[members].max() == tomato.diagram_[cluster, 0]
        assert members[tomato.peak_indices_[cluster]]
    assert tomato.density_[tomato.peak_indices_] == pytest.approx(tomato.diagram_[:, 0])


def test_tomato_ways_to_cut_agree():
    X, _ = make_blobs(600, centers=4, cluster_std=0.7, random_state=1)
    free = ToMATo(n_neighbors=25).fit(X)
    assert free.n_clusters_ == 4
    prominences = free.diagram_[:, 0] - free.diagram_[:, 1]
    between = (prominences[3] + prominences[4]) / 2
    for options in ({"n_clusters": 4}, {"merge_threshold": between}):
        other = ToMATo(n_neighbors=25, **options).fit(X)
        assert np.array_equal(other.labels_, free.labels_)
    assert ToMATo(n_neighbors=25, merge_threshold=0.0).fit(X).n_clusters_ == len(prominences)


def test_tomato_takes_dense_and_sparse_distances():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    D = pairwise_distances(X)
    plain = ToMATo(2, n_neighbors=12).fit(X)
    dense = ToMATo(2, n_neighbors=12, metric="precomputed").fit(D)
    graph = kneighbors_graph(X, 12, mode="distance", include_self=True)
    sparse = ToMATo(2, n_neighbors=12, metric="precomputed").fit(csr_array(graph))
    for other in (dense, sparse):
        assert adjusted_rand_score(plain.labels_, other.labels_) == 1.0
    assert np.array_equal(dense.predict(D), dense.labels_)
    assert np.array_equal(dense.predict(D[:10]), dense.labels_[:10])


def test_tomato_breaks_ties_by_order(rng):
    weights = rng.integers(0, 5, size=200).astype(float)
    rows = np.arange(200.0)[:, None]
    moved = ToMATo(radius=1.0, density=lambda X: weights).fit(rows).density_
    assert len(np.unique(moved)) == 200 and moved == pytest.approx(weights)
    # The first of equal peaks is the highest.
    assert np.array_equal(np.argsort(-moved), np.argsort(-weights, kind="stable"))


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_tomato_joins_copies_beyond_the_neighbours(metric):
    X = np.repeat(np.arange(4.0)[:, None], 20, axis=0)
    D = pairwise_distances(X) if metric == "precomputed" else X
    clusters = ToMATo(n_neighbors=10, metric=metric).fit(D)
    assert len(clusters.diagram_) == (4 if metric == "precomputed" else 1)
    assert np.array_equal(clusters.predict(D), clusters.labels_)
    assert len(np.unique(clusters.labels_[:20])) == 1


@pytest.mark.parametrize("metric", ["cosine", "jaccard"])
def test_tomato_predict_repeats_the_labels_of_other_metrics(metric, rng):
    rays = rng.random((10, 5))
    X = np.vstack([rays * scale for scale in range(1, 31)])
    X = X > 0.5 if metric == "jaccard" else X
    clusters = ToMATo(n_neighbors=10, metric=metric).fit(X)
    assert np.array_equal(clusters.predict(X), clusters.labels_)


def test_tomato_takes_rows_far_from_the_origin(rng):
    X = rng.normal(size=(200, 20)) + 1e8
    near, far = ToMATo().fit(X - 1e8), ToMATo().fit(X)
    assert len(far.diagram_) == len(near.diagram_)
    assert np.array_equal(far.predict(X), far.labels_)


@pytest.mark.parametrize("copies", [8, 12, 40])
def test_tomato_density_counts_copies(copies):
    X = np.vstack([make_moons(300, noise=0.07, random_state=0)[0], np.zeros((copies, 2))])
    clusters = ToMATo(n_neighbors=10, density="log_kde", bandwidth=0.1).fit(X)
    exact = KernelDensity(bandwidth=0.1).fit(X).score_samples(X)
    assert clusters.density_ == pytest.approx(exact, rel=1e-9)


def test_tomato_density_of_copies_is_finite():
    moons, y = make_moons(300, noise=0.05, random_state=0)
    copies = np.repeat(moons[:1], 20, axis=0)
    clusters = ToMATo(2).fit(np.vstack([moons, copies]))
    assert adjusted_rand_score(y, clusters.labels_[:300]) > 0.95
    births = clusters.diagram_[:, 0]
    assert births[0] == births.max() < births[1] + 3


def test_tomato_takes_isolated_rows_of_sparse_distances():
    D = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.0]]))
    clusters = ToMATo(metric="precomputed").fit(D)
    assert clusters.n_clusters_ == clusters.n_connected_components_ == 2
    assert sorted(clusters.labels_.tolist()) == [0, 0, 1] or clusters.labels_.tolist() == [1, 1, 0]
    lonely = ToMATo(metric="precomputed").fit(csr_array((10, 10)))
    assert sorted(lonely.labels_) == list(range(10)) and np.isfinite(lonely.density_).all()


def test_tomato_of_a_path_has_its_peaks():
    # Heights 1 3 2 5 0 4 have saddles at 2 (into 5) and 0 (into 5).
    weights = np.array([1.0, 3.0, 2.0, 5.0, 0.0, 4.0])
    path = np.arange(6.0)[:, None]

    def cluster(*args, **options):
        return ToMATo(*args, radius=1.0, density=lambda X: weights, **options).fit(path)

    # By the largest gap, by a threshold, and by number. Each peak merges into the highest.
    for two in (cluster(), cluster(merge_threshold=3.0), cluster(2)):
        assert two.diagram_.tolist() == [[5, -np.inf], [4, 0], [3, 2]]
        assert two.peak_indices_.tolist() == [3, 5, 1]
        assert two.n_clusters_ == 2 and two.labels_.tolist() == [0, 0, 0, 0, 0, 1]
    assert cluster(1).labels_.tolist() == [0] * 6
    assert cluster(3).labels_.tolist() == [2, 2, 0, 0, 0, 1]
    # A number that is larger than that of the peaks gives a warning, and is replaced by it.
    with pytest.warns(UserWarning, match="peaks"):
        assert cluster(4).n_clusters_ == 3


def test_tomato_warns_of_impossible_numbers_of_clusters():
    X, _ = make_blobs(200, centers=3, cluster_std=0.2, random_state=0)
    with pytest.warns(UserWarning, match="connected components"):
        assert ToMATo(1, n_neighbors=5).fit(X).n_clusters_ >= 3


X = np.random.default_rng(0).normal(size=(50, 2))
BAD_INDICES = csc_array(np.ones((4, 4)))
BAD_INDICES.indices = BAD_INDICES.indices + 10**7


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"n_clusters": 2, "merge_threshold": 1.0}, X, "exclude"),
        ({"n_clusters": 99}, X, "n_clusters"),
        ({"density": lambda X: np.ones(3)}, X, "density"),
        ({"density": lambda X: np.full(len(X), np.nan)}, X, "density"),
        ({}, X * 1e160, "not finite"),
        ({"metric": "correlation"}, np.ones((20, 3)), "not finite"),
        ({"metric": "precomputed"}, X, "square"),
        ({"metric": "precomputed", "density": "kde"}, X, "square|coordinates"),
        ({"metric": "precomputed"}, -np.ones((5, 5)), "negative"),
        ({"metric": "precomputed", "n_neighbors": 2}, BAD_INDICES, "not a valid sparse matrix"),
    ],
)
@np.errstate(all="ignore")
def test_tomato_refuses_combinations_and_bad_densities(options, X, message):
    refuses(message, ToMATo(**options).fit, X)

"""Embeddings of noisy graphs: unbiased, with the right dimension, out of sample."""

import math

import numpy as np
import pytest
from scipy.sparse import vstack
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_dptda.cluster import ToMATo
from sklearn_dptda.graph import (
    AdjacencySpectralEmbedding,
    EdgeFlip,
    make_latent,
    make_mixed_membership,
    make_rdpg,
    make_sbm,
)
from sklearn_dptda.graph._embedding import unbiased
from tests._refusals import refuses


def rms_after_rotation(Z, X):
    left, _, right = np.linalg.svd(Z.T @ X)
    return float(np.sqrt(((Z @ (left @ right) - X) ** 2).sum(axis=1).mean()))


@pytest.mark.parametrize("storage", ["sparse", "packed"])
def test_unbiased_operator_equals_matrix(storage, rng):
    A, _ = make_sbm([40, 30], [[0.5, 0.1], [0.1, 0.4]], random_state=0)
    noisy = EdgeFlip(1.0, storage=storage, random_state=0).fit_transform(A)
    p = noisy.flip_probability
    dense = (noisy.toarray().astype(float) - p) / (1 - 2 * p)
    np.fill_diagonal(dense, 0.0)
    V = rng.normal(size=(70, 4))
    operator = unbiased(noisy, p)
    assert operator @ V == pytest.approx(dense @ V, abs=1e-4 if storage == "packed" else 1e-12)
    assert operator @ V[:, 0] == pytest.approx(dense @ V[:, 0], abs=1e-4)
    assert operator.rmatmat(V) == pytest.approx(dense.T @ V, abs=1e-4)


@pytest.mark.laws
def test_edge_flip_unbiased_entries_have_mean_and_variance():
    # 300 releases of 190 pairs, within five standard errors: a false-alarm rate of 6e-7.
    A, _ = make_sbm([20], [[0.5]], random_state=0)
    flip = EdgeFlip(1.0, random_state=np.random.RandomState(0)).fit(A)
    p = flip.flip_probability_
    upper = np.triu_indices(20, 1)
    exact = A.toarray()[upper]
    releases = np.array([flip.transform(A).toarray()[upper] for _ in range(300)])
    entries = (releases - p) / (1 - 2 * p) - exact
    variance = 1 / (4 * math.sinh(0.5) ** 2)
    error = math.sqrt(variance / entries.size)
    assert abs(entries.mean()) < 5 * error
    assert entries.var() == pytest.approx(variance, rel=0.05)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("epsilon", "most"), [(math.inf, 0.035), (1.0, 0.09), (2.0, 0.05), (4.0, 0.036)]
)
def test_adjacency_spectral_embedding_finds_circle(epsilon, most):
    X = make_latent(2000, "circle", random_state=1)
    A = make_rdpg(X, random_state=1)
    noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
    embedding = AdjacencySpectralEmbedding(normalize=False).fit(noisy)
    assert embedding.n_components_ == 3 and (embedding.signature_ == 1).all()
    assert rms_after_rotation(embedding.embedding_, X) < most
    assert embedding.transform(noisy) == pytest.approx(embedding.embedding_, abs=1e-4)


@pytest.mark.nightly
def test_adjacency_spectral_embedding_transform_places_new_nodes():
    X = make_latent(1500, "circle", random_state=1)
    A = make_rdpg(X, random_state=1)
    old, new = np.arange(1000), np.arange(1000, 1500)
    flip = EdgeFlip(2.0, random_state=0).fit(A[old][:, old])
    embedding = AdjacencySpectralEmbedding(3).fit(flip.transform(A[old][:, old]))
    links = A[new][:, old]
    moved = embedding.transform(flip.transform(links))
    # There are as many new nodes as old ones, and their links have no missing diagonal.
    square = embedding.transform(flip.transform_links(vstack([links, links])))
    assert np.linalg.norm(square[:500] - square[500:], axis=1).mean() < 0.2
    with pytest.raises(ValueError, match="flipped with probability"):
        embedding.transform(EdgeFlip(0.5).fit(A[old][:, old]).transform(links))
    both, truth = np.vstack([embedding.embedding_, moved]), np.vstack([X[old], X[new]])
    assert rms_after_rotation(both, truth) < 0.08


def test_adjacency_spectral_embedding_marks_negative_eigenvalues():
    A, _ = make_sbm([200, 200], [[0.1, 0.5], [0.5, 0.1]], random_state=0)
    embedding = AdjacencySpectralEmbedding(2).fit(A)
    assert embedding.signature_.tolist() == [1, -1]
    product = embedding.embedding_ * embedding.signature_ @ embedding.embedding_.T
    assert product[:200, :200].mean() == pytest.approx(0.1, abs=0.02)
    assert product[:200, 200:].mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.laws
@pytest.mark.parametrize("storage", ["sparse", "packed"])
def test_adjacency_spectral_embedding_normalize_keeps_directions(storage):
    A, _ = make_sbm([60, 40], [[0.5, 0.1], [0.1, 0.4]], random_state=0)
    noisy = EdgeFlip(1.0, storage=storage, random_state=0).fit_transform(A)
    embedding = AdjacencySpectralEmbedding(2, normalize=True)
    Z = embedding.fit_transform(noisy)
    positions = AdjacencySpectralEmbedding(2, normalize=False).fit_transform(noisy)
    # Positions remain available.
    assert np.array_equal(embedding.embedding_, positions)

    def lengths_of(Z, positions):
        weighted, lengths = np.sqrt(embedding.reliability_) * positions, np.linalg.norm(Z, axis=1)
        along = Z * np.linalg.norm(weighted, axis=1, keepdims=True)
        assert weighted * lengths[:, None] == pytest.approx(along, abs=1e-6)
        assert (lengths < 1 + 1e-9).all()
        return lengths

    # Most positions are larger than their noise. The others do not reach a length of one.
    assert np.median(lengths_of(Z, positions)) > 0.5
    sure, _ = make_sbm([60, 40], [[0.9, 0.1], [0.1, 0.9]], random_state=0)
    assert np.linalg.norm(embedding.fit_transform(sure), axis=1) == pytest.approx(1.0)
    embedding.fit(noisy)
    assert embedding.transform(noisy) == pytest.approx(Z, abs=1e-4)
    links = noisy[:30] if storage == "sparse" else noisy.toarray()[:30]
    embedding.set_params(flip_probability=noisy.flip_probability)
    new = embedding.transform(links)
    known = AdjacencySpectralEmbedding(2, normalize=False).fit(noisy)
    known.set_params(flip_probability=noisy.flip_probability)
    lengths_of(new, known.transform(links))


def test_adjacency_spectral_embedding_normalize_keeps_zeros():
    # The last four nodes: two isolated ones, and a pair that leading eigenvectors ignore.
    A = np.zeros((64, 64))
    A[:60, :60] = make_sbm([30, 30], [[0.8, 0.1], [0.1, 0.8]], random_state=0)[0].toarray()
    A[62, 63] = A[63, 62] = 1
    embedding = AdjacencySpectralEmbedding(2, normalize=True)
    for Z in (embedding.fit_transform(A), embedding.transform(A)):
        assert np.linalg.norm(Z[:60], axis=1) == pytest.approx(1.0)
        assert not Z[60:].any()
    assert not embedding.transform(np.zeros((3, 64))).any()
    # Flips give every node links, so no node is at zero, and the nodes of groups are known.
    noisy = EdgeFlip(2.0, random_state=0).fit_transform(A)
    lengths = np.linalg.norm(embedding.fit_transform(noisy), axis=1)
    assert (lengths > 0).all()
    assert (lengths < 1 + 1e-9).all()
    assert np.median(lengths[:60]) == pytest.approx(1.0)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [math.inf, 4.0])
def test_adjacency_spectral_embedding_normalize_finds_groups(epsilon):
    # 700 nodes. Over seeds, the agreement is 0.98 (standard deviation 0.008) on normalized
    # coordinates and 0.26 (0.04) on others. Both thresholds are at least six standard deviations
    # away.
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [300, 200, 100, 100])
    activity = np.exp(rng.uniform(-2, 0, (700, 1)))
    table = np.full((4, 4), 0.1) + 0.8 * np.eye(4)
    A = make_rdpg(activity * np.linalg.cholesky(table)[y], random_state=0)
    noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
    scores = []
    for normalize in (True, False):
        embedding = AdjacencySpectralEmbedding(4, normalize=normalize)
        model = make_pipeline(embedding, KMeans(4, n_init=5, random_state=0))
        scores.append(adjusted_rand_score(y, model.fit_predict(noisy)))
    assert scores[0] > 0.9 and scores[1] < 0.5


@pytest.mark.laws
@pytest.mark.parametrize("seed", range(2))
def test_adjacency_spectral_embedding_of_noise_has_one_dimension(seed):
    A, _ = make_sbm([500], [[0.2]], random_state=seed)
    noisy = EdgeFlip(1.0, random_state=seed).fit_transform(A)
    assert AdjacencySpectralEmbedding().fit(noisy).n_components_ == 1


@pytest.mark.conformance
def test_adjacency_spectral_embedding_in_pipeline_learns_flip_probability():
    A, y = make_sbm([150] * 3, np.full((3, 3), 0.1) + 0.35 * np.eye(3), random_state=0)
    model = make_pipeline(
        EdgeFlip(2.0, random_state=0), AdjacencySpectralEmbedding(normalize=True), ToMATo(3)
    )
    labels = model.fit_predict(A)
    assert adjusted_rand_score(y, labels) > 0.95
    embedding = model.named_steps["adjacencyspectralembedding"]
    assert embedding.flip_probability_ == model[0].flip_probability_ > 0
    assert embedding.n_components_ == 3


@pytest.mark.conformance
def test_edge_flip_grid_search_finds_epsilon():
    A, y = make_sbm([100] * 2, [[0.5, 0.1], [0.1, 0.5]], random_state=0)
    model = make_pipeline(
        EdgeFlip(random_state=0), AdjacencySpectralEmbedding(2), KMeans(2, n_init=3, random_state=0)
    )

    def score(fitted, X, y):
        return adjusted_rand_score(y, fitted.predict(X))

    search = GridSearchCV(model, {"edgeflip__epsilon": [0.01, 5.0]}, scoring=score, cv=3)
    search.fit(A.toarray(), y)
    assert search.best_params_ == {"edgeflip__epsilon": 5.0}
    assert search.best_score_ > 0.9


def test_adjacency_spectral_embedding_refuses_directed_and_empty_graphs():
    A = np.triu(np.ones((40, 40)), 1)
    for storage in ("sparse", "packed"):
        noisy = EdgeFlip(3.0, directed=True, storage=storage, random_state=0).fit_transform(A)
        refuses("not symmetric", AdjacencySpectralEmbedding(2).fit, noisy)
    refuses("no edges", AdjacencySpectralEmbedding(2).fit, np.zeros((30, 30)))
    noisy = EdgeFlip(1e-18, random_state=0).fit_transform(np.ones((30, 30)) - np.eye(30))
    refuses("nothing of the graph is left", AdjacencySpectralEmbedding(2).fit, noisy)


def test_adjacency_spectral_embedding_takes_zero_eigenvalues():
    star = np.zeros((30, 30))
    star[0, 1:] = star[1:, 0] = 1
    embedding = AdjacencySpectralEmbedding(4, normalize=False).fit(star)
    assert embedding.signature_.tolist() == [1, 0, 0, -1]
    assert embedding.transform(star) == pytest.approx(embedding.embedding_, abs=1e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 20}, "n_components"),
        ({"flip_probability": 0.5}, "flip_probability"),
    ],
)
def test_adjacency_spectral_embedding_refuses_bad_parameters(options, message):
    A, _ = make_sbm([20], [[0.5]], random_state=0)
    refuses(message, AdjacencySpectralEmbedding(**options).fit, A)


def test_make_latent_rdpg_and_sbm_follow_law_and_refuse_bad_input():
    for shape in ("circle", "sphere", "two_circles", "figure_eight"):
        X = make_latent(300, shape, random_state=0)
        products = X @ X.T
        assert products.min() > -1e-12 and products.max() < 1 + 1e-12
        A = make_rdpg(X, random_state=0)
        assert (A != A.T).nnz == 0 and not A.diagonal().any()
        upper = np.triu_indices(300, 1)
        n = len(upper[0])
        assert abs(A.nnz / 2 - products[upper].sum()) < 5 * math.sqrt(n) / 2
    assert (make_rdpg(X, random_state=1) != make_rdpg(X, random_state=1)).nnz == 0
    for bad in (
        lambda: make_latent(10, "square"),
        lambda: make_rdpg(np.full((3, 1), 2.0)),
        lambda: make_rdpg(np.zeros(3)),
        lambda: make_rdpg(np.full((3, 2), np.nan)),
        lambda: make_sbm([0, 0], [[0.1, 0.2], [0.2, 0.1]]),
        lambda: make_sbm([2, 2], [[2.0, 0.2], [0.2, 0.1]]),
        lambda: make_rdpg(np.zeros((3, 2)), signature=[1, 2]),
        lambda: make_sbm([2, 2], [[0.1, 0.2], [0.3, 0.1]]),
        lambda: make_sbm([2], [[0.5]], activities=[1.0]),
        lambda: make_sbm([2], [[0.5]], activities=[1.0, -1.0]),
        lambda: make_sbm([2], [[0.5]], activities=[1.0, np.nan]),
        lambda: make_sbm([2], [[0.5]], activities=[2.0, 2.0]),
        lambda: make_mixed_membership(1, [[0.5]]),
        lambda: make_mixed_membership(5, 0.5),
        lambda: make_mixed_membership(5, [0.5]),
        lambda: make_mixed_membership(5, [[1.5]]),
        lambda: make_mixed_membership(5, [[0.5]], concentration=0.0),
    ):
        refuses(None, bad)


def within_five_errors(A, probabilities):
    """Number of edges against its expectation: a false alarm in less than 1e-6."""
    upper = np.triu_indices(len(probabilities), 1)
    p = probabilities[upper]
    return abs(A.nnz / 2 - p.sum()) < 5 * math.sqrt((p * (1 - p)).sum())


def test_make_sbm_activities_follow_law():
    rng = np.random.default_rng(0)
    t, table = rng.uniform(0.2, 1, 300), np.array([[0.8, 0.1], [0.1, 0.5]])
    A, y = make_sbm([200, 100], table, activities=t, random_state=0)
    P = np.outer(t, t) * table[np.ix_(y, y)]
    assert within_five_errors(A, P)
    busy, quiet = (y == 0) & (t > 0.6), (y == 0) & (t < 0.6)
    for side in (busy, quiet):
        assert within_five_errors(A[side][:, side], P[np.ix_(side, side)])
    # The same graph as from the positions t_i x_g, because the same coins decide.
    X = t[:, None] * np.linalg.cholesky(table)[y]
    assert (make_rdpg(X, random_state=0) != A).nnz == 0


def test_make_mixed_membership_follows_law():
    table = np.array([[0.8, 0.1, 0.1], [0.1, 0.6, 0.1], [0.1, 0.1, 0.4]])
    A, M = make_mixed_membership(400, table, concentration=0.3, random_state=0)
    assert M.min() >= 0 and M.sum(axis=1) == pytest.approx(1.0)
    assert within_five_errors(A, M @ table @ M.T)
    for k in range(3):
        part = M.argmax(axis=1) == k
        assert within_five_errors(A[part][:, part], (M @ table @ M.T)[np.ix_(part, part)])
    # Positions are convex combinations of three points, which form a triangle.
    positions = AdjacencySpectralEmbedding(3, normalize=False).fit_transform(A)
    assert rms_after_rotation(positions, M @ np.linalg.cholesky(table)) < 0.12

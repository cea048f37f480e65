"""Coordinates of a graph that are not noise, tested with links that were left out."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.graph import (
    AdjacencySpectralEmbedding,
    EdgeFlip,
    make_latent,
    make_rdpg,
    make_sbm,
)


def hubs(n, seed):
    """A graph without groups, in which a few nodes have most links."""
    rng = np.random.default_rng(seed)
    activity = rng.pareto(1.2, n) + 0.1
    P = np.minimum(np.outer(activity, activity) * 8 * n / activity.sum() ** 2, 1)
    upper = np.triu(rng.random((n, n)) < P, 1)
    return csr_array((upper | upper.T).astype(np.float32))


def true_part(probabilities, embedding):
    """Part of each eigenvalue that its vector has in the graph's probabilities."""
    vectors = embedding.embedding_ / np.linalg.norm(embedding.embedding_, axis=0)
    return (vectors * (probabilities @ vectors)).sum(axis=0) / embedding.eigenvalues_


@pytest.mark.laws
@pytest.mark.parametrize(
    ("epsilon", "storage"), [(np.inf, "sparse"), (4.0, "packed"), (2.0, "sparse")]
)
def test_embedding_reliability_is_part_of_probabilities(epsilon, storage):
    blocks = np.where(np.eye(4, dtype=bool), 0.12, 0.03)
    found, true = [], []
    for seed in range(2):
        A, labels = make_sbm([250] * 4, blocks, random_state=seed)
        P = blocks[labels][:, labels]
        np.fill_diagonal(P, 0)
        noisy = EdgeFlip(epsilon, storage=storage, random_state=seed).fit_transform(A)
        embedding = AdjacencySpectralEmbedding(4).fit(noisy)
        found.append(embedding.reliability_)
        true.append(true_part(P, embedding))
    found, true = np.mean(found, axis=0), np.mean(true, axis=0)
    # With a tenth fewer links to learn from, they are smaller.
    assert (found < true + 0.05).all()
    assert (found > true - 0.2).all()


@pytest.mark.nightly
def test_adjacency_spectral_embedding_ignores_hubs():
    edges, found = [], []
    for seed in range(8):
        embedding = AdjacencySpectralEmbedding().fit(hubs(800, seed))
        all_of_them = AdjacencySpectralEmbedding(20).fit(hubs(800, seed))
        beyond = np.abs(all_of_them.eigenvalues_) > 1.05 * all_of_them.noise_edge_
        edges.append(beyond.sum())
        found.append(embedding.n_components_)
    # Twin: only the edge of uniform noise.
    assert np.median(edges) >= 6
    assert np.median(found) <= 2
    assert max(found) <= 4


@pytest.mark.laws
def test_embedding_reliability_of_packed_equals_sparse():
    A = make_rdpg(make_latent(1000, random_state=0), random_state=0)
    noisy = EdgeFlip(1.0, storage="packed", random_state=0).fit_transform(A)
    packed = AdjacencySpectralEmbedding(3).fit(noisy)
    p = noisy.flip_probability
    split = AdjacencySpectralEmbedding(3, flip_probability=p).fit(csr_array(noisy.toarray()))
    np.testing.assert_allclose(packed.eigenvalues_, split.eigenvalues_, rtol=1e-4)
    np.testing.assert_allclose(packed.reliability_, split.reliability_, atol=0.05)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_adjacency_spectral_embedding_tells_groups_from_hubs(seed):
    rng = np.random.default_rng(seed)
    A, labels = make_sbm([250] * 4, np.where(np.eye(4) > 0, 0.064, 0.004), random_state=seed)
    graph = A.toarray()
    for hub in range(4):
        # Their eigenvalues, about plus and minus the root of 250, are among those of the groups.
        ends = rng.choice(1000, 200, replace=False)
        graph[hub, ends] = graph[ends, hub] = 1
    np.fill_diagonal(graph, 0)
    embedding = AdjacencySpectralEmbedding()
    Z = embedding.fit_transform(graph)
    assert embedding.n_components_ >= 4
    assert (embedding.reliability_[:4] > 0.5).all()
    found = KMeans(4, n_init=10, random_state=0).fit_predict(Z)
    assert adjusted_rand_score(labels, found) > 0.9


@pytest.mark.laws
def test_adjacency_spectral_embedding_ignores_small_components():
    # A graph of many small trees: the links that were left out contain no information about others.
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((1000, 1000)) < 0.0008, 1)
    embedding = AdjacencySpectralEmbedding().fit((upper | upper.T).astype(float))
    assert embedding.n_components_ <= 2


@pytest.mark.laws
@pytest.mark.parametrize("epsilon", [8.0, 4.0])
def test_adjacency_spectral_embedding_finds_same_dimension_in_storages(epsilon):
    numbers = [
        AdjacencySpectralEmbedding()
        .fit(EdgeFlip(epsilon, storage=storage, random_state=0).fit_transform(hubs(800, 0)))
        .n_components_
        for storage in ("sparse", "packed")
    ]
    assert abs(numbers[0] - numbers[1]) <= 1


@pytest.mark.nightly
def test_adjacency_spectral_embedding_ignores_nodes_without_links():
    agreement = []
    for seed in range(6):
        A, labels = make_sbm([150, 150], [[0.15, 0.03], [0.03, 0.15]], random_state=seed)
        # A fifth of the nodes has no links except those from flips.
        wide = np.zeros((375, 375), dtype=np.float32)
        wide[:300, :300] = A.toarray()
        noisy = EdgeFlip(6.0, random_state=seed).fit_transform(wide)
        Z = AdjacencySpectralEmbedding(random_state=seed).fit_transform(noisy)
        found = KMeans(2, n_init=10, random_state=0).fit_predict(Z)
        agreement.append(adjusted_rand_score(labels, found[:300]))
    assert min(agreement) > 0.9


def test_embedding_reliability_with_few_links():
    # With no links to leave out and only noise, no coordinate is dropped, and none is missing.
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 0] = 1
    embedding = AdjacencySpectralEmbedding(2).fit(A)
    assert embedding.reliability_.shape == (2,)
    assert ((embedding.reliability_ >= 0.1) & (embedding.reliability_ <= 1)).all()


def test_embedding_reliability_repeats_with_seed():
    A = hubs(300, 0)
    one, other = (AdjacencySpectralEmbedding(3, random_state=1).fit(A) for _ in range(2))
    np.testing.assert_array_equal(one.reliability_, other.reliability_)

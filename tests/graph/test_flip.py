"""Flipping pairs of nodes: output laws, storage, numbering, bad input."""

import copy
import itertools
import math
import pickle
from fractions import Fraction
from functools import partial

import networkx
import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array
from sklearn.pipeline import make_pipeline

from sklearn_dptda.graph import (
    AdjacencySpectralEmbedding,
    EdgeFlip,
    LaplaceFlip,
    NoisyAdjacency,
    PackedAdjacency,
    _flip,
    _flipped_pairs,
    make_sbm,
)
from sklearn_dptda.graph._flipped_pairs import Pairs
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    _rare_coins,
    audit_epsilon,
)
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses, refuses_unpaid

KINDS = [EdgeFlip, LaplaceFlip]


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 40.0, math.inf])
def test_edge_flip_and_laplace_flip_have_exact_probabilities(epsilon, graph):
    edge = EdgeFlip(epsilon).fit(graph).flip_probability_
    laplace = LaplaceFlip(epsilon).fit(graph).flip_probability_
    assert edge == pytest.approx(1 / (1 + math.exp(min(epsilon, 700))), rel=1e-12)
    assert laplace == pytest.approx(math.exp(-epsilon / 2) / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "epsilon"), [(EdgeFlip, 0.1), (EdgeFlip, 20.0), (LaplaceFlip, 1.0), (LaplaceFlip, 3.0)]
)
def test_edge_flip_law_on_graphs_of_four_nodes_loses_epsilon(kind, epsilon):
    # 64 graphs of 6 pairs: exact, from the integer probability that is drawn from.
    mechanism = kind(epsilon)
    p = mechanism._numerator() / 2.0**64
    graphs = np.array(list(itertools.product((0, 1), repeat=6)))
    differing = (graphs[:, None] != graphs).sum(axis=2)
    logs = differing * math.log(p) + (6 - differing) * math.log1p(-p)
    assert np.exp(logs).sum(axis=1) == pytest.approx(1.0)
    neighbours = np.argwhere(differing == 1)
    worst = max(np.abs(logs[a] - logs[b]).max() for a, b in neighbours)
    assert worst <= epsilon * (1 + 1e-9)
    if kind is EdgeFlip:
        assert worst == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "rate"), [(EdgeFlip, 2.0), (LaplaceFlip, math.log(2 * math.exp(1.0) - 1))]
)
def test_edge_flip_and_laplace_flip_declare_exact_loss(kind, rate, graph):
    (draw,) = recorded(partial(kind(2.0, random_state=0).fit_transform, graph)).crossings
    assert draw.rate == pytest.approx(rate) and draw.loss == pytest.approx(rate)


def test_edge_flip_draws_follow_probability(graph):
    # 40 releases of 4,950 pairs; five standard errors, a false-alarm rate below 1e-6.
    flip = EdgeFlip(1.0, random_state=np.random.RandomState(0)).fit(graph)
    changed = [(flip.transform(graph) != graph).nnz / 2 for _ in range(40)]
    n, p = 40 * 4950, flip.flip_probability_
    assert abs(sum(changed) - n * p) < 5 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("kind", ["undirected", "directed", "bipartite"])
def test_pairs_have_unique_ranks(kind):
    for n, m in ((1, 1), (2, 2), (3, 3), (7, 7), (4, 9)):
        if n != m and kind != "bipartite":
            continue
        pairs = Pairs(n, m, kind)
        rows, columns = pairs.pair(np.arange(len(pairs)))
        assert np.array_equal(pairs.rank(rows, columns), np.arange(len(pairs)))
        expected = {"undirected": n * (n - 1) // 2, "directed": n * (n - 1), "bipartite": n * m}[
            kind
        ]
        assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == expected
        assert kind == "bipartite" or (rows != columns).all()


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_pairs_ranks_are_exact_for_million_nodes(kind):
    n = 10**6
    pairs = Pairs(n, n, kind)
    ranks = np.unique(np.r_[0, 1, n - 2, n - 1, n, len(pairs) // 3, len(pairs) - 2, len(pairs) - 1])
    rows, columns = pairs.pair(ranks)
    assert np.array_equal(pairs.rank(rows, columns), ranks)
    # In Python's integers, which have any size.
    for rank, i, j in zip(ranks.tolist(), rows.tolist(), columns.tolist(), strict=True):
        if kind == "undirected":
            assert rank == i * n - i * (i + 1) // 2 + j - i - 1
        else:
            assert rank == i * (n - 1) + j - (j > i)


@pytest.mark.parametrize("directed", [False, True])
def test_edge_flip_packed_equals_sparse(directed, graph):
    A = graph.toarray()
    if directed:
        A = np.triu(A) + np.tril(A[::-1, ::-1], -1)
    releases = [
        EdgeFlip(1.5, directed=directed, storage=storage, random_state=0).fit_transform(A)
        for storage in ("sparse", "packed")
    ]
    sparse, packed = releases
    assert isinstance(sparse, NoisyAdjacency) and isinstance(packed, PackedAdjacency)
    assert np.array_equal(sparse.toarray(), packed.toarray())
    assert not sparse.diagonal().any() and set(np.unique(sparse.data)) == {1.0}
    assert directed or (sparse != sparse.T).nnz == 0
    assert sparse.flip_probability == packed.flip_probability == pytest.approx(0.18, abs=0.01)
    V = np.random.default_rng(0).normal(size=(100, 3))
    assert packed @ V == pytest.approx(sparse @ V, abs=1e-4)
    assert packed.rmatmat(V) == pytest.approx(sparse.T @ V, abs=1e-4)
    assert packed @ V[:, 0] == pytest.approx(sparse @ V[:, 0], abs=1e-4)


def test_edge_flip_takes_all_kinds_of_graphs(graph):
    A = graph.toarray()
    inputs = [
        A,
        A.astype(int),
        A.astype(bool),
        A.tolist(),
        graph,
        coo_array(graph),
        networkx.from_numpy_array(A),
    ]
    first, *others = [EdgeFlip(2.0, random_state=0).fit_transform(X) for X in inputs]
    for other in others:
        assert (first != other).nnz == 0


@pytest.mark.parametrize(
    ("n_rows", "storage", "directed"),
    [(1, "sparse", False), (7, "packed", True), (100, "packed", False), (100, "sparse", True)],
)
def test_edge_flip_transform_links_flips_links_of_new_nodes(n_rows, storage, directed, graph, rng):
    links = (rng.random((n_rows, 100)) < 0.3).astype(float)
    flip = EdgeFlip(1.0, storage=storage, directed=directed, random_state=0).fit(graph)
    rows = flip.transform_links(links)
    assert rows.shape == links.shape and rows.links
    assert rows.flip_probability == flip.flip_probability_
    # Also on the diagonal, because these are pairs of different nodes. Seven standard errors.
    p, changed = flip.flip_probability_, rows.toarray() != links
    assert abs(changed.mean() - p) < 7 * math.sqrt(p * (1 - p) / changed.size)
    assert n_rows < 100 or changed.diagonal().any()
    exact = EdgeFlip(math.inf, storage=storage, directed=directed).fit(graph)
    assert np.array_equal(exact.transform_links(links).toarray(), links)
    if n_rows != 100:
        assert np.array_equal(exact.transform(links).toarray(), links)


def test_edge_flip_refusal_names_transform_links(graph):
    flip = EdgeFlip().fit(graph)
    refuses("use transform_links", flip.transform, np.ones((100, 100)))
    refuses("columns", flip.transform_links, np.ones((3, 99)))


@pytest.mark.parametrize(
    "changed", [{"epsilon": 2.0}, {"directed": True}, {"random_state": 0}], ids=str
)
def test_edge_flip_refuses_parameters_changed_after_fit(changed, graph):
    flip = EdgeFlip().fit(graph).set_params(**changed)
    for release in (flip.transform, flip.transform_links):
        refuses_unpaid("Call fit again", release, graph)
    assert flip.fit(graph).transform(graph).shape == (100, 100)
    assert ("directed link" in flip.privacy_guarantee_.unit) == flip.directed


@pytest.mark.parametrize("kind", KINDS)
def test_edge_flip_numerator_at_extreme_epsilon(kind):
    # It is never zero while epsilon is finite, and never more than a fair coin.
    assert kind(math.inf)._numerator() == 0
    for epsilon in (1500.0, 1e6, 1e300):
        assert kind(epsilon)._numerator() == 1
    for epsilon in (1e-17, 1e-300):
        assert (1 << 63) - 100 < kind(epsilon)._numerator() <= 1 << 63


@pytest.mark.parametrize(("kind", "output"), [(EdgeFlip, "pandas"), (LaplaceFlip, "default")])
def test_edge_flip_set_output_leaves_graphs_alone(kind, output, graph):
    model = make_pipeline(kind(2.0), AdjacencySpectralEmbedding(2)).set_output(transform=output)
    assert model.fit_transform(graph).shape == (100, 2)
    assert isinstance(model[0].transform(graph), NoisyAdjacency)


def test_noisy_adjacency_keeps_probability_in_selections_only(graph):
    noisy = EdgeFlip(1.0, random_state=0).fit_transform(graph)
    p = noisy.flip_probability
    few = np.arange(10)
    for kept in (
        noisy.copy(),
        noisy.astype(float),
        noisy[np.ix_(few, few)],
        noisy[few],
        noisy[:10, :10],
        noisy[few][:, few],
        copy.copy(noisy),
        copy.deepcopy(noisy),
        pickle.loads(pickle.dumps(noisy)),
    ):
        assert isinstance(kept, NoisyAdjacency) and kept.flip_probability == p
        assert kept.links == (kept.shape[0] != kept.shape[1]) or kept.shape == (10, 10)
    for lost in (2 * noisy, noisy + noisy, noisy @ noisy, abs(noisy)):
        assert getattr(lost, "flip_probability", None) is None
    refuses("Pass flip_probability", AdjacencySpectralEmbedding(2).fit, abs(noisy))
    assert AdjacencySpectralEmbedding(2, flip_probability=p).fit(abs(noisy)).n_components_ == 2


def test_edge_flip_leaves_read_only_input_alone(graph):
    # The entries are unsorted, with an explicit zero, shared structure, and read-only.
    indices, starts = np.array([2, 1, 0, 0]), np.array([0, 2, 3, 4])
    data = np.array([1.0, 1, 1, 1])
    for array in (indices, starts, data):
        array.setflags(write=False)
    A = csr_array((data, indices, starts), (3, 3))
    EdgeFlip().fit_transform(A)
    assert indices.tolist() == [2, 1, 0, 0]
    zero = csr_array((np.array([1.0, 1, 0]), ([0, 1, 2], [1, 0, 1])), (3, 3))
    EdgeFlip().fit_transform(zero)
    assert zero.nnz == 3


@pytest.mark.parametrize("weight", [7.5, 0, False])
def test_edge_flip_refuses_networkx_weights_with_advice(weight):
    graph = networkx.Graph([(0, 1)])
    graph.add_edge(1, 2, weight=weight)
    for estimator in (EdgeFlip(), AdjacencySpectralEmbedding(1)):
        said = refuses(r"weights.*networkx.to_scipy_sparse_array", estimator.fit, graph)
        assert "7.5" not in said
    # The advice of the message keeps all edges.
    kept = networkx.to_scipy_sparse_array(graph, weight=None)
    assert EdgeFlip(math.inf).fit_transform(kept).nnz == 4


def test_edge_flip_takes_graph_without_edges():
    empty = csr_array((50, 50))
    noisy = EdgeFlip(1.0, random_state=0).fit_transform(empty)
    assert noisy.nnz > 0
    assert EdgeFlip(math.inf).fit_transform(empty).nnz == 0
    # Flips are so rare that none happens.
    assert EdgeFlip(600.0, random_state=0).fit_transform(empty).nnz == 0


def test_edge_flip_transform_links_pays(graph):
    accountant = PrivacyAccountant(1.5)
    flip = EdgeFlip(1.0, accountant=accountant).fit(graph)
    flip.transform_links(np.zeros((3, 100)))
    refuses(None, flip.transform_links, np.zeros((3, 100)), error=PrivacyBudgetExceeded)
    assert accountant.total().epsilon == pytest.approx(1.0)


def with_entry(i, j, value):
    def change(A):
        changed = A.astype(float)
        changed[i, j] = value
        return changed

    return change


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda A: 0.5 * A, "weights"),
        (with_entry(3, 3, 1), "self-loops"),
        (lambda A: np.triu(A), "not symmetric"),
        (with_entry(0, 1, np.nan), "NaN"),
        (lambda A: A[:1, :1], "two nodes"),
        (lambda A: A[:0, :0], "empty"),
        (lambda A: A[:, :5], "square"),
        (lambda A: A[0], "two dimensions"),
        (lambda A: coo_array(A[0]), "two dimensions|square"),
        (lambda A: A.astype(complex), "real numbers"),
        (lambda A: csr_array(A.astype(complex)), "real numbers"),
        (lambda A: A.astype(str), "numbers"),
        (lambda A: networkx.Graph(), "empty"),
        (lambda A: networkx.MultiGraph([(0, 1), (0, 1)]), "parallel"),
    ],
)
def test_edge_flip_refuses_bad_graphs(make, message, graph):
    refuses(message, EdgeFlip().fit, make(graph.toarray()))


# Arrays that SciPy's compiled code would follow out of bounds: indices and ends of rows.
_CRAFTED = {
    "column above": ([10**7], [0, 1, 1, 1, 1]),
    "column below": ([-5 * 10**6], [0, 1, 1, 1, 1]),
    "ends that fall": ([1, 2, 3], [0, 3, 1, 2, 3]),
    "ends below": ([1, 2, 3], [0, -500_000, 1, 2, 3]),
    "no entries": ([], [0, 5, 0, 0, 0]),
    "differences that overflow": ([1, 2, 3], [0, 2**63 - 1, -(2**63), -1, 3]),
}


def _crafted(kind, shape, name):
    indices, ends = _CRAFTED[name]
    matrix = kind(shape)
    matrix.data, matrix.indices = np.ones(len(indices)), np.array(indices, dtype=np.int64)
    matrix.indptr = np.array(ends, dtype=np.int64)
    return matrix


def _crafted_in_other_formats():
    entries, blocks = coo_array((4, 4)), bsr_array((4, 4), blocksize=(2, 2))
    entries.data, entries.coords = np.ones(1), (np.array([0]), np.array([10**7]))
    blocks.data, blocks.indices = np.ones((1, 2, 2)), np.array([10**7])
    blocks.indptr = np.array([0, 1, 1])
    return [entries, blocks, _crafted(csc_array, (4, 4), "column above")]


@pytest.mark.parametrize(
    "crafted",
    [*(_crafted(csr_array, (4, 4), name) for name in _CRAFTED), *_crafted_in_other_formats()],
    ids=[*_CRAFTED, "edges", "bsr", "csc"],
)
def test_edge_flip_refuses_indices_out_of_bounds_unpaid(crafted):
    refuses_unpaid("X is not a valid sparse matrix", EdgeFlip(1.0).fit_transform, crafted)
    refuses("adjacency is not a valid sparse matrix", NoisyAdjacency.of, crafted, 0.1)


@pytest.mark.nightly
def test_edge_flip_audit_catches_broken_twin():
    # 3,000 runs per side on five nodes, 1,000 of the twin that flips too little; false alarms below
    # 1e-6.
    with_edge = np.ones((5, 5)) - np.eye(5)
    without = with_edge.copy()
    without[0, 1] = without[1, 0] = 0

    def audit(numerator, n_runs):
        class Flip(EdgeFlip):
            def _numerator(self):
                return numerator

        flip = Flip(1.0, random_state=0).fit(with_edge)

        def release(A, random_state=None):
            flip.random_state = random_state
            return flip.transform(A)

        return audit_epsilon(
            release,
            with_edge,
            without,
            event=lambda released: released[0, 1] == 1,
            n_runs=n_runs,
            confidence=1 - 1e-6,
            random_state=0,
        )

    numerator = EdgeFlip(1.0)._numerator()
    honest = audit(numerator, 3000)
    assert not honest.refutes(1.0) and honest.epsilon > 0.6
    assert audit(numerator // 3, 1000).refutes(1.0)


def test_edge_flip_iter_edges_equals_transform(graph):
    for flip in (EdgeFlip(1.0, random_state=3), EdgeFlip(4.0, directed=True, random_state=3)):
        with PrivacyAccountant(math.inf) as budget:
            blocks = flip.fit(graph).iter_edges(graph)
        # It is paid for before the first block.
        assert len(budget) == 1
        noisy = np.asarray(flip.transform(graph).toarray(), dtype=int)
        expected = np.argwhere(noisy if flip.directed else np.triu(noisy))
        np.testing.assert_array_equal(np.concatenate(list(blocks)), expected)
        assert list(blocks) == []
    refuses("nodes of fit", flip.iter_edges, graph[:50, :50])


@pytest.mark.laws
def test_edge_flip_refuses_release_beyond_memory_unpaid():
    A = csr_array((1_000_000, 1_000_000), dtype=np.int8)
    budget = PrivacyAccountant(30.0)
    flip = EdgeFlip(1.0, accountant=budget).fit(A)
    for storage in ("auto", "sparse"):
        refuses("GiB, more memory", flip.set_params(storage=storage).fit(A).transform, A)
    assert len(budget) == 0
    # A block of it, in little memory.
    first = next(flip.iter_edges(A))
    assert len(budget) == 1 and 1e5 < len(first) < 1e8
    # With few flips, the release itself is small.
    assert EdgeFlip(25.0, accountant=budget).fit_transform(A).shape == A.shape


def test_edge_flip_iter_edges_block_ends_tell_nothing(monkeypatch):
    # Parts of flips end with a flip, and the pairs after the last flip are unchanged.
    A, _ = make_sbm([300, 200], [[0.3, 0.1], [0.1, 0.3]], random_state=0)
    monkeypatch.setattr(_flip, "_EDGES_PER_BLOCK", 1000)
    monkeypatch.setattr(_rare_coins, "_CHUNK", 1 << 10)
    for seed in range(5):
        blocks = list(EdgeFlip(6.0, random_state=seed).fit(A).iter_edges(A))
        sizes = list(map(len, blocks))
        assert sizes[:-1] == [1000] * (len(blocks) - 1) and 0 < sizes[-1] <= 1000
        assert len(blocks) > 3
    pairs = Pairs(500, 500, "undirected")
    flips = _rare_coins.successes(NoiseSource(0), 1 << 55, len(pairs))
    careless = list(map(len, _flipped_pairs.changed(A.tocsr(), pairs, flips)))
    assert len(set(careless[:-1])) > 1


# Flips at epsilon zero are fair coins, which reveal nothing of the graph and cost nothing.


@pytest.mark.parametrize("storage", ["sparse", "packed"])
def test_edge_flip_at_epsilon_zero_throws_fair_coins(storage, graph):
    # Corollary 1 (iii): for every graph, each pair is an edge with probability one half. Within
    # five standard errors, which is a false-alarm rate of 6e-7.
    complete = np.ones((100, 100)) - np.eye(100)
    for X in (graph, np.zeros((100, 100)), complete):
        noisy = EdgeFlip(0.0, storage=storage, random_state=0).fit_transform(X)
        assert noisy.flip_probability == 0.5
        edges = noisy.toarray().sum() / 2
        assert abs(edges - 2475) < 5 * math.sqrt(4950) / 2
    refuses("nothing of the graph is left", AdjacencySpectralEmbedding(2).fit, noisy)


def largest_loss(numerator):
    """Worst log-ratio of neighbours on one pair, from the integer that coins are thrown with."""
    stay, change = (1 << 64) - numerator, numerator
    return max(math.log(Fraction(stay, change)), math.log(Fraction(change, stay)))


def test_edge_flip_at_epsilon_zero_loses_exactly_zero():
    assert largest_loss(EdgeFlip(0.0)._numerator()) == 0
    assert largest_loss(EdgeFlip(1e-15)._numerator()) > 0
    # A probability that is lower by 2^-20 is not a fair coin any more.
    assert largest_loss((1 << 63) - (1 << 43)) > 0
    # Rounded Laplace noise still refuses it.
    refuses("epsilon", LaplaceFlip(0.0).fit, np.zeros((3, 3)))


@pytest.mark.parametrize("options", [{}, {"composition": "zcdp", "delta": 1e-6}], ids=str)
def test_accountant_records_loss_of_zero_under_any_budget(options, graph):
    accountant = PrivacyAccountant(1.0, **options)
    flip = EdgeFlip(0.0, accountant=accountant)
    flip.fit_transform(graph)
    assert accountant.total() == (0.0, 0.0) and len(accountant) == 1
    accountant.spend(accountant.remaining().epsilon)
    flip.fit_transform(graph)
    assert flip.privacy_guarantee_.epsilon == 0 and len(accountant) == 3
    refuses(None, flip.set_params(epsilon=0.1).fit_transform, graph, error=PrivacyBudgetExceeded)

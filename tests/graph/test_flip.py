"""Flipping pairs of nodes: output laws, storage, numbering, bad input."""

import copy
import itertools
import math
import pickle

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array
from sklearn.base import clone
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

KINDS = [EdgeFlip, LaplaceFlip]


@pytest.fixture(scope="module")
def graph():
    return make_sbm([60, 40], [[0.4, 0.1], [0.1, 0.3]], random_state=0)[0]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 40.0, math.inf])
def test_flip_probabilities(epsilon, graph):
    edge = EdgeFlip(epsilon).fit(graph).flip_probability_
    laplace = LaplaceFlip(epsilon).fit(graph).flip_probability_
    assert edge == pytest.approx(1 / (1 + math.exp(min(epsilon, 700))), rel=1e-12)
    assert laplace == pytest.approx(math.exp(-epsilon / 2) / 2, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_laplace_is_an_edge_flip_of_less_epsilon(epsilon, graph):
    less = math.log(2 * math.exp(epsilon / 2) - 1)
    assert less < epsilon
    assert EdgeFlip(less).fit(graph).flip_probability_ == pytest.approx(
        LaplaceFlip(epsilon).fit(graph).flip_probability_
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("kind", KINDS)
def test_output_law_on_all_graphs_of_four_nodes(kind, epsilon):
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


def test_flips_are_drawn_with_that_probability(graph):
    # 40 releases of 4,950 pairs; five standard errors, a false-alarm rate below 1e-6.
    flip = EdgeFlip(1.0, random_state=np.random.RandomState(0)).fit(graph)
    changed = [(flip.transform(graph) != graph).nnz / 2 for _ in range(40)]
    n, p = 40 * 4950, flip.flip_probability_
    assert abs(sum(changed) - n * p) < 5 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("kind", ["undirected", "directed", "bipartite"])
def test_every_pair_has_its_rank(kind):
    for n, m in ((1, 1), (2, 2), (3, 3), (7, 7), (4, 9)):
        if n != m and kind != "bipartite":
            continue
        pairs = Pairs(n, m, kind)
        rows, columns = pairs.pair(np.arange(len(pairs)))
        assert np.array_equal(pairs.rank(rows, columns), np.arange(len(pairs)))
        expected = {
            "undirected": n * (n - 1) // 2,
            "directed": n * (n - 1),
            "bipartite": n * m,
        }[kind]
        assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == expected
        assert kind == "bipartite" or (rows != columns).all()


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_ranks_are_exact_for_a_million_nodes(kind):
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
def test_storages_release_the_same_graph(directed, graph):
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


def test_inputs_of_all_kinds_release_the_same(graph):
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


@pytest.mark.parametrize("n_rows", [1, 7, 100])
@pytest.mark.parametrize("storage", ["sparse", "packed"])
@pytest.mark.parametrize("directed", [False, True])
def test_links_of_new_nodes_are_flipped_too(n_rows, storage, directed, graph, rng):
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


def test_links_that_look_like_a_graph_are_pointed_to_their_method(graph):
    flip = EdgeFlip().fit(graph)
    with pytest.raises(ValueError, match="use transform_links"):
        flip.transform(np.ones((100, 100)))
    with pytest.raises(ValueError, match="columns"):
        flip.transform_links(np.ones((3, 99)))


@pytest.mark.parametrize(
    "changed", [{"epsilon": 2.0}, {"directed": True}, {"random_state": 0}], ids=str
)
def test_parameters_must_not_change_after_fit(changed, graph):
    accountant = PrivacyAccountant(5.0)
    flip = EdgeFlip(accountant=accountant).fit(graph).set_params(**changed)
    for release in (flip.transform, flip.transform_links):
        with pytest.raises(ValueError, match="Call fit again"):
            release(graph)
    assert accountant.total().epsilon == 0
    assert flip.fit(graph).transform(graph).shape == (100, 100)


def test_what_a_record_is_depends_on_directions(graph):
    assert "directed link" in str(EdgeFlip(directed=True).fit(graph).privacy_guarantee_.unit)
    assert "directed" not in EdgeFlip().fit(graph).privacy_guarantee_.unit


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_epsilon(kind):
    # It is never zero while epsilon is finite, and never more than a fair coin.
    assert kind(math.inf)._numerator() == 0
    for epsilon in (1500.0, 1e6, 1e300):
        assert kind(epsilon)._numerator() == 1
    for epsilon in (1e-17, 1e-300):
        assert (1 << 63) - 100 < kind(epsilon)._numerator() <= 1 << 63


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", ["pandas", "default"])
def test_containers_leave_graphs_alone(kind, output, graph):
    model = make_pipeline(kind(2.0), AdjacencySpectralEmbedding(2)).set_output(transform=output)
    assert model.fit_transform(graph).shape == (100, 2)
    assert isinstance(model[0].transform(graph), NoisyAdjacency)


def test_probability_stays_with_selections_and_goes_with_arithmetic(graph):
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
    with pytest.raises(ValueError, match="Pass flip_probability"):
        AdjacencySpectralEmbedding(2).fit(abs(noisy))
    assert AdjacencySpectralEmbedding(2, flip_probability=p).fit(abs(noisy)).n_components_ == 2


def test_input_stays_as_it_is(graph):
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


@pytest.mark.parametrize("weight", [7.5, 0, 0.0, False])
def test_weights_of_networkx_are_refused(weight):
    graph = networkx.Graph([(0, 1)])
    graph.add_edge(1, 2, weight=weight)
    for estimator in (EdgeFlip(), AdjacencySpectralEmbedding(1)):
        with pytest.raises(ValueError, match=r"weights.*networkx.to_scipy_sparse_array") as caught:
            estimator.fit(graph)
        assert "7.5" not in str(caught.value)
    # The advice of the message keeps all edges.
    kept = networkx.to_scipy_sparse_array(graph, weight=None)
    assert EdgeFlip(math.inf).fit_transform(kept).nnz == 4


NAMES = [("ann", "bob"), ("bob", "cy"), ("cy", "dan")]


@pytest.mark.parametrize(
    "edges",
    [
        NAMES,
        NAMES[:2],
        np.array(NAMES),
        np.array(NAMES, dtype=object),
        pd.DataFrame(NAMES, columns=["from", "to"]),
        pd.DataFrame([(0, 1), (1, 2), (2, 3)], columns=["from", "to"]),
        [(0, 1), (1, 2), (2, 3)],
        np.array([(0, 1), (1, 0), (0, 1)]),
    ],
)
def test_a_list_of_edges_is_recognised(edges):
    with pytest.raises(ValueError, match=r"list of edges.*add_edges_from") as caught:
        EdgeFlip().fit(edges)
    assert not any(name in str(caught.value) for name in ("ann", "bob"))
    graph = networkx.Graph()
    graph.add_edges_from(np.asarray(edges).tolist())
    EdgeFlip().fit(graph)


def test_the_advice_about_self_loops_removes_them():
    graph = networkx.Graph([(0, 1), (1, 1)])
    with pytest.raises(ValueError, match=r"remove_edges_from\(list\(networkx.selfloop_edges"):
        EdgeFlip().fit(graph)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    EdgeFlip().fit(graph)


def test_isolated_nodes_and_no_edges():
    empty = csr_array((50, 50))
    noisy = EdgeFlip(1.0, random_state=0).fit_transform(empty)
    assert noisy.nnz > 0
    assert EdgeFlip(math.inf).fit_transform(empty).nnz == 0
    # Flips are so rare that none happens.
    assert EdgeFlip(600.0, random_state=0).fit_transform(empty).nnz == 0


def test_payments(graph):
    accountant = PrivacyAccountant(2.5)
    flip = clone(EdgeFlip(1.0, accountant=accountant)).fit(graph)
    assert accountant.total().epsilon == 0
    flip.transform(graph)
    flip.transform_links(np.zeros((3, 100)))
    with pytest.raises(PrivacyBudgetExceeded):
        flip.transform(graph)
    assert accountant.total().epsilon == pytest.approx(2.0)


def weighted(A):
    return 0.5 * A


def with_loop(A):
    B = A.copy()
    B[3, 3] = 1
    return B


def asymmetric(A):
    B = A.copy()
    B[0, 1], B[1, 0] = 1, 0
    return B


def missing(A):
    B = A.astype(float)
    B[0, 1] = np.nan
    return B


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (weighted, "weights"),
        (with_loop, "self-loops"),
        (asymmetric, "not symmetric"),
        (missing, "NaN"),
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
@pytest.mark.parametrize("kind", KINDS)
def test_bad_graphs(kind, make, message, graph):
    with pytest.raises(ValueError, match=message):
        kind().fit(make(graph.toarray()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"storage": "dense"}, "storage"),
        ({"directed": "no"}, "directed"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_parameters(kind, options, message, graph):
    with pytest.raises(ValueError, match=message):
        kind(**options).fit(graph)


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


@pytest.mark.parametrize("kind", [csr_array, csc_array])
@pytest.mark.parametrize("name", _CRAFTED)
def test_indices_out_of_bounds_are_refused_before_they_are_followed(name, kind):
    crafted = _crafted(kind, (4, 4), name)
    budget = PrivacyAccountant(1.0)
    with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
        EdgeFlip(1.0, accountant=budget).fit_transform(crafted)
    assert len(budget) == 0
    with pytest.raises(ValueError, match="adjacency is not a valid sparse matrix"):
        NoisyAdjacency.of(crafted, 0.1)


def test_other_formats_with_indices_out_of_bounds_are_refused():
    entries, blocks = coo_array((4, 4)), bsr_array((4, 4), blocksize=(2, 2))
    entries.data, entries.coords = np.ones(1), (np.array([0]), np.array([10**7]))
    blocks.data, blocks.indices = np.ones((1, 2, 2)), np.array([10**7])
    blocks.indptr = np.array([0, 1, 1])
    for crafted in (entries, blocks):
        with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
            EdgeFlip(1.0).fit_transform(crafted)


@pytest.mark.nightly
def test_audit_and_its_broken_twin():
    # 3,000 runs per side on five nodes, 1,000 of the twin that flips too little; false alarms below
    # 1e-6.
    with_edge = np.ones((5, 5)) - np.eye(5)
    without = with_edge.copy()
    without[0, 1] = without[1, 0] = 0

    def audit(numerator, n_runs):
        flip = EdgeFlip(1.0, random_state=0).fit(with_edge)
        flip._numerator = lambda: numerator

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


def test_blocks_are_the_edges_of_a_release():
    A, _ = make_sbm([60, 40], [[0.3, 0.1], [0.1, 0.3]], random_state=0)
    for flip in (EdgeFlip(1.0, random_state=3), EdgeFlip(4.0, directed=True, random_state=3)):
        blocks = list(flip.fit(A).iter_edges(A))
        edges = np.concatenate(blocks)
        noisy = np.asarray(flip.transform(A).toarray(), dtype=int)
        expected = np.argwhere(noisy if flip.directed else np.triu(noisy))
        np.testing.assert_array_equal(edges, expected)
    with pytest.raises(ValueError, match="nodes of fit"):
        flip.iter_edges(A[:50, :50])


def test_blocks_are_paid_for_before_the_first_is_read():
    A, _ = make_sbm([30], [[0.3]], random_state=0)
    budget = PrivacyAccountant(1.0)
    edges = EdgeFlip(1.0, accountant=budget).fit(A).iter_edges(A)
    assert budget.remaining().epsilon == 0
    assert sum(map(len, edges)) > 0 and list(edges) == []


@pytest.mark.laws
def test_what_does_not_fit_into_memory_is_refused_before_the_payment():
    A = csr_array((1_000_000, 1_000_000), dtype=np.int8)
    budget = PrivacyAccountant(30.0)
    flip = EdgeFlip(1.0, accountant=budget).fit(A)
    for storage in ("auto", "sparse"):
        with pytest.raises(ValueError, match="GiB, more memory"):
            flip.set_params(storage=storage).fit(A).transform(A)
    assert len(budget) == 0
    # A block of it, in little memory.
    first = next(flip.iter_edges(A))
    assert len(budget) == 1 and 1e5 < len(first) < 1e8
    # With few flips, the release itself is small.
    assert EdgeFlip(25.0, accountant=budget).fit_transform(A).shape == A.shape


def test_where_blocks_end_tells_nothing(monkeypatch):
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

"""Lists of edges between public nodes: containers, names, refusals."""

import math
import pickle

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, NoisyAdjacency, make_sbm
from tests._refusals import refuses, refuses_unpaid

NAMES = ["eve", "ann", "bob", "cy", "dan"]
# An edge in both directions, and one that is listed twice.
EDGES = [("ann", "bob"), ("bob", "cy"), ("cy", "bob"), ("cy", "dan"), ("cy", "dan")]
NUMBERS = [(NAMES.index(a), NAMES.index(b)) for a, b in EDGES]
EXPECTED = np.diag([0.0, 1, 1, 1], 1) + np.diag([0.0, 1, 1, 1], -1)


def exact(X, nodes, **parameters):
    """Return the graph of a list of edges, without flips."""
    return EdgeFlip(math.inf, nodes=nodes, **parameters).fit_transform(X)


@pytest.mark.parametrize(
    "edges",
    [
        EDGES,
        np.array(EDGES),
        np.array(EDGES, dtype=object),
        pd.DataFrame(EDGES),
        pd.DataFrame(EDGES, columns=["from", "to"]).astype("category"),
        pl.DataFrame(EDGES, schema=["from", "to"], orient="row"),
        networkx.Graph(EDGES),
        networkx.Graph(EDGES).edges,
        networkx.MultiGraph(EDGES),
    ],
    ids=lambda edges: type(edges).__name__,
)
def test_edge_flip_takes_edges_between_names(edges):
    for nodes in (NAMES, pd.Series(NAMES), np.array(NAMES, dtype=object)):
        noisy = exact(edges, nodes)
        np.testing.assert_array_equal(noisy.toarray(), EXPECTED)
        assert noisy.nodes.tolist() == NAMES


@pytest.mark.parametrize(
    "edges",
    [NUMBERS, np.array(NUMBERS), np.array(NUMBERS, dtype=float), pd.DataFrame(NUMBERS)],
    ids=["pairs", "integers", "floats", "frame"],
)
def test_edge_flip_takes_edges_between_numbers(edges):
    for nodes in (5, np.int64(5), [0, 1, 2, 3, 4]):
        np.testing.assert_array_equal(exact(edges, nodes).toarray(), EXPECTED)
    assert exact(edges, 5).nodes is None


def test_edge_flip_takes_edges_with_a_direction():
    expected = np.zeros((5, 5))
    expected[tuple(np.transpose(NUMBERS))] = 1
    for edges in (EDGES, networkx.DiGraph(EDGES)):
        found = exact(edges, NAMES, directed=True).toarray()
        np.testing.assert_array_equal(found, expected)
    # The directions of a graph are part of it. Those of a list need not mean anything.
    refuses("not symmetric", EdgeFlip(nodes=NAMES).fit, networkx.DiGraph(EDGES))
    both = exact(networkx.Graph(EDGES), NAMES, directed=True)
    np.testing.assert_array_equal(both.toarray(), EXPECTED)


@pytest.mark.parametrize(
    "edges", [[], np.array([]), np.empty((0, 2)), networkx.Graph(), csr_array((5, 5))]
)
def test_edge_flip_takes_lists_without_edges(edges):
    assert exact(edges, NAMES).nnz == 0


def test_edge_flip_takes_matrices_of_named_nodes():
    for matrix in (EXPECTED, EXPECTED.tolist(), csr_array(EXPECTED), pd.DataFrame(EXPECTED)):
        noisy = exact(matrix, NAMES)
        np.testing.assert_array_equal(noisy.toarray(), EXPECTED)
        assert noisy.nodes.tolist() == NAMES


def test_edge_flip_leaves_out_weights_in_words():
    weighted = [(a, b, 0.5) for a, b in EDGES]
    for X in (pd.DataFrame(weighted), np.array(weighted, dtype=object)):
        with pytest.warns(UserWarning, match=r"X has 3 columns.*weights, are left out"):
            found = exact(X, NAMES)
        np.testing.assert_array_equal(found.toarray(), EXPECTED)
    # A warning would reveal whether one of the pairs has more entries.
    refuses(r"pass \[edge\[:2\] for edge in edges\]", exact, weighted, NAMES)
    graph = networkx.Graph()
    graph.add_weighted_edges_from(weighted)
    np.testing.assert_array_equal(exact(graph, NAMES).toarray(), EXPECTED)
    refuses("weights", EdgeFlip().fit, graph)


def test_edge_flip_drops_self_loops_only_if_asked():
    looped = [*EDGES, ("ann", "ann")]
    loops = EXPECTED + np.diag([0, 1, 0, 0, 0])
    for X, nodes in ((looped, NAMES), (networkx.Graph(looped), NAMES), (loops, None)):
        refuses(r"join a node with itself.*drop_self_loops=True", EdgeFlip(nodes=nodes).fit, X)
        assert exact(X, nodes, drop_self_loops=True).nnz == 6
    kept = loops.copy()
    exact(loops, None, drop_self_loops=True)
    np.testing.assert_array_equal(loops, kept)


def test_edge_flip_takes_no_list_for_a_matrix_and_no_matrix_for_a_list():
    # The number of columns decides, so that a wrong number of nodes is refused.
    A = np.zeros((6, 6))
    A[0, 1] = A[1, 0] = A[4, 5] = A[5, 4] = 1
    for X in (A, A.tolist(), pd.DataFrame(A)):
        with pytest.raises(ValueError, match="nodes states 8 nodes, but the graph has 6"):
            EdgeFlip(nodes=8, drop_self_loops=True).fit(X)
    three = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match="may be a matrix or a list of edges"):
        EdgeFlip(nodes=3, drop_self_loops=True).fit(three)
    assert exact(csr_array(three), 3).nnz == 4
    frame = pd.DataFrame(EDGES, columns=["a", "b"]).assign(c=1, d=2, e=3).iloc[:4]
    with pytest.warns(UserWarning, match="X has 5 columns"):
        assert exact(frame, NAMES).nnz == 6


@pytest.mark.parametrize("make", [iter, lambda edges: zip(*zip(*edges, strict=True), strict=True)])
def test_edge_flip_refuses_iterators_unpaid(make):
    refuses_unpaid("which can be read only once", EdgeFlip(nodes=NAMES).fit, make(EDGES))


def test_edge_flip_names_come_back_in_every_output():
    noisy = exact(EDGES, NAMES)
    same = [noisy, noisy.copy(), noisy.astype(float), pickle.loads(pickle.dumps(noisy)), noisy[1:3]]
    same.append(exact(EDGES, NAMES, storage="packed"))
    assert all(each.nodes.tolist() == NAMES for each in same)
    chosen = [1, 3]
    assert noisy[chosen][:, chosen].nodes.tolist() == ["ann", "cy"]
    assert noisy[:, 1:3].nodes.tolist() == ["ann", "bob"]
    assert noisy[np.ix_([3, 0], [3, 0])].nodes.tolist() == ["cy", "eve"]
    assert noisy[:, np.array(NAMES) != "eve"].nodes.tolist() == NAMES[1:]
    assert AdjacencySpectralEmbedding(1).fit(noisy).nodes_.tolist() == NAMES
    blocks = EdgeFlip(math.inf, nodes=NAMES).fit(EDGES).iter_edges(EDGES)
    assert [list(edge) for block in blocks for edge in block] == [
        ["ann", "bob"],
        ["bob", "cy"],
        ["cy", "dan"],
    ]
    again = NoisyAdjacency.of(noisy.toarray(), 0.0, nodes=NAMES)
    assert again.nodes.tolist() == NAMES
    refuses("one name for each column", NoisyAdjacency.of, noisy.toarray(), 0.0, nodes=NAMES[1:])
    graph, _ = make_sbm([5, 5], [[1, 0], [0, 1]], random_state=0)
    assert AdjacencySpectralEmbedding(1).fit(graph).nodes_ is None


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        ([("ann", "zed")], NAMES, "list of strings in which some ends of edges are missing"),
        ([("ann", None)], NAMES, "some ends of edges are missing"),
        ([("ann", ["zed"])], NAMES, "some ends of edges are missing"),
        (NUMBERS, NAMES, "some ends of edges are missing"),
        (EDGES, [3, 4, 5], "list of whole numbers in which some ends"),
        (networkx.path_graph(6), 5, "whole numbers from 0 to 4"),
        (EDGES, 5, "whole numbers from 0 to 4.*public list of the names"),
        ([(0, 77)], 5, "whole numbers from 0 to 4"),
        ([(0, 1.5)], 5, "whole numbers from 0 to 4"),
        ([(0, math.nan)], 5, "whole numbers from 0 to 4"),
        ([(0, -1)], 5, "whole numbers from 0 to 4"),
        (EDGES, ["ann", "bob", "ann"], "more than once"),
        (EDGES, ["ann", 1], "all strings or all whole numbers"),
        (EDGES, [True, False], "all strings or all whole numbers"),
        (EDGES, ["ann"], "at least two names"),
        (EDGES, ["ann", "bob\0", "bob"], "strings or all whole numbers"),
        (NUMBERS, [2**63, -1], "whole numbers of 64 bits"),
        ([(0, [1, 2]), (1, 3)], 5, "whole numbers from 0 to 4"),
        (EDGES, [["ann", "bob"]], "at least two names"),
        (np.zeros((6, 6)), 2.5, "'nodes' parameter"),
        (csr_array((6, 6)), 5, "nodes states 5 nodes, but the graph has 6"),
        (7, 5, "X must be a list of edges"),
        ([1, 2], 5, "X must be a list of edges"),
        (np.arange(5), 5, "X must be a list of edges"),
    ],
)
def test_edge_flip_refuses_bad_lists_unpaid(edges, nodes, message):
    said = refuses_unpaid(message, EdgeFlip(nodes=nodes).fit, edges)
    assert not any(private in said for private in ("zed", "ann", "77", "1.5", "inhomogeneous"))


@pytest.mark.parametrize(
    "edges",
    [EDGES, EDGES[:2], np.array(EDGES, dtype=object), pd.DataFrame(NUMBERS), np.array(NUMBERS)],
)
def test_edge_flip_without_nodes_refuses_lists_with_advice(edges):
    said = refuses(r"list of edges.*Pass it to EdgeFlip as nodes", EdgeFlip().fit, edges)
    assert "ann" not in said


def test_edge_flip_takes_arrays_of_edges_with_more_columns():
    edges = np.array([[0, 1, 1, 1082040961], [1, 2, 1, 1082040962], [2, 3, 1, 1082040963]])
    exact = EdgeFlip(math.inf, nodes=9)
    with pytest.warns(UserWarning, match="X has 4 columns"):
        released = exact.fit_transform(edges)
    assert released.nnz == 6 and released[2, 3] == 1
    # Links of other nodes to all nodes are no list.
    links = np.eye(5, 9)
    assert (exact.transform(links).toarray() == links).all()
    with pytest.raises(ValueError, match=r"two rows, so it may be an index of edges. Pass X\.T"):
        exact.fit(edges[:, :2].T[:, [0, 1, 2, 0, 1]])


def test_edge_flip_says_what_to_pass_for_a_multigraph():
    graph = networkx.MultiGraph([("a", "b"), ("b", "c")])
    refuses(r"multigraph. Pass networkx\.Graph\(graph\)", EdgeFlip(4.0).fit, graph)
    assert EdgeFlip(math.inf).fit_transform(networkx.Graph(graph)).nnz == 4
    assert EdgeFlip(math.inf, nodes=["a", "b", "c"]).fit_transform(graph).nnz == 4

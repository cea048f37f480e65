"""Validation of adjacency matrices, with messages that name no edge."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, issparse

from sklearn_dptda._typing import IntArray, SparseLike
from sklearn_dptda.privacy._parameters import check_sparse
from sklearn_dptda.utils._validation import refuse_dask, refuse_lossy, without_quotes

_WEIGHTS = (
    "The edges have weights, but flipping protects only zeros and ones. X must be an adjacency "
    "matrix{}. To drop weights, pass A != 0 or "
    "networkx.to_scipy_sparse_array(graph, weight=None)."
)
_LIST_OF_EDGES = (
    "X seems to be a list of edges, but must be an adjacency matrix or a networkx graph. Make a "
    "graph from it: graph = networkx.Graph(); graph.add_nodes_from(nodes) with a public list of "
    "nodes; graph.add_edges_from(numpy.asarray(edges).tolist())."
)


class NetworkxGraph(Protocol):
    """The methods by which a networkx graph is recognised."""

    @property
    def nodes(self) -> Any: ...

    def adjacency(self) -> Any: ...

    def is_multigraph(self) -> bool: ...

    def number_of_nodes(self) -> int: ...


GraphLike: TypeAlias = ArrayLike | SparseLike | NetworkxGraph


def check_adjacency(X: GraphLike, directed: bool = False) -> csr_array:
    """Convert a graph to its adjacency matrix, without explicit zeros and with sorted indices.

    Here and below, a ``ValueError`` describes what is wrong without naming an edge.
    """
    A = check_links(X)
    check_graph(A, directed)
    return A


def check_graph(A: csr_array, directed: bool = False) -> None:
    """Raise an error if zeros and ones, from :func:`check_links`, are not an adjacency matrix."""
    n, m = A.shape
    if n != m and m == 2:
        raise ValueError(_LIST_OF_EDGES)
    if n != m:
        raise ValueError(f"The adjacency matrix must be square; got shape {A.shape}.")
    if n < 2:
        raise ValueError("The graph must have at least two nodes.")
    if A.diagonal().any():
        raise ValueError(
            "The graph has self-loops. Set the diagonal of the matrix to zero. For a networkx "
            "graph, call graph.remove_edges_from(list(networkx.selfloop_edges(graph)))."
        )
    if not directed and (A != A.T).nnz:
        raise ValueError(
            "The adjacency matrix is not symmetric. Pass directed=True, or pass the elementwise "
            "maximum of the matrix and its transpose."
        )


def check_links(X: Any) -> csr_array:
    """Convert zeros and ones of any shape to a sparse array of float32."""
    refuse_dask(X)
    with without_quotes():
        X = _sparse_of(X)
        if issparse(X):
            check_sparse(X)
        else:
            refuse_lossy(X, complex_too=False)
            X = np.asarray(X)
            if _lists_edges(X):
                raise ValueError(_LIST_OF_EDGES)
    if X.dtype.kind not in "biuf":
        raise ValueError("The graph must be a matrix of real numbers, or a networkx graph.")
    if X.ndim != 2:
        raise ValueError(f"The adjacency matrix must have two dimensions; got {X.ndim}.")
    if 0 in X.shape:
        raise ValueError("The adjacency matrix is empty.")
    A = csr_array(X)
    if not np.isfinite(A.data).all():
        raise ValueError("The adjacency matrix contains NaN or infinity.")
    # The copy protects the caller's arrays, which may be read-only.
    A = A.astype(np.float64, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    if (A.data != 1).any():
        if A.shape[1] == 2 and A.shape[0] != 2 and (A.data == np.rint(A.data)).all():
            raise ValueError(_LIST_OF_EDGES)
        raise ValueError(_WEIGHTS.format(f"; got numbers of shape {A.shape}"))
    return A.astype(np.float32)


def _lists_edges(X: np.ndarray) -> bool:
    """Return whether an array has two columns of names, in strings or other objects."""
    return X.ndim == 2 and X.shape[1] == 2 and X.dtype.kind in "OUS"


def _sparse_of(X: Any) -> Any:
    """Return the sparse array of a networkx graph, and other objects unchanged."""
    if hasattr(X, "adjacency") and hasattr(X, "nodes"):
        import networkx

        if X.is_multigraph():
            raise ValueError("The graph has parallel edges. Convert it to a simple graph first.")
        if X.number_of_nodes() == 0:
            raise ValueError("The graph is empty.")
        # Weights are read so that they can be refused, without quoting them.
        try:
            A = networkx.to_scipy_sparse_array(X, dtype=np.float64, format="csr")
        except Exception:
            raise ValueError(
                "The edges have weights that are not numbers. Remove the attribute 'weight', or "
                "pass networkx.to_scipy_sparse_array(graph, weight=None)."
            ) from None
        # In a matrix, an explicit zero is no edge. Here it is an edge, which must not vanish.
        if (A.data == 0).any():
            raise ValueError(_WEIGHTS.format(""))
        return A
    return X


def of_pairs(
    rows: IntArray, columns: IntArray, shape: tuple[int, int], symmetric: bool
) -> csr_array:
    """Return the adjacency matrix of pairs, in float32; ``symmetric`` sets two entries each."""
    if symmetric:
        rows, columns = np.r_[rows, columns], np.r_[columns, rows]
    data = np.ones(len(rows), dtype=np.float32)
    return csr_array(coo_array((data, (rows, columns)), shape))

"""Adjacency matrices: what is accepted, and what is said about what is not."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, issparse

from sklearn_dptda._typing import IntArray, SparseLike
from sklearn_dptda.utils._frames import refuse_dask, refuse_lossy, without_quotes


class NetworkxGraph(Protocol):
    """What a graph of networkx is known by."""

    @property
    def nodes(self) -> Any: ...

    def adjacency(self) -> Any: ...

    def is_multigraph(self) -> bool: ...

    def number_of_nodes(self) -> int: ...


GraphLike: TypeAlias = ArrayLike | SparseLike | NetworkxGraph


def check_adjacency(X: GraphLike, directed: bool = False) -> csr_array:
    """Turn a graph into its adjacency matrix, without explicit zeros and with sorted indices.

    A ``ValueError`` says what is wrong, here and below, without naming an edge.
    """
    A = check_links(X)
    check_graph(A, directed)
    return A


def check_graph(A: csr_array, directed: bool = False) -> None:
    """Refuse zeros and ones, from :func:`check_links`, that are no adjacency matrix."""
    n, m = A.shape
    if n != m:
        raise ValueError(f"an adjacency matrix must be square; got the shape {A.shape}.")
    if n < 2:
        raise ValueError("a graph needs at least two nodes: with one there is nothing to hide.")
    if A.diagonal().any():
        raise ValueError("the graph has self-loops: set the diagonal to zero.")
    if not directed and (A != A.T).nnz:
        raise ValueError(
            "the adjacency matrix is not symmetric: pass directed=True, or the larger of it and "
            "its transpose."
        )


def check_links(X: Any) -> csr_array:
    """Turn zeros and ones of any shape into a sparse array of float32."""
    refuse_dask(X)
    with without_quotes():
        X = _sparse_of(X)
        if not issparse(X):
            refuse_lossy(X, complex_too=False)
            X = np.asarray(X)
    if X.dtype.kind not in "biuf":
        raise ValueError("an adjacency matrix holds real numbers, or is a networkx graph.")
    if X.ndim != 2:
        raise ValueError(f"an adjacency matrix has two dimensions; got {X.ndim}.")
    if 0 in X.shape:
        raise ValueError("the adjacency matrix is empty.")
    A = csr_array(X)
    if not np.isfinite(A.data).all():
        raise ValueError("the adjacency matrix contains NaN or infinity.")
    # A copy: the caller's arrays, which may be read-only, stay as they are.
    A = A.astype(np.float64, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    if (A.data != 1).any():
        raise ValueError(
            "edges have weights: only zeros and ones are hidden by flipping. X must be an "
            f"adjacency matrix; got numbers of shape {A.shape}. To drop weights: A != 0, or "
            "networkx.to_scipy_sparse_array(graph, weight=None)."
        )
    return A.astype(np.float32)


def _sparse_of(X: Any) -> Any:
    """Sparse array of a networkx graph; anything else as it is."""
    if hasattr(X, "adjacency") and hasattr(X, "nodes"):
        import networkx

        if X.is_multigraph():
            raise ValueError("the graph has parallel edges: make it a simple graph first.")
        if X.number_of_nodes() == 0:
            raise ValueError("the graph is empty.")
        # Weights are read so that they are refused, and not quoted.
        try:
            return networkx.to_scipy_sparse_array(X, dtype=np.float64, format="csr")
        except Exception:
            raise ValueError(
                "edges have weights that are no numbers: remove the attribute 'weight', or pass "
                "networkx.to_scipy_sparse_array(graph, weight=None)."
            ) from None
    return X


def of_pairs(
    rows: IntArray, columns: IntArray, shape: tuple[int, int], symmetric: bool
) -> csr_array:
    """Adjacency matrix, in float32, of pairs of nodes; ``symmetric`` ones stand for two entries."""
    if symmetric:
        rows, columns = np.r_[rows, columns], np.r_[columns, rows]
    data = np.ones(len(rows), dtype=np.float32)
    return csr_array(coo_array((data, (rows, columns)), shape))

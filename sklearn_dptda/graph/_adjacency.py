"""Adjacency matrices: what is accepted, and what is said about what is not."""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, issparse

from sklearn_dptda._typing import SparseLike
from sklearn_dptda.utils import refuse_lossy


class NetworkxGraph(Protocol):
    """What a graph of networkx is known by."""

    @property
    def nodes(self) -> Any: ...

    def adjacency(self) -> Any: ...

    def is_multigraph(self) -> bool: ...

    def number_of_nodes(self) -> int: ...


GraphLike: TypeAlias = ArrayLike | SparseLike | NetworkxGraph

# Rows that are merged together.
_ROWS = 1024


def check_adjacency(X: GraphLike, directed: bool = False) -> csr_array:
    """Turn a graph into the row and column indices of its edges.

    Parameters
    ----------
    X : array-like, sparse matrix or networkx graph
        Square, of zeros and ones, with an empty diagonal.
    directed : bool, default=False
        Whether edges have a direction; otherwise the matrix is symmetric.

    Returns
    -------
    csr_array of shape (n_nodes, n_nodes), dtype float32
        Without explicit zeros, indices sorted.

    Raises
    ------
    ValueError
        Saying what is wrong, without naming an edge.
    """
    A = check_links(X)
    check_graph(A, directed)
    return A


def check_graph(A, directed=False):
    """Refuse zeros and ones that are no adjacency matrix.

    Parameters
    ----------
    A : csr_array
        From :func:`check_links`.
    directed : bool, default=False

    Raises
    ------
    ValueError
        Saying what is wrong, without naming an edge.
    """
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
    """Turn zeros and ones of any shape into a sparse array.

    Parameters
    ----------
    X : array-like or sparse matrix

    Returns
    -------
    csr_array, dtype float32
    """
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


def _sparse_of(X):
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
        except (TypeError, ValueError):
            raise ValueError(
                "edges have weights that are no numbers: remove the attribute 'weight', or pass "
                "networkx.to_scipy_sparse_array(graph, weight=None)."
            ) from None
    return X


def of_pairs(rows, columns, shape, symmetric):
    """Adjacency matrix of pairs of nodes.

    Parameters
    ----------
    rows, columns : ndarray of int
    shape : tuple of int
    symmetric : bool
        Whether each pair stands for both directions.

    Returns
    -------
    csr_array, dtype float32
    """
    if symmetric:
        rows, columns = np.r_[rows, columns], np.r_[columns, rows]
    data = np.ones(len(rows), dtype=np.float32)
    return csr_array(coo_array((data, (rows, columns)), shape))


def of_sorted_pairs(parts, shape):
    """Matrix of pairs that come in the order of rows and columns.

    In the memory of little more than the result.

    Parameters
    ----------
    parts : iterable of (ndarray of int, ndarray of int)
        Rows and columns.
    shape : tuple of int

    Returns
    -------
    csr_array, dtype int8
    """
    counts, columns = np.zeros(shape[0], dtype=np.int64), []
    for rows, part in parts:
        counts += np.bincount(rows, minlength=shape[0])
        columns.append(part.astype(np.int32))
    indices = np.concatenate(columns)
    data = np.ones(len(indices), dtype=np.int8)
    return csr_array((data, indices, _starts(counts)), shape)


def with_transpose(upper):
    """Symmetric matrix of its upper half.

    Parameters
    ----------
    upper : csr_array of shape (n, n)
        Indices sorted, all above the diagonal.

    Returns
    -------
    csr_array of shape (n, n), dtype float32
        Indices sorted.
    """
    lower = upper.T.tocsr()
    counts = np.diff(lower.indptr), np.diff(upper.indptr)
    starts = _starts(counts[0].astype(np.int64) + counts[1])
    indices = np.empty(starts[-1], dtype=np.int32)
    n = upper.shape[0]
    for first in range(0, n, _ROWS):
        part = slice(first, min(first + _ROWS, n))
        places = np.arange(starts[part.start], starts[part.stop])
        # In each row, columns of the lower half come first.
        ends = (starts[part] + counts[0][part]).astype(np.int64)
        below = places < np.repeat(ends, counts[0][part] + counts[1][part])
        here = indices[starts[part.start] : starts[part.stop]]
        for half, chosen in ((lower, below), (upper, ~below)):
            here[chosen] = half.indices[half.indptr[part.start] : half.indptr[part.stop]]
    del lower
    return csr_array((np.ones(len(indices), dtype=np.float32), indices, starts), upper.shape)


def _starts(counts):
    starts = np.r_[0, np.cumsum(counts)]
    # Indices of 32 bits are half as large, as long as their number fits as well.
    return starts.astype(np.int32) if starts[-1] <= np.iinfo(np.int32).max else starts

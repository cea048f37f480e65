"""Adjacency matrices: those that are given, and noisy ones with the probability of their flips.

Error messages about given matrices name no edge.
"""

from collections.abc import Iterator
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.linalg import LinearOperator

from sklearn_dptda._typing import IntArray, SparseLike
from sklearn_dptda.privacy._parameters import check_sparse
from sklearn_dptda.privacy._stored_release import storable
from sklearn_dptda.utils._validation import refuse_dask, refuse_lossy, without_quotes

_WEIGHTS = (
    "The edges have weights, but flipping protects only zeros and ones. X must be an adjacency "
    "matrix{}. To drop weights, pass A != 0 or "
    "networkx.to_scipy_sparse_array(graph, weight=None)."
)
_LIST_OF_EDGES = (
    "X seems to be a list of edges, which needs a public list of all nodes, or their number. Pass "
    "it to EdgeFlip as nodes."
)
# Number of entries that are unpacked at a time. They should fit into a processor's cache.
_ENTRIES_AT_ONCE = 1 << 20


class NetworkxGraph(Protocol):
    """The methods by which a networkx graph is recognised."""

    @property
    def nodes(self) -> Any: ...

    def adjacency(self) -> Any: ...

    def edges(self) -> Any: ...

    def is_directed(self) -> bool: ...

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
            "The graph has self-loops: some edges join a node with itself. Leave them out, or let "
            "EdgeFlip drop them: drop_self_loops=True."
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


def without_diagonal(A: csr_array) -> csr_array:
    """Return a matrix without the entries that join a node with itself."""
    pairs = A.tocoo()
    kept = pairs.row != pairs.col
    return csr_array(coo_array((pairs.data[kept], (pairs.row[kept], pairs.col[kept])), A.shape))


def _lists_edges(X: np.ndarray) -> bool:
    """Return whether an array has two columns of names, in strings or other objects."""
    return X.ndim == 2 and X.shape[1] == 2 and X.dtype.kind in "OUS"


def is_networkx(X: Any) -> bool:
    """Return whether an object is a graph of networkx."""
    return hasattr(X, "adjacency") and hasattr(X, "nodes")


def _sparse_of(X: Any) -> Any:
    """Return the sparse array of a networkx graph, and other objects unchanged."""
    if is_networkx(X):
        import networkx

        if X.is_multigraph():
            raise ValueError(
                "The graph is a multigraph. Pass networkx.Graph(graph), in which parallel edges "
                "are one edge, or the public list of its nodes as nodes."
            )
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


class NoisyAdjacency(csr_array):
    """Sparse adjacency matrix whose pairs were flipped with a known probability.

    :class:`EdgeFlip` and :class:`LaplaceFlip` return such matrices. Copies and selections keep
    the probability. Arithmetic removes it, because the results are no longer zeros and ones.

    Attributes
    ----------
    flip_probability : float or None
        Public probability of a flip, with which embeddings remove the bias of the flips.
        None if it was lost.
    links : bool
        Whether the rows represent other nodes than the columns.
    nodes : ndarray of shape (n_columns,) or None
        Public names of the nodes of the columns, in their order. None if they have no names.

    See Also
    --------
    PackedAdjacency : A dense format with one bit per pair.

    Examples
    --------
    >>> from sklearn_dptda.graph import EdgeFlip, make_sbm
    >>> A, _ = make_sbm([50, 50], [[0.5, 0.1], [0.1, 0.5]], random_state=0)
    >>> noisy = EdgeFlip(2.0, random_state=0).fit_transform(A)
    >>> type(noisy).__name__, round(noisy[:10].flip_probability, 3), noisy[:10].links
    ('NoisyAdjacency', 0.119, True)
    """

    flip_probability: float | None = None
    links: bool = False
    nodes: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        adjacency: ArrayLike | SparseLike,
        flip_probability: float,
        links: bool = False,
        nodes: ArrayLike | None = None,
    ) -> Self:
        """Attach a probability of flips to an adjacency matrix.

        Parameters
        ----------
        adjacency : array-like or sparse matrix
            The noisy matrix of zeros and ones.
        flip_probability : float
            Public probability with which each pair was flipped.
        links : bool, default=False
            Whether the rows represent other nodes than the columns.
        nodes : array-like of shape (n_columns,), default=None
            Public names of the nodes of the columns.

        Returns
        -------
        NoisyAdjacency
        """
        if issparse(adjacency):
            check_sparse(adjacency, "adjacency")
        noisy = _noisy_adjacency(adjacency, float(flip_probability), links, nodes)
        if noisy.nodes is not None and noisy.nodes.shape != noisy.shape[1:]:
            raise ValueError("nodes must contain one name for each column of the matrix.")
        return noisy

    def _like(self, other: Any, columns: Any = slice(None)) -> Any:
        if not isinstance(other, NoisyAdjacency):
            return other
        other.flip_probability = self.flip_probability
        other.links = self.links or other.shape[0] != other.shape[1]
        if self.nodes is not None:
            names = np.asarray(self.nodes[columns])
            other.nodes = names if names.shape == other.shape[1:] else None
        return other

    def copy(self) -> Self:
        """Return a copy with the same probability."""
        return self._like(super().copy())

    def astype(self, dtype: DTypeLike, casting: str = "unsafe", copy: bool = True) -> Self:
        """Return a copy of another type with the same probability.

        Parameters
        ----------
        dtype : dtype
            Type of the entries.
        casting : str, default="unsafe"
            Which conversions are allowed; see :meth:`numpy.ndarray.astype`.
        copy : bool, default=True
            Whether to copy if the type does not change.

        Returns
        -------
        NoisyAdjacency
        """
        return self._like(super().astype(dtype, casting=casting, copy=copy))

    def __getitem__(self, key: Any) -> Any:
        is_pair = isinstance(key, tuple) and len(key) == 2
        columns = key[1] if is_pair else slice(None)
        if isinstance(columns, np.ndarray):
            # Those of np.ix_ have two dimensions.
            columns = columns.ravel()
        return self._like(super().__getitem__(key), columns)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()


class PackedAdjacency(LinearOperator):
    """Dense noisy adjacency matrix that stores eight pairs in a byte.

    :class:`EdgeFlip` and :class:`LaplaceFlip` return it for large and dense releases. It
    multiplies vectors like every linear operator of SciPy, in single precision and a few rows
    at a time.

    Parameters
    ----------
    octets : ndarray of shape (n_rows, ceil(n_columns / 8)), dtype uint8
        The pairs as bits, starting with the highest bit of each byte.
    n_columns : int
        Number of columns.
    flip_probability : float
        Public probability with which each pair was flipped.
    kind : {"undirected", "directed", "bipartite"}, default="undirected"
        Whether pairs have a direction, or the rows are other nodes than the columns.
    nodes : array-like of shape (n_columns,), default=None
        Public names of the nodes of the columns.

    See Also
    --------
    NoisyAdjacency : A sparse format.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.graph import EdgeFlip, make_sbm
    >>> A, _ = make_sbm([50, 50], [[0.5, 0.1], [0.1, 0.5]], random_state=0)
    >>> packed = EdgeFlip(2.0, storage="packed", random_state=0).fit_transform(A)
    >>> packed.octets.shape, (packed @ np.ones(100)).shape
    ((100, 13), (100,))
    """

    nodes: NDArray[Any] | None = None

    def __init__(
        self,
        octets: NDArray[np.uint8],
        n_columns: int,
        flip_probability: float,
        kind: Literal["undirected", "directed", "bipartite"] = "undirected",
        nodes: ArrayLike | None = None,
    ) -> None:
        super().__init__(np.float32, (len(octets), n_columns))
        self.octets, self.flip_probability, self.kind = octets, float(flip_probability), kind
        self.nodes = None if nodes is None else np.asarray(nodes)

    @property
    def links(self) -> bool:
        """Whether the rows represent other nodes than the columns."""
        return self.kind == "bipartite"

    def rows(self, part: slice) -> NDArray[np.float32]:
        """Unpack some rows to zeros and ones.

        Parameters
        ----------
        part : slice
            The rows.

        Returns
        -------
        ndarray of shape (n_selected, n_columns), dtype float32
        """
        bits = np.unpackbits(self.octets[part], axis=1, count=self.shape[1])
        return bits.astype(np.float32)

    def toarray(self) -> NDArray[np.float32]:
        """Unpack the whole matrix to zeros and ones, which needs 32 times as much memory.

        Returns
        -------
        ndarray of shape (n_rows, n_columns), dtype float32
        """
        return self.rows(slice(None))

    def parts(self) -> Iterator[slice]:
        """Return slices of all rows that are small enough to be unpacked at a time.

        Returns
        -------
        iterator of slice
        """
        step = max(_ENTRIES_AT_ONCE // self.shape[1], 1)
        return (slice(i, i + step) for i in range(0, self.shape[0], step))

    def _matmat(self, X: ArrayLike) -> NDArray[np.float32]:
        X = np.asarray(X, dtype=np.float32)
        return np.vstack([self.rows(part) @ X for part in self.parts()])

    def _matvec(self, x: ArrayLike) -> NDArray[np.float32]:
        return self._matmat(np.reshape(x, (-1, 1)))[:, 0]

    def _rmatmat(self, X: ArrayLike) -> NDArray[np.float32]:
        X = np.asarray(X, dtype=np.float32)
        return sum(self.rows(part).T @ X[part] for part in self.parts())

    def _rmatvec(self, x: ArrayLike) -> NDArray[np.float32]:
        return self._rmatmat(np.reshape(x, (-1, 1)))[:, 0]


def _noisy_adjacency(
    adjacency: Any, flip_probability: float | None, links: bool, nodes: ArrayLike | None = None
) -> NoisyAdjacency:
    noisy = NoisyAdjacency(adjacency)
    noisy.flip_probability, noisy.links = flip_probability, links
    noisy.nodes = None if nodes is None else np.asarray(nodes)
    return noisy


def _with_names(parts: dict[str, Any], nodes: NDArray[Any] | None) -> dict[str, Any]:
    """Add names of nodes, if there are any, so that earlier versions can read other releases."""
    return parts if nodes is None else parts | {"nodes": nodes}


storable(
    "NoisyAdjacency",
    NoisyAdjacency,
    lambda noisy: _with_names(
        {
            "adjacency": csr_array(noisy),
            "flip_probability": noisy.flip_probability,
            "links": noisy.links,
        },
        noisy.nodes,
    ),
    _noisy_adjacency,
)
storable(
    "PackedAdjacency",
    PackedAdjacency,
    lambda packed: _with_names(
        {
            "octets": packed.octets,
            "n_columns": packed.shape[1],
            "flip_probability": packed.flip_probability,
            "kind": packed.kind,
        },
        packed.nodes,
    ),
    PackedAdjacency,
)

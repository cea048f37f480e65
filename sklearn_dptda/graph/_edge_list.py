"""Lists of edges between public nodes, as adjacency matrices.

Error messages name neither an edge nor an end of one.
"""

import warnings
from numbers import Integral
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from sklearn_dptda._typing import IntArray
from sklearn_dptda.graph._adjacency import check_links, is_networkx, of_pairs
from sklearn_dptda.utils._frames import open_frame
from sklearn_dptda.utils._validation import refuse_dask, without_quotes

NodesLike: TypeAlias = int | ArrayLike | None

# An array with as few columns is a list of edges, with weights or without.
_FEW_COLUMNS = 3
_NO_EDGES = (
    "X must be a list of edges, which are pairs, or a table with two columns, an adjacency matrix, "
    "or a networkx graph. Make a list of an iterator, which can be read only once."
)


def node_names(nodes: NodesLike) -> NDArray[Any] | None:
    """Return the names in a public list of nodes; None for a number of nodes, or for None."""
    if nodes is None or isinstance(nodes, Integral):
        return None
    given = np.array(nodes, dtype=object)
    kinds = {_kind_of_name(name) for name in given.ravel()}
    names = np.array(given.tolist())
    # NumPy drops zeros at the end of strings, and has no larger integers.
    is_changed = names.dtype.kind not in "iuU" or names.tolist() != given.tolist()
    if names.ndim != 1 or len(names) < 2 or len(kinds) > 1 or None in kinds or is_changed:
        raise ValueError(
            "nodes must be a number of nodes, or a list of at least two names, which are all "
            "strings or all whole numbers of 64 bits."
        )
    if len(set(names.tolist())) < len(names):
        raise ValueError("nodes contains a name more than once. List each node once.")
    return names


def _kind_of_name(name: object) -> type | None:
    if isinstance(name, bool | np.bool_):
        return None
    return next((kind for kind in (str, Integral) if isinstance(name, kind)), None)


def links_between(X: Any, nodes: int | ArrayLike, directed: bool) -> csr_array:
    """Convert a list of edges, a networkx graph or a matrix to links of public nodes.

    Sparse matrices stay matrices, and so do arrays with more than three columns that are square or
    have one for each node.
    """
    refuse_dask(X)
    names = node_names(nodes)
    n_nodes = int(cast(int, nodes)) if names is None else len(names)
    with without_quotes():
        if is_networkx(X):
            # Each of its nodes must be in the list, also those without an edge.
            _places(list(X.nodes), names, n_nodes)
            directed = X.is_directed()
            X = list(X.edges())
        ends = _ends_of(X, n_nodes)
        if ends is None:
            return check_links(X)
        rows, columns = (_places(values, names, n_nodes) for values in ends)
    A = of_pairs(rows, columns, (n_nodes, n_nodes), not directed)
    # An edge that is listed twice counts once.
    A.data[:] = 1
    return A


def _ends_of(X: Any, n_nodes: int) -> tuple[Any, Any] | None:
    """Return the first and the second ends of all edges; None if the input is a matrix."""
    if issparse(X):
        return None
    frame = open_frame(X)
    if frame is None and not isinstance(X, np.ndarray):
        # Strings and numbers would become strings in an array.
        try:
            n_rows, rows = len(X), list(X)
            widths = {len(row) for row in rows} if n_rows else set()
        except TypeError:
            raise ValueError(_NO_EDGES) from None
        if not widths or max(widths) <= _FEW_COLUMNS:
            return _two_ends(rows)
        return None
    shape = X.shape if frame is None else frame.shape
    if frame is None and X.size == 0 and shape != (0, 0):
        return [], []
    if len(shape) != 2 or shape[1] < 2:
        raise ValueError(_NO_EDGES)
    is_square = shape[0] == shape[1]
    # An array may also be links of other nodes to all nodes.
    is_matrix = is_square or (frame is None and shape[1] == n_nodes)
    if shape[1] > _FEW_COLUMNS and is_matrix:
        return None
    if frame is None and shape[0] == 2 and shape[1] > 2:
        raise ValueError(
            "X has two rows, so it may be an index of edges. Pass X.T, or the first two columns of "
            "a list of two edges."
        )
    if is_square and shape[1] == n_nodes == _FEW_COLUMNS:
        raise ValueError(
            "X may be a matrix or a list of edges with weights, since there are three nodes. Pass "
            "a sparse matrix, or the first two columns."
        )
    if shape[1] > 2:
        warnings.warn(
            f"X has {shape[1]} columns. The first two are taken as the ends of edges, and the "
            "others, such as weights, are left out.",
            UserWarning,
            stacklevel=2,
        )
    if frame is None:
        return X[:, 0], X[:, 1]
    # Frames may have numbers as names of columns, so the columns are taken by their places.
    first, second, *_ = frame.iter_columns()
    return first.to_list(), second.to_list()


def _two_ends(edges: list[Any]) -> tuple[list[Any], list[Any]]:
    # The number of entries of a pair may depend on the edges, so a warning would reveal it.
    if any(len(edge) != 2 for edge in edges):
        raise ValueError(
            "X must be a list of pairs. To leave out weights, pass [edge[:2] for edge in edges]."
        )
    return [first for first, _ in edges], [second for _, second in edges]


def _places(values: Any, names: NDArray[Any] | None, n_nodes: int) -> IntArray:
    """Return the numbers of nodes; ValueError if a value is not a node."""
    if names is None:
        try:
            numbers = np.asarray(values if len(values) else np.empty(0))
        except ValueError:  # ragged
            numbers = np.asarray(["not a number"])
        is_node = numbers.dtype.kind in "iuf" and (
            (numbers == np.rint(numbers)) & (numbers >= 0) & (numbers < n_nodes)
        )
        if not np.all(is_node):
            # The number of these ends depends on the edges, so it is not stated.
            raise ValueError(
                f"nodes is {n_nodes}, but some ends of edges are not whole numbers from 0 to "
                f"{n_nodes - 1}. Leave out these edges; if their ends are names, pass a public "
                "list of the names of all nodes."
            )
        return numbers.astype(np.int64)
    places = {name: place for place, name in enumerate(names.tolist())}
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    try:
        return np.fromiter((places[value] for value in listed), np.int64, len(listed))
    except (KeyError, TypeError):
        kind = "strings" if names.dtype.kind == "U" else "whole numbers"
        raise ValueError(
            f"nodes is a list of {kind} in which some ends of edges are missing. Add them to this "
            "public list, or leave out these edges."
        ) from None

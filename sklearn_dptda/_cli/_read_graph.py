"""Reading graphs from files."""

import math
from pathlib import Path

import numpy as np
from scipy.io import mmread
from scipy.sparse import csr_array, load_npz

from sklearn_dptda._cli._read_points import (
    check_is_file,
    read_points,
    read_table,
    zip_members,
)
from sklearn_dptda.graph._adjacency import check_adjacency, of_pairs

_MATRICES = {".npy", ".npz", ".mtx"}


def read_ids(path):
    """Read a public list of ids of nodes, one a line."""
    path = Path(path)
    check_is_file(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids or len(set(ids)) < len(ids):
        raise ValueError(f"--nodes: {path} must be a list of different ids, one a line.")
    return ids


def read_graph(path, nodes=None, directed=False, columns=None, header=None):
    """Read an adjacency matrix: a matrix in an NPZ, NPY or MTX file, or a text file of edges.

    ``nodes`` is public: their number, or a list of their ids. Lines of edges are pairs of numbers
    of nodes, from 0, or of ids. A ``ValueError`` says what is unusable, and names no edge.
    """
    n_nodes = len(nodes) if isinstance(nodes, list) else nodes
    path = Path(path)
    check_is_file(path)
    if path.suffix.lower() in _MATRICES:
        adjacency = _matrix(path)
    elif nodes is None:
        raise ValueError(
            "--nodes must be given with a list of edges: how many nodes there are is public, and "
            "not to be read from the edges."
        )
    else:
        adjacency = _edges(path, nodes, directed, columns, header)
    adjacency = check_adjacency(adjacency, directed)
    if n_nodes is not None and len(adjacency.indptr) - 1 != n_nodes:
        raise ValueError(f"{path} has another number of nodes than --nodes {n_nodes}.")
    return adjacency


def _matrix(path):
    suffix = path.suffix.lower()
    sparse = suffix == ".npz" and "format.npy" in zip_members(path)
    # What SciPy says of a broken file may quote it.
    try:
        if suffix == ".mtx" or sparse:
            return csr_array(load_npz(path) if sparse else mmread(path))
    except Exception:
        raise ValueError(f"{path} is not a matrix as SciPy writes it.") from None
    # As many columns as nodes.
    return read_points(path, most_columns=math.inf)


def _edges(path, nodes, directed, columns, header):
    _, table, _ = read_table(path, columns=columns, header=header)
    if table.shape[1] != 2:
        raise ValueError(f"{path} has {table.shape[1]} columns: choose the two ends by --columns.")
    if isinstance(nodes, list):
        n_nodes, known, pairs = len(nodes), "in the list of --nodes", _looked_up(table, nodes)
    else:
        n_nodes, known = nodes, f"whole numbers from 0 to {nodes - 1}"
        pairs = _numbered(table, nodes)
    if unknown := int((pairs < 0).any(axis=1).sum()):
        raise ValueError(
            f"{path} has ends of edges that are not {known}, in {unknown:,} of {len(pairs):,} "
            "rows. --header says that the first row names the columns; --nodes FILE gives a public "
            "list of all ids of nodes, one a line, where edges have ids."
        )
    adjacency = of_pairs(pairs[:, 0], pairs[:, 1], (n_nodes, n_nodes), not directed)
    # An edge that is listed twice is one.
    adjacency.data[:] = 1
    return adjacency


def _numbered(table, n_nodes):
    """Numbers of nodes, -1 for what is none."""
    try:
        ends = table.astype(float)
    except (TypeError, ValueError):
        ends = np.array([[_number(cell) for cell in row] for row in table])
    is_node = (ends == np.rint(ends)) & (ends >= 0) & (ends < n_nodes)
    return np.where(is_node, ends, -1).astype(np.int64)


def _number(cell):
    try:
        return float(cell)
    except (TypeError, ValueError):
        return -1.0


def _looked_up(table, ids):
    """Places of ids in their list, -1 for those that are not in it."""
    places = {name: place for place, name in enumerate(ids)}
    return np.array([[places.get(str(cell), -1) for cell in row] for row in table])

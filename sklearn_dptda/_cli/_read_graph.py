"""Reading graphs from files."""

import zipfile
from pathlib import Path

import numpy as np
from scipy.io import mmread
from scipy.sparse import csr_array, load_npz

from sklearn_dptda._cli._read_points import check_is_file, read_points
from sklearn_dptda.graph._adjacency import check_adjacency, of_pairs

_MATRICES = {".npy", ".npz", ".mtx"}


def read_graph(path, n_nodes=None, directed=False, columns=None, header=None):
    """Read an adjacency matrix: a matrix in an NPZ, NPY or MTX file, or a text file of edges.

    Lines of edges are pairs of numbers of nodes, from 0 up to the public ``n_nodes``. A
    ``ValueError`` says what is unusable, and names no edge.
    """
    path = Path(path)
    check_is_file(path)
    if path.suffix.lower() in _MATRICES:
        adjacency = _matrix(path)
    elif n_nodes is None:
        raise ValueError(
            "--nodes must be given with a list of edges: how many nodes there are is public, and "
            "not to be read from the edges."
        )
    else:
        adjacency = _edges(path, n_nodes, directed, columns, header)
    adjacency = check_adjacency(adjacency, directed)
    if n_nodes is not None and len(adjacency.indptr) - 1 != n_nodes:
        raise ValueError(f"{path} has another number of nodes than --nodes {n_nodes}.")
    return adjacency


def _matrix(path):
    # What SciPy says of a broken file may quote it.
    try:
        if path.suffix.lower() == ".mtx":
            return csr_array(mmread(path))
        if path.suffix.lower() == ".npz" and "format.npy" in zipfile.ZipFile(path).namelist():
            return csr_array(load_npz(path))
    except Exception:
        raise ValueError(f"{path} is not a matrix as SciPy writes it.") from None
    return read_points(path)


def _edges(path, n_nodes, directed, columns, header):
    pairs = read_points(path, columns=columns, header=header)
    if pairs.shape[1] != 2:
        raise ValueError(f"{path} has {pairs.shape[1]} columns: choose the two ends by --columns.")
    if not ((pairs == np.rint(pairs)) & (pairs >= 0) & (pairs < n_nodes)).all():
        raise ValueError(
            f"{path} has ends of edges that are not whole numbers from 0 to {n_nodes - 1}."
        )
    pairs = pairs.astype(np.int64)
    adjacency = of_pairs(pairs[:, 0], pairs[:, 1], (n_nodes, n_nodes), not directed)
    # An edge that is listed twice is one.
    adjacency.data[:] = 1
    return adjacency

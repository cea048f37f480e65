"""The command ``graph``, which releases a noisy copy of a graph, and its readers of files."""

import math
from pathlib import Path

import numpy as np
from scipy.io import mmread
from scipy.sparse import csr_array, load_npz, save_npz

from sklearn_dptda._cli._command import SWITCH, at_least_one
from sklearn_dptda._cli._paid_run import PayingCommand
from sklearn_dptda._cli._read_points import (
    check_is_file,
    parsed,
    read_table,
    reading,
    zip_members,
)
from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.graph._adjacency import check_links, of_pairs


def _number_or_file(text):
    return at_least_one(text) if text.lstrip("-").isdecimal() else text


class Graph(PayingCommand):
    """Release a graph under edge differential privacy, by flipping pairs of nodes.

    The privacy unit is one edge, present or absent.

    example:
      python -m sklearn_dptda graph edges.csv --nodes 500 --epsilon 2 -o out

    the file:
      NPZ, NPY, MTX    an adjacency matrix of zeros and ones
      CSV, TSV, TXT    one line for each edge: two numbers of nodes, from 0 to NODES - 1, or two
                       ids from the file that --nodes names; further columns are left out

    The nodes and their order are public. The number of nodes, or the list of their ids, must
    therefore be public as well. The command does not take it from the edges, because nodes without
    an edge do not occur there. At epsilon = 2, about 12 % of all pairs are flipped. The noisy graph
    is therefore dense: n nodes have about n * n / 2 pairs.

    what is written:
      OUT/graph.npz    the noisy adjacency matrix, for scipy.sparse.load_npz
      OUT/graph.json   the probability of a flip, and the guarantee. For embeddings, remove the
                       bias with NoisyAdjacency.of(load_npz("graph.npz"), flip_probability)
    """

    name = "graph"
    files = ("graph.json", "graph.npz")
    arguments = {
        "points": {
            "metavar": "graph",
            "help": "NPZ, NPY or MTX file with an adjacency matrix, or CSV, TSV or TXT with edges",
        },
        "--nodes": {
            "type": _number_or_file,
            "metavar": "NODES",
            "help": "public number of nodes, or a file with a public list of their ids, one per "
            "line",
        },
        "--columns": {
            "nargs": 2,
            "action": "extend",
            "help": "the two columns of a list of edges that contain the ends",
        },
        # A record may look like a header, so the first row is a record unless this is given.
        "--header": SWITCH | {"help": "the first row contains the names of the columns"},
        "--drop-self-loops": SWITCH | {"help": "leave out lines that join a node with itself"},
    }
    kinds = (EdgeFlip,)
    hidden = frozenset({"storage"})

    def __init__(self, args):
        super().__init__(args)
        self.private.set_params(storage="sparse")

    def prepare(self):
        args, directed = self.args, self.private.directed
        self.nodes = read_ids(args.nodes) if isinstance(args.nodes, str) else args.nodes
        names = ("columns", "header", "drop_self_loops")
        how = {name: getattr(args, name) for name in names}
        adjacency = read_graph(args.points, self.nodes, directed, **how)
        self.private.fit(adjacency)
        return adjacency

    def release(self, adjacency):
        self.noisy = self.private.transform(adjacency)

    def describe(self):
        private = self.private
        pairs = f"{'directed ' * private.directed}pairs of {self.noisy.shape[0]} nodes"
        yield f"each of the {pairs} flipped with probability {private.flip_probability_:.4g}"

    def content(self):
        return {
            "n_nodes": self.noisy.shape[0],
            "directed": self.private.directed,
            "flip_probability": self.private.flip_probability_,
            **({"nodes": self.nodes} if isinstance(self.nodes, list) else {}),
        }

    def write_file(self, path):
        if path.suffix == ".npz":
            save_npz(path, csr_array(self.noisy).astype(np.int8))
        else:
            super().write_file(path)


def read_ids(path):
    """Read a public list of ids of nodes, one per line."""
    path = Path(path)
    check_is_file(path)
    with reading(path, "a list of ids"):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    ids = [line.strip() for line in lines if line.strip()]
    if not ids or len(set(ids)) < len(ids):
        raise ValueError(f"--nodes: {path} must be a list of different ids, one per line.")
    return ids


def read_graph(
    path, nodes=None, directed=False, *, columns=None, header=None, drop_self_loops=False
):
    """Read an adjacency matrix from an NPZ, NPY or MTX file, or from a text file of edges.

    ``nodes`` is public: the number of nodes, or a list of their ids. Each line of a text file
    contains the two ends of an edge, as numbers of nodes (from 0) or as ids, in its first two cells
    or in two ``columns``. Lines that join a node with itself are refused, or dropped. A
    ``ValueError`` says what cannot be used, and quotes no edge.
    """
    path = Path(path)
    check_is_file(path)
    if path.suffix.lower() in (".npy", ".npz", ".mtx"):
        adjacency = _matrix(path)
    elif nodes is None:
        raise ValueError(
            "--nodes must be given with a list of edges: the number of nodes must be public, and "
            "is not taken from the edges."
        )
    else:
        adjacency = _edges(path, nodes, directed, columns, header, drop_self_loops)
    # The estimator checks that these zeros and ones are a graph.
    adjacency = check_links(adjacency)
    if nodes is not None and adjacency.shape[0] != _number_of(nodes):
        raise ValueError(
            f"{path} does not have {_number_of(nodes)} nodes, the number that --nodes states. "
            "Correct --nodes, or the file."
        )
    return adjacency


def _number_of(nodes):
    return len(nodes) if isinstance(nodes, list) else nodes


def _matrix(path):
    is_text = path.suffix.lower() == ".mtx"
    is_sparse = path.suffix.lower() == ".npz" and "format.npy" in zip_members(path)
    if is_text or is_sparse:
        with reading(path, "a matrix in a format of SciPy"):
            # The matrix is checked before it is converted.
            return csr_array(mmread(path)) if is_text else load_npz(path)
    # The limit on the number of columns is for tables: a matrix has as many columns as nodes. Cells
    # that are not numbers are refused later, because the advice for tables does not apply.
    return read_table(path, max_columns=math.inf).cells


def _edges(path, nodes, directed, columns, header, drop_self_loops):
    table = read_table(path, columns=columns, header=header, pairs=True).cells
    if table.shape[1] < 2:
        raise ValueError(
            f"{path} has one column, and edges have two ends. If another mark separates them, "
            "write them with commas or blanks between them."
        )
    if table.shape[1] > 2:
        tell(
            "note: the first two columns are taken as the ends of edges, and the others, such as "
            "weights, are left out. To choose others, pass --columns."
        )
        table = table[:, :2]
    # A negative number stands for an end that is not a node.
    if isinstance(nodes, list):
        places = {name: place for place, name in enumerate(nodes)}
        pairs = np.array([[places.get(str(cell), -1) for cell in row] for row in table])
    else:
        pairs = _numbered(table, nodes)
    if drop_self_loops:
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    _check_ends(path, pairs, nodes, header)
    shape = (_number_of(nodes),) * 2
    adjacency = of_pairs(pairs[:, 0], pairs[:, 1], shape, not directed)
    # An edge that is listed twice counts once.
    adjacency.data[:] = 1
    return adjacency


def _check_ends(path, pairs, nodes, header):
    """Refuse ends that are not nodes, and edges that join a node with itself."""
    header = "" if header else " If the first row names the columns, pass --header."
    unknown = int((pairs < 0).any(axis=1).sum())
    if unknown and isinstance(nodes, list):
        raise ValueError(
            f"Some rows of {path} contain ids that are missing from the list of --nodes. Add them "
            f"to the public list, or remove the rows.{header}"
        )
    if unknown:
        raise ValueError(
            f"{path} has ends of edges that are not whole numbers from 0 to {nodes - 1}, in "
            f"{unknown:,} of {len(pairs):,} rows.{header} If the edges are pairs of ids, pass "
            "--nodes FILE, where FILE is a public list of the ids of all nodes, one per line."
        )
    # The number of these lines depends on the edges, so it is not stated.
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise ValueError(
            f"Some lines of {path} join a node with itself. Remove these lines, or pass "
            "--drop-self-loops."
        )


def _numbered(table, n_nodes):
    """Return the numbers of nodes, with -1 for cells that are not a node."""
    ends = np.array([[parsed(cell, default=-1.0) for cell in row] for row in table])
    is_node = (ends == np.rint(ends)) & (ends >= 0) & (ends < n_nodes)
    return np.where(is_node, ends, -1).astype(np.int64)

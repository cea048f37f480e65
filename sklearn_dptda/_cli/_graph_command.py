"""The command ``graph``, which releases a noisy copy of a graph, and its readers of files."""

import math
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from scipy.io import mmread
from scipy.sparse import csr_array, load_npz, save_npz

from sklearn_dptda._cli._command import at_least_one
from sklearn_dptda._cli._formats import (
    NETWORKS,
    check_is_file,
    network_of,
    reading,
    suffix_of,
    zip_members,
)
from sklearn_dptda._cli._paid_run import PayingCommand
from sklearn_dptda._cli._read_points import TEXT_ARGUMENTS, parsed, read_list, read_table
from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.graph._adjacency import check_links


def _number_or_file(text):
    return at_least_one(text) if text.lstrip("-").isdecimal() else text


class Graph(PayingCommand):
    """Release a graph under edge differential privacy, by flipping pairs of nodes.

    The privacy unit is one edge, present or absent.

    example:
      python -m sklearn_dptda graph edges.csv --nodes 500 --epsilon 2 -o out

    the file:
      NPZ, NPY, MTX    an adjacency matrix of zeros and ones; NPY also edges, with --nodes
      text             one line for each edge: two numbers of nodes, from 0 to NODES - 1, or two
                       ids from the file that --nodes names; further cells are left out
      GML, GRAPHML, NET   what networkx reads. The ids in the file that --nodes names are the
                       labels of nodes in GML and Pajek, and their ids in GraphML

    The nodes and their order are public. The number of nodes, or the list of their ids, must
    therefore be public as well. The command does not take it from the edges, because nodes without
    an edge do not occur there. At epsilon = 2, about 12 % of all pairs are flipped. The noisy graph
    is therefore dense: n nodes have about n * n / 2 pairs.

    what is written:
      OUT/graph.npz    the noisy adjacency matrix, for scipy.sparse.load_npz, and the ids of the
                       nodes, if --nodes is a file: numpy.load("graph.npz")["nodes"]
      OUT/graph.json   the probability of a flip, and the guarantee. For embeddings, remove the
                       bias with NoisyAdjacency.of(load_npz("graph.npz"), flip_probability)
    """

    name = "graph"
    files = ("graph.json", "graph.npz")
    arguments = {
        "points": {
            "metavar": "graph",
            "help": "file of a matrix (NPZ, NPY, MTX), of edges (text) or of a network",
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
        # The first line is a record unless --header is given.
        **TEXT_ARGUMENTS,
    }
    kinds = (EdgeFlip,)
    hidden = frozenset({"storage"})

    def __init__(self, args):
        super().__init__(args)
        self.private.set_params(storage="sparse")

    def prepare(self):
        args, private = self.args, self.private
        nodes = args.nodes
        if isinstance(nodes, str):
            nodes = read_list("--nodes", nodes, "ids")
        private.set_params(nodes=nodes)
        graph = read_graph(args.points, nodes, args.columns, **self.stated(TEXT_ARGUMENTS))
        try:
            private.fit(graph)
        except ValueError as error:
            hint = ""
            if str(error).startswith("nodes is") and suffix_of(Path(args.points)) in NETWORKS:
                hint = " Nodes of GML and Pajek are their labels, and those of GraphML their ids."
            elif str(error).startswith("nodes is") and args.header is None:
                hint = " If the first line names the columns, pass --header."
            raise ValueError(f"{error}{hint}") from None
        if isinstance(graph, list):
            # Of a list of edges, some may be listed twice.
            links = private._links(graph)
            n_edges = int(links.sum()) // (1 if private.directed else 2)
            tell(f"note: {links.shape[0]:,} nodes, {n_edges:,} different edge(s).")
        return graph

    def release(self, graph):
        self.noisy = self.private.transform(graph)

    def describe(self):
        private = self.private
        pairs = f"{'directed ' * private.directed}pairs of {self.noisy.shape[0]} nodes"
        yield f"each of the {pairs} flipped with probability {private.flip_probability_:.4g}"

    def content(self):
        return {
            "n_nodes": self.noisy.shape[0],
            "directed": self.private.directed,
            "flip_probability": self.private.flip_probability_,
            **({} if self.noisy.nodes is None else {"nodes": self.noisy.nodes.tolist()}),
        }

    def write_file(self, path):
        if path.suffix == ".npz":
            save_npz(path, csr_array(self.noisy).astype(np.int8))
            if self.noisy.nodes is not None:
                # SciPy ignores further arrays in the file.
                with ZipFile(path, "a") as archive, archive.open("nodes.npy", "w") as entry:
                    np.save(entry, self.noisy.nodes)
        else:
            super().write_file(path)


def read_graph(path, nodes=None, columns=None, **how):
    """Read an adjacency matrix from an NPZ, NPY or MTX file, or the two ends of edges from a text.

    ``nodes`` is public: the number of nodes, or a list of their ids. Each line of a text file
    contains the two ends of an edge, as numbers of nodes (from 0) or as ids, in its first two cells
    or in two ``columns``. ``how`` says how the text is written.
    """
    path = Path(path)
    check_is_file(path)
    kind = suffix_of(path)
    if kind in (".npz", ".mtx") or (kind == ".npy" and not columns):
        matrix = _matrix(path)
        # A dense matrix with few columns would be taken for a list of edges.
        if nodes is None or matrix.shape[0] == matrix.shape[1]:
            return check_links(matrix)
        columns = columns or ["0", "1"]
    if nodes is None:
        raise ValueError(
            "--nodes must be given with a list of edges: the number of nodes must be public, and "
            "is not taken from the edges."
        )
    # A cell that is not a number becomes NaN, which is not a node.
    read = str if isinstance(nodes, list) else partial(parsed, default=math.nan)
    if kind in NETWORKS:
        network = network_of(path)
        tell(f"note: {path}: {len(network):,} node(s), {network.size():,} edge(s).")
        if network.is_directed():
            tell("note: the edges of the file have a direction, which counts with --directed.")
        return [(read(first), read(second)) for first, second in network.edges()]
    ends = columns or ["0", "1"]
    found = read_table(path, columns=columns, texts=ends, is_ragged=True, **how).columns
    if len(found) < 2:
        raise ValueError(
            f"{path} has one column, and edges have two ends. If another mark separates them, pass "
            "it by --separator."
        )
    if len(found) > 2:
        tell(
            "note: the first two columns are taken as the ends of edges, and the others, such as "
            "weights, are left out. To choose others, pass --columns."
        )
    return [(read(a), read(b)) for a, b in zip(*(c.tolist() for c in found[:2]), strict=True)]


def _matrix(path):
    is_text = suffix_of(path) == ".mtx"
    with reading(path, "a matrix in a format of SciPy"):
        # The matrix is checked before it is converted.
        if is_text:
            return csr_array(mmread(path))
        if suffix_of(path) == ".npz" and "format.npy" in zip_members(path):
            return load_npz(path)
    # The limit on the number of columns is for tables: a matrix has as many columns as nodes. Cells
    # that are not numbers are refused later, because the advice for tables does not apply.
    return np.column_stack(read_table(path, max_columns=math.inf).columns)

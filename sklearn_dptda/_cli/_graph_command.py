"""``python -m sklearn_dptda graph``: a noisy copy of the user's own graph."""

import numpy as np
from scipy.sparse import csr_array, save_npz

from sklearn_dptda._cli._arguments import add_epsilon, at_least_one
from sklearn_dptda._cli._exports import write_json
from sklearn_dptda._cli._paid_run import PAYING, add_paying, run_paid
from sklearn_dptda._cli._read_graph import read_graph, read_ids
from sklearn_dptda.graph import EdgeFlip

FILES = ("graph.json", "graph.npz")
EPILOG = f"""\
example:
  python -m sklearn_dptda graph edges.csv --nodes 500 --epsilon 2 -o out

the file:
  NPZ, NPY, MTX    an adjacency matrix of zeros and ones
  CSV, TSV, TXT    a line for each edge: two numbers of nodes, from 0 to NODES - 1, or two ids
                   out of the file that --nodes names

The nodes and their order are public, and so has to be their number, or the list of their ids. It
is not made from the edges, since a node without an edge is missing there. With epsilon = 2 some
12 % of all pairs are flipped, so that the noisy graph is dense: half of n squared numbers.

{PAYING}
what is written:
  OUT/graph.npz    the noisy adjacency matrix, for scipy.sparse.load_npz
  OUT/graph.json   the probability of a flip, and the guarantee. Embeddings take the bias off:
                   NoisyAdjacency.of(load_npz("graph.npz"), flip_probability)
"""


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "graph",
        help="release a noisy copy of a graph",
        description="Release a graph under edge differential privacy, by flipping pairs of nodes. "
        "One record is one edge, there or not.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    parser.add_argument("graph", help="NPZ, NPY, MTX: adjacency matrix; CSV, TSV, TXT: edges")
    parser.add_argument(
        "--nodes",
        type=_number_or_file,
        metavar="NODES",
        help="public number of nodes, or a file with a public list of their ids, one a line",
    )
    parser.add_argument("--directed", action="store_true", help="edges have a direction")
    parser.add_argument("--columns", nargs=2, help="of a list of edges: columns of their ends")
    parser.add_argument("--header", action="store_true", help="the first row names the columns")
    add_epsilon(parser)
    add_paying(parser)
    parser.set_defaults(run=run)


def _number_or_file(text):
    return at_least_one(text) if text.lstrip("-").isdecimal() else text


def run(args):
    """Run the command."""
    private = EdgeFlip(
        args.epsilon, directed=args.directed, storage="sparse", random_state=args.seed
    )

    def prepare():
        # A record may look like a header: what is not said to be one is none.
        if isinstance(args.nodes, str):
            args.nodes = read_ids(args.nodes)
        adjacency = read_graph(args.graph, args.nodes, args.directed, args.columns, args.header)
        private.fit(adjacency)
        return adjacency

    def describe(noisy):
        yield private.privacy_guarantee_
        pairs = f"{'directed ' * args.directed}pairs of {noisy.shape[0]} nodes"
        yield f"each of the {pairs} flipped with probability {private.flip_probability_:.4g}"

    def write(out, noisy):
        save_npz(out / "graph.npz", csr_array(noisy).astype(np.int8))
        write_json(
            out / "graph.json",
            private.privacy_guarantee_,
            n_nodes=noisy.shape[0],
            directed=args.directed,
            flip_probability=private.flip_probability_,
            **({"nodes": args.nodes} if isinstance(args.nodes, list) else {}),
        )

    run_paid(args, private, FILES, prepare, private.transform, write, describe)

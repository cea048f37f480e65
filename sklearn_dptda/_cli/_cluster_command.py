"""``python -m sklearn_dptda cluster``: private clusters of the user's own rows."""

import math
from functools import partial

import numpy as np

from sklearn_dptda._cli._arguments import (
    add_adjacency,
    add_bounds,
    add_epsilon,
    add_table,
    at_least_one,
    parse_bounds,
)
from sklearn_dptda._cli._output import write_csv, write_json
from sklearn_dptda._cli._paid_run import PAYING, add_paying, run_paid
from sklearn_dptda._cli._read_points import read_points
from sklearn_dptda.cluster import DPCube, DPLloyd, DPMoG, DPMoGMorse, DPTree

KINDS = {"morse": DPMoGMorse, "mixture": DPMoG, "kmeans": DPLloyd, "tree": DPTree, "cube": DPCube}
# Private bounds of more columns than these, that take more rows than these, are refused.
_FEW_COLUMNS, _USUAL_ROWS = 32, 5000
_ENOUGH_ROWS = (
    " If there are so many rows, and their number is public, say --adjacency replace-one."
)
FILES = ("clusters.json", "clusters.csv")
EPILOG = f"""\
example:
  python -m sklearn_dptda cluster rows.csv --n-clusters 3 --epsilon 1 --bounds -10 10 -o out

choosing the kind:
  morse      a mixture whose components are merged into clusters of any shape; finds
             the number of clusters itself where --n-clusters is missing
  mixture    Gaussian components, as many as --n-clusters
  kmeans, tree, cube
             round clusters; pure differential privacy with --delta 0

bounds:
  A box known without looking at the rows. What is not known is found privately, from a
  part of epsilon, and released as well.

{PAYING}
what is written:
  OUT/clusters.json  weights, means, covariances where the kind has them, bounds, the share
                     of rows beyond them, and the guarantee
  OUT/clusters.csv   a line for each component: its cluster, weight and mean
  Labels of the rows are not written: they are not private. Whoever has a row assigns it to
  the cluster that is likeliest or nearest, and keeps the answer as safe as the row.
"""


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "cluster",
        help="release private clusters of a file of rows",
        description="Release weights, means and shapes of clusters under differential privacy. "
        "One record is one row.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    add_table(parser)
    parser.add_argument("--kind", choices=list(KINDS), default="morse", help="(default morse)")
    parser.add_argument("--n-clusters", type=at_least_one, help="number of clusters")
    add_epsilon(parser)
    parser.add_argument(
        "--delta", type=float, default=1e-6, help="failure probability (default 1e-6)"
    )
    add_bounds(parser, missing="; missing: found privately")
    add_adjacency(parser)
    add_paying(parser)
    parser.set_defaults(run=run)


def run(args):
    """Run the command."""
    private = _estimator(args)
    run_paid(
        args,
        private,
        FILES,
        prepare=partial(_read, args, private),
        release=private.fit,
        write=partial(_write, args.kind),
        describe=_describe,
    )


def _read(args, private):
    rows = read_points(args.points, args.key, args.columns, args.header)
    width = rows.shape[1]
    # A number of rows that is private must not decide: only one that is public does.
    known = len(rows) if args.adjacency == "replace-one" else 0
    needed = private._rows_for_bounds(width)
    if width > _FEW_COLUMNS and needed > max(known, _USUAL_ROWS):
        raise ValueError(
            f"private bounds of {width} columns at --epsilon {args.epsilon:g} take some "
            f"{math.ceil(needed):,} rows, and are noise with fewer: give --bounds, which cost "
            f"nothing, fewer --columns, or a larger --epsilon.{'' if known else _ENOUGH_ROWS}"
        )
    return rows


def _estimator(args):
    name = "n_components" if args.kind == "mixture" else "n_clusters"
    return KINDS[args.kind](
        epsilon=args.epsilon,
        delta=args.delta,
        bounds=parse_bounds(args.bounds),
        adjacency=args.adjacency,
        random_state=args.seed,
        **({} if args.n_clusters is None else {name: args.n_clusters}),
    )


def _labels(private):
    """Cluster of each component."""
    return getattr(private, "component_labels_", np.arange(len(private.weights_)))


def _describe(private):
    labels = _labels(private)
    weights = [private.weights_[labels == label].sum() for label in np.unique(labels)]
    yield private.privacy_guarantee_
    yield f"{len(weights)} cluster(s) of weight {', '.join(f'{w:.3g}' for w in weights)}"
    yield f"share of rows beyond the bounds: {private.clipped_share_:.2g}"


def _write(kind, out, private):
    """Write what is private, and nothing else."""
    means = private.means_ if hasattr(private, "means_") else private.cluster_centers_
    labels = _labels(private)
    shapes = {
        name: getattr(private, f"{name}_")
        for name in ("covariances", "covariance_type", "n_clusters_stability")
        if hasattr(private, f"{name}_")
    }
    write_json(
        out / "clusters.json",
        private.privacy_guarantee_,
        kind=kind,
        weights=private.weights_,
        means=means,
        clusters=labels,
        **shapes,
        bounds=list(private.bounds_),
        clipped_share=private.clipped_share_,
    )
    header = ["component", "cluster", "weight", *(f"mean_{j}" for j in range(means.shape[1]))]
    rows = zip(range(len(means)), labels, private.weights_, *means.T, strict=True)
    write_csv(out / "clusters.csv", header, rows)

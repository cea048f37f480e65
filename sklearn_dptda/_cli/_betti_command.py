"""``python -m sklearn_dptda betti``: how many components and loops the user's points have."""

from functools import partial

from sklearn.pipeline import make_pipeline

from sklearn_dptda._cli._arguments import (
    add_bounds,
    add_epsilon,
    add_function,
    add_table,
    fitted_functions,
    make_filtration,
)
from sklearn_dptda._cli._output import write_csv, write_json
from sklearn_dptda._cli._paid_run import PAYING, add_paying, run_paid
from sklearn_dptda.persistence import PrivateBettiNumbers

FILES = ("betti.json", "betti.csv")
EPILOG = f"""\
example:
  python -m sklearn_dptda betti points.csv --bounds -3 3.5 --epsilon 0.3 --m 0.2 --threshold 0.2

A count needs about a quarter of the epsilon of a diagram. It says how many features of the
distance-to-measure live longer than the threshold, death minus birth, in the units of the
coordinates; choose it from what a feature means to you, not from the data. Without a threshold
the features before the widest gap are counted, which takes two to three times the epsilon.

{PAYING}
what is written:
  OUT/betti.json   the counts, what they say with 95 % probability, and the guarantee
  OUT/betti.csv    dimension, count
"""


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "betti",
        help="release how many components and loops a file of points has",
        description="Release the numbers of long-lived components and loops of a point cloud "
        "under differential privacy. One record is one row, replaced by another; the number of "
        "rows is public.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    add_table(parser, "one row per point")
    add_bounds(parser, required=True)
    add_epsilon(parser)
    add_function(parser)
    parser.add_argument(
        "--threshold",
        nargs="+",
        type=float,
        metavar="LENGTH",
        help="persistence above which a feature counts: one, or one per dimension",
    )
    parser.add_argument("--max-count", type=int, default=5, help="this or more (default 5)")
    add_paying(parser)
    parser.set_defaults(run=run)


def run(args):
    """Run the command."""
    filtration = make_filtration(args)
    threshold = args.threshold
    private = PrivateBettiNumbers(
        epsilon=args.epsilon,
        threshold=threshold[0] if threshold and len(threshold) == 1 else threshold,
        homology_dimensions=args.dimensions,
        max_count=args.max_count,
        random_state=args.seed,
    )

    prepare = partial(fitted_functions, args, filtration, private)
    pipeline, write = make_pipeline(filtration, private), partial(_write, private)
    run_paid(args, pipeline, FILES, prepare, private.transform, write, partial(_describe, private))


def _describe(private, counts):
    yield private.privacy_guarantee_
    for q, count in zip(private.homology_dimensions_, counts[0], strict=True):
        yield f"H{q}: {count:g}{' or more' if count == private.max_count else ''}"
    yield private.statements(counts)[0]


def _write(private, out, counts):
    """Write what is private or public, and nothing else."""
    dimensions = private.homology_dimensions_
    threshold = private.threshold
    write_json(
        out / "betti.json",
        private.privacy_guarantee_,
        parameters={"threshold": threshold, "max_count": private.max_count},
        counts={f"H{q}": int(count) for q, count in zip(dimensions, counts[0], strict=True)},
        statement=private.statements(counts)[0],
    )
    rows = [(q, int(count)) for q, count in zip(dimensions, counts[0], strict=True)]
    write_csv(out / "betti.csv", ("dimension", "count"), rows)

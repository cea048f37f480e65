"""``python -m sklearn_dptda bounds``: a private box around the user's own rows."""

from sklearn_dptda._cli._arguments import (
    add_adjacency,
    add_bounds,
    add_epsilon,
    add_table,
    parse_bounds,
)
from sklearn_dptda._cli._output import write_csv, write_json
from sklearn_dptda._cli._paid_run import PAYING, add_paying, run_paid
from sklearn_dptda._cli._read_points import read_points
from sklearn_dptda.preprocessing import PrivateBounds

FILES = ("bounds.json", "bounds.csv")
EPILOG = f"""\
example:
  python -m sklearn_dptda bounds rows.csv --epsilon 0.1 --start -1000 1000 -o out

Bounds that you know from the meaning of the columns cost nothing and are better. cluster and
synthesize find bounds that are missing themselves; this command is for diagram, which takes
the numbers that are printed as its --bounds. Its loss adds to that of the diagram.

choosing the numbers:
  --start    a wide public box in which to look; without it, powers of two are searched first
  --shape    cube: one side for all columns, as diagrams need; box: an interval for each
  Fewer than some 200 / epsilon rows leave the box wide.

{PAYING}
what is written:
  OUT/bounds.json    the box, the share of the rows beyond it, and the guarantee
  OUT/bounds.csv     column, low, high
"""


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "bounds",
        help="release a private box around a file of rows",
        description="Release a box around rows, and the share of the rows beyond it, under "
        "differential privacy. One record is one row.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    add_table(parser)
    add_epsilon(parser, 0.1)
    parser.add_argument("--shape", choices=["cube", "box"], default="cube", help="(default cube)")
    add_bounds(parser, name="--start", missing=" to look in")
    add_adjacency(parser, "replace-one")
    add_paying(parser)
    parser.set_defaults(run=run)


def run(args):
    """Run the command."""
    private = PrivateBounds(
        args.epsilon,
        shape=args.shape,
        start=parse_bounds(args.start, "--start"),
        adjacency=args.adjacency,
        random_state=args.seed,
    )
    run_paid(
        args,
        private,
        FILES,
        prepare=lambda: read_points(args.points, args.key, args.columns, args.header),
        release=private.fit,
        write=_write,
        describe=_describe,
    )


def _describe(private):
    low, high = (end.tolist() for end in private.bounds_)
    yield private.privacy_guarantee_
    yield " ".join(["--bounds", *(f"{a!r} {b!r}" for a, b in zip(low, high, strict=True))])
    yield f"share of rows beyond them: {private.clipped_share_:.2g}"


def _write(out, private):
    """Write what is private, and nothing else."""
    low, high = private.bounds_
    write_json(
        out / "bounds.json",
        private.privacy_guarantee_,
        shape=private.shape,
        bounds=[low, high],
        clipped_share=private.clipped_share_,
    )
    rows = zip(range(len(low)), low, high, strict=True)
    write_csv(out / "bounds.csv", ("column", "low", "high"), rows)

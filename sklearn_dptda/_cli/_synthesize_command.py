"""``python -m sklearn_dptda synthesize``: synthetic rows in place of the user's own."""

from functools import partial
from pathlib import Path

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
from sklearn_dptda._cli._read_points import as_numbers, read_table
from sklearn_dptda.metric_privacy import PrivateMeasure

FILES = ("synthetic.csv", "synthetic.json")
_PARQUET = {".parquet", ".pq"}
EPILOG = f"""\
example:
  python -m sklearn_dptda synthesize people.csv --header --column-bounds age 0 120 \\
      --integers age --categories job=cook,nurse,smith smokes=no,yes --epsilon 1 -o out

columns:
  --categories     lists of values that are known without looking at the rows: a code
                   book, the answers of a form. Order matters little. A value that is not
                   on its list is refused.
  --bounds         LOW HIGH for all columns of numbers, or for each of them
  --column-bounds  the same for one column, by name; what is missing is found privately,
                   from a fifth of epsilon
  --integers       columns whose synthetic numbers are rounded
  --header         the first row names the columns; names are written, so they are public

{PAYING}
what is written:
  OUT/synthetic.csv   rows of the same columns. Whatever is computed from them costs nothing.
  OUT/synthetic.json  their number, the bounds, and the guarantee
"""


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "synthesize",
        help="release synthetic rows in place of a file of rows",
        description="Release a measure on a box under differential privacy, and draw synthetic "
        "rows from it. One record is one row.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    add_table(parser)
    parser.add_argument(
        "--categories", nargs="+", default=[], metavar="NAME=A,B,C", help="columns of categories"
    )
    add_bounds(parser)
    parser.add_argument(
        "--column-bounds",
        nargs=3,
        action="append",
        default=[],
        metavar=("NAME", "LOW", "HIGH"),
        help="public interval of one column; again for others",
    )
    parser.add_argument("--integers", nargs="+", default=[], metavar="NAME", help="whole numbers")
    parser.add_argument(
        "--rows", type=at_least_one, help="synthetic rows (default: about as many, privately)"
    )
    add_epsilon(parser)
    add_adjacency(parser)
    add_paying(parser)
    parser.set_defaults(run=run)


def run(args):
    """Run the command."""
    if args.bounds is not None and args.column_bounds:
        raise ValueError("--bounds is of all columns, --column-bounds of some: give one of them.")
    categories = dict(map(_parse_categories, args.categories))
    intervals = {name: _parse_interval(name, ends) for name, *ends in args.column_bounds}
    private = PrivateMeasure(
        args.epsilon,
        parse_bounds(args.bounds),
        adjacency=args.adjacency,
        random_state=args.seed,
    )

    def prepare():
        names, table, labels = _read(args)
        places = {name: j for j, name in enumerate(names)} | {
            str(j): j for j in range(len(names)) if str(j) not in names
        }
        of_place = partial(_by_place, places)
        choices = of_place("--categories", categories)
        whole = of_place("--integers", dict.fromkeys(args.integers))
        if not choices.keys().isdisjoint(whole):
            raise ValueError("--integers names a column of --categories.")
        if intervals:
            private.set_params(bounds=of_place("--column-bounds", intervals))
        if choices:
            private.set_params(categories=choices)
        return names, _typed(args.points, table, labels, choices), whole

    def release(data):
        names, rows, whole = data
        drawn = private.fit(rows).sample(args.rows, random_state=args.seed)
        for j in whole:
            drawn[:, j] = np.rint(drawn[:, j].astype(float))
        return names, drawn, whole

    def describe(result):
        return private.privacy_guarantee_, f"{len(result[1])} synthetic rows"

    run_paid(args, private, FILES, prepare, release, partial(_write, private), describe)


def _read(args):
    names, table, labels = read_table(args.points, args.key, args.columns, args.header)
    parquet = Path(args.points).suffix.lower() in _PARQUET
    if names is not None and args.header is None and not parquet:
        raise ValueError(
            "the first row may name the columns, or be a record: say --header, since names are "
            "written, or --no-header."
        )
    return names or [f"x{j}" for j in range(table.shape[1])], table, labels


def _typed(path, table, labels, choices):
    """Texts of categories, floats elsewhere."""
    numeric = [j for j in range(table.shape[1]) if j not in choices]
    numbers = as_numbers(path, table[:, numeric], [labels[j] for j in numeric])
    if not choices:
        return numbers
    typed = np.empty(table.shape, dtype=object)
    typed[:, numeric] = numbers
    for j in choices:
        typed[:, j] = [str(cell) for cell in table[:, j]]
        if other := sum(cell not in choices[j] for cell in typed[:, j]):
            raise ValueError(
                f"{path}, {labels[j]}: {other:,} of {len(table):,} rows hold a value that is not "
                "in its list of categories. Add to --categories what is public, such as a value "
                "for all others, or change these cells."
            )
    return typed


def _by_place(places, option, values):
    unknown = [name for name in values if name not in places]
    if unknown:
        raise ValueError(f"{option}: there is no column {unknown[0]!r} among the {len(places)}.")
    return {places[name]: value for name, value in values.items()}


def _parse_categories(text):
    name, equals, values = text.partition("=")
    listed = [value.strip() for value in values.split(",")]
    if not (name and equals and all(listed) and len(set(listed)) == len(listed)):
        raise ValueError(f"--categories takes NAME=A,B,C with different values; got {text!r}.")
    return name, listed


def _parse_interval(name, ends):
    try:
        low, high = map(float, ends)
    except ValueError:
        raise ValueError(f"--column-bounds {name}: LOW and HIGH must be numbers.") from None
    return low, high


def _write(private, out, result):
    """Write what is private, and nothing else."""
    names, rows, whole = result
    columns = [
        [int(value) for value in column] if j in whole else column.tolist()
        for j, column in enumerate(rows.T)
    ]
    write_csv(out / "synthetic.csv", names, zip(*columns, strict=True))
    write_json(
        out / "synthetic.json",
        private.privacy_guarantee_,
        n_rows=len(rows),
        private_number_of_rows=private.n_samples_,
        columns=names,
        bounds=list(private.bounds_),
    )

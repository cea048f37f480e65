"""The description of a command, and the arguments that several commands share."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """A command: the text of its help, its arguments, and the function that runs it."""

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]
    epilog: str | None = None


def at_least_one(text):
    """Turn an argument into a positive integer."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1; got {text!r}")
    return int(text)


def _finite_loss(text):
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive and finite; got {text!r}")
    return number


def add_epsilon(parser, default=1.0):
    """Add the argument for the privacy loss of one run."""
    text = f"privacy loss of this run (default {default:g})"
    parser.add_argument("--epsilon", type=_finite_loss, default=default, help=text)


def add_adjacency(parser, default="add-remove"):
    """Add the argument for the definition of neighbours."""
    parser.add_argument(
        "--adjacency",
        choices=["add-remove", "replace-one"],
        default=default,
        help="definition of neighbouring tables: one row is added or removed (the number of rows "
        "is private), or one row is replaced (the number of rows is public). All releases of a "
        f"ledger must use the same definition (default {default})",
    )


def add_table(parser, what="one row per record"):
    """Add the arguments for a file of rows and how to read it."""
    parser.add_argument("points", help=f"CSV, TSV, TXT, NPY, NPZ or Parquet file with {what}")
    parser.add_argument(
        "--columns", nargs="+", action="extend", help="names or numbers of the columns to use"
    )
    parser.add_argument(
        "--groups",
        metavar="COLUMN",
        help="name or number of the column that identifies people. All rows of a person are then "
        "protected together, and the privacy unit is one person instead of one row",
    )
    parser.add_argument("--key", help="name or number (from 0) of the array in an NPZ file")
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row of a text file names the columns (default: guess)",
    )
    _add_gaps(parser)


def _add_gaps(parser):
    """Add the arguments that say what becomes of missing cells."""
    parser.add_argument(
        "--fill",
        nargs="+",
        action="extend",
        default=[],
        metavar="[NAME=]VALUE",
        help="public constants for missing cells: one for all columns, or one for each NAME",
    )
    parser.add_argument(
        "--drop-incomplete",
        action="store_true",
        help="leave out rows with a missing cell; if the number of rows is public, this publishes "
        "how many rows are complete",
    )


def table_options(args):
    """Return the options of the file of rows as keywords of the functions that read it."""
    names = ("key", "columns", "groups", "header", "fill", "drop_incomplete")
    return {name: getattr(args, name) for name in names}


def add_bounds(parser, *, required=False, missing="", name="--bounds"):
    """Add the argument for a public box."""
    parser.add_argument(
        name,
        nargs="+",
        type=float,
        required=required,
        metavar="NUMBER",
        help=f"public box{missing}: LOW HIGH, or LOW HIGH for each coordinate",
    )


def parse_bounds(numbers, name="--bounds"):
    """Turn the numbers of a box into a pair (low, high)."""
    if numbers is None or len(numbers) == 2:
        return None if numbers is None else tuple(numbers)
    if len(numbers) % 2:
        raise ValueError(
            f"{name} takes 2 numbers, or 2 numbers per coordinate; got {len(numbers)}."
        )
    return numbers[::2], numbers[1::2]


def add_scale(parser):
    """Add the public units of the coordinates."""
    parser.add_argument(
        "--scale",
        nargs="+",
        type=float,
        default=[1.0],
        metavar="UNIT",
        help="public numbers by which the coordinates and their bounds are divided, one for all or "
        "one for each coordinate, so that distances in all of them are comparable (default 1)",
    )


def scaled_bounds(args):
    """Return the public box in units of the scale."""
    if not all(0 < unit < float("inf") for unit in args.scale):
        raise ValueError("--scale takes positive, finite numbers.")
    low, high = parse_bounds(args.bounds)
    if isinstance(low, list) and len(args.scale) not in (1, len(low)):
        raise ValueError(f"--scale and --bounds differ: {len(args.scale)} and {len(low)} axes.")
    n = max(len(args.scale), len(low) if isinstance(low, list) else 1)
    if n == 1:
        return low / args.scale[0], high / args.scale[0]
    units = args.scale * n if len(args.scale) == 1 else args.scale
    ends = (end if isinstance(end, list) else [end] * n for end in (low, high))
    return tuple([value / unit for value, unit in zip(end, units, strict=True)] for end in ends)


def add_dimensions(parser):
    """Add the arguments for the homology dimensions and the cap of the distances."""
    parser.add_argument(
        "--dimensions",
        nargs="+",
        type=int,
        default=[0, 1],
        metavar="Q",
        help="homology dimensions (default 0 1)",
    )
    parser.add_argument(
        "--max-distance",
        type=float,
        help="public cap of the distances (default: chosen privately)",
    )


def output_folder(name):
    """Create the folder for the results, before anything is paid.

    A ``ValueError`` says why the folder cannot be created or written to.
    """
    out = Path(name)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out: cannot create the folder {out} ({error.strerror}).") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise ValueError(
            f"--out: the folder {out} cannot be written to. Choose another folder, or change its "
            "permissions."
        )
    return out

"""The list of commands, their parser, and the entry point."""

import argparse
import sys
import warnings
from pathlib import Path

from sklearn_dptda import __version__
from sklearn_dptda._cli._command import Command
from sklearn_dptda._cli._demo_command import DEMO
from sklearn_dptda._cli._diagram_commands import BETTI, DIAGRAM
from sklearn_dptda._cli._graph_command import GRAPH
from sklearn_dptda._cli._plan_command import PLAN
from sklearn_dptda._cli._row_commands import BOUNDS, CLUSTER, SYNTHESIZE
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.privacy._stored_release import to_bytes


def _add_ledger(parser):
    parser.add_argument("ledger", metavar="PATH", help="file or SQLAlchemy URL of the ledger")
    parser.add_argument(
        "--release", type=int, metavar="NUMBER", help="write the stored release of that payment"
    )
    parser.add_argument(
        "-o",
        "--out",
        default="release.zip",
        metavar="FILE",
        help="where to: a ZIP archive of JSON and arrays of NumPy (default release.zip)",
    )


def _print_ledger(args):
    accountant = PrivacyAccountant.open(args.ledger)
    releases = accountant.releases()
    if args.release is not None:
        _write_release(accountant, releases, args.release, Path(args.out))
        return
    for spend, release in zip(accountant.spends(), releases, strict=False):
        stored = "not stored" if release.size is None else f"{release.size} bytes"
        print(
            f"{spend.number}  {spend.time}  epsilon={spend.epsilon:g}, delta={spend.delta:g}"
            f"  {spend.estimator}  {stored}"
        )
    total, left = accountant.total(), accountant.remaining()
    print(
        f"together: epsilon={total.epsilon:g}, delta={total.delta:g} by {accountant.composition} "
        f"composition\nleft: epsilon={left.epsilon:g}, delta={left.delta:g}"
    )


def _write_release(accountant, releases, number, path):
    keys = [release.key for release in releases if release.number == number]
    if not keys:
        raise ValueError(f"--release: the ledger has no payment {number}.")
    try:
        release = accountant.release(keys[0])
    except LookupError as error:
        raise ValueError(f"--release {number}: {error.args[0]}.") from None
    content = to_bytes(release)
    # Never over another file: it may be the only copy of a release.
    with path.open("xb") as file:
        file.write(content)
    print(f"written to {path}")


LEDGER = Command(
    name="ledger",
    help="print what a ledger has paid for, and what is left",
    description="Print the releases that a ledger has paid for, their loss together, and what "
    "is left; or write one of the releases that it has stored. Nothing is spent. A ledger holds "
    "no records.",
    epilog="examples:\n  python -m sklearn_dptda ledger budget.db\n"
    "  python -m sklearn_dptda ledger budget.db --release 2 -o release.zip",
    add_arguments=_add_ledger,
    run=_print_ledger,
)
# The help lists them in this order.
COMMANDS = (DEMO, PLAN, DIAGRAM, BETTI, CLUSTER, SYNTHESIZE, GRAPH, BOUNDS, LEDGER)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are those of the commands."""

    def error(self, message):
        raise ValueError(f"{message} ('{self.prog} --help' explains)")


def build_parser():
    """Build the parser of all commands."""
    parser = _Parser(
        prog="python -m sklearn_dptda",
        description="Topological data analysis under differential privacy.",
        epilog="Start with 'python -m sklearn_dptda demo'.",
    )
    parser.add_argument("--version", action="version", version=f"sklearn_dptda {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        subparser = subparsers.add_parser(
            command.name,
            help=command.help,
            description=command.description,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(argv=None):
    """Run the command line with the system's arguments, or those given.

    The exit status is 0, 2 where the input is unusable or the budget does not do, or 130 after
    Ctrl-C.
    """
    try:
        args = build_parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            args.run(args)
    except KeyboardInterrupt as interrupt:
        print(": ".join(["interrupted", *map(str, interrupt.args)]), file=sys.stderr)
        return 130
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        return _refuse(f"{place}{error.strerror or error}")
    except (
        ValueError,
        MemoryError,
        ImportError,
        PrivacyBudgetExceeded,
        PrivacyLedgerError,
    ) as error:
        return _refuse(error)
    return 0


def _refuse(error):
    print("error:", " ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
    return 2


def _print_warning(message, category, filename, lineno, file=None, line=None):
    """Print one line, without the place in the code."""
    print(f"warning: {message}", file=sys.stderr)

"""The list of commands, their parser, and the entry point."""

import argparse
import sys
import warnings

from sklearn_dptda import __version__
from sklearn_dptda._cli._command import Command
from sklearn_dptda._cli._demo_command import DEMO
from sklearn_dptda._cli._diagram_commands import BETTI, DIAGRAM
from sklearn_dptda._cli._graph_command import GRAPH
from sklearn_dptda._cli._plan_command import PLAN
from sklearn_dptda._cli._row_commands import BOUNDS, CLUSTER, SYNTHESIZE
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError


def _add_ledger(parser):
    parser.add_argument("ledger", metavar="PATH", help="file or SQLAlchemy URL of the ledger")


def _print_ledger(args):
    accountant = PrivacyAccountant.open(args.ledger)
    for spend in accountant.spends():
        print(
            f"{spend.number}  {spend.time}  epsilon={spend.epsilon:g}, delta={spend.delta:g}"
            f"  {spend.estimator}"
        )
    total, left = accountant.total(), accountant.remaining()
    print(
        f"together: epsilon={total.epsilon:g}, delta={total.delta:g} by {accountant.composition} "
        f"composition\nleft: epsilon={left.epsilon:g}, delta={left.delta:g}"
    )


LEDGER = Command(
    name="ledger",
    help="print what a ledger has paid for, and what is left",
    description="Print the releases that a ledger has paid for, their loss together, and what "
    "is left. Nothing is spent. A ledger holds no records.",
    epilog="example:\n  python -m sklearn_dptda ledger budget.db",
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

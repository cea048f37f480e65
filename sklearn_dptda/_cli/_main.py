"""Parser and entry point."""

import argparse
import sys
import warnings

from sklearn_dptda import __version__
from sklearn_dptda._cli import (
    _betti_command,
    _bounds_command,
    _cluster_command,
    _demo_command,
    _diagram_command,
    _graph_command,
    _ledger_command,
    _plan_command,
    _synthesize_command,
)
from sklearn_dptda.privacy import PrivacyBudgetExceeded, PrivacyLedgerError

# In the order of the help. A command is a module with ``add_parser``, which names its ``run``.
COMMANDS = (
    _demo_command,
    _plan_command,
    _diagram_command,
    _betti_command,
    _cluster_command,
    _synthesize_command,
    _graph_command,
    _bounds_command,
    _ledger_command,
)


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
        command.add_parser(subparsers, argparse.RawDescriptionHelpFormatter)
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
    except (ValueError, MemoryError, ImportError) as error:
        return _refuse(error)
    except (PrivacyBudgetExceeded, PrivacyLedgerError) as error:
        return _refuse(error)
    return 0


def _refuse(error):
    print("error:", " ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
    return 2


def _print_warning(message, category, filename, lineno, file=None, line=None):
    """One line, without the place in the code."""
    print(f"warning: {message}", file=sys.stderr)

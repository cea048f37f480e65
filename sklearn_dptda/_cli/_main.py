"""The list of commands, their parser, and the entry point."""

import argparse
import importlib
import re
import sys
import warnings
from functools import partial

from sklearn_dptda import __version__
from sklearn_dptda._cli._command import Command, in_options
from sklearn_dptda._cli._terminal import tell

# For each command: its module, which is imported only if the command is called, and its line in
# the help.
COMMANDS = {
    "demo": ("_demo_command", "show private diagrams of two circles and of handwritten digits"),
    "look": ("_look_command", "show what a file contains, and the commands that release it"),
    "plan": (
        "_diagram_commands",
        "choose epsilon, m and the grid of a diagram before you spend anything",
    ),
    "diagram": ("_diagram_commands", "release private persistence diagrams of a file of points"),
    "cloud": ("_cloud_command", "release a weighted cloud once, and where its loops are"),
    "betti": ("_diagram_commands", "release the numbers of components and loops of a point cloud"),
    "cluster": ("_row_commands", "release private clusters of a file of rows"),
    "synthesize": ("_row_commands", "release synthetic rows in place of a file of rows"),
    "graph": ("_graph_command", "release a noisy copy of a graph"),
    "bounds": ("_row_commands", "release a private box around a file of rows"),
    "ledger": ("_ledger_command", "print the payments and the remaining budget of a ledger"),
}

# Class of the actions "append" and "extend", for which argparse has no public name.
REPEATABLE = argparse._AppendAction


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in the same way as the commands, and drops no argument.

    Of an option that is given twice, argparse keeps the last one. A run would then pay for a
    release without the columns or the bounds of the first. Only the options whose action adds
    values to a list may therefore be repeated.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._given = set()
        # Without it, -1e2 would be an option.
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")

    def error(self, message):
        raise ValueError(f"{message} (see '{self.prog} --help')")

    def _get_values(self, action, arg_strings):
        # The parser calls this method each time that an option occurs, whatever its action is.
        if action.option_strings and not isinstance(action, REPEATABLE):
            if action.dest in self._given:
                several = action.nargs not in (None, 0) and ", with all of its values"
                raise argparse.ArgumentError(action, f"given twice; give it once{several or ''}")
            self._given.add(action.dest)
        return super()._get_values(action, arg_strings)


def load_command(name: str) -> type[Command]:
    """Import a command: the class of its module that has its name."""
    module = importlib.import_module(f"sklearn_dptda._cli.{COMMANDS[name][0]}")
    return next(kind for kind in vars(module).values() if getattr(kind, "name", None) == name)


def build_parser(called=None):
    """Build the parser of the list of commands, and of the command that is called."""
    parser = _Parser(
        prog="python -m sklearn_dptda",
        description="Topological data analysis under differential privacy.",
        epilog="Start with 'python -m sklearn_dptda demo'.",
    )
    parser.add_argument("--version", action="version", version=f"sklearn_dptda {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (_, line) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=line)
        if name == called:
            command = load_command(name)
            subparser.description, subparser.epilog = command.help()
            subparser.formatter_class = argparse.RawDescriptionHelpFormatter
            command.add_arguments(subparser)
            subparser.set_defaults(command=command)
    return parser


def main(argv=None):
    """Run the command line with the arguments of the process, or with the given ones.

    The exit status is 0 for success, 2 if the input cannot be used or the budget does not cover
    the run, and 130 after Ctrl-C.
    """
    argv = sys.argv[1:] if argv is None else argv
    flags: dict[str, str] = {}
    try:
        # Arguments before the command are options of the list. None of them takes a value.
        called = next((text for text in argv if not text.startswith("-")), None)
        args = build_parser(called).parse_args(argv)
        flags |= args.command.flags()
        with warnings.catch_warnings():
            warnings.showwarning = partial(_print_warning, flags)
            args.command(args).run()
    except SystemExit:
        # --help and --version exit in this way, before anything else is imported.
        raise
    except KeyboardInterrupt as interrupt:
        tell(": ".join(["interrupted", *map(str, interrupt.args)]))
        return 130
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        return _refuse(f"{place}{error.strerror or error}")
    except _refusals_of_ledgers() as error:
        return _refuse(error)
    except (ValueError, MemoryError, ImportError) as error:
        return _refuse(in_options(_in_one_line(error), flags) or type(error).__name__)
    return 0


def _refusals_of_ledgers():
    from sklearn_dptda.privacy import PrivacyBudgetExceeded, PrivacyLedgerError

    return PrivacyBudgetExceeded, PrivacyLedgerError


def _refuse(error):
    tell(f"error: {_in_one_line(error)}")
    return 2


def _print_warning(flags, message, category, filename, lineno, file=None, line=None):
    """Print a warning as one line, without its place in the code."""
    tell(f"warning: {in_options(_in_one_line(message), flags)}")


def _in_one_line(message):
    return " ".join(str(message).split())

"""Parser and entry point."""

import argparse
import sys

from sklearn_dptda._cli import _demo_command, _diagram_command


def build_parser():
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="python -m sklearn_dptda",
        description="Topological data analysis under differential privacy.",
        epilog="Start with 'python -m sklearn_dptda demo'.",
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (_demo_command, _diagram_command):
        command.add_parser(subparsers, argparse.RawDescriptionHelpFormatter)
    return parser


def main(argv=None):
    """Run the command line with the system's arguments, or those given.

    The exit status is 0, 2 where the input is unusable, or 130 after Ctrl-C.
    """
    args = build_parser().parse_args(argv)
    try:
        args.run(args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0

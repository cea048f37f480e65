"""Run all benchmarks or those named: ``python -m benchmarks [name ...] [--quick]``."""

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks._timing import describe_machine

# A benchmark is a module with a function ``tables(quick)``. Names of helpers begin with "_".
NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join(NAMES)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {known} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, as a test of the code")
    arguments = parser.parse_args()
    # The names are those of files; "head-to-head" is accepted as well.
    names = [name.replace("-", "_") for name in arguments.names]
    if unknown := set(names) - set(NAMES):
        parser.error(f"unknown benchmarks: {', '.join(sorted(unknown))}. Choose from {known}.")
    print(describe_machine(), flush=True)
    for name in names or NAMES:
        print(f"\n## {name}\n", flush=True)
        # Each table is printed as soon as it is complete, because benchmarks may take long.
        for table in import_module(f"benchmarks.{name}").tables(arguments.quick):
            print(table, flush=True)


if __name__ == "__main__":
    main()

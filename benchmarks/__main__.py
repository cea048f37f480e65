"""Run all benchmarks or those named: ``python -m benchmarks [name ...] [--quick]``."""

import argparse

from benchmarks import (
    beyond,
    caps,
    chaos,
    classifiers,
    cliffs,
    clusters,
    distributed,
    graphs,
    head_to_head,
    landmarks,
    ledgers,
    missing,
    noise,
    peaks,
    peers,
    populations,
    posterior,
    sampler,
    scaling,
    searches,
    speed,
    synthetic,
    units,
    utility,
    versions,
)
from benchmarks._machine import describe_machine

BENCHMARKS = {
    "beyond": beyond,
    "caps": caps,
    "chaos": chaos,
    "classifiers": classifiers,
    "cliffs": cliffs,
    "clusters": clusters,
    "distributed": distributed,
    "graphs": graphs,
    "head_to_head": head_to_head,
    "landmarks": landmarks,
    "ledgers": ledgers,
    "missing": missing,
    "noise": noise,
    "peaks": peaks,
    "peers": peers,
    "populations": populations,
    "posterior": posterior,
    "sampler": sampler,
    "scaling": scaling,
    "searches": searches,
    "speed": speed,
    "synthetic": synthetic,
    "units": units,
    "utility": utility,
    "versions": versions,
}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join(BENCHMARKS)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {known} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, as a test of the code")
    arguments = parser.parse_args()
    # The names are those of files; "head-to-head" is accepted as well.
    arguments.names = [name.replace("-", "_") for name in arguments.names]
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown benchmarks: {', '.join(sorted(unknown))}. Choose from {known}.")
    print(describe_machine(), flush=True)
    for name in arguments.names or BENCHMARKS:
        print(f"\n## {name}\n", flush=True)
        # Each table is printed as soon as it is complete, because benchmarks may take long.
        for table in BENCHMARKS[name].tables(arguments.quick):
            print(table, flush=True)


if __name__ == "__main__":
    main()

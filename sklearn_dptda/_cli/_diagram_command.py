"""``python -m sklearn_dptda diagram``: a private diagram of the user's own points."""

import argparse
import json

import numpy as np

from sklearn_dptda._cli._arguments import output_folder
from sklearn_dptda._cli._read_points import read_points
from sklearn_dptda.filtration import DTMFiltration
from sklearn_dptda.persistence import PrivatePersistence

EPILOG = """\
example:
  python -m sklearn_dptda diagram points.csv --bounds -3 3.5 --epsilon 1 --m 0.1 -o out

choosing the numbers:
  --bounds   a box that you know without looking at the data: sensor range, map, form.
             Two numbers hold for every coordinate; or give two per coordinate:
             --bounds -180 180 -90 90. Points outside are clipped to the box.
             The noise is proportional to its size.
  --epsilon  the privacy loss: 0.1 strong, 1 usual, 10 weak. Each run spends it anew.
  --m        the share of the points that each value looks at. Larger is less noisy,
             and blurs what is smaller than this share of the points.

what is written:
  OUT/diagram.json   the private diagrams, the parameters and the guarantee
  OUT/diagram.png    a picture of the same diagrams
"""


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "diagram",
        help="release private persistence diagrams of a file of points",
        description="Release the persistence diagrams of a point cloud under differential "
        "privacy. One record is one row.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    parser.add_argument("points", help="CSV, TSV, TXT, NPY, NPZ or Parquet; one row per point")
    parser.add_argument(
        "--bounds",
        nargs="+",
        type=float,
        required=True,
        metavar="NUMBER",
        help="public box: LOW HIGH, or LOW HIGH for each coordinate",
    )
    parser.add_argument("--epsilon", type=float, default=1.0, help="privacy loss (default 1)")
    parser.add_argument("--m", type=float, default=0.1, help="mass, in (0, 1] (default 0.1)")
    parser.add_argument(
        "--dimensions",
        nargs="+",
        type=int,
        default=[0, 1],
        metavar="Q",
        help="homology dimensions (default 0 1)",
    )
    parser.add_argument("--max-distance", type=float, help="public cap of distances")
    parser.add_argument("--resolution", type=int, help="grid nodes per axis")
    parser.add_argument("--max-points", type=int, default=10, help="per diagram (default 10)")
    parser.add_argument("--columns", nargs="+", help="names or numbers of the columns to use")
    parser.add_argument("--key", help="which array of an NPZ file, by name or number from 0")
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row of a text file names the columns (else it is guessed)",
    )
    parser.add_argument(
        "--seed", type=int, help="reproducible draw, for tests only: not private if known"
    )
    parser.add_argument("-o", "--out", default="dptda-out", help="folder (default dptda-out)")
    parser.set_defaults(run=run)


def parse_bounds(numbers, n_features):
    """Turn the numbers after ``--bounds`` into a pair (low, high)."""
    if len(numbers) == 2:
        return tuple(numbers)
    if len(numbers) != 2 * n_features:
        raise ValueError(
            f"--bounds takes 2 numbers, or 2 per coordinate ({2 * n_features} here); "
            f"got {len(numbers)}."
        )
    pairs = np.array(numbers).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def run(args):
    """Run the command."""
    if not 0 < args.epsilon < float("inf"):
        raise ValueError(f"--epsilon must be positive and finite; got {args.epsilon:g}.")
    points = read_points(args.points, args.key, args.columns, args.header)
    filtration = DTMFiltration(
        m=args.m,
        bounds=parse_bounds(args.bounds, points.shape[1]),
        resolution=args.resolution,
        max_distance=args.max_distance,
    )
    private = PrivatePersistence(
        epsilon=args.epsilon,
        homology_dimensions=args.dimensions,
        max_points=args.max_points,
        random_state=args.seed,
    )
    functions = filtration.fit_transform([points])
    # Everything that can be wrong has been checked before anything is released.
    private.fit(functions)
    out = output_folder(args.out)
    diagrams = private.transform(functions)[0]
    write(out, private, filtration, functions[0], diagrams)
    print(private.privacy_guarantee_)
    for q, diagram in zip(private.homology_dimensions_, diagrams, strict=True):
        print(f"H{q}: {len(diagram)} point(s)")
        for birth, death in diagram:
            print(f"  born {birth:.4g}, died {death:.4g}, persistence {death - birth:.4g}")
    print(f"written to {out / 'diagram.json'} and {out / 'diagram.png'}")


def write(out, private, filtration, function, diagrams):
    """Write what is private or public, and nothing else."""
    from matplotlib.figure import Figure

    from sklearn_dptda.plotting import PersistenceDiagramDisplay

    guarantee = private.privacy_guarantee_
    low, high = filtration.bounds_
    content = {
        "guarantee": {
            "text": str(guarantee),
            "epsilon": guarantee.epsilon,
            "delta": guarantee.delta,
            "adjacency": guarantee.adjacency,
            "unit": guarantee.unit,
            "seeded": guarantee.seeded,
        },
        "parameters": {
            "statistic": function.statistic,
            "n_points": function.n_points,
            "bounds": [low.tolist(), high.tolist()],
            "resolution": list(function.shape),
            "sensitivity": function.sensitivity,
            "upper": function.upper,
            "max_points": private.max_points,
        },
        "diagrams": {
            f"H{q}": diagram.tolist()
            for q, diagram in zip(private.homology_dimensions_, diagrams, strict=True)
        },
    }
    (out / "diagram.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    axes = Figure(figsize=(4.6, 4.6), layout="constrained").subplots()
    display = PersistenceDiagramDisplay(
        diagrams, homology_dimensions=private.homology_dimensions_, upper=function.upper
    ).plot(ax=axes, title=f"private diagram, epsilon = {guarantee.epsilon:g}")
    display.figure_.savefig(out / "diagram.png", dpi=150)

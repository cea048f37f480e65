"""``python -m sklearn_dptda diagram``: a private diagram of the user's own points."""

from functools import partial

from sklearn.pipeline import make_pipeline

from sklearn_dptda._cli._arguments import (
    add_bounds,
    add_epsilon,
    add_function,
    add_table,
    fitted_functions,
    make_filtration,
)
from sklearn_dptda._cli._output import finite_or_none, write_csv, write_json, write_persistence
from sklearn_dptda._cli._paid_run import PAYING, add_paying, run_paid
from sklearn_dptda.persistence import PrivatePersistence, beyond_noise, not_empty

FILES = ("diagram.json", "diagram.csv", "diagram.pers", "diagram.png")
EPILOG = f"""\
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

{PAYING}
what is written:
  OUT/diagram.json   the private diagrams, the parameters and the guarantee
  OUT/diagram.csv    dimension, birth, death, and whether the point is beyond noise
  OUT/diagram.pers   the same for gudhi.read_persistence_intervals_in_dimension
  OUT/diagram.png    a picture of the same diagrams
"""
# What the fields say that are easily taken for each other.
_MEANING = {
    "beyond_noise": "for each point of a diagram: it persists longer than twice the error bound, "
    "so that it is near a feature of the exact diagram, or it is the component that never dies, "
    "which every cloud has, also one whose points are all outside the bounds",
    "not_empty": "for each dimension: some point persists longer than the noise floor, so that the "
    "exact diagram has a feature there; the component that never dies does not count",
    "clipped_share": "private share of the points outside the bounds, where --clipped-share asks "
    "for it: near one, the diagrams say nothing of the points",
}


def add_parser(subparsers, formatter):
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "diagram",
        help="release private persistence diagrams of a file of points",
        description="Release the persistence diagrams of a point cloud under differential "
        "privacy. One record is one row, replaced by another; the number of rows is public.",
        epilog=EPILOG,
        formatter_class=formatter,
    )
    add_table(parser, "one row per point")
    add_bounds(parser, required=True)
    add_epsilon(parser)
    add_function(parser)
    parser.add_argument("--max-points", type=int, default=10, help="per diagram (default 10)")
    parser.add_argument(
        "--clipped-share",
        action="store_true",
        help="release the share of the points outside the bounds as well, for a twentieth of "
        "epsilon",
    )
    add_paying(parser)
    parser.set_defaults(run=run)


def run(args):
    """Run the command."""
    filtration = make_filtration(args)
    private = PrivatePersistence(
        epsilon=args.epsilon,
        homology_dimensions=args.dimensions,
        max_points=args.max_points,
        clipped_share=args.clipped_share,
        random_state=args.seed,
    )

    def release(functions):
        return functions[0], private.transform(functions)[0]

    prepare = partial(fitted_functions, args, filtration, private)
    pipeline, write = make_pipeline(filtration, private), partial(_write, private, filtration)
    run_paid(args, pipeline, FILES, prepare, release, write, partial(_describe, private))


def _describe(private, result):
    yield private.privacy_guarantee_
    yield private.error_statement_
    if private.clipped_share:
        yield f"share of the points outside the bounds: {private.clipped_share_[0]:.2g}"
    flags = _flags(private, result[1])
    some = _some(private, result[1])
    for q, diagram, flagged, any_ in zip(
        private.homology_dimensions_, result[1], flags, some, strict=True
    ):
        more = ", not empty" if any_ else ""
        yield f"H{q}: {len(diagram)} point(s), {flagged.sum()} beyond noise{more}"
        for (birth, death), real in zip(diagram, flagged, strict=True):
            lives = f"  born {birth:.4g}, died {death:.4g}, persistence {death - birth:.4g}"
            yield lives if real else f"{lives}, may be noise"


def _flags(private, diagrams):
    """Which points of each diagram are beyond noise."""
    return [
        beyond_noise(diagram, private.error_bound_, dimension=q)
        for diagram, q in zip(diagrams, private.homology_dimensions_, strict=True)
    ]


def _some(private, diagrams):
    """Whether each diagram has anything but the component that never dies."""
    public = zip(diagrams, private.noise_floor_, private.homology_dimensions_, strict=True)
    return [not_empty(diagram, floor, dimension=q) for diagram, floor, q in public]


def _write(private, filtration, out, result):
    """Write what is private or public, and nothing else."""
    function, diagrams = result
    dimensions, flags = private.homology_dimensions_, _flags(private, diagrams)
    parameters = {
        "statistic": function.statistic,
        "n_points": function.n_points,
        "bounds": list(filtration.bounds_),
        "resolution": list(function.shape),
        "sensitivity": function.sensitivity,
        "upper": function.upper,
        "max_points": private.max_points,
    }
    write_json(
        out / "diagram.json",
        private.privacy_guarantee_,
        parameters=parameters,
        diagrams={f"H{q}": diagram for q, diagram in zip(dimensions, diagrams, strict=True)},
        beyond_noise={f"H{q}": flagged for q, flagged in zip(dimensions, flags, strict=True)},
        not_empty=dict(zip((f"H{q}" for q in dimensions), _some(private, diagrams), strict=True)),
        error_bound=finite_or_none(private.error_bound_),
        noise_floor=[finite_or_none(floor) for floor in private.noise_floor_],
        errors=private.error_statement_,
        meaning=_MEANING,
        **({"clipped_share": private.clipped_share_[0]} if private.clipped_share else {}),
    )
    rows = [
        (q, *point, int(real))
        for q, diagram, flagged in zip(dimensions, diagrams, flags, strict=True)
        for point, real in zip(diagram, flagged, strict=True)
    ]
    write_csv(out / "diagram.csv", ("dimension", "birth", "death", "beyond_noise"), rows)
    write_persistence(out / "diagram.pers", dimensions, diagrams)
    _draw(out / "diagram.png", private, function.upper, diagrams)


def _draw(path, private, upper, diagrams):
    from matplotlib.figure import Figure

    from sklearn_dptda.plotting import PersistenceDiagramDisplay

    axes = Figure(figsize=(4.6, 4.6), layout="constrained").subplots()
    display = PersistenceDiagramDisplay(
        diagrams,
        homology_dimensions=private.homology_dimensions_,
        upper=upper,
        error_bound=private.error_bound_,
        noise_floor=private.noise_floor_,
    ).plot(ax=axes, title=f"private diagram, epsilon = {private.epsilon:g}")
    display.figure_.savefig(path, dpi=150)

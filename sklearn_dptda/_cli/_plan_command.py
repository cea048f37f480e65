"""The command ``plan``: the smallest epsilon that shows a feature, before anything is spent."""

from matplotlib.figure import Figure

from sklearn_dptda._cli._command import (
    Command,
    add_bounds,
    add_dimensions,
    add_scale,
    at_least_one,
    output_folder,
    scaled_bounds,
)
from sklearn_dptda._cli._output import slow
from sklearn_dptda._cli._terminal import say
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.plotting import plot_release_plan


def _add_arguments(parser):
    parser.add_argument("--n", type=at_least_one, required=True, help="number of points")
    add_bounds(parser, required=True)
    add_scale(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--loop-radius", type=float, help="radius of the loop to be detected")
    what.add_argument(
        "--persistence", type=float, help="persistence of the feature to be detected, at mass M"
    )
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of the points on the loop (default 1)"
    )
    parser.add_argument(
        "--spread",
        type=float,
        default=0.0,
        help="standard deviation of the distance of the points from the loop (default 0)",
    )
    parser.add_argument(
        "--feature", type=int, default=1, help="dimension of the feature (default 1, loops)"
    )
    parser.add_argument("--m", type=float, help="mass (default for a loop: the best of 13 values)")
    parser.add_argument(
        "--coordinates",
        type=int,
        help="number of coordinates of a point (default: that of the box, or 2)",
    )
    add_dimensions(parser)
    parser.add_argument(
        "--max-points",
        type=int,
        default=10,
        help="largest number of points in each diagram (default 10)",
    )
    parser.add_argument(
        "--stand-out",
        type=int,
        default=2,
        help="largest number of features that stand out in a dimension (default 2)",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        help="probability with which the feature stands out (default 0.95)",
    )
    parser.add_argument("-o", "--out", help="folder for the picture")


def _run(args):
    with slow("searching for the smallest epsilon"):
        plan = plan_release(
            args.n,
            scaled_bounds(args),
            loop_radius=args.loop_radius,
            share=args.share,
            spread=args.spread,
            persistence=args.persistence,
            homology_dimension=args.feature,
            m=args.m,
            n_dims=args.coordinates,
            max_distance=args.max_distance,
            private=PrivatePersistence(
                homology_dimensions=args.dimensions, max_points=args.max_points
            ),
            n_features=args.stand_out,
            confidence=args.confidence,
        )
    say(
        *str(plan).splitlines(),
        "command for this plan, with your file of points:",
        f"  {_next_command(args, plan)}",
    )
    if args.out is not None:
        path = output_folder(args.out) / "plan.png"
        # An earlier picture is replaced. If it is a link, its target stays.
        path.unlink(missing_ok=True)
        with slow("drawing"):
            figure = Figure(figsize=(5.4, 3.8), layout="constrained")
            plot_release_plan(plan, figure.subplots())
            figure.savefig(path, dpi=150)
        say(f"written to {path}")


def _next_command(args, plan):
    words = ["python -m sklearn_dptda diagram points.csv --bounds", *map(repr, args.bounds)]
    words += [f"--epsilon {plan.epsilon!r} --m {plan.m!r} --resolution {plan.resolution}"]
    if args.scale != [1.0]:
        words += ["--scale", *map(repr, args.scale)]
    if args.dimensions != [0, 1]:
        words += ["--dimensions", *map(str, args.dimensions)]
    if not isinstance(plan.max_distance, str):
        words += [f"--max-distance {plan.max_distance!r}"]
    if args.max_points != 10:
        words += [f"--max-points {args.max_points}"]
    return " ".join(words)


PLAN = Command(
    name="plan",
    description="Print the smallest epsilon at which a private diagram shows a feature, and the\n"
    "matching 'diagram' command. This command reads no file, releases nothing and\n"
    "pays nothing.",
    epilog="""\
examples:
  python -m sklearn_dptda plan --n 800 --bounds -1.5 1.5 --loop-radius 1 --spread 0.1
  python -m sklearn_dptda plan --n 800 --bounds -1.5 1.5 --persistence 0.5 --m 0.2 --feature 0

No file is read and nothing is paid. All numbers must be public: you must know them without
looking at the records. The last line of the output is the command that makes the release.

choosing the numbers:
  --n            the number of points in the file
  --bounds       the public box: LOW HIGH, or LOW HIGH for each coordinate
  --loop-radius  use this to plan for a loop: points around a circle of this radius. --spread
                 is the standard deviation of their distance from the circle, and --share is
                 the share of all points that lie around it. Points inside the loop hide it.
  --persistence  use this if you know the persistence of a feature at the mass --m. Two small
                 groups that are far apart form a component (--feature 0) whose persistence is
                 half of their distance.
  --dimensions   a diagram of loops alone (--dimensions 1) shows them at a smaller epsilon
                 than a diagram of components and loops (--dimensions 0 1).

At the printed epsilon, the feature stands out with the probability --confidence in every diagram
that has at most --stand-out long features in each dimension. Half of this epsilon is often enough,
but then there is no guarantee. If the epsilon is too large, use more points, a smaller box or
fewer dimensions.

what is written, if OUT is given:
  OUT/plan.png   a picture of the features that are visible at each epsilon
""",
    add_arguments=_add_arguments,
    run=_run,
)

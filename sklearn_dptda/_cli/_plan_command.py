"""The command ``plan``: which epsilon shows a feature, before anything is spent."""

from matplotlib.figure import Figure

from sklearn_dptda._cli._command import (
    Command,
    add_bounds,
    add_dimensions,
    at_least_one,
    output_folder,
    parse_bounds,
)
from sklearn_dptda._cli._output import slow
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.plotting import ReleasePlanDisplay


def _add_arguments(parser):
    parser.add_argument("--n", type=at_least_one, required=True, help="number of points")
    add_bounds(parser, required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--loop-radius", type=float, help="radius of the loop to be seen")
    what.add_argument("--persistence", type=float, help="or how long a feature lives, at mass M")
    parser.add_argument(
        "--share", type=float, default=1.0, help="part of the points on it (default 1)"
    )
    parser.add_argument(
        "--spread", type=float, default=0.0, help="deviation of the points off it (default 0)"
    )
    parser.add_argument(
        "--feature", type=int, default=1, help="dimension of the feature (default 1, loops)"
    )
    parser.add_argument("--m", type=float, help="mass (default for a loop: the best of thirteen)")
    parser.add_argument("--coordinates", type=int, help="of a point (default: of the box, or 2)")
    add_dimensions(parser)
    parser.add_argument("--max-points", type=int, default=10, help="per diagram (default 10)")
    parser.add_argument(
        "--stand-out", type=int, default=2, help="features that stand out, at most (default 2)"
    )
    parser.add_argument("--confidence", type=float, default=0.95, help="(default 0.95)")
    parser.add_argument("-o", "--out", help="folder for the picture")


def _run(args):
    with slow("searching for the least epsilon"):
        plan = plan_release(
            args.n,
            parse_bounds(args.bounds),
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
    print(plan)
    print("the command for it, with your file of points:")
    print(f"  {_next_command(args, plan)}")
    if args.out is not None:
        path = output_folder(args.out) / "plan.png"
        with slow("drawing"):
            axes = Figure(figsize=(5.4, 3.8), layout="constrained").subplots()
            ReleasePlanDisplay(plan).plot(ax=axes).figure_.savefig(path, dpi=150)
        print(f"written to {path}")


def _next_command(args, plan):
    words = ["python -m sklearn_dptda diagram points.csv --bounds", *map(repr, args.bounds)]
    words += [f"--epsilon {plan.epsilon!r} --m {plan.m!r} --resolution {plan.resolution}"]
    if args.dimensions != [0, 1]:
        words += ["--dimensions", *map(str, args.dimensions)]
    if not isinstance(plan.max_distance, str):
        words += [f"--max-distance {plan.max_distance!r}"]
    if args.max_points != 10:
        words += [f"--max-points {args.max_points}"]
    return " ".join(words)


PLAN = Command(
    name="plan",
    description="Print the least epsilon at which a private diagram shows a feature, and the "
    "command for it. Nothing is read, released or paid.",
    epilog="""\
examples:
  python -m sklearn_dptda plan --n 800 --bounds -1.5 1.5 --loop-radius 1 --spread 0.1
  python -m sklearn_dptda plan --n 800 --bounds -1.5 1.5 --persistence 0.5 --m 0.2 --feature 0

No file is read and nothing is paid: all numbers are public, and have to be known without a
look at the records. What is printed last is the command that makes the release.

choosing the numbers:
  --n            how many points the file has
  --bounds       as for 'diagram': LOW HIGH, or LOW HIGH for each coordinate
  --loop-radius  you want to see a loop: points around a circle of this radius. --spread says how
                 far off the circle they lie (standard deviation), --share which part of all
                 points is on it. Points that fill the loop hide it.
  --persistence  or you know how long a feature lives, at the mass --m. Two small groups far
                 apart make a component (--feature 0) that lives for half of their distance.
  --dimensions   a diagram of loops alone (--dimensions 1) shows them at a part of the epsilon
                 that components and loops (0 1) take.

The epsilon is that at which the feature stands out, with the probability --confidence, in any
diagram of at most --stand-out long features in each dimension. Half of it is often enough, and
promises nothing. If it is too much: more points, a smaller box, or fewer dimensions.

what is written, if OUT is given:
  OUT/plan.png   what is seen at which epsilon
""",
    add_arguments=_add_arguments,
    run=_run,
)

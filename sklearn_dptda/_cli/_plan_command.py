"""The command ``plan``: the smallest epsilon that shows a feature, before anything is spent."""

import numpy as np
from matplotlib.figure import Figure

from sklearn_dptda._cli._command import Command
from sklearn_dptda._cli._diagram_commands import SCALE_ARGUMENT, Diagram, in_units
from sklearn_dptda._cli._output import output_folder, slow
from sklearn_dptda._cli._terminal import say
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.plotting import plot_release_plan


class Plan(Command):
    """Print the smallest epsilon at which a private diagram shows a feature.

    The command also prints the matching 'diagram' command. It reads no file, releases nothing and
    pays nothing.

    example:
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

    At the printed epsilon, the feature stands out with the probability --confidence in every
    diagram that has at most --stand-out long features in each dimension. Half of this epsilon is
    often enough, but then there is no guarantee. If the epsilon is too large, use more points, a
    smaller box or fewer dimensions.

    what is written, if OUT is given:
      OUT/plan.png   a picture of the features that are visible at each epsilon
    """

    name = "plan"
    arguments = SCALE_ARGUMENT | {"-o --out": {"help": "folder for the picture"}}
    kinds = (plan_release, PrivatePersistence)
    # A plan is for the release of the command diagram.
    hidden = frozenset({"private", "epsilon", "clipped_share"})
    names = {
        "n_points": "n",
        "homology_dimension": "feature",
        "n_dims": "coordinates",
        "n_features": "stand-out",
        **Diagram.names,
    }

    def run(self):
        public, of_release = (self.given(kind) for kind in self.kinds)
        public["bounds"] = in_units(self.args.scale or [1.0], public["bounds"])
        with slow("searching for the smallest epsilon"):
            plan = plan_release(**public, private=PrivatePersistence(**of_release))
        say(
            *str(plan).splitlines(),
            "command for this plan, with your file of points:",
            f"  {self._next_command(plan)}",
        )
        if self.args.out is not None:
            path = output_folder(self.args.out) / "plan.png"
            # An earlier picture is replaced. If it is a link, its target stays.
            path.unlink(missing_ok=True)
            with slow("drawing"):
                figure = Figure(figsize=(5.4, 3.8), layout="constrained")
                plot_release_plan(plan, figure.subplots())
                figure.savefig(path, dpi=150)
            say(f"written to {path}")

    def _next_command(self, plan):
        words = [
            "python -m sklearn_dptda diagram points.csv --bounds",
            *map(repr, self.args.bounds),
        ]
        words += [f"--epsilon {plan.epsilon!r} --m {plan.m!r} --resolution {plan.resolution}"]
        if self.args.scale is not None:
            words += ["--scale", *map(repr, self.args.scale)]
        if not isinstance(plan.max_distance, str):
            words += [f"--max-distance {plan.max_distance!r}"]
        flags = self.flags()
        for name, value in self.given(PrivatePersistence).items():
            words += [flags[name], *map(str, np.atleast_1d(value))]
        return " ".join(words)

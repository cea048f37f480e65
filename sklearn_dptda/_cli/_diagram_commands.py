"""The commands ``diagram``, ``betti`` and ``plan``: persistence of the distance-to-measure.

The command ``plan`` finds the smallest epsilon that shows a feature, before anything is spent.
"""

import math
from functools import cached_property

import numpy as np
from sklearn.pipeline import make_pipeline

from sklearn_dptda._cli._command import SEVERAL, Command
from sklearn_dptda._cli._output import new_figure, output_folder, rounded_probability, slow
from sklearn_dptda._cli._paid_run import PayingCommand
from sklearn_dptda._cli._read_points import TABLE_ARGUMENTS
from sklearn_dptda._cli._terminal import say
from sklearn_dptda.filtration import DTMFiltration
from sklearn_dptda.filtration._grid_filtration import remark_on_sides
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.persistence import (
    PrivateBettiNumbers,
    PrivatePersistence,
    beyond_noise,
    not_empty,
)
from sklearn_dptda.plotting import PersistenceDiagramDisplay, plot_release_plan

# Points of at least this probability count as features.
_PROBABLE = 0.95
# Share of points outside the bounds from which on a diagram may show the border of the box.
_LARGE_CLIPPED_SHARE = 0.05
# The JSON file explains the fields that are easily confused with each other.
_MEANING = {
    "probability": "the probability that the exact diagram has a feature closer to a point than "
    "the diagonal, given this release. It holds on average over a public prior",
    "beyond_noise": "a statement without a prior, for every exact diagram with few long features: "
    "true for a point of a diagram that persists longer than twice the error bound, so that it is "
    "near a feature of the exact diagram. It is also true for the essential class of dimension 0, "
    "the component that never dies, which every cloud has, even if all its points are outside the "
    "bounds",
    "not_empty": "true for a dimension in which some point persists longer than the noise floor, "
    "so that the exact diagram has a feature there. The component that never dies does not count",
    "clipped_share": "private share of the points outside the bounds, released with "
    "--clipped-share. If it is near 1, the diagrams contain no information about the points",
}


SCALE_ARGUMENT = {
    "--scale": SEVERAL
    | {
        "type": float,
        "metavar": "UNIT",
        "help": "public numbers by which the coordinates and their bounds are divided, one for all "
        "or one for each coordinate, so that distances in all of them are comparable (default 1)",
    }
}


def in_units(scale, bounds):
    """Return the public box in units of the scale."""
    if not all(0 < unit < math.inf for unit in scale):
        raise ValueError("--scale takes positive, finite numbers.")
    axes = max(map(np.size, bounds))
    if axes > 1 and len(scale) not in (1, axes):
        raise ValueError(f"--scale and --bounds differ: {len(scale)} and {axes} axes.")
    units = scale[0] if len(scale) == 1 else scale
    return tuple(np.divide(end, units).tolist() for end in bounds)


class PointsCommand(PayingCommand):
    """A release of a cloud of points, in units of public numbers."""

    arguments = TABLE_ARGUMENTS | SCALE_ARGUMENT

    def __init__(self, args):
        self.args, self.scale = args, args.scale or [1.0]
        # Whether the cloud is a list of people.
        self.groups = None if args.groups is None else True
        super().__init__(args)

    def prepare(self):
        """Return the cloud, or the points of each person in it."""
        points = super().prepare()
        if len(self.scale) not in (1, points.shape[1]):
            raise ValueError(
                f"--scale takes 1 number, or one for each of the {points.shape[1]} coordinates; "
                f"got {len(self.scale)}."
            )
        points = points / self.scale
        if self.records.ids is None:
            return points
        _, numbers, counts = np.unique(self.records.ids, return_inverse=True, return_counts=True)
        return np.split(points[np.argsort(numbers, kind="stable")], np.cumsum(counts)[:-1])


class _FunctionCommand(PointsCommand):
    """A release computed from the distance-to-measure of points."""

    required = frozenset({"bounds"})
    names = {"homology_dimensions": "dimensions"}

    def __init__(self, args):
        super().__init__(args)
        given = self.given(DTMFiltration)
        self.bounds = in_units(self.scale, given.pop("bounds"))
        self.filtration = DTMFiltration(**given, bounds=self.bounds, groups=self.groups)
        # For a single number, the results would be no lists.
        dimensions = np.atleast_1d(self.private.homology_dimensions).tolist()
        self.private.set_params(homology_dimensions=dimensions)
        self.planned = make_pipeline(self.filtration, self.private)
        self.estimators = [self.filtration, self.private]

    def prepare(self):
        # Both estimators check their input before anything is paid.
        functions = self.filtration.fit_transform([super().prepare()])
        self.private.fit(functions)
        return functions

    def remarks(self):
        if remark := remark_on_sides(*map(np.atleast_1d, self.bounds)):
            yield f"warning: {remark}"

    def public_parameters(self, function):
        """Return the public numbers of the function, for the JSON file."""
        return {
            "statistic": function.statistic,
            "m": self.filtration.m,
            "n_points": function.n_points,
            "bounds": list(self.filtration.bounds_),
            "scale": self.scale,
            "resolution": list(function.shape),
            "sensitivity": function.sensitivity,
            "upper": function.upper,
        }

    def by_dimension(self, values):
        """Map the name of each homology dimension to its value."""
        names = (f"H{q}" for q in self.private.homology_dimensions_)
        return dict(zip(names, values, strict=True))


class Diagram(_FunctionCommand):
    """Release the persistence diagrams of a point cloud under differential privacy.

    The privacy unit is one row, or one person with --groups, which may be replaced by another; the
    number of rows or people is public.

    example:
      python -m sklearn_dptda diagram points.csv --bounds -3 3.5 --epsilon 1 --m 0.1 -o out

    choosing the numbers:
      --bounds   a box that you know without looking at the data, such as the range of a
                 sensor, the limits of a map or the limits of a form. Two numbers apply to
                 every coordinate. For different limits, give two numbers per coordinate:
                 --bounds -180 180 -90 90. Points outside the box are clipped to it.
                 The noise is proportional to the size of the box.
      --epsilon  the privacy loss: 0.1 is strong protection, 1 is usual, 10 is weak. Each
                 run spends it again.
      --m        the share of the points that each value of the function depends on. A
                 larger share means less noise, but it blurs features that contain fewer
                 points.

    what is written:
      OUT/diagram.json   the private diagrams, the parameters and the guarantee
      OUT/diagram.csv    dimension, birth and death of each point, how probable it is, and
                         whether it is beyond noise
      OUT/diagram.pers   the points in the format of
                         gudhi.read_persistence_intervals_in_dimension
      OUT/diagram.png    a picture of the diagrams
    """

    name = "diagram"
    files = ("diagram.json", "diagram.csv", "diagram.pers", "diagram.png")
    kinds = (DTMFiltration, PrivatePersistence)

    def remarks(self):
        yield from super().remarks()
        yield "The command plan shows the error of a diagram before it is paid for."

    def release(self, functions):
        private = self.private
        self.function, self.diagrams = functions[0], private.transform(functions)[0]
        floors, bound = private.noise_floor_, private.error_bounds_[0]
        by_dimension = list(zip(private.homology_dimensions_, self.diagrams, floors, strict=True))
        # For each diagram: which of its points are beyond noise, and whether the exact diagram
        # contains more than the essential class.
        self.beyond_noise = [beyond_noise(d, bound, dimension=q) for q, d, _ in by_dimension]
        self.not_empty = [not_empty(d, floor, dimension=q) for q, d, floor in by_dimension]

    @cached_property
    def probability(self):
        """How probable each point is, and why it is unknown, if it is.

        The release has been paid for, so it is written in any case.
        """
        try:
            posterior = self.private.posterior([self.diagrams])[0]
        except (ValueError, MemoryError) as error:
            return [np.full(len(d), np.nan) for d in self.diagrams], str(error)
        return posterior.probability, posterior.message

    def describe(self):
        private, (stated, why_unknown) = self.private, self.probability
        if why_unknown:
            yield f"The probabilities of the points are unknown: {why_unknown}"
        parts = private.homology_dimensions_, self.diagrams, stated
        for q, diagram, probability in zip(*parts, strict=True):
            yield f"H{q}: {_summary(probability, dimension=q)}"
            # Under an infinite error bound, only the component that never dies is beyond noise.
            never_dies = beyond_noise(diagram, math.inf, dimension=q)
            for (birth, death), p, lasts in zip(diagram, probability, never_dies, strict=True):
                died = "never dies: counted up to" if lasts else "died"
                lives = f"  born {birth:.4g}, {died} {death:.4g}, persistence {death - birth:.4g}"
                yield (
                    lives
                    if lasts or math.isnan(p)
                    else f"{lives}, probability {rounded_probability(p)}"
                )
        if private.cap_[0] < self.function.upper:
            yield (
                f"Distances were capped at {private.cap_[0]:.3g}. This cap was chosen privately "
                "with the diagrams. Relative to the exact diagram under this cap, points move by "
                f"at most {private.error_bounds_[0]:.3g}."
            )
        yield f"Whatever the data are: {private.error_statement_}"
        if self.private.clipped_share:
            yield from _about_clipping(private.clipped_share_[0])

    def content(self):
        private, function = self.private, self.function
        content = {
            "parameters": {
                **self.public_parameters(function),
                "max_points": private.max_points,
            },
            "diagrams": self.by_dimension(self.diagrams),
            "probability": self.by_dimension(self.probability[0]),
            "beyond_noise": self.by_dimension(self.beyond_noise),
            "not_empty": self.by_dimension(self.not_empty),
            "error_bound": private.error_bound_,
            "cap": private.cap_[0],
            "error_bound_under_cap": private.error_bounds_[0],
            "noise_floor": private.noise_floor_,
            "errors": private.error_statement_,
            "meaning": _MEANING,
        }
        if private.clipped_share:
            content["clipped_share"] = private.clipped_share_[0]
        return content

    def _points(self):
        """Yield the dimension, birth, death, probability and flag of each point."""
        parts = self.private.homology_dimensions_, self.diagrams
        stated = self.probability[0], self.beyond_noise
        for q, diagram, probability, flags in zip(*parts, *stated, strict=True):
            for (birth, death), p, real in zip(diagram, probability, flags, strict=True):
                yield q, float(birth), float(death), float(p), int(real)

    def table(self):
        return ("dimension", "birth", "death", "probability", "beyond_noise"), self._points()

    def write_file(self, path):
        if path.suffix == ".pers":
            # The text format of GUDHI.
            lines = (f"{q} {birth!r} {death!r}\n" for q, birth, death, *_ in self._points())
            path.write_text("".join(lines), encoding="utf-8")
        elif path.suffix == ".png":
            figure = new_figure(4.6, 4.6)
            display = self.picture().plot(figure.subplots())
            display.ax_.set_title(f"private diagram, epsilon = {self.private.epsilon:g}")
            figure.savefig(path, dpi=150)
        else:
            super().write_file(path)

    def picture(self):
        return PersistenceDiagramDisplay(
            self.diagrams,
            homology_dimensions=self.private.homology_dimensions_,
            upper=self.function.upper,
            probability=self.probability[0],
            error_bound=self.private.error_bounds_[0],
            noise_floor=self.private.noise_floor_,
        )


def _summary(probability, *, dimension):
    """Describe in one line how many points of a diagram are probable."""
    n = len(probability)
    counted = "1 point" if n == 1 else f"{n} points"
    if np.isnan(probability).any():
        return counted
    probable = int((probability >= _PROBABLE).sum())
    included = ", including the component that never dies, which every cloud has"
    return (
        f"{counted}, {probable} with a probability of at least {_PROBABLE}"
        f"{included if dimension == 0 and n else ''}"
    )


def _about_clipping(share):
    """Return the private share of points outside the bounds, and a warning if it is large."""
    yield f"share of the points outside the bounds: {share:.2g}"
    if share > _LARGE_CLIPPED_SHARE:
        yield (
            f"warning: about {100 * share:.0f} % of the points lie outside the bounds and were "
            "moved to the border, which can show as a loop that the data do not have. Choose wider "
            "bounds."
        )


class Betti(_FunctionCommand):
    """Release the numbers of long-lived components and loops under differential privacy.

    The privacy unit is one row, or one person with --groups, which may be replaced by another; the
    number of rows or people is public.

    example:
      python -m sklearn_dptda betti points.csv --bounds -3 3.5 --epsilon 0.3 --m 0.2 --threshold 0.2

    A count needs about a quarter of the epsilon of a diagram. It is the number of features of the
    distance-to-measure whose persistence (death minus birth, in the units of the coordinates) is
    above the threshold. Choose the threshold from your knowledge of the application, not from the
    data. Without --threshold, the command privately chooses a low threshold that is far from all
    persistences, and writes it together with the counts.

    what is written:
      OUT/betti.json   the counts, the probability of each number of features, a statement that
                       holds with the probability --confidence, and the guarantee
      OUT/betti.csv    dimension, count, and the probability that the count is right
    """

    name = "betti"
    files = ("betti.json", "betti.csv")
    kinds = (DTMFiltration, PrivateBettiNumbers)

    def release(self, functions):
        self.function, self.counts = functions[0], self.private.transform(functions)

    @cached_property
    def probability(self):
        """Return the probability of each number of features, by dimension."""
        try:
            return self.private.posterior(self.counts)[0]
        except (ValueError, MemoryError):
            # The release has been paid for, so it is written in any case.
            return [np.full(self.private.max_count + 1, np.nan) for _ in self.counts[0]]

    def describe(self):
        counts = self.counts
        if self.private.threshold is None:
            yield f"threshold {self.private.thresholds_[0]:.3g}, chosen privately with the counts"
        for (name, count), law in zip(
            self.by_dimension(counts[0]).items(), self.probability, strict=True
        ):
            more = " or more" if count == self.private.max_count else ""
            known = "unknown" if np.isnan(law).any() else rounded_probability(law[count])
            yield f"{name}: {count:g}{more}, probability {known}"
        yield f"For every data set: {self.private.statements(counts)[0]}"

    def content(self):
        private, function, counts = self.private, self.function, self.counts
        cap = function.upper if private.threshold is not None else private.cap_[0]
        drawn = {}
        if private.threshold is None:
            drawn = {"drawn": {"threshold": private.thresholds_[0], "cap": private.cap_[0]}}
        return {
            "parameters": {
                **self.public_parameters(function),
                "threshold": private.threshold,
                "max_count": private.max_count,
            },
            "cap": cap,
            **drawn,
            "counts": self.by_dimension(map(int, counts[0])),
            "probability": self.by_dimension(self.probability),
            "statement": private.statements(counts)[0],
        }

    def table(self):
        rows = zip(self.private.homology_dimensions_, self.counts[0], self.probability, strict=True)
        return ("dimension", "count", "probability"), [
            (q, int(count), law[count]) for q, count, law in rows
        ]


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
                figure = new_figure(5.4, 3.8)
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

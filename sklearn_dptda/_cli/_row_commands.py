"""The commands ``cluster``, ``synthesize`` and ``bounds``: releases of a table of rows."""

import math
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import clone

from sklearn_dptda._cli._command import (
    Command,
    add_adjacency,
    add_bounds,
    add_epsilon,
    add_table,
    at_least_one,
    parse_bounds,
    table_options,
)
from sklearn_dptda._cli._gaps import column_places
from sklearn_dptda._cli._output import finite_or_nulls, refuse_formulas
from sklearn_dptda._cli._paid_run import PAYING_HELP, CommandRelease, add_paying, run_paid
from sklearn_dptda._cli._read_points import as_numbers, read_table
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPTree
from sklearn_dptda.metric_privacy import PrivateMeasure
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.published import DPCube

KINDS = {"morse": DPMoGMorse, "mixture": DPMoG, "kmeans": DPLloyd, "tree": DPTree, "cube": DPCube}
# Kinds with Gaussian noise, which have no pure guarantee.
_NEEDS_DELTA = ("morse", "mixture")
# Private bounds are refused if there are more columns than the first number and if the bounds need
# more rows than the second.
_MAX_COLUMNS_UNCHECKED, _MAX_ROWS_NEEDED = 32, 5000
# Largest number of columns whose noise is printed one by one.
_MAX_COLUMNS_PRINTED = 5


class _RowRelease(CommandRelease):
    """A release of rows, which belong to people if there is a column of ids."""

    def __init__(self, args, private):
        super().__init__(args, private)
        self.planned = clone(private).set_params(groups=args.groups)

    def fit(self, rows):
        """Pay, and learn from the rows."""
        return self.private.fit(rows, groups=self.ids)

    def release(self, data):
        return self.fit(data)


class ClusterRelease(_RowRelease):
    """The weights, means and shapes of clusters."""

    files = ("clusters.json", "clusters.csv")

    def __init__(self, args):
        if args.delta == 0 and args.kind in _NEEDS_DELTA:
            raise ValueError(
                f"--delta must be positive for --kind {args.kind}, because its noise is Gaussian. "
                "For pure differential privacy, use --kind kmeans, tree or cube with --delta 0."
            )
        name = "n_components" if args.kind == "mixture" else "n_clusters"
        private = KINDS[args.kind](
            epsilon=args.epsilon,
            delta=args.delta,
            bounds=parse_bounds(args.bounds),
            adjacency=args.adjacency,
            random_state=args.seed,
            **({} if args.n_clusters is None else {name: args.n_clusters}),
        )
        super().__init__(args, private)

    def prepare(self):
        rows = super().prepare()
        width = rows.shape[1]
        # The decision may depend on the number of rows only if that number is public.
        is_public = self.args.adjacency == "replace-one"
        enough = max(len(rows) if is_public else 0, _MAX_ROWS_NEEDED)
        needed = self.planned._rows_for_bounds(width)
        if width > _MAX_COLUMNS_UNCHECKED and needed > enough:
            advice = "If you have this many rows, and their number is public, pass --adjacency "
            raise ValueError(
                f"private bounds of {width} columns at --epsilon {self.args.epsilon:g} need about "
                f"{math.ceil(needed):,} rows; with fewer rows they are mostly noise. Pass --bounds "
                "(which cost nothing), fewer --columns, or a larger --epsilon."
                f"{'' if is_public else f' {advice}replace-one.'}"
            )
        return rows

    def _components(self):
        """Return the cluster and the mean of each component."""
        private = self.private
        means = private.means_ if hasattr(private, "means_") else private.cluster_centers_
        return getattr(private, "component_labels_", np.arange(len(means))), means

    def _noise_of_means(self):
        private = self.private
        kept = getattr(private, "means_noise_", None)
        return private.cluster_centers_noise_ if kept is None else kept

    def _merged(self):
        """Return weight and centre of each cluster, if clusters can have several components."""
        private = self.private
        if not hasattr(private, "component_labels_"):
            return {}
        labels, means = self._components()
        belongs = np.unique(labels)[:, None] == labels
        weights = np.where(belongs, private.weights_, 0.0)
        totals = weights.sum(axis=1, keepdims=True)
        # Without weight, each component of a cluster counts the same.
        shares = np.where(totals > 0, weights, belongs)
        centres = shares / shares.sum(axis=1, keepdims=True) @ means
        return {"cluster_weights": totals[:, 0], "cluster_means": centres}

    def _noise(self):
        """Return one line about the privacy noise, from private output and public scales."""
        private, noise = self.private, self._noise_of_means().max(axis=0)
        if len(noise) <= _MAX_COLUMNS_PRINTED:
            names = (label.short() for label in self.labels)
            means = ", ".join(f"{sd:.2g} ({name})" for sd, name in zip(noise, names, strict=True))
        else:
            low, high = private.bounds_
            means = f"{(noise / (high - low)).max():.2g} times the width of the bounds"
        doubtful = int(private.within_noise_.sum())
        may = f"; {doubtful} of {len(private.weights_)} components may be noise" * bool(doubtful)
        return (
            "standard deviation of the privacy noise: at most "
            f"{private.weights_noise_.max():.2g} in the weights, and in the means {means}{may}"
        )

    def describe(self, private):
        labels, _ = self._components()
        weights = [private.weights_[labels == label].sum() for label in np.unique(labels)]
        yield f"{len(weights)} cluster(s) of weight {', '.join(f'{w:.3g}' for w in weights)}"
        yield self._noise()
        yield f"share of rows outside the bounds: {private.clipped_share_:.2g}"

    def content(self, private):
        labels, means = self._components()
        shapes = {
            name: getattr(private, f"{name}_")
            for name in ("covariances", "covariance_type", "n_clusters_stability")
            if hasattr(private, f"{name}_")
        }
        return {
            "kind": self.args.kind,
            "columns": [label.short() for label in self.labels],
            "weights": private.weights_,
            "means": means,
            "clusters": labels,
            **self._merged(),
            "weights_noise": finite_or_nulls(private.weights_noise_),
            "means_noise": finite_or_nulls(self._noise_of_means()),
            "within_noise": private.within_noise_,
            **shapes,
            "bounds": list(private.bounds_),
            "clipped_share": private.clipped_share_,
        }

    def table(self, private):
        labels, means = self._components()
        columns = (f"mean_{label.short()}" for label in self.labels)
        header = ["component", "cluster", "weight", *columns]
        return header, zip(range(len(means)), labels, private.weights_, *means.T, strict=True)


def _add_cluster(parser):
    add_table(parser)
    parser.add_argument(
        "--kind", choices=list(KINDS), default="morse", help="kind of clusters (default morse)"
    )
    parser.add_argument("--n-clusters", type=at_least_one, help="number of clusters")
    add_epsilon(parser)
    parser.add_argument(
        "--delta", type=float, default=1e-6, help="delta of the guarantee (default 1e-6)"
    )
    add_bounds(parser, missing=" (default: estimated privately)")
    add_adjacency(parser)
    add_paying(parser)


CLUSTER = Command(
    name="cluster",
    description="Release weights, means and shapes of clusters under differential privacy. The\n"
    "privacy unit is one row, or one person with --groups.",
    epilog=f"""\
example:
  python -m sklearn_dptda cluster rows.csv --n-clusters 3 --epsilon 1 --bounds -10 10 -o out

choosing the kind:
  morse      a mixture whose components are merged into clusters of any shape. Without
             --n-clusters, it estimates the number of clusters
  mixture    a mixture of --n-clusters Gaussian components
  kmeans, tree, cube
             round clusters, with pure differential privacy if --delta is 0

bounds:
  A box that you know without looking at the rows. If you leave it out, the command spends
  a part of epsilon on estimating the bounds, and releases them as well.

{PAYING_HELP}
what is written:
  OUT/clusters.json  the names of the columns, weights, means, covariances (if the kind has
                     them), the standard deviation of the noise, bounds, the share of rows
                     outside the bounds, and the guarantee. For --kind morse also the weight
                     and the mean of each cluster, from its components
  OUT/clusters.csv   one line for each component: its cluster, weight and mean. With
                     --header, the columns of the means have the names of your columns,
                     which must therefore be public
  Labels of the rows are not written, because they are not private. To label a row that you
  have, assign it to the most likely or nearest cluster. Protect the label like the row.
""",
    add_arguments=_add_cluster,
    run=partial(run_paid, ClusterRelease),
)


class SynthesizeRelease(_RowRelease):
    """Synthetic rows that are drawn from a private measure on a box."""

    files = ("synthetic.csv", "synthetic.json")

    def __init__(self, args):
        if args.bounds is not None and args.column_bounds:
            raise ValueError(
                "--bounds applies to all columns, and --column-bounds to single columns: give one "
                "of them."
            )
        self.categories = [_parse_categories(text) for text in args.categories]
        for _, values in self.categories:
            refuse_formulas("--categories", values)
        self.intervals = [_parse_interval(name, ends) for name, *ends in args.column_bounds]
        private = PrivateMeasure(
            epsilon=args.epsilon,
            bounds=parse_bounds(args.bounds),
            adjacency=args.adjacency,
            random_state=args.seed,
        )
        super().__init__(args, private)

    def prepare(self):
        args = self.args
        names, table, labels, self.ids = read_table(args.points, **table_options(args))
        parquet = Path(args.points).suffix.lower() in (".parquet", ".pq")
        if names is not None and args.header is None and not parquet:
            raise ValueError(
                "the first row may contain the names of the columns or be a record. The names are "
                "written to the output, so you must say which: pass --header or --no-header."
            )
        names = names or [f"x{j}" for j in range(table.shape[1])]
        refuse_formulas("names of columns", names)
        choices = _by_place("--categories", self.categories, names)
        integers = column_places("--integers", args.integers, names, len(names))
        if not choices.keys().isdisjoint(integers):
            raise ValueError(
                "--integers names a column of --categories: name it in one of the two options only."
            )
        if self.intervals:
            self.private.set_params(bounds=_by_place("--column-bounds", self.intervals, names))
        if choices:
            self.private.set_params(categories=choices)
        return names, _typed(args.points, table, labels, choices), integers

    def release(self, data):
        names, rows, integers = data
        drawn = self.fit(rows).sample(self.args.rows, random_state=self.args.seed)
        for j in integers:
            drawn[:, j] = np.rint(drawn[:, j].astype(float))
        return names, drawn, integers

    def describe(self, result):
        yield f"{len(result[1])} synthetic rows"

    def content(self, result):
        names, rows, _ = result
        return {
            "n_rows": len(rows),
            "private_number_of_rows": self.private.n_samples_,
            "columns": names,
            "bounds": list(self.private.bounds_),
        }

    def table(self, result):
        names, rows, integers = result
        columns = [
            [int(value) for value in column] if j in integers else column.tolist()
            for j, column in enumerate(rows.T)
        ]
        return names, zip(*columns, strict=True)


def _typed(path, table, labels, choices):
    """Return the table with texts in the columns of categories, and floats in the others."""
    numeric = [j for j in range(table.shape[1]) if j not in choices]
    numbers = as_numbers(path, table[:, numeric], [labels[j] for j in numeric])
    if not choices:
        return numbers
    typed = np.empty(table.shape, dtype=object)
    typed[:, numeric] = numbers
    for j in choices:
        typed[:, j] = [str(cell) for cell in table[:, j]]
        if other := sum(cell not in choices[j] for cell in typed[:, j]):
            raise ValueError(
                f"{path}, {labels[j]}: {other:,} of {len(table):,} rows contain a value that is "
                "not in its list of categories. Add public values to --categories, such as one "
                "value for all other categories, or change these cells."
            )
    return typed


def _by_place(option, pairs, names):
    """Return the value of each column for which an option has a pair of a name and a value."""
    places = column_places(option, [name for name, _ in pairs], names, len(names))
    return {place: value for place, (_, value) in zip(places, pairs, strict=True)}


def _parse_categories(text):
    name, equals, values = text.partition("=")
    listed = [value.strip() for value in values.split(",")]
    if not (name and equals and all(listed) and len(set(listed)) == len(listed)):
        raise ValueError(f"--categories takes NAME=A,B,C with different values; got {text!r}.")
    return name, listed


def _parse_interval(name, ends):
    try:
        low, high = map(float, ends)
    except ValueError:
        raise ValueError(f"--column-bounds {name}: LOW and HIGH must be numbers.") from None
    return name, (low, high)


def _add_synthesize(parser):
    add_table(parser)
    parser.add_argument(
        "--categories",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=A,B,C",
        help="columns of categories, with a public list of the values of each",
    )
    add_bounds(parser)
    parser.add_argument(
        "--column-bounds",
        nargs=3,
        action="append",
        default=[],
        metavar=("NAME", "LOW", "HIGH"),
        help="public interval of one column; repeat the option for other columns",
    )
    parser.add_argument(
        "--integers",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="columns of whole numbers",
    )
    parser.add_argument(
        "--rows",
        type=at_least_one,
        help="number of synthetic rows (default: a private estimate of the number of rows)",
    )
    add_epsilon(parser)
    add_adjacency(parser)
    add_paying(parser)


SYNTHESIZE = Command(
    name="synthesize",
    description="Release a measure on a box under differential privacy, and draw synthetic rows\n"
    "from it. The privacy unit is one row, or one person with --groups.",
    epilog=f"""\
example:
  python -m sklearn_dptda synthesize people.csv --header --column-bounds age 0 120 \\
      --integers age --categories job=cook,nurse,smith smokes=no,yes --epsilon 1 -o out

columns:
  --categories     for each column of categories, the list of values, known without
                   looking at the rows, such as a code book or the answers of a form. The
                   order of the list has little effect. A table that contains a value that
                   is not in the list is refused.
  --bounds         LOW HIGH for all columns of numbers, or for each of them
  --column-bounds  LOW HIGH for the column NAME. Bounds that you leave out are estimated
                   privately, from one fifth of epsilon
  --integers       columns whose synthetic numbers are rounded
  --header         the first row contains the names of the columns. They are written to
                   the output, so they must be public

{PAYING_HELP}
what is written:
  OUT/synthetic.csv   rows with the same columns. You can compute anything from them at no
                      further cost.
  OUT/synthetic.json  the number of synthetic rows, the bounds, and the guarantee
""",
    add_arguments=_add_synthesize,
    run=partial(run_paid, SynthesizeRelease),
)


class BoundsRelease(_RowRelease):
    """A box around rows, and the share of the rows outside it."""

    files = ("bounds.json", "bounds.csv")

    def __init__(self, args):
        private = PrivateBounds(
            epsilon=args.epsilon,
            shape=args.shape,
            start=parse_bounds(args.start, "--start"),
            adjacency=args.adjacency,
            random_state=args.seed,
        )
        super().__init__(args, private)

    def prepare(self):
        rows = super().prepare()
        refuse_formulas("names of columns", [label.short() for label in self.labels])
        return rows

    def describe(self, private):
        low, high = (end.tolist() for end in private.bounds_)
        yield " ".join(["--bounds", *(f"{a!r} {b!r}" for a, b in zip(low, high, strict=True))])
        yield f"share of rows outside them: {private.clipped_share_:.2g}"

    def content(self, private):
        return {
            "shape": private.shape,
            "columns": [label.short() for label in self.labels],
            "bounds": list(private.bounds_),
            "clipped_share": private.clipped_share_,
        }

    def table(self, private):
        names = [label.short() for label in self.labels]
        return ("column", "low", "high"), zip(names, *private.bounds_, strict=True)


def _add_bounds_command(parser):
    add_table(parser)
    add_epsilon(parser, 0.1)
    parser.add_argument(
        "--shape",
        choices=["cube", "box"],
        default="cube",
        help="shape of the bounds (default cube)",
    )
    add_bounds(parser, name="--start", missing=" in which to search")
    add_adjacency(parser, "replace-one")
    add_paying(parser)


BOUNDS = Command(
    name="bounds",
    description="Release a box around rows, and the share of the rows outside it, under\n"
    "differential privacy. The privacy unit is one row, or one person with --groups.",
    epilog=f"""\
example:
  python -m sklearn_dptda bounds rows.csv --epsilon 0.1 --start -1000 1000 -o out

If you know bounds from the meaning of the columns, use them: they cost nothing and are more
accurate. The commands cluster and synthesize estimate missing bounds themselves. This command is
for diagram: pass the printed numbers to its option --bounds. The losses of both commands add up.

choosing the numbers:
  --start    a wide public box in which to search. Without it, the command first searches
             powers of two
  --shape    cube: the same side for all columns, as diagrams need; box: one interval for
             each column
  With fewer than about 200 / epsilon rows, the box is wide.

{PAYING_HELP}
what is written:
  OUT/bounds.json    the box, the share of the rows outside it, and the guarantee
  OUT/bounds.csv     the name of each column if you pass --columns with names, otherwise its
                     number in the file from 0, and its low and high end
""",
    add_arguments=_add_bounds_command,
    run=partial(run_paid, BoundsRelease),
)

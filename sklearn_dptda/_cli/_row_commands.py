"""The commands ``cluster``, ``synthesize`` and ``bounds``: releases of a table of rows."""

import csv
import math
from inspect import signature

import numpy as np
from sklearn.base import clone

from sklearn_dptda._cli._command import SEVERAL, at_least_one
from sklearn_dptda._cli._output import refuse_formulas
from sklearn_dptda._cli._paid_run import PayingCommand
from sklearn_dptda._cli._read_points import (
    TABLE_ARGUMENTS,
    column_places,
    read_list,
)
from sklearn_dptda._cli._text_table import is_empty
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPTree
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.published import DPCube
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._frames import is_missing

_KINDS = {"morse": DPMoGMorse, "mixture": DPMoG, "kmeans": DPLloyd, "tree": DPTree, "cube": DPCube}
# Private bounds are refused if there are more columns than the first number and if the bounds need
# more rows than the second.
_MAX_COLUMNS_UNCHECKED, _MAX_ROWS_NEEDED = 32, 5000
# Largest number of columns whose noise is printed one by one.
_MAX_COLUMNS_PRINTED = 5


class _RowCommand(PayingCommand):
    """A release of rows, which belong to people if there is a column of ids."""

    def __init__(self, args, private=None):
        super().__init__(args, private)
        self.planned = clone(self.private).set_params(groups=args.groups)

    def release(self, rows):
        self.private.fit(rows, groups=self.records.ids)

    def column_names(self):
        """Return the public names of the columns."""
        return [label.short() for label in self.records.labels]


class Cluster(_RowCommand):
    """Release weights, means and shapes of clusters under differential privacy.

    The privacy unit is one row, or one person with --groups.

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
    """

    name = "cluster"
    files = ("clusters.json", "clusters.csv")
    arguments = TABLE_ARGUMENTS | {
        "--kind": {
            "choices": list(_KINDS),
            "default": "morse",
            "help": "kind of clusters (default morse)",
        }
    }
    kinds = tuple(_KINDS.values())

    def __init__(self, args):
        self.args = args
        kind = _KINDS[args.kind]
        if kind is DPMoG and "n_clusters" in args and "n_components" not in args:
            args.n_components = vars(args).pop("n_clusters")
        for name, option in self.options().items():
            if name in args and name not in signature(kind).parameters:
                raise ValueError(f"{option.flag} is not an option of --kind {args.kind}.")
        super().__init__(args, self.made(kind))

    @classmethod
    def options(cls):
        found = super().options()
        for name, option in found.items():
            having = [w for w, kind in _KINDS.items() if name in signature(kind).parameters]
            if len(having) < len(_KINDS):
                option.takes["help"] += f" [--kind {', '.join(having)}]"
        return found

    @classmethod
    def flags(cls):
        # Messages of estimators recommend others by their names.
        kinds = {kind.__name__: f"--kind {word}" for word, kind in _KINDS.items()}
        return super().flags() | kinds

    def prepare(self):
        rows = super().prepare()
        width = rows.shape[1]
        # The decision may depend on the number of rows only if that number is public.
        is_public = self.private.adjacency == "replace-one"
        enough = max(len(rows) if is_public else 0, _MAX_ROWS_NEEDED)
        needed = self.planned._rows_for_bounds(width)
        if width > _MAX_COLUMNS_UNCHECKED and needed > enough:
            advice = "If you have this many rows, and their number is public, pass --adjacency "
            raise ValueError(
                f"private bounds of {width} columns at --epsilon {self.private.epsilon:g} need "
                f"about {math.ceil(needed):,} rows; with fewer rows they are mostly noise. Pass "
                "--bounds (which cost nothing), fewer --columns, or a larger --epsilon."
                f"{'' if is_public else f' {advice}replace-one.'}"
            )
        return rows

    def _components(self):
        """Return the cluster, the mean and the noise of the mean of each component."""
        private = self.private
        name = "means" if hasattr(private, "means_") else "cluster_centers"
        means, noise = getattr(private, f"{name}_"), getattr(private, f"{name}_noise_")
        return getattr(private, "component_labels_", np.arange(len(means))), means, noise

    def _merged(self):
        """Return weight and centre of each cluster, if clusters can have several components."""
        private = self.private
        if not hasattr(private, "component_labels_"):
            return {}
        labels, means, _ = self._components()
        belongs = np.unique(labels)[:, None] == labels
        weights = np.where(belongs, private.weights_, 0.0)
        totals = weights.sum(axis=1, keepdims=True)
        # Without weight, each component of a cluster counts the same.
        shares = np.where(totals > 0, weights, belongs)
        centres = shares / shares.sum(axis=1, keepdims=True) @ means
        return {"cluster_weights": totals[:, 0], "cluster_means": centres}

    def _logarithms(self):
        """Return the scales of columns that count by their logarithms, if there are any."""
        scales = getattr(self.private, "logarithms_", np.zeros(1))
        return {"logarithms": scales} if scales.any() else {}

    def _noise(self):
        """Return one line about the privacy noise, from private output and public scales."""
        private, noise = self.private, self._components()[2].max(axis=0)
        if len(noise) <= _MAX_COLUMNS_PRINTED:
            pairs = zip(noise, self.column_names(), strict=True)
            means = ", ".join(f"{sd:.2g} ({name})" for sd, name in pairs)
        else:
            low, high = private.bounds_
            means = f"{(noise / (high - low)).max():.2g} times the width of the bounds"
        doubtful = int(private.within_noise_.sum())
        may = f"; {doubtful} of {len(private.weights_)} components may be noise" * bool(doubtful)
        return (
            "standard deviation of the privacy noise: at most "
            f"{private.weights_noise_.max():.2g} in the weights, and in the means {means}{may}"
        )

    def describe(self):
        weights, labels = self.private.weights_, self._components()[0]
        sums = [f"{weights[labels == label].sum():.3g}" for label in np.unique(labels)]
        yield f"{len(sums)} cluster(s) of weight {', '.join(sums)}"
        yield self._noise()
        yield f"share of rows outside the bounds: {self.private.clipped_share_:.2g}"
        if scales := self._logarithms():
            columns = zip(self.column_names(), scales["logarithms"], strict=True)
            names = ", ".join(f"{name} (from {scale:g} on)" for name, scale in columns if scale)
            yield f"columns that count by their logarithms: {names}"
        if _keeps_gaps(self.private):
            yield f"largest share of missing cells: {self.private.missing_share_.max():.2g}"

    def content(self):
        private = self.private
        labels, means, noise = self._components()
        shapes = ("covariances", "covariance_type", "n_clusters_stability")
        return {
            "kind": self.args.kind,
            "columns": self.column_names(),
            "weights": private.weights_,
            "means": means,
            "clusters": labels,
            **self._merged(),
            "weights_noise": private.weights_noise_,
            "means_noise": noise,
            "within_noise": private.within_noise_,
            **{k: getattr(private, f"{k}_") for k in shapes if hasattr(private, f"{k}_")},
            "bounds": list(private.bounds_),
            "units": private.units_,
            **self._logarithms(),
            "clipped_share": private.clipped_share_,
            **({"missing_share": private.missing_share_} if _keeps_gaps(private) else {}),
        }

    def table(self):
        labels, means, _ = self._components()
        header = ["component", "cluster", "weight", *(f"mean_{n}" for n in self.column_names())]
        rows = zip(range(len(means)), labels, self.private.weights_, *means.T, strict=True)
        return header, rows


def _keeps_gaps(private):
    return bool(getattr(private, "missing", False))


class Synthesize(_RowCommand):
    r"""Release a measure on a box under differential privacy, and draw synthetic rows from it.

    The privacy unit is one row, or one person with --groups.

    example:
      python -m sklearn_dptda synthesize people.csv --header --column-bounds age 0 120 \
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

    what is written:
      OUT/synthetic.csv   rows with the same columns. You can compute anything from them at no
                          further cost.
      OUT/synthetic.json  the number of synthetic rows, the bounds, and the guarantee
    """

    name = "synthesize"
    files = ("synthetic.csv", "synthetic.json")
    arguments = TABLE_ARGUMENTS | {
        "--categories": SEVERAL
        | {
            "default": [],
            "metavar": "NAME=A,B,C",
            "help": "columns of categories, with a public list of the values of each, in quotation "
            "marks if they contain a comma, or NAME=@FILE with one value per line",
        },
        "--column-bounds": {
            "nargs": 3,
            "action": "append",
            "default": [],
            "metavar": ("NAME", "LOW", "HIGH"),
            "help": "public interval of one column; repeat the option for other columns",
        },
        "--integers": SEVERAL
        | {"default": [], "metavar": "NAME", "help": "columns of whole numbers"},
        "--rows": {
            "type": at_least_one,
            "help": "number of synthetic rows (default: a private estimate of the number of rows)",
        },
    }
    kinds = (PrivateMeasure,)
    # Metric privacy is another guarantee, and the columns of categories have an option of their
    # own.
    hidden = frozenset({"method", "alpha", "categories", "target"})

    def __init__(self, args):
        super().__init__(args)
        if self.private.bounds is not None and args.column_bounds:
            raise ValueError(
                "--bounds applies to all columns, and --column-bounds to single columns: give one "
                "of them."
            )
        self.categories = [_parse_categories(text) for text in args.categories]
        for _, values in self.categories:
            refuse_formulas("--categories", values)
        self.intervals = [_parse_interval(name, ends) for name, *ends in args.column_bounds]

    def prepare(self):
        args = self.args
        table = self.records = self.read([name for name, _ in self.categories])
        self.columns = table.names or [f"x{j}" for j in range(len(table.columns))]
        # Columns without names have their numbers in the file.
        self.known = table.names or [str(label.place) for label in table.labels]
        self.numbers = [label.place for label in table.labels]
        refuse_formulas("names of columns", self.columns)
        choices = self._by_place("--categories", self.categories)
        self.integers = column_places("--integers", args.integers, self.known, self.numbers)
        if not choices.keys().isdisjoint(self.integers):
            raise ValueError(
                "--integers names a column of --categories: name it in one of the two options only."
            )
        if self.intervals:
            self.private.set_params(bounds=self._by_place("--column-bounds", self.intervals))
        if choices:
            self.private.set_params(categories=choices)
        return _typed(table, choices, self.private.missing)

    def _by_place(self, option, pairs):
        """Return the value of each column for which an option has a pair of a name and a value."""
        places = column_places(option, [name for name, _ in pairs], self.known, self.numbers)
        return {place: value for place, (_, value) in zip(places, pairs, strict=True)}

    def release(self, rows):
        super().release(rows)
        self.drawn = self.private.sample(self.args.rows, random_state=self.args.seed)
        for j in self.integers:
            self.drawn[:, j] = np.rint(self.drawn[:, j].astype(float))

    def describe(self):
        yield f"{len(self.drawn)} synthetic rows"

    def content(self):
        return {
            "n_rows": len(self.drawn),
            "private_number_of_rows": self.private.n_samples_,
            "columns": self.columns,
            "bounds": list(self.private.bounds_),
        }

    def table(self):
        columns = [
            [_cell(value, j in self.integers) for value in column.tolist()]
            for j, column in enumerate(self.drawn.T)
        ]
        return self.columns, zip(*columns, strict=True)


def _cell(value, is_integer):
    """Return what is written for a value; a missing one is an empty cell."""
    if is_missing(value):
        return ""
    return int(value) if is_integer else value


def _typed(table, choices, keeps_gaps):
    """Return the cells, as texts in the columns of categories and as floats in the others.

    Missing cells are refused, or are NaN and None.
    """
    columns, labels = table.columns, table.labels
    numeric = [j for j in range(len(columns)) if j not in choices]
    numbers = table.numbers(keeps_gaps, numeric)
    if not choices:
        return numbers
    typed = np.empty((len(columns[0]), len(columns)), dtype=object)
    if numeric:
        typed[:, numeric] = numbers
    for j in choices:
        texts = ["" if cell is None else str(cell) for cell in columns[j]]
        gaps = [keeps_gaps and t not in choices[j] and is_empty(t) for t in texts]
        typed[:, j] = [None if gap else t for t, gap in zip(texts, gaps, strict=True)]
        if other := sum(t is not None and t not in choices[j] for t in typed[:, j]):
            raise ValueError(
                f"{table.path}, {labels[j]}: {other:,} of {len(texts):,} rows contain a value that "
                "is not in its list of categories. Add public values to --categories, such as one "
                "value for all other categories, or change these cells."
            )
    return typed


def _parse_categories(text):
    name, equals, values = text.partition("=")
    if values.startswith("@"):
        return name, read_list("--categories", values[1:], "values")
    # As in a file, a value that contains a comma is in quotation marks.
    rows = csv.reader(values.splitlines(), skipinitialspace=True)
    listed = [value.strip() for row in rows for value in row]
    if not (name and equals and listed and all(listed) and len(set(listed)) == len(listed)):
        raise ValueError(
            f"--categories takes NAME=A,B,C with different values; got {text!r}. Put quotation "
            "marks around a value with a comma in it, or pass NAME=@FILE with one value per line."
        )
    return name, listed


def _parse_interval(name, ends):
    try:
        low, high = map(float, ends)
    except ValueError:
        raise ValueError(f"--column-bounds {name}: LOW and HIGH must be numbers.") from None
    return name, (low, high)


class Bounds(_RowCommand):
    """Release a box around rows, and the share of the rows outside it.

    The release is differentially private. The privacy unit is one row, or one person with
    --groups.

    example:
      python -m sklearn_dptda bounds rows.csv --epsilon 0.1 --start -1000 1000 -o out

    If you know bounds from the meaning of the columns, use them: they cost nothing and are more
    accurate. The commands cluster and synthesize estimate missing bounds themselves. This command
    is for diagram: pass the printed numbers to its option --bounds. The losses of both commands add
    up.

    choosing the numbers:
      --start    a wide public box in which to search. Without it, the command first searches
                 powers of two
      --shape    cube: the same side for all columns, as diagrams need; box: one interval for
                 each column
      With fewer than about 200 / epsilon rows, the box is wide.

    what is written:
      OUT/bounds.json    the box, the share of the rows outside it, and the guarantee
      OUT/bounds.csv     the name of each column if you pass --columns with names, otherwise its
                         number in the file from 0, and its low and high end
    """

    name = "bounds"
    files = ("bounds.json", "bounds.csv")
    kinds = (PrivateBounds,)

    def prepare(self):
        rows = super().prepare()
        refuse_formulas("names of columns", self.column_names())
        return rows

    def describe(self):
        private = self.private
        low, high = (end.tolist() for end in private.bounds_)
        yield " ".join(["--bounds", *(f"{a!r} {b!r}" for a, b in zip(low, high, strict=True))])
        yield f"share of rows outside them: {private.clipped_share_:.2g}"

    def content(self):
        return {
            "shape": self.private.shape,
            "columns": self.column_names(),
            "bounds": list(self.private.bounds_),
            "clipped_share": self.private.clipped_share_,
        }

    def table(self):
        names = self.column_names()
        return ("column", "low", "high"), zip(names, *self.private.bounds_, strict=True)

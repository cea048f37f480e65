"""Private probability measures by counts of boxes, and synthetic tables drawn from them.

A measure of classes has the columns one by one, and the distribution of each within a class.

Proof: doc/theory/metric_privacy.md, "Measures".
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from scipy.stats import wasserstein_distance
from sklearn.utils import Tags, check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    FloatArray,
    LegacyRandomStateLike,
    RandomStateLike,
    RowBounds,
    Table,
)
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, PrivacyGuarantee, pure_rho
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._parameters import check_confidence, quoted
from sklearn_dptda.rows._estimator import BOUNDS_SHARE, ROW_PARAMETERS, SHARE, PrivateRowsEstimator
from sklearn_dptda.rows._private_cubes import private_intervals
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.synthetic._box_measure import (
    Line,
    NoisyTrees,
    UnitMeasure,
    box_measure,
    cell_ends,
    halvings,
    within,
)
from sklearn_dptda.synthetic._coded_table import CodedTable, code_table
from sklearn_dptda.utils._bounds import bounds_by_column
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import Options

# Share of epsilon for the columns one by one, and the number of rows, for each scale of noise that
# a column has if the whole budget is for classes, from which this share is spent. With fewer rows,
# cells have even widths, which costs nothing; the last number is that of their halvings.
_SHARE_OF_LINES, _ROWS_FOR_LINES, _EVEN_HALVINGS = 0.4, 300, 4
# Largest number of entries of all lines of all classes.
_MOST_NUMBERS = 1 << 21
# Largest number of cells of a column in which classes are counted, and expected number of rows in a
# cell for a class of average size, in scales of noise.
_MOST_CELLS, _ROWS_PER_NOISE = 32, 8
# Least number of rows of a class. If noise leaves nothing of a class, it is distributed as all rows
# are.
_LEAST_ROWS = 1e-6


@fill_doc
class PrivateMeasure(PrivateRowsEstimator):
    """Release a probability measure of the rows of a table, and draw synthetic rows from it.

    The release consists of noisy counts of smaller and smaller boxes, down to about
    ``epsilon / 4`` boxes for each row. Whatever you compute from the synthetic rows is
    post-processing and spends no budget.

    Parameters
    ----------
    %(epsilon)s
    bounds : pair of float or array-like, or dict, default=None
        Public bounds of the numeric columns, to which rows are clipped. A dict has pairs for
        some columns, by name. Missing bounds are found privately, for a fifth of ``epsilon``.
    %(row_adjacency)s
    %(row_groups)s
    categories : dict, default=None
        Public lists of the values of columns that are not numeric, by the name of the
        column, or its number in an array. Boolean columns need no list.
    marginal_share : float, default=None
        Share of ``epsilon`` for counts of each column by itself. None: 0 for one column,
        for two numeric columns, or if each box holds a single value. Otherwise 0.5 if the
        boxes of all columns are halved twice along each column, or 18 times in all, and 0.8
        if they are coarser. With a ``target``, 0.4, or 0 if there are few rows.
    target : str or int, default=None
        Categorical or Boolean column that models of the synthetic rows are to predict: its
        name, or its number in an array. The other columns are then counted within its
        classes, as if they were independent there, instead of in boxes of all columns.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    support_ : ndarray of shape (n_atoms, n_features)
        Centres of boxes, or one box for each class with a ``target``. Categories are
        represented by their places in their list.
    weights_ : ndarray of shape (n_atoms,)
        Probabilities of the boxes.
    widths_ : ndarray of shape (n_atoms, n_features)
        Widths of the boxes over which synthetic rows are spread.
    marginals_ : list of ndarray of shape (n_cells + 1, 2)
        With a ``marginal_share`` or a ``target``: for each column, the ends of its cells
        and the probability below each.
    marginals_of_classes_ : list of list of ndarray of shape (n_cells + 1, 2)
        With a ``target``: for each of its values, the marginals of its rows.
    bounds_ : tuple of two ndarray
        Bounds of the numeric columns, public or private.
    n_samples_ : int
        Private or public number of rows. It is the number of people if all rows of a person
        together weigh as much as one.
    %(fit_guarantee_and_columns)s

    See Also
    --------
    sklearn_dptda.metric_privacy.MetricMeasure : More accurate for one column and a public
        number of rows.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases a measure. It is ``epsilon``-differentially private for adding or
    removing one row, or for replacing one. All counts share the budget. The number of rows
    is public, or noisy for a twentieth of the budget. Names and types of columns are
    public. Values outside a public list are refused before any budget is spent.
    %(privacy_of_groups)s

    References
    ----------
    Y. He, R. Vershynin, Y. Zhu, "Algorithmically effective differentially private synthetic
    data", 2023.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.synthetic import PrivateMeasure
    >>> private = PrivateMeasure(bounds=(-3, 3.5), random_state=0).fit(make_two_circles())
    >>> private.sample(500, random_state=0).shape
    (500, 2)
    """

    _parameter_constraints = {
        **ROW_PARAMETERS,
        "bounds": ["array-like", Mapping, None],
        "categories": [Mapping, None],
        "marginal_share": [SHARE, Options(Real, {0}), None],
        "target": [str, Integral, None],
    }

    _n_seeds = 1

    def __init__(
        self,
        epsilon: float = 1.0,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        categories: Mapping[Any, Sequence[Any]] | None = None,
        marginal_share: float | None = None,
        target: str | int | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.categories = categories
        self.marginal_share = marginal_share
        self.target = target
        self.accountant = accountant
        self.random_state = random_state

    def _coding(self) -> Callable[[Any], tuple[Any, Mapping[int, list[Any]]]]:
        return partial(code_table, categories=self.categories)

    def _check_table(self, table: Any, **options: Any) -> tuple[FloatArray, Columns]:
        coded, choices = code_table(table, self.categories)
        rows = check_rows(self, coded, **options)
        columns = Columns.of(table, rows.shape[1], choices)
        self._numeric_bounds(CodedTable(columns))
        return rows, columns

    def _numeric_bounds(self, table: CodedTable) -> tuple[FloatArray, FloatArray]:
        """Bounds of the numeric columns, NaN if they are private."""
        names = [table.columns.names[place] for place in table.numeric]
        low, high = bounds_by_column(self.bounds, len(names), names)
        # Refuse a box that contains no number, and an invalid target, before any budget is spent.
        self._place_of_target(table)
        private = np.isnan(low)
        table.cells(np.where(private, -1.0, low), np.where(private, 1.0, high))
        return low, high

    def _place_of_target(self, table: CodedTable) -> int | None:
        """Number of the target's column. A ValueError says that it is not a column of classes."""
        if self.target is None:
            return None
        places = [table.columns.names[place] for place in table.columns.choices]
        unknown = isinstance(self.target, bool) or self.target not in places
        if unknown or len(table.columns.names) < 2:
            raise ValueError(
                "target must be a categorical or Boolean column beside others; got "
                f"{quoted(self.target)}. Such columns of the table: {places!r}."
            )
        return table.columns.names.index(self.target)

    def _has_mixture(self) -> bool:
        return False

    def _release(self, rows: Rows, guarantee: PrivacyGuarantee, *seeds: Any) -> list[str]:
        noise, table = NoiseSource(seeds[0]), CodedTable(cast(Columns, rows.columns))
        epsilon = guarantee.epsilon / rows.mass
        low, high = self._numeric_bounds(table)
        private = np.flatnonzero(np.isnan(low))
        if len(private):
            places = [table.numeric[j] for j in private]
            ends = private_intervals(
                rows.selected(places), BOUNDS_SHARE * epsilon, self.adjacency, noise
            )
            low[private], high[private] = table.in_types(places, *ends)
            epsilon *= 1 - BOUNDS_SHARE
        box, sizes = table.cells(low, high)
        noisy = NoisyTrees.of(rows.map(box.to_cube), sizes, noise, epsilon, self.adjacency)
        share, target = self._share_of_columns(table), self._place_of_target(table)
        measure = (
            box_measure(noisy, share) if target is None else class_measure(noisy, share, target)
        )
        self.bounds_ = low, high
        self.support_ = box.points(measure.centres)
        self.widths_, self.weights_ = measure.widths * box.unit, measure.masses
        self.marginals_ = _in_units(box, measure.lines)
        self.marginals_of_classes_ = [_in_units(box, lines) for lines in measure.lines_of_classes]
        self.n_samples_ = max(round(noisy.n_rows / rows.mass), 1)
        self._table, self._box, self._noise = table, box, measure.noise
        return []

    def _share_of_columns(self, table: CodedTable) -> float | None:
        """Share of epsilon for each column by itself; None if the number of rows decides."""
        d = len(table.columns.names)
        few = d == 1 or (d == 2 and not table.columns.choices)
        return 0.0 if self.marginal_share is None and few else self.marginal_share

    def _guarantee_of(self, rows: Rows) -> PrivacyGuarantee:
        low, _ = self._numeric_bounds(CodedTable(cast(Columns, rows.columns)))
        return self._guarantee(bool(np.isnan(low).any()), rows.unit)

    def _guarantee(self, finds_bounds: bool, unit: str) -> PrivacyGuarantee:
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0,
            adjacency=self.adjacency,
            unit=unit,
            mechanism="discrete Laplace mechanism, composed over levels",
            released=f"{'bounds, ' if finds_bounds else ''}a probability measure",
            seeded=self.random_state is not None,
            rho=pure_rho(float(self.epsilon)),
        )

    @fill_doc
    def error_bound(self, confidence: float = 0.95) -> float:
        """Upper bound of the distance between the released measure and the rows.

        It bounds the Wasserstein distance between the rows, clipped to ``bounds_``, and the
        measure of ``support_`` and ``weights_``, or the distribution from which
        :meth:`sample` draws. The distance uses the maximum norm of the box scaled to the
        unit cube: for one column it is a share of the width of the bounds. Whatever the
        rows are, the bound holds with the given probability over the noise of a fit. It
        spends no budget.

        The bound is conservative. It does not cover the error of
        :doc:`sampling </guide/sampling_error>`, and there is none with a ``target``.

        %(confidence_and_bound)s

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_dptda.synthetic import PrivateMeasure
        >>> X = np.random.default_rng(0).beta(2, 5, (20_000, 1))
        >>> private = PrivateMeasure(epsilon=1.0, bounds=(0, 1), random_state=0).fit(X)
        >>> private.error_bound() < 0.02
        True
        """
        check_is_fitted(self)
        check_confidence(confidence)
        if self._noise is None:
            raise ValueError("there is no error bound with a target.")
        return float(self._noise.error_bound(self.weights_, 1 - float(confidence)))

    @fill_doc
    def sample(
        self, n_samples: int | None = None, random_state: LegacyRandomStateLike = None
    ) -> Table:
        """Draw synthetic rows. This is post-processing and spends no budget.

        %(sampled_rows)s
        """
        check_is_fitted(self)
        n = self.n_samples_ if n_samples is None else n_samples
        check_scalar(n, "n_samples", Integral, min_val=1)
        rng = check_random_state(random_state)
        chosen = rng.choice(len(self.weights_), size=n, p=self.weights_)
        centres, widths = self.support_[chosen], self.widths_[chosen]
        places = rng.uniform(-0.5, 0.5, size=widths.shape)
        points = centres + places * widths
        low, high = centres - widths / 2, centres + widths / 2
        parts: list[Any] = [(slice(None), self.marginals_)]
        if self.marginals_of_classes_:
            parts = [(chosen == k, lines) for k, lines in enumerate(self.marginals_of_classes_)]
        for part, lines in parts:
            for axis, line in enumerate(lines):
                ends = low[part, axis], high[part, axis]
                points[part, axis] = within(line, *ends, places[part, axis] + 0.5)
        return self._table.decode(points, self._box)

    def __sklearn_tags__(self) -> Tags:
        """Declare how the distance of two releases is measured."""
        tags = super().__sklearn_tags__()
        tags.privacy.distance = marginal_distance
        return tags


def _in_units(box: Box, lines: list[Line]) -> list[FloatArray]:
    """Ends of cells in units of the columns, beside the mass below each."""
    return [
        np.column_stack([origin + unit * ends, masses])
        for origin, unit, (ends, masses) in zip(box.origin, box.unit, lines, strict=False)
    ]


def marginal_distance(first: Any, second: Any) -> float:
    """Sum of the Wasserstein distances of the marginals of two releases, and of their classes."""
    pairs = zip(_marginals(first), _marginals(second), strict=True)
    return sum(wasserstein_distance(x, y, p, q) for (x, p), (y, q) in pairs)


def _marginals(release):
    """Yield places and masses: of each column, and of each column within each class."""
    for column in release["support_"].T:
        yield column, release["weights_"]
    for lines in release.get("marginals_of_classes_") or []:
        for ends, masses in (line.T for line in lines):
            yield (ends[1:] + ends[:-1]) / 2, np.diff(masses)


def class_measure(noisy: NoisyTrees, marginal_share: float | None, target: int) -> UnitMeasure:
    """Release the columns within each class of the target; the share is chosen if it is None.

    If the share is zero, cells have even widths.
    """
    d, sizes, epsilon = noisy.rows.n_features, noisy.sizes, noisy.epsilon
    n_classes = int(sizes[target])
    others = [a for a in range(d) if a != target]
    if marginal_share is None:
        enough = noisy.n_rows * epsilon >= _ROWS_FOR_LINES * len(others) * noisy.moved
        marginal_share = _SHARE_OF_LINES if enough else 0.0
    if marginal_share:
        most = max(int(math.log2(_MOST_NUMBERS / (n_classes * d))), 1)
        lines = {a: noisy.line(a, epsilon * marginal_share / len(others), most) for a in others}
        epsilon *= 1 - marginal_share
        n_cells = _n_cells(noisy.n_rows * epsilon / (n_classes * len(others) * noisy.moved))
        cuts = {a: _cuts(ends, masses, n_cells) for a, (ends, masses) in lines.items()}
    else:
        lines = {a: _even_line(sizes[a]) for a in others}
        cuts = {a: ends[1:-1] for a, (ends, _) in lines.items()}
    released = _noisy_tables(noisy, cuts, target, n_classes, epsilon)
    masses = np.mean([table.sum(axis=1) for table in released], axis=0)
    masses = np.maximum(masses, _LEAST_ROWS) / np.maximum(masses, _LEAST_ROWS).sum()
    ends = np.arange(n_classes + 1) / n_classes
    of_target = ends, np.r_[0.0, np.cumsum(masses[:-1]), 1.0]
    of_classes = [
        _within_classes(*lines[a], cuts[a], table)
        for a, table in zip(others, released, strict=True)
    ]
    of_classes.insert(target, [of_target] * n_classes)
    centres, widths = np.full((n_classes, d), 0.5), np.ones((n_classes, d))
    centres[:, target], widths[:, target] = (ends[1:] + ends[:-1]) / 2, 1 / n_classes
    # The marginals are those of the synthetic rows, since cells of classes are more precise than
    # the lines by which they were chosen.
    marginals = [
        of_target if a == target else (lines[a][0], masses @ [line for _, line in of_classes[a]])
        for a in range(d)
    ]
    by_class = [list(of_class) for of_class in zip(*of_classes, strict=True)]
    return UnitMeasure(centres, widths, masses, marginals, by_class)


def _even_line(size):
    """The line of even masses, with ends between values."""
    sizes = np.array([size])
    (ends,) = cell_ends(halvings(sizes, _EVEN_HALVINGS), sizes)
    # There is nothing between neighbouring values.
    ends = np.unique(ends)
    return ends, ends


def _noisy_tables(noisy, cuts, target, n_classes, epsilon):
    """Noisy counts of classes in the cells of each column, given their inner ends."""
    sizes = [n_classes * (len(cut) + 1) for cut in cuts.values()]
    count = partial(_class_counts, target=target, n_classes=n_classes, cuts=cuts)
    counts = noisy.rows.sum(count, n_cells=sum(sizes))
    # A row is counted once for each column.
    scale = len(cuts) * noisy.moved / epsilon * ROUND_UP
    counts = noisy.with_noise(counts, len(cuts), scale)
    tables = np.split(counts, np.cumsum(sizes)[:-1])
    return [table.reshape(n_classes, -1) for table in tables]


def _n_cells(rows_per_noise):
    """Largest power of two whose counts are well above their noise, and at least two."""
    cells = 2
    while 2 * cells <= _MOST_CELLS and 2 * cells * _ROWS_PER_NOISE <= rows_per_noise:
        cells *= 2
    return cells


def _cuts(ends, masses, n_cells):
    """Inner ends of about ``n_cells`` cells of even mass. Each is an end of a cell of the line."""
    first = np.unique(np.searchsorted(masses, np.arange(1, n_cells) / n_cells))
    return ends[first[first < len(ends) - 1]]


def _class_counts(part, target, n_classes, cuts):
    """Exact counts of classes in the cells of each column, one column after the other."""
    classes = np.minimum((part[:, target] * n_classes).astype(np.int64), n_classes - 1)
    counts: list[Any] = []
    for column, cut in cuts.items():
        n_cells = len(cut) + 1
        cells = classes * n_cells + np.searchsorted(cut, part[:, column], side="right")
        counts.append(np.bincount(cells, minlength=n_classes * n_cells))
    return np.concatenate(counts)


def _within_classes(ends, masses, cut, table):
    """Line of each class: that of all rows, stretched to the masses of the cells in this class."""
    below = np.r_[0.0, masses[np.searchsorted(ends, cut)], 1.0]
    lines = []
    for counts in table:
        shares = np.maximum(counts, 0.0) + _LEAST_ROWS * np.diff(below)
        of_class = np.r_[0.0, np.cumsum(shares / shares.sum())]
        lines.append((ends, np.interp(masses, below, of_class)))
    return lines

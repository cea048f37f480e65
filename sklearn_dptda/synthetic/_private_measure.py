"""Private probability measures by counts of boxes or of pairs, and tables drawn from them.

Proof: doc/theory/metric_privacy.md, "Measures".
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, cast

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
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, PrivacyGuarantee, zcdp_rho
from sklearn_dptda.privacy._parameters import check_confidence, quoted
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.privacy._warnings import warn_of_time
from sklearn_dptda.rows._estimator import ROW_PARAMETERS, SHARE, PrivateRowsEstimator
from sklearn_dptda.rows._localisation import private_box, rows_for_box
from sklearn_dptda.rows._public_box import BOUNDS_SHARE
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.rows._tables import Coded
from sklearn_dptda.synthetic._box_measure import (
    Line,
    NoisyTrees,
    UnitMeasure,
    box_measure,
    within,
)
from sklearn_dptda.synthetic._coded_table import CodedTable, code_table
from sklearn_dptda.synthetic._tree_measure import MOST_SCORED, Hub, TreeMeasure, tree_measure
from sklearn_dptda.utils._bounds import Extremes, bounds_by_column
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import Interval, Options, StrOptions

Method: TypeAlias = Literal["boxes", "tree"]

# Accuracy only: the method depends on public numbers of columns and of values.
# Without categories, pairs are counted from this number of columns on. With categories, boxes are
# counted if single values are in this number of boxes at most.
_NUMBERS_FOR_PAIRS, _FEW_BOXES = 4, 256
# Seconds for choosing a tree of pairs, divided by the cube of the number of columns; measured.
_SECONDS_OF_CHOICES = 7e-7


@fill_doc
class PrivateMeasure(PrivateRowsEstimator):
    """Release a probability measure of the rows of a table, and draw synthetic rows from it.

    Few columns are counted together, in smaller and smaller boxes (``method="boxes"``). With more
    columns, such boxes would be too coarse. Then pairs of columns are counted, which form a tree,
    together with a *hub*, which joins the categorical columns of the fewest values
    (``method="tree"``). Whatever you compute from the synthetic rows is post-processing and spends
    no budget.

    Parameters
    ----------
    %(epsilon)s
    bounds : pair of float or array-like, or dict, default=None
        Public bounds of the numeric columns, to which rows are clipped. A dict has pairs for
        some columns, by name. Missing bounds are found privately, for a fifth of the budget.
    delta : float, default=0.0
        The delta of the guarantee. Above zero, noise is Gaussian, which needs less noise from
        about ten columns on. It must be zero for boxes.
    %(row_adjacency)s
    %(row_groups)s
    categories : dict, default=None
        Public lists of the values of columns that are not numeric, by the name of the
        column, or its number in an array. Boolean columns need no list.
    missing : bool or list, default=False
        Whether values may be missing: None or NaN, in all columns, or in those of this list. The
        share of missing values is then released within the same budget, and values of the
        synthetic rows are missing as well. Columns of a type of NumPy's that has no missing
        value, such as integers, become numbers or objects. Otherwise, missing values
        are refused.
    method : {"boxes", "tree"}, default=None
        What is counted. None: a tree with ``missing`` values, from three columns on if one of
        them is categorical, or from four columns on, and boxes otherwise. Columns that are
        all categorical are counted together if they have at most 256 combinations of values.
    marginal_share : float, default=None
        Share of ``epsilon`` for counts of each column by itself. None: 0.4 for a tree. For
        boxes, 0 for one column, for two numeric columns, or if each box holds a single value.
        Otherwise 0.5 if the boxes of all columns are halved twice along each column, or 18
        times in all, and 0.8 if they are coarser.
    target : str or int, default=None
        Categorical or Boolean column that models of the synthetic rows are to predict: its
        name, or its number in an array. It is the first column of the hub. It is needed only
        if it has more than eight values, or if the columns of fewer values leave no room.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    marginals_ : list of ndarray of shape (n_cells + 1, 2)
        For each column, the ends of its cells and the probability below each; empty for boxes
        without a ``marginal_share``.
    missing_share_ : ndarray of shape (n_features,)
        Share of the rows whose value is missing, for each column.
    hub_ : list
        Names of the columns of the hub; empty for boxes.
    edges_ : list of tuple
        Pairs of names of columns that are counted together with the hub; empty for boxes.
    support_ : ndarray of shape (n_atoms, n_features)
        Centres of boxes. Categories are represented by their places in their list. Only for
        boxes, like the next two attributes.
    weights_ : ndarray of shape (n_atoms,)
        Probabilities of the boxes.
    widths_ : ndarray of shape (n_atoms, n_features)
        Widths of the boxes over which synthetic rows are spread.
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

    One fit releases a measure. It is ``epsilon``-differentially private, or (``epsilon``,
    ``delta``)-differentially private, for adding or removing one row, or for replacing one. All
    counts and choices share the budget. The number of rows is public, or noisy for a twentieth of
    the budget. Names and types of columns are public. Values outside a public list are refused
    before any budget is spent.
    %(privacy_of_groups)s

    References
    ----------
    Y. He, R. Vershynin, Y. Zhu, "Algorithmically effective differentially private synthetic
    data", 2023; R. McKenna, G. Miklau, D. Sheldon, "Winning the NIST contest", 2021.

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
        "delta": [Interval(Real, 0, 1, closed="left")],
        "missing": ["boolean", list, tuple],
        "method": [StrOptions({"boxes", "tree"}), None],
        "marginal_share": [SHARE, Options(Real, {0}), None],
        "target": [str, Integral, None],
    }

    _n_seeds = 1

    def __init__(
        self,
        epsilon: float = 1.0,
        bounds: RowBounds | None = None,
        *,
        delta: float = 0.0,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        categories: Mapping[Any, Sequence[Any]] | None = None,
        missing: bool | Sequence[Any] = False,
        method: Method | None = None,
        marginal_share: float | None = None,
        target: str | int | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.categories = categories
        self.missing = missing
        self.method = method
        self.marginal_share = marginal_share
        self.target = target
        self.accountant = accountant
        self.random_state = random_state

    def _coding(self) -> Callable[[Any], Coded]:
        return partial(code_table, categories=self.categories, missing=self.missing)

    def _check_columns(self, columns: Columns) -> None:
        table = CodedTable(columns)
        self._numeric_bounds(table)
        if self._counts_pairs(table):
            # The number of rows may be private. It has less of an effect.
            seconds = _SECONDS_OF_CHOICES * len(columns.names) ** 3
            warn_of_time(seconds, "Half of the columns would take an eighth of the time.")

    def _numeric_bounds(self, table: CodedTable) -> tuple[FloatArray, FloatArray]:
        """Bounds of the numeric columns, NaN if they are private."""
        names = [table.columns.names[place] for place in table.numeric]
        low, high = bounds_by_column(self.bounds, len(names), names)
        # Refuse a box that contains no number, and options that do not fit the columns, before any
        # budget is spent.
        private = np.isnan(low)
        sizes = table.axes(np.where(private, -1.0, low), np.where(private, 1.0, high)).sizes
        sizes[np.array(table.numeric, dtype=int)[private]] = np.inf
        self._check_method(table, sizes)
        return low, high

    def _check_method(self, table: CodedTable, sizes: FloatArray) -> None:
        """Refuse options that do not fit the columns."""
        hint = self._place_of_target(table)
        if not self._counts_pairs(table):
            if self.target is not None:
                raise ValueError("target must be None with method='boxes', which has no hub.")
            if table.columns.gaps:
                raise ValueError("missing must be False with method='boxes'. Pass method='tree'.")
            if self.delta > 0:
                raise ValueError(
                    "delta must be 0 for boxes, whose noise is not Gaussian. Pass delta=0, or "
                    "method='tree'."
                )
        elif hint is not None and math.isinf(sizes[hint]):
            raise ValueError("target must have at most 16 values if some of them are missing.")
        elif Hub.of(sizes, hint, table.may_miss).n_scored() > MOST_SCORED:
            raise ValueError(
                f"X has {len(sizes)} columns, too many to choose pairs of them. Select fewer "
                "columns, or columns with fewer categories."
            )

    def _counts_pairs(self, table: CodedTable) -> bool:
        """Whether pairs of columns are counted, and not boxes; a function of public properties."""
        if self.method is not None:
            return self.method == "tree"
        d, choices = len(table.columns.names), table.columns.choices
        if self.target is not None or table.columns.gaps:
            return True
        if len(choices) == d:
            return math.prod(map(len, choices.values())) > _FEW_BOXES
        return d >= (3 if choices else _NUMBERS_FOR_PAIRS)

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

    def _release(self, rows: Rows, guarantee: PrivacyGuarantee, *seeds: Any) -> list[str]:
        budget = self._budget(rows.mass, NoiseSource(seeds[0]))
        table = CodedTable(cast(Columns, rows.columns))
        low, high = self._numeric_bounds(table)
        private, needed = np.flatnonzero(np.isnan(low)), 0.0
        places = [table.numeric[j] for j in private]
        if places:
            needed = rows_for_box(len(places), budget, BOUNDS_SHARE) / rows.mass
            numbers = rows.selected(places)
            if math.isinf(self.epsilon):
                ends = numbers.sum(_known_extremes).bounds()
            else:
                found, spent = private_box(numbers, budget, BOUNDS_SHARE)
                ends, budget = (found.low, found.high), budget.rest(spent)
            low[private], high[private] = table.in_types(places, *ends)
        axes = table.axes(low, high)
        self._table, self._axes, self.bounds_ = table, axes, (low, high)
        if self._counts_pairs(table):
            hub = Hub.of(axes.sizes, self._place_of_target(table), axes.gaps)
            in_axes = rows.through(axes).onto(hub.axes, len(hub.axis_sizes))
            noisy = NoisyTrees.of(in_axes, hub.axis_sizes, budget)
            self._keep_tree(tree_measure(noisy, hub, self.marginal_share))
        else:
            noisy = NoisyTrees.of(rows.map(axes), axes.sizes, budget)
            self._keep_boxes(box_measure(noisy, self._share_of_columns(table)))
        self.n_samples_ = max(round(noisy.n_rows / rows.mass), 1)
        known = self.n_samples_ * (1 - self.missing_share_)
        hidden = [table.columns.names[place] for place in places if known[place] < needed]
        if not hidden:
            return []
        return [
            f"Too few values of {', '.join(map(repr, hidden[:5]))}{', ...' * (len(hidden) > 5)} "
            f"are known: noise hides the bounds of a column with fewer than {needed:.0f}. Give "
            "bounds, a larger epsilon, or fewer columns."
        ]

    def _keep_tree(self, measure: TreeMeasure) -> None:
        names, others = self._table.columns.names, measure.hub.others
        self.hub_ = [names[a] for a in measure.hub.joined]
        self.edges_ = [(names[others[a]], names[others[b]]) for a, b in measure.edges]
        self.marginals_ = self._in_units(measure.hub.lines(measure.lines))
        self.missing_share_ = np.where(
            self._axes.gaps, [1 - line[-1, 1] for line in self.marginals_], 0.0
        )
        self._measure = measure

    def _keep_boxes(self, measure: UnitMeasure) -> None:
        self.hub_, self.edges_ = [], []
        box = self._axes.box
        self.support_ = box.points(measure.centres)
        self.widths_, self.weights_ = measure.widths * box.unit, measure.masses
        self.marginals_ = self._in_units(measure.lines)
        self.missing_share_ = np.zeros(len(box.unit))
        self._noise = measure.noise

    def _in_units(self, lines: list[Line]) -> list[FloatArray]:
        """Ends of cells in units of the columns, beside the mass below each."""
        return [self._axes.line(place, *line) for place, line in enumerate(lines)]

    def _share_of_columns(self, table: CodedTable) -> float | None:
        """Share of epsilon for each column by itself; None if the number of rows decides."""
        d = len(table.columns.names)
        few = d == 1 or (d == 2 and not table.columns.choices)
        return 0.0 if self.marginal_share is None and few else self.marginal_share

    def _guarantee_of(self, rows: Rows) -> PrivacyGuarantee:
        low, _ = self._numeric_bounds(CodedTable(cast(Columns, rows.columns)))
        return self._guarantee(bool(np.isnan(low).any()), rows.unit)

    def _guarantee(self, some_are_private: bool, unit: str) -> PrivacyGuarantee:
        # Nothing counts the rows outside the bounds.
        released = f"{'bounds, ' if some_are_private else ''}{self._released()}"
        return replace(super()._guarantee(some_are_private, unit), released=released)

    def _released(self) -> str:
        return "a probability measure"

    @staticmethod
    def _gaussian_loss(epsilon: float, delta: float) -> tuple[float, LossLaw]:
        # Choices are not Gaussian mechanisms, so losses are added up as zCDP.
        rho = zcdp_rho(epsilon, delta)
        return math.sqrt(2 * rho), LossLaw(zcdp=rho)

    def _mechanism(self) -> str:
        if self.delta == 0:
            return "discrete Laplace mechanism and private choices, composed"
        return "discrete Gaussian and exponential mechanisms, composed"

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
        :doc:`sampling </guide/sampling_error>`, and there is none for a tree.

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
        if not hasattr(self, "_noise"):
            raise ValueError("there is no error bound for a tree. Pass method='boxes'.")
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
        if hasattr(self, "_measure"):
            points = self._measure.sample(n, rng)
        else:
            points = self._drawn_from_boxes(n, rng)
        return self._table.decode(points, self._axes)

    def _drawn_from_boxes(self, n, rng):
        chosen = rng.choice(len(self.weights_), size=n, p=self.weights_)
        centres, widths = self.support_[chosen], self.widths_[chosen]
        places = rng.uniform(-0.5, 0.5, size=widths.shape)
        points = centres + places * widths
        low, high = centres - widths / 2, centres + widths / 2
        for axis, line in enumerate(self.marginals_):
            ends = low[:, axis], high[:, axis]
            points[:, axis] = within(line.T, *ends, places[:, axis] + 0.5)
        return (points - self._axes.box.origin) / self._axes.box.unit

    def __sklearn_tags__(self) -> Tags:
        """Declare how the distance of two releases is measured."""
        tags = super().__sklearn_tags__()
        tags.privacy.distance = marginal_distance
        return tags


def _known_extremes(part: FloatArray) -> Extremes:
    """Extremes of the values that are not missing; 0 if all are."""
    known = ~np.isnan(part)
    low, high = (np.where(known, part, fill) for fill in (np.inf, -np.inf))
    some = known.any(axis=0)
    return Extremes(np.where(some, low.min(axis=0), 0.0), np.where(some, high.max(axis=0), 0.0))


def marginal_distance(first: Any, second: Any) -> float:
    """Sum of the Wasserstein distances of the marginals of two releases."""
    pairs = zip(_marginals(first), _marginals(second), strict=True)
    # Differences of noisy masses may be slightly negative, by their rounding.
    weights = partial(np.maximum, 0.0)
    return sum(wasserstein_distance(x, y, weights(p), weights(q)) for (x, p), (y, q) in pairs)


def _marginals(release):
    """Yield places and masses of each column."""
    if not release["marginals_"]:
        for column in release["support_"].T:
            yield column, release["weights_"]
    for ends, masses in (line.T for line in release["marginals_"]):
        yield (ends[1:] + ends[:-1]) / 2, np.diff(masses)

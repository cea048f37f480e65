"""Private probability measures, and synthetic rows drawn from them.

Proof: doc/theory/metric_privacy.md, "Measures".
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import wasserstein_distance
from sklearn.utils import Tags, check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    Chunks,
    FloatArray,
    LegacyRandomStateLike,
    RandomStateLike,
    RowBounds,
    Table,
)
from sklearn_dptda.metric_privacy._box_measure import box_measure, within
from sklearn_dptda.metric_privacy._class_measure import class_measure
from sklearn_dptda.metric_privacy._coded_table import CodedTable, code_table
from sklearn_dptda.metric_privacy._metric_mechanism import MetricPrivacyGuarantee
from sklearn_dptda.metric_privacy._smooth_measure import check_grid, rounding_for, smooth_measure
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, PrivacyGuarantee, pure_rho
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.rows._estimator import BOUNDS_SHARE, ROW_PARAMETERS, SHARE, PrivateRowsEstimator
from sklearn_dptda.rows._intervals import private_intervals
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._bounds import bounds_by_column
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import Interval, Options, StrOptions

# Largest number of halvings of the box. More of them make more boxes than any table has rows.
_MOST_HALVINGS = 22


@fill_doc
class PrivateMeasure(PrivateRowsEstimator):
    """Release a probability measure on a box, and draw synthetic rows from it.

    Whatever you compute from the synthetic rows is post-processing and spends no budget.

    Parameters
    ----------
    %(epsilon)s
    bounds : pair of float or array-like, or dict, default=None
        Public bounds of the numeric columns, to which rows are clipped. A dict has pairs for
        some columns, by name. Missing bounds are found privately, for a fifth of ``epsilon``,
        unless ``method="metric"``.
    method : {"hierarchical", "metric"}, default="hierarchical"
        ``"hierarchical"``: noisy counts of smaller and smaller boxes, with differential
        privacy for rows. ``"metric"``: noisy integrals, with metric privacy for the whole
        measure: the loss is proportional to the Wasserstein distance of two measures.
    %(row_adjacency)s
    %(row_groups)s
    depth : int, default=None
        Number of halvings of the box, or fewer if every value is alone in its box before.
        None: as many as give about ``epsilon / 4`` boxes for each row, and at most 18.
    alpha : float, default=None
        Privacy loss per unit of Wasserstein distance with ``method="metric"``, in the
        maximum norm of the box scaled to the unit cube. None: ``epsilon`` times the number
        of rows, which must be public, so that replacing a row costs ``epsilon``.
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
        Centres of boxes, nodes of a grid with ``method="metric"``, or one box for each
        class with a ``target``. Categories are represented by their places in their list.
    weights_ : ndarray of shape (n_atoms,)
        Probabilities of the boxes or nodes.
    widths_ : ndarray of shape (n_atoms, n_features)
        Widths of the boxes over which synthetic rows are spread; zeros for nodes.
    marginals_ : list of ndarray of shape (n_cells + 1, 2)
        With a ``marginal_share`` or a ``target``: for each column, the ends of its cells
        and the probability below each.
    marginals_of_classes_ : list of list of ndarray of shape (n_cells + 1, 2)
        With a ``target``: for each of its values, the marginals of its rows.
    bounds_ : tuple of two ndarray
        Bounds of the numeric columns, public or private.
    n_samples_ : int or None
        Private or public number of rows. It is the number of people if all rows of a person
        together weigh as much as one. None with ``alpha``, where it is not released.
    privacy_guarantee_ : PrivacyGuarantee or MetricPrivacyGuarantee
        Privacy guarantee of the fit.
    %(columns)s

    Notes
    -----
    .. rubric:: Privacy

    One fit releases a measure. It is ``epsilon``-differentially private for adding or
    removing one row, or for replacing one. All counts share the budget. The number of rows
    is public, or noisy for a twentieth of the budget. Names and types of columns are
    public. Values outside a public list are refused before any budget is spent.

    With ``method="metric"``, two measures at a Wasserstein distance ``w`` cost at most
    ``alpha * (w + resolution)``, where ``resolution`` is what rounding adds.
    %(privacy_of_groups)s

    References
    ----------
    Y. He, R. Vershynin, Y. Zhu, "Algorithmically effective differentially private synthetic
    data", 2023; Boedihardjo, Strohmer, Vershynin, "Metric geometry of the privacy-utility
    tradeoff", Theorem 6.2.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.metric_privacy import PrivateMeasure
    >>> private = PrivateMeasure(bounds=(-3, 3.5), random_state=0).fit(make_two_circles())
    >>> private.sample(500, random_state=0).shape
    (500, 2)
    """

    _parameter_constraints = {
        **ROW_PARAMETERS,
        "bounds": ["array-like", Mapping, None],
        "method": [StrOptions({"hierarchical", "metric"})],
        "depth": [Interval(Integral, 1, _MOST_HALVINGS, closed="both"), None],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
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
        method: Literal["hierarchical", "metric"] = "hierarchical",
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        depth: int | None = None,
        alpha: float | None = None,
        categories: Mapping[Any, Sequence[Any]] | None = None,
        marginal_share: float | None = None,
        target: str | int | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.method = method
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.depth = depth
        self.alpha = alpha
        self.categories = categories
        self.marginal_share = marginal_share
        self.target = target
        self.accountant = accountant
        self.random_state = random_state

    @fill_doc
    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Spend the budget and release a measure.

        Parameters
        ----------
        X : array-like, data frame or Dask collection of shape (n_samples, n_features)
            Training rows. A data frame is one of pandas or polars; names and types of
            its columns are public. A Dask array or data frame, or a list of delayed
            tables, is counted where it is, as :meth:`fit_chunks` describes.
        y : Ignored
        %(groups_of_fit)s

        Returns
        -------
        self

        %(refused_or_not_paid)s
        """
        if groups is not None and self.method == "metric":
            raise ValueError("groups requires method='hierarchical'; got method='metric'.")
        return super().fit(X, groups=groups)

    @fill_doc
    def fit_chunks(self, chunks: Chunks) -> Self:
        """Spend the budget and release a measure of rows that come in chunks.

        The result is the same as that of :meth:`fit` on all rows together. Memory
        holds one chunk and the released boxes. It requires ``method="hierarchical"``.

        %(chunks_of_rows)s

        Returns
        -------
        self

        %(refused_or_not_paid)s
        """
        if self.method == "metric":
            self._check_parameters()
            raise ValueError("method='metric' reads all rows at once: use fit.")
        return super().fit_chunks(chunks)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.method == "hierarchical" and self.alpha is not None:
            raise ValueError("alpha requires method='metric'; got method='hierarchical'.")
        for name in ("marginal_share", "groups", "target"):
            if self.method == "metric" and getattr(self, name) is not None:
                raise ValueError(f"{name} requires method='hierarchical'; got method='metric'.")
        if self.target is not None and self.depth is not None:
            raise ValueError(
                "depth cannot be used with target: it is for boxes of all columns, and there are "
                "none with a target."
            )
        if self.method == "metric" and self.alpha is None and self.adjacency != "replace-one":
            raise ValueError(
                "method='metric' needs alpha, or adjacency='replace-one', which makes the number "
                "of rows public."
            )

    def _coding(self) -> Callable[[Any], tuple[Any, Mapping[int, list[Any]]]]:
        return partial(code_table, categories=self.categories)

    def _check_table(self, table: Any, **options: Any) -> tuple[FloatArray, Columns]:
        coded, choices = code_table(table, self.categories)
        if choices and self.method == "metric":
            raise ValueError(
                "method='metric' takes only numeric columns. Use method='hierarchical' for "
                "categories and Boolean values, or convert them to numbers."
            )
        rows = check_rows(self, coded, **options)
        columns = Columns.of(table, rows.shape[1], choices)
        self._numeric_bounds(CodedTable(columns))
        return rows, columns

    def _numeric_bounds(self, table: CodedTable) -> tuple[FloatArray, FloatArray]:
        """Bounds of the numeric columns, NaN if they are private."""
        names = [table.columns.names[place] for place in table.numeric]
        low, high = bounds_by_column(self.bounds, len(names), names)
        if self.method == "metric" and np.isnan(low).any():
            raise ValueError("method='metric' needs bounds for all columns.")
        # Refuse a box that contains no number, and an invalid target, before any budget is spent.
        self._place_of_target(table)
        self._box_of(table, np.where(np.isnan(low), -1.0, low), np.where(np.isnan(high), 1.0, high))
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
            share = BOUNDS_SHARE * epsilon
            ends = private_intervals(rows.selected(places), share, self.adjacency, noise)
            low[private], high[private] = table.in_types(places, *ends)
            epsilon *= 1 - BOUNDS_SHARE
        box, sizes = self._box_of(table, low, high)
        cube = rows.map(box.to_cube)
        of_classes: Any = []
        if self.method == "metric":
            support, widths, weights, lines, n, law = self._smooth(cube, guarantee, noise)
        else:
            place = self._place_of_target(table)
            public: dict[str, Any] = {
                "sizes": sizes,
                "marginal_share": self._share_of_columns(table),
                "noise": noise,
                "epsilon": epsilon,
                "size_is_public": self.adjacency == "replace-one",
            }
            if place is None:
                *released, law = box_measure(cube, depth=self.depth, **public)
                (support, widths, weights, lines), n = released, law.n_rows
            else:
                *released, n = class_measure(cube, target=place, **public)
                (support, widths, weights, lines, of_classes), law = released, None
            if rows.n_people is not None:
                n = max(round(n / rows.mass), 1)
        self.bounds_ = low, high
        self.support_, self.widths_, self.weights_ = box.points(support), widths * box.unit, weights
        self.marginals_ = _in_units(box, lines)
        self.marginals_of_classes_ = [_in_units(box, lines) for lines in of_classes]
        self.n_samples_, self._table, self._box, self._noise = n, table, box, law
        return []

    def _share_of_columns(self, table: CodedTable) -> float | None:
        """Share of epsilon for each column by itself; None if the number of rows decides."""
        d = len(table.columns.names)
        few = d == 1 or (d == 2 and not table.columns.choices)
        return 0.0 if self.marginal_share is None and few else self.marginal_share

    def _smooth(self, rows: Rows, guarantee: Any, noise: NoiseSource) -> tuple[Any, ...]:
        """Support, widths, weights, no marginals, number of rows if public, law of the noise."""
        points, n = rows.as_array(), rows.n_rows
        # The guarantee for one row is epsilon. Its share of the measure moves by at most the whole
        # width, and somewhat more noise covers the rounding to the lattice.
        paid = self.alpha is not None
        factor = 1.0 if paid else 1 / (1 - guarantee.resolution * n)
        support, weights, law = smooth_measure(points, noise, guarantee.alpha, factor)
        return support, np.zeros_like(support), weights, [], None if paid else n, law

    def _box_of(
        self, table: CodedTable, low: FloatArray, high: FloatArray
    ) -> tuple[Box, FloatArray | None]:
        """The box, and the number of values along each of its axes."""
        if self.method == "metric":
            return Box.cornered(low, high), None
        return table.cells(low, high)

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        self._check_parameters()
        if self.method == "metric" and n_features is None:
            raise ValueError(
                "method='metric': the cost of a fit depends on the number of columns. Pass X."
            )
        # A single row is sufficient: the cost of replacing one is given.
        return self._guarantee_of_shape(1, n_features or 1, self.bounds is None, self._unit())

    def _guarantee_of(self, rows: Rows) -> PrivacyGuarantee:
        low, _ = self._numeric_bounds(CodedTable(cast(Columns, rows.columns)))
        finds_bounds = bool(np.isnan(low).any())
        return self._guarantee_of_shape(rows.n_rows, rows.n_features, finds_bounds, rows.unit)

    def _guarantee_of_shape(
        self, n: int, d: int, finds_bounds: bool, unit: str
    ) -> PrivacyGuarantee:
        epsilon, seeded = float(self.epsilon), self.random_state is not None
        released = f"{'bounds, ' if finds_bounds else ''}a probability measure"
        if self.method == "hierarchical":
            return PrivacyGuarantee(
                epsilon=epsilon,
                delta=0.0,
                adjacency=self.adjacency,
                unit=unit,
                mechanism="discrete Laplace mechanism, composed over levels",
                released=released,
                seeded=seeded,
                rho=pure_rho(epsilon),
            )
        alpha = epsilon * n if self.alpha is None else float(self.alpha)
        check_grid(alpha, d)
        rounding = rounding_for(alpha, d)
        if self.alpha is None and rounding * n > 0.5:
            raise ValueError(
                f"epsilon is too small for the rounding of its noise; got {quoted(self.epsilon)}."
            )
        return MetricPrivacyGuarantee(
            # Two measures on the unit cube are at a distance of at most one.
            epsilon=epsilon if self.alpha is None else alpha * (1 + rounding),
            delta=0.0,
            adjacency=self.adjacency,
            unit=unit if self.alpha is None else "all rows together",
            mechanism="discrete Laplace mechanism",
            released=released,
            seeded=seeded,
            alpha=alpha,
            metric="Wasserstein distance of the scaled measure",
            diameter=1.0,
            resolution=rounding,
        )

    def error_bound(self, confidence: float = 0.95) -> float:
        """Upper bound of the distance between the released measure and the rows.

        It bounds the Wasserstein distance between the rows, clipped to ``bounds_``, and the
        measure of ``support_`` and ``weights_``, or the distribution from which
        :meth:`sample` draws. The distance uses the maximum norm of the box scaled to the
        unit cube: for one column it is a share of the width of the bounds. Whatever the
        rows are, the bound holds with the given probability over the noise of a fit. It
        spends no budget.

        The bound is conservative, less so with ``method="metric"``, which is the better
        choice for one column and a public number of rows. It does not cover the error of
        :doc:`sampling </guide/sampling_error>`.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability with which the bound holds, between 0 and 1. Bounds of one
            release at several levels do not hold all at once with this probability.

        Returns
        -------
        float
            At most 1, which says nothing about the release.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_dptda.metric_privacy import PrivateMeasure
        >>> X = np.random.default_rng(0).beta(2, 5, (20_000, 1))
        >>> private = PrivateMeasure(epsilon=1.0, bounds=(0, 1), random_state=0).fit(X)
        >>> private.error_bound() < 0.02
        True
        """
        check_is_fitted(self)
        if not (isinstance(confidence, Real) and 0 < confidence < 1):
            raise ValueError(f"confidence must be between 0 and 1; got {quoted(confidence)}.")
        if self._noise is None:
            if self.marginals_of_classes_:
                raise ValueError("there is no error bound with a target.")
            raise ValueError(
                "method='metric' has an error bound for one column only; got "
                f"{self.n_features_in_} columns."
            )
        return float(self._noise.error_bound(self.weights_, 1 - float(confidence)))

    def sample(
        self, n_samples: int | None = None, random_state: LegacyRandomStateLike = None
    ) -> Table:
        """Draw synthetic rows. This is post-processing and spends no budget.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows to draw. None: ``n_samples_``, if that is known.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw.

        Returns
        -------
        array or data frame of shape (n_samples, n_features)
            A table of the same kind as that of ``fit``, with the same names and types.
        """
        check_is_fitted(self)
        n = self.n_samples_ if n_samples is None else n_samples
        if n is None:
            raise ValueError("n_samples must be given, since the number of rows is not released.")
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


def _in_units(box: Box, lines: list[Any]) -> list[FloatArray]:
    """Ends of cells in units of the columns, beside the mass below each."""
    return [
        np.column_stack([origin + unit * ends, masses])
        for origin, unit, (ends, masses) in zip(box.origin, box.unit, lines, strict=False)
    ]


def marginal_distance(first: Any, second: Any) -> float:
    """Sum of the Wasserstein distances of the marginals of two releases, and of their classes."""
    of_classes = (release.get("marginals_of_classes_") or [] for release in (first, second))
    within = [
        wasserstein_distance(
            *(_centres(line) for line in pair), *(np.diff(line[:, 1]) for line in pair)
        )
        for lines in zip(*of_classes, strict=True)
        for pair in zip(*lines, strict=True)
    ]
    columns = zip(first["support_"].T, second["support_"].T, strict=True)
    weights = first["weights_"], second["weights_"]
    return sum(wasserstein_distance(*pair, *weights) for pair in columns) + sum(within)


def _centres(line):
    return (line[1:, 0] + line[:-1, 0]) / 2

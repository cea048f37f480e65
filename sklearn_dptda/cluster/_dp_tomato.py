"""Peaks of a private histogram.

Proof: doc/theory/private_peaks.md, "Sensitivity".
"""

import math
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    ColumnUnits,
    FloatArray,
    IntArray,
    RandomStateLike,
    RowBounds,
)
from sklearn_dptda.cluster._grid_peaks import (
    background_cells,
    clearest_peaks,
    count_clusters,
    joined_parts,
)
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee, Sensitivity
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._localisation import Intervals
from sklearn_dptda.rows._methods import by_rows, fit_predict
from sklearn_dptda.rows._private_cubes import private_cubes
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import Interval, StrOptions

# Accuracy only: cells depend on public and on released numbers, and shares leave the rest.
# Default number of cells along each axis, by the number of dimensions: the smallest, the usual and
# the largest number. In more dimensions, the default number of cells in all.
_BINS = {1: (96, 128, 192), 2: (24, 32, 48), 3: (18, 24, 24)}
_DEFAULT_CELLS = 1 << 12
# Numbers of rows, in scales of the noise. Up to the first one, cells are coarse. From the second
# one, they are fine if bounds were found privately, which are 1.2 to 1.7 times as wide as the rows.
# From the third one, they are fine if the number of clusters is given. Then the share of the budget
# for the number of rows.
_COARSE_BELOW, _FINE_IN_FOUND, _FINE_FOR_GIVEN, _COUNT_SHARE = 700, 1000, 4000, 0.02
# Sides of a box within this factor of one another are taken for lengths in one unit: cubes tell
# shapes best, and cost clusters of columns in unlike units little.
_ONE_UNIT = 8.0
# With more columns than have a usual number of cells, an axis has at most this many times as many
# cells as another.
_LITTLE_UNEQUAL = 2.0
# Cubes are at most this many times as many as the usual number of cells.
_MORE_CELLS = 2.0
# An axis has at most this many times as many cells as another, in up to three dimensions. With
# fewer cells, a short axis would show no clusters.
_MOST_UNEQUAL = 8.0
# Number of integers from which the cells of a column contain equally many of them. Between fewer
# integers there is no room for valleys, and each of them may be a cluster.
_FEWEST_INTEGERS = 5
# If the number of clusters is given, more parts than that must stand out by this factor more.
_SURE_PARTS = 1.5
# Bounds narrower than this share of the given ones count as found privately.
_NARROWER = 0.99
# Least share of the rows for which bounds within given ones become wider by the factor sqrt(2).
_LEAST_GAIN = 0.013
# Share for the number of rows, of what is spent on intervals within given bounds.
_ROW_COUNT_SHARE = 0.1
# With more columns or more cells than these, a histogram holds more noise than rows and takes long.
_MAX_FEATURES, _MAX_CELLS = 12, 1 << 18


@fill_doc
class DPToMATo(PrivateRowsEstimator):
    """Clusters of any shape under differential privacy, from the peaks of a noisy histogram.

    A fit releases the histogram of a grid in private bounds, with discrete Laplace noise,
    and smooths it. The two sides of a saddle are two clusters if both stand out from it
    against the noise of sampling and of privacy.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters. None: those that stand out by more than ``threshold``.
    %(epsilon)s
    bounds : pair of float or array-like, or dict, default=None
        Public lower and upper bounds of one to twelve columns. Rows are clipped to narrower
        bounds, which are found privately within these, for at most a tenth of ``epsilon``. A
        dict has pairs for some columns, by name; missing bounds cost at most a fifth. Cells are
        coarse in four columns, and little more than quadrants in twelve.
    %(row_adjacency)s
    %(row_groups)s
    n_bins : int, default=None
        Number of cells along each axis. None: 96 to 192 cells in one dimension, 24 to 48 in
        two, and 18 to 24 in three, by a noisy number of rows, which takes a fiftieth of the
        budget; about 4,096 cells in all in more dimensions. Cubes are up to twice as many. The
        inner cells of a column of an integer type contain equally many integers, if its bounds
        contain at least five, so there are as many cells as this allows for. The type is public:
        give the type ``int`` to columns that are whole numbers by their meaning.
    units : {"columns", "bounds"} or array-like of shape (n_features,), default="columns"
        What distances measure. ``"columns"``: the cells are cubes if no side of the given box, or
        of the found one, is over eight times as long as another. ``"bounds"``: they have the
        proportions of ``bounds``. An array contains public lengths that count as one: the cells are
        cubes in these, as far as columns of integers allow for it. A given ``n_bins`` is then the
        geometric mean of their numbers along the axes.
    threshold : float, default=2.0
        Number of standard deviations by which both sides of a saddle must stand out from it
        to be two clusters, if ``n_clusters`` is None. If it is given, parts that stand out
        1.5 times as far count as separate before parts are joined. With ``noise="auto"``, a
        cell must stand out as far from the background.
    noise : {"auto"}, default=None
        ``"auto"``: cells that cannot be distinguished from the background get the label -1,
        which removes rows in sparse parts of clusters, many of them if ``epsilon`` is small.
        None: every row gets a cluster.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    counts_ : ndarray of n_features dimensions
        The private histogram: whole numbers, some of them negative.
    edges_ : list of ndarray
        Edges of the cells along each axis, one more than there are cells.
    diagram_ : ndarray of shape (n_peaks, 2)
        Birth and death of the peaks at the chosen scale, in standard deviations of one count,
        the most prominent first. The highest peak dies at the lowest cell, and the others at
        their saddles. The birth is higher by as much as the weaker side of the saddle stands
        out. The first ``n_clusters_`` rows are the clusters, unless parts were joined.
    n_clusters_ : int
        Number of clusters, without the background.
    cell_labels_ : ndarray of the shape of `counts_`
        Cluster of each cell, or -1 for the background.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        Centre of the highest cell of each cluster.
    scale_ : float
        Standard deviation of the smoothing that separates parts best, in cells.
    %(bounds_of_rows)s
    %(logarithms_of_columns)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    ToMATo : Without privacy, in any dimension.
    DPLandmarkToMATo : For more columns, on landmarks.
    DPMoGMorse : For more columns, by a mixture.

    Notes
    -----
    No detail that is finer than a cell can be told: ``units_`` are the sides of the cells, and
    ``scale_ * units_`` the lengths over which the histogram is smoothed. The sides follow from the
    released bounds and number of cells, and show whether two clusters can be told apart at all. To
    make them shorter, pass narrower ``bounds`` or more ``n_bins``.

    .. rubric:: Privacy

    One fit releases bounds, the share of the rows beyond them, whether there are enough rows
    for finer cells, and a noisy histogram. It is ``epsilon``-differentially private for
    adding or removing one row, or for replacing one. Labels of private rows are *not* private.
    The types of the columns count as public: a reader that infers them from the rows can make
    them depend on a single one.
    %(privacy_of_groups)s

    References
    ----------
    F. Chazal, L. Guibas, S. Oudot, P. Skraba, "Persistence-based clustering in
    Riemannian manifolds", Journal of the ACM 60, 2013. For the smoothing: J. Polzehl,
    V. Spokoiny, "Propagation-separation approach for local likelihood estimation", 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from sklearn_dptda.cluster import DPToMATo
    >>> X, y = make_moons(10_000, noise=0.07, random_state=0)
    >>> private = DPToMATo(epsilon=1.0, bounds=([-1.5, -1], [2.5, 1.5]), random_state=0)
    >>> adjusted_rand_score(y, private.fit_predict(X)) > 0.95
    True
    """

    _parameter_constraints = {
        name: values
        for name, values in PrivateRowsEstimator._parameter_constraints.items()
        if name != "delta"
    } | {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "n_bins": [Interval(Integral, 2, None, closed="left"), None],
        "units": [StrOptions({"columns", "bounds"}), "array-like"],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "noise": [StrOptions({"auto"}), None],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        epsilon: float = 1.0,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        n_bins: int | None = None,
        units: ColumnUnits = "columns",
        threshold: float = 2.0,
        noise: Literal["auto"] | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.bounds = bounds
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.n_bins = n_bins
        self.units = units
        self.threshold = threshold
        self.noise = noise
        self.accountant = accountant
        self.random_state = random_state

    _adapts_to_columns = True

    def _check_columns(self, columns: Columns) -> None:
        n_features = len(columns.names)
        if n_features > _MAX_FEATURES:
            raise ValueError(
                f"DPToMATo takes at most {_MAX_FEATURES} columns; got {n_features}. Project the "
                "rows with PrivatePCA, or use DPLandmarkToMATo or DPMoGMorse."
            )
        if self._bins(n_features) ** n_features > _MAX_CELLS:
            raise ValueError(
                f"n_bins={self.n_bins} makes more than {_MAX_CELLS} cells in {n_features} "
                "dimensions. Lower n_bins."
            )
        if self.n_clusters is not None and self.n_clusters > self._bins(n_features) ** n_features:
            raise ValueError(
                f"n_clusters={self.n_clusters} is larger than the number of cells. Raise n_bins."
            )
        super()._check_columns(columns)
        self._public_units(n_features)

    def _bins(self, n_features: int) -> int:
        if self.n_bins is not None:
            return int(self.n_bins)
        return max(_BINS.get(n_features, (2, int(_DEFAULT_CELLS ** (1 / n_features)))))

    def _bins_within(self, rows, budget, box):
        """Number of cells along each axis, and the budget that is left."""
        bins, budget = self._bins_of_cube(rows, budget, box)
        sides, units = box.high - box.low, self._units_of_cells(box)
        if units is None:
            return (bins,) * len(sides), budget
        # Cells must be cubes: otherwise a thin curve would be denser where it runs along their
        # longer sides. If there are rows enough, the shortest side keeps its number of cells, as
        # far as this does not make too many.
        lengths = sides / units
        most = _MOST_UNEQUAL if len(sides) in _BINS else _LITTLE_UNEQUAL
        lengths = np.maximum(lengths, lengths.max() / most)
        lengths = lengths / np.exp(np.log(lengths).mean())
        usual = bins == _BINS.get(len(sides), (0, 0, 0))[1]
        finest = self.n_clusters is not None and bins == self._bins(len(sides))
        if self.n_bins is None and (usual or finest):
            bins *= min(1 / lengths.min(), _MORE_CELLS ** (1 / len(sides)))
        return tuple(np.maximum(np.round(bins * lengths), 2).astype(int).tolist()), budget

    def _axis(self, j, n, rows, box):
        """About ``n`` cells along an axis.

        The inner cells of a column of integers contain equally many of them. Otherwise, some would
        contain one integer more than others, and look like peaks.

        Proof: doc/theory/private_peaks.md, "Sensitivity".
        """
        # Rows that are clipped to an end count with the nearest integer.
        first, last = math.floor(box.low[j] + 0.5), math.ceil(box.high[j] - 0.5)
        n_integers = last - first + 1
        whole = rows.columns.is_integer(j) and not self._logarithms.columns[j]
        if n_integers < _FEWEST_INTEGERS or not whole:
            edges = box.points(np.linspace(-1.0, 1.0, n + 1)[:, None])[:, j].copy()
            return _Axis(edges, -1.0, n / 2)
        usual = self.n_bins is None and len(box.low) in _BINS
        per_cell = max(round(n_integers / n) if usual else math.ceil(n_integers / n), 1)
        n = math.ceil(n_integers / per_cell)
        start = first - 0.5 - (per_cell * n - n_integers) // 2
        edges = start + float(per_cell) * np.arange(n + 1.0)
        return _Axis(edges, (start - box.origin[j]) / box.unit[j], box.unit[j] / per_cell)

    def _units_of_cells(self, box):
        """Lengths that count as one, which are public; None if they are unknown."""
        public = self._public_units(len(box.low))
        low, high = self._given_bounds(public)
        alike = any(
            sides.max() <= _ONE_UNIT * sides.min() * (1 + 1e-9)
            for sides in (high - low, box.high - box.low)
        )
        alike &= self.n_bins is None
        return np.ones(len(box.low)) if public.lengths is None and alike else public.lengths

    def _given_bounds(self, public):
        """Public bounds, in the logarithms of the columns that count by these."""
        return self._logarithms.of(public.low), self._logarithms.of(public.high)

    def _public_box(self, n_features):
        box = super()._public_box(n_features)
        return replace(box, logarithms=box.with_units(self.units).logarithms)

    def _public_units(self, n_features):
        """The public box, in the units of the cells. Rows are not, since cells fill the box."""
        return self._public_box(n_features).with_units(self.units)

    def _bins_of_cube(self, rows, budget, box):
        """Cells along each axis if all axes are equally long, and the budget that is left."""
        d = rows.n_features
        if self.n_bins is not None or d not in _BINS:
            return self._bins(d), budget
        counts, deviation = budget.noisy_counts(np.array([rows.sum(len)]), 1, _COUNT_SHARE)
        # The scale that Laplace noise would have with the whole budget.
        scale = _COUNT_SHARE * deviation / math.sqrt(2)
        low, high = self._given_bounds(self._public_box(d))
        found = not (box.high - box.low > _NARROWER * (high - low)).all()
        fine_from = _FINE_IN_FOUND if found else _FINE_FOR_GIVEN
        coarse, bins, fine = _BINS[d]
        if counts[0] < _COARSE_BELOW * scale:
            bins = coarse
        elif counts[0] >= fine_from * scale and (found or self.n_clusters is not None):
            bins = fine
        return bins, budget.rest(_COUNT_SHARE)

    @staticmethod
    def _search(rows, low, high, budget, share, others_are_found):
        counts, _ = budget.noisy_counts(np.array([rows.n_rows]), 1, _ROW_COUNT_SHARE * share)
        low, high = private_cubes(
            rows,
            [[j] for j in range(len(low))],
            start=(low, high),
            epsilon=budget.choice_epsilon((1 - _ROW_COUNT_SHARE) * share / len(low)),
            adjacency=budget.adjacency,
            n=max(int(counts[0]), 1),
            noise=budget.noise,
            least_gain=_LEAST_GAIN,
        )
        return Intervals.given(low, high), budget.rest(share)

    def _learn(self, rows, budget, rng, box):
        bins, budget = self._bins_within(rows, budget, box)
        axes = [self._axis(j, n, rows, box) for j, n in enumerate(bins)]
        self.units_ = np.array([axis.edges[1] - axis.edges[0] for axis in axes])
        self.edges_ = [
            self._logarithms.selected(np.array([j])).back(axis.edges[:, None])[:, 0]
            for j, axis in enumerate(axes)
        ]
        bins = tuple(len(edges) - 1 for edges in self.edges_)
        sensitivity = Sensitivity(
            1.0 if self.adjacency == "add-remove" else 2.0, "l1", self.adjacency
        )
        scale = budget.scale(sensitivity, 1.0)
        starts, rates = (np.array([axis[k] for axis in axes]) for k in (1, 2))
        count = partial(_histogram, starts=starts, rates=rates, bins=bins)
        counts = rows.sum(count, n_cells=math.prod(bins))
        (noisy,) = budget.add_noise((counts.reshape(bins),), sensitivity.value, scale)
        if rows.n_people is not None:
            # Heights are computed from counts of people.
            noisy, scale = noisy / rows.mass, scale / rows.mass
        variance = _variance(scale)
        surely = 1.0 if self.n_clusters is None else _SURE_PARTS
        n_parts = count_clusters(noisy, variance, surely * float(self.threshold))
        n_clusters = int(self.n_clusters or n_parts)
        n_parts = max(n_clusters, n_parts)
        best = clearest_peaks(noisy, variance, n_parts)
        labels = joined_parts(noisy, best.cut(min(n_parts, len(best.scores))), n_clusters)
        self.n_clusters_ = int(labels.max()) + 1
        tops = best.tops(labels)
        if self.noise == "auto":
            background = background_cells(noisy, variance, float(self.threshold))
            # At least the peak of a cluster stays in it.
            background[tuple(tops.T)] = False
            labels[background] = -1
        self.counts_, self.scale_ = noisy, best.scale
        self.diagram_, self.cell_labels_ = best.diagram(), labels
        middles = [(axis.edges[1:] + axis.edges[:-1]) / 2 for axis in axes]
        centres = [middle[top] for middle, top in zip(middles, tops.T, strict=True)]
        centres = np.clip(np.column_stack(centres), box.low, box.high)
        self.cluster_centers_ = self._logarithms.back(centres)

    def _release(
        self, rows: Rows, guarantee: PrivacyGuarantee, seed: Any, public_seed: Any = None
    ) -> list[str]:
        remarks = super()._release(rows, guarantee, seed, public_seed)
        if self.n_clusters is not None and self.n_clusters_ < self.n_clusters:
            remarks.append(
                f"n_clusters={self.n_clusters}, but the private histogram has fewer peaks: the "
                f"result has {self.n_clusters_} clusters. Raise n_bins or epsilon. Between "
                "neighbouring values of a column of integers, there is no valley."
            )
        return remarks

    def _mechanism(self) -> str:
        given = "" if self.bounds is None else "exponential mechanism and "
        return f"{given}discrete Laplace mechanism, composed"

    def _released(self) -> str:
        return "a histogram, and the clusters of its peaks"

    fit_predict = fit_predict

    @by_rows
    def predict(self, X: ArrayLike) -> IntArray:
        """Cluster of the cell that each row falls into.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows beyond the bounds are clipped to them.

        Returns
        -------
        ndarray of shape (n_samples,)
            The label is -1 in the background with ``noise="auto"``.
        """
        X = self._rows_as_given(X)
        cells = [
            np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2)
            for edges, column in zip(self.edges_, X.T, strict=True)
        ]
        return self.cell_labels_[tuple(cells)]


class _Axis(NamedTuple):
    """Edges of the cells along an axis, the first one in the cube, and cells for each of its units.

    Where cells fill the bounds, both numbers are exact, so that rows on edges are counted in the
    cells in which ``predict`` finds them.
    """

    edges: FloatArray
    start: float
    rate: float


def _histogram(
    part: FloatArray, starts: FloatArray, rates: FloatArray, bins: tuple[int, ...]
) -> IntArray:
    """Exact counts of the cells of the cube. Rows outside of all cells count in the nearest one."""
    cells = np.clip(((part - starts) * rates).astype(np.int64), 0, np.array(bins) - 1)
    return np.bincount(np.ravel_multi_index(tuple(cells.T), bins), minlength=math.prod(bins))


def _variance(scale: float) -> float:
    """Variance of discrete Laplace noise."""
    if scale == 0:
        return 0.0
    ratio = math.exp(-1 / scale)
    return 2 * ratio / (1 - ratio) ** 2

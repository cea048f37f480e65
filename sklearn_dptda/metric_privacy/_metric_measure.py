"""Private probability measures under metric privacy, by integrals of smooth functions.

Proof: doc/theory/metric_privacy.md, "Measures".
Proof: doc/theory/metric_privacy.md, "How far a released measure is off".
"""

import math
from collections.abc import Mapping
from itertools import product
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack, vstack
from scipy.stats import gamma, wasserstein_distance
from sklearn.utils import Tags, check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    FloatArray,
    LegacyRandomStateLike,
    RandomStateLike,
    RowBounds,
    Table,
)
from sklearn_dptda.metric_privacy._metric_mechanism import MetricMechanism, MetricPrivacyGuarantee
from sklearn_dptda.privacy import (
    FixedPoint,
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._estimator import refused_without_trace
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._parameters import check_confidence, quoted
from sklearn_dptda.rows._estimator import ROW_PARAMETERS
from sklearn_dptda.rows._rows import BATCH, Box, slices
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._bounds import bounds_by_column
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._people import column_names, warn_of_ids
from sklearn_dptda.utils._sklearn import Interval, _fit_context

# Largest number of nodes of a grid, which is projected by linear programming.
MOST_NODES = 5000
# Largest number of cells of a line.
MOST_CELLS = 1 << 16
# Range of rates for which noise can be scaled to 64-bit integers.
_ALPHAS = (1e-6, 1e9)
# Number of bits of each of the two words of a number that is summed, and the integer that
# represents one.
_WORD = 32
_WHOLE = 2 ** (2 * _WORD)
# Largest distance that floating-point numbers add to two measures. Places in the grid, weights of a
# point and means are rounded by about 2**-53 of their size, and sums are exact.
_LOST = 2.0**-50


@fill_doc
class MetricMeasure(PrivateEstimatorMixin):
    """Release the distribution of rows under metric privacy, and draw synthetic rows from it.

    The privacy loss is proportional to the Wasserstein distance of two distributions. For one
    column and a public number of rows, the release is more accurate than that of
    :class:`~sklearn_dptda.synthetic.PrivateMeasure`.

    Parameters
    ----------
    %(epsilon)s
    bounds : pair of float or array-like, or dict, default=None
        Public bounds of the columns, to which rows are clipped. They are required. A dict has
        a pair for each column, by name.
    alpha : float, default=None
        Privacy loss per unit of Wasserstein distance, in the maximum norm of the box scaled to
        the unit cube. It replaces ``epsilon``, and the number of rows is not released. None:
        ``epsilon`` times the number of rows, which is public, so that replacing a row costs
        ``epsilon``.
    unit : str, default="one row"
        Name of the privacy unit in the guarantee. It has no effect on the noise.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    support_ : ndarray of shape (n_atoms, n_features)
        Nodes of a grid.
    weights_ : ndarray of shape (n_atoms,)
        Probabilities of the nodes.
    bounds_ : tuple of two ndarray
        Bounds of the columns.
    n_samples_ : int or None
        Public number of rows. None with ``alpha``.
    privacy_guarantee_ : MetricPrivacyGuarantee
        Privacy guarantee of the fit.
    %(columns)s

    See Also
    --------
    sklearn_dptda.synthetic.PrivateMeasure : Tables with categories or private bounds.

    Notes
    -----
    .. rubric:: Privacy

    One fit without ``alpha`` is ``epsilon``-differentially private for replacing one row.
    Two measures at a Wasserstein distance ``w`` cost at most ``alpha * (w + resolution)``,
    where ``resolution`` is what rounding adds. Names and types of columns are public.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, "Metric geometry of the privacy-utility tradeoff",
    Theorem 6.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.metric_privacy import MetricMeasure
    >>> X = np.random.default_rng(0).beta(2, 5, (2000, 1))
    >>> private = MetricMeasure(bounds=(0, 1), random_state=0).fit(X)
    >>> private.sample(500, random_state=0).shape
    (500, 1)
    """

    _parameter_constraints = {
        **MetricMechanism._parameter_constraints,
        "epsilon": ROW_PARAMETERS["epsilon"],
        "bounds": ["array-like", Mapping],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "unit": [str],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        bounds: RowBounds | None = None,
        *,
        alpha: float | None = None,
        unit: str = "one row",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.alpha = alpha
        self.unit = unit
        self.accountant = accountant
        self.random_state = random_state

    @fill_doc
    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Spend the budget and release a measure.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numeric rows. Names and types of the columns of a data frame are public.
        %(ignored_y_and_self)s

        %(refused_or_not_paid)s
        """
        self._check_epsilon()
        warn_of_ids(column_names(X))
        rows = check_rows(self, X)
        n, d = rows.shape
        low, high = bounds_by_column(self.bounds, d, getattr(self, "feature_names_in_", ()))
        if np.isnan(low).any():
            raise ValueError("bounds must be given for all columns. They must be public.")
        box, columns = Box.cornered(low, high), Columns.of(X, d)
        own = self._guarantee_of_shape(n, d)
        guarantee = self._after_steps(own)
        with self._paid(guarantee, records=(rows, columns)) as seeds:
            # With a given epsilon, the share of a row moves by at most the whole width, and
            # somewhat more noise covers the rounding to the lattice.
            factor = 1.0 if self.alpha is not None else 1 / (1 - own.resolution * n)
            support, self.weights_ = smooth_measure(
                box.to_cube(rows), NoiseSource(*seeds), own.alpha, factor
            )
            self.support_, self.bounds_ = box.points(support), (low, high)
            self.n_samples_ = n if self.alpha is None else None
            self._columns, self._scale = columns, _scale(factor, own.alpha)
            self.privacy_guarantee_ = guarantee
        seeds.keep_fitted(self)
        return self

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        self._check_epsilon()
        if n_features is None:
            raise ValueError("the cost of a fit depends on the number of columns: pass X.")
        # A single row is sufficient: the cost of replacing one is given.
        return self._guarantee_of_shape(1, n_features)

    def _guarantee_of_shape(self, n: int, d: int) -> MetricPrivacyGuarantee:
        alpha = float(self.epsilon) * n if self.alpha is None else float(self.alpha)
        if d > 1 and 2**d > MOST_NODES:
            raise ValueError(
                f"MetricMeasure takes at most 12 columns; got {d}. Use "
                "sklearn_dptda.synthetic.PrivateMeasure."
            )
        if not (_ALPHAS[0] <= alpha <= _ALPHAS[1] or math.isinf(alpha)):
            raise ValueError(
                f"alpha, or epsilon times the number of rows, must be inf or between "
                f"{_ALPHAS[0]:g} and {_ALPHAS[1]:g}; got {quoted(alpha)}."
            )
        rounding = rounding_for(alpha, d)
        if self.alpha is None and rounding * n > 0.5:
            raise ValueError(
                f"epsilon is too small for the rounding of its noise; got {quoted(self.epsilon)}."
            )
        return MetricPrivacyGuarantee(
            # Two measures on the unit cube are at a distance of at most one.
            epsilon=float(self.epsilon) if self.alpha is None else alpha * (1 + rounding),
            delta=0.0,
            adjacency="replace-one",
            unit=str(self.unit) if self.alpha is None else "all rows together",
            mechanism="discrete Laplace mechanism",
            released="a probability measure",
            seeded=self.random_state is not None,
            alpha=alpha,
            metric="Wasserstein distance of the scaled measure",
            diameter=1.0,
            resolution=rounding,
        )

    @fill_doc
    def error_bound(self, confidence: float = 0.95) -> float:
        """Upper bound of the distance between the released measure and the rows of one column.

        It bounds the Wasserstein distance between the rows, clipped to ``bounds_``, and the
        release, as a share of the width of the bounds. Whatever the rows are, the bound holds
        with the given probability over the noise of a fit. It spends no budget, and does not
        cover the error of :doc:`sampling </guide/sampling_error>`.

        %(confidence_and_bound)s

        Examples
        --------
        >>> from sklearn_dptda.metric_privacy import MetricMeasure
        >>> private = MetricMeasure(bounds=(0, 1), random_state=0).fit([[0.3], [0.4]] * 5000)
        >>> private.error_bound() < 0.02
        True
        """
        check_is_fitted(self)
        check_confidence(confidence)
        if self.n_features_in_ > 1:
            raise ValueError(
                f"there is an error bound for one column only; got {self.n_features_in_} columns."
            )
        n_cells, scale = len(self.weights_) - 1, self._scale
        step = FixedPoint.for_scale(scale).step if scale else 0.0
        # A discrete Laplace variable is at most a continuous one plus a step. Rounding is another
        # step.
        noise = scale * gamma.isf(1 - float(confidence), n_cells) + 2 * n_cells * step
        return float(min(0.5 / n_cells + noise, 1.0))

    @fill_doc
    def sample(
        self, n_samples: int | None = None, random_state: LegacyRandomStateLike = None
    ) -> Table:
        """Draw synthetic rows. This is post-processing and spends no budget.

        %(sampled_rows)s
        """
        check_is_fitted(self)
        n = self.n_samples_ if n_samples is None else n_samples
        if n is None:
            raise ValueError("n_samples must be given, since the number of rows is not released.")
        check_scalar(n, "n_samples", Integral, min_val=1)
        rng = check_random_state(random_state)
        chosen = rng.choice(len(self.weights_), size=n, p=self.weights_)
        return self._columns.of_numbers(self.support_[chosen], *self.bounds_)

    def __sklearn_tags__(self) -> Tags:
        """Declare that the number of atoms differs, and how releases are compared."""
        tags = super().__sklearn_tags__()
        tags.privacy.ragged = True
        tags.privacy.distance = _distance
        return tags


def _distance(first: Any, second: Any) -> float:
    """Sum of the Wasserstein distances of the columns of two releases."""
    columns = zip(first["support_"].T, second["support_"].T, strict=True)
    weights = first["weights_"], second["weights_"]
    return sum(wasserstein_distance(*pair, *weights) for pair in columns)


def resolution_for(alpha: float, d: int) -> int:
    """Number of cells along an axis at which noise and rounding are about equal."""
    most = MOST_CELLS if d == 1 else max(1, int(MOST_NODES ** (1 / d)) - 1)
    if math.isinf(alpha):
        return most
    wanted = math.sqrt(alpha / 2) if d == 1 else (alpha / (2 * d)) ** (1 / (d + 1))
    return min(max(1, round(wanted)), most)


def size_for(alpha: float, d: int) -> int:
    """Number of numbers that are released at the resolution for a rate."""
    k = resolution_for(alpha, d)
    return k if d == 1 else (k + 1) ** d


def rounding_for(alpha: float, d: int) -> float:
    """Distance that rounding of floats, and rounding to the lattice, add to two measures."""
    # Each number is rounded by less than a step, which is 2**-30 of the noise.
    return 0.0 if math.isinf(alpha) else _LOST + size_for(alpha, d) * 2.0**-30 / alpha


def smooth_measure(
    points: FloatArray, noise: NoiseSource, alpha: float, factor: float
) -> tuple[FloatArray, FloatArray]:
    """Support and weights of a measure of points of the unit cube.

    The noise is ``factor`` times that of the rate.
    """
    n, d = points.shape
    k = resolution_for(alpha, d)
    values = integrals(points, k) if d == 1 else hat_means(points, k)
    if not math.isinf(alpha):
        # Largest change of the numbers in sum, per unit of distance.
        change = 1 if d == 1 else 2 * d * k
        scale = _scale(factor * change, alpha)
        lattice = FixedPoint.for_scale(scale)
        # A row moves by at most the whole width, and each number is rounded by less than a step.
        noisy = noise.cross(
            lattice.encode(values),
            lambda steps: steps + noise.discrete_laplace(scale / lattice.step, len(steps)),
            metric="l1",
            sensitivity=change * (1 / n + rounding_for(alpha, d)) / lattice.step,
            rate=lattice.step / scale,
        )
        values = lattice.decode(noisy)
    return measure_of_integrals(values) if d == 1 else nearest_measure(values, k, d)


def _scale(sensitivity: float, alpha: float) -> float:
    # Rounded up, so that rounding does not reduce the noise.
    return sensitivity / alpha * ROUND_UP


def integrals(points, m):
    """Integrals of the distribution function over ``m`` cells of [0, 1], of points (n, 1).

    If the measure moves by a Wasserstein distance ``w``, they move by at most ``w`` in sum.
    """
    x = np.minimum(points[:, 0] * m, m)
    cell = np.minimum(x.astype(np.int64), m - 1)
    # A point adds the part of its own cell that lies beyond it, and all later cells as a whole.
    own = _exact_sums(cell, cell + 1 - x, m)
    later = np.r_[0, np.cumsum(np.bincount(cell, minlength=m))[:-1]]
    return ((own + later.astype(object) * _WHOLE) / (_WHOLE * int(m) * len(points))).astype(float)


def _exact_sums(places, parts, size):
    """Sums by place of numbers from 0 to 1 that are cut to whole units, in any order.

    Floating-point numbers can represent the sums of a batch, and integers those of 2**31 rows.
    """
    high, low = np.zeros((2, size), dtype=np.int64)
    for place, part in zip(slices(places, BATCH), slices(parts, BATCH), strict=True):
        word = np.floor(np.ldexp(part, _WORD))
        rest = np.floor(np.ldexp(np.ldexp(part, _WORD) - word, _WORD))
        high += np.bincount(place, word, size).astype(np.int64)
        low += np.bincount(place, rest, size).astype(np.int64)
    return high.astype(object) * 2**_WORD + low


def measure_of_integrals(noisy):
    """Atoms (m + 1, 1) and weights on a line, from noisy integrals of the distribution function."""
    m = len(noisy)
    steps = np.clip(isotonic_regression(m * noisy).x, 0.0, 1.0)
    return np.linspace(0, 1, m + 1)[:, None], np.diff(np.r_[0.0, steps, 1.0])


def hat_means(points, k):
    """Means of the multilinear hats of a grid with ``k`` cells along each axis.

    They have the shape ((k + 1)**d,), and come from points (n, d) in [0, 1]. If a point moves by
    ``r`` in the maximum norm, their values move by at most ``2 d k r`` in sum.
    """
    n, d = points.shape
    scaled = points * k
    cell = np.minimum(scaled.astype(np.int64), k - 1)
    rest = scaled - cell
    total = np.zeros((k + 1) ** d, dtype=object)
    for corner in product((0, 1), repeat=d):
        weights = np.prod(np.where(corner, rest, 1 - rest), axis=1)
        flat = np.ravel_multi_index(tuple((cell + corner).T), (k + 1,) * d)
        total += _exact_sums(flat, weights, len(total))
    return (total / (_WHOLE * n)).astype(float)


def nearest_measure(noisy, k, d):
    """Nodes ((k + 1)**d, d) of a grid, and the probability weights nearest to noisy ones.

    Mass moves along the edges of the grid at the price of their length, and is created or removed
    at the price of the whole width.
    """
    n, shape = len(noisy), (k + 1,) * d
    numbers = np.arange(n).reshape(shape)
    # All nodes but the last ones along an axis, and all but the first ones.
    tails = np.concatenate([np.delete(numbers, -1, axis=axis).ravel() for axis in range(d)])
    heads = np.concatenate([np.delete(numbers, 0, axis=axis).ravel() for axis in range(d)])
    edges = np.arange(len(tails))
    ones = np.ones(len(edges))
    flow = coo_array(
        (np.r_[ones, -ones], (np.r_[tails, heads], np.r_[edges, edges])), (n, len(edges))
    )
    same = eye_array(n)
    # weights + outflow + lost - made = noisy, and weights sum to one.
    balance = hstack([same, flow, -flow, same, -same])
    costs = np.r_[np.zeros(n), np.full(2 * len(edges), 1 / k), np.ones(2 * n)]
    sums = csr_array(np.r_[np.ones(n), np.zeros(len(costs) - n)][None])
    solution = linprog(
        costs,
        A_eq=vstack([balance, sums]).tocsr(),
        b_eq=np.r_[noisy, 1.0],
        method="highs",
    )
    if solution.status != 0:
        raise RuntimeError("the projection to probability measures was not solved.")
    weights = np.maximum(solution.x[:n], 0.0)
    support = np.stack(np.unravel_index(np.arange(n), shape), axis=1) / k
    return support, weights / weights.sum()

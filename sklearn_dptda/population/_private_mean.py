"""A private mean with a confidence band that accounts for privacy noise and sampling.

Proof: doc/theory/populations.md, "A mean and its band".
"""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.stats import norm as normal
from sklearn.utils import Tags

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, FloatArray, RandomStateLike, RowBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee
from sklearn_dptda.rows._assignments import Cells, Norm, in_norm
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._moments import FitBudget, Moments, MomentWeights
from sklearn_dptda.rows._public_box import PublicBox
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._sklearn import Interval

# Accuracy only: noise has the scale of any weights, and rows are clipped to any radius.
# Shares of the budget for count and squares; the sum gets the rest. They are squared weights with
# Gaussian noise, and weights with Laplace noise. If the number of records is public, the count gets
# hardly anything.
_COUNT, _SQUARES = 0.12, 0.25
_PUBLIC_COUNT = 1e-3
# Range of the radii of balls, in units of the box, by which floating-point numbers can be divided.
_RADII = 1e-120, 1e120


@fill_doc
class PrivateMean(PrivateRowsEstimator):
    """Release the mean of the rows, with a confidence band for the mean of the population.

    The band accounts for the privacy noise and the sampling error, in all columns jointly.

    Parameters
    ----------
    %(epsilon)s
    %(pure_or_gaussian_delta)s
    %(row_bounds)s
    confidence : float, default=0.95
        Probability that the band contains the means of all columns, in (0, 1). None releases
        no variances and computes no band, so that the mean has less noise.
    norm_bound : float, default=None
        Public bound of the norm of each row, in the units of the rows: the Euclidean norm, or
        with ``delta=0`` the sum of the absolute values. Longer rows are shortened to it, and
        the noise is proportional to it instead of to the diagonal of the box. None shortens
        no row.
    %(row_adjacency)s
    %(row_groups)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Private mean of the rows.
    half_widths_ : ndarray of shape (n_features,)
        Half widths of the confidence band, in the units of the columns. Like ``variance_``,
        it does not exist with ``confidence=None``.
    variance_ : ndarray of shape (n_features,)
        Private variances, increased by one standard deviation of their noise.
    noise_ : ndarray of shape (n_features,)
        Standard deviation of the privacy noise in the mean, in the units of the columns.
    n_samples_ : float
        Private number of rows, or of people.
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    private_two_sample_test : Tests whether two populations differ.
    sklearn_dptda.features.PersistenceMass : Rows whose mean is an expected persistence diagram.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, the mean, the variances and the number of rows. It is (``epsilon``,
    ``delta``)-differentially private for adding or removing one row, or for replacing one row,
    depending on ``adjacency``.
    %(privacy_of_groups)s

    .. rubric:: The confidence band

    The band is for the mean of the population from which the rows are drawn independently,
    after clipping to ``bounds_`` and shortening to ``norm_bound``. It relies on the normal
    approximation of means. Columns that are zero for nearly all people therefore require
    many people.

    References
    ----------
    The joint release is that of :class:`sklearn_dptda.cluster.DPMoG` with one component.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.population import PrivateMean
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(1000, 3))
    >>> private = PrivateMean(epsilon=1.0, bounds=(0, 1), random_state=0).fit(X)
    >>> bool((abs(private.mean_ - 0.5) <= private.half_widths_).all())
    True
    """

    _parameter_constraints = {
        **PrivateRowsEstimator._parameter_constraints,
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "norm_bound": [Interval(Real, 1e-90, 1e90, closed="both"), None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        confidence: float | None = 0.95,
        norm_bound: float | None = None,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.confidence = confidence
        self.norm_bound = norm_bound
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.accountant = accountant
        self.random_state = random_state

    def _learn(self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box) -> None:
        centre, radius = self._ball(box, rows.n_features, budget.norm)
        moments = budget.release(
            rows,
            Cells(centre[None], radius, budget.norm),
            1,
            weights=self._weights(budget.norm),
            share=1.0,
            kind=None if self.confidence is None else "diag",
        )
        sample = _Sample.of(moments, rows, budget)
        unit = radius * box.unit
        self.n_samples_ = sample.n
        self.mean_ = box.origin + box.unit * centre + unit * sample.mean
        self.noise_ = unit * sample.noise(sample.mean)
        if self.confidence is not None:
            self.variance_ = unit**2 * sample.upper_variance()
            self.half_widths_ = unit * sample.half_widths(1 - float(self.confidence))

    def _release(
        self, rows: Rows, guarantee: PrivacyGuarantee, seed: Any, public_seed: Any = None
    ) -> list[str]:
        remarks = super()._release(rows, guarantee, seed, public_seed)
        low, high = self.bounds_
        if self.norm_bound is not None:
            # Rows are shortened towards zero, so the range of the mean includes zero.
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        self.mean_ = np.clip(self.mean_, low, high)
        return remarks

    def _ball(self, box: Box, d: int, norm: Norm) -> tuple[FloatArray, float]:
        """Return the centre and radius of the ball to which rows of the cube are shortened."""
        if self.norm_bound is None:
            return np.zeros(d), in_norm(d**0.5, d, norm)
        radius = np.clip(self.norm_bound / box.unit[0], *_RADII)
        return -box.origin / box.unit, float(radius)

    def _weights(self, norm: Norm) -> MomentWeights:
        count = _COUNT if self.adjacency == "add-remove" else _PUBLIC_COUNT
        squares = 0.0 if self.confidence is None else _SQUARES * (1 - count)
        power = 2 if norm == "l1" else 1
        return MomentWeights(
            count=count**power, sum=(1 - count - squares) ** power, second_moment=squares**power
        )

    def _public_box(self, n_features: int) -> PublicBox:
        # A bound of the norm only makes sense if all columns have the same unit.
        return replace(super()._public_box(n_features), one_unit=self.norm_bound is not None)

    def _released(self) -> str:
        return "the mean" + ", the variances" * (self.confidence is not None) + " and the number"

    def __sklearn_tags__(self) -> Tags:
        """Declare that the shapes of results are public."""
        tags = super().__sklearn_tags__()
        tags.privacy.ragged = False
        return tags


@dataclass(frozen=True)
class _Sample:
    """Noisy mean of residuals and of their squares, in units of the radius of the ball.

    ``n`` is the number of records. ``sd_mean`` and ``sd_count`` are the standard deviations of the
    noise of a sum and of the count, divided by the count.
    """

    mean: FloatArray
    squares: FloatArray
    n: float
    sd_mean: float
    sd_count: float
    sd_squares: float
    norm: Norm

    @classmethod
    def of(cls, moments: Moments, rows: Rows, budget: FitBudget) -> Self:
        """Return the sample for the release of one cell."""
        d, public = rows.n_features, budget.adjacency == "replace-one"
        n = float(rows.n_rows if public else moments.floored_counts[0])
        second = np.zeros((d, d)) if moments.second_moments is None else moments.second_moments[0]
        return cls(
            mean=moments.sums[0] / n,
            squares=np.diag(second) / n,
            n=n / rows.mass,
            sd_mean=moments.sd_sum / n,
            sd_count=0.0 if public else moments.sd_count / n,
            sd_squares=math.sqrt(moments.var_second_moment / d) / n,
            norm=budget.norm,
        )

    def noise(self, mean: FloatArray) -> FloatArray:
        """Return the standard deviation of the noise, if this is the mean."""
        deviation: FloatArray = np.hypot(self.sd_mean, mean * self.sd_count)
        return deviation

    def upper_variance(self) -> FloatArray:
        """Return variances plus one standard deviation of their noise, or at least the latter."""
        mean, more = self.mean, self.sd_squares
        upper: FloatArray = np.maximum(self.squares + more - mean**2 + self.noise(mean) ** 2, more)
        return upper

    def half_widths(self, miss: float) -> FloatArray:
        """Return half widths that noise and sampling exceed with at most this probability."""
        d, sampling = len(self.mean), np.sqrt(self.upper_variance() / self.n)
        widths = np.zeros(d)
        # The error of the count is proportional to the unknown mean, which is bounded by the
        # farthest mean of a first band.
        for _ in range(2):
            farthest = np.minimum(np.abs(self.mean) + widths, 1.0)
            if self.norm == "l2":
                widths = normal.isf(miss / (2 * d)) * np.hypot(sampling, self.noise(farthest))
            else:
                # Laplace noise has longer tails, so half of the probability is reserved for it.
                scales = (self.sd_mean + farthest * self.sd_count) / math.sqrt(2)
                far = math.log(2 * (d + 1) / miss)
                widths = normal.isf(miss / (4 * d)) * sampling + far * scales
        return widths

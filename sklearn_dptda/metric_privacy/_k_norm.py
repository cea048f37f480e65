"""Noise whose density falls with a norm, on a lattice.

Proof: doc/theory/metric_privacy.md, "Noise by a norm".
"""

import math
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Bounds, FloatArray, RandomStateLike
from sklearn_dptda.metric_privacy._metric_mechanism import MetricMechanism
from sklearn_dptda.privacy import (
    FixedPoint,
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
)
from sklearn_dptda.privacy._estimator import plain_arithmetic, refused_without_trace
from sklearn_dptda.privacy._lattice_noise import lattice_noise
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._bounds import check_bounds, check_lengths
from sklearn_dptda.utils._sklearn import StrOptions, _fit_context

_NORM_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
# Binary logarithm of the number of lattice steps in a unit of the noise, 1 / alpha.
_STEP_BITS = 20
# In more dimensions, a ball is too small a part of its cube for rejection sampling: the share is
# 1/400 in 10 dimensions.
_MAX_DIMS_L2 = 10


@fill_doc
class KNormMechanism(MetricMechanism):
    """Add noise to points under metric privacy; its density falls with the distance.

    For points of a plane this is *geo-indistinguishability*. The mean distance
    between a point and its release is ``n_features / alpha``.

    Parameters
    ----------
    %(rate)s
    norm : {"l1", "l2", "linf"}, default="l2"
        Norm of the distance. ``"l2"`` takes at most ten columns.
    bounds : pair of float or array-like, default=None
        Public box, which must not depend on the points. Points are clipped to it before and
        after the noise. None: no box, and an unbounded ``epsilon``.
    %(pays_for_releases)s

    Attributes
    ----------
    resolution_ : float
        Step of the lattice of points.
    %(promise_of_releases)s
    %(columns)s

    See Also
    --------
    MetricExponentialMechanism : Public candidates instead of noise.

    Notes
    -----
    .. rubric:: Privacy

    One release is a point for each record. Moving one record by a distance ``r`` changes
    the logarithm of the probability of any release by at most ``alpha * (r + resolution)``.
    The resolution of the guarantee is a lattice cell and a step, about a millionth of the
    noise, because points are rounded to a lattice, on which the
    :doc:`noise is exact </theory/metric_privacy>`. The ``epsilon`` of the guarantee is the
    loss at the diameter of the box.

    References
    ----------
    M. Hardt, K. Talwar, "On the geometry of differential privacy"; M. Andres et al.,
    "Geo-indistinguishability"; Boedihardjo, Strohmer, Vershynin, Theorem 6.1.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import KNormMechanism
    >>> places = [[0.2, 0.3], [0.25, 0.3]]
    >>> private = KNormMechanism(alpha=20.0, bounds=(0, 1), random_state=0).fit(places)
    >>> private.transform(places).shape
    (2, 2)
    """

    _parameter_constraints = {
        **MetricMechanism._parameter_constraints,
        "norm": [StrOptions(set(_NORM_ORDERS))],
        "bounds": ["array-like", None],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        norm: Literal["l1", "l2", "linf"] = "l2",
        *,
        bounds: Bounds | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.alpha = alpha
        self.norm = norm
        self.bounds = bounds
        self.accountant = accountant
        self.random_state = random_state

    @fill_doc
    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the input. Nothing is learnt from it, and nothing is released.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points, of which only the number of columns matters.
        %(ignored_y_and_self)s
        """
        X = check_rows(self, X)
        d = X.shape[1]
        check_lengths("1 / alpha", 1 / np.float64(self.alpha))
        if self.norm == "l2" and d > _MAX_DIMS_L2:
            raise ValueError(
                f"norm='l2' takes at most {_MAX_DIMS_L2} columns; got {d}. Use 'linf' or 'l1'."
            )
        self._lattice = FixedPoint(math.frexp(1 / self.alpha)[1] - 1 - _STEP_BITS)
        self.resolution_ = self._lattice.step
        self._box, diameter = None, math.inf
        if self.bounds is not None:
            self._box = low, high = check_bounds(self.bounds, d)
            try:
                self._lattice.encode(np.array(self._box))
            except ValueError:
                raise ValueError(
                    "bounds are too wide for alpha. Narrow the bounds or lower alpha."
                ) from None
            diameter = float(np.linalg.norm(high - low, _NORM_ORDERS[self.norm]))
        # Rounding moves two points by a cell, and rounds a norm up to the next whole number.
        cell = float(np.linalg.norm(np.ones(d), _NORM_ORDERS[self.norm]))
        slack = (cell + 1) * self.resolution_ * (1 + 1e-9)
        self._promise_metric(
            epsilon=float(self.alpha) * (diameter + slack),
            unit="one point",
            mechanism=f"K-norm mechanism of the {self.norm} norm",
            released="a point for each record",
            metric=f"{self.norm} distance",
            diameter=diameter,
            resolution=slack,
        )
        return self

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        if n_features is None:
            raise ValueError("the cost of a release depends on the number of columns: pass X.")
        return super()._guarantee_ahead(n_features)

    @plain_arithmetic()
    def transform(self, X: ArrayLike) -> FloatArray:
        """Spend the budget and add noise to each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; each row is a record.

        Returns
        -------
        ndarray of shape (n_samples, n_features)

        Raises
        ------
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        if self._box is not None:
            X = np.clip(X, *self._box)
        try:
            steps = self._lattice.encode(X)
        except ValueError:
            raise ValueError("X has values too large for alpha. Pass bounds.") from None
        rate = float(self.alpha) * self.resolution_
        with self._paid_for(steps) as paid:
            noise = NoiseSource(*paid)
            noisy = noise.cross(
                steps,
                lambda steps: steps + lattice_noise(noise, rate, steps.shape, self.norm),
                metric=partial(_farthest, norm=self.norm),
                sensitivity=self.privacy_guarantee_.epsilon / rate,
                rate=rate,
            )
            moved = self._lattice.decode(noisy)
        return paid.keep(moved if self._box is None else np.clip(moved, *self._box))


def _farthest(points: FloatArray, others: FloatArray, norm: str) -> float:
    """Largest distance of a point from the other one of the same record."""
    return float(np.linalg.norm(points - others, _NORM_ORDERS[norm], axis=1).max(initial=0.0))

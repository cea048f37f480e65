"""Noise whose density falls with a norm, on a lattice.

Proof: doc/theory/metric_privacy.md, "Noise by a norm".
"""

import math
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Bounds, FloatArray, RandomStateLike
from sklearn_dptda.metric_privacy._metric_mechanism import MetricMechanism
from sklearn_dptda.privacy import FixedPoint, NoiseSource, PrivacyAccountant, PrivacyGuarantee
from sklearn_dptda.privacy._estimator import refused_without_trace, silent_arithmetic
from sklearn_dptda.privacy._lattice_noise import lattice_noise
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._bounds import check_bounds, check_lengths
from sklearn_dptda.utils._sklearn import StrOptions, _fit_context

_NORM_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
# Bits of the number of lattice steps in a unit of the noise, 1 / alpha.
_STEP_BITS = 20
# Balls of more dimensions are too small a part of their cubes to be hit: a four-hundredth at 10.
_MAX_DIMS_L2 = 10


@fill_doc
class KNormMechanism(MetricMechanism):
    """Add noise to points under metric privacy, its density falling with the distance.

    Points of a plane: *geo-indistinguishability*. The mean distance of a
    release is ``n_features / alpha``.

    Parameters
    ----------
    %(rate)s
    norm : {"l1", "l2", "linf"}, default="l2"
        Of the distance; ``"l2"`` in at most ten dimensions.
    bounds : pair of float or array-like, default=None
        Public box. Points are clipped to it before and after the noise, and
        the loss between any two of them is bounded. None: no box.
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

    One release is a point for each record. Moving one record by a distance
    ``r`` changes the logarithm of the probability of any release by at most
    ``alpha * (r + resolution)``, the resolution of the guarantee being a
    lattice cell and a step, about a millionth of the noise: points are rounded
    to the lattice, on which the noise is exact and which floating-point
    numbers cannot betray. ``epsilon`` of the guarantee is that at the diameter
    of the box.

    An integer radius ``k`` is drawn with probability proportional to
    ``(2 k + 1) ** n_features * exp(-alpha * step * k)``, and a point of the
    cube of that radius; in the Euclidean norm again, until it lies in the
    ball. In the sum norm coordinates are independent.

    References
    ----------
    M. Hardt, K. Talwar, "On the geometry of differential privacy"; M. Andres
    et al., "Geo-indistinguishability"; Boedihardjo, Strohmer, Vershynin,
    Theorem 6.1.

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
        """Check the input; nothing is learnt from it, nothing is released.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        %(ignored_y_and_self)s

        Raises
        ------
        ValueError
            If the input or a parameter is refused.
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
                raise ValueError("bounds are too wide for alpha.") from None
            diameter = float(np.linalg.norm(high - low, _NORM_ORDERS[self.norm]))
        # Rounding moves two points by a cell, and a norm up to the next whole number.
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
            raise ValueError("what a release costs depends on the number of columns.")
        return super()._guarantee_ahead(n_features)

    @silent_arithmetic()
    def transform(self, X: ArrayLike) -> FloatArray:
        """Pay, and add noise to each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Each row is a record.

        Returns
        -------
        ndarray of shape (n_samples, n_features)

        Raises
        ------
        ValueError
            If the input is refused, a parameter has changed since ``fit``, or
            there is an accountant and no box. Nothing is spent.
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
            raise ValueError("X is too far out for alpha: give bounds.") from None
        rate = float(self.alpha) * self.resolution_
        with self._paid_for(steps) as paid:
            noise = lattice_noise(NoiseSource(*paid), rate, X.shape, self.norm)
            moved = self._lattice.decode(steps + noise)
        return paid.keep(moved if self._box is None else np.clip(moved, *self._box))

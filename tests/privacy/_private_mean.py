"""A small honest private estimator of tables, and methods to break it."""

import math
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_dptda.privacy import (
    FixedPoint,
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
    Sensitivity,
)
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds
from sklearn_dptda.utils._sklearn import Interval, _fit_context
from tests.privacy._calibrated import laplace_scale


class ExactMean(BaseEstimator):
    """Mean of clipped rows."""

    def __init__(self, bounds=None):
        self.bounds = bounds

    def fit(self, X, y=None):
        X = validate_data(self, X)
        low, high = check_bounds(self.bounds, X.shape[1])
        self.mean_ = np.clip(X, low, high).mean(axis=0)
        return self


class PrivateMean(PrivateEstimatorMixin, BaseEstimator):
    """Mean of the rows of a table, by Laplace noise.

    .. rubric:: Privacy

    ``epsilon``-differentially private for replacing one row.
    """

    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "bounds": ["array-like", None],
        "copies": [Interval(Integral, 1, None, closed="left")],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state"],
    }

    def __init__(self, epsilon=1.0, bounds=None, copies=1, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.copies = copies
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")
    def fit(self, X, y=None):
        X = validate_data(self, X)
        low, high = self._bounds(X)
        self.privacy_guarantee_ = self._guarantee()
        self._spend(self.privacy_guarantee_)
        (seed,) = spawn_seeds(self.random_state, 1)
        total = self._sum(np.clip(X, low, high) - low, high - low, NoiseSource(seed))
        self.mean_ = np.clip(total / len(X) + low, low, high)
        return self

    def _bounds(self, X):
        if self.bounds is None:
            return bounds_from_data([X], "PrivateMean")
        return check_bounds(self.bounds, X.shape[1])

    def _sum(self, X, widths, noise):
        if math.isinf(self.epsilon):
            return X.sum(axis=0)
        sensitivity = Sensitivity(float(widths.sum()), "l1", "replace-one")
        lattice = FixedPoint.for_scale(laplace_scale(sensitivity, self.epsilon))
        in_steps = lattice.sum_sensitivity(sensitivity, len(widths))
        scale = laplace_scale(in_steps, self.epsilon)
        noisy = noise.cross(
            self._statistic(X, lattice),
            lambda exact: exact + noise.discrete_laplace(scale, len(exact)),
            metric="l1",
            sensitivity=in_steps.value,
            rate=1 / scale,
        )
        return lattice.decode(noisy)

    def _statistic(self, X, lattice):
        return lattice.sum(X)

    def _guarantee(self):
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0,
            adjacency="replace-one",
            unit="one row",
            mechanism="Laplace mechanism",
            released="the mean of the rows",
            seeded=self.random_state is not None,
            public_parameters=self.bounds is not None,
        )

    def score(self, X, y=None):
        check_is_fitted(self)
        return -float(np.abs(validate_data(self, X, reset=False).mean(axis=0) - self.mean_).sum())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.privacy.exact_sibling = lambda estimator: ExactMean(estimator.bounds)
        return tags

"""Honest private estimators of other kinds: add-remove rows, and graphs."""

from numbers import Real

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._sklearn import Interval, _fit_context
from tests.privacy._randomized_response import randomized_response

CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, None, closed="right")],
    "accountant": [PrivacyAccountant, None],
    "random_state": ["random_state"],
}


class PrivateHistogram(PrivateEstimatorMixin, BaseEstimator):
    """Counts of rows on a public grid.

    .. rubric:: Privacy

    ``epsilon``-differentially private for adding or removing one row.
    """

    _parameter_constraints = {**CONSTRAINTS, "bounds": ["array-like"]}

    def __init__(self, epsilon=1.0, bounds=(0.0, 1.0), accountant=None, random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        # Zero rows are a neighbour of one row, so they are not an error.
        X = validate_data(self, X, ensure_min_samples=0)
        if self.bounds is None:
            raise ValueError("bounds must be given.")
        low, high = check_bounds(self.bounds, X.shape[1])
        self.edges_ = np.linspace(low, high, 5)
        self.privacy_guarantee_ = PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0,
            adjacency="add-remove",
            unit="one row",
            mechanism="discrete Laplace mechanism",
            released="counts of rows on a grid",
            seeded=self.random_state is not None,
        )
        self._spend(self.privacy_guarantee_)
        (seed,) = spawn_seeds(self.random_state, 1)
        counts, _ = np.histogramdd(np.clip(X, low, high), list(self.edges_.T))
        noise = NoiseSource(seed)
        self.counts_ = noise.cross(
            counts.astype(np.int64),
            lambda exact: exact + noise.discrete_laplace(1 / self.epsilon, exact.shape),
            metric="l1",
            sensitivity=1,
            rate=self.epsilon,
        )
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.privacy.adjacency = "add-remove"
        return tags


class FlipEdges(PrivateEstimatorMixin, TransformerMixin, BaseEstimator):
    """Randomized response on every pair of nodes.

    .. rubric:: Privacy

    ``epsilon``-differentially private for replacing one edge by a non-edge or back.
    """

    _parameter_constraints = CONSTRAINTS

    def __init__(self, epsilon=1.0, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        self._read(X)
        self.privacy_guarantee_ = PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0,
            adjacency="replace-one",
            unit="one edge",
            mechanism="randomized response",
            released="a graph on the same nodes",
            seeded=self.random_state is not None,
        )
        return self

    def transform(self, X):
        check_is_fitted(self)
        if self.epsilon != self.privacy_guarantee_.epsilon:
            raise ValueError("epsilon has changed since fit: call fit again.")
        X = self._read(X)
        self._spend(self.privacy_guarantee_)
        (seed,) = spawn_seeds(self.random_state, 1)
        rows, columns = np.triu_indices(len(X), 1)
        noise = NoiseSource(seed)
        flipped = noise.cross(
            X[rows, columns],
            lambda edges: randomized_response(noise, edges, 2, self.epsilon),
            metric="l1",
            sensitivity=1,
            rate=self.epsilon,
        )
        graph = np.zeros(X.shape, dtype=np.int8)
        graph[rows, columns] = graph[columns, rows] = flipped
        return csr_array(graph)

    def _read(self, X):
        X = check_array(X)
        if X.shape[0] != X.shape[1] or not np.isin(X, (0, 1)).all() or (X != X.T).any():
            raise ValueError("X must be a symmetric matrix of zeros and ones.")
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.privacy.input = "graph"
        tags.privacy.releases = "transform"
        return tags

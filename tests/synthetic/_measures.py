"""Clouds, distances between rows, and audits of private measures, each with a broken twin."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sklearn_dptda.privacy import audit_epsilon


def blobs(n, d, seed):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.2, 0.8, (4, d))
    return np.clip(centres[rng.integers(4, size=n)] + rng.normal(scale=0.08, size=(n, d)), 0, 1)


def wasserstein(A, B, n=2000, seed=0):
    rng = np.random.default_rng(seed)
    A, B = (X[rng.choice(len(X), n, replace=len(X) < n)] for X in (A, B))
    costs = cdist(A, B, "chebyshev")
    return costs[linear_sum_assignment(costs)].mean()


def assert_audited(release, first, second):
    """Acquit a release of epsilon 1, and catch its twin with an eighth of the noise.

    ``release`` takes rows, a state and an epsilon, and returns a number.
    """

    def audit(epsilon, n_runs):
        return audit_epsilon(
            lambda X, random_state=None: release(X, random_state, epsilon),
            first,
            second,
            n_runs=n_runs,
            confidence=1 - 1e-6,
            random_state=0,
        )

    assert not audit(1.0, 4000).refutes(1.0)
    assert audit(8.0, 2000).refutes(1.0)

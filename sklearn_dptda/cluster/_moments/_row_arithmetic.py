"""Row-wise arithmetic whose roundings do not depend on the other rows."""

import numpy as np

# Room for the rounding of a clipped vector's norm.
INSIDE = 1 - 2.0**-40
_TINY = 1e-300


def row_products(X, Y):
    """Inner products of rows, each by the same roundings whatever the other rows are.

    Matrix products may round a row differently when the number of rows changes, and then one
    record would move what others contribute.
    """
    total = X[:, 0] * Y[..., 0]
    for j in range(1, X.shape[1]):
        total = total + X[:, j] * Y[..., j]
    return total


def row_norms(X, norm):
    """Norms of rows, each by the same roundings whatever the other rows are."""
    return row_products(np.abs(X), np.ones(X.shape[1])) if norm == "l1" else euclidean(X)


def euclidean(X):
    """Euclidean norms of rows."""
    return np.sqrt(row_products(X, X))


def clip_norm(residuals, radius, norm="l2"):
    """Shrink residuals to norm at most ``radius`` and return them in units of it."""
    unit = residuals / radius
    return unit * (INSIDE / np.maximum(row_norms(unit, norm), 1.0))[:, None]

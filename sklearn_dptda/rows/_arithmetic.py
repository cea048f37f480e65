"""Row-wise arithmetic whose roundings do not depend on the other rows."""

from functools import partial

import numpy as np

# Room for the rounding of a clipped vector's norm.
INSIDE = 1 - 2.0**-40


def row_products(X, Y):
    """Inner products of rows, each by the same roundings whatever the other rows are.

    Matrix products may round a row differently when the number of rows changes, and then one
    record would move what others contribute.
    """
    total = X[:, 0] * Y[..., 0]
    for j in range(1, X.shape[1]):
        total += X[:, j] * Y[..., j]
    return total


def row_norms(X, norm):
    """Norms of rows, each by the same roundings whatever the other rows are."""
    return row_products(np.abs(X), np.ones(X.shape[1])) if norm == "l1" else euclidean(X)


def euclidean(X):
    """Euclidean norms of rows."""
    return np.sqrt(row_products(X, X))


def clip_norm(residuals, radius, norm="l2"):
    """Shrink residuals to norm at most ``radius`` and return them in units of it."""
    # In place: pages of large arrays that come and go cost more than the arithmetic.
    unit = residuals / radius
    unit *= (INSIDE / np.maximum(row_norms(unit, norm), 1.0))[:, None]
    return unit


def in_norm(radius, n_features, norm):
    """Radius, in a norm, where Euclidean balls have the given one.

    A vector with entries of one size is longer in L1 by the root of the dimension.
    """
    return radius * n_features**0.5 if norm == "l1" else radius


def nearest_to(centres):
    """From rows to the index of the centre that is nearest to each."""
    # Without the square of the row, which is the same for all centres.
    return partial(_nearest, centres=centres, halves=0.5 * (centres**2).sum(axis=1))


def _nearest(part, centres, halves):
    scores = [h - row_products(part, c) for h, c in zip(halves, centres, strict=True)]
    return np.argmin(scores, axis=0)


def residuals_about(centres, radius, norm):
    """From rows and their cells to residuals about the centres, clipped and in units of ``radius``.

    A number, or one for each centre, of shape (n_centres, 1).
    """
    return partial(_residuals, centres=centres, radius=radius, norm=norm)


def _residuals(part, cells, centres, radius, norm):
    reach = radius if np.ndim(radius) == 0 else radius[cells]
    return clip_norm(part - centres[cells], reach, norm)

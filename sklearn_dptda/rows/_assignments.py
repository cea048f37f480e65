"""Assignment of rows to cells and clipped residuals, with arithmetic that rounds each row alone.

An additional record must not change the contribution of another one, not even in its last bit.

Proof: doc/theory/private_mixtures.md, "Rounding".
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.rows._rows import about

Norm: TypeAlias = Literal["l1", "l2"]
# A function from the rows of a batch and their cells to the residuals of the rows.
Residuals: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]
# A function that returns the cells of the rows of a batch, and their clipped residuals.
Assignment: TypeAlias = Callable[[FloatArray], tuple[IntArray, FloatArray]]

# Margin for the rounding of the norm of a clipped vector.
INSIDE = 1 - 2.0**-40
# Bits of a row, and of a vector, in exact products, which then have at most 52 bits.
_BITS = 26
# Number of products in one piece, which fits a cache.
_PRODUCTS_AT_ONCE = 1 << 17


def row_products(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Inner products of rows, in which the rounding of a row does not depend on other rows."""
    total = X[:, 0] * Y[..., 0]
    for j in range(1, X.shape[1]):
        total += X[:, j] * Y[..., j]
    return total


def row_norms(X: FloatArray, norm: Norm) -> FloatArray:
    """Norms of rows, in which the rounding of a row does not depend on other rows."""
    return row_products(np.abs(X), np.ones(X.shape[1])) if norm == "l1" else euclidean(X)


def euclidean(X: FloatArray) -> FloatArray:
    """Euclidean norms of rows."""
    return np.sqrt(row_products(X, X))


def clip_norm(residuals: FloatArray, radius: Any, norm: Norm = "l2") -> FloatArray:
    """Shrink residuals to a norm of at most ``radius``, and return them in units of ``radius``."""
    # In place, because allocating and freeing large arrays takes longer than the arithmetic.
    unit = residuals / radius
    unit *= (INSIDE / np.maximum(row_norms(unit, norm), 1.0))[:, None]
    return unit


def in_norm(radius: Any, n_features: int, norm: Norm) -> Any:
    """Radius in a given norm that corresponds to a radius in the Euclidean norm.

    For L1, it is larger by the square root of the dimension.
    """
    return radius * n_features**0.5 if norm == "l1" else radius


@dataclass(frozen=True)
class ExactProducts:
    """Inner products of rows with some vectors, by exact matrix products.

    The coordinates of rows are clipped to a public limit and, like the vectors, rounded to whole
    steps, so that all sums are integers below 2**53. Floats add these exactly in every order.
    """

    vectors: FloatArray
    bits: int
    reach: float
    units: FloatArray

    @classmethod
    def of(cls, vectors: FloatArray, limit: float) -> Self:
        """Prepare products with vectors of shape (n_vectors, n_features).

        Rows have at most 2**26 steps in each column, and vectors in all columns together.
        """
        bits = _BITS - int(np.frexp(limit)[1])
        own = _BITS - np.frexp(np.abs(vectors).sum(axis=1))[1]
        whole = np.rint(np.ldexp(vectors, own[:, None]))
        return cls(whole.T, bits, np.floor(np.ldexp(limit, bits)), np.ldexp(1.0, -bits - own))

    def batches(self, part: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield products of shape (n, n_vectors) for a few rows at a time."""
        size = max(1, _PRODUCTS_AT_ONCE // self.vectors.shape[1])
        for start in range(0, len(part), size):
            steps = part[start : start + size] * 2.0**self.bits
            np.clip(np.rint(steps, out=steps), -self.reach, self.reach, out=steps)
            products = steps @ self.vectors
            products *= self.units
            yield slice(start, start + size), products


def nearest_to(centres: FloatArray, limit: float) -> Callable[[FloatArray], IntArray]:
    """Return a function from rows, clipped to ``limit``, to the indices of nearest centres."""
    # The square of the row is left out, because it is the same for all centres.
    halves = 0.5 * (centres**2).sum(axis=1)
    return partial(_nearest, products=ExactProducts.of(-centres, limit), halves=halves)


def _nearest(part: FloatArray, products: ExactProducts, halves: FloatArray) -> IntArray:
    nearest = np.empty(len(part), dtype=np.intp)
    for rows, scores in products.batches(part):
        scores += halves
        scores.argmin(axis=1, out=nearest[rows])
    return nearest


def with_nearest_values(part: FloatArray, centres: FloatArray, limit: float) -> FloatArray:
    """Rows whose missing values are those of the centre that is nearest by the other values.

    The rows have been clipped to ``limit``.
    Proof: doc/theory/private_mixtures.md, "Missing values".
    """
    gaps = np.isnan(part)
    some = np.flatnonzero(gaps.any(axis=1))
    filled, gaps = part.copy(), gaps[some]
    known = np.where(gaps, 0.0, part[some])
    halves = 0.5 * centres**2
    products = ExactProducts.of(-centres, limit).batches(known)
    # The square of a centre is without its coordinates of the missing values.
    of_gaps = ExactProducts.of(halves, 1.0).batches(gaps.astype(float))
    for (rows, scores), (_, squares) in zip(products, of_gaps, strict=True):
        nearest = (scores + (halves.sum(axis=1) - squares)).argmin(axis=1)
        filled[some[rows]] = np.where(gaps[rows], centres[nearest], known[rows])
    return filled


def residuals_about(centres: FloatArray, radius: Any, norm: Norm) -> Residuals:
    """Return a function from rows and their cells to clipped residuals in units of ``radius``.

    ``radius`` is a number, or an array of shape (n_centres, 1).
    """
    return partial(_residuals, centres=centres, radius=radius, norm=norm)


def _residuals(
    part: FloatArray, cells: IntArray, centres: FloatArray, radius: Any, norm: Norm
) -> FloatArray:
    reach = radius if np.ndim(radius) == 0 else radius[cells]
    return clip_norm(part - centres[cells], reach, norm)


def hard_assignment(cell_of: Callable[[FloatArray], IntArray], residuals: Residuals) -> Assignment:
    """Assign each row to the cell that ``cell_of`` returns, for :meth:`FitBudget.release`."""
    return partial(_hard, cell_of=cell_of, residuals=residuals)


def _hard(batch: FloatArray, cell_of: Any, residuals: Any) -> tuple[IntArray, FloatArray]:
    cells = cell_of(batch)
    return cells, residuals(batch, cells)


def one_cell(centre: FloatArray, radius: float, norm: Norm) -> Assignment:
    """Assign all rows to one cell, with residuals about the given centre."""
    return partial(_one, centre=centre, radius=radius, norm=norm)


def _one(
    batch: FloatArray, centre: FloatArray, radius: float, norm: Norm
) -> tuple[IntArray, FloatArray]:
    return np.zeros(len(batch), dtype=np.intp), clip_norm(about(batch, centre), radius, norm)

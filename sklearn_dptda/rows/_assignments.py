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
# A function from the rows of a batch to their cells.
CellOf: TypeAlias = Callable[[FloatArray], IntArray]
# A function that returns the cells of the rows of a batch, and their clipped residuals.
Assignment: TypeAlias = Callable[[FloatArray], tuple[IntArray, FloatArray]]

# Margin for the rounding of the norm of a clipped vector, and bits of a row, and of a vector, in
# exact products, which then have at most 52 bits.
# Proof: doc/theory/private_mixtures.md, "Rounding".
INSIDE, _BITS = 1 - 2.0**-40, 26
# Accuracy only: the number of products in one piece, which fits a cache, changes no result.
_PRODUCTS_AT_ONCE = 1 << 17


def row_products(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Inner products of rows, in which the rounding of a row does not depend on other rows."""
    total = X[:, 0] * Y[..., 0]
    for j in range(1, X.shape[1]):
        total += X[:, j] * Y[..., j]
    return total


def euclidean(X: FloatArray) -> FloatArray:
    """Euclidean norms of rows, in which the rounding of a row does not depend on other rows."""
    return np.sqrt(row_products(X, X))


def clip_norm(
    residuals: FloatArray, radius: Any, norm: Norm = "l2", out: FloatArray | None = None
) -> FloatArray:
    """Shrink residuals to a norm of at most ``radius``, and return them in units of ``radius``."""
    # In place, because allocating and freeing large arrays takes longer than the arithmetic.
    unit = np.divide(residuals, radius, out=out)
    ones = np.ones(unit.shape[1])
    norms = row_products(np.abs(unit), ones) if norm == "l1" else euclidean(unit)
    unit *= (INSIDE / np.maximum(norms, 1.0))[:, None]
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
        # Units are powers of two, so that sums of multiples of them are as exact.
        vectors = self.vectors * self.units
        for start in range(0, len(part), size):
            steps = part[start : start + size] * 2.0**self.bits
            np.clip(np.rint(steps, out=steps), -self.reach, self.reach, out=steps)
            yield slice(start, start + size), steps @ vectors


def nearest_to(centres: FloatArray, limit: float) -> CellOf:
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


@dataclass(frozen=True)
class Cells:
    """Assignment of each row to a cell, with its residual about the centre of the cell.

    Residuals are clipped to ``radius``, a number or an array of shape (n_cells, 1), and in units of
    it. Without ``cell_of``, there is one cell, and residuals of missing values are zero. With it,
    no value is missing.
    """

    centres: FloatArray
    radius: Any
    norm: Norm
    cell_of: CellOf | None = None

    def __call__(self, batch: FloatArray) -> tuple[IntArray, FloatArray]:
        if self.cell_of is None:
            cells: IntArray = np.zeros(len(batch), dtype=np.intp)
            away = about(batch, self.centres)
        else:
            cells = self.cell_of(batch)
            # The columns of the batch are contiguous, and so are those of the residuals.
            away = np.take(self.centres.T, cells, axis=1).T
            np.subtract(batch, away, out=away)
        radius = self.radius if np.ndim(self.radius) == 0 else self.radius[cells]
        return cells, clip_norm(away, radius, self.norm, out=away)

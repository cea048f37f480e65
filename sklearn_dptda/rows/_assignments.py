"""Rows to cells and clipped residuals, by arithmetic that rounds each row by itself.

One record more must not move what another one contributes, not even in its last bit.

Proof: doc/theory/private_mixtures.md, "Rounding".
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray

Norm: TypeAlias = Literal["l1", "l2"]
# Residuals of the rows of a batch, from these and their cells.
Residuals: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]
# What assigns the rows of a batch to cells: their cells, the part of each that belongs there, and
# clipped residuals.
Assignment: TypeAlias = Callable[[FloatArray], Iterable[tuple[IntArray, Any, FloatArray]]]

# Room for the rounding of a clipped vector's norm.
INSIDE = 1 - 2.0**-40
# Steps of a row, and of a vector, in exact products: 2**52 of both together.
_BITS = 26
# Products in one piece: they fit a cache.
_PRODUCTS_AT_ONCE = 1 << 17


def row_products(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Inner products of rows, each by the same roundings whatever the other rows are.

    Matrix products may round a row differently when the number of rows changes, and then one
    record would move what others contribute.
    """
    total = X[:, 0] * Y[..., 0]
    for j in range(1, X.shape[1]):
        total += X[:, j] * Y[..., j]
    return total


def row_norms(X: FloatArray, norm: Norm) -> FloatArray:
    """Norms of rows, each by the same roundings whatever the other rows are."""
    return row_products(np.abs(X), np.ones(X.shape[1])) if norm == "l1" else euclidean(X)


def euclidean(X: FloatArray) -> FloatArray:
    """Euclidean norms of rows."""
    return np.sqrt(row_products(X, X))


def clip_norm(residuals: FloatArray, radius: Any, norm: Norm = "l2") -> FloatArray:
    """Shrink residuals to norm at most ``radius`` and return them in units of it."""
    # In place: pages of large arrays that come and go cost more than the arithmetic.
    unit = residuals / radius
    unit *= (INSIDE / np.maximum(row_norms(unit, norm), 1.0))[:, None]
    return unit


def in_norm(radius: Any, n_features: int, norm: Norm) -> Any:
    """Radius, in a norm, where Euclidean balls have the given one.

    A vector with entries of one size is longer in L1 by the root of the dimension.
    """
    return radius * n_features**0.5 if norm == "l1" else radius


@dataclass(frozen=True)
class ExactProducts:
    """Inner products of rows with some vectors, by matrix products that are exact.

    Coordinates of rows are clipped to a public limit and rounded to whole steps, each by itself,
    and so are the vectors. All sums of their products are integers below 2**53, which floats hold
    in whatever order a library multiplies and adds: the products of a row depend on no other row.
    """

    vectors: FloatArray
    bits: int
    reach: float
    units: FloatArray

    @classmethod
    def of(cls, vectors: FloatArray, limit: float) -> Self:
        """Products with vectors of shape (n_vectors, n_features).

        Rows have at most 2**26 steps in each column, and vectors as many in all columns together.
        """
        bits = _BITS - int(np.frexp(limit)[1])
        own = _BITS - np.frexp(np.abs(vectors).sum(axis=1))[1]
        whole = np.rint(np.ldexp(vectors, own[:, None]))
        return cls(whole.T, bits, np.floor(np.ldexp(limit, bits)), np.ldexp(1.0, -bits - own))

    def batches(self, part: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Products of shape (n, n_vectors), a few rows at a time."""
        size = max(1, _PRODUCTS_AT_ONCE // self.vectors.shape[1])
        for start in range(0, len(part), size):
            steps = part[start : start + size] * 2.0**self.bits
            np.clip(np.rint(steps, out=steps), -self.reach, self.reach, out=steps)
            products = steps @ self.vectors
            products *= self.units
            yield slice(start, start + size), products


def nearest_to(centres: FloatArray, limit: float) -> Callable[[FloatArray], IntArray]:
    """From rows, clipped to a limit by coordinates, to the index of each one's nearest centre."""
    # Without the square of the row, which is the same for all centres.
    halves = 0.5 * (centres**2).sum(axis=1)
    return partial(_nearest, products=ExactProducts.of(-centres, limit), halves=halves)


def _nearest(part: FloatArray, products: ExactProducts, halves: FloatArray) -> IntArray:
    nearest = np.empty(len(part), dtype=np.intp)
    for rows, scores in products.batches(part):
        scores += halves
        scores.argmin(axis=1, out=nearest[rows])
    return nearest


def residuals_about(centres: FloatArray, radius: Any, norm: Norm) -> Residuals:
    """From rows and their cells to residuals about the centres, clipped and in units of ``radius``.

    A number, or one for each centre, of shape (n_centres, 1).
    """
    return partial(_residuals, centres=centres, radius=radius, norm=norm)


def _residuals(
    part: FloatArray, cells: IntArray, centres: FloatArray, radius: Any, norm: Norm
) -> FloatArray:
    reach = radius if np.ndim(radius) == 0 else radius[cells]
    return clip_norm(part - centres[cells], reach, norm)


def hard_assignment(cell_of: Callable[[FloatArray], IntArray], residuals: Residuals) -> Assignment:
    """Assign each row to the cell that ``cell_of`` gives, as :meth:`FitBudget.release` takes it.

    ``residuals`` makes clipped residuals of a batch and its cells.
    """
    return partial(_hard, cell_of=cell_of, residuals=residuals)


def _hard(batch: FloatArray, cell_of: Any, residuals: Any) -> Iterator[Any]:
    cells = cell_of(batch)
    yield cells, 1.0, residuals(batch, cells)


def one_cell(centre: FloatArray, radius: float, norm: Norm) -> Assignment:
    """Assign all rows to one cell, with residuals about its centre."""
    return partial(_one, centre=centre, radius=radius, norm=norm)


def _one(batch: FloatArray, centre: FloatArray, radius: float, norm: Norm) -> Iterator[Any]:
    yield np.zeros(len(batch), dtype=np.intp), 1.0, clip_norm(batch - centre, radius, norm)


def soft_assignment(
    parts: Callable[[FloatArray], FloatArray], residuals: Residuals, n_cells: int
) -> Assignment:
    """Assign ``parts`` of each row to all cells, as :meth:`FitBudget.release` takes it.

    ``parts`` makes of a batch nonnegative numbers of shape (n, n_cells), rows of which sum to one;
    ``residuals`` makes clipped residuals of a batch and its cells.
    """
    return partial(_soft, parts=parts, residuals=residuals, n_cells=n_cells)


def _soft(batch: FloatArray, parts: Any, residuals: Any, n_cells: int) -> Iterator[Any]:
    shares = parts(batch) * INSIDE
    for k in range(n_cells):
        cells = np.full(len(batch), k)
        yield cells, shares[:, k], residuals(batch, cells)

"""A public box, and the cube that its rows are scaled to."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from sklearn_dptda._typing import FloatArray

# Widths of columns for which nothing overflows.
_WIDTHS = (1e-100, 1e100)


@dataclass(frozen=True)
class Box:
    """Bounds that rows are clipped to; from ``origin``, in ``unit``, they make a cube.

    Arrays of shape (n_features,), and the least coordinate of the cube, whose largest is 1.
    """

    low: FloatArray
    high: FloatArray
    origin: FloatArray
    unit: FloatArray
    least: float

    def __post_init__(self):
        if not ((self.unit > _WIDTHS[0]) & (self.unit < _WIDTHS[1])).all():
            raise ValueError("bounds are too wide or too narrow for floating-point numbers.")

    @classmethod
    def centred(cls, low: FloatArray, high: FloatArray, one_unit: bool = False) -> Self:
        """Box that becomes ``[-1, 1]**d``, or a part of it where one unit serves all columns."""
        unit = (high - low) / 2
        if one_unit:
            unit = np.full_like(unit, unit.max())
        return cls(low, high, (low + high) / 2, unit, -1.0)

    @classmethod
    def cornered(cls, low: FloatArray, high: FloatArray) -> Self:
        """Box that becomes ``[0, 1]**d``."""
        return cls(low, high, low, high - low, 0.0)

    def to_cube(self, X: FloatArray) -> FloatArray:
        """Rows of shape (n, d), each by itself, in the cube."""
        rows = np.clip(X, self.low, self.high)
        rows -= self.origin
        rows /= self.unit
        return np.clip(rows, self.least, 1.0, out=rows)

    def points(self, cube: FloatArray) -> FloatArray:
        """Points of the cube in the box's own units."""
        return self.origin + self.unit * cube

    def covariances(self, cube: FloatArray) -> FloatArray:
        """Covariances of shape (..., d, d) in the box's own units."""
        return self.unit[:, None] * self.unit * cube

"""Intervals of the columns of a table, and the lengths that count as one."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sklearn_dptda._typing import FloatArray

# Units of more unequal columns could not be computed with in floating-point numbers.
_LEAST_RATIO = 1e-12


@dataclass(frozen=True)
class Intervals:
    """Intervals of the columns: bounds to which rows are clipped, and units, which contain them.

    ``spreads`` are standard deviations of the columns, NaN where no histogram was released.
    """

    low: FloatArray
    high: FloatArray
    left: FloatArray
    right: FloatArray
    spreads: FloatArray

    @classmethod
    def given(cls, low: FloatArray, high: FloatArray) -> Self:
        """Public bounds, which are the units."""
        return cls(low, high, low, high, np.full_like(low, np.nan))

    def in_units(self, units: FloatArray) -> "Intervals":
        """The same bounds, and public units in these proportions, as small as contain them."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        reach = units * (half / units).max()
        left, right = np.minimum(middle - reach, self.low), np.maximum(middle + reach, self.high)
        return Intervals(self.low, self.high, left, right, np.full_like(half, np.nan))


def public_units(units: Any, low: FloatArray, high: FloatArray) -> FloatArray | None:
    """Return given lengths of the columns that count as one; None if they are to be found.

    Bounds are NaN where they are missing.
    """
    if isinstance(units, str) and units == "columns":
        return None
    if isinstance(units, str):
        if np.isnan(low).any():
            raise ValueError("units='bounds' needs bounds of all columns. Give bounds.")
        return (high - low) / 2
    try:
        lengths = np.asarray(units, dtype=float)
    except (TypeError, ValueError):
        lengths = np.empty(0)
    if lengths.shape != low.shape or not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ValueError(f"units must be one positive number for each of the {len(low)} columns.")
    if lengths.min() < _LEAST_RATIO * lengths.max():
        raise ValueError(f"units must differ by factors of at most {1 / _LEAST_RATIO:g}.")
    return lengths / lengths.max()

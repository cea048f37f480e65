"""What is public about the box of a table, and how a fit finds the rest of it.

Proof: doc/theory/private_bounds.md, "Logarithms".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, TypeAlias

import numpy as np

from sklearn_dptda._typing import BoolArray, ColumnUnits, FloatArray
from sklearn_dptda.rows._localisation import Intervals, private_box
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.rows._sizes import SIZES_SHARE, Logarithms, Sizes

# A search for intervals within given bounds, for at most a share of the budget. The last argument
# says whether the intervals of other columns are found as well.
Search: TypeAlias = Callable[
    [Rows, FloatArray, FloatArray, FitBudget, float, bool], tuple[Intervals, FitBudget]
]

# Accuracy only: what is spent is taken off the budget. Units are public or were released.
# Largest share of the budget of a fit that is spent on bounds that are not given, and on narrower
# bounds within given ones.
BOUNDS_SHARE, _SHARE_WITHIN = 0.2, 0.1
# Units of more unequal columns could not be computed with in floating-point numbers.
_LEAST_RATIO = 1e-9
# Largest end of the bounds of a column over decades that is nearer to zero, as a part of the other.
_FEW = 1 / 8


@dataclass(frozen=True)
class PublicBox:
    """Public bounds of the columns, NaN where they are private, and what else is public of a box.

    ``units`` are the parameter of estimators. With ``one_unit``, all columns are divided by the
    same number, as isotropic shapes require. ``search`` finds narrower intervals within the bounds,
    as units of the columns. With ``logarithms``, columns over decades count by their logarithms.
    """

    low: FloatArray
    high: FloatArray
    units: ColumnUnits = "columns"
    one_unit: bool = False
    search: Search | None = None
    logarithms: bool = False

    def __post_init__(self) -> None:
        if self.lengths is not None and self.one_unit:
            raise ValueError(
                "units must be 'columns' with covariance_type='spherical', which measures all "
                "columns in one unit. Divide the columns by public numbers before the fit."
            )

    def with_units(self, units: ColumnUnits, one_unit: bool = False) -> Self:
        """The same box in other units. No column counts by its logarithm if these are public."""
        found = isinstance(units, str) and units == "columns" and not one_unit
        logarithms = self.logarithms and found
        return replace(self, units=units, one_unit=one_unit, logarithms=logarithms)

    @property
    def private(self) -> BoolArray:
        """Mask of the columns whose bounds are private."""
        return np.isnan(self.low)

    @property
    def lengths(self) -> FloatArray | None:
        """Public lengths of the columns that count as one; None if they are to be found."""
        if isinstance(self.units, str) and self.units == "columns":
            return None
        if isinstance(self.units, str):
            if self.private.any():
                raise ValueError("units='bounds' needs bounds of all columns. Give bounds.")
            return (self.high - self.low) / 2
        d = len(self.low)
        try:
            lengths = np.asarray(self.units, dtype=float)
        except (TypeError, ValueError):
            lengths = np.empty(0)
        if lengths.shape != (d,) or not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ValueError(f"units must be one positive number for each of the {d} columns.")
        if lengths.min() < _LEAST_RATIO * lengths.max():
            raise ValueError(f"units must differ by factors of at most {1 / _LEAST_RATIO:g}.")
        return lengths / lengths.max()

    def locate(self, rows: Rows, budget: FitBudget) -> tuple[Rows, Box, Logarithms, FitBudget]:
        """Find which columns count by their logarithms, and the box of the rows.

        Returns the rows with these logarithms, the box in them, and the remaining budget. As soon
        as the interval of one column is estimated, the units of all columns are estimated
        intervals, unless they are public.
        """
        private, given = self.private, ~self.private
        logarithms, largest = Logarithms.none(rows.n_features), np.empty(0)
        for columns, share in ((private, BOUNDS_SHARE), (self._over_decades, _SHARE_WITHIN)):
            if columns.any():
                share *= SIZES_SHARE
                part = self.clipped(rows).selected(np.flatnonzero(columns))
                sizes = Sizes.release(part, budget, share)
                budget = budget.rest(share)
                if self.logarithms:
                    logarithms.scales[columns] = sizes.scales()
                if columns is private:
                    largest = sizes.largest()
        if logarithms.columns.any():
            rows = rows.through(logarithms.of)
        low, high = logarithms.of(self.low), logarithms.of(self.high)
        intervals = np.array(Intervals.given(low, high))
        if private.any():
            part, own = rows.selected(np.flatnonzero(private)), logarithms.selected(private)
            found, spent = private_box(part, budget, BOUNDS_SHARE, own.of(largest))
            intervals[:, private] = found
            budget = budget.rest(spent)
        if self.search is not None and given.any():
            part, others = rows.selected(np.flatnonzero(given)), bool(private.any())
            low, high = low[given], high[given]
            found, budget = self.search(part, low, high, budget, _SHARE_WITHIN, others)
            intervals[:, given] = found
        found = Intervals(*intervals)
        if self.lengths is not None:
            found = found.in_units(self.lengths)
        return rows, found.box(self.one_unit), logarithms, budget

    @property
    def _over_decades(self) -> BoolArray:
        """Mask of public columns whose bounds allow for one sign and for decades."""
        near, far = np.sort(np.abs([self.low, self.high]), axis=0)
        return (near <= far * _FEW) & (self.low < self.high) & self.logarithms

    def in_logarithms(self, logarithms: Logarithms) -> Self:
        """The same box, in the logarithms of the columns that count by these."""
        return replace(self, low=logarithms.of(self.low), high=logarithms.of(self.high))

    def is_wider_than(self, box: Box) -> bool:
        """Whether narrower bounds have been found."""
        return not np.array_equal((self.low, self.high), (box.low, box.high))

    def clipped(self, rows: Rows) -> Rows:
        """Rows, clipped to the bounds that are public."""
        low = np.where(self.private, -np.inf, self.low)
        high = np.where(self.private, np.inf, self.high)
        return rows.through(partial(np.clip, a_min=low, a_max=high))

    def remedy(self, box: Box) -> str:
        """What the caller can do if many rows lie outside the box that was found."""
        if n_private := int(self.private.sum()):
            return (
                f"public bounds (the noise hides the bounds of {n_private} columns), fewer "
                "columns, or a larger epsilon"
            )
        if not self.is_wider_than(box):
            return "wider bounds, or none"
        return (
            "a larger epsilon, or fewer columns (within your bounds, the fit estimates narrower "
            "ones, with noise)"
        )

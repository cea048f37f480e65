"""Sizes of the numbers of each column, and columns over decades, which count by their logarithms.

Counts of powers of two are released. They tell how far a column reaches, and whether its logarithm
is less skewed.
Proof: doc/theory/private_bounds.md, "Logarithms".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.rows._runs import (
    EXPONENTS,
    MANTISSA_BITS,
    ONE,
    counts_by_column,
    standing_out,
    without_ends,
)


@dataclass(frozen=True)
class _LogarithmRules:
    """Public constants of sizes and of logarithms.

    Accuracy only: sizes are released, and what is decided depends on them alone.
    """

    # Range of the powers of two. Smaller numbers count as zero, and larger ones as the largest.
    least_exponent: int = -40
    largest_exponent: int = 60
    # Standard deviations of noise above which a size is accepted. The threshold is high, because a
    # wrong size would be far too large.
    clear_size: float = 4.0
    # The same threshold for a first run of cells other than that of the zeros. If the run is only
    # noise, the cell of zeros is used as well.
    clear_run: float = 9.0
    # Largest share of numbers of the other sign.
    other_sign: float = 0.02
    # Share of the rows below the low quantile, and above the high one.
    tail: float = 0.1
    # Share of the numbers other than zero that count as they are, below the scale of the logarithm:
    # more of them, and counts of one, two and three would be apart like clusters if it were less.
    linear: float = 0.25
    # Number of octaves between the quantiles from which a column counts by its logarithm, whatever
    # its shape is, and from which it does so if it is much less skewed then.
    many_octaves: float = 6.0
    octaves: float = 3.0
    less_skewed: float = 0.35


_RULES = _LogarithmRules()
N_SIZES = _RULES.largest_exponent - _RULES.least_exponent + 1
LARGEST_SIZE = 2.0**_RULES.largest_exponent
# Share for the sizes, of the budget of a box.
SIZES_SHARE = 0.15
# Smallest divisor, which prevents divisions by zero, and largest ratio of a number to its scale.
_TINY, _LARGEST_RATIO = 1e-300, 2.0**400


@dataclass(frozen=True)
class Logarithms:
    """A monotone function of each column: ``sign(x) log2(1 + |x| / scale)``, or none.

    Within an octave, the logarithm is a parabola, so that its slope is continuous. It is at most
    .01 from log2, and the rounding of a row does not depend on other rows, which library functions
    do not promise. ``scales`` are released or public, and zero where a column stays as it is.
    """

    scales: FloatArray

    @classmethod
    def none(cls, n_features: int) -> Self:
        """All columns stay as they are."""
        return cls(np.zeros(n_features))

    @classmethod
    def learnt_by(cls, estimator: Any, n_features: int) -> Self:
        """Those of a fitted estimator, or of the mixture that it has fitted."""
        mixture = getattr(estimator, "estimator_", estimator)
        scales = getattr(mixture, "logarithms_", None)
        return cls.none(n_features) if scales is None else cls(scales)

    @property
    def columns(self) -> BoolArray:
        """Mask of the columns that count by their logarithms."""
        chosen: BoolArray = self.scales > 0
        return chosen

    def selected(self, chosen: BoolArray | IntArray) -> "Logarithms":
        """Those of some columns."""
        return Logarithms(self.scales[chosen])

    def of(self, X: FloatArray) -> FloatArray:
        """Logarithms of rows, each by itself."""
        return self._applied(_log2, X)

    def back(self, X: FloatArray) -> FloatArray:
        """Points whose logarithms are given."""
        return self._applied(_power_of_two, X)

    def _applied(
        self, function: Callable[[FloatArray, FloatArray], FloatArray], X: FloatArray
    ) -> FloatArray:
        chosen = self.columns
        if not chosen.any():
            return X
        out = np.array(X, dtype=float)
        part = out[..., chosen]
        out[..., chosen] = np.copysign(function(np.abs(part), self.scales[chosen]), part)
        return out

    def spreads_back(self, spreads: FloatArray, points: FloatArray) -> FloatArray:
        """Small spreads about points, of whose logarithms the spreads are given."""
        chosen, out = self.columns, np.array(spreads, dtype=float)
        out[..., chosen] /= self._slopes(self.of(points))
        return out

    def log_slopes(self, logarithms: FloatArray) -> FloatArray:
        """Log of the product of the slopes at rows of which the logarithms are given."""
        return np.nansum(np.log(self._slopes(logarithms)), axis=-1)

    def _slopes(self, logarithms: FloatArray) -> FloatArray:
        """Slopes of the columns that count by their logarithms."""
        octaves, parts = _octaves_and_parts(np.abs(logarithms[..., self.columns]))
        return (1 + (1 - 2 * parts) / 3) * 2.0**-octaves / self.scales[self.columns]


def _log2(sizes: FloatArray, scales: FloatArray) -> FloatArray:
    """Nearly ``log2(1 + sizes / scales)``, by operations that round each number alone."""
    mantissas, exponents = np.frexp(1 + np.minimum(sizes, _LARGEST_RATIO * scales) / scales)
    parts = 2 * mantissas - 1
    return exponents - 1 + parts + parts * (1 - parts) / 3


def _power_of_two(logarithms: FloatArray, scales: FloatArray) -> FloatArray:
    """The inverse of :func:`_log2`."""
    octaves, parts = _octaves_and_parts(np.minimum(logarithms, math.log2(_LARGEST_RATIO)))
    return scales * (2.0**octaves * (1 + parts) - 1)


def _octaves_and_parts(logarithms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Octave of a number, and its place between the two powers of two, from 0 to 1."""
    octaves = np.floor(logarithms)
    return octaves, 2 - np.sqrt(4 - 3 * (logarithms - octaves))


@dataclass(frozen=True)
class Sizes:
    """Noisy numbers of rows of each size, of shape (n_columns, 2, n_sizes), in decreasing order.

    The first counts of a column are of its negative numbers, and the second of the others.
    """

    counts: FloatArray
    deviation: float

    @classmethod
    def release(cls, rows: Rows, budget: FitBudget, share: float) -> Self:
        """Release the sizes of all columns."""
        counts, sd = budget.noisy_counts(rows.sum(_of_sizes), rows.n_features, share)
        return cls(counts.reshape(rows.n_features, 2, N_SIZES), sd)

    def largest(self) -> FloatArray:
        """Powers of two that almost no number exceeds; 1 if all counts are noise."""
        return np.array([self._largest(*column) for column in self.counts])

    def _largest(self, negative: FloatArray, others: FloatArray) -> float:
        runs = [_octaves(side, self.deviation) for side in (negative, others)]
        starts = [start for start, stop in runs if start < stop]
        if not starts:
            # Zeros are in the last cell, and there may be so many that they hide other numbers.
            both, deviation = negative + others, math.sqrt(2) * self.deviation
            start, stop = standing_out(both, deviation, _RULES.clear_size)
            starts = [start] if stop - start < len(both) else []
        # One octave is added, because noise may have hidden some numbers.
        return 2.0 ** (_RULES.largest_exponent + 1 - min(starts)) if starts else 1.0

    def scales(self) -> FloatArray:
        """Scales of the logarithms of the columns, zero for those that stay as they are."""
        return np.array([self._scale(*column) for column in self.counts])

    def _scale(self, negative: FloatArray, others: FloatArray) -> float:
        """Scale of the logarithm of a column with hardly any numbers of one sign, or zero."""
        sides = [(side, _octaves(side, self.deviation)) for side in (negative, others)]
        sides.sort(key=lambda side: side[0][slice(*side[1])].sum())
        (few, run), (most, (first, stop)) = sides
        if first == stop:
            return 0.0
        # In increasing order. Zeros are below the first octave.
        counts = np.maximum(most[first:stop], 0.0)[::-1]
        zeros, sizes = max(float(others[-1]), 0.0), counts.sum()
        if few[slice(*run)].sum() > _RULES.other_sign * (zeros + sizes):
            return 0.0
        exponents = float(_RULES.largest_exponent - stop) + np.arange(len(counts) + 1)
        sums = np.r_[0.0, np.cumsum(counts)]
        least, scale = (
            2.0 ** math.floor(np.interp(share * sizes, sums, exponents))
            for share in (_RULES.tail / 2, _RULES.linear)
        )
        shares = np.array([_RULES.tail, 0.5, 1 - _RULES.tail]) * (zeros + sizes) - zeros
        quantiles = np.where(shares > 0, 2.0 ** np.interp(shares, sums, exponents), 0.0)
        if quantiles[2] == 0:
            # Nearly all numbers are zeros.
            return 0.0
        octaves = math.log2(quantiles[2] / max(quantiles[0], least))
        gain = _skewness(quantiles) - abs(_skewness(np.log1p(quantiles / least)))
        enough = _RULES.octaves if gain >= _RULES.less_skewed else _RULES.many_octaves
        return scale if octaves >= enough else 0.0


def _skewness(quantiles: FloatArray) -> float:
    """Skewness of three quantiles, from -1 to 1."""
    low, middle, high = quantiles
    return float((low + high - 2 * middle) / max(high - low, _TINY))


def _of_sizes(part: FloatArray) -> IntArray:
    """Counts of numbers by the power of two that they are below, in decreasing order."""
    # Of zero, the exponent is less than the least one.
    bits = part.view(np.int64)
    exponents = (bits >> MANTISSA_BITS & EXPONENTS) - (ONE >> MANTISSA_BITS) + 1
    np.clip(exponents, _RULES.least_exponent, _RULES.largest_exponent, out=exponents)
    cells = _RULES.largest_exponent - exponents + np.where(part < 0, 0, N_SIZES)
    return counts_by_column(cells, 2 * N_SIZES, np.isnan(part))


def _octaves(counts: FloatArray, sd: float) -> tuple[int, int]:
    """Run of sizes other than zero that stands out; an empty one if all counts are noise."""
    start, stop = standing_out(counts[:-1], sd, _RULES.clear_size, _RULES.clear_run)
    if stop - start == len(counts) - 1:
        return 0, 0
    return without_ends(counts, sd, (start, stop), _RULES.clear_size)

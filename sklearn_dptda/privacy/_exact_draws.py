"""Exact integer noise from uniform integers: one draw at a time, and many by bins of their law.

Proof: doc/theory/noise_and_calibration.md, "Noise in bulk".
"""

import math
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sklearn_dptda._typing import BoolArray, FloatArray

Kind: TypeAlias = Literal["laplace", "gaussian"]

# From this number of draws on, a table of bins is used. It is faster from 8 draws on if a law is
# drawn from again, and from 50 (Gaussian) or 120 (Laplace) on if the table has to be made.
BULK: dict[Kind, int] = {"laplace": 40, "gaussian": 20}
# Bins are at most one sixteenth of the scale wide, so that few draws are rejected.
_BINS_PER_SCALE = 16
# The table ends where the density is exp(-28) of the largest. What is beyond is drawn otherwise.
_REACH = 28.0
# The first bits of a word are looked up in a table of this many bits.
_GUIDE_BITS = 16
# Draws at a time, whose arrays fit into the processor's cache.
_AT_ONCE = 1 << 13
# Bits by which the fixed-point numbers of a table are finer than its boundaries.
_GUARD = 64
# Words up to so many above a boundary, rounded down, may belong to the bin before.
_UNSURE = 3
# It exceeds the sum of all rounding errors of the acceptance.
_MARGIN = 2.0**-44
# Terms of the series of exp(-y) for y of at most a half.
_TERMS = 18


class UniformIntegers(Protocol):
    """Source of uniform integers and of uniform 64-bit words for exact draws."""

    def below(self, n: int) -> int:
        """Draw an integer uniformly from ``{0, ..., n - 1}``."""

    def words(self, size: int) -> NDArray[np.uint64]:
        """Draw uniform 64-bit words."""


class ExactDraws:
    """Exact noise and choices from any source of uniform integers.

    These are the algorithms of C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for
    differential privacy", in integer arithmetic, and for many draws a table of the bins of the law.
    """

    def __init__(self, source: UniformIntegers) -> None:
        self._source = source

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-|x| / scale)."""
        if size >= BULK["laplace"]:
            return binned_law("laplace", scale).draw(self._source, size)
        exact = Fraction(scale).as_integer_ratio()
        return np.array([self._one_laplace(*exact) for _ in range(size)], dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-x**2 / (2 scale**2))."""
        if size >= BULK["gaussian"]:
            return binned_law("gaussian", scale).draw(self._source, size)
        exact = Fraction(scale)
        return np.array([self._one_gaussian(exact) for _ in range(size)], dtype=np.int64)

    def choose(self, excesses: list[int], rate: float, bounded_range: bool) -> int:
        """Index of a small excess, by the exponential mechanism or by permute-and-flip.

        The exponential mechanism uses rejection: it draws a uniform candidate, and accepts it with
        the probability ``exp(-rate * excess)``.
        """
        exact = Fraction(rate)
        for candidate in self._candidates(len(excesses), bounded_range):
            if self._happens(exact * excesses[candidate]):
                return candidate
        raise AssertionError("the smallest excess is not zero.")

    def _candidates(self, n: int, again: bool) -> Iterator[int]:
        """Yield uniform candidates without end, or all of them in a uniform order."""
        while again:
            yield self._source.below(n)
        # Only as much of the order is drawn as is asked for: candidates that changed places.
        moved: dict[int, int] = {}
        for i in range(n):
            j = i + self._source.below(n - i)
            chosen = moved.get(j, j)
            moved[j] = moved.pop(i, i)
            yield chosen

    def _one_laplace(self, top: int, bottom: int = 1) -> int:
        """Draw an integer of the scale ``top / bottom``."""
        while True:
            start = self._source.below(top)
            if not self._happens_below_one(start, top):
                continue
            more = 0
            while self._happens_below_one(1, 1):
                more += 1
            size = (start + top * more) // bottom
            negative = self._source.below(2)
            if not negative:
                return size
            if size:
                return -size

    def _one_gaussian(self, scale: Fraction) -> int:
        # The exponent (|value| - scale**2 / whole)**2 / (2 * scale**2), of whole numbers.
        whole = int(scale) + 1
        square, unit = scale.numerator**2, scale.denominator**2 * whole
        bottom = 2 * square * unit * whole
        while True:
            value = self._one_laplace(whole)
            if self._accepts((abs(value) * unit - square) ** 2, bottom):
                return value

    def _happens(self, exponent: Fraction) -> bool:
        """Return True with probability exp(-exponent), for an exponent of 0 or larger."""
        return self._accepts(*exponent.as_integer_ratio())

    def _accepts(self, top: int, bottom: int) -> bool:
        """Return True with probability exp(-top / bottom), for an exponent of 0 or larger."""
        while top > bottom:
            if not self._happens_below_one(1, 1):
                return False
            top -= bottom
        return self._happens_below_one(top, bottom)

    def _happens_below_one(self, top: int, bottom: int) -> bool:
        """Return True with probability exp(-top / bottom), for an exponent between 0 and 1.

        The method is the alternating series of the exponential function.
        """
        turn = 1
        while self._source.below(bottom * turn) < top:
            turn += 1
        return turn % 2 == 1


class BinnedLaw:
    """Law of integer noise as a table of bins, for many draws at once.

    The size of a draw is in a bin whose probability is that of its left end; it is uniform in the
    bin, and accepted with the density there relative to the left end. All bits of a uniform number
    that a decision needs are drawn: the comparison in 64-bit integers or floats decides only if its
    error cannot matter.
    """

    def __init__(self, kind: Kind, scale: float, reach: float = _REACH) -> None:
        self.kind, self.scale, self._float = kind, Fraction(scale), float(scale)
        # Bits of the width of a bin.
        self.bits = max(0, math.frexp(scale / _BINS_PER_SCALE)[1] - 1)
        farthest = reach if kind == "laplace" else math.sqrt(2 * reach)
        self.n_bins = max(1, math.ceil(farthest * scale / 2**self.bits))
        low, high = self.boundaries(64)
        self._ends = np.array(low, dtype=np.uint64)
        assert all(b - a < _UNSURE for a, b in zip(low, high, strict=True))
        after = self._ends[1:]
        shift = np.uint64(64 - _GUIDE_BITS)
        cells = (after >> shift).astype(np.intp)
        guide = np.cumsum(np.bincount(cells, minlength=1 << _GUIDE_BITS))
        # A boundary lies in these cells. A word cannot exceed the last cell.
        guide[cells] = -1
        guide[np.minimum(cells + 1, len(guide) - 1)] = -1
        self._guide = guide.astype(np.int16)

    def exponent(self, x: int) -> Fraction:
        """Return ``y`` so that the probability of ``x`` is proportional to exp(-y)."""
        if self.kind == "laplace":
            return Fraction(x) / self.scale
        return Fraction(x) ** 2 / (2 * self.scale**2)

    def boundaries(self, bits: int) -> tuple[list[int], list[int]]:
        """Bound the cumulative probabilities of the bins, in units of ``2**-bits``.

        The first is zero, and the last one that of all bins of the table.
        """
        unit = bits + _GUARD
        low, high = [0], [0]
        for a, b in self._weights(unit):
            low.append(low[-1] + a)
            high.append(high[-1] + b)
        # The last weight is that of everything beyond the bins.
        ends = range(self.n_bins + 1)
        return (
            [(low[j] << bits) // (low[j] + high[-1] - high[j]) for j in ends],
            [-((-high[j] << bits) // (high[j] + low[-1] - low[j])) for j in ends],
        )

    def _weights(self, unit: int) -> Iterator[tuple[int, int]]:
        """Bound the densities at the left ends of bins, and the sum of those beyond the table.

        Numbers are in units of ``2**-unit``. The density of a bin is that of the bin before times a
        factor, which is constant for the Laplace law, and decreases geometrically for the Gaussian.
        """
        one = 1 << unit
        first = exp_bounds(self.exponent(1 << self.bits), unit)
        change = (one, one) if self.kind == "laplace" else _product(first, first, unit)
        weight, factor, number = (one, one), first, 0
        beyond = 0, 0
        while number < self.n_bins or (self.kind == "gaussian" and weight[1] > 1):
            if number < self.n_bins:
                yield weight
            else:
                beyond = beyond[0] + weight[0], beyond[1] + weight[1]
            weight, factor = _product(weight, factor, unit), _product(factor, change, unit)
            number += 1
        # All further factors are smaller, or equal for the Laplace law.
        rest = [(w << unit) // (one - f) for w, f in zip(weight, factor, strict=True)]
        least = rest[0] if self.kind == "laplace" else 0
        yield beyond[0] + least, beyond[1] + rest[1] + 1

    def draw(self, source: UniformIntegers, size: int) -> NDArray[np.int64]:
        """Draw integers of the law."""
        parts, missing = [], size
        while missing > 0:
            parts.append(self._proposals(source, min(_AT_ONCE, missing + missing // 20 + 16)))
            missing -= len(parts[-1])
        return np.concatenate(parts)[:size]

    def _proposals(self, source: UniformIntegers, n: int) -> NDArray[np.int64]:
        """Return those of ``n`` proposals that are accepted."""
        bins = self._bins(source, source.words(n))
        words = source.words(n)
        inside = (words & np.uint64((1 << self.bits) - 1)).astype(np.int64)
        size = (bins << self.bits) + inside
        accepted = np.ones(n, dtype=bool)
        if self.bits:
            accepted = self._accepted(source, bins, inside, source.words(n))
        negative = (words >> np.uint64(63)).astype(bool)
        # Zero has one sign.
        accepted &= ~(negative & (size == 0))
        return np.where(negative, -size, size)[accepted]

    def _bins(self, source: UniformIntegers, words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the bins to which uniform numbers belong that begin with these words."""
        bins = self._guide[(words >> np.uint64(64 - _GUIDE_BITS)).astype(np.intp)].astype(np.int64)
        (open_,) = np.nonzero(bins < 0)
        found = np.searchsorted(self._ends, words[open_], side="right") - 1
        bins[open_] = found
        unsure = (words[open_] - self._ends[found] < np.uint64(_UNSURE)) & (found > 0)
        for i in open_[unsure]:
            bins[i] = self._bin_of(source, int(words[i]))
        for i in np.flatnonzero(bins == self.n_bins):
            bins[i] = self._bin_beyond(source)
        return bins

    def _bin_of(self, source: UniformIntegers, word: int) -> int:
        """Return the bin of a uniform number that begins with a word, drawing further bits."""
        bits = 64
        while True:
            low, high = self.boundaries(bits)
            # The number is in [word, word + 1). These are the first and the last possible bin.
            first = sum(end <= word for end in high) - 1
            last = sum(end < word + 1 for end in low) - 1
            if first == last:
                return first
            word, bits = _longer(source, word), bits + 64

    def _accepted(
        self,
        source: UniformIntegers,
        bins: NDArray[np.int64],
        inside: NDArray[np.int64],
        words: NDArray[np.uint64],
    ) -> BoolArray:
        """Return which uniform numbers that begin with these words are below the acceptance."""
        u, start = inside.astype(float), np.ldexp(bins.astype(float), self.bits)
        if self.kind == "laplace":
            y = u / self._float
        else:
            y = (u + 2 * start) * u * (0.5 / self._float / self._float)
        v = np.ldexp((words >> np.uint64(11)).astype(float), -53)
        line = 1.0 - y
        accepted: BoolArray = v < line - _MARGIN
        (open_,) = np.nonzero(~accepted & (v < line + 0.5 * y * y + _MARGIN))
        distance = v[open_] - _exp(-y[open_])
        accepted[open_] = distance < 0
        beyond = np.flatnonzero(bins >= self.n_bins)
        for i in {*open_[np.abs(distance) < _MARGIN].tolist(), *beyond.tolist()}:
            accepted[i] = self._is_below(source, int(bins[i]), int(inside[i]), int(words[i]))
        return accepted

    def _is_below(self, source: UniformIntegers, number: int, inside: int, word: int) -> bool:
        """Decide if a uniform number that begins with a word is below the acceptance."""
        left, bits = number << self.bits, 64
        exponent = self.exponent(left + inside) - self.exponent(left)
        while True:
            low, high = exp_bounds(exponent, bits)
            if word + 1 <= low:
                return True
            if word >= high:
                return False
            word, bits = _longer(source, word), bits + 64

    def _bin_beyond(self, source: UniformIntegers) -> int:
        """Draw a bin beyond the table, by rejection from an exponential law of its number."""
        scale, one_at_a_time = self.scale / (1 << self.bits), ExactDraws(source)
        if self.kind == "gaussian":
            scale *= scale / self.n_bins
        while True:
            more = one_at_a_time._one_laplace(*scale.as_integer_ratio())
            rest = self.exponent(more << self.bits) if self.kind == "gaussian" else Fraction()
            if more >= 0 and one_at_a_time._happens(rest):
                return self.n_bins + more


binned_law = lru_cache(maxsize=32)(BinnedLaw)


def _product(a: tuple[int, int], b: tuple[int, int], unit: int) -> tuple[int, int]:
    """Bound the product of two bounded numbers, in units of ``2**-unit``."""
    return a[0] * b[0] >> unit, -(-a[1] * b[1] >> unit)


def _longer(source: UniformIntegers, word: int) -> int:
    """Draw 64 further bits of a uniform number."""
    return word << 64 | source.below(1 << 64)


def _exp(x: FloatArray) -> FloatArray:
    """Compute exp(x) for x in [-1/2, 0] by operations of IEEE 754, so that errors are known."""
    total = np.ones_like(x)
    for i in range(_TERMS, 0, -1):
        total = 1.0 + total * (x / i)
    return total


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Bound exp(-exponent) by integers in units of ``2**-bits``."""
    if exponent == 0:
        return 1 << bits, 1 << bits
    digits = bits // 3 + 10
    down = Context(digits, ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    up = Context(digits, ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    numbers = Decimal(exponent.numerator), Decimal(exponent.denominator)
    # The exponential function of this module is rounded to the nearest number, in any context. An
    # operator such as the minus sign would round to the digits of the current context.
    low = down.next_minus(down.exp(up.divide(*numbers).copy_negate()))
    high = up.next_plus(up.exp(down.divide(*numbers).copy_negate()))
    unit = Decimal(1 << bits)
    return (
        max(0, int(down.multiply(low, unit).to_integral_value(ROUND_FLOOR))),
        min(1 << bits, int(up.multiply(high, unit).to_integral_value(ROUND_CEILING))),
    )

"""Exact draws from the exponential mechanism of the bottleneck distance.

The law is ``g(d_B(P, D)) nu(P)`` on a finite set of diagrams, ``nu`` a base
measure and ``g`` a public table of positive integers that falls by a factor
of at most ``exp(rate)`` per grid step. Everything is integer arithmetic: no
floating-point number takes part in a draw.
"""

import heapq
from bisect import bisect_right
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod

# Bits of the mantissas of the table of weights.
_MANTISSA_BITS = 128
# Stop splitting blocks once this many tenths of the proposals of a level survive.
_LEVEL_ACCEPTANCE = 8
_MAX_BLOCKS = 400


class DecayTable:
    """Public weights that fall by a factor of at most ``exp(rate)`` per grid step.

    The rate is an exact fraction, the levels are ``0, ..., n_levels - 1``. ``weight(r)`` is a
    positive integer with ``weight(r) <= exp(rate) * weight(r + 1)`` exactly: every rounding is
    upwards. The weights are kept as dyadic numbers, because over all levels they span thousands
    of bits.
    """

    def __init__(self, numerator, denominator, n_levels):
        ratio = _rounded_up_exponential(numerator, denominator)
        mantissas, exponents = [1 << _MANTISSA_BITS], [0]
        while len(mantissas) < n_levels:
            # Shift before the division, so that the mantissa keeps its length.
            product = mantissas[-1] * ratio
            shift = product.bit_length() - (_MANTISSA_BITS + 1)
            mantissas.append(-(-product >> shift))
            exponents.append(exponents[-1] + _MANTISSA_BITS - shift)
        self._mantissas = mantissas
        self._exponents = exponents
        self.n_levels = n_levels

    def weight(self, r):
        """Weight of level ``r``; zero beyond the last level."""
        if r >= self.n_levels:
            return 0
        return self._mantissas[r] << (self._exponents[-1] - self._exponents[r])


@lru_cache(maxsize=64)
def decay_table(numerator, denominator, n_levels):
    """Return a :class:`DecayTable`, made once for all diagrams that share it."""
    return DecayTable(numerator, denominator, n_levels)


def _rounded_up_exponential(numerator, denominator):
    """``exp(-numerator / denominator)`` in units of ``2**-_MANTISSA_BITS``, from above."""
    digits = 2 * _MANTISSA_BITS // 3
    up = Context(prec=digits, rounding=ROUND_CEILING)
    down = Context(prec=digits, rounding=ROUND_FLOOR)
    rate = down.divide(Decimal(numerator), Decimal(denominator))
    # exp() is correctly rounded to nearest; next_plus() makes it an upper bound.
    factor = up.next_plus(up.exp(-rate))
    one = 1 << _MANTISSA_BITS
    scaled = up.multiply(factor, Decimal(one)).to_integral_value(rounding=ROUND_CEILING)
    return min(int(scaled), one)


class ExactSampler:
    """Draws tuples of diagrams whose largest bottleneck distance sets the weight.

    There is one ball per part of the output, and one level for all parts. The last level of the
    public ``table`` must hold every diagram, also those that are furthest from this one.
    ``n_proposals_`` counts proposals, for measuring; it depends on the diagram and must not be
    released.
    """

    def __init__(self, balls, table):
        self.balls = balls
        self.n_proposals_ = 0
        self._table = table
        self._blocks = self._split(self._first_blocks(table.n_levels - 1))
        self._cumulative = list(accumulate(block.upper for block in self._blocks))

    def draw(self, source):
        """Draw one sorted list of (birth, death) per ball, in grid units."""
        while True:
            self.n_proposals_ += 1
            value = source.below(self._cumulative[-1])
            block = self._blocks[bisect_right(self._cumulative, value)]
            r = self._draw_level(source, block)
            if source.below(block.volume(block.high)) >= block.volume(r):
                continue
            parts = block.draw(source, r)
            if parts is not None:
                return [sorted(part) for part in parts]

    def _draw_level(self, source, block):
        """Draw a level of a block in proportion to the steps of the table."""
        weight = self._table.weight
        floor = weight(block.high + 1)
        height = floor + 1 + source.below(weight(block.low) - floor)
        # The level is the last one whose weight reaches the height, and weights fall.
        levels = range(block.low, block.high + 1)
        return block.low - 1 + bisect_right(levels, -height, key=lambda r: -weight(r))

    def _first_blocks(self, last):
        first = max(ball.first_level() for ball in self.balls)
        edges = {first, last, last + 1}
        edges.update(b for ball in self.balls for b in ball.breaks() if first < b < last)
        edge = max(first, 1)
        while edge < last:
            edges.add(edge)
            edge = max(edge + 1, edge * 13 // 10)
        edges = sorted(edges)
        return [self._block(low, nxt - 1) for low, nxt in pairwise(edges)]

    def _block(self, low, high):
        mass = self._table.weight(low) - self._table.weight(high + 1)
        return Block(self.balls, low, high, mass)

    def _split(self, blocks):
        heap = [(-block.waste, i, block) for i, block in enumerate(blocks)]
        heapq.heapify(heap)
        upper = sum(block.upper for block in blocks)
        waste = sum(block.waste for block in blocks)
        counter = len(blocks)
        while waste * 10 > (10 - _LEVEL_ACCEPTANCE) * upper and counter < 2 * _MAX_BLOCKS:
            _, _, worst = heapq.heappop(heap)
            upper -= worst.upper
            waste -= worst.waste
            middle = (worst.low + worst.high) // 2
            for part in (self._block(worst.low, middle), self._block(middle + 1, worst.high)):
                heapq.heappush(heap, (-part.waste, counter, part))
                counter += 1
                upper += part.upper
                waste += part.waste
        return [block for _, _, block in heap if block.upper > 0]


class Block:
    """Consecutive levels that share one cover per ball."""

    def __init__(self, balls, low, high, mass):
        self.low = low
        self.high = high
        self.upper = 0
        self.waste = 0
        if mass == 0:
            return
        self.covers = [ball.cover(high) for ball in balls]
        self.upper = mass * self.volume(high)
        if low < high:
            self.waste = self.upper - mass * self.volume(low)

    def volume(self, r):
        """Weight of the product of the covers at level ``r``."""
        return prod(cover.weight(r) for cover in self.covers)

    def draw(self, source, r):
        """Propose one part after the other; None as soon as one is rejected."""
        parts = []
        for cover in self.covers:
            part = cover.draw(source, r)
            if part is None:
                return None
            parts.append(part)
        return parts

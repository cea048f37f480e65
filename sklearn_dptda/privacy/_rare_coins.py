"""Positions of successes among many independent coins, without drawing each coin.

Proof: doc/theory/graphs.md, "Drawing them".
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from sklearn_dptda.privacy._noise import NoiseSource

# Number of bits, after the first 16, of the probability of an outcome of eight coins.
_REST = 512 - 16
_ONES = (1 << 64) - 1
# Number of bytes of coins that are drawn together.
_CHUNK = 1 << 19
# For rarer successes, the gaps between successes are drawn instead of the coins.
_RARE = 2.0**-13
# The largest scale of gaps. Rarer successes occur slightly more often than requested.
_LARGEST_SCALE = 2.0**51


def successes(noise: NoiseSource, numerator: int, n: int) -> Iterator[NDArray[np.int64]]:
    """Yield sorted positions of successes among ``n`` coins, as arrays of int64.

    Each coin succeeds with probability ``numerator / 2**64``. If this is small, gaps between
    successes are drawn, as discrete Laplace variables that are not negative. The probability is
    then larger by up to a relative 1e-9, and never less than 2**-51.
    """
    if numerator <= 0:
        return
    if numerator >= _RARE * 2.0**64:
        yield from _thrown(noise, numerator, n)
    else:
        yield from _skipped(noise, numerator / 2.0**64, n)


def _thrown(noise: NoiseSource, numerator: int, n: int) -> Iterator[NDArray[np.int64]]:
    octets = _octets(numerator)
    for start in range(0, n, 8 * _CHUNK):
        size = min(8 * _CHUNK, n - start)
        at = positions(octets.draw(noise, -(-size // 8)))
        yield start + at[at < size]


class Octets:
    """Eight independent coins at a time, exactly, from slightly more than 16 random bits.

    A uniform number determines one of the 256 outcomes by their cumulative probabilities, multiples
    of ``2**-512``. More than its first 16 bits are compared only if a boundary has the same first
    bits.
    """

    def __init__(self, numerator: int) -> None:
        misses = (1 << 64) - numerator
        chances = [numerator**k * misses ** (8 - k) for k in range(9)]
        outcomes = (chances[outcome.bit_count()] for outcome in range(256))
        self.bounds = list(accumulate(outcomes, initial=0))
        firsts = np.array([bound >> _REST for bound in self.bounds[:-1]])
        # For each cell, this is the last outcome whose boundary is not above its first number.
        self.table = (np.searchsorted(firsts, np.arange(1 << 16), side="right") - 1).astype(
            np.int16
        )
        inner = [i for i in range(1, 256) if self.bounds[i] % (1 << _REST)]
        self.split = {
            cell: self._before_and_bounds(list(inside))
            for cell, inside in groupby(inner, key=lambda i: self.bounds[i] >> _REST)
        }
        self.table[list(self.split)] = -1

    def _before_and_bounds(self, inside: list[int]) -> tuple[int, NDArray[np.uint64]]:
        """The outcome before the boundaries inside a cell, and the next 64 bits of these."""
        bounds = [self.bounds[i] >> _REST - 64 & _ONES for i in inside]
        return inside[0] - 1, np.array(bounds, dtype=np.uint64)

    def draw(self, noise: NoiseSource, size: int) -> NDArray[np.uint8]:
        """Draw coins, eight in each byte, as an array of shape (size,) and dtype uint8."""
        cells = noise.words(-(-size // 4)).view(np.uint16)[:size]
        outcomes = self.table[cells]
        undecided = np.flatnonzero(outcomes < 0)
        if len(undecided):
            outcomes[undecided] = self._decide(noise, cells[undecided])
        return outcomes.astype(np.uint8)

    def _decide(self, noise: NoiseSource, cells: NDArray[np.uint16]) -> NDArray[np.int16]:
        words = noise.words(len(cells))
        outcomes = np.empty(len(cells), dtype=np.int16)
        order = np.argsort(cells, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(cells[order]) != 0, True])
        for start, stop in pairwise(starts):
            mine = order[start:stop]
            before, bounds = self.split[int(cells[mine[0]])]
            outcomes[mine] = before + np.searchsorted(bounds, words[mine], side="right")
            for i in mine[np.isin(words[mine], bounds)]:
                outcomes[i] = self._exactly(noise, int(cells[i]) << 64 | int(words[i]))
        return outcomes

    def _exactly(self, noise: NoiseSource, start: int) -> int:
        number = start << _REST - 64 | noise.below(1 << _REST - 64)
        return bisect_right(self.bounds, number) - 1


# The probability is public, so that its table can be cached.
_octets = lru_cache(maxsize=8)(Octets)


def positions(octets: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Indices of set bits in bytes, from the lowest bit of each byte to the highest."""
    some = np.flatnonzero(octets != 0)
    bits = np.unpackbits(octets[some], bitorder="little")
    at = np.flatnonzero(bits.view(bool))
    return 8 * some[at >> 3] + (at & 7)


def _skipped(noise: NoiseSource, probability: float, n: int) -> Iterator[NDArray[np.int64]]:
    scale = min(-1 / math.log1p(-probability) * (1 - 2.0**-31), _LARGEST_SCALE)
    expected = n * probability
    at = -1
    while at < n:
        size = int(min(2.2 * (expected + 6 * math.sqrt(expected) + 10), 1 << 20))
        gaps = noise.discrete_laplace(scale, size)
        steps = at + np.cumsum(gaps[gaps >= 0] + 1)
        inside = steps[steps < n]
        yield inside
        if len(inside) < len(steps):
            return
        at = int(steps[-1]) if len(steps) else at
        expected = (n - at) * probability

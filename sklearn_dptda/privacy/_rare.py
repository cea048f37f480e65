"""Positions of successes among many independent coins, exactly and without drawing each."""

import math

import numpy as np

_WORD = 64
# Coins that are thrown together, in words of 64.
_CHUNK = 1 << 16
# Coins with rarer successes are skipped over instead of thrown.
_RARE = 2.0**-10
# Of the noise that gaps are made of: rarer successes come a little more often than asked.
_LARGEST_SCALE = 2.0**51


def successes(noise, numerator, n):
    """Yield sorted positions of successes among ``n`` coins.

    Parameters
    ----------
    noise : NoiseSource
    numerator : int
        Each coin succeeds with probability ``numerator / 2**64``; where that
        is rare, by up to a relative 1e-9 more, and never less than 2**-51.
    n : int

    Yields
    ------
    ndarray of int64
        Positions in ``0..n - 1``, increasing from part to part.

    Notes
    -----
    Coins are thrown 64 at a time: the bits of uniform numbers are compared
    with those of the probability from the first on, and most words are decided
    after eight. Rare successes are reached by geometric gaps, which are
    discrete Laplace variables that are not negative.
    """
    if numerator <= 0:
        return
    if numerator >= _RARE * 2.0**64:
        yield from _thrown(noise, numerator, n)
    else:
        yield from _skipped(noise, numerator / 2.0**64, n)


def _thrown(noise, numerator, n):
    for start in range(0, n, _CHUNK * _WORD):
        size = min(_CHUNK * _WORD, n - start)
        words = coins(noise, numerator, -(-size // _WORD))
        found = positions(words)
        yield start + found[found < size]


def coins(noise, numerator, n_words):
    """Words whose bits are set with probability ``numerator / 2**64`` each, independently.

    Parameters
    ----------
    noise : NoiseSource
    numerator : int
        From 0 to 2**64.
    n_words : int

    Returns
    -------
    ndarray of shape (n_words,), dtype uint64
    """
    if numerator >> 64:
        return np.full(n_words, ~np.uint64(0))
    out = np.zeros(n_words, dtype=np.uint64)
    active = np.arange(n_words)
    undecided = np.full(n_words, ~np.uint64(0))
    for digit in range(63, -1, -1):
        drawn = noise.words(len(active))
        if numerator >> digit & 1:
            # A smaller bit than the probability's: below it, a success.
            out[active] |= undecided & ~drawn
            undecided &= drawn
        else:
            undecided &= ~drawn
        if digit < 60:
            # What is left of a tie in all bits is no success.
            left = undecided != 0
            if not left.all():
                active, undecided = active[left], undecided[left]
            if len(active) == 0:
                break
    return out


def positions(words):
    """Indices of set bits, those of a word from its lowest on.

    Parameters
    ----------
    words : ndarray of uint64

    Returns
    -------
    ndarray of int64
    """
    octets = words.astype("<u8").view(np.uint8)
    some = np.flatnonzero(octets)
    bits = np.unpackbits(octets[some][:, None], axis=1, bitorder="little")
    rows, columns = np.nonzero(bits)
    return 8 * some[rows] + columns


def _skipped(noise, probability, n):
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

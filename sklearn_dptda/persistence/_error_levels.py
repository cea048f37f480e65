"""Levels that private diagrams stay within, at a confidence and for all diagrams of a class.

The law of a draw is a mixture over levels of the base measure on balls, so that bounds of the
weights of balls bound its tails. Integers throughout; proofs are in
``doc/theory/error_bounds.md``.
"""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import prod

# Probabilities are rounded up to multiples of this power of one half.
_BITS = 64
# Levels one by one up to here, then in blocks longer by this part of their first level.
_SINGLE, _PART = 128, 64


@lru_cache(maxsize=32)
def error_level(groups, table, confidence):
    """Smallest level that the distances of all parts stay within, or None.

    Each group is a tuple of volumes of parts that share one draw, by the weights of the table.
    """
    blocks = _blocks(table.n_levels)
    tails = [_tails(group, table, blocks) for group in groups]
    allowed = _allowed(confidence)
    levels = (last for _, last in blocks)
    return next((r for r, *p in zip(levels, *tails, strict=True) if sum(p) <= allowed), None)


@lru_cache(maxsize=32)
def noise_level(part, others, table, confidence):
    """Smallest half persistence that no private point of a part without long points exceeds.

    In steps, or None. The ``others`` are the volumes of the parts that share its draw.
    """
    blocks = _blocks(table.n_levels)
    most, least = _weights(others, table, blocks)
    wide = [part.near_diagonal(b + part.floor) for _, b in blocks]
    inside = [part.near_diagonal(a) if a >= part.floor else 0 for a, _ in blocks]
    # Sums over all later blocks.
    spread = _sums_from([h * w for h, w in zip(most, wide, strict=True)])
    most, later = (
        _sums_from(most),
        _sums_from([w if a >= part.floor else 0 for w, (a, _) in zip(least, blocks, strict=True)]),
    )
    within = [*accumulate(w * v for w, v in zip(least, inside, strict=True))]
    allowed, first = _allowed(confidence), 0
    for i, (_, t) in enumerate(blocks):
        # The first block whose balls reach further than t.
        while first < len(blocks) and blocks[first][1] + part.floor <= t:
            first += 1
        near = part.near_diagonal(t)
        beyond = spread[first] - near * most[first]
        if _rounded_up(beyond, beyond + within[i] + near * later[i + 1]) <= allowed:
            return t
    return None


def _blocks(n_levels):
    """First and last levels of consecutive blocks."""
    blocks, first = [], 0
    while first < n_levels:
        length = 1 if first < _SINGLE else first // _PART
        blocks.append((first, min(first + length, n_levels) - 1))
        first += length
    return blocks


def _weights(group, table, blocks):
    """Weights of the balls of the levels of each block together, at most and at least."""
    masses = [table.weight(a) - table.weight(b + 1) for a, b in blocks]
    most = [m * prod(p.highest(b) for p in group) for m, (_, b) in zip(masses, blocks, strict=True)]
    least = [m * prod(p.lowest(a) for p in group) for m, (a, _) in zip(masses, blocks, strict=True)]
    return most, least


def _tails(group, table, blocks):
    """Bounds of the probabilities that the distance is beyond the last level of each block."""
    most, least = _weights(group, table, blocks)
    spread, within = _sums_from(most), [*accumulate(least)]
    tails = []
    for i, (_, r) in enumerate(blocks):
        # Balls of later levels hold that of this one, too.
        ball = table.weight(r + 1) * prod(part.lowest(r) for part in group)
        tails.append(_rounded_up(spread[i + 1] - ball, spread[i + 1] + within[i]))
    return tails


def _sums_from(values):
    """Sums of all values from each place on, zero at the end."""
    return [*accumulate(reversed(values), initial=0)][::-1]


def _rounded_up(part, whole):
    """Ratio of integers as a multiple of a power of one half, from above; at most one."""
    return min(-(-(part << _BITS) // whole), 1 << _BITS) if whole > 0 else 1 << _BITS


def _allowed(confidence):
    return math.floor((1 - Fraction(confidence)) * 2**_BITS)

"""Levels that a draw does not exceed, from integer bounds of the weights of balls.

Proof: doc/theory/error_bounds.md, "Tails of the distance".
Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
Proof: doc/theory/private_cap.md, "Bounds of its error".
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from math import comb, perm, prod
from typing import NamedTuple, TypeAlias

from sklearn_dptda.persistence._exact_sampler import BaseMeasure, DecayTable, birth_weights

# Probabilities are rounded up to multiples of this power of one half.
_PROBABILITY_BITS = 64
# Levels are considered one by one up to the first number, then in blocks that contain one level for
# each 64 levels before them. This saves time, and the bound is hardly larger.
_SINGLE_LEVELS, _LEVELS_PER_LENGTH = 128, 64
# Levels with less than this power of one half of the weight of twice the largest floor are one
# block. The largest base measure of 30 points has less than 1,500 bits, so that such levels matter
# less than the rounding of probabilities. Otherwise, a large epsilon means millions of bits.
_NEGLIGIBLE_BITS = 4096


@dataclass(frozen=True)
class DiagramVolumes:
    """Bounds for the finite points of one diagram, ``floor`` in steps of half persistence.

    With ``inside``, points longer than the floor are also farther from the ends of the range than
    the level.
    """

    measure: BaseMeasure
    most: int
    floor: int
    inside: bool = False

    def highest(self, s: int) -> int:
        """Bound the weight of a ball of level ``s`` from above.

        Each point of the ball is close to a long point, or is short.
        """
        measure = self.measure
        strip = self._strip(s + self.floor)
        square = (2 * s + 1) ** 2 * (measure.size if measure.linear else 1)
        total = _polynomial([_polynomial(c, strip) for c in self._near_and_short], square)
        return min(total, self.near_diagonal(measure.size))

    @cached_property
    def _near_and_short(self) -> list[list[int]]:
        """Numbers of ways to have ``i`` points near long ones and all others short.

        For each ``i``, from the largest down, these are the coefficients of a polynomial in the
        weight of short points, from the highest power down.
        """
        omegas = self.measure.count_weights
        return [
            [omegas[m] * perm(m, i) * comb(self.most, i) for m in range(len(omegas) - 1, i - 1, -1)]
            for i in range(min(self.most, len(omegas) - 1), -1, -1)
        ]

    def lowest(self, s: int) -> int:
        """Bound the weight of a ball of level ``s`` from below.

        It is zero if the level is too small for short points to be arbitrary.
        """
        if s < self.floor or self.most > self.measure.max_points:
            return 0
        strip = self._strip(s)
        return min(self._with_forced(s, j, strip) for j in range(self.most + 1))

    def without_long(self) -> "DiagramVolumes":
        """Return the volumes for diagrams without long points."""
        return replace(self, most=0)

    def near_diagonal(self, r: int) -> int:
        """Return the weight of the diagrams whose points are all within ``r`` of the diagonal."""
        return _polynomial(self.measure.count_weights[::-1], self._strip(r))

    def _with_forced(self, s: int, j: int, strip: int) -> int:
        """Bound the weight of a ball from below if ``j`` points are longer than ``2 s``.

        The first points of a tuple are matched to these, in order. The others are near the
        diagonal.
        """
        # If the end of the range cuts a square, the quarter towards the middle remains.
        side = 2 * s + 1 if self.inside else s + 1
        square = side**2 * (s + 1 if self.measure.linear else 1)
        return square**j * _polynomial(self.measure.count_weights[j:][::-1], strip)

    def _strip(self, r: int) -> int:
        """Return the weight of the points within ``r`` of the diagonal."""
        size, width = self.measure.size, min(2 * r, self.measure.size)
        # Births with a full column of deaths above them.
        full = size - width
        return full * self.measure.column(width) + self.measure.staircase(width)


@dataclass(frozen=True)
class BirthVolumes:
    """Bounds for the birth of the essential component, where early births may weigh more."""

    size: int
    inside: bool = False
    decay: int = 0

    def highest(self, s: int) -> int:
        """Bound the weight of the births within ``s`` from above."""
        return birth_weights(self.size, self.decay)[min(2 * s, self.size) + 1]

    def lowest(self, s: int) -> int:
        """Bound the weight of the births within ``s`` from below."""
        below = birth_weights(self.size, self.decay)
        return below[-1] - below[self.size - min(2 * s if self.inside else s, self.size)]


def _polynomial(factors: Sequence[int], x: int) -> int:
    """Evaluate a polynomial, given its coefficients from the highest power down."""
    value = 0
    for factor in factors:
        value = value * x + factor
    return value


Volumes: TypeAlias = DiagramVolumes | BirthVolumes
# One dimension: its finite points, and in dimension 0 the birth of the essential component.
Part: TypeAlias = tuple[DiagramVolumes, *tuple[BirthVolumes, ...]]
# First and last levels of consecutive blocks.
Blocks: TypeAlias = tuple[tuple[int, int], ...]
# A probability, as a part and the whole.
Ratio: TypeAlias = tuple[int, int]


class Odds(NamedTuple):
    """Weight of a smaller cap, and of the default cap with its parts."""

    weight: int
    default: int
    parts: tuple[Volumes, ...]


@lru_cache(maxsize=32)
def error_level(
    groups: tuple[tuple[Volumes, ...], ...],
    table: DecayTable,
    confidence: float,
    odds: Odds | None = None,
) -> int | None:
    """Return the smallest level that the distances of all parts do not exceed, or None.

    Each group is a tuple of volumes of parts that share one draw, with the weights of the table.
    With ``odds``, the event includes that this cap is drawn.
    """
    others = () if odds is None else odds.parts
    blocks = _blocks(table, (*chain.from_iterable(groups), *others))
    tails = [_tails(group, table, odds, blocks) for group in groups]
    allowed = _allowed(confidence)
    levels = (last for _, last in blocks)
    return next((r for r, *p in zip(levels, *tails, strict=True) if _at_most(p, allowed)), None)


@lru_cache(maxsize=32)
def noise_level(
    part: DiagramVolumes,
    others: tuple[Volumes, ...],
    table: DecayTable,
    confidence: float,
    odds: Odds | None = None,
) -> int | None:
    """Return the smallest half persistence that no private point exceeds, or None.

    The points are those of a part without long points, and the result is in steps. ``others`` are
    the volumes of the parts that share the draw. With ``odds``, the event includes that this cap is
    drawn.
    """
    blocks = _blocks(table, (part, *others, *(() if odds is None else odds.parts)))
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
    default = 0 if odds is None else _weight_of_default(odds, table, blocks)
    for i, (_, t) in enumerate(blocks):
        # The first block whose balls reach farther than t.
        while first < len(blocks) and blocks[first][1] + part.floor <= t:
            first += 1
        near = part.near_diagonal(t)
        beyond, kept = spread[first] - near * most[first], within[i] + near * later[i + 1]
        if odds is not None:
            beyond, kept = odds.weight * beyond, default
        if _at_most([(beyond, beyond + kept)], allowed):
            return t
    return None


def _blocks(table: DecayTable, volumes: Iterable[Volumes]) -> Blocks:
    """Return the first and last levels of consecutive blocks, of which the last may be long."""
    floor = max((v.floor for v in volumes if isinstance(v, DiagramVolumes)), default=0)
    end, blocks, first = table.level_below(2 * floor, _NEGLIGIBLE_BITS), list[tuple[int, int]](), 0
    while first < end:
        length = 1 if first < _SINGLE_LEVELS else first // _LEVELS_PER_LENGTH
        blocks.append((first, min(first + length, end) - 1))
        first += length
    return (*blocks, (end, table.n_levels - 1))


@lru_cache(maxsize=32)
def _weights(
    group: tuple[Volumes, ...], table: DecayTable, blocks: Blocks
) -> tuple[list[int], list[int]]:
    """Bound the total weight of the balls of each block of levels, from above and from below."""
    last = blocks[-1][0]
    masses = [table.weight(a, last) - table.weight(b + 1, last) for a, b in blocks]
    most = [m * prod(p.highest(b) for p in group) for m, (_, b) in zip(masses, blocks, strict=True)]
    least = [m * prod(p.lowest(a) for p in group) for m, (a, _) in zip(masses, blocks, strict=True)]
    return most, least


def _weight_of_default(odds: Odds, table: DecayTable, blocks: Blocks) -> int:
    """Bound the total weight of all diagrams under the default cap from below."""
    _, least = _weights(odds.parts, table, blocks)
    return odds.default * sum(least)


def _tails(
    group: tuple[Volumes, ...], table: DecayTable, odds: Odds | None, blocks: Blocks
) -> Iterator[Ratio]:
    """Bound the probabilities that the distance exceeds the last level of each block."""
    most, least = _weights(group, table, blocks)
    spread, within = _sums_from(most), [*accumulate(least)]
    default = 0 if odds is None else _weight_of_default(odds, table, blocks)
    for i, (_, r) in enumerate(blocks):
        if odds is not None:
            beyond = odds.weight * spread[i + 1]
            yield beyond, beyond + default
        else:
            # Balls of later levels contain the ball of this level, too.
            ball = table.weight(r + 1, blocks[-1][0]) * prod(part.lowest(r) for part in group)
            yield spread[i + 1] - ball, spread[i + 1] + within[i]


def _sums_from(values: Sequence[int]) -> list[int]:
    """Return the sums of all values from each position on, with a zero at the end."""
    return [*accumulate(reversed(values), initial=0)][::-1]


def _at_most(ratios: Sequence[Ratio], allowed: int) -> bool:
    """Whether ratios, rounded up to multiples of a power of one half, add up to at most a number.

    Most sums are far larger. Their leading bits show that, much faster than a division.
    """
    if sum(map(_floor, ratios)) > math.ldexp(allowed, -_PROBABILITY_BITS) * (1 + 1e-9):
        return False
    one = 1 << _PROBABILITY_BITS
    rounded = (min(-(-part * one // whole), one) if whole > 0 else one for part, whole in ratios)
    return sum(rounded) <= allowed


def _floor(ratio: Ratio) -> float:
    """A lower bound of a ratio of integers, from 64 bits of each, up to rounding."""
    part, whole = ratio
    shift = max(whole.bit_length() - 64, 0)
    return (part >> shift) / ((whole >> shift) + 1) if whole > 0 else 0.0


def _allowed(confidence: float) -> int:
    """Round the allowed failure probability down to a multiple of that power of one half."""
    return math.floor((1 - Fraction(confidence)) * 2**_PROBABILITY_BITS)

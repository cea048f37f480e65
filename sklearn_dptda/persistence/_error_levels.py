"""Levels that a draw does not exceed, from integer bounds of the weights of balls.

Proof: doc/theory/error_bounds.md, "Tails of the distance".
Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
Proof: doc/theory/private_cap.md, "Bounds of its error".
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from math import comb, perm, prod
from typing import NamedTuple, TypeAlias, cast

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
# A probability, as a part and the whole.
Ratio: TypeAlias = tuple[int, int]


class Odds(NamedTuple):
    """Weight of a smaller cap, and of the default cap with the volumes of its parts."""

    weight: int
    default: int
    parts: tuple[Volumes, ...]


@dataclass(frozen=True)
class DrawTails:
    """Tails of the draws of the diagrams of one function under one cap.

    Each group has the volumes of the parts that share one draw, whose levels have the weights of
    the table. With ``odds``, all events include that this cap is drawn.
    """

    groups: tuple[tuple[Volumes, ...], ...]
    table: DecayTable
    odds: Odds | None = None

    def error_level(self, confidence: float) -> int | None:
        """Return the smallest level that the distances of all parts do not exceed, or None."""
        tails, allowed = [self._tails(group) for group in self.groups], _allowed(confidence)
        levels = (last for _, last in self._blocks)
        return next((r for r, *p in zip(levels, *tails, strict=True) if _at_most(p, allowed)), None)

    def noise_levels(self, confidence: float) -> list[int | None]:
        """Return the half persistence that noise does not exceed in each diagram, in steps.

        It is the smallest one that no private point exceeds if the exact diagram has no long
        points, or None.
        """
        return [
            self._noise_level(group, i, _allowed(confidence))
            for group in self.groups
            for i, part in enumerate(group)
            if isinstance(part, DiagramVolumes)
        ]

    def _tails(self, group: tuple[Volumes, ...]) -> Iterator[Ratio]:
        """Bound the probabilities that the distance exceeds the last level of each block."""
        most, least = _weights(group, self.table, self._blocks)
        spread = _sums_from(most)
        if self.odds is not None:
            default = self.odds.default * self._total(self.odds.parts)
            for beyond in spread[1:]:
                yield self.odds.weight * beyond, self.odds.weight * beyond + default
            return
        within = [*accumulate(least)]
        for i, (_, r) in enumerate(self._blocks):
            # Balls of later levels contain the ball of this level, too.
            later = self.table.weight(r + 1, self._blocks[-1][0])
            ball = later * prod(part.lowest(r) for part in group)
            yield spread[i + 1] - ball, spread[i + 1] + within[i]

    def _noise_level(self, group: tuple[Volumes, ...], i: int, allowed: int) -> int | None:
        (part, others), blocks = _emptied(group, i), self._blocks
        most, least = _weights(others, self.table, blocks)
        # Balls of smaller levels do not contain all short points.
        kept = [w if a >= part.floor else 0 for w, (a, _) in zip(least, blocks, strict=True)]
        wide = (part.near_diagonal(b + part.floor) for _, b in blocks)
        inside = (part.near_diagonal(a) for a, _ in blocks)
        spread = _sums_from([h * w for h, w in zip(most, wide, strict=True)])
        within = [*accumulate(w * v for w, v in zip(kept, inside, strict=True))]
        most, later = _sums_from(most), _sums_from(kept)
        default, first = 0, 0
        if self.odds is not None:
            empty, full = _emptied(self.odds.parts, i)
            default = self.odds.default * self._total((empty, *full))
        for j, (_, t) in enumerate(blocks):
            # The first block whose balls reach farther than t.
            while first < len(blocks) and blocks[first][1] + part.floor <= t:
                first += 1
            near = part.near_diagonal(t)
            beyond, rest = spread[first] - near * most[first], within[j] + near * later[j + 1]
            if self.odds is not None:
                beyond, rest = self.odds.weight * beyond, default
            if _at_most([(beyond, beyond + rest)], allowed):
                return t
        return None

    def _total(self, parts: tuple[Volumes, ...]) -> int:
        """Bound the total weight of all diagrams with these parts from below."""
        _, least = _weights(parts, self.table, self._blocks)
        return sum(least)

    @cached_property
    def _blocks(self) -> tuple[tuple[int, int], ...]:
        """First and last levels of consecutive blocks, of which the last may be long."""
        volumes = chain(*self.groups, () if self.odds is None else self.odds.parts)
        floor = max((v.floor for v in volumes if isinstance(v, DiagramVolumes)), default=0)
        end, blocks, first = self.table.level_below(2 * floor, _NEGLIGIBLE_BITS), [], 0
        while first < end:
            length = 1 if first < _SINGLE_LEVELS else first // _LEVELS_PER_LENGTH
            blocks.append((first, min(first + length, end) - 1))
            first += length
        return (*blocks, (end, self.table.n_levels - 1))


def _emptied(group: tuple[Volumes, ...], i: int) -> tuple[DiagramVolumes, tuple[Volumes, ...]]:
    """Return the volumes of one diagram without long points, and the other volumes."""
    return replace(cast(DiagramVolumes, group[i]), most=0), (*group[:i], *group[i + 1 :])


@lru_cache(maxsize=32)
def _weights(
    group: tuple[Volumes, ...], table: DecayTable, blocks: tuple[tuple[int, int], ...]
) -> tuple[list[int], list[int]]:
    """Bound the total weight of the balls of each block of levels, from above and from below."""
    last = blocks[-1][0]
    masses = [table.weight(a, last) - table.weight(b + 1, last) for a, b in blocks]
    most = [m * prod(p.highest(b) for p in group) for m, (_, b) in zip(masses, blocks, strict=True)]
    least = [m * prod(p.lowest(a) for p in group) for m, (a, _) in zip(masses, blocks, strict=True)]
    return most, least


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

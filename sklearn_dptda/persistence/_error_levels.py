"""Levels that a draw does not exceed, from bounds of the weights of balls.

The bounds are integers of thousands of bits. Their logarithms decide nearly all comparisons, with a
bound of their rounding errors. The integers are only computed if a comparison is closer than that.

Proof: doc/theory/error_bounds.md, "Tails of the distance".
Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
Proof: doc/theory/private_cap.md, "Bounds of its error".
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from itertools import chain
from math import comb, perm, prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from sklearn_dptda._typing import FloatArray
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


# Ends of a block.
_FIRST, _LAST = 0, 1
# Rounding errors of a logarithm, in units of the last place of the largest one. There are at most
# 1,000 operations for a volume, and one for each block in a sum.
_OPERATIONS = 1000
# Logarithms of the share that a level has of the weights from there on are above minus this number.
_LEAST_LOG = 100.0


class Logs:
    """Non-negative numbers by their logarithms: floats have too small a range, integers are slow.

    They are added and multiplied with each other, with integers, and with arrays to their right.
    """

    def __init__(self, logs: FloatArray) -> None:
        self.logs = logs

    def __add__(self, other: Any) -> "Logs":
        return Logs(np.logaddexp(self.logs, _logs_of(other)))

    def __mul__(self, other: Any) -> "Logs":
        return Logs(self.logs + _logs_of(other))

    def __pow__(self, exponent: int) -> "Logs":
        return Logs(self.logs * exponent)

    def __getitem__(self, places: Any) -> "Logs":
        return Logs(self.logs[places])

    __radd__ = __add__
    __rmul__ = __mul__


def _logs_of(numbers: Any) -> Any:
    """Return the logarithms of an integer, of Logs, or of an array of non-negative numbers."""
    if isinstance(numbers, Logs):
        return numbers.logs
    if isinstance(numbers, int):
        return math.log(numbers) if numbers else -math.inf
    with np.errstate(divide="ignore"):
        return np.log(numbers)


# Volumes are integers for an integer level, and Logs for an array of floats.
Level: TypeAlias = int | FloatArray
Volume: TypeAlias = int | Logs


def _volume(value: Any) -> Any:
    """Return an integer as it is, and an array by its logarithms."""
    return value if isinstance(value, int) else Logs(_logs_of(value))


def _least(first: Any, second: Any) -> Any:
    """Return the smaller of two integers, arrays or Logs."""
    if isinstance(first, Logs):
        return Logs(np.minimum(first.logs, _logs_of(second)))
    return min(first, second) if isinstance(first, int) else np.minimum(first, second)


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

    def highest(self, s: Level) -> Any:
        """Bound the weight of a ball of level ``s`` from above.

        Each point of the ball is close to a long point, or is short.
        """
        measure = self.measure
        strip = self._strip(s + self.floor)
        square = _volume((2 * s + 1) ** 2 * (measure.size if measure.linear else 1))
        total = _polynomial([_polynomial(c, strip) for c in self._near_and_short], square)
        return _least(total, self.near_diagonal(measure.size))

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

    def lowest(self, s: Level) -> Any:
        """Bound the weight of a ball of level ``s`` from below.

        It is zero if the level is too small for short points to be arbitrary.
        """
        if self.most > self.measure.max_points:
            return 0
        strip = self._strip(s)
        balls = [self._with_forced(s, j, strip) for j in range(self.most + 1)]
        return reduce(_least, balls) * (s >= self.floor)

    def near_diagonal(self, r: Level) -> Any:
        """Return the weight of the diagrams whose points are all within ``r`` of the diagonal."""
        return _polynomial(self.measure.count_weights[::-1], self._strip(r))

    def _with_forced(self, s: Level, j: int, strip: Volume) -> Any:
        """Bound the weight of a ball from below if ``j`` points are longer than ``2 s``.

        The first points of a tuple are matched to these, in order. The others are near the
        diagonal.
        """
        # If the end of the range cuts a square, the quarter towards the middle remains.
        side = 2 * s + 1 if self.inside else s + 1
        square = _volume(side**2 * (s + 1 if self.measure.linear else 1))
        return square**j * _polynomial(self.measure.count_weights[j:][::-1], strip)

    def _strip(self, r: Level) -> Any:
        """Return the weight of the points within ``r`` of the diagonal."""
        size, width = self.measure.size, _least(2 * r, self.measure.size)
        # Births with a full column of deaths above them.
        full = size - width
        return _volume(full * self.measure.column(width) + self.measure.staircase(width))


@dataclass(frozen=True)
class BirthVolumes:
    """Bounds for the birth of the essential component, where early births may weigh more."""

    size: int
    inside: bool = False
    decay: int = 0

    def highest(self, s: Level) -> Any:
        """Bound the weight of the births within ``s`` from above."""
        return _volume(self._below(_least(2 * s, self.size) + 1))

    def lowest(self, s: Level) -> Any:
        """Bound the weight of the births within ``s`` from below."""
        above = self._below(self.size - _least(2 * s if self.inside else s, self.size))
        return _volume(self._below(self.size + 1) - above)

    def _below(self, births: Level) -> Any:
        """Return the weight of the births below some."""
        weights = birth_weights(self.size, self.decay)
        if isinstance(births, int):
            return weights[births]
        return np.array([weights[int(b)] for b in births], dtype=float)


def _polynomial(factors: Sequence[Any], x: Any) -> Any:
    """Evaluate a polynomial, given its coefficients from the highest power down."""
    value: Any = 0
    for factor in factors:
        value = value * x + factor
    return value


Volumes: TypeAlias = DiagramVolumes | BirthVolumes
# A probability, as a part and the whole.
Ratio: TypeAlias = tuple[int, int]
# Numbers for each block, as integers or as Logs: what is at most beyond a level, as a difference of
# two numbers, and what is at least within it.
_Tail: TypeAlias = tuple[Any, Any, Any]


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
        return self._first_level(
            lambda exact: [self._tail(group, exact) for group in self.groups], confidence
        )

    def noise_levels(self, confidence: float) -> list[int | None]:
        """Return the half persistence that noise does not exceed in each diagram, in steps.

        It is the smallest one that no private point exceeds if the exact diagram has no long
        points, or None.
        """
        return [
            self._first_level(partial(self._noise, group, i), confidence)
            for group in self.groups
            for i, part in enumerate(group)
            if isinstance(part, DiagramVolumes)
        ]

    def _first_level(self, tails: Callable[[bool], list[_Tail]], confidence: float) -> int | None:
        """Return the end of the first block beyond which little enough is left, or None."""
        allowed = _allowed(confidence)
        # Sums of lower and of upper bounds.
        low, high = np.sum([self._ratios(*tail) for tail in tails(False)], axis=0)
        share = math.ldexp(allowed, -_PROBABILITY_BITS)
        first = next(iter(np.flatnonzero(low <= share).tolist()), None)
        if first is not None and high[first] > share - math.ldexp(len(self.groups), -60):
            exact = [zip(*tail, strict=True) for tail in tails(True)]
            levels = zip(*exact, strict=True)
            ratios = ([(a - b, a - b + c) for a, b, c in each] for each in levels)
            first = next((i for i, each in enumerate(ratios) if _at_most(each, allowed)), None)
        return None if first is None else self._blocks[first][1]

    def _ratios(self, more: Logs, less: Logs, rest: Logs) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the ratios of ``more - less`` and ``more - less + rest``."""
        logs = np.array([more.logs, less.logs, rest.logs])
        largest = np.abs(logs[np.isfinite(logs)]).max(initial=0.0)
        largest += _LEAST_LOG + 2 * self.table.decay * self._blocks[-1][0]
        error = np.finfo(float).eps * largest * (_OPERATIONS + len(self._blocks))
        top = np.maximum(logs[0], logs[2])
        a, b, c = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        part, apart = a - b, error * (a + b)
        small, large = np.maximum(part - apart, 0.0), part + apart
        # Zero by zero and a ratio without rest count as one.
        with np.errstate(invalid="ignore"):
            low = np.where(small > 0, small / (small + c * (1 + 2 * error)), 0.0)
            high = np.where(large > 0, large / (large + c * (1 - 2 * error)), 1.0 * (c == 0))
        return np.where(np.isneginf(logs[2]), 1.0, low), high

    def _tail(self, group: tuple[Volumes, ...], exact: bool) -> _Tail:
        """Bound the weights of what is farther than the last level of each block."""
        most, least = self._weights(group, exact)
        spread = _sums_from(most)[1:]
        if self.odds is not None:
            return spread * self.odds.weight, spread * 0, self._default(self.odds.parts, exact)
        # Balls of later levels contain the ball of this level, too.
        balls = (self._volumes(part, "lowest", _LAST, exact) for part in group)
        ball = prod(balls, start=self._later(exact))
        return spread, ball, ball + _sums_to(least)

    def _noise(self, group: tuple[Volumes, ...], i: int, exact: bool) -> list[_Tail]:
        """Bound the weights of diagrams with a point longer than the end of each block."""
        part, others = _emptied(group, i)
        firsts, lasts = _ends(*self._range)
        most, least = self._weights(others, exact)
        # Volumes without long points are those of all diagrams near the diagonal. Balls of smaller
        # levels than the floor do not contain all short points.
        kept = least * (firsts >= part.floor)
        spread = _sums_from(most * self._volumes(part, "highest", _LAST, exact))
        within = _sums_to(least * self._volumes(part, "lowest", _FIRST, exact))
        # The first block whose balls reach farther than the end.
        first = np.searchsorted(lasts + part.floor, lasts, side="right")
        near = self._volumes(replace(part, floor=0), "highest", _LAST, exact)
        more, less = spread[first], near * _sums_from(most)[first]
        if self.odds is not None:
            empty, full = _emptied(self.odds.parts, i)
            weight = self.odds.weight
            default = self._default((empty, *full), exact)
            return [(more * weight, less * weight, default)]
        return [(more, less, within + near * _sums_from(kept)[1:])]

    def _default(self, parts: tuple[Volumes, ...], exact: bool) -> Any:
        """Bound the weight of all diagrams under the default cap from below, for each block."""
        _, least = self._weights(parts, exact)
        return least * 0 + _sums_to(least)[-1] * cast(Odds, self.odds).default

    def _weights(self, group: tuple[Volumes, ...], exact: bool) -> tuple[Any, Any]:
        """Bound the weights of the balls of each block, from above and from below."""
        if exact:
            most, least = _weights(group, self.table, self._blocks)
            return np.array(most, dtype=object), np.array(least, dtype=object)
        firsts, lasts = _ends(*self._range)
        decay = self.table.decay
        logs = -decay * firsts
        # No level follows the last block.
        logs[:-1] += _logs_of(-np.expm1(-decay * (lasts + 1 - firsts)[:-1]))
        highest = [self._volumes(part, "highest", _LAST, exact) for part in group]
        lowest = [self._volumes(part, "lowest", _FIRST, exact) for part in group]
        return prod(highest, start=Logs(logs)), prod(lowest, start=Logs(logs))

    def _volumes(self, part: Volumes, bound: str, end: int, exact: bool) -> Any:
        """Return a bound of the volumes of one part at an end of each block."""
        if exact:
            return np.array([getattr(part, bound)(block[end]) for block in self._blocks], object)
        return _log_volumes(part, bound, end, self._range)

    def _later(self, exact: bool) -> Any:
        """Return the weight of the level after each block."""
        if exact:
            unit = self._blocks[-1][0]
            return np.array([self.table.weight(b + 1, unit) for _, b in self._blocks], object)
        _, lasts = _ends(*self._range)
        return Logs(np.append(-self.table.decay * (lasts[:-1] + 1), -np.inf))

    @property
    def _blocks(self) -> tuple[tuple[int, int], ...]:
        return _blocks(*self._range)

    @cached_property
    def _range(self) -> tuple[int, int]:
        """The first negligible level, and the number of levels."""
        volumes = chain(*self.groups, () if self.odds is None else self.odds.parts)
        floor = max((v.floor for v in volumes if isinstance(v, DiagramVolumes)), default=0)
        return self.table.level_below(2 * floor, _NEGLIGIBLE_BITS), self.table.n_levels


@lru_cache(maxsize=64)
def _blocks(end: int, n_levels: int) -> tuple[tuple[int, int], ...]:
    """First and last levels of consecutive blocks, of which the last may be long."""
    blocks, first = [], 0
    while first < end:
        length = 1 if first < _SINGLE_LEVELS else first // _LEVELS_PER_LENGTH
        blocks.append((first, min(first + length, end) - 1))
        first += length
    return (*blocks, (end, n_levels - 1))


@lru_cache(maxsize=64)
def _ends(end: int, n_levels: int) -> tuple[FloatArray, FloatArray]:
    """First and last levels of the blocks, as arrays."""
    firsts, lasts = np.array(_blocks(end, n_levels), dtype=float).T
    return firsts, lasts


@lru_cache(maxsize=64)
def _log_volumes(part: Volumes, bound: str, end: int, blocks: tuple[int, int]) -> Logs:
    """Return a bound of the volumes of one part at an end of each block."""
    return Logs(np.zeros(len(_blocks(*blocks)))) * getattr(part, bound)(_ends(*blocks)[end])


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


def _sums_to(values: Any) -> Any:
    """Return the sums of all values up to each position."""
    if isinstance(values, Logs):
        return Logs(np.logaddexp.accumulate(values.logs))
    return np.cumsum(values)


def _sums_from(values: Any) -> Any:
    """Return the sums of all values from each position on, with a zero at the end."""
    sums = _sums_to(values[::-1])[::-1]
    if isinstance(sums, Logs):
        return Logs(np.append(sums.logs, -np.inf))
    return np.append(sums, 0)


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

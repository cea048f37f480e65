"""Levels that a draw does not exceed, from bounds of the weights of balls.

The bounds are products and sums of integers of thousands of bits. They are computed by logarithms
of floats, and a bound of the rounding errors is added to each probability.

Proof: doc/theory/error_bounds.md, "Tails of the distance".
Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
Proof: doc/theory/private_cap.md, "Bounds of its error".
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import chain
from math import comb, perm, prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.persistence._exact_sampler import BaseMeasure, DecayTable, birth_weights

# Levels are considered one by one up to the first number, then in blocks that contain one level for
# each 64 levels before them. This saves time, and the bound is hardly larger.
_SINGLE_LEVELS, _LEVELS_PER_LENGTH = 128, 64
# Levels with less than this power of one half of the weight of twice the largest floor are one
# block. The largest base measure of 30 points has less than 1,500 bits, so that such levels matter
# less than the rounding of probabilities. Otherwise, a large epsilon means large logarithms.
_NEGLIGIBLE_BITS = 4096
# Ends of a block.
_FIRST, _LAST = 0, 1
# Rounding errors of a logarithm, in units of the last place of the largest one. There are at most
# 1,000 operations for a volume, and one for each block in a sum. Nothing is said from the largest
# error on, which is reached at an epsilon above 1e9.
_OPERATIONS, _MOST_ERROR = 1000, 1e-3
# Logarithms of the share that a level has of the weights from there on are above minus this number.
_LEAST_LOG = 100.0
# Allowed probabilities are lowered by this much, which covers the rounding of their sum.
_LEAST_PROBABILITY = 2.0**-60


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
    """Return the logarithms of an integer, of Logs, or of an array, none of them negative."""
    if isinstance(numbers, Logs):
        return numbers.logs
    if isinstance(numbers, int):
        return math.log(numbers) if numbers else -math.inf
    with np.errstate(divide="ignore"):
        return np.log(numbers)


def _least(first: Logs, second: Logs) -> Logs:
    return Logs(np.minimum(first.logs, second.logs))


@dataclass(frozen=True)
class DiagramVolumes:
    """Bounds for the finite points of one diagram, ``floor`` in steps of half persistence.

    Levels are arrays. With ``inside``, points longer than the floor are also farther from the ends
    of the range than the level.
    """

    measure: BaseMeasure
    most: int
    floor: int
    inside: bool = False

    def highest(self, s: FloatArray) -> Logs:
        """Bound the weight of a ball of level ``s`` from above.

        Each point of the ball is close to a long point, or is short.
        """
        measure = self.measure
        strip = self._strip(s + self.floor)
        square = Logs(_logs_of((2 * s + 1) ** 2 * (measure.size if measure.linear else 1)))
        total = _polynomial([_polynomial(c, strip) for c in self._near_and_short], square)
        return _least(total, self.near_diagonal(np.full(len(s), float(measure.size))))

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

    def lowest(self, s: FloatArray) -> Logs:
        """Bound the weight of a ball of level ``s`` from below.

        It is zero if the level is too small for short points to be arbitrary.
        """
        if self.most > self.measure.max_points:
            return Logs(np.full(len(s), -np.inf))
        strip = self._strip(s)
        balls = [self._with_forced(s, j, strip) for j in range(self.most + 1)]
        return reduce(_least, balls) * (s >= self.floor)

    def near_diagonal(self, r: FloatArray) -> Logs:
        """Return the weight of the diagrams whose points are all within ``r`` of the diagonal."""
        return _polynomial(self.measure.count_weights[::-1], self._strip(r))

    def _with_forced(self, s: FloatArray, j: int, strip: Logs) -> Logs:
        """Bound the weight of a ball from below if ``j`` points are longer than ``2 s``.

        The first points of a tuple are matched to these, in order. The others are near the
        diagonal.
        """
        # If the end of the range cuts a square, the quarter towards the middle remains.
        side = 2 * s + 1 if self.inside else s + 1
        square = Logs(_logs_of(side**2 * (s + 1 if self.measure.linear else 1)))
        return square**j * _polynomial(self.measure.count_weights[j:][::-1], strip)

    def _strip(self, r: FloatArray) -> Logs:
        """Return the weight of the points within ``r`` of the diagonal."""
        size, width = self.measure.size, np.minimum(2 * r, self.measure.size)
        # Births with a full column of deaths above them.
        full = size - width
        return Logs(_logs_of(full * self.measure.column(width) + self.measure.staircase(width)))


@dataclass(frozen=True)
class BirthVolumes:
    """Bounds for the birth of the essential component, where early births may weigh more."""

    size: int
    inside: bool = False
    decay: int = 0

    def highest(self, s: FloatArray) -> Logs:
        """Bound the weight of the births within ``s`` from above."""
        return Logs(_logs_of(self._below(np.minimum(2 * s, self.size) + 1)))

    def lowest(self, s: FloatArray) -> Logs:
        """Bound the weight of the births within ``s`` from below."""
        above = self._below(self.size - np.minimum(2 * s if self.inside else s, self.size))
        return Logs(_logs_of(self._below([self.size + 1]) - above))

    def _below(self, births: Iterable[float]) -> FloatArray:
        """Return the weight of the births below some."""
        weights = birth_weights(self.size, self.decay)
        return np.array([weights[int(b)] for b in births], dtype=float)


def _polynomial(factors: Sequence[Any], x: Logs) -> Any:
    """Evaluate a polynomial, given its coefficients from the highest power down."""
    value: Any = 0
    for factor in factors:
        value = value * x + factor
    return value


Volumes: TypeAlias = DiagramVolumes | BirthVolumes
# Weights for each block: at most what is beyond it, as a difference, and at least what is within.
_Tail: TypeAlias = tuple[Logs, Logs, Logs]


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
        return self._first_level([self._tail(group) for group in self.groups], confidence)

    def noise_levels(self, confidence: float) -> list[int | None]:
        """Return the half persistence that noise does not exceed in each diagram, in steps.

        It is the smallest one that no private point exceeds if the exact diagram has no long
        points, or None.
        """
        return [
            self._first_level([self._noise(group, i)], confidence)
            for group in self.groups
            for i, part in enumerate(group)
            if isinstance(part, DiagramVolumes)
        ]

    def _first_level(self, tails: Sequence[_Tail], confidence: float) -> int | None:
        """Return the end of the first block beyond which little enough is left, or None."""
        beyond = np.sum([self._share(*tail) for tail in tails], axis=0)
        enough = np.flatnonzero(beyond <= 1 - confidence - len(tails) * _LEAST_PROBABILITY)
        return self._blocks[enough[0]][1] if len(enough) else None

    def _share(self, more: Logs, less: Logs, rest: Logs) -> FloatArray:
        """Bound the ratios of ``more - less`` and ``more - less + rest`` from above."""
        logs = np.array([more.logs, less.logs, rest.logs])
        largest = np.abs(logs[np.isfinite(logs)]).max(initial=0.0)
        largest += _LEAST_LOG + 2 * self.table.decay * self._blocks[-1][0]
        error = np.finfo(float).eps * largest * (_OPERATIONS + len(self._blocks))
        if error > _MOST_ERROR:
            return np.ones(logs.shape[1])
        top = np.maximum(logs[0], logs[2])
        a, b, c = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        part = a - b + error * (a + b)
        # Zero by zero and a ratio without rest count as one.
        with np.errstate(invalid="ignore"):
            share = np.where(part > 0, part / (part + c * (1 - 2 * error)), 1.0 * (c == 0))
        return np.where(np.isneginf(logs[2]), 1.0, share)

    def _tail(self, group: tuple[Volumes, ...]) -> _Tail:
        """Bound the weights of what is farther than the last level of each block."""
        most, least = self._weights(group)
        spread = _sums_from(most)[1:]
        if self.odds is not None:
            return spread * self.odds.weight, spread * 0, self._default(self.odds.parts)
        # Balls of later levels contain the ball of this level, too.
        ball = prod((self._volumes(part, "lowest", _LAST) for part in group), start=self._later())
        return spread, ball, ball + _sums_to(least)

    def _noise(self, group: tuple[Volumes, ...], i: int) -> _Tail:
        """Bound the weights of diagrams with a point longer than the end of each block."""
        part, others = _emptied(group, i)
        firsts, lasts = _ends(*self._range)
        most, least = self._weights(others)
        # Volumes without long points are those of all diagrams near the diagonal. Balls of smaller
        # levels than the floor do not contain all short points.
        kept = least * (firsts >= part.floor)
        spread = _sums_from(most * self._volumes(part, "highest", _LAST))
        within = _sums_to(least * self._volumes(part, "lowest", _FIRST))
        # The first block whose balls reach farther than the end.
        first = np.searchsorted(lasts + part.floor, lasts, side="right")
        near = self._volumes(replace(part, floor=0), "highest", _LAST)
        more, less = spread[first], near * _sums_from(most)[first]
        if self.odds is not None:
            empty, full = _emptied(self.odds.parts, i)
            weight = self.odds.weight
            return more * weight, less * weight, self._default((empty, *full))
        return more, less, within + near * _sums_from(kept)[1:]

    def _default(self, parts: tuple[Volumes, ...]) -> Logs:
        """Bound the weight of all diagrams under the default cap from below, for each block."""
        _, least = self._weights(parts)
        return least * 0 + _sums_to(least)[-1] * cast(Odds, self.odds).default

    def _weights(self, group: tuple[Volumes, ...]) -> tuple[Logs, Logs]:
        """Bound the weights of the balls of each block, from above and from below."""
        firsts, lasts = _ends(*self._range)
        decay = self.table.decay
        logs = -decay * firsts
        # No level follows the last block.
        logs[:-1] += _logs_of(-np.expm1(-decay * (lasts + 1 - firsts)[:-1]))
        highest = [self._volumes(part, "highest", _LAST) for part in group]
        lowest = [self._volumes(part, "lowest", _FIRST) for part in group]
        return prod(highest, start=Logs(logs)), prod(lowest, start=Logs(logs))

    def _volumes(self, part: Volumes, bound: str, end: int) -> Logs:
        """Return a bound of the volumes of one part at an end of each block."""
        return _volumes(part, bound, end, self._range)

    def _later(self) -> Logs:
        """Return the weight of the level after each block."""
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
def _volumes(part: Volumes, bound: str, end: int, blocks: tuple[int, int]) -> Logs:
    """Return a bound of the volumes of one part at an end of each block."""
    volumes: Logs = getattr(part, bound)(_ends(*blocks)[end])
    return volumes


def _emptied(group: tuple[Volumes, ...], i: int) -> tuple[DiagramVolumes, tuple[Volumes, ...]]:
    """Return the volumes of one diagram without long points, and the other volumes."""
    return replace(cast(DiagramVolumes, group[i]), most=0), (*group[:i], *group[i + 1 :])


def _sums_to(values: Logs) -> Logs:
    """Return the sums of all values up to each position."""
    return Logs(np.logaddexp.accumulate(values.logs))


def _sums_from(values: Logs) -> Logs:
    """Return the sums of all values from each position on, with a zero at the end."""
    return Logs(np.append(_sums_to(values[::-1]).logs[::-1], -np.inf))

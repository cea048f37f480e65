"""Exact draws from the exponential mechanism of the bottleneck distance.

The law is ``g(d_B(P, D)) nu(P)`` on a finite set of diagrams ``P`` of the public grid ``{0, ...,
N}``. Here ``nu`` is a base measure, and ``g`` is a public table of positive integers that falls by
a factor of at most ``exp(rate)`` per grid step. Everything is integer arithmetic: no floating-point
number takes part in a draw.

A draw first selects a level ``r``. It then draws a diagram from ``nu`` restricted to the ball of
the diagrams within ``r`` of ``D``, by rejection from a superset of the ball that is easy to draw
from: its *cover*.

Proof: doc/theory/exact_sampler.md, "The law".
Proof: doc/theory/exact_sampler.md, "Drawing".
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import factorial, isqrt, lgamma, log, perm, prod
from typing import Any, TypeAlias

import numpy as np
from scipy.ndimage import maximum_filter1d

from sklearn_dptda._typing import IntArray
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._exact_draws import exp_bounds
from sklearn_dptda.utils._distances import bottleneck_distance, saturates_few

# Bits of the mantissas of the table of weights. All roundings are upwards, so they affect the
# accuracy of the law but not its privacy.
_MANTISSA_BITS = 128
# Blocks are split until this many tenths of the proposals of a level survive, or until twice the
# second number of blocks have been created, including those that were split. Both only affect
# speed.
_LEVEL_ACCEPTANCE = 5
_MAX_BLOCKS = 400
# Up to this number of free points, runs of births are faster than arrays.
_MOST_POINTS_FOR_RUNS = 24
# The label of a slot that serves no group.
FREE = -1
# Birth and death, and the inclusive corners ``b0, b1, d0, d1`` of a rectangle, in grid units.
Point: TypeAlias = tuple[int, int]
Square: TypeAlias = tuple[int, int, int, int]
Ball: TypeAlias = "DiagramBall | BirthBall"


class DecayTable:
    """Public weights that fall by a factor of at most ``exp(rate)`` per grid step.

    The rate is an exact fraction. ``weight(r) <= exp(rate) * weight(r + 1)`` holds exactly, because
    every rounding is upwards. The weights are dyadic numbers, because they span thousands of bits.
    """

    def __init__(self, numerator: int, denominator: int, n_levels: int) -> None:
        self.rate = numerator / denominator
        one = 1 << _MANTISSA_BITS
        _, self._ratio = exp_bounds(Fraction(numerator, denominator), _MANTISSA_BITS)
        # The rate of the rounded weights. The logarithm of a number near 1 would not be accurate.
        near = 2 * self._ratio > one
        self.decay = -(math.log1p((self._ratio - one) / one) if near else log(self._ratio / one))
        self.n_levels = n_levels

    @cached_property
    def _rounded(self) -> tuple[list[int], list[int]]:
        """Mantissas and negative exponents of the weights. Bounds of errors do not need them."""
        ratio, mantissas, exponents = self._ratio, [1 << _MANTISSA_BITS], [0]
        while len(mantissas) < self.n_levels:
            # The shift keeps the length of the mantissa constant.
            product = mantissas[-1] * ratio
            shift = product.bit_length() - (_MANTISSA_BITS + 1)
            mantissas.append(-(-product >> shift))
            exponents.append(exponents[-1] + _MANTISSA_BITS - shift)
        return mantissas, exponents

    def weight(self, r: int, last: int = -1) -> int:
        """Return the weight of level ``r``, zero beyond the last level.

        The weights of levels up to ``last`` have a common unit, in which they are whole numbers.
        """
        if r >= self.n_levels:
            return 0
        mantissas, exponents = self._rounded
        return mantissas[r] << (exponents[last] - exponents[r])

    def level_below(self, r: int, bits: int) -> int:
        """Return the first level whose exponent is larger than that of ``r`` by so many bits.

        If there is none, return the last level.
        """
        per_level, last = self.decay / log(2), self.n_levels - 1
        # Exponents are rounded up.
        least = math.ceil(per_level * min(r, last)) + bits - 1
        return last if least >= per_level * last else math.floor(least / per_level) + 1


@lru_cache(maxsize=64)
def decay_table(numerator: int, denominator: int, n_levels: int) -> DecayTable:
    """Return a :class:`DecayTable`, built once for all diagrams that share it."""
    return DecayTable(numerator, denominator, n_levels)


class ExactSampler:
    """Draws tuples of diagrams, weighted by the largest of their bottleneck distances.

    There is one ball for each part, and one level for all. The last level of the public ``table``
    must contain every diagram. ``n_proposals_`` depends on the diagram and must not be released.
    """

    def __init__(self, balls: Sequence[Ball], table: DecayTable) -> None:
        self.balls = balls
        self.n_proposals_ = 0
        self.table = table
        self._blocks = self._split(self._first_blocks(table.n_levels - 1))
        self._cumulative = list(accumulate(block.upper for block in self._blocks))

    def draw(self, source: NoiseSource) -> list[list[Point]]:
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

    def _draw_level(self, source: NoiseSource, block: Block) -> int:
        """Draw a level of a block with probability proportional to the steps of the table."""
        weight = self.table.weight
        floor = weight(block.high + 1)
        height = floor + 1 + source.below(weight(block.low) - floor)
        # Weights are decreasing. The level is the last one whose weight reaches the height.
        levels = range(block.low, block.high + 1)
        return block.low - 1 + bisect_right(levels, -height, key=lambda r: -weight(r))

    def _first_blocks(self, last: int) -> list[Block]:
        first = max(ball.first_level() for ball in self.balls)
        edges = {first, last, last + 1}
        edges.update(b for ball in self.balls for b in ball.breaks() if first < b < last)
        edge = max(first, 1)
        while edge < last:
            edges.add(edge)
            edge = max(edge + 1, edge * 13 // 10)
        return [self._block(low, nxt - 1) for low, nxt in pairwise(sorted(edges))]

    def _block(self, low: int, high: int) -> Block:
        mass = self.table.weight(low) - self.table.weight(high + 1)
        return Block(low, high, mass, [ball.cover(high) for ball in self.balls] if mass else [])

    def _upper_part(self, block: Block, low: int) -> Block:
        """Return the block of the upper levels of a block, which has the same covers."""
        mass = self.table.weight(low) - self.table.weight(block.high + 1)
        return Block(low, block.high, mass, block.covers)

    def _split(self, blocks: list[Block]) -> list[Block]:
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
            for part in (self._block(worst.low, middle), self._upper_part(worst, middle + 1)):
                heapq.heappush(heap, (-part.waste, counter, part))
                counter += 1
                upper += part.upper
                waste += part.waste
        return [block for _, _, block in heap if block.upper > 0]


class Block:
    """Consecutive levels that share one cover per ball."""

    def __init__(self, low: int, high: int, mass: int, covers: Sequence[Any]) -> None:
        self.low = low
        self.high = high
        self.covers = covers
        self.upper = 0
        self.waste = 0
        if mass == 0:
            return
        self.upper = mass * self.volume(high)
        if low < high:
            self.waste = self.upper - mass * self.volume(low)

    def volume(self, r: int) -> int:
        """Return the weight of the product of the covers at level ``r``."""
        return prod(cover.weight(r) for cover in self.covers)

    def draw(self, source: NoiseSource, r: int) -> list[list[Point]] | None:
        """Propose one part after the other, and return None as soon as one is rejected."""
        parts = []
        for cover in self.covers:
            part = cover.draw(source, r)
            if part is None:
                return None
            parts.append(part)
        return parts


class DiagramBall:
    """Balls around one finite diagram of integers, ``0 <= birth < death <= N``."""

    def __init__(self, diagram: IntArray, measure: BaseMeasure) -> None:
        order = np.lexsort((diagram[:, 0], diagram[:, 0] - diagram[:, 1]))
        self.points = diagram[order].astype(np.int64)
        self.measure = measure
        # Births minus deaths are increasing, so the longest points come first.
        self._shortness = (self.points[:, 0] - self.points[:, 1]).tolist()
        self._tuples = [tuple(point) for point in self.points.tolist()]
        # By the number of forced points.
        self._columns: dict[int, ManyColumns] = {}

    def apart(self, other: DiagramBall) -> float:
        """Return the largest difference of the levels of a diagram: the bottleneck distance."""
        return bottleneck_distance(self.points, other.points)

    def n_long(self, r: int) -> int:
        """Return the number of points that cannot be matched to the diagonal within ``r``."""
        return bisect_left(self._shortness, -2 * r)

    def breaks(self) -> list[int]:
        """Return the levels at which the set of long points changes."""
        longest = self._shortness[: self.measure.max_points + 1]
        return sorted({(1 - shortness) // 2 for shortness in longest})

    def first_level(self) -> int:
        """Return the smallest level whose ball is not empty for lack of points."""
        if len(self.points) <= self.measure.max_points:
            return 0
        return (1 - self._shortness[self.measure.max_points]) // 2

    def cover(self, level: int) -> Cover:
        """Choose a cover that is valid up to ``level`` and tight at ``level``."""
        n_forced = self.n_long(level)
        cover = self._forced(n_forced, level)
        while n_forced > 0:
            if not cover.may_gain_by_dropping(self._tuples[n_forced - 1]):
                break
            trial = self._forced(n_forced - 1, level)
            if trial.weight(level) >= cover.weight(level):
                break
            cover, n_forced = trial, n_forced - 1
        return cover

    def _forced(self, n_forced: int, level: int) -> Cover:
        groups = group_points(self._tuples[:n_forced], level, self.measure)
        return Cover(self, n_forced, groups, level)

    def _few_free(self, n_forced: int) -> bool:
        return len(self._tuples) - n_forced <= _MOST_POINTS_FOR_RUNS

    def column_tops(self, n_forced: int, r: int) -> IntArray:
        """Return the largest admissible death for each birth, for points that serve no group."""
        if self._few_free(n_forced):
            return column_tops_few(self._tuples[n_forced:], r, self.measure.size)
        deaths = self._tail_deaths.copy()
        for b, d in self._tuples[n_forced : self.measure.max_points]:
            deaths[b] = max(deaths[b], d)
        return column_tops(deaths, r)

    @cached_property
    def _tail_deaths(self) -> IntArray:
        """Deaths of the points beyond the largest number of forced points."""
        deaths = np.zeros(self.measure.size, dtype=np.int64)
        tail = self.points[self.measure.max_points :]
        np.maximum.at(deaths, tail[:, 0], tail[:, 1])
        return deaths

    def free_weight(self, n_forced: int, r: int) -> int:
        """Return the weight of the region below the column tops, an exact integer."""
        if self._few_free(n_forced):
            return weight_below_few(self._tuples[n_forced:], r, self.measure)
        if n_forced not in self._columns:
            self._columns[n_forced] = ManyColumns(self.points[n_forced:])
        return self._columns[n_forced].weight_below(r, self.measure)


@lru_cache(maxsize=64)
def birth_weights(size: int, decay: int) -> Sequence[int]:
    """Return cumulative weights of births; birth ``b`` has the weight ``exp(-decay b / size)``."""
    if decay == 0:
        return range(size + 2)
    weights = (round(2**32 * math.exp(-decay * b / size)) for b in range(size + 1))
    return list(accumulate(weights, initial=0))


class BirthBall:
    """Balls around the birth of the essential component.

    Its death is the public upper bound, so only its birth is drawn, from ``{0, ..., N}``.
    """

    def __init__(self, birth: int, size: int, decay: int = 0) -> None:
        self.birth = int(birth)
        self.size = size
        self._below = birth_weights(size, decay)

    def apart(self, other: BirthBall) -> float:
        """Return the largest difference of the levels of a birth."""
        return abs(self.birth - other.birth)

    def breaks(self) -> list[int]:
        """Return no levels, because none is special."""
        return []

    def first_level(self) -> int:
        """Return level 0, because every ball contains the birth itself."""
        return 0

    def cover(self, level: int) -> BirthBall:
        """Return the ball, which is its own cover."""
        return self

    def _interval(self, r: int) -> tuple[int, int]:
        return max(self.birth - r, 0), min(self.birth + r, self.size)

    def weight(self, r: int) -> int:
        """Return the weight of the births within ``r``."""
        low, high = self._interval(r)
        return self._below[high + 1] - self._below[low]

    def draw(self, source: NoiseSource, r: int) -> list[Point]:
        """Draw one birth."""
        low, _ = self._interval(r)
        rank = self._below[low] + source.below(self.weight(r))
        return [(bisect_right(self._below, rank) - 1, self.size)]


class Cover:
    """A superset of the balls up to one level, as labelled products.

    Each group of forced points is served by as many slots from its region. Every other slot is
    empty or lies below the column tops. The weight of a cover grows with the level.
    """

    def __init__(
        self, ball: DiagramBall, n_forced: int, groups: Sequence[Sequence[Point]], level: int
    ) -> None:
        self.ball = ball
        self.n_forced = n_forced
        self.groups = groups
        self.level = level
        # Weights of m points, of which n_forced are labelled, before the areas.
        self.coefficients = ball.measure.labelled_weights[n_forced]
        orders = prod(factorial(len(group)) for group in groups)
        if orders > 1:
            self.coefficients = [weight // orders for weight in self.coefficients]
        self._free = ball.free_weight(n_forced, level)
        self._layout: Layout | None = None
        self._weights: dict[int, int] = {}

    def layout(self, r: int) -> Layout:
        """Return the areas at one level. Only the last one is cached, which bounds the memory."""
        if self._layout is None or self._layout.r != r:
            self._layout = Layout(self, r)
        return self._layout

    def weight(self, r: int) -> int:
        """Return the weight of the cover at level ``r <= level``, an exact integer."""
        if r not in self._weights:
            measure = self.ball.measure
            free = self._free if r == self.level else self.ball.free_weight(self.n_forced, r)
            weight = _polynomial(self.coefficients, free)
            for group in self.groups:
                squares = [square_around(point, r, measure.size) for point in group]
                weight *= union_weight(squares, measure) ** len(group)
            self._weights[r] = weight
        return self._weights[r]

    def may_gain_by_dropping(self, point: Point) -> bool:
        """Return whether the cover could become smaller with one forced point less."""
        measure = self.ball.measure
        area = measure.rectangle(*square_around(point, self.level, measure.size))
        weights, fewer = (measure.labelled_weights[self.n_forced - i] for i in (0, 1))
        return area * _polynomial(weights, self._free) > _polynomial(fewer, self._free)

    def draw(self, source: NoiseSource, r: int) -> list[Point] | None:
        """Propose a diagram at level ``r``, or return None if the proposal is rejected.

        Accepted diagrams follow the base measure on the ball.
        """
        layout = self.layout(r)
        n_free = layout.draw_n_free(source)
        slots = [
            (region.draw(source), label)
            for label, region in enumerate(layout.regions)
            for _ in range(region.size)
        ]
        slots += [(layout.draw_free(source), FREE) for _ in range(n_free)]
        if any(len(layout.options(point)) > 1 for point, _ in slots):
            # The canonical labelling depends on the order of the slots.
            source.shuffle(slots)
        return [point for point, _ in slots] if self.accepts(slots, r) else None

    def accepts(self, slots: Sequence[tuple[Point, int]], r: int) -> bool:
        """Return whether a labelled proposal is the one that represents its diagram.

        ``slots`` are points and the groups that they serve, or ``FREE``, in order. For each ordered
        tuple in the ball, exactly one labelling is accepted. For a tuple outside the ball, none is.
        """
        layout = self.layout(r)
        options = [layout.options(point) for point, _ in slots]
        if any(len(choices) > 1 for choices in options):
            labels = [label for _, label in slots]
            if not is_canonical(options, labels, [len(group) for group in self.groups]):
                return False
        return self._in_ball(slots, r)

    def _in_ball(self, slots: Sequence[tuple[Point, int]], r: int) -> bool:
        """Decide by two small matchings whether the proposal is in the ball."""
        n_long = self.ball.n_long(r)
        singles = all(len(group) == 1 for group in self.groups)
        served = singles and n_long == self.n_forced
        far = [p for p, label in slots if p[1] - p[0] > 2 * r and not (served and label != FREE)]
        if served and not far:
            return True
        points = [p for p, _ in slots]
        if not served:
            long = self.ball.points[:n_long].tolist()
            reachable = [
                [i for i, (b, d) in enumerate(points) if abs(b - zb) <= r and abs(d - zd) <= r]
                for zb, zd in long
            ]
            if not saturates_few(reachable):
                return False
        far = [p for p in points if p[1] - p[0] > 2 * r]
        if not far:
            return True
        gaps = np.abs(np.array(far)[:, None, :] - self.ball.points).max(axis=2)
        return saturates_few([np.flatnonzero(row <= r).tolist() for row in gaps])


class Layout:
    """Regions, tops and cumulative weights for draws from a cover at one level."""

    def __init__(self, cover: Cover, r: int) -> None:
        self.r = r
        self.measure = cover.ball.measure
        self.tops = cover.ball.column_tops(cover.n_forced, r)
        self.regions = [Region(group, r, self.measure) for group in cover.groups]
        self._cumulative = weight_below(self.tops, self.measure)
        self._free = int(self._cumulative[-1])
        terms = (c * self._free**i for i, c in enumerate(cover.coefficients))
        self._count_table = list(accumulate(terms))

    def draw_n_free(self, source: NoiseSource) -> int:
        """Draw the number of slots that serve no group."""
        return bisect_right(self._count_table, source.below(self._count_table[-1]))

    def draw_free(self, source: NoiseSource) -> Point:
        """Draw a point below the column tops."""
        rank = source.below(self._free)
        b = int(np.searchsorted(self._cumulative, rank, side="right"))
        return self.measure.draw_in_column(source, b, int(self.tops[b]) - b)

    def options(self, point: Point) -> list[int]:
        """Return the groups that a point could serve, and ``FREE`` if it could be free."""
        b, d = point
        groups = [i for i, region in enumerate(self.regions) if point in region]
        return [*groups, FREE] if d <= self.tops[b] else groups


class Region:
    """Union of the squares of radius ``r`` around the points of a group.

    Each point is farther than ``r`` from the diagonal.
    """

    def __init__(self, points: Sequence[Point], r: int, measure: BaseMeasure) -> None:
        self.size = len(points)
        self._measure = measure
        self._squares = [square_around(point, r, measure.size) for point in points]
        self._weights = [measure.rectangle(*square) for square in self._squares]

    def __contains__(self, point: Point) -> bool:
        return self._first(point) is not None

    def _first(self, point: Point) -> int | None:
        b, d = point
        for i, (b0, b1, d0, d1) in enumerate(self._squares):
            if b0 <= b <= b1 and d0 <= d <= d1:
                return i
        return None

    def draw(self, source: NoiseSource) -> Point:
        """Draw a point from a square, chosen by weight, unless an earlier square contains it."""
        while True:
            i = 0
            rank = source.below(sum(self._weights)) if self.size > 1 else 0
            while rank >= self._weights[i]:
                rank -= self._weights[i]
                i += 1
            point = self._measure.draw_in_rectangle(source, *self._squares[i])
            if self.size == 1 or self._first(point) == i:
                return point


def _polynomial(coefficients: Sequence[int], x: int) -> int:
    """Evaluate a polynomial at an integer by Horner's scheme."""
    value = 0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def column_tops(deaths: IntArray, r: int) -> IntArray:
    """Return the tops for all births, given the largest death at each birth, 0 if there is none."""
    size = len(deaths)
    nearby = maximum_filter1d(deaths, 2 * r + 1, mode="constant")
    raised = np.where(nearby > 0, np.minimum(nearby + r, size), 0)
    return np.maximum(_diagonal_tops(size, r), raised)


def column_tops_few(points: Sequence[Point], r: int, size: int) -> IntArray:
    """Return the tops for all births by runs, which is fast for few points on a fine grid."""
    tops = _diagonal_tops(size, r)
    for start, stop, top in _raised_runs(points, r, size):
        tops[start:stop] = top
    return tops


def weight_below(tops: IntArray, measure: BaseMeasure) -> IntArray:
    """Return cumulative weights of the columns below their tops."""
    return np.cumsum(measure.column(np.maximum(tops - np.arange(measure.size), 0)))


def weight_below_few(points: Sequence[Point], r: int, measure: BaseMeasure) -> int:
    """Return the total weight of all columns in closed form, without arrays over all births."""
    size, column, staircase = measure.size, measure.column(2 * r), measure.staircase
    # Heights of tops that no point raises are 2 r up to this birth, and limited by the end of the
    # grid from there on.
    bend = size - 2 * r

    def diagonal(start: int, stop: int) -> int:
        """Return the weight of a run of births below tops that no point raises."""
        if stop <= bend:
            return (stop - start) * column
        if start < bend:
            return (bend - start) * column + staircase(size - bend) - staircase(size - stop)
        return staircase(size - start) - staircase(size - stop)

    weight = diagonal(0, size)
    for start, stop, top in _raised_runs(points, r, size):
        weight += staircase(top - start) - staircase(top - stop) - diagonal(start, stop)
    return weight


class ManyColumns:
    """The columns of births below the tops that many points raise, in time of the points alone.

    The largest death of points within ``r`` of a birth is the larger of two entries of a table,
    which has the largest deaths of ``2**k`` points from each one on, in the order of births.
    """

    def __init__(self, points: IntArray) -> None:
        points = points[np.argsort(points[:, 0])]
        self._births, deaths = points.T.copy()
        table = [deaths]
        while 2 ** len(table) <= len(deaths):
            last, width = table[-1], 2 ** (len(table) - 1)
            table.append(np.append(np.maximum(last[:-width], last[width:]), last[-width:]))
        self._table = np.array(table)
        # Exponents of the largest powers of two that numbers of points contain.
        self._powers = np.array([max(n.bit_length() - 1, 0) for n in range(len(deaths) + 1)])

    def weight_below(self, r: int, measure: BaseMeasure) -> int:
        """Return the total weight of all columns, as :func:`weight_below_few` does."""
        size, column, staircase = measure.size, measure.column(2 * r), measure.staircase
        # Runs of births that are within r of the same points.
        ends = np.concatenate([[0], self._births - r, self._births + (r + 1), [size]])
        ends = np.sort(np.minimum(np.maximum(ends, 0), size))
        start, stop = ends[:-1], ends[1:]
        first = np.searchsorted(self._births, start - r)
        last = np.searchsorted(self._births, start + r, side="right")
        power = self._powers[last - first]
        first_of_two = np.minimum(first, len(self._births) - 1)
        deaths = np.maximum(self._table[power, first_of_two], self._table[power, last - 2**power])
        top = np.where(last > first, np.minimum(deaths + r, size), 0)
        # Tops are those of the points up to one birth, then those of the diagonal, which are
        # limited by the end of the grid from another one on.
        raised = np.minimum(np.maximum(top - 2 * r, start), stop)
        bend = np.minimum(np.maximum(size - 2 * r, raised), stop)
        weights = staircase(top - start) - staircase(top - raised) + (bend - raised) * column
        return int((weights + staircase(size - bend) - staircase(size - stop)).sum())


def _diagonal_tops(size: int, r: int) -> IntArray:
    return np.minimum(np.arange(size) + 2 * r, size)


def _raised_runs(points: Sequence[Point], r: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield disjoint runs of births whose tops are above those of the diagonal, and their tops."""
    raised = []
    # Comparisons, because min and max take most of the time of a draw's preparations.
    for b, d in points:
        first = b - r if b > r else 0
        last = b + r + 1 if b + r < size else size
        if d - r < last:
            last = d - r
        if first < last:
            raised.append((d + r if d + r < size else size, first, last))
    raised.sort(reverse=True)
    # Disjoint runs in order. No later point raises them, because the highest tops come first.
    done: list[tuple[int, int]] = []
    for top, first, last in raised:
        start, before, after, low, high = first, [], [], first, last
        for run in done:
            begin, end = run
            if end < first:
                before.append(run)
            elif begin > last:
                after.append(run)
            else:
                if start < begin:
                    yield start, begin, top
                if begin < low:
                    low = begin
                start = end
                if end > high:
                    high = end
        if start < last:
            yield start, last, top
        done = [*before, (low, high), *after]


def square_around(point: Point, r: int, top: int) -> Square:
    """Return the grid points within ``r`` of a point as inclusive corners ``b0, b1, d0, d1``."""
    b, d = point
    return max(b - r, 0), b + r, d - r, min(d + r, top)


def union_weight(squares: Sequence[Square], measure: BaseMeasure) -> int:
    """Return the weight of the union of squares of equal radius, an exact integer.

    It is computed for one slab of births after the other.
    """
    if len(squares) == 1:
        return measure.rectangle(*squares[0])
    cuts = sorted({cut for b0, b1, _, _ in squares for cut in (b0, b1 + 1)})
    by_death = sorted(squares, key=lambda square: square[2:])
    weight = 0
    for start, stop in pairwise(cuts):
        covered = -1
        for b0, b1, d0, d1 in by_death:
            if b0 <= start and stop <= b1 + 1 and d1 > covered:
                weight += measure.rectangle(start, stop - 1, max(d0, covered + 1), d1)
                covered = d1
    return weight


def group_points(points: Sequence[Point], r: int, measure: BaseMeasure) -> list[tuple[Point, ...]]:
    """Group points whose squares overlap, if this makes the cover smaller.

    ``j`` separate squares of area ``a`` have the weight ``a**j``. A group whose union has the area
    ``u`` has the weight ``u**j / j!``, because its slots are not labelled by points.
    """
    ordered = sorted(points, key=lambda z: (z[0] + z[1], z))
    squares = [square_around(z, r, measure.size) for z in ordered]
    members: list[list[int]] = []
    costs: list[float] = []
    for i, square in enumerate(squares):
        own = log(measure.rectangle(*square))
        best, saving, best_cost = None, 1e-9, 0.0
        for g, group in enumerate(members):
            if not any(_overlap(square, squares[j]) for j in group):
                continue
            size = len(group) + 1
            union = union_weight([squares[j] for j in (*group, i)], measure)
            cost = size * log(union) - lgamma(size + 1)
            if costs[g] + own - cost > saving:
                best, saving, best_cost = g, costs[g] + own - cost, cost
        if best is None:
            members.append([i])
            costs.append(own)
        else:
            members[best].append(i)
            costs[best] = best_cost
    return [tuple(ordered[i] for i in group) for group in members]


def _overlap(p: Square, q: Square) -> bool:
    return p[0] <= q[1] and q[0] <= p[1] and p[2] <= q[3] and q[2] <= p[3]


def is_canonical(
    options: Sequence[Sequence[int]], labels: Sequence[int], capacities: Sequence[int]
) -> bool:
    """Return whether valid ``labels`` are the lexicographically first valid labelling of the slots.

    A labelling gives each slot one of its options, a group or ``FREE``, and fills every group
    exactly to its capacity.
    """
    left = list(capacities)
    for slot, (choices, label) in enumerate(zip(options, labels, strict=True)):
        for choice in choices[: choices.index(label)]:
            if choice == FREE:
                remaining = left
            elif left[choice] > 0:
                remaining = [room - (g == choice) for g, room in enumerate(left)]
            else:
                continue
            if _completable(options[slot + 1 :], remaining):
                return False
        if label != FREE:
            left[label] -= 1
    return True


def _completable(options: Sequence[Sequence[int]], left: Sequence[int]) -> bool:
    """Return whether the groups can be filled by the remaining slots.

    If one matching fills all groups and another places all slots without the option ``FREE``, then
    there is a matching that does both (Mendelsohn and Dulmage).
    """
    bound = [[c for c in choices if c != FREE] for choices in options if FREE not in choices]
    if not saturates_few(bound, dict(enumerate(left))):
        return False
    places = [g for g, room in enumerate(left) for _ in range(room)]
    return saturates_few(
        [[slot for slot, choices in enumerate(options) if g in choices] for g in places]
    )


@dataclass(frozen=True)
class BaseMeasure:
    """Integer weights for the number and the positions of diagram points.

    Coordinates are ``0, ..., size``, and ``count_weights`` are ``omega_0, ..., omega_M``. With
    ``linear``, a point has the weight ``d - b`` (twice its distance to the diagonal) instead of 1.
    """

    size: int
    count_weights: tuple
    linear: bool = False

    @property
    def max_points(self) -> int:
        """Largest number of points of a diagram."""
        return len(self.count_weights) - 1

    @cached_property
    def labelled_weights(self) -> list[list[int]]:
        """For each ``f``, the weights of ``f, ..., M`` points of which ``f`` have a label each."""
        omegas = self.count_weights
        return [[omegas[m] * perm(m, f) for m in range(f, len(omegas))] for f in range(len(omegas))]

    def column(self, height: Any) -> Any:
        """Return the weight of the ``height`` lowest points above one birth, also for arrays."""
        return height * (height + 1) // 2 if self.linear else height

    def staircase(self, height: Any) -> Any:
        """Return the total weight of columns of heights ``0, ..., height``, also for arrays."""
        if self.linear:
            return height * (height + 1) * (height + 2) // 6
        return height * (height + 1) // 2

    def rectangle(self, b0: int, b1: int, d0: int, d1: int) -> int:
        """Return the weight of the rectangle ``[b0, b1] x [d0, d1]``, above the diagonal."""
        nb, nd = b1 - b0 + 1, d1 - d0 + 1
        if not self.linear:
            return nb * nd
        return (nb * nd * (d0 + d1 - b0 - b1)) // 2

    def draw_in_column(self, source: NoiseSource, b: int, height: int) -> Point:
        """Draw one of the ``height`` lowest points above ``b``."""
        if not self.linear:
            return b, b + 1 + source.below(height)
        # The rank in a triangle, because heights 1, 2, 3, ... have the weights 1, 2, 3, ...
        rank = source.below(height * (height + 1) // 2)
        return b, b + (isqrt(8 * rank + 1) + 1) // 2

    def draw_in_rectangle(self, source: NoiseSource, b0: int, b1: int, d0: int, d1: int) -> Point:
        """Draw a point of a rectangle above the diagonal."""
        while True:
            b, d = b0 + source.below(b1 - b0 + 1), d0 + source.below(d1 - d0 + 1)
            if not self.linear or source.below(d1 - b0) < d - b:
                return b, d

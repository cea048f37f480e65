"""Bottleneck balls around a diagram, and the covers from which they are drawn.

All coordinates are integers of the public grid ``{0, ..., N}``; the ball of
level ``r`` holds the diagrams whose bottleneck distance is at most ``r``. The
proof that what is drawn here is uniform on the ball, up to the base measure,
is in ``doc/theory/exact_sampler.md``.
"""

from bisect import bisect_left
from functools import cached_property

import numpy as np

from sklearn_dptda.persistence._covers import (
    Cover,
    column_tops,
    column_tops_few,
    group_points,
    weight_below,
    weight_below_few,
)

# Up to so many points runs of births are faster than arrays of them.
_FEW = 16


class DiagramBall:
    """Balls around one finite diagram of integers, ``0 <= birth < death <= N``."""

    def __init__(self, diagram, measure):
        order = np.lexsort((diagram[:, 0], diagram[:, 0] - diagram[:, 1]))
        self.points = diagram[order].astype(np.int64)
        self.measure = measure
        # Births minus deaths increase: the longest come first.
        self._shortness = (self.points[:, 0] - self.points[:, 1]).tolist()
        self._tuples = [tuple(point) for point in self.points.tolist()]

    def n_essential(self, r):
        """Number of points that cannot be matched to the diagonal within ``r``."""
        return bisect_left(self._shortness, -2 * r)

    def breaks(self):
        """Levels at which the set of essential points changes."""
        longest = self._shortness[: self.measure.max_points + 1]
        return sorted({(1 - shortness) // 2 for shortness in longest})

    def first_level(self):
        """Smallest level whose ball is not empty for want of points."""
        if len(self.points) <= self.measure.max_points:
            return 0
        return (1 - self._shortness[self.measure.max_points]) // 2

    def cover(self, level):
        """Choose a cover that is valid up to ``level``, good at ``level``."""
        n_forced = self.n_essential(level)
        cover = self._forced(n_forced, level)
        while n_forced > 0:
            if not cover.may_gain_by_dropping(self._tuples[n_forced - 1]):
                break
            trial = self._forced(n_forced - 1, level)
            if trial.weight(level) >= cover.weight(level):
                break
            cover, n_forced = trial, n_forced - 1
        return cover

    def _forced(self, n_forced, level):
        groups = group_points(self._tuples[:n_forced], level, self.measure)
        return Cover(self, n_forced, groups, level)

    def _few_free(self, n_forced):
        return len(self._tuples) - n_forced <= _FEW

    def column_tops(self, n_forced, r):
        """Highest admissible death over each birth, for points that serve no group."""
        if self._few_free(n_forced):
            return column_tops_few(self._tuples[n_forced:], r, self.measure.size)
        deaths = self._tail_deaths.copy()
        for b, d in self._tuples[n_forced : self.measure.max_points]:
            deaths[b] = max(deaths[b], d)
        return column_tops(deaths, r)

    @cached_property
    def _tail_deaths(self):
        """Deaths of the points that are too many to be forced."""
        deaths = np.zeros(self.measure.size, dtype=np.int64)
        tail = self.points[self.measure.max_points :]
        np.maximum.at(deaths, tail[:, 0], tail[:, 1])
        return deaths

    def free_weight(self, n_forced, r):
        """Weight of what lies below the column tops, an exact integer."""
        if self._few_free(n_forced):
            return weight_below_few(self._tuples[n_forced:], r, self.measure)
        return int(weight_below(self.column_tops(n_forced, r), self.measure)[-1])


class BirthBall:
    """Balls around the birth of the one class that never dies.

    Its death is the public upper bound, so only its birth is drawn: uniform on ``{0, ..., N}``.
    """

    def __init__(self, birth, size):
        self.birth = int(birth)
        self.size = size

    def breaks(self):
        """No level is special."""
        return []

    def first_level(self):
        """Every ball holds the birth itself."""
        return 0

    def cover(self, level):
        """The ball is its own cover."""
        return self

    def _interval(self, r):
        return max(self.birth - r, 0), min(self.birth + r, self.size)

    def weight(self, r):
        """Number of births within ``r``."""
        low, high = self._interval(r)
        return high - low + 1

    def draw(self, source, r):
        """Draw one birth."""
        low, high = self._interval(r)
        return [(low + source.below(high - low + 1), self.size)]

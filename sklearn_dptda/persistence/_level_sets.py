"""Bottleneck balls around a diagram, covered by products that are easy to draw from.

All coordinates are integers of the public grid ``{0, ..., N}``; the ball of
level ``r`` holds the diagrams whose bottleneck distance is at most ``r``. The
proof that what is drawn here is uniform on the ball, up to the base measure,
is in ``doc/theory/exact_sampler.md``.
"""

from bisect import bisect_right
from itertools import accumulate
from math import factorial

import numpy as np
from scipy.ndimage import maximum_filter1d

from sklearn_dptda.persistence._matching import FREE, is_canonical, saturates
from sklearn_dptda.persistence._regions import Region, group_points


class DiagramBall:
    """Balls around one finite diagram.

    Parameters
    ----------
    diagram : ndarray of shape (n, 2), int
        Births and deaths, ``0 <= birth < death <= N``.
    measure : BaseMeasure
    """

    def __init__(self, diagram, measure):
        order = np.lexsort((diagram[:, 0], diagram[:, 0] - diagram[:, 1]))
        self.points = diagram[order].astype(np.int64)
        self.measure = measure
        self.persistence = self.points[:, 1] - self.points[:, 0]
        head = min(measure.max_points, len(self.points))
        self._head = [tuple(int(c) for c in p) for p in self.points[:head]]
        self._tail_deaths = np.zeros(measure.size, dtype=np.int64)
        np.maximum.at(self._tail_deaths, self.points[head:, 0], self.points[head:, 1])

    def n_essential(self, r):
        """Number of points that cannot be matched to the diagonal within ``r``."""
        return int(np.searchsorted(-self.persistence, -2 * r, side="left"))

    def breaks(self):
        """Levels at which the set of essential points changes, the longest first."""
        lengths = self.persistence[: self.measure.max_points + 1]
        return sorted({int(length + 1) // 2 for length in lengths})

    def first_level(self):
        """Smallest level whose ball is not empty for want of points."""
        if len(self.points) <= self.measure.max_points:
            return 0
        return int(self.persistence[self.measure.max_points] + 1) // 2

    def cover(self, level):
        """Choose a cover that is valid up to ``level``, good at ``level``."""
        n_forced = self.n_essential(level)
        cover = self._forced(n_forced, level)
        while n_forced > 0:
            if not cover.may_gain_by_dropping(self._head[n_forced - 1]):
                break
            trial = self._forced(n_forced - 1, level)
            if trial.weight(level) >= cover.weight(level):
                break
            cover, n_forced = trial, n_forced - 1
        return cover

    def _forced(self, n_forced, level):
        groups = group_points(self._head[:n_forced], level, self.measure)
        return Cover(self, n_forced, groups, level)

    def column_tops(self, n_forced, r):
        """Highest admissible death over each birth, for points that serve no group.

        Such a point is within ``r`` of the diagonal or of a point of the
        diagram that no group serves; the column below is filled.
        """
        deaths = self._tail_deaths.copy()
        for b, d in self._head[n_forced:]:
            deaths[b] = max(deaths[b], d)
        nearby = maximum_filter1d(deaths, 2 * r + 1, mode="constant")
        births = np.arange(self.measure.size)
        tops = np.maximum(births + 2 * r, np.where(nearby > 0, nearby + r, 0))
        return np.minimum(tops, self.measure.size)


class Cover:
    """A superset of the balls up to one level, as labelled products.

    Each group of forced points is served by as many slots from its region;
    every other slot is empty or lies below the column tops. Its weight grows
    with the level.
    """

    def __init__(self, ball, n_forced, groups, level):
        self.ball = ball
        self.n_forced = n_forced
        self.groups = groups
        self.level = level
        measure = ball.measure
        orders = 1
        for group in groups:
            orders *= factorial(len(group))
        # Weight of m points, of which n_forced are labelled, before the areas.
        self._coefficients = [
            omega * factorial(m) // factorial(m - n_forced) // orders if m >= n_forced else 0
            for m, omega in enumerate(measure.count_weights)
        ][n_forced:]
        self._layout = (None, None)
        self._weights = {}

    def layout(self, r):
        """Areas at one level; only the last one is kept, which bounds the memory."""
        if self._layout[0] != r:
            self._layout = (r, Layout(self, r))
        return self._layout[1]

    def weight(self, r):
        """Weight of the cover at level ``r <= level``, an exact integer."""
        if r not in self._weights:
            self._weights[r] = self.layout(r).weight
        return self._weights[r]

    def may_gain_by_dropping(self, point):
        """Whether one forced point less could possibly make the cover smaller."""
        layout = self.layout(self.level)
        area = Region((point,), self.level, self.ball.measure).area
        fewer = Cover(self.ball, self.n_forced - 1, [], self.level)
        return area * _horner(self._plain(), layout.free) > _horner(fewer._plain(), layout.free)

    def _plain(self):
        omegas = self.ball.measure.count_weights
        f = self.n_forced
        return [omegas[m] * (factorial(m) // factorial(m - f)) for m in range(f, len(omegas))]

    def draw(self, source, r):
        """Propose a diagram at level ``r``; None where it has to be rejected.

        Returns
        -------
        list of (int, int), or None
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
            # The canonical labelling refers to the order of the slots.
            source.shuffle(slots)
        return [point for point, _ in slots] if self.accepts(slots, r) else None

    def accepts(self, slots, r):
        """Whether a labelled proposal is the one that stands for its diagram.

        Parameters
        ----------
        slots : list of ((int, int), int)
            Points and the groups that they serve, or ``FREE``, in order.
        r : int
            Level.

        Returns
        -------
        bool
            For each ordered tuple in the ball exactly one labelling is
            accepted, for each tuple outside none.
        """
        layout = self.layout(r)
        options = [layout.options(point) for point, _ in slots]
        if any(len(choices) > 1 for choices in options):
            labels = [label for _, label in slots]
            if not is_canonical(options, labels, [len(group) for group in self.groups]):
                return False
        return self._in_ball(slots, r)

    def _in_ball(self, slots, r):
        """Decide by two small matchings whether the proposal is in the ball."""
        n_essential = self.ball.n_essential(r)
        singles = all(len(group) == 1 for group in self.groups)
        served = singles and n_essential == self.n_forced
        far = [p for p, label in slots if p[1] - p[0] > 2 * r and not (served and label != FREE)]
        if served and not far:
            return True
        points = [p for p, _ in slots]
        if not served:
            essential = self.ball.points[:n_essential].tolist()
            reachable = [
                [i for i, (b, d) in enumerate(points) if abs(b - zb) <= r and abs(d - zd) <= r]
                for zb, zd in essential
            ]
            if not saturates(reachable):
                return False
        far = [p for p in points if p[1] - p[0] > 2 * r]
        if not far:
            return True
        gaps = np.abs(np.array(far)[:, None, :] - self.ball.points).max(axis=2)
        return saturates([np.flatnonzero(row <= r).tolist() for row in gaps])


class Layout:
    """Areas and cumulative weights of a cover at one level."""

    def __init__(self, cover, r):
        measure = cover.ball.measure
        self.measure = measure
        self.tops = cover.ball.column_tops(cover.n_forced, r)
        heights = np.maximum(self.tops - np.arange(measure.size), 0)
        self._cumulative = np.cumsum(measure.column(heights))
        self.free = int(self._cumulative[-1])
        self.regions = [Region(group, r, measure) for group in cover.groups]
        self._coefficients = cover._coefficients
        self.weight = _horner(self._coefficients, self.free)
        for region in self.regions:
            self.weight *= region.area**region.size
        self._count_table = None

    def draw_n_free(self, source):
        """Draw how many slots serve no group."""
        if self._count_table is None:
            power, table = 1, []
            for coefficient in self._coefficients:
                table.append(coefficient * power)
                power *= self.free
            self._count_table = list(accumulate(table))
        return bisect_right(self._count_table, source.below(self._count_table[-1]))

    def draw_free(self, source):
        """Draw a point below the column tops."""
        rank = source.below(self.free)
        b = int(np.searchsorted(self._cumulative, rank, side="right"))
        return self.measure.draw_in_column(source, b, int(self.tops[b]) - b)

    def options(self, point):
        """Which groups a point could serve, and whether it could be free."""
        b, d = point
        found = [i for i, region in enumerate(self.regions) if point in region]
        if d <= self.tops[b]:
            found.append(FREE)
        return found


def _horner(coefficients, x):
    total = 0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


class BirthBall:
    """Balls around the birth of the one class that never dies.

    Its death is the public upper bound, so only its birth is drawn: uniform
    on ``{0, ..., N}``.
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

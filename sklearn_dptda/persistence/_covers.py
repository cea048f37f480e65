"""Supersets of bottleneck balls, as labelled products that are easy to draw from."""

from bisect import bisect_right
from itertools import accumulate
from math import factorial, prod

import numpy as np

from sklearn_dptda.persistence._column_tops import weight_below
from sklearn_dptda.persistence._matching import FREE, is_canonical, saturates_few
from sklearn_dptda.persistence._regions import Region, square_around, union_weight


class Cover:
    """A superset of the balls up to one level, as labelled products.

    Each group of forced points is served by as many slots from its region; every other slot is
    empty or lies below the column tops. Its weight grows with the level.
    """

    def __init__(self, ball, n_forced, groups, level):
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
        self._layout = None
        self._weights = {}

    def layout(self, r):
        """Areas at one level; only the last one is kept, which bounds the memory."""
        if self._layout is None or self._layout.r != r:
            self._layout = Layout(self, r)
        return self._layout

    def weight(self, r):
        """Weight of the cover at level ``r <= level``, an exact integer."""
        if r not in self._weights:
            measure = self.ball.measure
            free = self._free if r == self.level else self.ball.free_weight(self.n_forced, r)
            weight = _polynomial(self.coefficients, free)
            for group in self.groups:
                squares = [square_around(point, r, measure.size) for point in group]
                weight *= union_weight(squares, measure) ** len(group)
            self._weights[r] = weight
        return self._weights[r]

    def may_gain_by_dropping(self, point):
        """Whether one forced point less could possibly make the cover smaller."""
        measure = self.ball.measure
        area = measure.rectangle(*square_around(point, self.level, measure.size))
        weights, fewer = (measure.labelled_weights[self.n_forced - i] for i in (0, 1))
        return area * _polynomial(weights, self._free) > _polynomial(fewer, self._free)

    def draw(self, source, r):
        """Propose a diagram at level ``r``; None where it has to be rejected.

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

        ``slots`` are points and the groups that they serve, or ``FREE``, in order. For each
        ordered tuple in the ball exactly one labelling is accepted, for each tuple outside none.
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
            if not saturates_few(reachable):
                return False
        far = [p for p in points if p[1] - p[0] > 2 * r]
        if not far:
            return True
        gaps = np.abs(np.array(far)[:, None, :] - self.ball.points).max(axis=2)
        return saturates_few([np.flatnonzero(row <= r).tolist() for row in gaps])


class Layout:
    """What draws from a cover at one level need: regions, tops and cumulative weights."""

    def __init__(self, cover, r):
        self.r = r
        self.measure = cover.ball.measure
        self.tops = cover.ball.column_tops(cover.n_forced, r)
        self.regions = [Region(group, r, self.measure) for group in cover.groups]
        self._cumulative = weight_below(self.tops, self.measure)
        self._free = int(self._cumulative[-1])
        terms = (c * self._free**i for i, c in enumerate(cover.coefficients))
        self._count_table = list(accumulate(terms))

    def draw_n_free(self, source):
        """Draw how many slots serve no group."""
        return bisect_right(self._count_table, source.below(self._count_table[-1]))

    def draw_free(self, source):
        """Draw a point below the column tops."""
        rank = source.below(self._free)
        b = int(np.searchsorted(self._cumulative, rank, side="right"))
        return self.measure.draw_in_column(source, b, int(self.tops[b]) - b)

    def options(self, point):
        """Which groups a point could serve, and whether it could be free."""
        b, d = point
        groups = [i for i, region in enumerate(self.regions) if point in region]
        return [*groups, FREE] if d <= self.tops[b] else groups


def _polynomial(coefficients, x):
    """Value at an integer, by Horner's scheme."""
    value = 0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value

"""Column tops: over each birth, the highest death of a point that serves no group.

At level ``r`` such a point is within ``r`` of the diagonal or of a point of the diagram that no
group serves; the column below the top is filled. So the tops are ``b + 2 r`` over the birth ``b``,
raised to ``d + r`` within ``r`` of the birth of a point of death ``d``, up to the grid's.
"""

from bisect import bisect_right
from itertools import accumulate, pairwise
from math import factorial, lgamma, log, prod

import numpy as np
from scipy.ndimage import maximum_filter1d

from sklearn_dptda.persistence._matching import FREE, is_canonical, saturates_few


def column_tops(deaths, r):
    """Tops over all births, by the highest death at each birth, 0 where there is none."""
    size = len(deaths)
    nearby = maximum_filter1d(deaths, 2 * r + 1, mode="constant")
    raised = np.where(nearby > 0, np.minimum(nearby + r, size), 0)
    return np.maximum(_diagonal_tops(size, r), raised)


def column_tops_few(points, r, size):
    """Tops over all births, by runs: fast for a handful of points on a fine grid."""
    tops = _diagonal_tops(size, r)
    for start, stop, top in _raised_runs(points, r, size):
        tops[start:stop] = top
    return tops


def weight_below(tops, measure):
    """Cumulative weights of the columns below their tops."""
    return np.cumsum(measure.column(np.maximum(tops - np.arange(measure.size), 0)))


def weight_below_few(points, r, measure):
    """Weight of all columns together, in closed form: no array is as long as the grid."""

    def diagonal(start):
        """Weight below tops that no point raises, from the birth ``start`` on."""
        # Heights are 2 r, and from this birth on what the grid leaves.
        bend = max(measure.size - 2 * r, start)
        return (bend - start) * measure.column(2 * r) + measure.staircase(measure.size - bend)

    weight = diagonal(0)
    for start, stop, top in _raised_runs(points, r, measure.size):
        weight += measure.staircase(top - start) - measure.staircase(top - stop)
        weight -= diagonal(start) - diagonal(stop)
    return weight


def _diagonal_tops(size, r):
    return np.minimum(np.arange(size) + 2 * r, size)


def _raised_runs(points, r, size):
    """Runs of births, disjoint, that points raise above the diagonal's tops, and to which top."""
    raised = [
        (max(b - r, 0), min(b + r, d - r - 1, size - 1) + 1, min(d + r, size)) for b, d in points
    ]
    for start, stop in pairwise(sorted({end for run in raised for end in run[:2]})):
        tops = [top for first, last, top in raised if first <= start and stop <= last]
        if tops:
            yield start, stop, max(tops)


# Unions of squares around diagram points: area, membership, draws.


def square_around(point, r, top):
    """Grid points within ``r`` of a point, as inclusive corners ``b0, b1, d0, d1``."""
    b, d = point
    return max(b - r, 0), b + r, d - r, min(d + r, top)


def union_weight(squares, measure):
    """Weight of the union of squares of one radius, an exact integer: slab by slab of births."""
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


def group_points(points, r, measure):
    """Join points whose squares overlap, where that makes the cover smaller.

    ``j`` points with their own squares of area ``a`` weigh ``a**j``; one group with the union of
    area ``u`` weighs ``u**j / j!``, because it does not say who serves whom.
    """
    ordered = sorted(points, key=lambda z: (z[0] + z[1], z))
    squares = [square_around(z, r, measure.size) for z in ordered]
    members, costs = [], []
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


def _overlap(p, q):
    return p[0] <= q[1] and q[0] <= p[1] and p[2] <= q[3] and q[2] <= p[3]


class Region:
    """Union of the squares of radius ``r`` around the points of a group.

    Each point is further than ``r`` from the diagonal.
    """

    def __init__(self, points, r, measure):
        self.size = len(points)
        self._measure = measure
        self._squares = [square_around(point, r, measure.size) for point in points]
        self._weights = [measure.rectangle(*square) for square in self._squares]

    def __contains__(self, point):
        return self._first(point) is not None

    def _first(self, point):
        b, d = point
        for i, (b0, b1, d0, d1) in enumerate(self._squares):
            if b0 <= b <= b1 and d0 <= d <= d1:
                return i
        return None

    def draw(self, source):
        """Draw a point: a square by weight, kept if it is the first that holds the point."""
        while True:
            i = 0
            rank = source.below(sum(self._weights)) if self.size > 1 else 0
            while rank >= self._weights[i]:
                rank -= self._weights[i]
                i += 1
            point = self._measure.draw_in_rectangle(source, *self._squares[i])
            if self.size == 1 or self._first(point) == i:
                return point


# Supersets of bottleneck balls, as labelled products that are easy to draw from.


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

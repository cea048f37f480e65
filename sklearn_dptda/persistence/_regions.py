"""Unions of squares around diagram points: area, membership, draws."""

from itertools import pairwise
from math import lgamma, log


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

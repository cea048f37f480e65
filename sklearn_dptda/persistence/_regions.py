"""Unions of squares around diagram points: area, membership, draws."""

from math import lgamma, log

import numpy as np


def rectangles_around(points, r, top):
    """Grid points within ``r`` of each point, as inclusive corners.

    Returns
    -------
    list of (b0, b1, d0, d1)
    """
    return [(max(b - r, 0), b + r, d - r, min(d + r, top)) for b, d in points]


class Cells:
    """The cells into which the sides of some rectangles cut the plane.

    Parameters
    ----------
    rectangles : list of (b0, b1, d0, d1)
    measure : BaseMeasure
    """

    def __init__(self, rectangles, measure):
        corners = np.array(rectangles, dtype=np.int64)
        b0, b1, d0, d1 = corners.T
        births, deaths = np.unique([b0, b1 + 1]), np.unique([d0, d1 + 1])
        self._births = (births[:-1] >= b0[:, None]) & (births[1:] <= b1[:, None] + 1)
        self._deaths = (deaths[:-1] >= d0[:, None]) & (deaths[1:] <= d1[:, None] + 1)
        self._births, self._deaths = self._births.astype(float), self._deaths.astype(float)
        self._weights = measure.rectangle(
            births[:-1, None], births[1:, None] - 1, deaths[:-1], deaths[1:] - 1
        )

    def union(self, which=slice(None)):
        """Weight of the union of some of the rectangles, an exact integer."""
        covered = self._births[which].T @ self._deaths[which] > 0
        return int(self._weights[covered].sum())


def group_points(points, r, measure):
    """Join points whose squares overlap, where that makes the cover smaller.

    ``j`` points with their own squares of area ``a`` weigh ``a**j``; one group
    with the union of area ``u`` weighs ``u**j / j!``, because it does not say
    who serves whom.

    Returns
    -------
    list of tuple of (b, d)
    """
    if not points:
        return []
    ordered = sorted(points, key=lambda z: (z[0] + z[1], z))
    rectangles = rectangles_around(ordered, r, measure.size)
    areas = [log(measure.rectangle(*rectangle)) for rectangle in rectangles]
    if not _any_overlap(rectangles):
        return [(z,) for z in ordered]
    cells = Cells(rectangles, measure)
    members, costs = [], []
    for i, area in enumerate(areas):
        best, saving, best_cost = None, 1e-9, 0.0
        for g, group in enumerate(members):
            if not any(_overlap(rectangles[i], rectangles[j]) for j in group):
                continue
            size = len(group) + 1
            cost = size * log(cells.union([*group, i])) - lgamma(size + 1)
            if costs[g] + area - cost > saving:
                best, saving, best_cost = g, costs[g] + area - cost, cost
        if best is None:
            members.append([i])
            costs.append(area)
        else:
            members[best].append(i)
            costs[best] = best_cost
    return [tuple(ordered[i] for i in group) for group in members]


def _overlap(p, q):
    return p[0] <= q[1] and q[0] <= p[1] and p[2] <= q[3] and q[2] <= p[3]


def _any_overlap(rectangles):
    return any(_overlap(p, q) for i, p in enumerate(rectangles) for q in rectangles[:i])


class Region:
    """Union of the squares of radius ``r`` around the points of a group.

    Parameters
    ----------
    points : tuple of (b, d)
        Further than ``r`` from the diagonal each.
    r : int
    measure : BaseMeasure
    """

    def __init__(self, points, r, measure):
        self.size = len(points)
        self.rectangles = rectangles_around(points, r, measure.size)
        self._measure = measure
        self._areas = [int(measure.rectangle(*rectangle)) for rectangle in self.rectangles]
        if self.size == 1:
            self.area = self._areas[0]
        else:
            self.area = Cells(self.rectangles, measure).union()

    def __contains__(self, point):
        return self._first(point) is not None

    def _first(self, point):
        b, d = point
        for i, (b0, b1, d0, d1) in enumerate(self.rectangles):
            if b0 <= b <= b1 and d0 <= d <= d1:
                return i
        return None

    def draw(self, source):
        """Draw a point: a rectangle by area, kept if it is the first that holds the point."""
        while True:
            i = 0
            rank = source.below(sum(self._areas)) if self.size > 1 else 0
            while rank >= self._areas[i]:
                rank -= self._areas[i]
                i += 1
            point = self._measure.draw_in_rectangle(source, *self.rectangles[i])
            if self.size == 1 or self._first(point) == i:
                return point

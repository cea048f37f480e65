"""Column tops: over each birth, the highest death of a point that serves no group.

At level ``r`` such a point is within ``r`` of the diagonal or of a point of the diagram that no
group serves; the column below the top is filled. So the tops are ``b + 2 r`` over the birth ``b``,
raised to ``d + r`` within ``r`` of the birth of a point of death ``d``, up to the grid's.
"""

from itertools import pairwise

import numpy as np
from scipy.ndimage import maximum_filter1d


def column_tops(deaths, r):
    """Tops over all births, by the highest death at each birth, 0 where there is none."""
    size = len(deaths)
    nearby = maximum_filter1d(deaths, 2 * r + 1, mode="constant")
    tops = np.maximum(np.arange(size) + 2 * r, np.where(nearby > 0, nearby + r, 0))
    return np.minimum(tops, size)


def weight_below(tops, measure):
    """Cumulative weights of the columns below their tops."""
    return np.cumsum(measure.column(np.maximum(tops - np.arange(measure.size), 0)))


def weight_below_few(points, r, measure):
    """Weight below the tops, in closed form, from runs of births: fast for a handful of points."""
    size = measure.size

    def diagonal(start):
        """Weight below tops that no point raises, from the birth ``start`` on."""
        # Heights are 2 r, and from this birth on what the grid leaves.
        bend = max(size - 2 * r, start)
        return (bend - start) * measure.column(2 * r) + measure.staircase(size - bend)

    raised = [
        (max(b - r, 0), min(b + r, d - r - 1, size - 1) + 1, min(d + r, size)) for b, d in points
    ]
    weight = diagonal(0)
    for start, stop in pairwise(sorted({end for run in raised for end in run[:2]})):
        tops = [top for first, last, top in raised if first <= start and stop <= last]
        if tops:
            weight += measure.staircase(max(tops) - start) - measure.staircase(max(tops) - stop)
            weight -= diagonal(start) - diagonal(stop)
    return weight

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

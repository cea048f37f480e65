"""Birth and death of a loop in the distance-to-measure of points around a circle.

A model of what one expects to see, made of public numbers. By symmetry the function depends on the
distance from the centre alone: the loop is born at the least value along a radius, and dies at the
largest one further inside.
"""

import math

import numpy as np
from scipy.special import ndtri

# Equally heavy points that stand for the measure: rings, and angles of half a circle; radii at
# which the function is computed.
_RINGS, _ANGLES, _RADII = 64, 512, 65


class LoopModel:
    """Points at uniform angles of a circle, a Gaussian of deviation ``spread`` off it.

    On the loop lies the ``share`` of all points; the others are taken to be nowhere near. Longer
    distances than ``cap`` count as the cap.
    """

    def __init__(self, radius, share, spread, cap):
        self.share = share
        levels = (np.arange(_RINGS) + 0.5) / _RINGS
        rings = radius + spread * ndtri(levels)
        angles = np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
        x, y = (np.outer(rings, f(angles)).ravel() for f in (np.cos, np.sin))
        places = np.linspace(0, radius, _RADII)[:, None]
        self._distances = np.minimum(np.sort(np.hypot(x - places, y), axis=1), cap)
        self._sums = np.cumsum(self._distances, axis=1)

    def exists(self, m):
        """Whether a mass is found on the loop alone."""
        return m < self.share

    def birth_and_death(self, m):
        """Birth and death of the loop; the same number where there is none."""
        birth, death = self._ends(self._count(m))
        values = self._values(self._count(m))
        return float(values[birth]), float(values[death])

    def sampling_error(self, m, n_points, confidence):
        """How much shorter the loop of a sample may be, to first order in one over the root of n.

        A value at mass m has the influence function ``-(d - D)_+ / m``, D the distance of a point
        and d that of the last one counted. Loops close where the sample is thinnest: at the worst
        of about ``share / m`` places that have no points in common.
        """
        quantile = -float(ndtri((1 - confidence) * m / self.share))
        ends = self._ends(self._count(m))
        return quantile * sum(self._deviation(i, m) for i in ends) / math.sqrt(n_points)

    def _count(self, m):
        size = self._distances.shape[1]
        return min(max(round(m / self.share * size), 1), size)

    def _values(self, count):
        return self._sums[:, count - 1] / count

    def _ends(self, count):
        """Places of birth and death."""
        values = self._values(count)
        birth = int(values.argmin())
        return birth, int(values[: birth + 1].argmax())

    def _deviation(self, place, m):
        """Standard deviation of the influence function."""
        distances = self._distances[place]
        count = self._count(m)
        gaps = distances[count - 1] - distances[:count]
        mean, square = (self.share * float(g.sum()) / len(distances) for g in (gaps, gaps**2))
        return math.sqrt(max(square - mean**2, 0.0)) / m

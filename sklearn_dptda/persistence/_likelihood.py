"""Likelihood of exact diagrams, given a private release of them.

A release ``P`` of the exact diagrams ``E`` has the law ``g(d(P, E)) nu(P) / Z(E)``. As a function
of ``E`` it is ``g(d(P, E)) / Z(E)``, where all numbers are public. ``Z(E)`` is a sum over levels of
the measure of the ball around ``E``, which has a closed form up to the overlaps of squares.

Proof: doc/theory/posterior.md, "The likelihood".
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.persistence._mechanisms import LawOfDraw

# Levels whose weight is below exp(-_LAST_LEVEL) are treated as one. Blocks of levels have a length
# of a quarter of the scale of noise, or of this share of the level.
_LAST_LEVEL, _BLOCK, _BLOCK_SHARE = 150.0, 0.25, 0.015


class Likelihood:
    """Likelihood of many exact diagrams at once, in steps of the grid of a release.

    A set of diagrams is an array of shape (n, m, 2) of births and deaths, in which a point of zero
    persistence stands for no feature. ``gates`` are levels below which a cap cannot be drawn; there
    is one column of results for each of them.
    """

    def __init__(self, law: LawOfDraw, gates: Sequence[float] = (0.0,)) -> None:
        self.size, self.rate = law.grid.size, law.table.rate
        self.birth_decay, self.gates = law.birth_decay, np.array(gates, dtype=float)
        counts = law.measure.count_weights
        self.max_points = len(counts) - 1
        area = law.measure.staircase(self.size)
        # An empty slot has this weight in relation to a point, which has 1.
        empty = counts[-2] / (counts[-1] * self.max_points)
        spike = empty / (empty + area)
        self.density = (1 - spike) / area
        self._set_levels()
        width = np.minimum(2 * self.levels, self.size)
        self._strip = spike + self.density * (width * (self.size - width) + width * (width + 1) / 2)
        # Weight of the slots, given the number of long features, which need a slot each. More than
        # max_points of them cannot be near any release.
        slots = np.arange(self.max_points + 1)[:, None]
        ways = np.cumprod(np.append(1.0, self.max_points - np.arange(self.max_points)))
        with_long = ways[:, None] * self.density**slots * self._strip ** (self.max_points - slots)
        self._slots = np.vstack([with_long, np.zeros(len(self.levels))])

    def _set_levels(self) -> None:
        last, edges = min(self.size, int(_LAST_LEVEL / self.rate)), [0]
        while edges[-1] < last:
            block = max(1, int(_BLOCK / self.rate), int(_BLOCK_SHARE * edges[-1]))
            edges.append(min(edges[-1] + block, last))
        at = np.array(edges, dtype=float)
        self.levels = np.append((at[:-1] + at[1:] - 1) / 2, last)
        g = np.exp(-self.rate * at)
        self._weights = np.append(g[:-1] - g[1:], g[-1])
        # One row for each gate.
        self._weights = self._weights * (self.levels >= self.gates[:, None])

    def log_decay(self, distance: FloatArray) -> FloatArray:
        """Return log g for distances of shape (n,), in one column for each gate."""
        decay: FloatArray = -self.rate * np.maximum(distance[:, None], self.gates)
        return decay

    def log_normaliser(
        self, diagrams: Sequence[FloatArray], births: FloatArray | None
    ) -> FloatArray:
        """Return log Z, of shape (n, n_gates), for one set of diagrams for each dimension.

        ``births`` are those of the essential component, None without components.
        """
        volume = np.ones((1, len(self.levels)))
        for diagram in diagrams:
            volume = volume * self.volume(diagram)
        if births is not None:
            volume = volume * self._volume_of_births(births)
        z: FloatArray = np.log(np.maximum(volume @ self._weights.T, 1e-300))
        return z

    def volume(self, diagrams: FloatArray) -> FloatArray:
        """Return the measure of the balls around diagrams, of shape (n, n_levels)."""
        s, size, n = self.levels, self.size, len(diagrams)
        births, deaths = diagrams[:, :, 0], diagrams[:, :, 1]
        squares, n_long = np.ones((n, len(s))), np.zeros((n, len(s)), dtype=np.int64)
        # Twice the area by which squares around short features reach above the strip.
        above = np.zeros((n, len(s)))
        for i in range(diagrams.shape[1]):
            here = np.flatnonzero(deaths[:, i] > births[:, i])
            b, d = births[here, i, None], deaths[here, i, None]
            is_long = d - b > 2 * s
            before, after = np.maximum(s - b, 0), np.maximum(d + s - size, 0)
            square = (2 * s + 1 - before) * (2 * s + 1 - after)
            squares[here] *= np.where(is_long, square, 1.0)
            n_long[here] += is_long
            leg = np.maximum(d - b - before - after, 0)
            above[here] += np.where(is_long, 0.0, leg * (leg + 1))
        self._count_pairs_once(squares, diagrams)
        n_long = np.minimum(n_long, self.max_points + 1)
        slots = self._slots[n_long, np.arange(len(s))]
        free = np.maximum(self.max_points - n_long, 0)
        volume: FloatArray = squares * slots * (1 + free * self.density * above / 2 / self._strip)
        return volume

    def _count_pairs_once(self, squares: FloatArray, diagrams: FloatArray) -> None:
        """Reduce products of two squares, in which pairs within their overlap occur twice."""
        lengths, side = np.ptp(diagrams, axis=2), 2 * self.levels + 1
        for i, j in combinations(range(diagrams.shape[1]), 2):
            shorter = np.minimum(lengths[:, i], lengths[:, j])
            near = np.flatnonzero(shorter > 0)
            apart = np.abs(diagrams[near, i] - diagrams[near, j])
            # Others are further apart than any squares of two long features reach.
            close = apart.max(axis=1) <= shorter[near]
            near, apart = near[close], apart[close]
            overlap = np.maximum(side - apart[:, :1], 0) * np.maximum(side - apart[:, 1:], 0)
            both_long = shorter[near, None] > 2 * self.levels
            squares[near] *= np.where(both_long, 1 - (overlap / side**2) ** 2 / 2, 1.0)

    def _volume_of_births(self, births: FloatArray) -> FloatArray:
        low = np.maximum(births[:, None] - self.levels, 0)
        high = np.minimum(births[:, None] + self.levels, self.size) + 1
        if self.birth_decay == 0:
            share: FloatArray = (high - low) / (self.size + 1)
            return share

        def beyond(birth: FloatArray | float) -> FloatArray:
            return np.exp(-self.birth_decay * np.asarray(birth) / self.size)

        share = (beyond(low) - beyond(high)) / (1 - beyond(self.size + 1.0))
        return share

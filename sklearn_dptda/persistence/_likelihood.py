"""Likelihood of exact diagrams, given a private release of them.

A release ``P`` of the exact diagrams ``E`` has the law ``g(d(P, E)) nu(P) / Z(E)``. As a function
of ``E`` it is ``g(d(P, E)) / Z(E)``, where all numbers are public. ``Z(E)`` is a sum over levels of
the measure of the ball around ``E``, which has a closed form up to the overlaps of squares.

Proof: doc/theory/posterior.md, "The likelihood".
"""

from collections.abc import Sequence

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.persistence._mechanisms import LawOfDraw

# Levels whose weight is below exp(-_LAST_LEVEL) are treated as one. Blocks of levels have a length
# of a quarter of the scale of noise, or of this share of the level.
_LAST_LEVEL, _BLOCK, _BLOCK_SHARE = 150.0, 0.25, 0.015
# Diagrams at a time, whose numbers for all levels fit into the processor's cache.
_ROWS = 64


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
        there = diagrams[:, :, 1] > diagrams[:, :, 0]
        numbers = there.sum(axis=1)
        # The features of each diagram first, in their order.
        first = np.argsort(~there, axis=1, kind="stable")[:, : numbers.max(initial=0)]
        features = np.take_along_axis(diagrams, first[:, :, None], axis=1)
        volume = np.empty((len(diagrams), len(self.levels)))
        # Diagrams with many features first, so that those with a feature in a slot are adjacent.
        order = np.argsort(-numbers, kind="stable")
        for start in range(0, len(order), _ROWS):
            rows = order[start : start + _ROWS]
            volume[rows] = self._volume_of_some(features[rows, : numbers[rows[0]]], numbers[rows])
        return volume

    def _volume_of_some(self, features: FloatArray, numbers: IntArray) -> FloatArray:
        """Return the measure of balls, where the numbers of features are in descending order."""
        s, size = self.levels, self.size
        births, deaths = features[:, :, 0, None], features[:, :, 1, None]
        squares = np.ones((len(features), len(s)))
        n_long = np.zeros(squares.shape, dtype=np.int64)
        # Twice the area by which squares around short features reach above the strip.
        above = np.zeros(squares.shape)
        lengths = deaths - births
        for i in range(features.shape[1]):
            end = int(np.count_nonzero(numbers > i))
            b, d, length = births[:end, i], deaths[:end, i], lengths[:end, i]
            # A feature is long at the first levels.
            n_all, n_any = np.searchsorted(2 * s, [length.min(), length.max()])
            before, after = np.maximum(s - b, 0), np.maximum(d + s - size, 0)
            some = slice(None, n_any)
            is_long = length > 2 * s[some]
            square = (2 * s[some] + 1 - before[:, some]) * (2 * s[some] + 1 - after[:, some])
            squares[:end, some] *= np.where(is_long, square, 1.0)
            n_long[:end, some] += is_long
            some = slice(n_all, None)
            leg = np.maximum(length - before[:, some] - after[:, some], 0)
            leg *= leg + 1
            leg[:, : n_any - n_all][is_long[:, some]] = 0.0
            above[:end, some] += leg
        self._count_pairs_once(squares, features, lengths[:, :, 0], numbers)
        n_long = np.minimum(n_long, self.max_points + 1)
        slots = self._slots[n_long, np.arange(len(s))]
        free = np.maximum(self.max_points - n_long, 0)
        volume: FloatArray = squares * slots * (1 + free * self.density * above / 2 / self._strip)
        return volume

    def _count_pairs_once(
        self, squares: FloatArray, features: FloatArray, lengths: FloatArray, numbers: IntArray
    ) -> None:
        """Reduce products of two squares, in which pairs within their overlap occur twice."""
        first, second = np.triu_indices(features.shape[1], 1)
        shorter = np.minimum(lengths[:, first], lengths[:, second])
        apart = np.abs(features[:, first] - features[:, second])
        # Others are further apart than any squares of two long features reach.
        close = (apart.max(axis=2) <= shorter) & (numbers[:, None] > second)
        side = 2 * self.levels + 1
        for pair in np.flatnonzero(close.any(axis=0)):
            near = np.flatnonzero(close[:, pair])
            # Both are long at the first levels.
            some = side[: np.searchsorted(2 * self.levels, shorter[near, pair].max())]
            births, deaths = apart[near, pair].T[:, :, None]
            overlap = np.maximum(some - births, 0) * np.maximum(some - deaths, 0)
            both_long = shorter[near, pair, None] > 2 * self.levels[: len(some)]
            once = np.where(both_long, 1 - (overlap / some**2) ** 2 / 2, 1.0)
            squares[near, : len(some)] *= once

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

"""Bounds of the weights of bottleneck balls, over a public class of diagrams.

The class: at most ``most`` points are longer than the floor, any number are shorter. Coordinates
are integers of the public grid, as in :mod:`~sklearn_dptda.persistence._level_sets`; proofs are in
``doc/theory/error_bounds.md``.
"""

from dataclasses import dataclass, replace
from math import comb, perm

from sklearn_dptda.persistence._base_measure import BaseMeasure


@dataclass(frozen=True)
class DiagramVolumes:
    """Bounds for the finite points of one diagram, ``floor`` in steps of half persistence.

    With ``inside``, points longer than the floor are also further than the level from the ends of
    the range.
    """

    measure: BaseMeasure
    most: int
    floor: int
    inside: bool = False

    def highest(self, s):
        """Weight of a ball of level ``s``, at most: a point is near a long one, or is short."""
        measure = self.measure
        strip = self._strip(s + self.floor)
        square = (2 * s + 1) ** 2 * (measure.size if measure.linear else 1)
        total = sum(
            omega
            * sum(
                perm(m, i) * comb(self.most, i) * square**i * strip ** (m - i)
                for i in range(min(m, self.most) + 1)
            )
            for m, omega in enumerate(measure.count_weights)
        )
        return min(total, self.near_diagonal(measure.size))

    def lowest(self, s):
        """Weight of a ball of level ``s``, at least; zero where short points are not free yet."""
        if s < self.floor or self.most > self.measure.max_points:
            return 0
        return min(self._with_forced(s, j) for j in range(self.most + 1))

    def without_long(self):
        """Volumes for diagrams without long points."""
        return replace(self, most=0)

    def near_diagonal(self, r):
        """Weight of the diagrams whose points are all within ``r`` of the diagonal."""
        strip = self._strip(r)
        return sum(omega * strip**m for m, omega in enumerate(self.measure.count_weights))

    def _with_forced(self, s, j):
        """Weight of diagrams near one of which ``j`` points are longer than ``2 s``, at least.

        The first points of a tuple serve these, in order; the others are near the diagonal.
        """
        # Where a square is cut, the quarter towards the middle of the range is left.
        side = 2 * s + 1 if self.inside else s + 1
        square = side**2 * (s + 1 if self.measure.linear else 1)
        strip, omegas = self._strip(s), self.measure.count_weights
        return square**j * sum(omegas[m] * strip ** (m - j) for m in range(j, len(omegas)))

    def _strip(self, r):
        """Weight of the points within ``r`` of the diagonal."""
        size, width = self.measure.size, min(2 * r, self.measure.size)
        # Births, by the length of what is above them.
        full = size - width
        return full * self.measure.column(width) + self.measure.staircase(width)


@dataclass(frozen=True)
class BirthVolumes:
    """Bounds for the birth of the class that never dies."""

    size: int
    inside: bool = False

    def highest(self, s):
        """Number of births within ``s``, at most."""
        return min(2 * s, self.size) + 1

    def lowest(self, s):
        """Number of births within ``s``, at least."""
        return self.highest(s) if self.inside else min(s, self.size) + 1

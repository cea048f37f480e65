"""Base measures on diagrams: how many points, and where, before the data speak.

A base measure has integer weights on a public finite set: ordered tuples of
points ``(b, d)`` with ``0 <= b < d <= N``. The tuple ``(z_1, ..., z_m)`` weighs
``omega_m * rho(z_1) * ... * rho(z_m)``. It is finite, depends on public
numbers only, and every mechanism below works with these integers alone.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, isqrt, perm

BASE_MEASURES = ("uniform", "spike-slab", "poisson")
# Points that a diagram has before the data speak: one for so many losses of the whole range, and
# at most that share of the slots. They drown where there are more, and are missed where fewer.
_LOSSES_PER_POINT, _FULLEST = 200, 0.2
_EMPTIEST = 2.0**-20


@dataclass(frozen=True)
class BaseMeasure:
    """Integer weights for the number and the places of diagram points.

    Coordinates are ``0, ..., size``, and ``count_weights`` are ``omega_0, ..., omega_M``. With
    ``linear`` a point weighs ``d - b`` (twice its distance to the diagonal) rather than 1.
    """

    size: int
    count_weights: tuple
    linear: bool = False

    @property
    def max_points(self):
        """Largest number of points of a diagram."""
        return len(self.count_weights) - 1

    @cached_property
    def labelled_weights(self):
        """For each ``f``, the weights of ``f, ..., M`` points of which ``f`` have a label each."""
        omegas = self.count_weights
        return [[omegas[m] * perm(m, f) for m in range(f, len(omegas))] for f in range(len(omegas))]

    def column(self, height):
        """Weight of the ``height`` lowest points above one birth; arrays will do."""
        return height * (height + 1) // 2 if self.linear else height

    def staircase(self, height):
        """Weight of columns of heights ``0, ..., height`` together."""
        if self.linear:
            return height * (height + 1) * (height + 2) // 6
        return height * (height + 1) // 2

    def rectangle(self, b0, b1, d0, d1):
        """Weight of the rectangle ``[b0, b1] x [d0, d1]``, above the diagonal."""
        nb, nd = b1 - b0 + 1, d1 - d0 + 1
        if not self.linear:
            return nb * nd
        return (nb * nd * (d0 + d1 - b0 - b1)) // 2

    def draw_in_column(self, source, b, height):
        """Draw one of the ``height`` lowest points above ``b``."""
        if not self.linear:
            return b, b + 1 + source.below(height)
        # Rank in a triangle: heights 1, 2, 3, ... weigh 1, 2, 3, ...
        rank = source.below(height * (height + 1) // 2)
        return b, b + (isqrt(8 * rank + 1) + 1) // 2

    def draw_in_rectangle(self, source, b0, b1, d0, d1):
        """Draw a point of a rectangle above the diagonal."""
        while True:
            b, d = b0 + source.below(b1 - b0 + 1), d0 + source.below(d1 - d0 + 1)
            if not self.linear or source.below(d1 - b0) < d - b:
                return b, d


def spike_of_range(loss, max_points):
    """Probability of an empty slot by a public number: the privacy loss over the whole range.

    A slot is harmless only near the diagonal, within a distance that falls with the loss; so the
    number of filled ones grows with it.
    """
    return 1 - max(min(loss / (_LOSSES_PER_POINT * max_points), _FULLEST), _EMPTIEST)


@lru_cache(maxsize=64)
def make_base_measure(name, size, max_points, *, spike=0.5, mean=None, linear=False):
    """Build a base measure from public numbers, once for all diagrams that share it.

    ``"uniform"``: exactly ``max_points`` points. ``"spike-slab"``: each of ``max_points`` slots is
    empty with probability ``spike``. ``"poisson"``: a Poisson number of points of mean ``mean``,
    up to ``max_points``. With ``linear`` the density of a point is proportional to its
    persistence.
    """
    area = BaseMeasure(size, (1,), linear).staircase(size)
    if name == "uniform":
        weights = [0] * max_points + [1]
    elif name == "spike-slab":
        odds_num, odds_den = (spike / (1 - spike)).as_integer_ratio()
        # Slots that are empty weigh odds * area each; a common factor clears the fraction.
        weights = [
            comb(max_points, m) * (odds_num * area) ** (max_points - m) * odds_den**m
            for m in range(max_points + 1)
        ]
    elif name == "poisson":
        num, den = float(mean).as_integer_ratio()
        weights = [
            num**m * (den * area) ** (max_points - m) * perm(max_points, max_points - m)
            for m in range(max_points + 1)
        ]
    else:
        raise ValueError(f"Unknown base measure {name!r}; known are {', '.join(BASE_MEASURES)}.")
    return BaseMeasure(size, tuple(weights), linear)

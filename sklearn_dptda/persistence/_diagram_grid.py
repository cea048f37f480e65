"""The public grid on which private diagrams live."""

import math
from dataclasses import dataclass

import numpy as np

# Part of the entropic scale of one point of a diagram that a step is: finer is slower, and no
# private mechanism is accurate enough to tell.
PART_OF_SCALE = 8
MIN_SIZE, MAX_SIZE = 64, 2**16
# Room for the roundings between a value and its grid index.
MARGIN = 1 + 2.0**-30


@dataclass(frozen=True)
class DiagramGrid:
    """Coordinates ``0, step, ..., size * step`` of births and deaths, up to the bound ``upper``.

    Diagrams of neighbours are at most ``sensitivity`` steps apart; ``upper`` is the death of the
    class that never dies.
    """

    step: float
    size: int
    sensitivity: int
    upper: float

    def integers(self, diagram):
        """Round a diagram to the grid and drop what falls on the diagonal.

        Rounding is one monotone map of the coordinates: when ``x' <= x + sensitivity * step``,
        the rounded values obey the same inequality in steps, so rounding costs no privacy.
        """
        rounded = self._rounded(np.asarray(diagram, dtype=float).reshape(-1, 2)).astype(np.int64)
        return rounded[rounded[:, 1] > rounded[:, 0]]

    def integer(self, value):
        """Round one value to the grid."""
        return int(self._rounded(value))

    def _rounded(self, values):
        return np.clip(np.floor(values / self.step + 0.5), 0, self.size)

    def values(self, points):
        """Turn grid points into a diagram, sorted, without zero persistence."""
        diagram = np.array(sorted(points), dtype=float).reshape(-1, 2) * self.step
        diagram = np.minimum(diagram, self.upper)
        return diagram[diagram[:, 1] > diagram[:, 0]]


def make_grid(sensitivity, upper, epsilon):
    """Choose the grid from public numbers: bottleneck sensitivity, bound of the values, loss.

    The step divides the sensitivity, so that this is a whole number of steps and nothing is lost;
    only where it is less than one step of the finest grid, it counts as one. It is at most a part
    of the entropic scale of one point, which moves in a plane with the maximum norm:
    ``4 log(2) / epsilon`` sensitivities (Boedihardjo, Strohmer, Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Theorem 6.1; what ``normed_scale(2, alpha=epsilon)`` is).
    """
    padded = sensitivity * MARGIN
    # In units of the sensitivity.
    entropic_scale = 4 * math.log(2) / epsilon
    steps = max(math.ceil(PART_OF_SCALE / entropic_scale), math.ceil(MIN_SIZE * padded / upper), 1)
    # So many at most: still whole numbers, so that the sensitivity is not rounded up.
    steps = min(steps, max(math.floor(MAX_SIZE * padded / upper), 1))
    step = max(padded / steps, upper / MAX_SIZE * MARGIN)
    return DiagramGrid(step, math.ceil(upper / step), steps, upper)

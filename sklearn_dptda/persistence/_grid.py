"""The public grid on which private diagrams live."""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_dptda.metric_privacy import normed_scale

# Part of the entropic scale of one point of a diagram that a step is: finer is slower, and no
# private mechanism is accurate enough to tell.
PART_OF_SCALE = 8
MIN_SIZE, MAX_SIZE = 64, 2**16
# Room for the roundings between a value and its grid index.
MARGIN = 1 + 2.0**-30


@dataclass(frozen=True)
class DiagramGrid:
    """Coordinates ``0, step, ..., size * step`` of births and deaths.

    Parameters
    ----------
    step : float
        In the units of the filtration.
    size : int
        Number of steps up to the public upper bound.
    sensitivity : int
        How many steps the diagrams of neighbours can be apart.
    upper : float
        The public upper bound, the death of the class that never dies.
    """

    step: float
    size: int
    sensitivity: int
    upper: float

    def integers(self, diagram):
        """Round a diagram to the grid and drop what falls on the diagonal.

        Rounding is one monotone map of the coordinates: when ``x' <= x +
        sensitivity * step``, the rounded values obey the same inequality in
        steps, so rounding costs no privacy.
        """
        scaled = np.floor(np.asarray(diagram, dtype=float).reshape(-1, 2) / self.step + 0.5)
        rounded = np.clip(scaled, 0, self.size).astype(np.int64)
        return rounded[rounded[:, 1] > rounded[:, 0]]

    def integer(self, value):
        """Round one value to the grid."""
        return int(np.clip(np.floor(value / self.step + 0.5), 0, self.size))

    def values(self, points):
        """Turn grid points into a diagram, sorted, without zero persistence."""
        diagram = np.array(sorted(points), dtype=float).reshape(-1, 2) * self.step
        diagram = np.minimum(diagram, self.upper)
        return diagram[diagram[:, 1] > diagram[:, 0]]


def make_grid(sensitivity, upper, epsilon):
    """Choose the grid from public numbers.

    The step divides the sensitivity wherever the size allows it, so that the
    sensitivity is a whole number of steps and nothing is lost. One point of a
    diagram moves in a plane with the maximum norm, where a loss of ``epsilon``
    per sensitivity has a known entropic scale: the step is at most an eighth
    of it.

    Parameters
    ----------
    sensitivity : float
        Bottleneck sensitivity of the diagrams.
    upper : float
        Public upper bound of the values.
    epsilon : float
        Privacy loss of the mechanism that will use the grid.

    Returns
    -------
    DiagramGrid
    """
    padded = sensitivity * MARGIN
    # Both in units of the sensitivity.
    spacing = float(normed_scale(2, alpha=epsilon)) / PART_OF_SCALE
    steps = max(math.ceil(1 / spacing), math.ceil(MIN_SIZE * padded / upper), 1)
    step = padded / steps
    if upper / step > MAX_SIZE:
        step = upper / MAX_SIZE * MARGIN
        steps = math.ceil(padded / step)
    return DiagramGrid(step, math.ceil(upper / step), steps, upper)

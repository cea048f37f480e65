"""What the filtration of a cloud will carry, before there is a cloud."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone


@dataclass(frozen=True)
class BoundsAhead:
    """Numbers that the filtration of a cloud follows from, or carries, whatever the points are.

    Distances count up to ``cap``. ``grid_error`` is how far a place of the box is from the nearest
    node, and so how far the diagram of the nodes is from that of the whole function, which is
    1-Lipschitz.
    """

    cap: float
    sensitivity: float
    upper: float
    approximation_error: float
    grid_error: float


def bounds_ahead(filtration, n_points, n_dims):
    """Bounds of a :class:`DTMFiltration` of any ``n_points`` points in ``n_dims`` coordinates.

    Its box must be public. Fits a copy to two points that tell their number of coordinates, which
    is all that a fit learns.
    """
    fitted = clone(filtration).fit([np.zeros((2, n_dims))])
    cell = [axis[1] - axis[0] for axis in fitted.axes_]
    return BoundsAhead(
        fitted._cap(),
        *fitted._bounds_of_values(n_points),
        approximation_error=fitted._error_of_values(n_points),
        grid_error=float(np.linalg.norm(cell)) / 2,
    )

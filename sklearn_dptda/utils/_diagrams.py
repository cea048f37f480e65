"""Reading persistence diagrams."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.utils._lossy import refuse_lossy


def as_diagram(diagram: ArrayLike, name: str) -> FloatArray:
    """Return a diagram as an (n, 2) float array; infinite deaths are allowed.

    Raises
    ------
    ValueError
        If the shape is wrong or a coordinate is NaN.
    """
    refuse_lossy(diagram, name)
    array = np.asarray(diagram, dtype=float)
    if array.size == 0:
        return np.empty((0, 2))
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name}: a diagram must have shape (n_points, 2); got {array.shape}.")
    if np.isnan(array).any():
        raise ValueError(f"{name} contains NaN.")
    return array

"""Points far from each other, one after the other."""

from collections.abc import Callable

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray


def farthest_first(
    distances_from: Callable[[int], FloatArray], n: int, start: int = 0
) -> tuple[IntArray, FloatArray]:
    """Indices of ``n`` points, each the farthest from those before it, and these distances.

    ``distances_from(i)`` are the distances of all points from point ``i``, or any increasing
    function of them; that of the start is ``inf``. The first of equally far points is taken.
    """
    order, radii, nearest = [start], [np.inf], distances_from(start)
    for _ in range(n - 1):
        order.append(int(nearest.argmax()))
        radii.append(float(nearest[order[-1]]))
        nearest = np.minimum(nearest, distances_from(order[-1]))
    return np.array(order), np.array(radii)

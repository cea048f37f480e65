"""Neighbouring clouds whose diagrams are as far apart as one replaced point can bring them."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration._filtration_sensitivity import neighbour_count


def cech_worst_case(n: int, low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose Čech diagrams differ by a quarter of the diameter.

    All points at one corner, against one of them at the opposite corner: a
    second component appears that lives until half the diameter, a quarter of
    it away from the diagonal. The set of possible records need not be convex:
    it needs the two corners alone.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    cloud = np.tile(low, (n, 1))
    neighbour = cloud.copy()
    neighbour[0] = high
    return cloud, neighbour


def dtm_worst_case(
    m: float, n: int, low: ArrayLike, high: ArrayLike, n_moved: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose distance-to-measure diagrams differ most.

    Exactly ``k = ceil(m n)`` points sit at one corner and the others at the
    opposite one; replacing one of the ``k`` by a point of the far corner
    raises the minimum at the corner from zero to ``diameter / k``, or to
    ``max_distance / k`` where distances are capped. ``n_moved`` points, up
    to ``k``, raise it by as many times that: the clouds' Hamming distance.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)

    Notes
    -----
    The birth of one component of dimension 0 moves by the full sensitivity.
    Where the other corner holds at least ``k`` points as well, this component
    is the second one: its persistence must exceed the shift for the distance
    to show, which it does as soon as ``k >= 4``. The set of possible records
    need not be convex: it needs the two corners alone.
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    k = neighbour_count(m, n)
    cloud = np.tile(high, (n, 1))
    cloud[:k] = low
    neighbour = cloud.copy()
    neighbour[:n_moved] = high
    return cloud, neighbour


def dtm_worst_case_loop(n: int, low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose diagrams of the top dimension differ much.

    All points lie on the sphere that is inscribed in the box (two points in
    dimension 1); one of them moves to its centre. The distance-to-measure at
    the centre, the death of the class of dimension ``d - 1``, falls from the
    radius by ``radius / k``. The centre must be a possible record.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    radius = (high - low).min() / 2
    directions = _spread_directions(n, len(low))
    cloud = np.clip((low + high) / 2 + radius * directions, low, high)
    neighbour = cloud.copy()
    neighbour[0] = (low + high) / 2
    return cloud, neighbour


def _spread_directions(n, d):
    """Evenly spread unit vectors: alternating signs, circle, Fibonacci sphere."""
    i = np.arange(n)
    if d == 1:
        return np.where(i % 2 == 0, -1.0, 1.0)[:, None]
    if d == 2:
        angle = 2 * np.pi * i / n
        return np.c_[np.cos(angle), np.sin(angle)]
    if d == 3:
        z = 1 - (2 * i + 1) / n
        angle = np.pi * (1 + 5**0.5) * i
        ring = np.sqrt(1 - z**2)
        return np.c_[ring * np.cos(angle), ring * np.sin(angle), z]
    raise ValueError("Only dimensions 1, 2 and 3 are laid out.")

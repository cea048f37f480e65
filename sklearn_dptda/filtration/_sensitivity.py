"""Sensitivities of filtrations to one replaced point, and pairs that attain them."""

import math

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray


def neighbour_count(m: float, n: int) -> int:
    """Number of neighbours ``k = ceil(m * n)`` that the mass ``m`` stands for.

    A product that exceeds an integer by rounding alone is not rounded up.

    Raises
    ------
    ValueError
        If ``m`` is outside (0, 1].
    """
    if not 0 < m <= 1:
        raise ValueError(f"m must be in (0, 1]; got {m!r}.")
    return min(max(math.ceil(m * n * (1 - 1e-12)), 1), n)


def sensitivity_dtm(m: float, n: int, p: float, diameter: float) -> float:
    """Sup-norm sensitivity of the L^p distance-to-measure on a box.

    With ``k = ceil(m n)``, one replaced point changes the sum of the ``k``
    smallest ``p``-th powers of distances by at most ``diameter**p``, hence the
    distance-to-measure by at most ``(diameter**p / k)**(1/p)``. By stability
    this also bounds the bottleneck distance between the persistence diagrams.

    Parameters
    ----------
    m : float
        Mass, in (0, 1].
    n : int
        Number of points.
    p : float
        Order, at least 1.
    diameter : float
        Largest distance between two points of the box, or the value at which
        distances are capped, whichever is smaller.

    Returns
    -------
    float

    Examples
    --------
    >>> sensitivity_dtm(0.1, 1000, 1, 5.0)
    0.05
    """
    if p < 1:
        raise ValueError(f"p must be at least 1; got {p!r}.")
    return diameter / neighbour_count(m, n) ** (1 / p)


def sensitivity_cech(diameter: float) -> float:
    """Lower bound of the sensitivity of Čech and Rips diagrams (Theorem 5).

    One replaced point can change the diagram by a quarter of the diameter
    whatever the number of points: no amount of data makes these diagrams
    cheap to privatise, which is why there is no private version of them here.

    Parameters
    ----------
    diameter : float
        Diameter of the box.

    Returns
    -------
    float

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological
    data analysis", Theorem 5.
    """
    return diameter / 4


def cech_worst_case(n: int, low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose Čech diagrams differ by a quarter of the diameter.

    All points at one corner, against one of them at the opposite corner: a
    second component appears that lives until half the diameter, a quarter of
    it away from the diagonal.

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
    m: float, n: int, low: ArrayLike, high: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose distance-to-measure diagrams differ most.

    Exactly ``k = ceil(m n)`` points sit at one corner and the others at the
    opposite one; replacing one of the ``k`` by a point of the far corner
    raises the minimum at the corner from zero to ``diameter / k``, or to
    ``max_distance / k`` where distances are capped.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)

    Notes
    -----
    The birth of one component of dimension 0 moves by the full sensitivity.
    Where the other corner holds at least ``k`` points as well, this component
    is the second one: its persistence must exceed the shift for the distance
    to show, which it does as soon as ``k > 4``.
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    k = neighbour_count(m, n)
    cloud = np.tile(high, (n, 1))
    cloud[:k] = low
    neighbour = cloud.copy()
    neighbour[0] = high
    return cloud, neighbour


def dtm_worst_case_loop(n: int, low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose diagrams of the top dimension differ much.

    All points lie on the sphere that is inscribed in the box (two points in
    dimension 1); one of them moves to its centre. The distance-to-measure at
    the centre, the death of the class of dimension ``d - 1``, falls from the
    radius by ``radius / k``.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    d = len(low)
    radius = (high - low).min() / 2
    directions = _spread_directions(n, d)
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


def sensitivity_kernel_distance(
    n: int, bandwidth: float | None = None, diameter: float | None = None, squared: bool = False
) -> float:
    """Sup-norm sensitivity of the Gaussian kernel distance.

    One replaced point moves the mean embedding by ``(phi(X') - phi(X)) / n``,
    of norm at most ``sqrt(2 - 2 K(X, X')) / n``; by the triangle inequality
    the distance to the embedding moves by no more, and a cloud that sits at
    one point attains it. The squared distance moves by up to
    ``(4 - 2 / n) / n``: over a range of 2 against ``sqrt(2)`` this is worse,
    so the filtration uses the plain distance.

    Parameters
    ----------
    n : int
        Number of points.
    bandwidth, diameter : float or None
        With both, ``K(X, X') >= exp(-diameter**2 / (2 bandwidth**2))``
        sharpens the bound; without, the kernel is only known to be
        non-negative.
    squared : bool, default=False
        Return the sensitivity of the squared distance.

    Returns
    -------
    float
    """
    step = math.sqrt(2)
    if bandwidth is not None and diameter is not None:
        step = math.sqrt(-2 * math.expm1(-((diameter / bandwidth) ** 2) / 2))
    if squared:
        # (2/n) [K(x,X') - K(x,X) - (1/n) sum_j (K(Xj,X') - K(Xj,X))], the sum over the n - 1
        # points that stay, and every difference of kernel values at most 1 - lowest.
        return step * step * (2 - 1 / n) / n
    return step / n

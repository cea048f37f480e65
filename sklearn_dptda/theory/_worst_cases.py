"""Clouds that attain the sensitivities, and those of the paper, with midpoints.

Proof: doc/theory/accuracy.md, "Pairs of clouds for the L1 distance-to-measure".
Proof: doc/theory/accuracy.md, "Čech and Rips complexes".
Proof: doc/theory/sensitivity.md, "Diagrams".
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration._dtm import neighbour_count
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._clouds import check_cloud


def sensitivity_cech(diameter: float) -> float:
    """Sensitivity of the components of Čech diagrams (Theorem 5).

    One replaced point can change them by a quarter of the diameter whatever
    the number of points (those of Rips, whose scale is twice that, by a half),
    and by no more: no amount of data makes these diagrams cheap to privatise,
    which is why there is no private version of them here. It is attained
    wherever two records can be a diameter apart (:func:`cech_worst_case`); the
    pair of the theorem has a point in the middle of them, and so needs a
    convex set.

    Parameters
    ----------
    diameter : float
        Diameter of the box, or of any set of possible records.

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
    it away from the diagonal. The set of possible records need not be convex:
    it needs the two corners alone.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)
    """
    return _with_moved(n, 1, low, high, n_low=n, to=high)


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
    return _with_moved(n, n_moved, low, high, n_low=neighbour_count(m, n), to=high)


def _with_moved(
    n: int, n_moved: int, low: ArrayLike, high: ArrayLike, *, n_low: int, to: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Cloud of ``n_low`` points at ``low`` and the others at ``high``, and with some moved."""
    cloud = np.tile(np.asarray(high, dtype=float), (n, 1))
    cloud[:n_low] = low
    moved = cloud.copy()
    moved[:n_moved] = to
    return cloud, moved


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


def _spread_directions(n: int, d: int) -> FloatArray:
    """Evenly spread unit vectors: alternating signs, circle, Fibonacci sphere."""
    i = np.arange(n)
    if d == 1:
        return np.where(i % 2 == 0, -1.0, 1.0)[:, None]
    if d == 2:
        angle = 2 * np.pi * i / n
        return np.c_[np.cos(angle), np.sin(angle)]
    if d == 3:
        z = 1 - (2 * i + 1) / n
        golden = np.pi * (1 + 5**0.5) * i
        ring = np.sqrt(1 - z**2)
        return np.c_[ring * np.cos(golden), ring * np.sin(golden), z]
    raise ValueError("Only dimensions 1, 2 and 3 are laid out.")


def dtm_midpoint_case(
    n: int, low: ArrayLike, high: ArrayLike, n_moved: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Two places of points, of which some move to the middle between them.

    With ``k = ceil(m n)`` of at most ``n // 2``, the components of the L1
    distance-to-measure on a convex set are ``min(n_moved / k, 1 / 2) *
    diameter / 2`` apart in bottleneck distance, and there is nothing in the
    other dimensions. Where the middle is no possible record, as in a set that
    is not convex there, the pair does not exist: of records at the two places
    alone no neighbours are ``diameter / (2 k)`` apart for an odd ``k``.

    Parameters
    ----------
    n : int
        Number of points, at least 2.
    low, high : array-like of shape (d,)
        The two places, in the units of the data.
    n_moved : int, default=1
        How many of the ``n // 2`` points at ``low`` move: the clouds' Hamming
        distance.

    Returns
    -------
    cloud, other : ndarray of shape (n, d)

    Raises
    ------
    ValueError
        If more points are to move than there are.

    See Also
    --------
    dtm_worst_case : Its diagrams are twice as far apart, or further.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis", Proposition 9 and Lemma 26.

    Examples
    --------
    >>> from sklearn_dptda.theory import dtm_midpoint_case
    >>> cloud, other = dtm_midpoint_case(4, [0.0], [1.0])
    >>> cloud.ravel(), other.ravel()
    (array([0., 0., 1., 1.]), array([0.5, 0. , 1. , 1. ]))
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if not 1 <= n_moved <= n // 2:
        raise ValueError(
            f"n_moved must be from 1 to n // 2 = {n // 2}, the points at low; got "
            f"{quoted(n_moved)}."
        )
    return _with_moved(n, n_moved, low, high, n_low=n // 2, to=(low + high) / 2)


def cech_midpoint_case(X: ArrayLike) -> FloatArray:
    """Add a point to a cloud, in the middle of its two last components.

    The Čech components, and those of the Vietoris-Rips filtration by radius,
    differ by at least ``min(delta, d / 2)`` from those of ``X`` in bottleneck
    distance: ``d`` is the last finite death, and ``delta`` what it is above
    the last but one that is smaller, or above zero. The clouds are neighbours
    under addition of a point, where the middle is a possible record: in convex
    sets.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The cloud, of at least two different points.

    Returns
    -------
    ndarray of shape (n + 1, d)

    Raises
    ------
    ValueError
        If all points are the same, or an array is not finite and
        two-dimensional.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis", Lemma 4.

    Examples
    --------
    >>> from sklearn_dptda.theory import cech_midpoint_case
    >>> cech_midpoint_case([[0.0, 0.0], [4.0, 0.0], [5.0, 0.0]])[-1]
    array([2., 0.])
    """
    X = check_cloud(X, "X", min_points=2)
    merges = linkage(pdist(X), "single")
    last = merges[-1, 2]
    if not last > 0:
        raise ValueError("X must have two different points.")
    component = fcluster(merges, np.nextafter(last, 0), "distance")
    apart = np.where(component[:, None] == component, np.inf, cdist(X, X))
    i, j = np.unravel_index(apart.argmin(), apart.shape)
    return np.vstack([X, (X[i] + X[j]) / 2])

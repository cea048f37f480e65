"""Clouds that attain the sensitivities, and the paper's clouds with midpoints.

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
from sklearn_dptda.utils._validation import check_cloud


def sensitivity_cech(diameter: float) -> float:
    """Sensitivity of the components of Čech diagrams (Theorem 5).

    Replacing one point can change the components by a quarter of the diameter, whatever
    the number of points, and by no more. For Rips diagrams, whose scale is twice as large,
    it is half the diameter. More data do not reduce this sensitivity, which is why the
    library has no private version of these diagrams. The sensitivity is attained if two
    possible records are a diameter apart (:func:`cech_worst_case`).

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

    Examples
    --------
    >>> from sklearn_dptda.published import sensitivity_cech
    >>> sensitivity_cech(2.0)
    0.5
    """
    return diameter / 4


def cech_worst_case(n: int, low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose Čech diagrams differ by a quarter of the diameter.

    In the first cloud, all points are at one corner of a box. In the second one, one of
    them is at the opposite corner. The set of possible records need not be convex; it only
    has to contain the two corners.

    Parameters
    ----------
    n : int
        Number of points.
    low, high : array-like of shape (d,)
        Two opposite corners of the box, in the units of the data.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)
        The two clouds, which differ in one point.

    Examples
    --------
    >>> from sklearn_dptda.published import cech_worst_case
    >>> cloud, neighbour = cech_worst_case(3, [0.0, 0.0], [1.0, 1.0])
    >>> neighbour
    array([[1., 1.],
           [0., 0.],
           [0., 0.]])
    """
    return _with_moved(n, 1, low, high, n_low=n, to=high)


def dtm_worst_case(
    m: float, n: int, low: ArrayLike, high: ArrayLike, n_moved: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose distance-to-measure diagrams differ most.

    Exactly ``k = ceil(m n)`` points are at one corner of a box, and the others are at the
    opposite corner. Moving ``n_moved`` of the ``k`` points to the far corner raises the
    minimum at the corner from zero to ``n_moved * diameter / k``, or to
    ``n_moved * max_distance / k`` if distances are capped. The set of possible records need
    not be convex; it only has to contain the two corners.

    Parameters
    ----------
    m : float
        Mass of the distance-to-measure, in (0, 1].
    n : int
        Number of points.
    low, high : array-like of shape (d,)
        Two opposite corners of the box, in the units of the data.
    n_moved : int, default=1
        Number of points that move to the opposite corner, up to ``k``. It is the
        Hamming distance of the clouds.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)
        The two clouds, which differ in ``n_moved`` points.

    Notes
    -----
    With one moved point, the birth of one component moves by the full sensitivity. If the
    other corner has at least ``k`` points as well, the diagrams are that far apart for
    ``k >= 4`` (:doc:`proof </theory/accuracy>`).

    Examples
    --------
    >>> from sklearn_dptda.published import dtm_worst_case
    >>> cloud, neighbour = dtm_worst_case(0.5, 4, [0.0], [1.0])
    >>> cloud.ravel(), neighbour.ravel()
    (array([0., 0., 1., 1.]), array([1., 0., 1., 1.]))
    """
    return _with_moved(n, n_moved, low, high, n_low=neighbour_count(m, n), to=high)


def _with_moved(
    n: int, n_moved: int, low: ArrayLike, high: ArrayLike, *, n_low: int, to: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """A cloud with ``n_low`` points at ``low`` and the others at ``high``, and its neighbour."""
    cloud = np.tile(np.asarray(high, dtype=float), (n, 1))
    cloud[:n_low] = low
    moved = cloud.copy()
    moved[:n_moved] = to
    return cloud, moved


def dtm_worst_case_loop(n: int, low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Neighbouring clouds whose diagrams of the top dimension differ much.

    All points lie on the sphere that is inscribed in the box (two points in dimension 1).
    In the second cloud, one of them is at the centre, which must be a possible record. The
    death of the class of dimension ``d - 1`` falls from the radius by ``radius / k``, with
    ``k = ceil(m n)``.

    Parameters
    ----------
    n : int
        Number of points.
    low, high : array-like of shape (d,)
        Two opposite corners of the box, in the units of the data.

    Returns
    -------
    cloud, neighbour : ndarray of shape (n, d)
        The two clouds, which differ in one point.

    Examples
    --------
    >>> from sklearn_dptda.published import dtm_worst_case_loop
    >>> cloud, neighbour = dtm_worst_case_loop(100, [-1.0, -1.0], [1.0, 1.0])
    >>> cloud.shape, neighbour[0]
    ((100, 2), array([0., 0.]))
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    radius = (high - low).min() / 2
    directions = _spread_directions(n, len(low))
    cloud = np.clip((low + high) / 2 + radius * directions, low, high)
    neighbour = cloud.copy()
    neighbour[0] = (low + high) / 2
    return cloud, neighbour


def _spread_directions(n: int, d: int) -> FloatArray:
    """Evenly spread unit vectors: alternating signs, a circle, or a Fibonacci sphere."""
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
    raise ValueError(f"low and high must have 1, 2 or 3 coordinates; got {d}.")


def dtm_midpoint_case(
    n: int, low: ArrayLike, high: ArrayLike, n_moved: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Two places of points, of which some move to the middle between them.

    With ``k = ceil(m n)`` at most ``n // 2``, the components of the L1 distance-to-measure
    on a convex set are ``min(n_moved / k, 1 / 2) * diameter / 2`` apart in bottleneck
    distance. The diagrams of the other dimensions are empty. The middle must be a possible
    record.

    Parameters
    ----------
    n : int
        Number of points, at least 2.
    low, high : array-like of shape (d,)
        The two places, in the units of the data.
    n_moved : int, default=1
        Number of the ``n // 2`` points at ``low`` that move. It is the Hamming
        distance of the clouds.

    Returns
    -------
    cloud : ndarray of shape (n, d)
        The points at the two places.
    other : ndarray of shape (n, d)
        The cloud in which ``n_moved`` points have moved to the middle.

    See Also
    --------
    dtm_worst_case : Clouds whose diagrams are at least twice as far apart.

    References
    ----------
    Kang, Kim, Sohn, Awan, Proposition 9 and Lemma 26.

    Examples
    --------
    >>> from sklearn_dptda.published import dtm_midpoint_case
    >>> cloud, other = dtm_midpoint_case(4, [0.0], [1.0])
    >>> cloud.ravel(), other.ravel()
    (array([0., 0., 1., 1.]), array([0.5, 0. , 1. , 1. ]))
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if not 1 <= n_moved <= n // 2:
        raise ValueError(
            f"n_moved must be from 1 to n // 2 = {n // 2}, the number of points at low; got "
            f"{quoted(n_moved)}."
        )
    return _with_moved(n, n_moved, low, high, n_low=n // 2, to=(low + high) / 2)


def cech_midpoint_case(X: ArrayLike) -> FloatArray:
    """Add a point to a cloud, in the middle of its two last components.

    The components of the Čech filtration, and those of the Vietoris-Rips filtration
    by radius, differ by at least ``min(delta, d / 2)`` from those of ``X`` in
    bottleneck distance. Here ``d`` is the last finite death, and ``delta`` is its
    difference to the largest death below it, or to zero. The clouds are neighbours
    under addition of a point if the middle is a possible record, as in convex sets.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The cloud, of at least two different points.

    Returns
    -------
    ndarray of shape (n + 1, d)

    References
    ----------
    Kang, Kim, Sohn, Awan, Lemma 4.

    Examples
    --------
    >>> from sklearn_dptda.published import cech_midpoint_case
    >>> cech_midpoint_case([[0.0, 0.0], [4.0, 0.0], [5.0, 0.0]])[-1]
    array([2., 0.])
    """
    X = check_cloud(X, "X", min_points=2)
    merges = linkage(pdist(X), "single")
    last = merges[-1, 2]
    if not last > 0:
        raise ValueError("X must have at least two different points.")
    component = fcluster(merges, np.nextafter(last, 0), "distance")
    apart = np.where(component[:, None] == component, np.inf, cdist(X, X))
    i, j = np.unravel_index(apart.argmin(), apart.shape)
    return np.vstack([X, (X[i] + X[j]) / 2])

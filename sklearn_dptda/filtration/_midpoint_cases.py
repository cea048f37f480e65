"""Pairs of clouds of which one has points in the middle of the other's two last components."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils import check_cloud


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
    >>> from sklearn_dptda.filtration import dtm_midpoint_case
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
    cloud = np.tile(high, (n, 1))
    cloud[: n // 2] = low
    other = cloud.copy()
    other[:n_moved] = (low + high) / 2
    return cloud, other


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
    >>> from sklearn_dptda.filtration import cech_midpoint_case
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

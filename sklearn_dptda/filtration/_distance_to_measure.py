"""The distance to the empirical measure, as a plain function."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration._filtration_sensitivity import neighbour_count
from sklearn_dptda.filtration._nearest import nearest_squared
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils import check_cloud


def distance_to_measure(
    X: ArrayLike, query: ArrayLike, m: float, p: float = 1, *, memory: float = 256.0
) -> FloatArray:
    """L^p distance to the empirical measure of a point cloud.

    The ``p``-mean of the distances from a query to its ``ceil(m n)`` nearest
    points.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The cloud.
    query : array-like of shape (q, d)
        Where to evaluate.
    m : float
        Mass, in (0, 1].
    p : float, default=1
        Order, at least 1.
    memory : float, default=256.0
        Bound of the working memory, in MiB.

    Returns
    -------
    ndarray of shape (q,)
        In the units of the data. An exact statistic of the cloud, *not*
        private.

    Raises
    ------
    ValueError
        If ``m`` is outside (0, 1], ``p`` is below 1, or an array is not finite
        and two-dimensional.

    References
    ----------
    F. Chazal, D. Cohen-Steiner, Q. Mérigot, "Geometric inference for
    probability measures", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda import distance_to_measure
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> circle = 1.5 * np.c_[np.cos(angle), np.sin(angle)]
    >>> distance_to_measure(circle, [[0.0, 0.0]], m=0.2)
    array([1.5])
    """
    X = check_cloud(X, "X", min_points=1)
    query = check_cloud(query, "query", X.shape[1], min_points=1)
    if not p >= 1:
        raise ValueError(f"p must be at least 1; got {quoted(p)}.")
    k = neighbour_count(m, len(X))
    values = np.empty(len(query))
    for block, squared in nearest_squared(X, query, k, memory):
        values[block] = np.mean(squared ** (p / 2), axis=1) ** (1 / p)
    return values

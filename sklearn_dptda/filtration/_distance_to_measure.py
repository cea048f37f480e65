"""Squared distances from queries to their k nearest points, in bounded memory."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration._sensitivities import neighbour_count
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._clouds import check_cloud

# One element of a k-d tree query costs about as much as this many elements of
# a partitioned row (measured for d = 2, 3 and n from 10^3 to 10^5).
_TREE_COST = 40


def tree_is_cheaper(n, k):
    """Whether a k-d tree query beats the partition of all distances."""
    return _TREE_COST * k < n


def nearest_squared(points, queries, k, memory):
    """Yield slices of the queries and their squared distances to the ``k`` nearest points.

    They are in no particular order, in at most ``memory`` MiB, down to one query at a time. Every
    squared distance is one deterministic function of its query and its point, whatever the other
    points are: replacing a point replaces one number per query.
    """
    n = len(points)
    tree = KDTree(points) if tree_is_cheaper(n, k) else None
    per_query = 8 * (2 * n if tree is None else 4 * k)
    # Blocks beyond a few MiB leave the processor's cache and gain nothing.
    rows = max(1, int(min(memory * 2**20, 16 * 2**20) // per_query))
    for start in range(0, len(queries), rows):
        block = slice(start, min(start + rows, len(queries)))
        yield block, _block(points, tree, queries[block], k)


def _block(points, tree, queries, k):
    if tree is not None:
        distances, _ = tree.query(queries, k)
        return distances.reshape(len(queries), k) ** 2
    squared = np.zeros((len(queries), len(points)))
    work = np.empty_like(squared)
    for axis in range(points.shape[1]):
        np.subtract(queries[:, axis, None], points[:, axis], out=work)
        np.multiply(work, work, out=work)
        squared += work
    if k < len(points):
        squared.partition(k - 1, axis=1)
    return squared[:, :k]


# The distance to the empirical measure, as a plain function.


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

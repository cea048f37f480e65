"""Squared distances from queries to their k nearest points, in bounded memory."""

import numpy as np
from scipy.spatial import KDTree

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

"""Nearest neighbours of rows, from coordinates or from precomputed distances."""

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import coo_array, issparse
from scipy.spatial import KDTree
from sklearn.neighbors import NearestNeighbors

# Beyond it trees of boxes are slower than looking at everything.
_MOST_FEATURES = 15
# Rows of a box that is not cut any more: fewer boxes are opened, and all of one looked at.
_LEAF_SIZE = 40


class Neighbours:
    """Nearest rows among those of a table, in any metric of scikit-learn's."""

    def __init__(self, X, metric, n_jobs):
        self.n_rows, self.n_jobs = len(X), n_jobs
        # Products of rows far from the origin would lose their differences.
        self._middle = X.mean(axis=0) if metric == "euclidean" else 0.0
        X = X - self._middle
        if metric == "euclidean" and X.shape[1] <= _MOST_FEATURES:
            # Cut in the middle of boxes, not of the rows in them: fewer boxes are opened.
            self._index = KDTree(X, _LEAF_SIZE, balanced_tree=False)
        else:
            self._index = NearestNeighbors(metric=metric, n_jobs=n_jobs).fit(X)

    def nearest(self, X, k):
        """Distances and indices of the ``k`` nearest rows, the nearest first."""
        k, X = min(k, self.n_rows), X - self._middle
        if not isinstance(self._index, KDTree):
            return self._index.kneighbors(X, k)
        # A list of ranks keeps two dimensions, and is slower.
        ranks = k if k > 1 else [1]
        workers = effective_n_jobs(self.n_jobs)
        if len(X) != self.n_rows:
            return self._index.query(X, ranks, workers=workers)
        # The tree's own rows, as a rule: box by box, what one query has read serves the next.
        order = self._index.indices
        distances, near = np.empty((len(X), k)), np.empty((len(X), k), dtype=np.int64)
        distances[order], near[order] = self._index.query(X[order], ranks, workers=workers)
        return distances, near

    def within(self, X, radius):
        """Indices of the rows within a radius, a list of arrays."""
        X = X - self._middle
        if not isinstance(self._index, KDTree):
            return list(self._index.radius_neighbors(X, radius, return_distance=False))
        workers = effective_n_jobs(self.n_jobs)
        inside = self._index.query_ball_point(X, radius, workers=workers)
        return [np.asarray(near, dtype=np.int64) for near in inside]


class PrecomputedNeighbours:
    """The same from distances of each row to the training rows.

    Sparse distances are those that are stored, the others being infinite.
    """

    def __init__(self, n_rows):
        self.n_rows = n_rows

    def nearest(self, D, k):
        """Distances and indices, the nearest first, as two lists of arrays: rows may run short."""
        if issparse(D):
            rows = [slice(*D.indptr[i : i + 2]) for i in range(D.shape[0])]
            pairs = [(D.data[row], D.indices[row]) for row in rows]
        else:
            everything = np.arange(D.shape[1])
            pairs = [(row, everything) for row in D]
        chosen = [np.argsort(distances, kind="stable")[:k] for distances, _ in pairs]
        return (
            [d[i] for (d, _), i in zip(pairs, chosen, strict=True)],
            [j[i].astype(np.int64) for (_, j), i in zip(pairs, chosen, strict=True)],
        )

    def within(self, D, radius):
        """Indices of the training rows within a radius, a list of arrays."""
        distances, indices = self.nearest(D, self.n_rows)
        return [j[d <= radius] for d, j in zip(distances, indices, strict=True)]


def with_diagonal(D):
    """Sparse distances with a stored distance of each row from itself."""
    entries = D.tocoo()
    missing = np.setdiff1d(np.arange(D.shape[0]), entries.row[entries.row == entries.col])
    data = np.r_[entries.data, np.zeros(len(missing))]
    places = np.r_[entries.row, missing], np.r_[entries.col, missing]
    return coo_array((data, places), D.shape).tocsr()

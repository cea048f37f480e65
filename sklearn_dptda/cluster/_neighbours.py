"""Neighbours of rows, and densities that are computed from them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import coo_array, issparse
from scipy.spatial import KDTree
from sklearn.neighbors import KernelDensity, NearestNeighbors

from sklearn_dptda._typing import FloatArray, IntArray

# Indices of the neighbours of each row, in one array if all rows have the same number of them.
Neighbourhoods: TypeAlias = IntArray | list[IntArray]
# Accuracy only: there is no guarantee that could rest on these constants.
# Number of columns up to which a tree of boxes is faster than a search of all rows. It is also the
# limit of scikit-learn's algorithm="auto".
_MAX_TREE_FEATURES = 15
# Number of rows of a box that is not divided any more: a query opens fewer boxes, and reads all
# rows of each.
_LEAF_SIZE = 40
# Least and largest number of neighbours with n_neighbors="sqrt".
_SQRT_RANGE = 10, 100


class Neighbours:
    """Nearest rows among those of a table, in any metric of scikit-learn."""

    def __init__(self, X: FloatArray, metric: str, n_jobs: int | None) -> None:
        self.n_rows, self.n_jobs = len(X), n_jobs
        # Products of rows far from the origin would lose their differences.
        self._middle = X.mean(axis=0) if metric == "euclidean" else 0.0
        X = X - self._middle
        if metric == "euclidean" and X.shape[1] <= _MAX_TREE_FEATURES:
            # Divide boxes in the middle of the boxes, not of their rows: fewer boxes are opened.
            self._index = KDTree(X, _LEAF_SIZE, balanced_tree=False)
        else:
            self._index = NearestNeighbors(metric=metric, n_jobs=n_jobs).fit(X)

    def nearest(self, X: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
        """Distances and indices of the ``k`` nearest rows, the nearest first."""
        k, X = min(k, self.n_rows), X - self._middle
        if not isinstance(self._index, KDTree):
            return self._index.kneighbors(X, k)
        # A list of ranks keeps two dimensions, but is slower.
        ranks = k if k > 1 else [1]
        workers = effective_n_jobs(self.n_jobs)
        if len(X) != self.n_rows:
            return self._index.query(X, ranks, workers=workers)
        # These are usually the tree's own rows. In the order of the boxes, one query reads what the
        # next one needs.
        order = self._index.indices
        distances, near = np.empty((len(X), k)), np.empty((len(X), k), dtype=np.int64)
        distances[order], near[order] = self._index.query(X[order], ranks, workers=workers)
        return distances, near

    def within(self, X: FloatArray, radius: float) -> list[IntArray]:
        """Indices of the rows within a radius, as a list of arrays."""
        X = X - self._middle
        if not isinstance(self._index, KDTree):
            return list(self._index.radius_neighbors(X, radius, return_distance=False))
        workers = effective_n_jobs(self.n_jobs)
        inside = self._index.query_ball_point(X, radius, workers=workers)
        return [np.asarray(near, dtype=np.int64) for near in inside]


class PrecomputedNeighbours:
    """Nearest rows, from distances to the training rows; missing sparse ones are infinite."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows

    def nearest(self, D: Any, k: int) -> tuple[list[FloatArray], list[IntArray]]:
        """Distances and indices of at most ``k`` nearest rows, the nearest first."""
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

    def within(self, D: Any, radius: float) -> list[IntArray]:
        """Indices of the training rows within a radius, as a list of arrays."""
        distances, indices = self.nearest(D, self.n_rows)
        return [j[d <= radius] for d, j in zip(distances, indices, strict=True)]


def with_diagonal(D: Any) -> Any:
    """Sparse distances with a stored distance of each row from itself."""
    entries = D.tocoo()
    missing = np.setdiff1d(np.arange(D.shape[0]), entries.row[entries.row == entries.col])
    data = np.r_[entries.data, np.zeros(len(missing))]
    places = np.r_[entries.row, missing], np.r_[entries.col, missing]
    return coo_array((data, places), D.shape).tocsr()


def make_search(X: Any, metric: str, n_jobs: int | None) -> Neighbours | PrecomputedNeighbours:
    """Search for nearest rows among those of a table, or of a matrix of distances."""
    if metric == "precomputed":
        return PrecomputedNeighbours(X.shape[0])
    return Neighbours(X, metric, n_jobs)


@dataclass(frozen=True)
class NeighbourChoice:
    """Neighbours of rows among those of a search: a number of nearest rows, or all in a radius.

    ``n_distances`` of each row are for its density: None means one for each neighbour.
    """

    search: Neighbours | PrecomputedNeighbours
    n_neighbors: int | str
    radius: float | None
    n_distances: int | None

    def near(self, X: Any) -> Neighbourhoods:
        """Indices of the neighbours of each row."""
        if self.radius is not None:
            return self.search.within(X, self.radius)
        return self.near_and_distances(X)[0]

    def near_and_distances(self, X: Any) -> tuple[Neighbourhoods, Any]:
        """Indices of the neighbours of each row, and distances for its density."""
        if self.n_neighbors == "sqrt":
            n_near = int(np.clip(math.isqrt(self.search.n_rows), *_SQRT_RANGE))
        else:
            n_near = int(self.n_neighbors)
        n_distances = n_near if self.n_distances is None else self.n_distances
        # Always ask for the same number, since ties depend on it.
        n_asked = max(n_near if self.radius is None else 0, n_distances)
        distances, near = self.search.nearest(X, n_asked) if n_asked else (None, None)
        if n_distances:
            distances = _first(distances, n_distances)
        if self.radius is not None:
            return self.search.within(X, self.radius), distances
        return _first(near, n_near), distances


def _first(rows: Any, k: int) -> Any:
    return rows[:, :k] if isinstance(rows, np.ndarray) else [row[:k] for row in rows]


def row_densities(
    X: Any, density: Any, distances: Any, bandwidth: float | str, metric: str
) -> FloatArray:
    """Density of each row, or its logarithm, by the name of a density or a function of the rows.

    ``distances`` to the nearest rows are for the distance-to-measure.
    """
    if callable(density):
        values = np.asarray(density(X), dtype=float)
        if values.shape != (X.shape[0],) or not np.isfinite(values).all():
            raise ValueError("a density function must return one finite number for each row.")
        return values
    if density in ("kde", "log_kde"):
        logs = KernelDensity(bandwidth=bandwidth, metric=metric).fit(X).score_samples(X)
    else:
        # The exponent that converts a distance to a density.
        dimension = 2 if metric == "precomputed" else X.shape[1]
        logs = -0.5 * dimension * _log_mean_squares(distances)
    if not np.isfinite(logs).all():
        raise ValueError(
            f"density={density!r} is not finite: with metric={metric!r}, distances of these rows "
            "are undefined or overflow. Scale the rows, or choose another metric."
        )
    return logs if density.startswith("log") else np.exp(logs - logs.max())


def _log_mean_squares(distances: FloatArray | Sequence[FloatArray]) -> FloatArray:
    """Logarithms of the mean squares of the distances of each row, whose squares may overflow."""
    if isinstance(distances, np.ndarray):
        largest = distances.max() or 1.0
        means = np.square(distances / largest).mean(axis=1)
    else:
        largest = max(row.max() for row in distances) or 1.0
        means = np.array([np.square(row / largest).mean() for row in distances])
    positive = means[means > 0]
    # Copies of a row are nearer than all other rows, but must not be infinitely near.
    floor = 0.25 * positive.min() if len(positive) else 1.0
    return np.log(np.maximum(means, floor)) + 2 * np.log(largest)

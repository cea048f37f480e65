"""Which rows are a row's neighbours, and to which ones distances make its density."""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_dptda.cluster._peaks._nearest_rows import Neighbours, PrecomputedNeighbours

_FEWEST, _MOST = 10, 100


def make_search(X, metric, n_jobs):
    """Search for nearest rows among those of a table, or of a table of distances."""
    if metric == "precomputed":
        return PrecomputedNeighbours(X.shape[0])
    return Neighbours(X, metric, n_jobs)


@dataclass(frozen=True)
class NeighbourChoice:
    """Neighbours of rows among those of a search: so many of the nearest, or all in a radius.

    ``n_distances`` are needed of each row for its density: None, one for each neighbour; 0, none.
    """

    search: Neighbours | PrecomputedNeighbours
    n_neighbors: int | str
    radius: float | None
    n_distances: int | None

    def near(self, X):
        """Indices of the neighbours of each row."""
        if self.radius is not None:
            return self.search.within(X, self.radius)
        return _first(self.search.nearest(X, self._n_asked())[1], self._n_near())

    def near_and_distances(self, X):
        """Indices of the neighbours of each row, and distances for its density."""
        n_asked, n_distances = self._n_asked(), self._n_measured()
        distances, near = self.search.nearest(X, n_asked) if n_asked else (None, None)
        if n_distances:
            distances = _first(distances, n_distances)
        if self.radius is not None:
            return self.search.within(X, self.radius), distances
        return _first(near, self._n_near()), distances

    def _n_near(self):
        if self.n_neighbors != "sqrt":
            return int(self.n_neighbors)
        return min(max(_FEWEST, math.isqrt(self.search.n_rows)), _MOST)

    def _n_measured(self):
        return self._n_near() if self.n_distances is None else self.n_distances

    def _n_asked(self):
        """How many neighbours a search is asked for: the same always, since ties depend on it."""
        return max(self._n_near() if self.radius is None else 0, self._n_measured())


def with_themselves(near):
    """Neighbours of each row, and first of all itself where it is missing."""
    return [row if i in row else np.r_[i, row] for i, row in enumerate(near)]


def _first(rows, k):
    return rows[:, :k] if isinstance(rows, np.ndarray) else [row[:k] for row in rows]

"""Finite metric spaces: distances, trees, nets, and largest sets of separated points.

Proof: doc/theory/metric_privacy.md, "Scales".
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.metrics import pairwise_distances

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import bottleneck_distance, farthest_first, wasserstein_distance
from sklearn_dptda.utils._validation import refuse_dask

# Share of the largest distance by which rounding may break a triangle inequality. It is thousands
# of times what a few sums in double precision lose, and far below any distance that was measured.
METRIC_TOLERANCE = 1e-9
# Numbers that differ by less than this share are equal up to the rounding of some operations.
ROUNDING = 1e-12
# Number of points up to which all triangles are checked. With more points, only those with some
# corners are checked; the second number is that of these corners.
_MAX_POINTS_ALL_TRIANGLES, _N_CORNERS = 600, 200
# Number of entries of a matrix that are processed together: 32 MiB in double precision.
_MAX_NUMBERS_AT_A_TIME = 1 << 22
# Number of points up to which independent sets are searched exactly.
EXACT_POINTS = 30


def check_distances(D: ArrayLike, name: str = "D", *, all_triangles: bool = False) -> FloatArray:
    """Refuse a matrix that is not a metric, and say which entries are wrong.

    Of more than 600 points, only triangles with one of 200 corners are checked. A privacy guarantee
    that depends on the distances needs ``all_triangles``, in cubic time.
    """
    try:
        D = np.asarray(D, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a square matrix of distances, of numbers.") from None
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise ValueError(f"{name} must be a square matrix of distances; got the shape {D.shape}.")
    if len(D) == 0:
        raise ValueError(f"{name} is empty, but a space must have at least one point.")
    if not np.isfinite(D).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    if (D < 0).any():
        i, j = np.argwhere(D < 0)[0]
        raise ValueError(f"{name}[{i}, {j}] is negative, but distances must not be negative.")
    slack = METRIC_TOLERANCE * D.max()
    if (np.diagonal(D) > slack).any():
        i = int(np.argmax(np.diagonal(D)))
        raise ValueError(
            f"{name}[{i}, {i}] is positive, but the distance of a point from itself must be zero."
        )
    if (np.abs(D - D.T) > slack).any():
        i, j = np.argwhere(np.abs(D - D.T) > slack)[0]
        raise ValueError(f"{name} is not symmetric at the points {i} and {j}.")
    mean: FloatArray = (D + D.T) / 2
    np.fill_diagonal(mean, 0.0)
    check_all = all_triangles or len(mean) <= _MAX_POINTS_ALL_TRIANGLES
    n_corners = len(mean) if check_all else _N_CORNERS
    # Shortest paths repair what rounding breaks, so that all that follows is exact.
    shortest = _shortest_paths(mean, np.linspace(0, len(mean) - 1, n_corners).astype(int))
    if (mean - shortest).max() > slack:
        i, j = np.unravel_index(int((mean - shortest).argmax()), mean.shape)
        middle = int((mean[i] + mean[j]).argmin())
        raise ValueError(
            f"{name} violates the triangle inequality: from {i} to {j} it is {mean[i, j]:.6g}, but "
            f"by way of {middle} it is {mean[i, middle] + mean[middle, j]:.6g}."
        )
    return shortest


def _shortest_paths(D: FloatArray, middles: IntArray) -> FloatArray:
    """Lengths of the shortest paths through the given points, by Floyd and Warshall's recursion.

    SciPy's ``shortest_path`` treats distances of at most 1e-8 as missing edges.
    """
    out, by_middle = D.copy(), np.empty_like(D)
    for middle in middles:
        np.add(out[:, middle, None], out[middle], out=by_middle)
        np.minimum(out, by_middle, out=out)
    return out


def metric_closure(D: FloatArray, candidates: FloatArray) -> FloatArray:
    """Lengths of the shortest paths from inputs to candidates, through any candidate.

    A metric remains as it is. Whatever else ``D`` is, two rows then differ, up to a constant, by no
    more than the distances of the candidates.
    """
    out = D.copy()
    for middle, row in enumerate(candidates):
        np.minimum(out, D[:, middle, None] + row, out=out)
    return out


def check_pair(
    D1: ArrayLike, D2: ArrayLike | None = None, names: tuple[str, str] = ("D1", "D2")
) -> tuple[FloatArray, FloatArray]:
    """Distances of privacy and of accuracy on the same points, one object if they are equal."""
    D1 = check_distances(D1, names[0])
    if D2 is None:
        return D1, D1
    D2 = check_distances(D2, names[1])
    if D1.shape != D2.shape:
        raise ValueError(f"{names[0]} has {len(D1)} points, but {names[1]} has {len(D2)}.")
    return D1, D1 if np.array_equal(D1, D2) else D2


def check_alpha(alpha: float) -> float:
    """Return ``alpha`` as a float, or refuse it."""
    alpha = float(alpha)
    if not 0 < alpha < np.inf:
        raise ValueError(f"alpha must be positive and finite; got {quoted(alpha)}.")
    return alpha


def check_places(inputs: ArrayLike, n_points: int) -> IntArray:
    """Return numbers of points, of shape (n_samples,), or refuse them without quoting one."""
    message = f"inputs must be a list of numbers of points: integers from 0 to {n_points - 1}."
    refuse_dask(inputs, "inputs")
    try:
        places = np.asarray(inputs)
    except ValueError:
        raise ValueError(message) from None
    are_integers = places.ndim == 1 and places.dtype.kind in "iu"
    if not are_integers or ((places < 0) | (places >= n_points)).any():
        raise ValueError(message)
    return places.astype(np.int64)


def rows_at_a_time(n_columns: int) -> int:
    """Number of rows of a matrix that are processed together."""
    return max(_MAX_NUMBERS_AT_A_TIME // max(n_columns, 1), 1)


DIAGRAM_METRICS = {"bottleneck": bottleneck_distance, "wasserstein": wasserstein_distance}
# SciPy computes these from differences. The faster products of scikit-learn lose small distances.
_DIRECT = {
    "euclidean": "euclidean",
    "l2": "euclidean",
    "manhattan": "cityblock",
    "cityblock": "cityblock",
    "l1": "cityblock",
    "chebyshev": "chebyshev",
    "linf": "chebyshev",
}
# The other metrics of scikit-learn that obey the triangle inequality.
_METRICS = {"minkowski", "canberra", "hamming", "jaccard"}
# Metrics for which points come nearer if their coordinates do.
LP_METRICS = {*_DIRECT, "minkowski"}


def cross_distances(
    first: Any, second: Any, metric: str | Callable[[FloatArray, FloatArray], float]
) -> FloatArray:
    """Distances, of shape (n_first, n_second), of points or diagrams, by a name or a function."""
    if isinstance(metric, str) and metric in DIAGRAM_METRICS:
        distance = DIAGRAM_METRICS[metric]
        return np.array([[distance(a, b) for b in second] for a in first], dtype=float)
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if metric == "haversine":
        return _great_circles(first, second)
    if not isinstance(metric, str):
        return cdist(first, second, metric)
    if metric in _DIRECT:
        return cdist(first, second, _DIRECT[metric])
    if metric not in _METRICS:
        known = ", ".join(sorted({*DIAGRAM_METRICS, *_DIRECT, *_METRICS, "haversine"}))
        raise ValueError(f"metric must be one of {known}, or a function; got {quoted(metric)}.")
    return pairwise_distances(first, second, metric=metric)


def _great_circles(first: FloatArray, second: FloatArray) -> FloatArray:
    """Angles between points of a sphere given by latitude and longitude, in radians.

    Chords to a point and to its antipode serve, since the haversine formula loses digits.
    """
    if first.shape[1] != 2 or second.shape[1] != 2:
        raise ValueError('metric="haversine" takes two columns: latitude and longitude.')
    first, second = _on_sphere(first), _on_sphere(second)
    return np.asarray(2 * np.arctan2(cdist(first, second), cdist(first, -second)))


def _on_sphere(angles: FloatArray) -> FloatArray:
    latitude, longitude = angles.T
    x, y = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude)
    return np.column_stack([x, y, np.sin(latitude)])


def linkage_of(D: FloatArray, method: Literal["single", "complete"]) -> FloatArray | None:
    """Linkage of a matrix of distances, or None for a single point, which has no tree.

    Clusters of complete linkage at a height have no larger a diameter. Clusters of single linkage
    at a height are farther apart than it.
    """
    return linkage(squareform(D, checks=False), method) if len(D) > 1 else None


def cells_of_tree(tree: FloatArray | None, height: float) -> IntArray:
    """Number of the cluster of each point at a height, from 0."""
    if tree is None:
        return np.zeros(1, dtype=int)
    return np.asarray(fcluster(tree, height, "distance") - 1)


def subdominant(D: FloatArray) -> FloatArray:
    """Largest ultrametric that is nowhere above the distances."""
    if len(D) < 3:
        return D
    return np.asarray(squareform(cophenet(linkage_of(D, "single"))))


def is_ultrametric(D: FloatArray, tree: FloatArray | None = None) -> bool:
    """Whether, of any three points, the two longest distances are equal."""
    tree = subdominant(D) if tree is None else tree
    return bool(np.abs(tree - D).max() <= METRIC_TOLERANCE * D.max())


def bit_mask(chosen: BoolArray) -> int:
    """Subset of points, given by a Boolean for each, as the bits of an integer."""
    return sum(1 << int(i) for i in np.flatnonzero(chosen))


class ExactPacking:
    """Largest subsets, of subsets of a few points, whose points are farther apart than a scale.

    A separated set is an independent set of the graph that joins near points.
    """

    def __init__(self, D: FloatArray, scale: float) -> None:
        near = scale >= D
        np.fill_diagonal(near, False)
        self._neighbours = [bit_mask(row) for row in near]
        self._sizes = {0: 0}

    def size(self, subset: int) -> int:
        """Size of the largest separated part of a subset, a bit mask of points."""
        if subset in self._sizes:
            return self._sizes[subset]
        taken, rest, pending = 0, subset, subset
        busiest, degree = None, -1
        while pending:
            point = (pending & -pending).bit_length() - 1
            pending &= pending - 1
            near = self._neighbours[point] & rest
            count = near.bit_count()
            if count <= 1:
                # Some largest set contains this point. Points seen before may have fewer neighbours
                # now.
                taken, rest = taken + 1, rest & ~(near | 1 << point)
                pending = rest
                busiest, degree = None, -1
            elif count > degree:
                busiest, degree = point, count
        if busiest is not None:
            without = rest & ~(1 << busiest)
            taken += max(1 + self.size(without & ~self._neighbours[busiest]), self.size(without))
        self._sizes[subset] = taken
        return taken


class Traversal:
    """Points in farthest-first ``order``; ``radii`` are their distances from those before."""

    def __init__(self, D: FloatArray) -> None:
        # Start from a public place in the middle, since balls around it cover most points.
        start = int(D.max(axis=1).argmin())
        self.order, self.radii = farthest_first(D.__getitem__, len(D), start)

    def net(self, scale: float) -> IntArray:
        """Points that are farther apart than the scale, and within it of all others."""
        return self.order[self.radii > scale]


def cells_of_net(D: FloatArray, net: IntArray) -> IntArray:
    """Cells of points nearest to those of a net, numbered from 0."""
    _, cells = np.unique(D[:, net].argmin(axis=1), return_inverse=True)
    return cells


def nearest_of_cells(D: FloatArray, cells: IntArray) -> FloatArray:
    """Distance of each point from each cell, of shape (n_points, n_cells)."""
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(cells.max() + 1))
    return np.asarray(np.minimum.reduceat(D[:, order], starts, axis=1))

"""Finite metric spaces: their distances, named or given, and their trees."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.metrics import pairwise_distances

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import bottleneck_distance, wasserstein_distance
from sklearn_dptda.utils._frames import refuse_dask

# Of the largest distance: what rounding may break a triangle by.
ROUNDING = 1e-9
_PART = 1 << 22
# Points up to which all triangles are checked everywhere, and the number of their corners else.
_ALL_TRIANGLES, _SOME_TRIANGLES = 600, 200


def check_distances(D: ArrayLike, name: str = "D", *, all_triangles: bool = False) -> FloatArray:
    """Refuse what is no matrix of distances of a metric space, saying which entries are wrong.

    ``all_triangles``: of more than 600 points too, in time that grows with the cube of their
    number, where a promise of privacy stands on them; else those with one of 200 corners.
    """
    D = np.asarray(D, dtype=float)
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise ValueError(f"{name} must be a square matrix of distances; got the shape {D.shape}.")
    if len(D) == 0:
        raise ValueError(f"{name} is empty: a space has at least one point.")
    if not np.isfinite(D).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    if (D < 0).any():
        i, j = np.argwhere(D < 0)[0]
        raise ValueError(f"{name}[{i}, {j}] is negative: distances are not.")
    slack = ROUNDING * D.max()
    if (np.diagonal(D) > slack).any():
        i = int(np.argmax(np.diagonal(D)))
        raise ValueError(f"{name}[{i}, {i}] is positive: a point has no distance from itself.")
    if (np.abs(D - D.T) > slack).any():
        i, j = np.argwhere(np.abs(D - D.T) > slack)[0]
        raise ValueError(f"{name} is not symmetric: see the points {i} and {j}.")
    mean: FloatArray = (D + D.T) / 2
    np.fill_diagonal(mean, 0.0)
    corners = len(mean)
    if corners > _ALL_TRIANGLES and not all_triangles:
        corners = _SOME_TRIANGLES
    # What rounding breaks is mended by the shortest ways, so that all that follows is exact.
    shortest = _shortest_ways(mean, np.linspace(0, len(mean) - 1, corners).astype(int))
    if (mean - shortest).max() > slack:
        i, j = np.unravel_index(int((mean - shortest).argmax()), mean.shape)
        middle = int((mean[i] + mean[j]).argmin())
        raise ValueError(
            f"{name} breaks the triangle inequality: from {i} to {j} it is {mean[i, j]:.6g}, but "
            f"by way of {middle} it is {mean[i, middle] + mean[middle, j]:.6g}."
        )
    return shortest


def _shortest_ways(D, middles):
    """Lengths of the shortest ways by way of some points.

    SciPy's take distances of at most 1e-8 for missing ones.
    """
    out, by_middle = D.copy(), np.empty_like(D)
    for middle in middles:
        np.add(out[:, middle, None], out[middle], out=by_middle)
        np.minimum(out, by_middle, out=out)
    return out


def closed(D, candidates):
    """Distances of inputs from candidates that cannot lie: the shortest ways by any candidate.

    ``D`` has a row for each input, ``candidates`` are their distances from each other. Of a
    metric it changes nothing; of anything else it makes rows that differ by no more than the
    candidates are apart, and by a constant.
    """
    out = D.copy()
    for middle, row in enumerate(candidates):
        np.minimum(out, D[:, middle, None] + row, out=out)
    return out


def check_pair(D1: ArrayLike, D2: ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
    """Distances of privacy and of accuracy on the same points: one object, where they are equal."""
    D1 = check_distances(D1, "D1")
    if D2 is None:
        return D1, D1
    D2 = check_distances(D2, "D2")
    if D1.shape != D2.shape:
        raise ValueError(f"D1 has {len(D1)} points, but D2 has {len(D2)}.")
    return D1, D1 if np.array_equal(D1, D2) else D2


def check_alpha(alpha: float) -> float:
    """Return ``alpha`` as a float, or refuse it."""
    alpha = float(alpha)
    if not 0 < alpha < np.inf:
        raise ValueError(f"alpha must be positive and finite; got {quoted(alpha)}.")
    return alpha


def check_places(inputs: ArrayLike, n_points: int) -> IntArray:
    """Return numbers of points, of shape (n_samples,), or refuse them without quoting one."""
    message = f"inputs must be numbers of points, integers of 0 to {n_points - 1}, in one list."
    refuse_dask(inputs, "inputs")
    try:
        places = np.asarray(inputs)
    except ValueError:
        raise ValueError(message) from None
    if places.ndim != 1 or places.dtype.kind not in "iu":
        raise ValueError(message)
    if ((places < 0) | (places >= n_points)).any():
        raise ValueError(message)
    return places.astype(np.int64)


def rows_at_a_time(n_columns):
    """Rows of a matrix that are worked on together."""
    return max(_PART // max(n_columns, 1), 1)


DIAGRAM_METRICS = {"bottleneck": bottleneck_distance, "wasserstein": wasserstein_distance}
# By differences, and not by the faster products, which lose what is close.
_DIRECT = {
    "euclidean": "euclidean",
    "l2": "euclidean",
    "manhattan": "cityblock",
    "cityblock": "cityblock",
    "l1": "cityblock",
    "chebyshev": "chebyshev",
    "linf": "chebyshev",
}
# Of scikit-learn's other ones, those that obey the triangle inequality.
_METRICS = {"minkowski", "canberra", "hamming", "jaccard"}
# Bringing coordinates nearer to each other brings points nearer.
LP_METRICS = {*_DIRECT, "minkowski"}


def cross_distances(first, second, metric):
    """Distances, of shape (n_first, n_second), of points or diagrams by a name or a function."""
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


def _great_circles(first, second):
    """Angles between points of a sphere given by latitude and longitude, in radians.

    By the chords to a point and to its antipode: the usual formula loses half
    of all digits where points are nearly opposite.
    """
    if first.shape[1] != 2 or second.shape[1] != 2:
        raise ValueError('metric="haversine" takes two columns: latitude and longitude.')
    first, second = _on_sphere(first), _on_sphere(second)
    return 2 * np.arctan2(cdist(first, second), cdist(first, -second))


def _on_sphere(angles):
    latitude, longitude = angles.T
    return np.column_stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )


def tree_of(D, method):
    """Linkage of a matrix of distances; None of one point, which has no tree.

    Clusters of the complete one at a height have no larger a diameter; those of the single one
    are further apart than it.
    """
    return linkage(squareform(D, checks=False), method) if len(D) > 1 else None


def cells_of_tree(tree, height):
    """Number of the cluster at a height of each point, from 0."""
    return np.zeros(1, dtype=int) if tree is None else fcluster(tree, height, "distance") - 1


def subdominant(D: FloatArray) -> FloatArray:
    """Largest ultrametric that is nowhere above the distances."""
    if len(D) < 3:
        return D
    ultrametric: FloatArray = squareform(cophenet(tree_of(D, "single")))
    return ultrametric


def is_ultrametric(D: FloatArray, tree: FloatArray | None = None) -> bool:
    """Whether of any three points the two longest distances are equal."""
    tree = subdominant(D) if tree is None else tree
    return bool(np.abs(tree - D).max() <= ROUNDING * D.max())

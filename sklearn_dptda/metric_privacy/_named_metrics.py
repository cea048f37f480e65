"""Distances of points and of diagrams, by the name of a metric."""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import bottleneck_distance, wasserstein_distance

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

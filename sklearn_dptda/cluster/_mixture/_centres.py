"""Centres without looking at rows: where they start, and where light ones go."""

import numpy as np

from sklearn_dptda.cluster._mixture._standardised import RECORD_RADIUS
from sklearn_dptda.cluster._moments._row_arithmetic import euclidean
from sklearn_dptda.utils._farthest_first import farthest_first


def split_light(centres, moments, spread, rng):
    """Move the centres of light clusters, by noisy counts alone, next to the heaviest ones.

    They go as far as ``spread``, in directions that ``rng`` draws independently of the records.
    """
    centres, counts = centres.copy(), np.maximum(moments.counts, 0.0)
    light = max(3 * moments.sd_count, 0.02 * counts.sum() / len(counts))
    for cell in np.flatnonzero(moments.counts < light):
        heavy = int(np.argmax(counts))
        direction = rng.standard_normal(centres.shape[1])
        direction *= spread / np.linalg.norm(direction)
        centres[cell] = centres[heavy] + direction
        centres[heavy] = centres[heavy] - direction
        counts[heavy] /= 2
        counts[cell] = counts[heavy]
    return centres


def packed_points(n, n_features, rng):
    """Points far apart in the unit ball, without looking at data: farthest points first."""
    candidates = rng.standard_normal((max(2000, 100 * n), n_features))
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    candidates *= rng.uniform(size=(len(candidates), 1)) ** (1 / n_features)
    return candidates[far_apart(candidates, n)]


def far_apart(points, n):
    """Indices of ``n`` points, the first one and then always the farthest from those before."""
    return farthest_first(lambda i: ((points - points[i]) ** 2).sum(axis=1), n)[0]


def initial_centres(data, n, rng):
    """Centres far apart in the ball of twice the size of the records' private ellipsoid."""
    return data.n_features**0.5 * packed_points(n, data.n_features, rng) @ data.axes.T


def inside(centres):
    """Keep centres where records can be."""
    limit = RECORD_RADIUS * centres.shape[1] ** 0.5
    return centres / np.maximum(euclidean(centres) / limit, 1.0)[:, None]

"""Ridgelines between the components of a mixture density: paths that bound every barrier."""

import numpy as np

_N_POINTS = 48
# Looked at more closely where the top is: twice among all pairs, and to the last digits of those
# that count.
_N_ZOOMS, _MOST_ZOOMS = 2, 5
# Points of all ridgelines that are looked at together.
_BATCH = 1 << 16


def ridgeline_barriers(density):
    """Pairs of components, and height and place of the highest point of the ridgeline between them.

    The ridgeline contains all critical points of the two components alone; its greatest height
    bounds the barrier in the whole mixture from above, and is always finite: S. Ray, B. Lindsay,
    "The topography of multivariate normal mixtures", Annals of Statistics 33, 2005.
    """
    pairs = np.column_stack(np.triu_indices(density.n_components, 1))
    size = max(1, _BATCH // _N_POINTS)
    parts = [_highest(density, pairs[i : i + size]) for i in range(0, len(pairs), size)]
    if not parts:
        return pairs, np.empty(0), np.empty((0, density.n_features))
    return pairs, *(np.concatenate(column) for column in zip(*parts, strict=True))


def top_of(density, pair):
    """Height and place of the top of the ridgeline of a pair, to the last digits."""
    (height,), (place,) = _highest(density, np.array([pair]), _MOST_ZOOMS)
    return height, place


def ridgeline(density, pair):
    """Points, 48 of them, of the ridgeline from the centre of one component to that of another."""
    return _ridgelines(density, np.array([pair]), np.linspace(0, 1, _N_POINTS)[None])[0]


def _highest(density, pairs, n_zooms=_N_ZOOMS):
    """Height and place of the highest point of each ridgeline, by zooms."""
    rows = np.arange(len(pairs))
    low, high = np.zeros(len(pairs)), np.ones(len(pairs))
    for _ in range(1 + n_zooms):
        times = np.linspace(low, high, _N_POINTS, axis=1)
        points = _ridgelines(density, pairs, times)
        heights = density.height(points.reshape(-1, density.n_features)).reshape(times.shape)
        top = heights.argmax(axis=1)
        low = times[rows, np.maximum(top - 1, 0)]
        high = times[rows, np.minimum(top + 1, _N_POINTS - 1)]
    return heights[rows, top], points[rows, top]


def _ridgelines(density, pairs, times):
    first, second = density.precisions[pairs[:, 0]], density.precisions[pairs[:, 1]]
    # Even steps of the weights would crowd where the narrower component is.
    _, logs = np.linalg.slogdet(density.precisions)
    scales = np.exp((logs - logs.max()) / density.n_features)
    wide, narrow = times * scales[pairs[:, :1]], (1 - times) * scales[pairs[:, 1:]]
    times = wide / (wide + narrow)
    t = times[..., None]
    matrices = (1 - t)[..., None] * first[:, None] + t[..., None] * second[:, None]
    right = (1 - t) * density.pulls[pairs[:, 0]][:, None] + t * density.pulls[pairs[:, 1]][:, None]
    return np.linalg.solve(matrices, right[..., None])[..., 0]

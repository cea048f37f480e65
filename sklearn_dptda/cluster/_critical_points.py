"""Critical points of a mixture density: modes, and saddles between them."""

import numpy as np
from scipy.sparse.csgraph import connected_components

_MAX_STEPS = 2000
# Squared distances, in units of the curvature, at which points are one.
_SAME = 1e-6
_SETTLED = 1e-20
_NEAR = 1e-8


def climb(density, starts, polish=True):
    """Follow mean shift from each start to its mode, and polish by Newton steps."""
    points = np.array(starts, dtype=float)
    moving = np.arange(len(points))
    spread = np.linalg.inv(np.einsum("k,kij->ij", density.weights, density.covariances))
    for _ in range(_MAX_STEPS):
        moved = density.mean_shift(points[moving])
        step = moved - points[moving]
        points[moving] = moved
        moving = moving[_squared_lengths(step, spread) > _SETTLED]
        if len(moving) == 0:
            break
    return np.array([polished(density, point) for point in points]) if polish else points


def polished(density, point):
    """Newton steps that lower the height; mean shift alone ends slowly where modes are flat."""
    height = density.height(point[None])[0]
    for _ in range(20):
        slope, curvature = density.slope_and_curvature(point)
        try:
            np.linalg.cholesky(curvature)
        except np.linalg.LinAlgError:
            break
        moved = point - np.linalg.solve(curvature, slope)
        lower = density.height(moved[None])[0]
        if not lower < height:
            break
        point, height = moved, lower
    return point


def find_modes(density):
    """Modes that the components' centres climb to, densest first, and the mode of each centre."""
    ends = climb(density, density.means)
    squared = np.array([_squared_lengths(ends - end, _scale(density, end)) for end in ends])
    n, labels = connected_components((squared < _SAME) | (squared.T < _SAME), directed=False)
    first = np.array([np.flatnonzero(labels == i)[0] for i in range(n)])
    order = np.argsort(density.height(ends[first]), kind="stable")
    return ends[first[order]], np.argsort(order)[labels]


def _scale(density, point):
    """Positive definite matrix in which distances near a point are measured."""
    values, vectors = np.linalg.eigh(density.slope_and_curvature(point)[1])
    floor = 1e-9 * np.abs(values).max()
    return (vectors * np.maximum(values, floor)) @ vectors.T


def _squared_lengths(offsets, scale):
    """Squared lengths of rows in the metric of a positive definite matrix."""
    return np.einsum("ni,ij,nj->n", offsets, scale, offsets)


def find_saddle(density, start):
    """Walk to a saddle of index one by eigenvector following.

    Each step climbs along the direction of least curvature and descends along all others. Returns
    the saddle and the vector, of length one in the curvature's units, along which the height falls
    to both sides; None twice if the walk ends elsewhere.
    """
    point = np.array(start, dtype=float)
    for _ in range(100):
        slope, curvature = density.slope_and_curvature(point)
        values, vectors = np.linalg.eigh(curvature)
        signed = np.maximum(np.abs(values), 1e-12 * np.abs(values).max())
        signed[0] = -signed[0]
        along = (vectors.T @ slope) / signed
        # Length in the curvature's own units: at most one half per step.
        length = np.sqrt((along**2 * np.abs(signed)).sum())
        point = point - vectors @ along * min(1.0, 0.5 / max(length, 1e-300))
        if length < 1e-10:
            break
    slope, curvature = density.slope_and_curvature(point)
    values, vectors = np.linalg.eigh(curvature)
    settled = length < 1e-6 and values[0] < 0
    if not settled or (len(values) > 1 and values[1] <= 0):
        return None, None
    return point, vectors[:, 0] / np.sqrt(-values[0])


def basins(density, starts, modes):
    """Index of the mode that each start climbs to, or -1."""
    ends = climb(density, starts, polish=False)
    labels = np.full(len(ends), -1)
    for index, mode in enumerate(modes):
        labels[_squared_lengths(ends - mode, _scale(density, mode)) < _NEAR] = index
    # Where a mode is flat, mean shift stops before it.
    for row in np.flatnonzero(labels < 0):
        index = nearest_mode(density, polished(density, ends[row]), modes)
        labels[row] = -1 if index is None else index
    return labels


def nearest_mode(density, point, modes):
    """Index of the mode that a point coincides with, or None."""
    squared = _squared_lengths(modes - point, _scale(density, point))
    best = int(np.argmin(squared))
    return best if squared[best] < 100 * _SAME else None

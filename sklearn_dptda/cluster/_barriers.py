"""Barriers between the modes of a mixture density."""

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from sklearn_dptda.cluster._critical import descend, find_saddle

_N_POINTS = 48
_N_ZOOMS = 2
# By how much sampling can miss the top of a ridgeline, relative.
_SAMPLING = 1e-6
# Points of all ridgelines that are looked at together.
_BATCH = 1 << 16


def ridgeline_barriers(density):
    """Greatest height on the ridgeline between the centres of each two components.

    The ridgeline contains all critical points of the two components alone;
    its greatest height bounds the barrier in the whole mixture from above, and
    is always finite.

    Parameters
    ----------
    density : MixtureDensity

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2)
    heights : ndarray of shape (n_pairs,)
    places : ndarray of shape (n_pairs, n_features)
        Where the greatest height is.

    References
    ----------
    S. Ray, B. Lindsay, "The topography of multivariate normal mixtures",
    Annals of Statistics 33, 2005.
    """
    pairs = np.column_stack(np.triu_indices(density.n_components, 1))
    size = max(1, _BATCH // _N_POINTS)
    parts = [_highest(density, pairs[i : i + size]) for i in range(0, len(pairs), size)]
    if not parts:
        return pairs, np.empty(0), np.empty((0, density.n_features))
    return pairs, *(np.concatenate(column) for column in zip(*parts, strict=True))


def _highest(density, pairs):
    """Height and place of the highest point of each ridgeline, by two zooms."""
    rows = np.arange(len(pairs))
    low, high = np.zeros(len(pairs)), np.ones(len(pairs))
    for _ in range(1 + _N_ZOOMS):
        times = np.linspace(low, high, _N_POINTS, axis=1)
        points = _ridgeline(density, pairs, times)
        heights = density.height(points.reshape(-1, density.n_features)).reshape(times.shape)
        top = heights.argmax(axis=1)
        low = times[rows, np.maximum(top - 1, 0)]
        high = times[rows, np.minimum(top + 1, _N_POINTS - 1)]
    return heights[rows, top], points[rows, top]


def _ridgeline(density, pairs, times):
    first, second = density.precisions[pairs[:, 0]], density.precisions[pairs[:, 1]]
    pulled = np.einsum("kij,kj->ki", density.precisions, density.means)
    t = times[..., None]
    matrices = (1 - t)[..., None] * first[:, None] + t[..., None] * second[:, None]
    right = (1 - t) * pulled[pairs[:, 0]][:, None] + t * pulled[pairs[:, 1]][:, None]
    return np.linalg.solve(matrices, right[..., None])[..., 0]


def top_barriers(density, modes, owners):
    """Least height of a ridgeline between components of each two modes, unrefined.

    Parameters and results are those of :func:`mode_barriers`.
    """
    n = len(modes)
    heights = np.full((n, n), np.inf)
    places = np.zeros((n, n, density.n_features))
    pairs, tops, points = ridgeline_barriers(density)
    for (i, j), top, point in zip(owners[pairs], tops, points, strict=True):
        if i != j:
            lower_barrier(heights, places, i, j, top, point)
    np.fill_diagonal(heights, density.height(modes))
    return heights, places


def mode_barriers(density, modes, owners):
    """Barrier between each two modes, saddles refined where the merge tree needs them.

    Parameters
    ----------
    density : MixtureDensity
    modes : ndarray of shape (n_modes, n_features)
    owners : ndarray of shape (n_components,)

    Returns
    -------
    heights : ndarray of shape (n_modes, n_modes)
        Symmetric; the diagonal is the height of the mode.
    places : ndarray of shape (n_modes, n_modes, n_features)
        Where each barrier is: a saddle of index one, or the top of a ridgeline.
    """
    heights, places = top_barriers(density, modes, owners)
    n = len(modes)
    refined = set()
    # A refined saddle can join other modes than asked for, and so change the tree.
    for _ in range(n):
        edges = [edge for edge in tree_edges(heights) if edge not in refined]
        if not edges:
            break
        for edge in edges:
            refined.add(edge)
            _refine(density, modes, heights, places, edge)
    return heights, places


def tree_edges(heights):
    """Edges of the minimum spanning tree of the barriers, as (smaller, larger) pairs."""
    # Zero means no edge to SciPy: shift all heights above it.
    shifted = heights - heights.min() + 1.0
    np.fill_diagonal(shifted, 0.0)
    tree = minimum_spanning_tree(np.triu(shifted, 1)).tocoo()
    return sorted((int(i), int(j)) for i, j in zip(tree.row, tree.col, strict=True))


def _refine(density, modes, heights, places, edge):
    saddle, direction = find_saddle(density, places[edge])
    if saddle is None:
        return
    ends = descend(density, saddle, direction, modes)
    if None in ends or ends[0] == ends[1]:
        return
    height = density.height(saddle[None])[0]
    lower_barrier(heights, places, *ends, height, saddle)
    i, j = edge
    tolerance = _SAMPLING * max(1.0, abs(height))
    if set(ends) != {i, j} and height - tolerance <= heights[i, j] <= height:
        # The path leads over this very pass between others: those come first in the tree.
        heights[i, j] = heights[j, i] = np.nextafter(height, np.inf)


def lower_barrier(heights, places, i, j, height, place):
    """Lower the barrier between two modes, if a path is no higher."""
    # The top of a sampled ridgeline is a little too low: a saddle next to it may be above.
    if height <= heights[i, j] + _SAMPLING * max(1.0, abs(height)):
        heights[i, j] = heights[j, i] = height
        places[i, j] = places[j, i] = place

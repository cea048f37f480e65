"""Saddles from the tops of strings between modes."""

import numpy as np
from scipy.sparse.csgraph import connected_components

from sklearn_dptda.cluster._barriers import lower_barrier, top_barriers
from sklearn_dptda.cluster._critical import descend, find_saddle

_N_IMAGES, _N_ROUNDS = 17, 10
# Part of a mean-shift step by which images move, and so stay in order.
_STEP = 0.5


def string_barriers(density, modes, owners):
    """Barrier between each two modes by the string method.

    For each two modes: images on a string between them slide downhill and are
    spaced evenly again; from the highest image Newton steps lead to a saddle
    of index one, and the modes that its two descents end at are joined.

    Parameters
    ----------
    density : MixtureDensity
    modes : ndarray of shape (n_modes, n_features)
    owners : ndarray of shape (n_components,)

    Returns
    -------
    heights : ndarray of shape (n_modes, n_modes)
        Symmetric; the diagonal is the height of the mode. Modes that no chain
        of saddles joins have the height of a ridgeline between them.
    places : ndarray of shape (n_modes, n_modes, n_features)

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing", Algorithm 3.

    W. E, W. Ren, E. Vanden-Eijnden, "Simplified and improved string method",
    2007.
    """
    n = len(modes)
    heights = np.full((n, n), np.inf)
    places = np.zeros((n, n, density.n_features))
    for i, j in zip(*np.triu_indices(n, 1), strict=True):
        saddle, direction = find_saddle(density, _top(density, modes[i], modes[j]))
        if saddle is None:
            continue
        ends = descend(density, saddle, direction, modes)
        if None not in ends and ends[0] != ends[1]:
            lower_barrier(heights, places, *ends, density.height(saddle[None])[0], saddle)
    _join_apart(heights, places, *top_barriers(density, modes, owners))
    return heights, places


def _top(density, first, last):
    """Highest image of a string that has slid towards the lowest path."""
    images = np.linspace(first, last, _N_IMAGES)
    for _ in range(_N_ROUNDS):
        images[1:-1] += _STEP * (density.mean_shift(images[1:-1]) - images[1:-1])
        images = _evenly(images)
    return images[1:-1][np.argmax(density.height(images[1:-1]))]


def _evenly(images):
    lengths = np.linalg.norm(np.diff(images, axis=0), axis=1)
    times = np.concatenate([[0.0], np.cumsum(lengths)])
    even = np.linspace(0.0, times[-1], len(images))
    return np.column_stack([np.interp(even, times, column) for column in images.T])


def _join_apart(heights, places, tops, top_places):
    """Give modes without a chain of saddles between them the barrier of a ridgeline."""
    np.fill_diagonal(heights, np.diag(tops))
    _, groups = connected_components(np.isfinite(heights), directed=False)
    apart = groups[:, None] != groups
    heights[apart], places[apart] = tops[apart], top_places[apart]
    _pass_on(heights, places)


def _pass_on(heights, places):
    """Give modes joined by a chain of passes the highest pass of the lowest chain."""
    known = [
        (heights[i, j], i, j)
        for i, j in zip(*np.triu_indices(len(heights), 1), strict=True)
        if np.isfinite(heights[i, j])
    ]
    groups = np.arange(len(heights))
    for height, i, j in sorted(known):
        one, other = groups == groups[i], groups == groups[j]
        if groups[i] != groups[j]:
            block = one[:, None] & other | other[:, None] & one
            unknown = block & ~np.isfinite(heights)
            heights[unknown], places[unknown] = height, places[i, j]
            groups[other] = groups[i]

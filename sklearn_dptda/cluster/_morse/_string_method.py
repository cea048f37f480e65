"""Saddles from the tops of strings between modes."""

import numpy as np

_N_IMAGES, _N_ROUNDS = 17, 10
# Part of a mean-shift step by which images move, and so stay in order.
_STEP = 0.5


def add_tops_of_strings(graph, n_neighbours=None):
    """Enter the saddle above the string between each two modes, by the string method.

    Images on a string between two modes slide downhill and are spaced evenly again; from the
    highest image Newton steps lead to a saddle of index one, and the modes that its two descents
    end at are joined. There are strings from each mode to ``n_neighbours`` others, those across
    the lowest barriers known, or to all.

    W. E, W. Ren, E. Vanden-Eijnden, "Simplified and improved string method", 2007. Quadratic
    strings are others: parabolas between centres.
    """
    modes = graph.modes
    # Each mode is its own first neighbour.
    ranks = graph.heights.argsort(axis=1, kind="stable").argsort(axis=1)
    near = np.minimum(ranks, ranks.T) <= (len(modes) if n_neighbours is None else n_neighbours)
    for i, j in np.argwhere(np.triu(near, 1)):
        graph.add_saddle(_top(graph.density, modes[i], modes[j]))


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

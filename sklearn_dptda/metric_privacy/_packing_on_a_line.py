"""Subsets of a line, where largest separated sets are found from left to right."""

import numpy as np

_ROUNDING = 1e-9


def on_a_line(D):
    """Coordinates of points with these distances on a line, sorted; None where there are none.

    Parameters
    ----------
    D : ndarray of shape (n, n)

    Returns
    -------
    ndarray of shape (n,) or None
    """
    # The point farthest from any other is at an end.
    places = np.sort(D[int(D[0].argmax())])
    order = np.argsort(D[int(D[0].argmax())], kind="stable")
    expected = np.abs(places[:, None] - places)
    if np.abs(expected - D[np.ix_(order, order)]).max() > _ROUNDING * D.max():
        return None
    return places


def few_separated_on_a_line(places, scale, alpha):
    """Whether no interval around a point has too many separated points.

    Parameters
    ----------
    places : ndarray of shape (n,)
        Sorted.
    scale : float
    alpha : float

    Returns
    -------
    bool
    """
    slack = 1e-12 * max(places[-1], 1e-300)
    # The next separated point of each, with a sentinel for none.
    following = np.searchsorted(places, places + scale + slack, side="right")
    n = len(places)
    jump = np.r_[following, n]
    last, count = np.arange(n), 1
    while True:
        last = jump[last]
        first = np.flatnonzero(last < n)
        if len(first) == 0:
            return True
        count += 1
        ends = places[first], places[last[first]]
        # The ball of least radius that holds both ends has its centre next to their middle.
        middle = np.searchsorted(places, (ends[0] + ends[1]) / 2)
        for centre in (np.minimum(middle, n - 1), np.maximum(middle - 1, 0)):
            radius = np.maximum(places[centre] - ends[0], ends[1] - places[centre])
            if (alpha * radius < np.log(count) * (1 - 1e-12)).any():
                return False

"""Subsets of a line, where largest separated sets are found from left to right."""

import numpy as np

from sklearn_dptda.metric_privacy._distance_matrices import ROUNDING


def on_a_line(D):
    """Sorted coordinates of points with these distances on a line; None where there are none."""
    # The point farthest from any other is at an end.
    from_end = D[int(D[0].argmax())]
    order = np.argsort(from_end, kind="stable")
    places = from_end[order]
    expected = np.abs(places[:, None] - places)
    if np.abs(expected - D[np.ix_(order, order)]).max() > ROUNDING * D.max():
        return None
    return places


def few_separated_on_a_line(places, scale, alpha):
    """Whether no ball around one of the sorted points has too many separated points.

    Too many: more than ``exp(alpha * radius)`` that are further apart than the scale.
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

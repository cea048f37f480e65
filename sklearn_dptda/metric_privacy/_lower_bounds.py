"""Accuracy that no private mechanism beats: by pairs of points and by packings."""

import numpy as np

from sklearn_dptda.metric_privacy._distance_matrices import rows_at_a_time
from sklearn_dptda.metric_privacy._linkage import is_ultrametric
from sklearn_dptda.utils._farthest_first import farthest_first

# Most points of which all balls are intersected.
_MOST_MET = 600


def by_pairs(D1, D2, alpha):
    """Largest ``D2 / (1 + exp(alpha D1))``: an output near both of two points is near neither."""
    decay = np.exp(-alpha * D1)
    return float((D2 * decay / (1 + decay)).max())


def by_packings(D1, D2, alpha):
    """Largest ``g (1 - 1 / sum over y of exp(-alpha D1[x, y]))`` found, for points ``x``.

    Open balls of accuracy of radius ``g`` around the ``y`` are disjoint. Each holds the output for
    its own centre with a probability of ``1 - A / g`` at least, and that for ``x`` with
    ``exp(-alpha D1[x, y])`` times as much. Packings are nets of a farthest-first traversal.
    """
    order, radii = farthest_first(meeting_radii(D2).__getitem__, len(D2))
    sums = np.cumsum(np.exp(-alpha * D1[:, order]), axis=1).max(axis=0)
    # Of one point, the first of the order, nothing follows.
    return float((radii[1:] * (1 - 1 / sums[1:])).max(initial=0.0))


def meeting_radii(D2):
    """Radius up to which the open balls around two points are disjoint.

    Half their distance at least, as far as one has to go from both to meet in a third point else,
    and all of their distance on an ultrametric space.
    """
    if is_ultrametric(D2):
        return D2
    n = len(D2)
    if n > _MOST_MET:
        return D2 / 2
    part = rows_at_a_time(n * n)
    return np.concatenate(
        [np.maximum(D2[i : i + part, None], D2).min(axis=2) for i in range(0, n, part)]
    )

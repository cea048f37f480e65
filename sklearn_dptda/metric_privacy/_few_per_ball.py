"""Verdicts on a scale: whether balls of privacy hold few points that are further apart than it.

Few are at most ``exp(alpha * radius)``. Exact verdicts take small or ultrametric spaces; certified
ones are right wherever they say yes.
"""

import numpy as np

from sklearn_dptda.metric_privacy._distance_matrices import rows_at_a_time
from sklearn_dptda.metric_privacy._linkage import cells_of_tree, tree_of
from sklearn_dptda.metric_privacy._packing import (
    ExactPacking,
    bit_mask,
    cells_of_net,
    nearest_of_cells,
)


def few_separated(D1, D2, scale, alpha):
    """Whether no ball has too many separated points, by exact packing."""
    packing = ExactPacking(D2, scale)
    for row in D1:
        for radius in np.unique(row):
            ball = row <= radius
            allowed = np.exp(min(alpha * radius, 700.0)) * (1 + 1e-12)
            if ball.sum() > allowed and packing.size(bit_mask(ball)) > allowed:
                return False
    return True


def few_classes(D1, D2, alpha):
    """Verdict for an ultrametric ``D2``: separated points are those of different classes."""
    tree = tree_of(D2, "single")

    def verdict(scale):
        cells = cells_of_tree(tree, scale * (1 + 1e-12))
        return _meets_few(nearest_of_cells(D1, cells), alpha)

    return verdict


def surely_many(D1, walk, alpha):
    """Verdict that a scale is too small, by the nets of a traversal: their points are separated."""
    return lambda scale: not _meets_few(D1[:, walk.net(scale)], alpha)


def surely_few(D1, D2, walk, alpha):
    """Verdict that a scale is large enough, by partitions into cells of no larger diameter."""
    tree = tree_of(D2, "complete")

    def verdict(scale):
        far = np.where(scale / 2 < D2, D1, np.inf).min(axis=1)
        return any(
            _meets_few(nearest_of_cells(D1, cells), alpha, far)
            for cells in (cells_of_tree(tree, scale), cells_of_net(D2, walk.net(scale / 2)))
        )

    return verdict


def _meets_few(nearest, alpha, before=None):
    """Whether no ball meets more than ``exp(alpha * r)`` cells, by its distances from them.

    ``before`` is a radius up to which a ball is known to need one cell only.
    """
    needed = np.log(np.arange(1, nearest.shape[1] + 1)) / alpha
    part = rows_at_a_time(nearest.shape[1])
    for start in range(0, len(nearest), part):
        radii = np.sort(nearest[start : start + part], axis=1)
        if before is not None:
            radii[:, 1:] = np.maximum(radii[:, 1:], before[start : start + part, None])
        if (radii < needed * (1 - 1e-12)).any():
            return False
    return True

"""Trees of clusters of a finite space, and the ultrametrics that they are."""

import numpy as np
from scipy.cluster.hierarchy import cophenet, fcluster, linkage
from scipy.spatial.distance import squareform

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.metric_privacy._distance_matrices import ROUNDING


def tree_of(D, method):
    """Linkage of a matrix of distances; None of one point, which has no tree.

    Clusters of the complete one at a height have no larger a diameter; those of the single one
    are further apart than it.
    """
    return linkage(squareform(D, checks=False), method) if len(D) > 1 else None


def cells_of_tree(tree, height):
    """Number of the cluster at a height of each point, from 0."""
    return np.zeros(1, dtype=int) if tree is None else fcluster(tree, height, "distance") - 1


def subdominant(D: FloatArray) -> FloatArray:
    """Largest ultrametric that is nowhere above the distances."""
    if len(D) < 3:
        return D
    ultrametric: FloatArray = squareform(cophenet(tree_of(D, "single")))
    return ultrametric


def is_ultrametric(D: FloatArray, tree: FloatArray | None = None) -> bool:
    """Whether of any three points the two longest distances are equal."""
    tree = subdominant(D) if tree is None else tree
    return bool(np.abs(tree - D).max() <= ROUNDING * D.max())

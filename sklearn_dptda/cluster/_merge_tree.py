"""The merge tree of a mixture: modes joined in the order of their barriers."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform

from sklearn_dptda.cluster._barriers import mode_barriers, tree_edges
from sklearn_dptda.cluster._critical import find_modes
from sklearn_dptda.cluster._density import MixtureDensity


@dataclass(frozen=True)
class MergeTree:
    """Modes of a mixture and the barriers between them.

    Attributes
    ----------
    modes : ndarray of shape (n_modes, n_features)
        Highest density first.
    mode_heights : ndarray of shape (n_modes,)
        Minus the log density at the modes.
    owners : ndarray of shape (n_components,)
        Mode that each component's centre climbs to.
    barriers : ndarray of shape (n_modes, n_modes)
        Minus the log density at the pass between two modes.
    saddles : ndarray of shape (n_modes - 1, n_features)
        The passes of the tree, lowest first.
    linkage : ndarray of shape (n_modes - 1, 4)
        SciPy's format; distances are heights of the passes above the highest
        mode, in nats.
    """

    modes: np.ndarray
    mode_heights: np.ndarray
    owners: np.ndarray
    barriers: np.ndarray
    saddles: np.ndarray
    linkage: np.ndarray

    @property
    def n_modes(self):
        """Number of modes."""
        return len(self.modes)

    def cut(self, n_clusters=None, threshold=None):
        """Merge modes into clusters.

        Parameters
        ----------
        n_clusters : int, default=None
            Number of clusters, at most the number of modes.
        threshold : float, default=None
            Merge across passes up to this height above the highest mode.
            With neither, the cut is made in the largest gap between
            successive passes.

        Returns
        -------
        ndarray of shape (n_modes,)
            Cluster of each mode, numbered by their highest modes.
        """
        if self.n_modes == 1:
            return np.zeros(1, dtype=int)
        passes = self.linkage[:, 2]
        if n_clusters is None:
            if threshold is None:
                n_merges = int(np.argmax(np.diff(passes, prepend=0.0)))
            else:
                n_merges = int(np.searchsorted(passes, threshold, side="right"))
            n_clusters = self.n_modes - n_merges
        labels = cut_tree(self.linkage, min(n_clusters, self.n_modes))[:, 0]
        _, first = np.unique(labels, return_index=True)
        rank = np.empty(len(first), dtype=int)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[labels]


def morse_linkage(weights, means, covariances):
    """Merge tree of a Gaussian mixture along its density saddles.

    Two modes are joined at the height of the lowest pass between them.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
    means : array-like of shape (n_components, n_features)
    covariances : array-like of shape (n_components, n_features, n_features)

    Returns
    -------
    MergeTree

    Notes
    -----
    .. rubric:: Privacy

    A function of the parameters alone: as private as they are.

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.cluster import morse_linkage
    >>> tree = morse_linkage([0.5, 0.3, 0.2], [[0.0], [4.0], [12.0]], np.ones((3, 1, 1)))
    >>> tree.n_modes, tree.cut(n_clusters=2)
    (3, array([0, 0, 1]))
    """
    density = MixtureDensity(weights, means, covariances)
    modes, owners = find_modes(density)
    barriers, places = mode_barriers(density, modes, owners)
    heights = np.diag(barriers).copy()
    if len(modes) == 1:
        empty = np.empty((0, 4)), np.empty((0, density.n_features))
        return MergeTree(modes, heights, owners, barriers, empty[1], empty[0])
    above = barriers - heights.min()
    np.fill_diagonal(above, 0.0)
    edges = sorted(tree_edges(barriers), key=lambda edge: barriers[edge])
    return MergeTree(
        modes=modes,
        mode_heights=heights,
        owners=owners,
        barriers=barriers,
        saddles=np.array([places[edge] for edge in edges]),
        linkage=linkage(squareform(above, checks=False), method="single"),
    )

"""The merge tree of a mixture: modes joined in the order of their barriers."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from sklearn_dptda._typing import IntArray
from sklearn_dptda.cluster._morse._barriers import BarrierGraph, join
from sklearn_dptda.cluster._morse._critical_points import find_modes
from sklearn_dptda.cluster._morse._mixture_density import MixtureDensity
from sklearn_dptda.cluster._morse._string_method import add_tops_of_strings

# Modes that strings lead to from each mode.
SEARCHES = {"ridgeline": 5, "string": None}


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
        Minus the log density at the highest pass of the lowest path between
        two modes.
    saddles : ndarray of shape (n_modes - 1, n_features)
        The passes of the tree, lowest first.
    edges : ndarray of shape (n_modes - 1, 2)
        The modes that each pass joins.
    mode_weights : ndarray of shape (n_modes,)
        Weight of the components that belong to each mode.
    linkage : ndarray of shape (n_modes - 1, 4)
        SciPy's format; distances are heights of the passes above the highest
        mode, in nats.
    """

    modes: np.ndarray
    mode_heights: np.ndarray
    owners: np.ndarray
    barriers: np.ndarray
    saddles: np.ndarray
    edges: np.ndarray
    mode_weights: np.ndarray
    linkage: np.ndarray

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return len(self.modes)

    def cut(
        self, n_clusters: int | None = None, threshold: float | None = None, min_weight: float = 0.0
    ) -> IntArray:
        """Merge modes into clusters.

        Parameters
        ----------
        n_clusters : int, default=None
            Number of clusters, at most the number of modes.
        threshold : float, default=None
            Merge across passes up to this height above the highest mode.
            With neither, the cut is made in the largest gap between
            successive passes.
        min_weight : float, default=0.0
            Clusters lighter than this are merged first, across their lowest
            passes.

        Returns
        -------
        ndarray of shape (n_modes,)
            Cluster of each mode, numbered by their highest modes.
        """
        labels = np.arange(self.n_modes)
        # Dust is swept only as long as more clusters remain than were asked for.
        passes = self._sweep(labels, min_weight, n_clusters or 1)
        heights = self.linkage[passes, 2]
        if n_clusters is not None:
            n_merges = max(len(passes) + 1 - n_clusters, 0)
        elif threshold is not None:
            n_merges = int(np.searchsorted(heights, threshold, side="right"))
        else:
            n_merges = int(np.argmax(np.diff(heights, prepend=0.0))) if len(heights) else 0
        for edge in passes[:n_merges]:
            self._join(labels, edge)
        return np.unique(labels, return_inverse=True)[1]

    def cut_by_prominence(self, nats: float, min_weight: float = 0.0) -> IntArray:
        """Merge modes across passes that they, or the cluster they head, hardly stand out from.

        Parameters
        ----------
        nats : float
            Clusters whose highest mode is no higher above a pass are merged
            across it, the lowest passes first.
        min_weight : float, default=0.0
            Clusters lighter than this are merged as well.

        Returns
        -------
        ndarray of shape (n_modes,)
            Cluster of each mode, numbered by their highest modes.
        """
        labels = np.arange(self.n_modes)
        passes = self.linkage[:, 2] + self.mode_heights.min()
        for edge, height in enumerate(passes):
            # Modes are in the order of their height, and labels those of the highest.
            lower = max(labels[self.edges[edge]])
            weight = self.mode_weights[labels == lower].sum()
            if height - self.mode_heights[lower] < nats or weight < min_weight:
                self._join(labels, edge)
        return np.unique(labels, return_inverse=True)[1]

    def _sweep(self, labels, min_weight, at_least):
        """Merge light clusters in place, and return the passes that remain."""
        passes = list(range(self.n_modes - 1))
        while len(passes) + 1 > at_least:
            weights = np.bincount(labels, self.mode_weights, minlength=self.n_modes)
            present = np.unique(labels)
            lightest = present[np.argmin(weights[present])]
            if weights[lightest] >= min_weight:
                break
            edge = next(e for e in passes if lightest in labels[self.edges[e]])
            self._join(labels, edge)
            passes.remove(edge)
        return passes

    def _join(self, labels, edge):
        one, other = labels[self.edges[edge]]
        labels[labels == max(one, other)] = min(one, other)


def morse_linkage(
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    *,
    saddle_search: Literal["ridgeline", "string"] = "ridgeline",
) -> MergeTree:
    """Merge tree of a Gaussian mixture along its density saddles.

    Two modes are joined at the height of the lowest pass between them.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
    means : array-like of shape (n_components, n_features)
    covariances : array-like of shape (n_components, n_features, n_features)
    saddle_search : {"ridgeline", "string"}, default="ridgeline"
        Where saddles are looked for first. ``"string"``: from
        the top of a string between each two modes; Algorithm 3 of the paper
        looks between each two centres, along parabolas.
        ``"ridgeline"``: only between each mode and the five others that are
        nearest across the ridgelines of two components. Then every ridgeline
        that the tree still needs is followed; where it leads from one basin to
        another, two points on the two sides slide down along the boundary to
        its saddle.

    Returns
    -------
    MergeTree

    Notes
    -----
    .. rubric:: Privacy

    A function of the parameters alone: as private as they are.

    .. rubric:: Passes

    Every pass is a saddle of index one whose two descents end at modes. Held
    against fine grids, barriers agree as long as standard deviations differ
    up to thirtyfold; of more unequal components steps of mean shift can leap
    over narrow basins, and where no saddle is found the top of a ridgeline
    stands. Passes between modes that no centre climbs to count as well, these
    modes themselves are not reported.

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
    density = MixtureDensity(np.asarray(weights), np.asarray(means), np.asarray(covariances))
    modes, owners = find_modes(density)
    graph = BarrierGraph(density, modes, owners)
    add_tops_of_strings(graph, SEARCHES[saddle_search])
    graph.refine()
    barriers, edges, saddles = join(graph)
    heights = np.diag(barriers).copy()
    mode_weights = np.bincount(owners, density.weights, minlength=len(modes))
    above = barriers - heights.min()
    np.fill_diagonal(above, 0.0)
    condensed = squareform(above, checks=False)
    return MergeTree(
        modes=modes,
        mode_heights=heights,
        owners=owners,
        barriers=barriers,
        saddles=saddles,
        edges=edges,
        mode_weights=mode_weights,
        linkage=linkage(condensed, method="single") if len(condensed) else np.empty((0, 4)),
    )

"""The merge tree of a mixture: modes joined in the order of their barriers."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import IntArray
from sklearn_dptda.cluster._barriers import BarrierGraph, add_tops_of_strings, join
from sklearn_dptda.cluster._critical_points import find_modes
from sklearn_dptda.cluster._mixture_density import MixtureDensity
from sklearn_dptda.cluster._quadratic_strings import CentreGraph
from sklearn_dptda.privacy._parameters import quoted

# Modes that strings between modes lead to from each mode.
_NEIGHBOURS = {"ridgeline": 5, "string": None}
SEARCHES = {*_NEIGHBOURS, "quadratic_strings"}
SaddleSearch = Literal["ridgeline", "string", "quadratic_strings"]


@dataclass(frozen=True)
class MergeTree:
    """Modes of a mixture and the barriers between them.

    With ``saddle_search="quadratic_strings"`` centres stand for modes, each for
    its own component, and passes that were not found are infinitely high.

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
        The passes of the tree, lowest first; NaN where there is none.
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
            # The first pass that was not found ends the largest gap.
            known = heights[: 1 + np.isfinite(heights).sum()]
            n_merges = int(np.argmax(np.diff(known, prepend=0.0))) if len(known) else 0
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
    saddle_search: SaddleSearch = "ridgeline",
) -> MergeTree:
    """Merge tree of a Gaussian mixture along its density saddles.

    Two modes are joined at the height of the lowest pass between them.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
    means : array-like of shape (n_components, n_features)
    covariances : array-like of shape (n_components, n_features, n_features)
    saddle_search : {"ridgeline", "string", "quadratic_strings"}, default="ridgeline"
        Where saddles are looked for. ``"ridgeline"``: by the string method
        between each mode and the five others that are nearest across the
        ridgelines of two components. Then every ridgeline that the tree still
        needs is followed; where it leads from one basin to another, two points
        on the two sides slide down along the boundary to its saddle.
        ``"string"``: the same, with strings between each two modes.
        ``"quadratic_strings"``: Algorithms 3 and 4 of the paper, along
        parabolas between each two centres; see the notes.

    Returns
    -------
    MergeTree

    Raises
    ------
    ValueError
        If shapes disagree, weights are not positive, a covariance is not positive
        definite, or the search is unknown.

    Notes
    -----
    .. rubric:: Privacy

    A function of the parameters alone: as private as they are.

    .. rubric:: Passes

    By the first two searches every pass is a saddle of index one whose two
    descents end at modes. Held against fine grids, barriers agree as long as
    standard deviations differ up to thirtyfold; of more unequal components
    steps of mean shift can leap over narrow basins, and where no saddle is
    found the top of a ridgeline stands. Passes between modes that no centre
    climbs to count as well, these modes themselves are not reported.

    .. rubric:: Quadratic strings

    The vertices are the centres, a shortcut of the paper's. From the point of
    least density, of 20 on the segment between two centres, the flow (7) is
    followed, then five times from that on the parabola with the last point as
    its vertex. Newton steps lead to a critical point; one of index one joins
    the centres nearest to the ends of its two descents, which begin .05 to both
    sides. What the paper leaves open, and what is done: the length of the flow
    (one step, a fiftieth of one of mean shift; to its end it would lead to a
    mode), its metric (the mean of the precisions by responsibility), Newton
    steps that are long (cut to half a unit of the curvature) or do not settle
    (no pass), and which pairs without a pass are joined first (the densest
    centres). Lengths are those in the cube of the smallest box that holds all
    centres and two standard deviations. Of centres that share a mode all but
    one are left without a pass, and often components that are more than a
    dozen standard deviations apart.

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
    graph, owners = _graph(density, saddle_search)
    barriers, edges, saddles = join(graph)
    heights = np.diag(barriers).copy()
    passes = barriers[tuple(edges.T)] - heights.min()
    return MergeTree(
        modes=graph.modes[: len(heights)],
        mode_heights=heights,
        owners=owners,
        barriers=barriers,
        saddles=saddles,
        edges=edges,
        mode_weights=np.bincount(owners, density.weights, minlength=len(heights)),
        linkage=_linkage(edges, passes),
    )


def _graph(density, saddle_search):
    """Modes or centres with the barriers between them, and that of each component."""
    if saddle_search == "quadratic_strings":
        graph = CentreGraph(density)
        return graph, graph.owners
    if saddle_search not in _NEIGHBOURS:
        raise ValueError(
            f"saddle_search must be one of {sorted(SEARCHES)}; got {quoted(saddle_search)}."
        )
    modes, owners = find_modes(density)
    graph = BarrierGraph(density, modes, owners)
    add_tops_of_strings(graph, _NEIGHBOURS[saddle_search])
    graph.refine()
    return graph, owners


def _linkage(edges, passes):
    """SciPy's format of a tree whose edges are sorted by their passes."""
    nodes, rows = np.arange(len(edges) + 1), []
    for edge, height in zip(edges, passes, strict=True):
        members = np.isin(nodes, nodes[edge])
        # A centre can lie lower in density than a pass.
        rows.append([*sorted(nodes[edge]), max(height, 0.0), members.sum()])
        nodes[members] = len(edges) + len(rows)
    return np.array(rows, dtype=float).reshape(-1, 4)

"""The merge tree of a mixture: modes joined in the order of their barriers.

The tree is a function of the mixture's parameters alone. ``doc/reproduction.md`` lists what of it
is the published algorithm, and what differs.

Proof: doc/theory/private_mixtures.md, "The published flow".
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.cluster._barriers import BarrierGraph, Barriers
from sklearn_dptda.cluster._mixture_density import MixtureDensity, find_modes

# Accuracy only: all that these constants are applied to has been released.
# Number of modes that strings lead to from each mode.
_N_STRINGS = 5


@dataclass(frozen=True)
class MergeTree:
    """Modes of a mixture and the barriers between them.

    :func:`morse_linkage` returns one. In that of :func:`~sklearn_dptda.published.published_linkage`
    the modes are the centres of the components, and saddles that were not found are infinitely
    high.

    Attributes
    ----------
    modes : ndarray of shape (n_modes, n_features)
        Modes of the density, the highest density first.
    mode_heights : ndarray of shape (n_modes,)
        Negative log density at the modes.
    owners : ndarray of shape (n_components,)
        Mode that the centre of each component climbs to.
    barriers : ndarray of shape (n_modes, n_modes)
        Negative log density at the highest saddle of the lowest path between two
        modes.
    saddles : ndarray of shape (n_modes - 1, n_features)
        Saddles of the tree, the lowest first; NaN where there is none.
    edges : ndarray of shape (n_modes - 1, 2)
        The modes that each saddle joins.
    mode_weights : ndarray of shape (n_modes,)
        Weight of the components that belong to each mode.
    linkage : ndarray of shape (n_modes - 1, 4)
        The tree in SciPy's format. Its distances are the heights of the saddles
        above the highest mode, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.cluster import morse_linkage
    >>> tree = morse_linkage([0.5, 0.3, 0.2], [[0.0], [4.0], [12.0]], np.ones((3, 1, 1)))
    >>> tree.edges
    array([[0, 1],
           [1, 2]])
    >>> tree.cut(n_clusters=2)
    array([0, 0, 1])
    """

    modes: FloatArray
    mode_heights: FloatArray
    owners: IntArray
    barriers: FloatArray
    saddles: FloatArray
    edges: IntArray
    mode_weights: FloatArray
    linkage: FloatArray

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return len(self.modes)

    def cut(
        self,
        n_clusters: int | None = None,
        threshold: float | None = None,
        min_weight: float = 0.0,
        *,
        rule: Literal["strength", "height"] = "strength",
    ) -> IntArray:
        """Merge modes into clusters.

        Parameters
        ----------
        n_clusters : int, default=None
            Number of clusters, at most the number of modes.
        threshold : float, default=None
            Merge across saddles up to this height above the highest mode, in nats. With
            neither this nor ``n_clusters``, the cut is made in the largest gap between
            successive saddles.
        min_weight : float, default=0.0
            Clusters lighter than this are merged first, across their lowest saddles.
        rule : {"strength", "height"}, default="strength"
            Which saddles separate the clusters if their number is given.
            ``"height"``: the saddles with the lowest densities, even if they cut off a
            light bump at the edge. ``"strength"``: the saddles with the greatest product
            of their depth below the highest mode, the square root of the height by which
            the weaker side stands out from them (both in nats), and the fourth root of
            the weight of this side.

        Returns
        -------
        ndarray of shape (n_modes,)
            Cluster of each mode, numbered by their highest modes.
        """
        labels = np.arange(self.n_modes)
        # Light clusters are merged only while there are more clusters than requested.
        edges = self._merge_light(labels, min_weight, n_clusters or 1)
        heights = self.linkage[edges, 2]
        if n_clusters is not None:
            n_merges = max(len(edges) + 1 - n_clusters, 0)
            if rule == "strength":
                weakest = np.argsort(self._strengths(labels, edges), kind="stable")
                edges = [edges[place] for place in weakest]
        elif threshold is not None:
            n_merges = int(np.searchsorted(heights, threshold, side="right"))
        else:
            # The first saddle that was not found ends the largest gap.
            known = heights[: 1 + np.isfinite(heights).sum()]
            n_merges = int(np.argmax(np.diff(known, prepend=0.0))) if len(known) else 0
        for edge in edges[:n_merges]:
            self._merge(labels, edge)
        return np.unique(labels, return_inverse=True)[1]

    def _strengths(self, labels: IntArray, edges: list[int]) -> FloatArray:
        """How clearly each saddle separates its two sides, of which the weaker one decides.

        Saddles of the greatest strengths leave clusters whose weakest one is as strong as possible.
        """
        groups, strengths = labels.copy(), np.empty(len(edges))
        for place, edge in enumerate(edges):
            height = self.linkage[edge, 2] + self.mode_heights.min()
            sides = []
            for side in groups[self.edges[edge]]:
                inside = groups == side
                stands_out = max(height - self.mode_heights[inside].min(), 0.0)
                sides.append(np.sqrt(np.sqrt(self.mode_weights[inside].sum()) * stands_out))
            strengths[place] = min(sides) * self.linkage[edge, 2]
            self._merge(groups, edge)
        return strengths

    def _merge_light(self, labels: IntArray, min_weight: float, at_least: int) -> list[int]:
        """Merge light clusters in place, and return the edges that remain."""
        edges = list(range(self.n_modes - 1))
        while len(edges) + 1 > at_least:
            weights = np.bincount(labels, self.mode_weights, minlength=self.n_modes)
            present = np.unique(labels)
            lightest = present[np.argmin(weights[present])]
            if weights[lightest] >= min_weight:
                break
            edge = next(e for e in edges if lightest in labels[self.edges[e]])
            self._merge(labels, edge)
            edges.remove(edge)
        return edges

    def _merge(self, labels: IntArray, edge: int) -> None:
        one, other = labels[self.edges[edge]]
        labels[labels == max(one, other)] = min(one, other)

    def cut_by_prominence(self, nats: float, min_weight: float = 0.0) -> IntArray:
        """Merge modes across saddles from which they hardly stand out.

        Parameters
        ----------
        nats : float
            A cluster whose highest mode is less than this above a saddle is merged
            across it. The lowest saddles come first.
        min_weight : float, default=0.0
            Clusters lighter than this are merged as well, across their lowest saddles.

        Returns
        -------
        ndarray of shape (n_modes,)
            Cluster of each mode, numbered by their highest modes.
        """
        labels = np.arange(self.n_modes)
        for edge, height in enumerate(self.linkage[:, 2] + self.mode_heights.min()):
            # Modes are ordered by height, and the label of a cluster is that of its highest mode.
            sides = labels[self.edges[edge]]
            weight = min(self.mode_weights[labels == side].sum() for side in sides)
            if height - self.mode_heights[max(sides)] < nats or weight < min_weight:
                self._merge(labels, edge)
        return np.unique(labels, return_inverse=True)[1]


def morse_linkage(
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
) -> MergeTree:
    """Merge tree of a Gaussian mixture along its density saddles.

    Two modes are joined at the height of the lowest saddle between them. Saddles are searched
    for by the string method, between each mode and the five that are nearest across ridgelines.
    Then every ridgeline that the tree still needs is followed. Where it changes from one basin
    to another, two points on the two sides slide down along the boundary to its saddle.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
        Weights of the components. They are positive and need not sum to one.
    means : array-like of shape (n_components, n_features)
        Means of the components.
    covariances : array-like of shape (n_components, n_features, n_features)
        Covariances of the components.

    Returns
    -------
    MergeTree

    Notes
    -----
    .. rubric:: Privacy

    The tree is a function of the parameters alone, and as private as they are.

    .. rubric:: Saddles

    Every saddle has index one, and its two descents end at modes. If standard
    deviations differ by a factor of more than thirty, a search can leap over narrow
    basins. If no saddle is found, the top of a ridgeline takes its place. Modes that no
    centre climbs to are not reported, but their saddles count.

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
    given = MixtureDensity(np.asarray(weights), np.asarray(means), np.asarray(covariances))
    # In columns whose units or offsets differ by many orders of magnitude, rounding would keep the
    # climbs from coming to rest.
    centre = given.weights @ given.means
    variances = np.einsum("k,kii->i", given.weights, given.covariances)
    spread = given.weights @ np.square(given.means - centre)
    units = np.sqrt(variances + spread)
    density = MixtureDensity(
        given.weights,
        (given.means - centre) / units,
        given.covariances / np.multiply.outer(units, units),
    )
    graph = BarrierGraph(density, *find_modes(density))
    graph.add_tops_of_strings(_N_STRINGS)
    graph.refine()
    tree, higher = tree_of_barriers(density, graph), float(np.log(units).sum())
    return replace(
        tree,
        modes=centre + units * tree.modes,
        saddles=centre + units * tree.saddles,
        mode_heights=tree.mode_heights + higher,
        barriers=tree.barriers + higher,
    )


def tree_of_barriers(density: MixtureDensity, graph: Barriers) -> MergeTree:
    """Join the modes of a density in the order of the barriers between them."""
    barriers, edges, saddles = _joined(graph)
    heights = np.diag(barriers).copy()
    mode_weights = np.bincount(graph.owners, density.weights, minlength=graph.n_known)
    return MergeTree(
        modes=graph.modes[: graph.n_known],
        mode_heights=heights,
        owners=graph.owners,
        barriers=barriers,
        saddles=saddles,
        edges=edges,
        mode_weights=mode_weights.astype(float),
        linkage=_linkage(edges, barriers[tuple(edges.T)] - heights.min()),
    )


def _joined(graph: Barriers) -> tuple[FloatArray, IntArray, FloatArray]:
    """Barriers, edges and saddles of the tree of the known modes, perhaps through other modes."""
    n = graph.n_known
    barriers = np.full((n, n), np.inf)
    np.fill_diagonal(barriers, np.diag(graph.heights)[:n])
    groups = np.arange(len(graph.modes))
    edges, saddles = [], []
    for i, j in sorted(graph.edges(), key=lambda edge: graph.heights[edge]):
        one, other = groups == groups[i], groups == groups[j]
        sides = [np.flatnonzero(side[:n]) for side in (one, other)]
        if len(sides[0]) and len(sides[1]):
            block = np.ix_(*sides)
            barriers[block] = barriers.T[block] = graph.heights[i, j]
            # A mode that no centre climbs to is replaced by the highest known mode on its side.
            ends = zip((i, j), sides, strict=True)
            edges.append(sorted(end if end < n else int(side[0]) for end, side in ends))
            saddles.append(graph.places.get((i, j), np.full(graph.modes.shape[1], np.nan)))
        groups[other] = groups[i]
    return (
        barriers,
        np.array(edges, dtype=int).reshape(-1, 2),
        np.array(saddles).reshape(-1, graph.modes.shape[1]),
    )


def _linkage(edges: IntArray, distances: FloatArray) -> FloatArray:
    """Convert a tree whose edges are sorted by their distances to SciPy's format."""
    nodes, rows = np.arange(len(edges) + 1), []
    for edge, distance in zip(edges, distances, strict=True):
        members = np.isin(nodes, nodes[edge])
        # The density at a centre can be lower than at a saddle.
        rows.append([*sorted(nodes[edge]), max(distance, 0.0), members.sum()])
        nodes[members] = len(edges) + len(rows)
    return np.array(rows, dtype=float).reshape(-1, 4)

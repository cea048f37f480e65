"""Peaks of a density on a graph, and their merging by prominence: ToMATo's hierarchy."""

from dataclasses import dataclass

import numpy as np
from gudhi.clustering.tomato import Tomato

from sklearn_dptda._typing import FloatArray, IntArray


@dataclass(frozen=True)
class Peaks:
    """Peaks in the order of their prominence, and the peaks that they merge into.

    ``diagram``, of shape (n_peaks, 2), has births and deaths, which are ``-inf`` for the highest
    peak of a connected component. These come first, then the others by prominence.
    ``into`` is the more prominent peak that each peak merges into, or itself, and ``owners`` the
    peak that each node climbs to. ``children`` are the merges, in scikit-learn's format.
    """

    diagram: FloatArray
    into: IntArray
    owners: IntArray
    children: IntArray

    @property
    def prominences(self) -> FloatArray:
        """Birth minus death."""
        return self.diagram[:, 0] - self.diagram[:, 1]

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(np.isinf(self.prominences).sum())

    def choose_number(self, n_clusters: int | None = None, threshold: float | None = None) -> int:
        """Number of clusters of a cut, between the number of components and that of peaks.

        Without number and threshold, it is that of the largest gap between prominences.
        """
        if n_clusters is not None:
            return int(np.clip(n_clusters, self.n_components, len(self.diagram)))
        if threshold is not None:
            return max(int((self.prominences > threshold).sum()), self.n_components)
        finite = self.prominences[self.n_components :]
        if len(finite) == 0:
            return self.n_components
        # Each peak is compared with the next less prominent one, and the last with a prominence of
        # zero. The prominence of a single component is its height from its peak to the lowest
        # saddle.
        highest = self.diagram[:, 0].max() - self.diagram[self.n_components :, 1].min()
        gaps = -np.diff(np.r_[max(highest, finite[0]), finite, 0.0])
        return self.n_components + int(np.argmax(gaps))

    def cut(self, n_clusters: int) -> IntArray:
        """Cluster of each peak, numbered by prominence."""
        labels = np.arange(len(self.into))
        for peak in range(n_clusters, len(labels)):
            labels[peak] = labels[self.into[peak]]
        return labels


def break_ties(weights: FloatArray) -> FloatArray:
    """Weights without ties: the first of equal nodes becomes the highest.

    Searches list the first of equally near nodes, so that all copies of a row find the highest one.
    """
    order = np.lexsort((-np.arange(len(weights)), weights))
    rising = weights[order].astype(float)
    for i in np.flatnonzero(np.diff(rising) <= 0) + 1:
        # Runs of ties move up one float at a time, and push up the weights that they meet.
        while i < len(rising) and rising[i] <= rising[i - 1]:
            rising[i] = np.nextafter(rising[i - 1], np.inf)
            i += 1
    without_ties = np.empty_like(rising)
    without_ties[order] = rising
    return without_ties


def indices_of(wanted: FloatArray, values: FloatArray) -> IntArray:
    """Indices of the wanted values among values without ties."""
    order = np.argsort(values)
    return order[np.searchsorted(values, wanted, sorter=order)]


def find_peaks(neighbours: IntArray | list[IntArray], weights: FloatArray) -> Peaks:
    """Peaks of weights without ties on a graph, an array or a list of neighbours, by GUDHI."""
    tomato = Tomato(graph_type="manual", density_type="manual").fit(neighbours, weights=weights)
    leaves, children = tomato.leaf_labels_, np.asarray(tomato.children_).reshape(-1, 2)
    n_leaves = int(tomato.n_leaves_)
    births = np.full(n_leaves, -np.inf)
    np.maximum.at(births, leaves, weights)
    deaths = np.full(n_leaves, -np.inf)
    pairs = np.asarray(tomato.diagram_).reshape(-1, 2)
    deaths[indices_of(pairs[:, 0], births)] = pairs[:, 1]
    into = np.arange(n_leaves)
    # The highest leaf of each node of the merge tree.
    tops = list(range(n_leaves))
    for a, b in children:
        low, high = sorted((tops[a], tops[b]), key=births.__getitem__)
        into[low] = high
        tops.append(high)
    # GUDHI numbers leaves in the order in which it meets them.
    order = np.lexsort((-births, -(births - deaths)))
    rank = np.argsort(order)
    merges = np.arange(n_leaves, n_leaves + len(children))
    return Peaks(
        diagram=np.column_stack([births, deaths])[order],
        into=rank[into[order]],
        owners=rank[leaves],
        children=np.r_[rank, merges][children],
    )

"""Peaks of counts on landmarks. Rows between two landmarks determine the height of the saddle.

Everything except :func:`pair_counts` reads what has already been released, and spends no budget.

Proof: doc/theory/private_peaks.md, "On landmarks".
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial import KDTree

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.cluster._peak_hierarchy import Peaks, break_ties, find_peaks

# Least number of rows by which counts are raised before their logarithm is taken.
_LEAST_NOISE = 0.5
# Count of an edge without a gap between its ends, as a share of the largest count of an edge of a
# landmark. Then the share of a count that is surely not noise, below which such a count could not
# be detected.
_USUAL, _SEEN = 0.5, 0.75
# Nats by which saddles are lowered that may consist of noise only.
_FAR_BELOW = 1e3


def pair_counts(part: FloatArray, landmarks: FloatArray) -> IntArray:
    """Count rows by their two nearest landmarks, in the order of ``triu_indices``."""
    n = len(landmarks)
    _, nearest = KDTree(landmarks).query(part, 2)
    first, second = np.sort(nearest, axis=1).T
    cells = first * n - first * (first + 1) // 2 + second - first - 1
    return np.bincount(cells, minlength=n * (n - 1) // 2)


@dataclass(frozen=True)
class LandmarkGraph:
    """Edges between landmarks, with the noisy number of rows whose nearest landmarks are both ends.

    ``pairs`` have the shape (n_edges, 2), and ``counts`` are their numbers of rows. ``sd`` is the
    standard deviation of the noise. From the count ``surely``, edges are ``sure`` not to be noise.
    """

    pairs: IntArray
    counts: FloatArray
    sure: BoolArray
    sd: float
    surely: float
    n_landmarks: int

    @classmethod
    def of(cls, counts: FloatArray, drawn: IntArray, sd: float, n_landmarks: int) -> Self:
        """Edges that certainly have rows, and those with ``drawn`` rows of a mixture."""
        # The largest of as many noises is hardly ever above this.
        surely = sd * math.sqrt(2 * math.log(len(counts) + 1))
        sure = counts > surely
        kept = sure | (drawn > 0)
        pairs = np.column_stack(np.triu_indices(n_landmarks, 1))[kept]
        noise = max(sd, _LEAST_NOISE)
        return cls(pairs, np.maximum(counts[kept], 0.0), sure[kept], noise, surely, n_landmarks)

    @property
    def weights(self) -> FloatArray:
        """Number of rows around each landmark: half of those on its sure edges."""
        weights = np.zeros(self.n_landmarks)
        for ends in self.pairs.T:
            weights += 0.5 * np.bincount(ends, self.counts * self.sure, minlength=len(weights))
        return weights

    def peaks(self, only_seen: bool) -> Peaks:
        """Hierarchy of the peaks of log counts on landmarks. Edges are nodes after the landmarks.

        A saddle is as high as the lower end of its edge, minus what the rows on the edge fall short
        of half of those on the best edge of an end. It is far below if the edge may consist of
        noise only, or, with ``only_seen``, as high as the end if nothing could be seen there.
        """
        heights = np.log(self.weights + self.sd)
        usual = _USUAL * self._best()[self.pairs].min(axis=1)
        lacking = np.log((self.counts + self.sd) / (usual + self.sd))
        lacking = np.minimum(lacking, 0.0) - _FAR_BELOW * ~self.sure
        if only_seen:
            lacking[~self.sure & (usual < _SEEN * self.surely)] = 0.0
        saddles = heights[self.pairs].min(axis=1) + lacking
        neighbours = [[i] for i in range(self.n_landmarks + len(self.pairs))]
        for edge, pair in enumerate(self.pairs.tolist(), start=self.n_landmarks):
            neighbours[edge] += pair
            for end in pair:
                neighbours[end].append(edge)
        weights = break_ties(np.r_[heights, saddles])
        return find_peaks([np.array(near) for near in neighbours], weights)

    def _best(self) -> FloatArray:
        """Largest count of an edge of each landmark."""
        best = np.zeros(self.n_landmarks)
        for ends in self.pairs.T:
            np.maximum.at(best, ends, self.counts)
        return best


def heavy_clusters(
    peaks: Peaks, weights: FloatArray, n_clusters: int | None, nats: float, least: float
) -> IntArray:
    """Cluster of each landmark, numbered by prominence, or -1 if no path leads to one.

    A cluster has at least the share ``least`` of all rows on its side of the saddle. The clusters
    are the ``n_clusters`` most prominent of these peaks, or those more prominent than ``nats``.
    """
    owners = peaks.owners[: len(weights)]
    mass = np.bincount(owners, weights, minlength=len(peaks.into))
    # Add the mass of what has merged into a peak before it merges into another.
    for peak in np.argsort(-peaks.diagram[:, 1], kind="stable"):
        if peaks.into[peak] != peak:
            mass[peaks.into[peak]] += mass[peak]
    heavy = mass >= least * weights.sum()
    heavy[mass.argmax()] = True
    places = np.flatnonzero(heavy)
    if n_clusters is None:
        clear = peaks.prominences[places] > nats
        places = places[clear] if clear.any() else places[:1]
    places = places[:n_clusters]
    labels = np.full(len(peaks.into), -1)
    labels[places] = np.arange(len(places))
    # Peaks merge into more prominent ones, which come first.
    for peak in range(len(labels)):
        if labels[peak] < 0:
            labels[peak] = labels[peaks.into[peak]]
    return labels[owners]

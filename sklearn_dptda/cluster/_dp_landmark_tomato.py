"""ToMATo in many columns: peaks of private counts on private landmarks.

The rows between two landmarks determine the height of the saddle. :class:`LandmarkGraph` and
:func:`heavy_clusters` read what has already been released, and spend no budget.

Proof: doc/theory/private_peaks.md, "On landmarks".
"""

import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    BoolArray,
    FloatArray,
    IntArray,
    RandomStateLike,
    RowBounds,
)
from sklearn_dptda.cluster._private_landmarks import PrivateLandmarks, on_ridges
from sklearn_dptda.cluster._tomato import Peaks, break_ties, find_peaks
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee
from sklearn_dptda.rows._methods import by_rows
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._sklearn import Interval

# Accuracy only: the counts have the share that the mixture leaves. The rest was released.
# Share of the budget for the mixture. The rest is for counting rows between landmarks.
_MIXTURE_SHARE = 0.5
# Number of rows drawn from the mixture to find the pairs of landmarks between which rows may lie.
_N_MAYBE = 40_000
# Largest ratio of the longest to the shortest side of the box at which all columns are taken to
# have the same unit.
_UNEQUAL_SIDES = 10.0
# Least number of rows by which counts are raised before their logarithm is taken.
_LEAST_NOISE = 0.5
# Count of an edge without a gap between its ends, as a share of the largest count of an edge of a
# landmark. Then the share of a count that is surely not noise, below which such a count could not
# be detected.
_USUAL, _SEEN = 0.5, 0.75
# Nats by which saddles are lowered that may consist of noise only.
_FAR_BELOW = 1e3


@fill_doc
class DPLandmarkToMATo(PrivateLandmarks):
    """Clusters of any shape in many columns, from private counts on landmarks.

    A fit releases a private mixture, places landmarks along its ridges, and counts
    the rows, with noise, by their two nearest landmarks. If rows lie between two
    landmarks, an edge joins these. The clusters are the peaks of ToMATo's
    hierarchy of the counts. Moons, circles and chains, which a mixture divides
    into several components, become one cluster each.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters. None: those that stand out by more than ``threshold``. If the
        noise hides whether there is a gap between two groups, they are one cluster.
    %(epsilon)s
    %(gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    n_landmarks : int, default=60
        Number of landmarks, which is public. Use fewer for few rows, so that each has
        more rows than noise, and more for fine shapes.
    threshold : float, default=1.5
        If ``n_clusters`` is None, a peak is a cluster if the logarithm of its count
        is more than ``threshold`` above that of its saddle (in nats).
    min_cluster_weight : float, default=0.02
        Clusters with a smaller share of the rows are merged into others.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        Private landmarks; the means of the mixture come first.
    reach_ : float
        Largest distance from the nearest landmark, of 4,000 rows that are drawn
        from the mixture.
    landmark_labels_ : ndarray of shape (n_landmarks,)
        Cluster of each landmark, numbered by prominence.
    landmark_weights_ : ndarray of shape (n_landmarks,)
        Private share of the rows around each landmark.
    diagram_ : ndarray of shape (n_peaks, 2)
        Birth and death of the peaks in log counts, the most prominent first. A
        death below -900 marks a saddle that may consist of noise only. Peaks that
        are joined to no higher peak die at the lowest number of all.
    n_clusters_ : int
        Number of clusters.
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        Heaviest landmark of each cluster.
    scales_ : ndarray of shape (n_features,)
        Numbers by which the columns are divided before distances are measured:
        ones, or the sides of the box if one is over ten times as long as another.
    %(landmark_components)s
    %(noise_of_components)s
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    DPToMATo : Clusters from a histogram, in one to three columns.
    DPMoGMorse : Clusters of a mixture merged along its saddles.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, a mixture, and noisy numbers of rows by their two
    nearest landmarks. It is (``epsilon``, ``delta``)-differentially private for
    adding or removing one row, or for replacing one. Labels of private rows are
    *not* private. ``score`` and ``sample`` are those of the mixture.
    %(privacy_of_groups)s

    .. rubric:: Limits

    Landmarks resolve what their mixture resolves: moons and two circles in eight
    columns, but not :doc:`three nested rings or spirals </measured/landmarks>`,
    whose gaps are narrower than a component. More landmarks do not help.

    References
    ----------
    F. Chazal, L. Guibas, S. Oudot, P. Skraba, "Persistence-based clustering in
    Riemannian manifolds", Journal of the ACM 60, 2013. T. Martinetz,
    K. Schulten, "Topology representing networks", Neural Networks 7, 1994.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from sklearn_dptda.cluster import DPLandmarkToMATo
    >>> X, y = make_moons(4000, noise=0.05, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> X = X @ rng.normal(size=(2, 8)) + 0.05 * rng.normal(size=(4000, 8))
    >>> private = DPLandmarkToMATo(2, epsilon=2.0, random_state=0)
    >>> adjusted_rand_score(y, private.fit_predict(X)) > 0.95
    True
    """

    _parameter_constraints = {
        **PrivateLandmarks._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "min_cluster_weight": [Interval(Real, 0, 1, closed="left")],
    }
    # Largest dimension of the simplices if a filtration takes these landmarks.
    dimension = 2

    def __init__(
        self,
        n_clusters: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        n_landmarks: int = 60,
        threshold: float = 1.5,
        min_cluster_weight: float = 0.02,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.n_landmarks = n_landmarks
        self.threshold = threshold
        self.min_cluster_weight = min_cluster_weight
        self.accountant = accountant
        self.random_state = random_state

    def _learn(self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box) -> None:
        super()._learn(rows.kept(), budget.rest(1 - _MIXTURE_SHARE), rng, box)
        n = len(self.landmarks_)
        count = partial(pair_counts, landmarks=self.landmarks_ / self.scales_)
        in_units = partial(_in_units, box=box, scales=self.scales_)
        exact = rows.map(in_units).sum(count, n_cells=n * (n - 1) // 2)
        counts, sd = budget.noisy_counts(exact, 1, 1 - _MIXTURE_SHARE)
        maybe, _ = self._sampler(rng).sample(_N_MAYBE)
        drawn = count(np.clip(maybe, box.low, box.high) / self.scales_)
        self._find_clusters(LandmarkGraph.of(counts / rows.mass, drawn, sd / rows.mass, n))

    def _landmarks_among(self, drawn: FloatArray, box: Box) -> FloatArray:
        sides, n = box.high - box.low, int(self.n_landmarks)
        one_unit = sides.max() <= _UNEQUAL_SIDES * sides.min()
        self.units_ = self.scales_ = np.ones_like(sides) if one_unit else sides
        # The means come first: a small dense cluster has a component, but no point far from the
        # others.
        far = self.scales_ * on_ridges(drawn / self.scales_, n)
        return np.concatenate([self.means_, far])[:n]

    def _find_clusters(self, graph: "LandmarkGraph") -> None:
        peaks, weights = graph.peaks(only_seen=self.n_clusters is None), graph.weights
        labels = heavy_clusters(
            peaks, weights, self.n_clusters, float(self.threshold), float(self.min_cluster_weight)
        )
        places, known = self.landmarks_ / self.scales_, labels >= 0
        _, nearest = KDTree(places[known]).query(places)
        self.landmark_labels_ = labels[known][nearest]
        self.n_clusters_ = int(labels.max()) + 1
        self.landmark_weights_ = weights / max(float(weights.sum()), 1.0)
        lowest = peaks.diagram[np.isfinite(peaks.diagram)].min()
        self.diagram_ = np.maximum(peaks.diagram, lowest)
        members = self.landmark_labels_ == np.arange(self.n_clusters_)[:, None]
        heaviest = np.where(members, weights, -1.0).argmax(axis=1)
        self.cluster_centers_ = self.landmarks_[heaviest]

    def _release(
        self, rows: Rows, guarantee: PrivacyGuarantee, seed: Any, public_seed: Any = None
    ) -> list[str]:
        remarks = super()._release(rows, guarantee, seed, public_seed)
        if self.n_clusters is not None and self.n_clusters_ < self.n_clusters:
            remarks.append(
                f"n_clusters={self.n_clusters}, but the private counts have fewer peaks: the "
                f"result has {self.n_clusters_} clusters. Raise n_landmarks or epsilon, or lower "
                "min_cluster_weight."
            )
        return remarks

    def _released(self) -> str:
        return f"{super()._released()}, numbers of rows between landmarks"

    @by_rows
    def predict(self, X: ArrayLike) -> IntArray:
        """Cluster of the landmark that is nearest to each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows beyond the bounds are clipped to them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = np.clip(self._rows(X), *self.bounds_) / self.scales_
        _, nearest = KDTree(self.landmarks_ / self.scales_).query(rows)
        return self.landmark_labels_[nearest]

    @property
    def predict_proba(self) -> Any:
        """Not available: a landmark belongs to one cluster, whatever its components."""
        raise AttributeError(
            "DPLandmarkToMATo has no predict_proba: each landmark belongs to one cluster."
        )


def _in_units(part: FloatArray, box: Box, scales: FloatArray) -> FloatArray:
    """Rows of the cube, in the units in which distances are measured."""
    return box.points(part) / scales


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

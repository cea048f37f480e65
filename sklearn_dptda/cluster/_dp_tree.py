"""K-means of a private coreset from a tree of boxes, which are halved where noisy counts are large.

Proof: doc/theory/private_mixtures.md, "The tree of `DPTree`".
"""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.cluster import KMeans

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, ColumnUnits, FloatArray, RandomStateLike, RowBounds
from sklearn_dptda.cluster._noisy_steps import NoisyClusters, NoisyStep
from sklearn_dptda.cluster._private_kmeans import PrivateKMeans
from sklearn_dptda.cluster._standardise import Standardised
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._assignments import Cells, in_norm, row_products
from sklearn_dptda.rows._moments import FitBudget, MomentWeights
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._sklearn import Interval

# Accuracy only: the leaves have the share that the tree leaves. The rest was released.
# Share of the tree, of the budget that standardising and covariances leave. The leaves have the
# rest.
_TREE_SHARE = 0.4
# Number of standard deviations of its noise up to which the count of a leaf may consist of noise
# altogether, since leaves are kept for their counts (doc/theory/private_mixtures.md).
_DOUBTFUL = 6.0
_LEAF_WEIGHTS = MomentWeights(0.5, 0.5)

# Number of runs of k-means on the released points, of which the best is kept. It costs no privacy.
N_STARTS = 10
# Boxes with a side shorter than this share of the root are not split. Boxes at the boundary also
# contain what lies outside.
_LEAST_SIDE = 2.0**-12
# Half width of the root box, in standard deviations of its axes.
_ROOT_HALF_WIDTH = 2.5
# A box is split if its count exceeds this number of standard deviations of noise, and this share of
# a cluster of average size.
_SPLIT_DEVIATIONS = 6.0
_SPLIT_PART = 0.1
# Weights of counts alone, because the records of a level are not clipped.
# Proof: doc/theory/private_mixtures.md, "The tree of `DPTree`".
_COUNT_WEIGHTS = MomentWeights(1.0)


@fill_doc
class DPTree(PrivateKMeans):
    """K-means under differential privacy, on a coreset from a private tree.

    A fit releases a noisy centre, scale and principal axes of all rows. It grows a
    tree of boxes along these axes, and splits boxes whose noisy counts are large.
    Then it releases a noisy count and a noisy mean of each leaf. The centres are
    those of k-means of these weighted points, which is post-processing.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. It is public: do not choose it by looking at the rows.
        More clusters mean more noise in each centre.
    %(epsilon)s
    %(pure_or_gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    %(column_units)s
    max_depth : int, default=None
        Number of levels of the tree, which share their part of the budget equally.
        None: two more levels than are needed for ten boxes per cluster.
    %(cluster_covariances)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Private centres. There are fewer if the coreset has fewer points.
    %(cluster_weights_and_covariances)s
    coreset_ : ndarray of shape (n_leaves, n_features)
        Private points: the noisy means of the leaves.
    coreset_weights_ : ndarray of shape (n_leaves,)
        Private number of rows of each point of the coreset.
    %(bounds_of_rows)s
    %(logarithms_of_columns)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    DPLloyd : K-means by noisy Lloyd steps.
    sklearn_dptda.published.DPCube : K-means by private candidates and swaps.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, the coreset and, if you ask for them, covariances. It is
    (``epsilon``, ``delta``)-differentially private for adding or removing one row,
    or for replacing one. ``score``, and what ``predict`` and ``transform`` return
    for private rows, are *not* private.
    %(privacy_of_groups)s

    %(noise_of_clusters)s

    A leaf with a count of at most six standard deviations of its noise is treated
    as if it were noise altogether, since leaves are kept for their large counts.

    References
    ----------
    A. Chang, B. Ghazi, R. Kumar, P. Manurangsi, "Locally private k-means in one
    round", ICML 2021. Here, boxes take the place of random hyperplanes.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.cluster import DPTree
    >>> X, _ = make_blobs(5000, centers=3, random_state=0)
    >>> DPTree(3, bounds=(-15, 15), random_state=0).fit(X).cluster_centers_.shape
    (3, 2)
    """

    _parameter_constraints = {
        **PrivateKMeans._parameter_constraints,
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        units: ColumnUnits = "columns",
        max_depth: int | None = None,
        covariance_share: float = 0.0,
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
        self.units = units
        self.max_depth = max_depth
        self.covariance_share = covariance_share
        self.accountant = accountant
        self.random_state = random_state

    def _fit_centres(
        self, data: Standardised, share: float, rng: np.random.Generator, box: Box
    ) -> NoisyClusters:
        k = int(self.n_clusters)
        depth = default_depth(k) if self.max_depth is None else int(self.max_depth)
        budget = data.budget
        lengths = np.linalg.norm(data.axes, axis=0)
        tree = grow(
            data.rows,
            data.axes / lengths,
            lengths,
            n_clusters=k,
            depth=depth,
            budget=budget,
            share=_TREE_SHARE * share,
        )
        leaves, kept = _coreset(data, tree, budget, (1 - _TREE_SHARE) * share)
        counts = leaves.moments.floored_counts
        points, weights = leaves.means[kept], counts[kept]
        self.coreset_ = self._logarithms.back(box.inside(data.back(points)))
        self.coreset_weights_ = weights
        kmeans = KMeans(min(k, len(points)), n_init=N_STARTS, random_state=0)
        labels = kmeans.fit(points, sample_weight=weights).labels_
        # Leaves were chosen by their counts, so noise may have created a small one.
        sd = leaves.moments.sd_count
        sds = np.where(counts <= _DOUBTFUL * sd, counts, sd)
        return leaves.pooled(kept, labels, kmeans.cluster_centers_, sds)

    def _released(self):
        return f"a coreset, {super()._released()}"


def _coreset(data, tree, budget, share):
    """Noisy moments of the leaves, and the leaves that are above the noise."""
    leaves = tree.leaves
    centres = tree.centres[leaves] @ tree.directions.T
    sides = tree.high[leaves] - tree.low[leaves]
    radii = in_norm(np.linalg.norm(sides / 2, axis=1), data.n_features, budget.norm)[:, None]
    cells = Cells(centres, radii, budget.norm, tree.leaf_of)
    moments = budget.release(data.rows, cells, len(leaves), weights=_LEAF_WEIGHTS, share=share)
    return NoisyStep(centres, radii, moments), np.flatnonzero(moments.above_noise)


@dataclass
class BoxTree:
    """Boxes of a binary tree, in coordinates along the columns of ``directions``.

    ``low`` and ``high``, of shape (n_nodes, n_axes), are the boxes; those at the boundary also
    represent what lies outside. ``axis``, ``cut`` and ``left`` tell where each node is divided, and
    which node is its lower child (-1 for a leaf). The upper child is the next node.
    """

    directions: np.ndarray
    low: np.ndarray
    high: np.ndarray
    axis: np.ndarray
    cut: np.ndarray
    left: np.ndarray

    @classmethod
    def root(cls, directions, half_widths):
        """One box around the origin."""
        half = np.asarray(half_widths, dtype=float)[None]
        return cls(directions, -half, half, np.full(1, -1), np.zeros(1), np.full(1, -1))

    @property
    def leaves(self):
        """Indices of the nodes that are not split."""
        return np.flatnonzero(self.left < 0)

    @property
    def centres(self):
        """Centres of the boxes, in their coordinates."""
        return (self.low + self.high) / 2

    def coordinates(self, part):
        """Coordinates of records, each computed by itself."""
        return row_products(part, self.directions.T[:, None]).T

    def leaf_of(self, part):
        """Index of the leaf of each record, among :attr:`leaves`."""
        coordinates = self.coordinates(part)
        rows, node = np.arange(len(part)), np.zeros(len(part), dtype=np.intp)
        while (self.left[node] >= 0).any():
            inner = self.left[node] >= 0
            above = coordinates[rows, self.axis[node]] > self.cut[node]
            node = np.where(inner, self.left[node] + above, node)
        return np.searchsorted(self.leaves, node)

    def counted(self, part):
        """Leaves of the records, for a release of counts alone, which uses no residuals."""
        return self.leaf_of(part), part

    def split(self, nodes):
        """Halve boxes across their longest side, down to a least length."""
        least = _LEAST_SIDE * (self.high[0] - self.low[0]).max()
        for node in nodes:
            sides = self.high[node] - self.low[node]
            axis = int(np.argmax(sides))
            if sides[axis] <= least:
                continue
            middle = (self.low[node, axis] + self.high[node, axis]) / 2
            below, above = self.high[node].copy(), self.low[node].copy()
            below[axis] = above[axis] = middle
            self.axis[node], self.cut[node], self.left[node] = axis, middle, len(self.low)
            self.low = np.vstack([self.low, self.low[node], above])
            self.high = np.vstack([self.high, below, self.high[node]])
            self.axis = np.append(self.axis, [-1, -1])
            self.cut = np.append(self.cut, [0.0, 0.0])
            self.left = np.append(self.left, [-1, -1])


def grow(
    rows: Rows,
    directions: FloatArray,
    half_widths: FloatArray,
    *,
    n_clusters: int,
    depth: int,
    budget: FitBudget,
    share: float,
) -> BoxTree:
    """Grow a tree level by level from noisy counts of its leaves.

    ``half_widths`` of the root box are in standard deviations of the axes.
    """
    tree = BoxTree.root(directions, _ROOT_HALF_WIDTH * np.asarray(half_widths))
    for _ in range(depth):
        leaves = tree.leaves
        moments = budget.release(
            rows,
            tree.counted,
            len(leaves),
            weights=_COUNT_WEIGHTS,
            share=share / depth,
        )
        total = max(float(moments.counts.sum()), 1.0)
        enough = max(_SPLIT_DEVIATIONS * moments.sd_count, _SPLIT_PART * total / n_clusters)
        tree.split(leaves[moments.counts >= enough])
    return tree


def default_depth(n_clusters):
    """Two more levels than are needed for about ten boxes per cluster."""
    return math.ceil(math.log2(n_clusters / _SPLIT_PART)) + 2

"""K-means of a private coreset from a tree of boxes.

Proof: doc/theory/private_mixtures.md, "The tree of `DPTree`".
"""

from numbers import Integral

import numpy as np
from sklearn.cluster import KMeans

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, RandomStateLike, RowBounds
from sklearn_dptda.cluster._box_tree import default_depth, grow
from sklearn_dptda.cluster._noisy_steps import NoisyClusters, NoisyStep, Standardised
from sklearn_dptda.cluster._private_kmeans import PrivateKMeans
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._assignments import hard_assignment, in_norm, residuals_about
from sklearn_dptda.rows._moments import MomentWeights
from sklearn_dptda.rows._rows import Box
from sklearn_dptda.utils._sklearn import Interval

# Share of the tree, of the budget that standardising and covariances leave. The leaves have the
# rest.
_TREE_SHARE = 0.4
# Number of standard deviations of its noise up to which the count of a leaf may consist of noise
# altogether, since leaves are kept for their counts (doc/theory/private_mixtures.md).
_DOUBTFUL = 6.0
_LEAF_WEIGHTS = MomentWeights(0.5, 0.5)

# Number of runs of k-means on the released points, of which the best is kept. It costs no privacy.
N_STARTS = 10


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
    max_depth : int, default=None
        Number of levels of the tree, which share their part of the budget equally.
        None: two more levels than are needed for ten boxes per cluster.
    %(cluster_covariances)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Private centres. There are fewer if the coreset has fewer points.
    %(cluster_weights_scales_and_covariances)s
    coreset_ : ndarray of shape (n_leaves, n_features)
        Private points: the noisy means of the leaves.
    coreset_weights_ : ndarray of shape (n_leaves,)
        Private number of rows of each point of the coreset.
    %(bounds_of_rows)s
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
        points, weights = leaves.means[kept], leaves.counts[kept]
        self.coreset_, self.coreset_weights_ = box.inside(data.back(points)), weights
        kmeans = KMeans(min(k, len(points)), n_init=N_STARTS, random_state=0)
        labels = kmeans.fit(points, sample_weight=weights).labels_
        # Leaves were chosen by their counts, so noise may have created a small one.
        sd = leaves.moments.sd_count
        sds = np.where(leaves.counts <= _DOUBTFUL * sd, leaves.counts, sd)
        return leaves.pooled(kept, labels, kmeans.cluster_centers_, sds)

    def _released(self):
        return f"a coreset, {super()._released()}"


def _coreset(data, tree, budget, share):
    """Noisy moments of the leaves, and the leaves that are above the noise."""
    leaves = tree.leaves
    centres = tree.centres[leaves] @ tree.directions.T
    sides = tree.high[leaves] - tree.low[leaves]
    radii = in_norm(np.linalg.norm(sides / 2, axis=1), data.n_features, budget.norm)[:, None]
    assign = hard_assignment(tree.leaf_of, residuals_about(centres, radii, budget.norm))
    moments = budget.release(data.rows, assign, len(leaves), weights=_LEAF_WEIGHTS, share=share)
    step = NoisyStep(centres, radii, moments)
    return step, np.flatnonzero(moments.above_noise(step.counts))

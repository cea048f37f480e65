"""K-means by private candidates, private swaps and recovery."""

import math
from functools import partial
from numbers import Integral

import numpy as np

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, CovarianceType, RandomStateLike, RowBounds
from sklearn_dptda.cluster._kmeans._box_tree import default_depth, grow
from sklearn_dptda.cluster._kmeans._private_kmeans import PrivateKMeans
from sklearn_dptda.cluster._kmeans._swaps import Candidates, CountedRows, search
from sklearn_dptda.cluster._mixture._centres import far_apart
from sklearn_dptda.cluster._mixture._noisy_step import NoisyStep
from sklearn_dptda.cluster._mixture._standardised import standardise
from sklearn_dptda.cluster._moments._joint_moments import MomentWeights
from sklearn_dptda.cluster._moments._moment_release import hard_assignment
from sklearn_dptda.cluster._moments._row_arithmetic import in_norm, nearest_to, residuals_about
from sklearn_dptda.privacy import PrivacyAccountant, zcdp_rho
from sklearn_dptda.utils._sklearn import Interval

# Shares of what standardising and the covariances leave: tree, swaps, recovery.
_SHARES = (0.25 / 0.95, 0.35 / 0.95, 0.35 / 0.95)
_RECOVERY_WEIGHTS = MomentWeights(0.4, 0.6)
# In root mean square radii: where a record's cost and its residual are cut off.
_COST_RADIUS, _RECOVERY_RADIUS = 1.5, 1.4
_MOST_AXES = 6


@fill_doc
class DPCube(PrivateKMeans):
    """K-means under differential privacy, by candidates from a private partition.

    A noisy centre and scale of all rows; a public random projection; a tree of
    boxes, split where noisy counts are large, whose centres are candidates;
    swaps of centres for candidates by the exponential mechanism; noisy means
    of the clusters in the original space.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    %(epsilon)s
    %(pure_or_gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    n_projections : int, default=None
        Dimension of the projection. None: that of the rows, at most six; with
        the dimension of the rows there is no projection.
    n_swaps : int, default=None
        Number of swaps. None: twice the number of clusters.
    %(cluster_covariances)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Private centres.
    %(cluster_weights_scales_and_covariances)s
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    DPLloyd : By noisy Lloyd steps.
    DPTree : By a private tree alone.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, centres, weights and perhaps covariances, and is
    (``epsilon``, ``delta``)-differentially private for adding or removing one
    row, or for replacing one. Noisy sums and choices compose as zCDP, or add
    up with ``delta=0``. The cost of a row, taken for the centre of its cell of
    a lattice, is cut off at a public distance, and summed in whole numbers.
    ``score``, and what ``predict`` and ``transform`` return for private rows,
    are *not* private.
    %(privacy_of_groups)s

    %(noise_of_clusters)s

    References
    ----------
    M.-F. Balcan, T. Dick, Y. Liang, W. Mou, H. Zhang, "Differentially private
    clustering in high-dimensional Euclidean spaces", ICML 2017. Written from
    the paper: every box of a level is counted, empty or not; the number of
    swaps is public; recovery divides by noisy counts. One partition, not many,
    and costs that are cut off, keep the noise down.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.cluster import DPCube
    >>> X, _ = make_blobs(5000, centers=3, random_state=0)
    >>> DPCube(3, bounds=(-15, 15), random_state=0).fit(X).cluster_centers_.shape
    (3, 2)
    """

    _parameter_constraints = {
        **PrivateKMeans._parameter_constraints,
        "n_projections": [Interval(Integral, 1, None, closed="left"), None],
        "n_swaps": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        bounds_share: float = 0.2,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        rows_per_group: int = 1,
        n_projections: int | None = None,
        n_swaps: int | None = None,
        covariance_share: float = 0.0,
        covariance_type: CovarianceType = "full",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bounds_share = bounds_share
        self.adjacency = adjacency
        self.groups = groups
        self.rows_per_group = rows_per_group
        self.n_projections = n_projections
        self.n_swaps = n_swaps
        self.covariance_share = covariance_share
        self.covariance_type = covariance_type
        self.accountant = accountant
        self.random_state = random_state

    @staticmethod
    def _gaussian_loss(epsilon, delta):
        # Choices are no Gaussian mechanisms: losses add up as zCDP.
        rho = zcdp_rho(epsilon, delta)
        return math.sqrt(2 * rho), rho

    def _mechanism(self):
        if self.delta == 0:
            return "discrete Laplace mechanism and permute-and-flip, composed"
        return "discrete Gaussian and exponential mechanisms, composed"

    def _fit_centres(self, rows, covariance_share, budget, rng):
        k, d = int(self.n_clusters), rows.n_features
        grown, swapped, recovered = (1 - covariance_share) * np.array(_SHARES)
        data = standardise(rows, budget)
        budget = data.budget
        n_axes = min(d, self.n_projections or _MOST_AXES)
        directions = np.eye(d) if n_axes == d else _orthogonal(d, n_axes, rng)
        half_widths = np.linalg.norm(data.axes.T @ directions, axis=0)
        depth = default_depth(k)
        tree = grow(data.rows, directions, half_widths, k, depth, budget, grown)
        candidates = Candidates(tree.centres, _COST_RADIUS * n_axes**0.5)
        counted = CountedRows.of(data.rows.map(tree.coordinates), tree.low[0], tree.high[0])
        n_swaps = 2 * k if self.n_swaps is None else int(self.n_swaps)
        start = tree.leaves[far_apart(tree.centres[tree.leaves], k)]
        chosen = search(candidates, counted, start, n_swaps, budget, swapped)
        return data, _recover(data, tree, tree.centres[chosen], budget, recovered)


def _orthogonal(d, n_axes, rng):
    """Random orthonormal directions."""
    return np.linalg.qr(rng.standard_normal((d, n_axes)))[0]


def _recover(data, tree, projected, budget, share):
    """Noisy clusters, in the original space, of those in the projection."""
    base = projected @ tree.directions.T
    radius = in_norm(_RECOVERY_RADIUS * data.n_features**0.5, data.n_features, budget.norm)
    nearest = partial(_nearest_in, tree=tree, nearest=nearest_to(projected))
    assign = hard_assignment(nearest, residuals_about(base, radius, budget.norm))
    moments = budget.release(data.rows, assign, len(base), _RECOVERY_WEIGHTS, share)
    return NoisyStep(base, radius, moments).clusters()


def _nearest_in(part, tree, nearest):
    return nearest(tree.coordinates(part))

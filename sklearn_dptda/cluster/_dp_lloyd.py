"""Lloyd's algorithm under differential privacy."""

from numbers import Integral

import numpy as np

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, RandomStateLike, RowBounds
from sklearn_dptda.cluster._noisy_steps import (
    NoisyClusters,
    Standardised,
    moved_centres,
)
from sklearn_dptda.cluster._private_kmeans import PrivateKMeans
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._rows import Box
from sklearn_dptda.utils._sklearn import Interval


@fill_doc
class DPLloyd(PrivateKMeans):
    """K-means under differential privacy, by noisy Lloyd steps.

    A fit releases a noisy centre and scale of all rows and standardises the rows.
    Each of ``n_iter`` steps then clips the residuals of the rows about the current
    centres, and releases the noisy count and sum of every cluster together.

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
    n_iter : int, default=8
        Number of steps, which share the budget: more steps mean more noise in each
        of them. If the noise allows it and there are more than three steps, the
        first three cluster many small cells to find initial centres, and the
        others refine these.
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
    DPTree : K-means of a private coreset, with one pass for each level of a tree.
    DPMoGMorse : Clusters of any shape.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, centres, weights and, if you ask for them,
    covariances. It is (``epsilon``, ``delta``)-differentially private for adding
    or removing one row, or for replacing one. The losses of the steps compose:
    pure losses add up, and Gaussian ones compose exactly. ``score``, and what
    ``predict`` and ``transform`` return for private rows, are *not* private.
    %(privacy_of_groups)s

    %(noise_of_clusters)s

    References
    ----------
    D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially private k-means
    clustering", CODASPY 2016. Centring, clipped residuals and Gaussian noise are
    additions of this implementation.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.cluster import DPLloyd
    >>> X, _ = make_blobs(5000, centers=3, random_state=0)
    >>> DPLloyd(3, bounds=(-15, 15), random_state=0).fit(X).cluster_centers_.shape
    (3, 2)
    """

    _parameter_constraints = {
        **PrivateKMeans._parameter_constraints,
        "n_iter": [Interval(Integral, 1, None, closed="left")],
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
        n_iter: int = 8,
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
        self.n_iter = n_iter
        self.covariance_share = covariance_share
        self.accountant = accountant
        self.random_state = random_state

    def _fit_centres(
        self, data: Standardised, share: float, rng: np.random.Generator, box: Box
    ) -> NoisyClusters:
        last = moved_centres(
            data,
            int(self.n_clusters),
            int(self.n_iter),
            share=share,
            rng=rng,
            merged=self.covariance_share > 0,
        )
        return last.clusters()

"""Private k-means: the base class of its estimators, and the algorithm of Lloyd."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances, nan_euclidean_distances

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    ColumnUnits,
    FloatArray,
    IntArray,
    RandomStateLike,
    RowBounds,
)
from sklearn_dptda.cluster._noisy_steps import (
    NoisyClusters,
    mixture_steps,
    moved_centres,
    worthwhile_steps,
)
from sklearn_dptda.cluster._standardise import UNITS, Standardised, standardise
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._localisation import box_within
from sklearn_dptda.rows._methods import by_rows, fit_predict, fit_transform, sum_by_rows
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._public_box import PublicBox
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._people import beside_ids
from sklearn_dptda.utils._sklearn import Interval, Options, StrOptions


class PrivateKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateRowsEstimator):
    """Private k-means. Subclasses find clusters of standardised rows in ``_fit_centres``."""

    _parameter_constraints = {
        **PrivateRowsEstimator._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "units": [StrOptions({"columns", "bounds"}), "array-like"],
        "covariance_share": [Interval(Real, 0.01, 0.9, closed="both"), Options(Real, {0})],
    }
    _search = staticmethod(box_within)
    _has_mixture = _adapts_to_columns = True

    def _learn(
        self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box
    ) -> list[str]:
        share = float(self.covariance_share)
        data = standardise(rows, budget, box.spreads)
        self.units_ = box.unit * data.scales
        clusters = self._fit_centres(data, 1 - share, rng, box)
        if share > 0:
            last = mixture_steps(data, clusters.centres, 1, share=share)
            clusters, covariances = last.components()
            self.covariances_ = box.covariances(data.covariances_back(covariances))
        self.weights_, self.weights_noise_ = clusters.weights, clusters.sd_weights
        self.cluster_centers_ = self._logarithms.back(box.inside(data.back(clusters.centres)))
        noise = self.units_ * clusters.sd_centres
        self.cluster_centers_noise_ = self._logarithms.spreads_back(noise, self.cluster_centers_)
        self.within_noise_ = clusters.within_noise
        return data.remarks()

    def _fit_centres(
        self, data: Standardised, share: float, rng: np.random.Generator, box: Box
    ) -> NoisyClusters:
        """Noisy clusters, for a share of the budget of the standardised rows."""
        raise NotImplementedError

    @property
    def scales_(self) -> FloatArray:
        """The same as ``units_``."""
        return self.units_

    def _public_box(self, n_features: int) -> PublicBox:
        return super()._public_box(n_features).with_units(self.units)

    def _released(self) -> str:
        covariances = ", covariances" if self.covariance_share > 0 else ""
        return f"centres and weights{covariances} of k-means clusters"

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    fit_predict = fit_predict
    fit_transform = fit_transform

    @by_rows
    @fill_doc
    def predict(self, X: ArrayLike) -> IntArray:
        """Index of the nearest centre of each row, in units of ``units_``.

        %(one_number_for_each_row)s
        """
        return self._distances(X).argmin(axis=1)

    @by_rows
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each cluster, as if all clusters were equally large and wide, and round.

        It is that of a mixture of Gaussian distributions about the centres, with equal weights and
        one variance in the units of ``units_``: what the released centres and weights leave of the
        variance of all rows. The likeliest cluster is thus that of :meth:`predict`. For private
        rows, the probabilities are *not* private. With covariances, which describe the clusters
        better, see :class:`MorseMerging`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to assign.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Each row sums to one.
        """
        distances = self._distances(X)
        least = distances.min(axis=1, keepdims=True)
        squares = (distances - least) * (distances + least)
        return softmax(-squares / (2 * self._variance_within()), axis=1)

    def _centres_in_units(self) -> FloatArray:
        return self._logarithms.of(self.cluster_centers_) / self.units_

    def _variance_within(self) -> float:
        """Variance of a column within clusters, of a mean variance of all rows, which is one."""
        centres = self._centres_in_units()
        between = self.weights_ @ np.square(centres - self.weights_ @ centres)
        return max(1.0 - float(between.mean()), UNITS.least_variance)

    @by_rows
    def transform(self, X: ArrayLike) -> FloatArray:
        """Distances of the rows from the centres, in units of ``units_``. They are *not* private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to transform.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            For a data frame with the column ``groups``, a data frame with this column
            as the last one.
        """
        return beside_ids(X, self.groups, self._distances(X), super().get_feature_names_out())

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the distances, and of the column of ids if there is one.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        names: NDArray[np.object_] = super().get_feature_names_out()
        return names if self.groups is None else np.append(names, self.groups)

    def _distances(self, X: ArrayLike) -> FloatArray:
        rows, centres = self._rows(X) / self.units_, self._centres_in_units()
        if np.isnan(rows).any():
            # A row without any value has no distance. It is as far from all centres.
            return np.nan_to_num(nan_euclidean_distances(rows, centres))
        distances: FloatArray = euclidean_distances(rows, centres)
        return distances

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Negative sum of the squared distances to the nearest centres, in units of ``units_``.

        The score is *not* private for private rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask collection
            Rows to score. The parts of a Dask collection are summed where they are.
        y : Ignored

        Returns
        -------
        float
        """
        return -float(sum_by_rows(self, X, "_squares")[1])

    def _squares(self, X: ArrayLike) -> FloatArray:
        return np.square(self._distances(X).min(axis=1))


@fill_doc
class DPLloyd(PrivateKMeans):
    """K-means under differential privacy, by noisy Lloyd steps.

    A fit releases a noisy centre and scale of all rows and standardises the rows.
    Each of its steps then clips the residuals of the rows about the current
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
    %(column_units)s
    n_iter : int, default=None
        Number of steps, which share the budget: more steps mean more noise in each
        of them. The first half of them clusters small cells to find initial
        centres, and the others refine these. A single step, and fits with
        covariances of few clusters, start from public centres instead. None: four,
        six or eight, by the noisy number of rows for each cluster, or three or eight
        for at most 20 clusters in one or two columns.
    %(cluster_covariances)s
    %(missing_values)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Private centres.
    n_iter_ : int
        Number of steps: ``n_iter``, or the one that the noisy number of rows led to.
    %(cluster_weights_and_covariances)s
    %(bounds_of_rows)s
    %(logarithms_of_columns)s
    %(share_of_missing_values)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    DPTree : K-means of a private coreset, with one pass for each level of a tree.
    DPMoGMorse : Clusters of any shape.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, the number of steps, centres, weights and, if you ask
    for them, covariances. It is (``epsilon``, ``delta``)-differentially private for adding
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
        "n_iter": [Interval(Integral, 1, None, closed="left"), None],
        "missing": ["boolean", list, tuple],
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
        n_iter: int | None = None,
        covariance_share: float = 0.0,
        missing: bool | Sequence[Any] = False,
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
        self.n_iter = n_iter
        self.covariance_share = covariance_share
        self.missing = missing
        self.accountant = accountant
        self.random_state = random_state

    def _fit_centres(
        self, data: Standardised, share: float, rng: np.random.Generator, box: Box
    ) -> NoisyClusters:
        k, merged = int(self.n_clusters), self.covariance_share > 0
        self.n_iter_ = int(self.n_iter or worthwhile_steps(data, k, share))
        last = moved_centres(data, k, self.n_iter_, share=share, rng=rng, merged=merged)
        return last.clusters()

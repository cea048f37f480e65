"""Clusters of any shape: the components of a mixture, merged along the saddles of its density.

The mixture is given, or private and fitted first.

Proof: doc/theory/private_mixtures.md, "Starts, numbers of steps, kinds of covariances".
"""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin, clone
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches, get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    ColumnUnits,
    CovarianceType,
    FloatArray,
    IntArray,
    RandomStateLike,
    RowBounds,
)
from sklearn_dptda.cluster._dp_mog import DPMoG, Parameters
from sklearn_dptda.cluster._merge_tree import MergeTree, morse_linkage
from sklearn_dptda.cluster._mixture_density import MixtureDensity, mixture_parameters
from sklearn_dptda.cluster._noisy_steps import USUAL_CENTRES
from sklearn_dptda.cluster._normal_groups import groups_that_cross
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._methods import by_rows, fit_predict
from sklearn_dptda.rows._sizes import Logarithms
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._sklearn import HasMethods, Interval, _fit_context

# Constraints on the parameters of the merging.
MERGING_CONSTRAINTS: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
    "merge_threshold": [Interval(Real, 0, None, closed="left"), None],
    "min_cluster_weight": [Interval(Real, 0, 1, closed="left")],
}
# Accuracy only: numbers of components are public, and the mixture has been released.
# Number of components of the mixture if no estimator is given.
_DEFAULT_COMPONENTS = 8
# If the number of clusters is not given: the nats by which clusters must stand out from their
# saddles, and the least weight of a cluster as a share of the mean weight of the modes. Eight
# normal components make ripples of up to a nat where the density is flat.
_MIN_PROMINENCE_NATS, _MIN_WEIGHT_RATIO = 1.25, 0.2
# Number of rows that are labelled together, so that memory does not grow with the number of rows.
BATCH_ROWS = 1 << 14
# Number of components beyond the number of clusters, so that clusters can have any shape.
_SPARE_COMPONENTS = 4
# How often the noise of the mixture is drawn again to measure how stable the number of clusters is.
# There are fewer draws if there are many components, since merging takes longer.
_N_REDRAWS, _N_REDRAWS_OF_MANY = 10, 4


def check_number_of_clusters(
    n_clusters: int | None, merge_threshold: float | None, n_components: int | None
) -> None:
    """Refuse two rules for one cut, and warn if there are more clusters than components."""
    if n_clusters is not None and merge_threshold is not None:
        raise ValueError("n_clusters and merge_threshold exclude each other: give one of them.")
    if n_clusters is not None and n_components is not None and n_clusters > n_components:
        warn_caller(
            f"n_clusters={n_clusters} is larger than n_components={n_components}: there cannot "
            "be more clusters than components. Raise n_components.",
        )


class MergedModesMixin:
    """Clusters that are modes of a mixture, merged across the saddles of its density."""

    n_clusters: int | None
    merge_threshold: float | None
    min_cluster_weight: float
    _linkage = staticmethod(morse_linkage)
    # Whether clusters that cross or share a centre are groups of components, not of modes.
    _finds_crossings = True

    def _set_merged(self: Any, *parameters: Any) -> None:
        """Set the attributes that follow from weights, means and covariances."""
        tree = self._linkage(*parameters)
        labels = self._cut(tree)
        logarithms = Logarithms.learnt_by(self, tree.modes.shape[1])
        self.modes_, self.saddles_ = logarithms.back(tree.modes), logarithms.back(tree.saddles)
        self.linkage_, self.mode_labels_ = tree.linkage, labels
        self.component_labels_ = labels[tree.owners]
        groups = None
        if self.n_clusters is not None and self._finds_crossings:
            density = MixtureDensity(*parameters)
            groups = groups_that_cross(density, self.component_labels_, int(self.n_clusters))
        if groups is not None:
            weights = np.zeros((tree.n_modes, int(groups.max()) + 1))
            np.add.at(weights, (tree.owners, groups), density.weights)
            # Clusters are numbered by their highest modes.
            order = np.argsort((weights > 0).argmax(axis=0), kind="stable")
            self.component_labels_ = np.argsort(order)[groups]
            self.mode_labels_ = weights[:, order].argmax(axis=1)
        self.n_clusters_ = int(self.component_labels_.max()) + 1

    def _finds_number(self) -> bool:
        """Whether the number of clusters follows from the merge tree."""
        return self.n_clusters is None and self.merge_threshold is None

    def _cut(self, tree: MergeTree) -> IntArray:
        """Cluster of each mode: as many as the parameters say, or those that stand out."""
        if self._finds_number():
            least = max(self.min_cluster_weight, _MIN_WEIGHT_RATIO / tree.n_modes)
            return tree.cut_by_prominence(_MIN_PROMINENCE_NATS, least)
        return tree.cut(self.n_clusters, self.merge_threshold, self.min_cluster_weight)

    def _probabilities(self: Any, X: FloatArray) -> FloatArray:
        """Posterior probability of each cluster, for checked rows."""
        density, members = self._mixture(), np.eye(self.n_clusters_)[self.component_labels_]
        out = np.empty((len(X), members.shape[1]))
        for rows in gen_batches(len(X), BATCH_ROWS):
            some = np.asarray(X[rows], dtype=float)
            shares = (
                softmax(density.log_joint_of_known(some), axis=1)
                if np.isnan(some).any()
                else density.responsibilities(some)
            )
            out[rows] = shares @ members
        return out

    def _labels(self, X: FloatArray) -> IntArray:
        """Cluster of each checked row."""
        return self._probabilities(X).argmax(axis=1)

    @by_rows
    @fill_doc
    def predict(self: Any, X: ArrayLike) -> IntArray:
        """Assign each row to the cluster with the largest posterior probability.

        %(one_number_for_each_row)s
        """
        return self._labels(self._rows(X))

    @by_rows
    def predict_proba(self: Any, X: ArrayLike) -> FloatArray:
        """Posterior probability of each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, `n_clusters_`)
        """
        return self._probabilities(self._rows(X))


@fill_doc
class MorseMerging(
    MergedModesMixin, QuotedParametersMixin, MetaEstimatorMixin, ClusterMixin, BaseEstimator
):
    """Clusters of any shape from a mixture with more components than clusters.

    A fit learns a mixture, and merges the modes of its density across all but the
    saddles that separate clusters most clearly.

    Parameters
    ----------
    estimator : estimator, default=None
        A mixture that learns ``weights_``, ``means_`` and ``covariances_`` (of any
        of scikit-learn's covariance types), private or not. Wrap a fitted one in
        :class:`sklearn.frozen.FrozenEstimator`. None: ``GaussianMixture(8)``, which
        is not private.
    n_clusters : int, default=None
        Number of clusters, at most the number of modes. None: the clusters that
        stand out from their saddles by at least 1.25 nats, which can be a single
        one.
    %(merging)s

    Attributes
    ----------
    estimator_ : estimator
        The fitted mixture.
    %(merge_tree)s
    component_labels_ : ndarray of shape (n_components,)
        Cluster of each component.
    n_clusters_ : int
        Number of clusters.
    labels_ : ndarray of shape (n_samples,)
        Clusters of the training rows. Present only if the mixture is not private.
    %(columns)s

    See Also
    --------
    morse_linkage : The merge tree, from weights, means and covariances alone.

    Notes
    -----
    .. rubric:: Privacy

    The merge tree and the clusters are functions of the mixture's parameters alone,
    so they are as private as these are. What ``predict`` and ``fit_predict`` return
    for private rows is *not* private: each label is a function of its row.

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from sklearn.mixture import GaussianMixture
    >>> from sklearn_dptda.cluster import MorseMerging
    >>> X, y = make_moons(1000, noise=0.05, random_state=0)
    >>> morse = MorseMerging(GaussianMixture(10, random_state=0), n_clusters=2)
    >>> adjusted_rand_score(y, morse.fit_predict(X)) > 0.95
    True
    """

    _parameter_constraints = {
        "estimator": [HasMethods("fit"), None],
        **MERGING_CONSTRAINTS,
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_clusters: int | None = None,
        merge_threshold: float | None = None,
        *,
        min_cluster_weight: float = 0.0,
    ) -> None:
        self.estimator = estimator
        self.n_clusters = n_clusters
        self.merge_threshold = merge_threshold
        self.min_cluster_weight = min_cluster_weight

    @_fit_context(prefer_skip_nested_validation=False)
    @fill_doc
    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Fit the mixture and merge its modes.

        %(fit_rows_or_parts)s
        """
        base = self.estimator
        # Private mixtures read the rows themselves, wherever these are, and group them by person.
        private = base is not None and is_private(base)
        if not private:
            X = rows = check_rows(self, X)
        if base is None:
            base = GaussianMixture(min(_DEFAULT_COMPONENTS, len(rows)), random_state=0)
        self._check_base(base)
        sizes = (getattr(base, name, None) for name in ("n_components", "n_clusters"))
        n_components = next((int(n) for n in sizes if isinstance(n, Integral)), None)
        check_number_of_clusters(self.n_clusters, self.merge_threshold, n_components)
        of_people = {} if groups is None else {"groups": groups}
        self.estimator_ = clone(base).fit(X, y, **of_people)
        self._set_merged(*mixture_parameters(self.estimator_))
        if private:
            # Only the mixture has seen the number and the names of the columns.
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
                if hasattr(self.estimator_, name):
                    setattr(self, name, getattr(self.estimator_, name))
        else:
            self.labels_ = self._labels(rows)
        return self

    @staticmethod
    def _check_base(base: Any) -> None:
        """Refuse an estimator that will not be a mixture, before it spends any budget."""
        name = type(base).__name__
        if getattr(base, "covariance_share", None) == 0:
            raise ValueError(
                f"{name} releases no covariances with covariance_share=0, and merging needs them. "
                "Set covariance_share to about 0.5."
            )
        privacy = getattr(get_tags(base), "privacy", None)
        other = privacy is not None and (privacy.releases != "fit" or privacy.input != "rows")
        other |= isinstance(base, PrivateRowsEstimator) and not base._has_mixture
        if other or isinstance(base, Pipeline):
            raise ValueError(
                f"estimator {name} is not a mixture. Pass one that learns weights_, means_ and "
                "covariances_. Nothing was spent."
            )

    fit_predict = fit_predict

    def _rows(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        # A private mixture clips rows to a range in which no square overflows.
        rows = getattr(self.estimator_, "_rows", None)
        return check_rows(self, X, reset=False) if rows is None else rows(X)

    def _mixture(self) -> MixtureDensity:
        return MixtureDensity(*mixture_parameters(self.estimator_))

    def __sklearn_tags__(self):
        """Declare that the input is a dense table of rows."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


@fill_doc
class DPMoGMorse(MergedModesMixin, DPMoG):
    """Private clusters of any shape: a private mixture, merged along density saddles.

    A fit releases a private Gaussian mixture with more components than clusters,
    and merges modes of its density that no saddle of low density separates. The
    merging is post-processing.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters. If it is given, clusters that cross, and some that share a
        centre, are groups of components. None: the clusters that stand out from their
        saddles by at least 1.25 nats, which can be a single one.
    n_components : int, default=None
        Number of components of the mixture at the start. It is public. None: four
        more than ``n_clusters``, if you give it, or up to 32 if there are few columns and a
        noisy number of rows is large. Otherwise four more than the number
        of clusters of private cells, if this number is clear and larger than eight,
        and eight if not.
    %(epsilon)s
    %(gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    %(column_units)s
    %(mixture_fit)s
    %(merging)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    %(mixture_covariances)s
    %(noise_of_components)s
    %(merge_tree)s
    component_labels_ : ndarray of shape (n_kept,)
        Cluster of each component.
    n_clusters_ : int
        Number of clusters.
    n_clusters_stability_ : float
        How stable the number of clusters is, if you do not give it: the share of
        ten trials (four, if there are many components) that find the same number
        after as much noise as that of the fit is added once more. It measures the
        effect of the noise only. If there are as many clusters as components, there
        may be more clusters: try a larger ``n_components``.
    %(bounds_of_rows)s
    %(logarithms_of_columns)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    DPMoG : The mixture without the merging.
    MorseMerging : The merging, for any mixture.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, weights, means and covariances, as :class:`DPMoG`
    does. It is (``epsilon``, ``delta``)-differentially private for adding or
    removing one row, or for replacing one. Labels of private rows are *not*
    private.
    %(privacy_of_groups)s

    %(noise_of_clusters)s

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from sklearn_dptda.cluster import DPMoGMorse
    >>> X, y = make_moons(5000, noise=0.05, random_state=0)
    >>> private = DPMoGMorse(2, 8, epsilon=2.0, bounds=([-1.5, -1], [2.5, 1.5]), random_state=0)
    >>> adjusted_rand_score(y, private.fit_predict(X)) > 0.8
    True
    """

    _parameter_constraints = {
        **DPMoG._parameter_constraints,
        **MERGING_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }
    _merges_components = True

    def __init__(
        self,
        n_clusters: int | None = None,
        n_components: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        units: ColumnUnits = "columns",
        covariance_type: CovarianceType | Literal["auto"] = "auto",
        missing: bool | Sequence[Any] = False,
        merge_threshold: float | None = None,
        min_cluster_weight: float = 0.0,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        super().__init__(
            n_components,
            epsilon,
            delta,
            bounds,
            adjacency=adjacency,
            groups=groups,
            unit=unit,
            units=units,
            covariance_type=covariance_type,
            missing=missing,
            accountant=accountant,
            random_state=random_state,
        )
        self.n_clusters = n_clusters
        self.merge_threshold = merge_threshold
        self.min_cluster_weight = min_cluster_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number_of_clusters(self.n_clusters, self.merge_threshold, self._n_start())

    def _n_start(self) -> int | None:
        if self.n_components is not None or self.n_clusters is None:
            return self.n_components
        return self.n_clusters + _SPARE_COMPONENTS

    def _keep(
        self,
        weights: FloatArray,
        means: FloatArray,
        covariances: FloatArray,
        redraw: Callable[[], Parameters] | None = None,
    ) -> None:
        super()._keep(weights, means, covariances)
        self._set_merged(*mixture_parameters(self))
        if self._finds_number() and redraw is not None:
            n_redraws = _N_REDRAWS if len(weights) <= 2 * USUAL_CENTRES else _N_REDRAWS_OF_MANY
            cuts = [self._cut(self._linkage(*redraw())) for _ in range(n_redraws)]
            found_again = [cut.max() + 1 == self.n_clusters_ for cut in cuts]
            self.n_clusters_stability_ = float(np.mean(found_again))

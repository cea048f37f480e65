"""Clusters of any shape: the components of a mixture, merged along the saddles of its density."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin, clone
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches, get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.cluster._merge_tree import SEARCHES, MergeTree, SaddleSearch, morse_linkage
from sklearn_dptda.cluster._mixture_density import MixtureDensity, basins, mixture_parameters
from sklearn_dptda.cluster._quadratic_strings import centres_climbed_to
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._methods import by_rows, fit_predict
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._sklearn import HasMethods, Interval, StrOptions, _fit_context

PredictMethod = Literal["responsibility", "flow"]
# Constraints on the parameters of the merging.
MERGING_CONSTRAINTS: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
    "merge_threshold": [Interval(Real, 0, None, closed="left"), None],
    "min_cluster_weight": [Interval(Real, 0, 1, closed="left")],
    "saddle_search": [StrOptions(SEARCHES)],
    "predict_method": [StrOptions({"responsibility", "flow"})],
}
# Number of components of the mixture if no estimator is given.
_DEFAULT_COMPONENTS = 8
# If the number of clusters is not given: the nats by which clusters must stand out from their
# saddles, and the least weight of a cluster as a share of the mean weight of the modes. Eight
# normal components make ripples of up to a nat where the density is flat.
_MIN_PROMINENCE_NATS, _MIN_WEIGHT_RATIO = 1.25, 0.2
# Number of rows that are labelled together, so that memory does not grow with the number of rows.
_BATCH_ROWS = 1 << 14


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


@dataclass(frozen=True)
class MergedMixture:
    """A mixture whose modes are merged into clusters.

    ``of_centres``: its modes are the centres of the components, as for quadratic strings.
    """

    density: MixtureDensity
    modes: FloatArray
    mode_labels: IntArray
    component_labels: IntArray
    of_centres: bool

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Take over what a fitted estimator has released."""
        return cls(
            estimator._mixture(),
            estimator.modes_,
            estimator.mode_labels_,
            estimator.component_labels_,
            estimator.saddle_search == "quadratic_strings",
        )

    def predict(self, X: FloatArray, method: PredictMethod) -> IntArray:
        """Cluster of each row: the likeliest one, or that of the mode that the row climbs to."""
        if method == "responsibility":
            return self.predict_proba(X).argmax(axis=1)
        labels = np.empty(len(X), dtype=int)
        for rows in gen_batches(len(X), _BATCH_ROWS):
            labels[rows] = self._flow(np.asarray(X[rows], dtype=float))
        return labels

    def _flow(self, X: FloatArray) -> IntArray:
        if self.of_centres:
            return self.component_labels[centres_climbed_to(self.density, X)]
        modes = basins(self.density, X, self.modes)
        # If a climb stalls on a plateau, the row gets the likeliest cluster.
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.where(modes < 0, likeliest, self.mode_labels[modes])

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Posterior probability of each cluster, of shape (n_samples, n_clusters)."""
        members = np.eye(self.mode_labels.max() + 1)[self.component_labels]
        out = np.empty((len(X), members.shape[1]))
        for rows in gen_batches(len(X), _BATCH_ROWS):
            shares = self.density.responsibilities(np.asarray(X[rows], dtype=float))
            out[rows] = shares @ members
        return out


def finds_number(estimator: Any) -> bool:
    """Whether the number of clusters follows from the merge tree."""
    return estimator.n_clusters is None and estimator.merge_threshold is None


def cut_as_asked(estimator: Any, tree: MergeTree) -> IntArray:
    """Cluster of each mode: as many as the parameters say, or those that stand out."""
    # Quadratic strings leave modes without saddles. Nothing is known of how these modes stand out.
    published = estimator.saddle_search == "quadratic_strings"
    if finds_number(estimator) and not published:
        least = max(estimator.min_cluster_weight, _MIN_WEIGHT_RATIO / tree.n_modes)
        return tree.cut_by_prominence(_MIN_PROMINENCE_NATS, least)
    return tree.cut(
        estimator.n_clusters,
        estimator.merge_threshold,
        estimator.min_cluster_weight,
        rule="height" if published else "strength",
    )


def set_merged(estimator: Any, *parameters: Any) -> None:
    """Set the attributes that follow from weights, means and covariances."""
    tree = morse_linkage(*parameters, saddle_search=estimator.saddle_search)
    labels = cut_as_asked(estimator, tree)
    estimator.modes_, estimator.saddles_ = tree.modes, tree.saddles
    estimator.linkage_, estimator.mode_labels_ = tree.linkage, labels
    estimator.component_labels_ = labels[tree.owners]
    estimator.n_clusters_ = int(labels.max()) + 1


@by_rows
@fill_doc
def predict(self: Any, X: ArrayLike) -> IntArray:
    """Assign rows to clusters.

    %(one_number_for_each_row)s
    """
    rows = self._rows(X)
    return MergedMixture.of(self).predict(rows, self.predict_method)


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
    rows = self._rows(X)
    return MergedMixture.of(self).predict_proba(rows)


@fill_doc
class MorseMerging(QuotedParametersMixin, MetaEstimatorMixin, ClusterMixin, BaseEstimator):
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
        one. With ``saddle_search="quadratic_strings"`` the merge tree is cut in its
        largest gap instead.
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
        saddle_search: SaddleSearch = "ridgeline",
        predict_method: PredictMethod = "responsibility",
    ) -> None:
        self.estimator = estimator
        self.n_clusters = n_clusters
        self.merge_threshold = merge_threshold
        self.min_cluster_weight = min_cluster_weight
        self.saddle_search = saddle_search
        self.predict_method = predict_method

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
        set_merged(self, *mixture_parameters(self.estimator_))
        if private:
            # Only the mixture has seen the number and the names of the columns.
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
                if hasattr(self.estimator_, name):
                    setattr(self, name, getattr(self.estimator_, name))
        else:
            self.labels_ = MergedMixture.of(self).predict(rows, self.predict_method)
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
        other |= isinstance(base, PrivateRowsEstimator) and not base._has_mixture()
        if other or isinstance(base, Pipeline):
            raise ValueError(
                f"estimator {name} is not a mixture. Pass one that learns weights_, means_ and "
                "covariances_. Nothing was spent."
            )

    fit_predict = fit_predict
    predict = predict
    predict_proba = predict_proba

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

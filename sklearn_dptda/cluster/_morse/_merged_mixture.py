"""What estimators share whose clusters are merged components."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.cluster._fit_predict import FitPredictMixin
from sklearn_dptda.cluster._morse._centre_graph import centres_climbed_to
from sklearn_dptda.cluster._morse._critical_points import basins
from sklearn_dptda.cluster._morse._merge_tree import SEARCHES, morse_linkage
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.utils._row_methods import by_rows
from sklearn_dptda.utils._sklearn import Interval, StrOptions

# Rows that are labelled together, so that memory does not grow with their number.
_BATCH = 1 << 14


class MergedMixtureMixin(FitPredictMixin):
    """What estimators share whose clusters are merged components.

    They have the parameters ``n_clusters``, ``merge_threshold``, ``min_cluster_weight``,
    ``saddle_search`` and ``predict_method``, and methods ``_mixture``, which returns the density,
    and ``_rows``, which checks rows.
    """

    _rows: Callable[[Any], FloatArray]

    _cut_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "merge_threshold": [Interval(Real, 0, None, closed="left"), None],
        "min_cluster_weight": [Interval(Real, 0, 1, closed="left")],
        "saddle_search": [StrOptions(SEARCHES)],
        "predict_method": [StrOptions({"responsibility", "flow"})],
    }

    def _check_cut(self, n_components):
        if self.n_clusters is not None and self.merge_threshold is not None:
            raise ValueError("n_clusters and merge_threshold exclude each other.")
        if None not in (self.n_clusters, n_components) and self.n_clusters > n_components:
            warn_caller(
                f"n_clusters={self.n_clusters} is more than n_components={n_components}: there "
                "cannot be as many clusters.",
            )

    def _merge(self, weights, means, covariances):
        """Everything that follows from the parameters: no row comes here."""
        tree = morse_linkage(weights, means, covariances, saddle_search=self.saddle_search)
        self.modes_, self.saddles_, self.linkage_ = tree.modes, tree.saddles, tree.linkage
        self.mode_labels_ = self._cut(tree)
        self.component_labels_ = self.mode_labels_[tree.owners]
        self.n_clusters_ = int(self.mode_labels_.max()) + 1

    def _cut(self, tree):
        return tree.cut(self.n_clusters, self.merge_threshold, self.min_cluster_weight)

    @by_rows
    @fill_doc
    def predict(self, X: ArrayLike) -> IntArray:
        """Assign rows to clusters.

        %(one_number_for_each_row)s
        """
        check_is_fitted(self)
        return self._assign(self._rows(X))

    def _assign(self, X):
        if self.predict_method == "flow":
            return self._flow(X)
        return self._probabilities(X).argmax(axis=1)

    @by_rows
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior probability of each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, `n_clusters_`)
        """
        check_is_fitted(self)
        return self._probabilities(self._rows(X))

    def _probabilities(self, X):
        density = self._mixture()
        members = np.eye(self.n_clusters_)[self.component_labels_]
        out = np.empty((len(X), self.n_clusters_))
        for rows in gen_batches(len(X), _BATCH):
            out[rows] = density.responsibilities(np.asarray(X[rows], dtype=float)) @ members
        return out

    def _flow(self, X):
        density = self._mixture()
        if self.saddle_search == "quadratic_strings":
            labels = np.empty(len(X), dtype=int)
            for rows in gen_batches(len(X), _BATCH):
                centres = centres_climbed_to(density, np.asarray(X[rows], dtype=float))
                labels[rows] = self.component_labels_[centres]
            return labels
        # Where a climb stalls on a plateau the likeliest cluster is taken.
        labels = self._probabilities(X).argmax(axis=1)
        for rows in gen_batches(len(X), _BATCH):
            modes = basins(density, np.asarray(X[rows], dtype=float), self.modes_)
            labels[rows] = np.where(modes < 0, labels[rows], self.mode_labels_[modes])
        return labels

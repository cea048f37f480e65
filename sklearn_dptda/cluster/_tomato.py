"""Clusters from the peaks of a density on a neighbourhood graph, merged by prominence.

The hierarchy of peaks also serves the private estimators, on grids and on landmarks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from gudhi.clustering.tomato import Tomato
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, SparseLike
from sklearn_dptda.cluster._neighbours import (
    NeighbourChoice,
    Neighbourhoods,
    make_search,
    row_densities,
    with_diagonal,
)
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, check_sparse
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context


@fill_doc
class ToMATo(QuotedParametersMixin, ClusterMixin, BaseEstimator):
    """Topological mode analysis: clusters of any shape from the peaks of a density.

    This estimator is *not* private. Each row climbs to the densest of its
    neighbours, and so to a peak. Peaks are merged into higher ones in the order of
    their prominence: the depth of the descent on the way to a higher one.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters. It excludes ``merge_threshold``.
    merge_threshold : float, default=None
        Merge peaks of at most this prominence, in the units of the density. With
        neither this nor ``n_clusters``, the cut is made in the largest gap between
        successive prominences.
    n_neighbors : int or "sqrt", default="sqrt"
        Number of neighbours of a row in the graph, including itself. ``"sqrt"``:
        the square root of the number of rows, but at least 10 and at most 100.
    radius : float, default=None
        If given, the neighbours of a row are all rows within this distance, and
        ``n_neighbors`` does not define the graph.
    density : {"log_dtm", "dtm", "log_kde", "kde"} or callable, default="log_dtm"
        Density of the rows: from the distance-to-measure of the neighbours (``"dtm"``), a kernel
        density (``"kde"``), or the logarithm of one of these; or a function from
        rows to densities.
    bandwidth : float or {"scott", "silverman"}, default="scott"
        Bandwidth of the kernel density.
    metric : str, default="euclidean"
        Any metric of scikit-learn's neighbours. ``"precomputed"``: the input holds
        distances to the training rows, dense or sparse.
    n_jobs : int, default=None
        Number of threads for neighbour searches.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters of the training rows, numbered by prominence.
    n_clusters_ : int
        Number of clusters.
    diagram_ : ndarray of shape (n_peaks, 2)
        Birth and death of every peak, the most prominent first: the first
        ``n_clusters_`` are those of the clusters. The highest peak of each connected
        component dies at ``-inf``.
    children_ : ndarray of shape (n_peaks - `n_connected_components_`, 2)
        Merges of peaks in the order of prominence. Numbers from ``n_peaks`` on
        stand for merges.
    n_connected_components_ : int
        Number of connected components of the graph.
    density_ : ndarray of shape (n_samples,)
        Density of the training rows, after ties were broken.
    peak_indices_ : ndarray of shape (n_peaks,)
        Training row of each peak.
    %(columns)s

    See Also
    --------
    DPToMATo : The same method under differential privacy.
    MorseMerging : The same method for the modes of a mixture.

    Notes
    -----
    The fitted object keeps the training rows. If the input is a private release,
    such as an embedding of a private graph, the clustering is post-processing.

    Training rows climb by the rule of ``predict``, which repeats ``labels_`` for
    them. With sparse precomputed distances this needs a stored diagonal; ``fit``
    adds a missing one.

    References
    ----------
    F. Chazal, L. Guibas, S. Oudot, P. Skraba, "Persistence-based clustering in
    Riemannian manifolds", Journal of the ACM 60, 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from sklearn_dptda.cluster import ToMATo
    >>> X, y = make_moons(1000, noise=0.05, random_state=0)
    >>> adjusted_rand_score(y, ToMATo(n_clusters=2).fit_predict(X)) > 0.99
    True
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "merge_threshold": [Interval(Real, 0, None, closed="left"), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"sqrt"})],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "density": [StrOptions({"log_dtm", "dtm", "log_kde", "kde"}), callable],
        "bandwidth": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"scott", "silverman"}),
        ],
        "metric": [str],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        merge_threshold: float | None = None,
        *,
        n_neighbors: int | Literal["sqrt"] = "sqrt",
        radius: float | None = None,
        density: Literal["log_dtm", "dtm", "log_kde", "kde"]
        | Callable[[Any], ArrayLike] = "log_dtm",
        bandwidth: float | Literal["scott", "silverman"] = "scott",
        metric: str = "euclidean",
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.merge_threshold = merge_threshold
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.density = density
        self.bandwidth = bandwidth
        self.metric = metric
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike | SparseLike, y: object = None) -> Self:
        """Find peaks and clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows. With ``metric="precomputed"``, their distances, of shape
            (n_samples, n_samples), dense or sparse.
        y : Ignored

        Returns
        -------
        self
        """
        X = self._validated(X, reset=True)
        self._check_choices(X)
        nodes, members, weights, near = self._landscape(X)
        self._weights = break_ties(weights)
        peaks = find_peaks(near, self._weights)
        self.diagram_, self.children_ = peaks.diagram, peaks.children
        self.n_connected_components_ = peaks.n_components
        self.n_clusters_ = peaks.choose_number(self.n_clusters, self.merge_threshold)
        self._warn_of_number()
        self._labels = peaks.cut(self.n_clusters_)[peaks.owners]
        self.density_ = self._weights[members]
        # The rule of predict, also for a row that is not among its own neighbours.
        self.labels_ = self._densest(near)[members]
        self.peak_indices_ = nodes[indices_of(peaks.diagram[:, 0], self._weights)]
        return self

    def _landscape(self, X: Any) -> tuple[IntArray, IntArray, FloatArray, Neighbourhoods]:
        """Nodes of the graph, the node of each row, and density and neighbours of the nodes."""
        everything = np.arange(X.shape[0])
        self._search = make_search(X, self.metric, self.n_jobs)
        near, distances = self._choice().near_and_distances(X)
        weights = row_densities(X, self.density, distances, self.bandwidth, self.metric)
        if self.metric == "precomputed":
            near = [row if i in row else np.r_[i, row] for i, row in enumerate(near)]
        elif self.radius is None and not np.equal(near, everything[:, None]).any(axis=1).all():
            # Rows with more copies than neighbours do not find themselves. Copies become one node.
            _, nodes, members = np.unique(X, axis=0, return_index=True, return_inverse=True)
            self._search = make_search(X[nodes], self.metric, self.n_jobs)
            return nodes, members.ravel(), weights[nodes], self._choice().near(X[nodes])
        return everything, everything, weights, near

    def predict(self, X: ArrayLike | SparseLike) -> IntArray:
        """Cluster of the densest of the nearest training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows. With ``metric="precomputed"``, their distances to the training
            rows, of shape (n_samples, n_training).

        Returns
        -------
        ndarray of shape (n_samples,)
            The label is -1 if a row has no training row within ``radius``, or no
            stored distance.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self._densest(self._choice().near(X))

    def _densest(self, near: Neighbourhoods) -> IntArray:
        """Cluster of the densest of the neighbours, or -1 if there are none."""
        if isinstance(near, np.ndarray):
            return self._labels[near[np.arange(len(near)), self._weights[near].argmax(axis=1)]]
        best = [row[self._weights[row].argmax()] if len(row) else -1 for row in near]
        return np.where(np.array(best) < 0, -1, self._labels[best])

    def _validated(self, X: Any, reset: bool) -> Any:
        precomputed = self.metric == "precomputed"
        if issparse(X):
            check_sparse(X)
        X = check_rows(self, X, reset=reset, accept_sparse="csr" if precomputed else False)
        if precomputed:
            if reset and X.shape[0] != X.shape[1]:
                raise ValueError(
                    f'metric="precomputed" needs a square matrix; got the shape {X.shape}.'
                )
            if (X.data if issparse(X) else X).min(initial=0.0) < 0:
                raise ValueError('metric="precomputed" does not take negative distances.')
            if reset and issparse(X):
                X = with_diagonal(X)
        return X

    def _check_choices(self, X: Any) -> None:
        if self.n_clusters is not None and self.merge_threshold is not None:
            raise ValueError("n_clusters and merge_threshold exclude each other: give one of them.")
        if self.metric == "precomputed" and self.density in ("kde", "log_kde"):
            raise ValueError(
                f'density={self.density!r} needs coordinates, but metric="precomputed" takes '
                'distances. Use density="dtm" or "log_dtm".'
            )
        if self.n_clusters is not None and self.n_clusters > X.shape[0]:
            raise ValueError(
                f"n_clusters={self.n_clusters} is larger than the number of rows, {X.shape[0]}."
            )

    def _choice(self) -> NeighbourChoice:
        n_distances = None if self.density in ("dtm", "log_dtm") else 0
        return NeighbourChoice(self._search, self.n_neighbors, self.radius, n_distances)

    def _warn_of_number(self) -> None:
        if self.n_clusters is None or self.n_clusters == self.n_clusters_:
            return
        reason = (
            f"the density has {len(self.diagram_)} peaks"
            if self.n_clusters > self.n_clusters_
            else f"the graph has {self.n_connected_components_} connected components"
        )
        warn_caller(
            f"n_clusters={self.n_clusters}, but {reason}: the result has {self.n_clusters_} "
            "clusters. Change n_neighbors or radius.",
        )

    def __sklearn_tags__(self):
        """Declare that precomputed input is pairwise and can be sparse."""
        tags = super().__sklearn_tags__()
        precomputed = self.metric == "precomputed"
        tags.input_tags.pairwise = precomputed
        tags.input_tags.sparse = precomputed
        return tags


@dataclass(frozen=True)
class Peaks:
    """Peaks in the order of their prominence, and the peaks that they merge into.

    ``diagram``, of shape (n_peaks, 2), has births and deaths, which are ``-inf`` for the highest
    peak of a connected component. These come first, then the others by prominence.
    ``into`` is the more prominent peak that each peak merges into, or itself, and ``owners`` the
    peak that each node climbs to. ``children`` are the merges, in scikit-learn's format.
    """

    diagram: FloatArray
    into: IntArray
    owners: IntArray
    children: IntArray

    @property
    def prominences(self) -> FloatArray:
        """Birth minus death."""
        return self.diagram[:, 0] - self.diagram[:, 1]

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(np.isinf(self.prominences).sum())

    def choose_number(self, n_clusters: int | None = None, threshold: float | None = None) -> int:
        """Number of clusters of a cut, between the number of components and that of peaks.

        Without number and threshold, it is that of the largest gap between prominences.
        """
        if n_clusters is not None:
            return int(np.clip(n_clusters, self.n_components, len(self.diagram)))
        if threshold is not None:
            return max(int((self.prominences > threshold).sum()), self.n_components)
        finite = self.prominences[self.n_components :]
        if len(finite) == 0:
            return self.n_components
        # Each peak is compared with the next less prominent one, and the last with a prominence of
        # zero. The prominence of a single component is its height from its peak to the lowest
        # saddle.
        highest = self.diagram[:, 0].max() - self.diagram[self.n_components :, 1].min()
        gaps = -np.diff(np.r_[max(highest, finite[0]), finite, 0.0])
        return self.n_components + int(np.argmax(gaps))

    def cut(self, n_clusters: int) -> IntArray:
        """Cluster of each peak, numbered by prominence."""
        labels = np.arange(len(self.into))
        for peak in range(n_clusters, len(labels)):
            labels[peak] = labels[self.into[peak]]
        return labels


def break_ties(weights: FloatArray) -> FloatArray:
    """Weights without ties: the first of equal nodes becomes the highest.

    Searches list the first of equally near nodes, so that all copies of a row find the highest one.
    """
    order = np.lexsort((-np.arange(len(weights)), weights))
    rising = weights[order].astype(float)
    for i in np.flatnonzero(np.diff(rising) <= 0) + 1:
        # Runs of ties move up one float at a time, and push up the weights that they meet.
        while i < len(rising) and rising[i] <= rising[i - 1]:
            rising[i] = np.nextafter(rising[i - 1], np.inf)
            i += 1
    without_ties = np.empty_like(rising)
    without_ties[order] = rising
    return without_ties


def indices_of(wanted: FloatArray, values: FloatArray) -> IntArray:
    """Indices of the wanted values among values without ties."""
    order = np.argsort(values)
    return order[np.searchsorted(values, wanted, sorter=order)]


def find_peaks(neighbours: IntArray | list[IntArray], weights: FloatArray) -> Peaks:
    """Peaks of weights without ties on a graph, an array or a list of neighbours, by GUDHI."""
    tomato = Tomato(graph_type="manual", density_type="manual").fit(neighbours, weights=weights)
    leaves, children = tomato.leaf_labels_, np.asarray(tomato.children_).reshape(-1, 2)
    n_leaves = int(tomato.n_leaves_)
    births = np.full(n_leaves, -np.inf)
    np.maximum.at(births, leaves, weights)
    deaths = np.full(n_leaves, -np.inf)
    pairs = np.asarray(tomato.diagram_).reshape(-1, 2)
    deaths[indices_of(pairs[:, 0], births)] = pairs[:, 1]
    into = np.arange(n_leaves)
    # The highest leaf of each node of the merge tree.
    tops = list(range(n_leaves))
    for a, b in children:
        low, high = sorted((tops[a], tops[b]), key=births.__getitem__)
        into[low] = high
        tops.append(high)
    # GUDHI numbers leaves in the order in which it meets them.
    order = np.lexsort((-births, -(births - deaths)))
    rank = np.argsort(order)
    merges = np.arange(n_leaves, n_leaves + len(children))
    return Peaks(
        diagram=np.column_stack([births, deaths])[order],
        into=rank[into[order]],
        owners=rank[leaves],
        children=np.r_[rank, merges][children],
    )

"""Spectral embeddings of noisy graphs, without the bias of the flips.

Proof: doc/theory/graphs.md, "Bias".
"""

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, IntArray, LegacyRandomStateLike
from sklearn_dptda.graph._adjacency import GraphLike, check_adjacency, check_links
from sklearn_dptda.graph._noisy import PackedAdjacency
from sklearn_dptda.graph._reliability import (
    EIGENVECTOR_TOLERANCE,
    leading,
    reliability_in_even_noise,
    reliability_of_links,
    shifted,
)
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context

# Eigenvalues count beyond this multiple of the edge of the noise, about which the largest
# eigenvalue of noise fluctuates. Simulated: doc/theory/graphs.md, "What can be seen".
NOISE_EDGE_MARGIN = 1.05
# Reliability of a coordinate is at least this, so that one that was asked for is never dropped.
_LEAST_RELIABILITY = 0.1
# Part of the ones that flips make from which on noise is alike in all pairs.
_EVEN = 0.9


class AdjacencySpectralEmbedding(
    QuotedParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Coordinates of the nodes of a graph from leading eigenvectors of its adjacency matrix.

    Estimates the latent positions of a random dot product graph, up to
    rotation; of a graph whose pairs were flipped, those of the graph before.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates. None: eigenvalues beyond the edge of what noise
        makes that links left out confirm, at least one and at most
        ``max_components``.
    flip_probability : float or "auto", default="auto"
        Probability with which pairs were flipped. ``"auto"``: that which the
        graph carries, as a release of :class:`EdgeFlip` does, or zero.
    max_components : int, default=20
        Most coordinates that are looked for.
    normalize : bool, default=True
        Whether :meth:`transform` and :meth:`fit_transform` return directions:
        coordinates of the parts of eigenvalues that are no noise, divided by
        their Euclidean length, or by the standard deviation of their noise
        where that is more; nodes of which little is known stay near zero. True
        for clusters; False for positions, their shape and their products, which
        are also in ``embedding_``.
    random_state : int, RandomState instance or None, default=0
        Of the start vectors of the eigensolver, and of the links left out.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_nodes, `n_components_`)
        Coordinates of the nodes, never normalized; those of positive
        eigenvalues first.
    eigenvalues_ : ndarray of shape (`n_components_`,)
        Of the adjacency matrix without bias. Those of a size up to 1.05 times
        ``noise_edge_`` are noise, as far as this graph can say: coordinates that
        were asked for can be.
    signature_ : ndarray of shape (`n_components_`,)
        Their signs: -1 marks a coordinate of which products are subtracted, in
        a generalised random dot product graph.
    reliability_ : ndarray of shape (`n_components_`,)
        Part of each eigenvalue that is no noise, from 0.1 to 1: in five splits
        a tenth of the links is left out, and shows so much of what the others
        say. Of packed releases, by a formula for noise that is alike in all pairs.
    n_components_ : int
        Number of coordinates.
    noise_edge_ : float
        What eigenvalues of noise alone reach, of flips and of sampling:
        ``2 sqrt(n_nodes v)``, with ``v`` the variance of a pair. An estimate, for
        many nodes; public, or private output.
    flip_probability_ : float
        Probability that was used.
    n_features_in_ : int
        Number of nodes.

    Notes
    -----
    How large groups must be to come out of the noise,
    :func:`~sklearn_dptda.theory.detection_limit` says beforehand.

    Post-processing: as private as the graph, normalized or not. The unbiased
    matrix ``(A - p) / (1 - 2 p)`` is never formed.

    In a degree-corrected block model a node's position is its activity times
    that of its group: groups are rays from the origin, which coordinates of
    length one bring together in points. On networks whose degrees vary, that
    multiplies the agreement of clusters with groups. Where there are many
    groups, the number of coordinates that is found is better than as many as
    groups.

    References
    ----------
    J. Hehir, A. Slavkovic, X. Niu, "Consistent spectral clustering of network
    block models under local differential privacy", 2022, and S. Vishwanath, J.
    Hehir, "The shape of edge differential privacy"; the unbiased matrix is
    that of "Signal recovery from random dot product graphs under local
    differential privacy", 2025. Lengths of one: J. Lei, A. Rinaldo,
    "Consistency of spectral clustering in stochastic block models", Annals of
    Statistics 43, 2015. Links left out: F. Chen, S. Roch, K. Rohe, S. Yu,
    "Estimating graph dimension with cross-validated eigenvalues", 2021.

    Examples
    --------
    >>> from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip
    >>> from sklearn_dptda.graph import make_latent, make_rdpg
    >>> A = make_rdpg(make_latent(1000, random_state=0), random_state=0)
    >>> noisy = EdgeFlip(2.0, random_state=0).fit_transform(A)
    >>> AdjacencySpectralEmbedding().fit_transform(noisy).shape
    (1000, 3)

    Clusters of a noisy graph:

    >>> from sklearn.cluster import KMeans
    >>> from sklearn.pipeline import make_pipeline
    >>> embedding = AdjacencySpectralEmbedding(3)
    >>> labels = make_pipeline(embedding, KMeans(3, random_state=0)).fit_predict(noisy)
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "flip_probability": [Interval(Real, 0, 0.5, closed="left"), StrOptions({"auto"})],
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "normalize": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        flip_probability: float | Literal["auto"] = "auto",
        max_components: int = 20,
        normalize: bool = True,
        random_state: LegacyRandomStateLike = 0,
    ) -> None:
        self.n_components = n_components
        self.flip_probability = flip_probability
        self.max_components = max_components
        self.normalize = normalize
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: GraphLike | PackedAdjacency, y: object = None) -> Self:
        """Embed the nodes.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_nodes, n_nodes), networkx graph or release
            Symmetric, of zeros and ones.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the graph is refused, has no edges or fewer nodes than
            components, or carries no probability of flips any more.
        """
        A = _symmetric(X)
        n = A.shape[0]
        wanted = self.n_components or min(self.max_components, n - 1)
        if wanted > n - 1:
            raise ValueError(f"n_components={wanted} needs more than the graph's {n} nodes.")
        self.n_features_in_ = n
        self.flip_probability_ = self._probability(X)
        n_ones = _n_ones(A)
        if n_ones == 0:
            raise ValueError("the graph has no edges: there is nothing to embed.")
        rng = check_random_state(self.random_state)
        values, vectors = leading(unbiased(A, self.flip_probability_), wanted, rng)
        # What the largest eigenvalue of independent noise of this density is about.
        # Proof: doc/theory/graphs.md, "Dimension".
        density = n_ones / (n * (n - 1))
        spread = 2 * np.sqrt(n * density * (1 - density))
        self.noise_edge_ = spread / (1 - 2 * self.flip_probability_)
        kept = np.abs(values) > NOISE_EDGE_MARGIN * self.noise_edge_
        if isinstance(A, PackedAdjacency) and self.flip_probability_ > _EVEN * density:
            # Flips make nearly all of its ones, with one variance for all pairs.
            parts = reliability_in_even_noise(values, self.noise_edge_)
        else:
            p, links = self.flip_probability_, _links(A)
            parts, certain = reliability_of_links(links, p, values, vectors, rng)
            kept &= certain
        if self.n_components is not None:
            kept[:] = True
        elif not kept.any():
            kept[0] = True
        values, vectors, order = _in_order(values[kept], vectors[:, kept])
        self.eigenvalues_ = values
        self.reliability_ = np.clip(parts[kept][order], _LEAST_RELIABILITY, 1.0)
        self.signature_ = np.sign(values)
        self.n_components_ = len(values)
        self.embedding_ = vectors * np.sqrt(np.abs(values))
        return self

    def fit_transform(self, X: GraphLike | PackedAdjacency, y: object = None) -> FloatArray:
        """Embed the nodes, and return their coordinates.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_nodes, n_nodes), networkx graph or release
        y : Ignored

        Returns
        -------
        ndarray of shape (n_nodes, `n_components_`)
        """
        positions = self.fit(X).embedding_
        return self._output(_symmetric(X), positions) if self.normalize else positions

    def transform(self, X: GraphLike | PackedAdjacency) -> FloatArray:
        """Coordinates of nodes from their links to those of :meth:`fit`.

        Parameters
        ----------
        X : array-like, sparse matrix or release
            The graph of :meth:`fit`, or links of other nodes, of shape
            (n_rows, n_nodes), flipped with the same probability.

        Returns
        -------
        ndarray of shape (n_rows, `n_components_`)

        Raises
        ------
        ValueError
            If the number of columns or the probability of flips differs.
        """
        check_is_fitted(self)
        A = X if isinstance(X, PackedAdjacency) else check_links(X)
        if A.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {A.shape[1]} columns, but the graph of fit has {self.n_features_in_} nodes."
            )
        if self._probability(X) != self.flip_probability_:
            raise ValueError(
                f"X was flipped with probability {self._probability(X):.6g}, but the graph of fit "
                f"with {self.flip_probability_:.6g}."
            )
        p, weights = self.flip_probability_, self._weights()
        if A.shape[0] == A.shape[1] and not getattr(X, "links", False):
            return self._output(A, unbiased(A, p) @ weights)
        return self._output(A, (A @ weights - p * weights.sum(axis=0)) / (1 - 2 * p))

    def _weights(self) -> FloatArray:
        """What coordinates of a node are sums of, over the nodes that it is linked to."""
        return np.divide(
            self.embedding_,
            self.eigenvalues_,
            out=np.zeros_like(self.embedding_),
            where=self.eigenvalues_ != 0,
        )

    def _output(self, A: csr_array | PackedAdjacency, coordinates: FloatArray) -> FloatArray:
        """Coordinates as they are asked for: positions, or directions of those that are no noise.

        Proof: doc/theory/graphs.md, "Lengths".
        """
        if not self.normalize:
            return coordinates
        p, weights = self.flip_probability_, self._weights() ** 2 * self.reliability_
        # A link varies by itself at most, a pair without one by the flips at least, and any pair
        # by a quarter at most.
        least, most = (share * weights.sum(axis=0) for share in (p * (1 - p), 0.25))
        variances = np.clip(A @ weights, least, most)
        noise = np.sqrt(variances.sum(axis=1, keepdims=True)) / (1 - 2 * p)
        coordinates = np.sqrt(self.reliability_) * coordinates
        lengths = np.linalg.norm(coordinates, axis=1, keepdims=True)
        # What is zero but for the error of the eigensolver has no direction.
        error = EIGENVECTOR_TOLERANCE * np.linalg.norm(self.embedding_)
        error /= np.sqrt(self.n_features_in_)
        return np.divide(
            coordinates,
            np.maximum(lengths, noise),
            out=np.zeros_like(coordinates),
            where=lengths > error,
        )

    def _probability(self, X: Any) -> float:
        if self.flip_probability != "auto":
            return float(self.flip_probability)
        p = getattr(X, "flip_probability", 0.0)
        if p is None:
            raise ValueError(
                "the graph has lost its probability of flips in arithmetic: pass flip_probability."
            )
        if p >= 0.5:
            raise ValueError("every pair was flipped by a fair coin: nothing of the graph is left.")
        return float(p)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        """Say what input is."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        tags.input_tags.two_d_array = False
        return tags


def _symmetric(X: Any) -> csr_array | PackedAdjacency:
    """Adjacency of an undirected graph."""
    if not isinstance(X, PackedAdjacency):
        return check_adjacency(X)
    if X.kind != "undirected":
        raise ValueError(
            "the adjacency matrix is not symmetric: an embedding needs an undirected graph."
        )
    return X


def _in_order(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Eigenvalues, positive and large ones first, vectors with an orientation, and the order."""
    # What is zero but for rounding has no sign and no direction.
    values[np.abs(values) <= len(vectors) * np.finfo(float).eps * np.abs(values).max()] = 0.0
    order = np.lexsort((-np.abs(values), values < 0))
    values, vectors = values[order], vectors[:, order]
    # One of the two orientations, whatever the solver returns.
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.sign(vectors[largest, np.arange(len(largest))]), order


def unbiased(A: csr_array | PackedAdjacency, probability: float) -> LinearOperator:
    """Operator whose expectation is the adjacency matrix, without loops, before the flips."""
    A = A.astype(np.float64) if issparse(A) else A
    return shifted(A, probability) * (1 / (1 - 2 * probability))


def _links(A: csr_array | PackedAdjacency) -> csr_array:
    if isinstance(A, PackedAdjacency):
        return vstack([csr_array(A.rows(part)) for part in A.parts()], format="csr")
    return A


def _n_ones(A: csr_array | PackedAdjacency) -> int:
    if isinstance(A, PackedAdjacency):
        return sum(int(A.rows(part).sum(dtype=np.float64)) for part in A.parts())
    return A.nnz

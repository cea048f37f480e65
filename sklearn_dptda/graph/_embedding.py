"""Spectral embeddings of noisy graphs, without the bias of the flips.

Links that were left out tell which share of an eigenvalue is not noise.

Proof: doc/theory/graphs.md, "Bias".
Proof: doc/theory/graphs.md, "Reliability".
"""

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, issparse, triu, vstack
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray, LegacyRandomStateLike
from sklearn_dptda.graph._adjacency import GraphLike, PackedAdjacency, check_adjacency, check_links
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context

# Eigenvalues must exceed the edge of the noise by this factor, because the largest eigenvalue of
# noise fluctuates about the edge. It was simulated: doc/theory/graphs.md, "What can be seen".
NOISE_EDGE_MARGIN = 1.05
# Largest number of coordinates if it is not given.
_MOST_COMPONENTS = 20
# Lower limit of the reliability, so that no requested coordinate is dropped.
_LEAST_RELIABILITY = 0.1
# If the flips cause at least this share of the ones, the noise is the same for all pairs.
_EVEN = 0.9
# Least dimension of the Krylov space of the eigensolver, and the relative error of eigenvectors.
_KRYLOV_DIMENSION, EIGENVECTOR_TOLERANCE = 60, 1e-6
# Share of the links from which vectors are learnt, and number of splits that are averaged. Above
# the last number of links there is only one split, which is precise enough and takes long.
_LEARNT, _N_SPLITS, _MANY_LINKS = 0.9, 5, 1_000_000
# An eigenvalue is not noise if the links left out show it with this many standard deviations.
_CERTAIN = 2.0
_TINY = float(np.finfo(float).tiny)


class AdjacencySpectralEmbedding(
    QuotedParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Coordinates of the nodes of a graph from leading eigenvectors of its adjacency matrix.

    The embedding estimates the latent positions of a random dot product graph, up to
    rotation. If pairs were flipped, it estimates the positions before the flips.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates. None uses the eigenvalues that exceed the noise and that are
        confirmed by links left out, from 1 to 20. If there are
        many groups, this works better than their number.
    flip_probability : float or "auto", default="auto"
        Probability with which pairs were flipped, in [0, 0.5). ``"auto"`` uses the
        probability that is stored with the graph, as in a release of :class:`EdgeFlip`, or
        zero.
    normalize : bool, default=True
        Whether :meth:`transform` and :meth:`fit_transform` return directions: coordinates,
        scaled by the reliable part of their eigenvalues, and divided by their Euclidean
        length or by the standard deviation of their noise, whichever is larger. Nodes about
        which little is known are then close to zero. Use True for clustering, since
        :doc:`groups are rays </guide/networks>` from the origin. Use False for positions,
        shapes and inner products; these positions are also in ``embedding_``.
    random_state : int, RandomState instance or None, default=0
        Seed of the eigensolver and of the choice of the links left out. It has no effect on
        privacy.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_nodes, `n_components_`)
        Coordinates of the nodes, never normalised. Those of positive eigenvalues come first.
    eigenvalues_ : ndarray of shape (`n_components_`,)
        Eigenvalues of the adjacency matrix without bias. Those of at most 1.05 times
        ``noise_edge_`` in absolute value, which a given ``n_components`` can include, cannot
        be distinguished from noise.
    signature_ : ndarray of shape (`n_components_`,)
        Signs of the eigenvalues. In a generalised random dot product graph, the products of
        a coordinate with the sign -1 are subtracted.
    reliability_ : ndarray of shape (`n_components_`,)
        Share of each eigenvalue that is not noise, from 0.1 to 1, judged by
        :doc:`links left out </theory/graphs>`.
    n_components_ : int
        Number of coordinates.
    noise_edge_ : float
        Approximate largest eigenvalue of the noise of flips and sampling, for graphs with
        many nodes.
    flip_probability_ : float
        The probability of flips that was used.
    nodes_ : ndarray of shape (n_nodes,) or None
        Names of the nodes, in the order of ``embedding_``, if the release contains them.
    n_features_in_ : int
        Number of nodes.

    See Also
    --------
    EdgeFlip : Releases a graph under edge differential privacy.
    sklearn_dptda.published.detection_limit : The size from which groups can be detected.

    Notes
    -----
    .. rubric:: Privacy

    This is post-processing: the results are as private as the graph, normalised or not.

    References
    ----------
    J. Hehir, A. Slavkovic, X. Niu, "Consistent spectral clustering of network block models
    under local differential privacy", 2022; "Signal recovery from random dot product graphs
    under local differential privacy", 2025, for the unbiased matrix; J. Lei, A. Rinaldo,
    "Consistency of spectral clustering in stochastic block models", 2015, for the
    normalisation; F. Chen, S. Roch, K. Rohe, S. Yu, "Estimating graph dimension with
    cross-validated eigenvalues", 2021, for the links left out.

    Examples
    --------
    >>> from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip
    >>> from sklearn_dptda.graph import make_latent, make_rdpg
    >>> A = make_rdpg(make_latent(1000, random_state=0), random_state=0)
    >>> noisy = EdgeFlip(2.0, random_state=0).fit_transform(A)
    >>> AdjacencySpectralEmbedding().fit_transform(noisy).shape
    (1000, 3)
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "flip_probability": [Interval(Real, 0, 0.5, closed="left"), StrOptions({"auto"})],
        "normalize": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        flip_probability: float | Literal["auto"] = "auto",
        normalize: bool = True,
        random_state: LegacyRandomStateLike = 0,
    ) -> None:
        self.n_components = n_components
        self.flip_probability = flip_probability
        self.normalize = normalize
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: GraphLike | PackedAdjacency, y: object = None) -> Self:
        """Embed the nodes.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_nodes, n_nodes), networkx graph or release
            The graph: a symmetric matrix of zeros and ones, a networkx graph, or a release of
            :class:`EdgeFlip` or :class:`LaplaceFlip`.
        y : Ignored

        Returns
        -------
        self
        """
        A = _symmetric(X)
        n = A.shape[0]
        wanted = self.n_components or min(_MOST_COMPONENTS, n - 1)
        if wanted > n - 1:
            raise ValueError(
                f"n_components={wanted} is too large for a graph of {n} nodes. It must be at most "
                f"{n - 1}."
            )
        self.n_features_in_ = n
        self.nodes_ = getattr(X, "nodes", None) if hasattr(X, "flip_probability") else None
        self.flip_probability_ = self._probability(X)
        n_ones = _n_ones(A)
        if n_ones == 0:
            raise ValueError("The graph has no edges, so it cannot be embedded.")
        rng = check_random_state(self.random_state)
        values, vectors = leading(unbiased(A, self.flip_probability_), wanted, rng)
        # The approximate largest eigenvalue of independent noise of this density.
        # Proof: doc/theory/graphs.md, "Dimension".
        density = n_ones / (n * (n - 1))
        spread = 2 * np.sqrt(n * density * (1 - density))
        self.noise_edge_ = spread / (1 - 2 * self.flip_probability_)
        kept = np.abs(values) > NOISE_EDGE_MARGIN * self.noise_edge_
        if isinstance(A, PackedAdjacency) and self.flip_probability_ > _EVEN * density:
            # Flips cause nearly all ones, with the same variance for all pairs.
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
            The graph, in the same form as in :meth:`fit`.
        y : Ignored

        Returns
        -------
        ndarray of shape (n_nodes, `n_components_`)
            Directions of the nodes, or their positions with ``normalize=False``.
        """
        positions = self.fit(X).embedding_
        return self._output(_symmetric(X), positions) if self.normalize else positions

    def transform(self, X: GraphLike | PackedAdjacency) -> FloatArray:
        """Compute coordinates of nodes from their links to the nodes of :meth:`fit`.

        Parameters
        ----------
        X : array-like, sparse matrix or release
            The graph of :meth:`fit`, or links of other nodes, of shape (n_rows, n_nodes),
            flipped with the same probability.

        Returns
        -------
        ndarray of shape (n_rows, `n_components_`)
            Directions of the nodes, or their positions with ``normalize=False``.
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
                f"was flipped with {self.flip_probability_:.6g}. Both must agree."
            )
        p, weights = self.flip_probability_, self._weights()
        if A.shape[0] == A.shape[1] and not getattr(X, "links", False):
            return self._output(A, unbiased(A, p) @ weights)
        return self._output(A, (A @ weights - p * weights.sum(axis=0)) / (1 - 2 * p))

    def _weights(self) -> FloatArray:
        """Return the weights whose sums over the neighbours of a node are its coordinates."""
        return np.divide(
            self.embedding_,
            self.eigenvalues_,
            out=np.zeros_like(self.embedding_),
            where=self.eigenvalues_ != 0,
        )

    def _output(self, A: csr_array | PackedAdjacency, coordinates: FloatArray) -> FloatArray:
        """Return positions, or reliable directions, as requested.

        Proof: doc/theory/graphs.md, "Lengths".
        """
        if not self.normalize:
            return coordinates
        p, weights = self.flip_probability_, self._weights() ** 2 * self.reliability_
        # The variance of a link is at most its value, that of every pair is at least that of the
        # flips, and that of every pair is at most a quarter.
        least, most = (share * weights.sum(axis=0) for share in (p * (1 - p), 0.25))
        variances = np.clip(A @ weights, least, most)
        noise = np.sqrt(variances.sum(axis=1, keepdims=True)) / (1 - 2 * p)
        coordinates = np.sqrt(self.reliability_) * coordinates
        lengths = np.linalg.norm(coordinates, axis=1, keepdims=True)
        # Coordinates that are within the error of the eigensolver of zero have no direction.
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
                "The graph has lost its probability of flips in arithmetic. Pass flip_probability."
            )
        if p >= 0.5:
            raise ValueError(
                "Every pair was flipped with probability 1/2, so nothing of the graph is left. "
                "Release it with an epsilon above 0."
            )
        return float(p)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        """Describe the input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        tags.input_tags.two_d_array = False
        return tags


def _symmetric(X: Any) -> csr_array | PackedAdjacency:
    """Return the adjacency matrix of an undirected graph."""
    if not isinstance(X, PackedAdjacency):
        return check_adjacency(X)
    if X.kind != "undirected":
        raise ValueError(
            "The adjacency matrix is not symmetric, but an embedding needs an undirected graph."
        )
    return X


def _in_order(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Sort eigenvalues, positive and large ones first, orient vectors, and return the order."""
    # Eigenvalues that are zero up to rounding errors have no sign and no direction.
    values[np.abs(values) <= len(vectors) * np.finfo(float).eps * np.abs(values).max()] = 0.0
    order = np.lexsort((-np.abs(values), values < 0))
    values, vectors = values[order], vectors[:, order]
    # Choose one of the two orientations, independently of the solver.
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.sign(vectors[largest, np.arange(len(largest))]), order


def unbiased(A: csr_array | PackedAdjacency, probability: float) -> LinearOperator:
    """Return the operator whose expectation is the adjacency matrix before the flips."""
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


def leading(
    operator: LinearOperator, n_components: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of largest absolute value, in decreasing order, and their vectors."""
    n = operator.shape[0]
    values, vectors = eigsh(
        operator,
        n_components,
        which="LM",
        v0=rng.uniform(-1, 1, n),
        # Eigenvalues at the edge of the noise are close to each other. A larger space separates
        # them faster, and their statistical error is far larger than the tolerance.
        ncv=min(max(2 * n_components + 1, _KRYLOV_DIMENSION), n),
        tol=EIGENVECTOR_TOLERANCE,
    )
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def shifted(A: csr_array | PackedAdjacency, mean: float) -> LinearOperator:
    """Return the operator of the adjacency minus a mean off the diagonal, without forming it."""
    A = aslinearoperator(A)

    def multiply(V: FloatArray) -> FloatArray:
        return A @ V - mean * (V.sum(axis=0) - V)

    def multiply_adjoint(V: FloatArray) -> FloatArray:
        return A.rmatmat(V) - mean * (V.sum(axis=0) - V)

    return LinearOperator(
        A.shape,
        matvec=lambda v: multiply(v.reshape(-1, 1))[:, 0],
        rmatvec=lambda v: multiply_adjoint(v.reshape(-1, 1))[:, 0],
        matmat=multiply,
        rmatmat=multiply_adjoint,
        dtype=np.float64,
    )


def reliability_in_even_noise(values: FloatArray, edge: float) -> FloatArray:
    """Return the reliable shares of eigenvalues if the noise is the same for all pairs."""
    beyond = np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return beyond / np.maximum(np.abs(values), _TINY)


def reliability_of_links(
    A: csr_array,
    probability: float,
    values: FloatArray,
    vectors: FloatArray,
    rng: np.random.RandomState,
) -> tuple[FloatArray, BoolArray]:
    """Return the shares of eigenvalues that links left out confirm, and which are not noise."""
    links = triu(A, 1, format="csr").astype(float)
    n_splits = 1 if links.nnz > _MANY_LINKS else _N_SPLITS
    found = [_held_out(links, probability, values, vectors, rng) for _ in range(n_splits)]
    splits = [split for split in found if split is not None]
    if not splits:
        return np.ones(len(values)), np.ones(len(values), dtype=bool)
    parts, deviations = np.mean(splits, axis=0)
    return parts, deviations > _CERTAIN


def _held_out(
    links: csr_array,
    probability: float,
    values: FloatArray,
    vectors: FloatArray,
    rng: np.random.RandomState,
) -> tuple[FloatArray, FloatArray] | None:
    """Return shares, and numbers of standard deviations, of one split; None if a side is empty."""
    learnt = rng.random_sample(links.nnz) < _LEARNT
    if learnt.all() or not learnt.any():
        return None
    n_pairs = links.shape[0] * (links.shape[0] - 1) / 2
    first = csr_array((learnt.astype(float), links.indices, links.indptr), links.shape)
    second = links - first
    operator = shifted(first + first.T, probability * _LEARNT)
    learnt_values, u = _matched(*leading(operator, len(values), rng), values, vectors)
    # Links from which vectors are learnt are not among those left out, which matters in dense
    # graphs. Adding this share of them gives a sum whose mean does not depend on the split.
    density, rest = links.nnz / n_pairs, 1 - _LEARNT
    known = density * rest / (1 - density * _LEARNT)
    shown = _over_pairs(second, u) + known * _over_pairs(first, u)
    noise = np.sqrt(_over_pairs(second, u**2) + known * _over_pairs(first, u**2))
    part = rest + known * _LEARNT
    # The sum over all pairs of nodes, for the bias of the flips.
    everywhere = (u.sum(axis=0) ** 2 - (u**2).sum(axis=0)) / 2
    shown = np.sign(learnt_values) * (shown - probability * part * everywhere)
    expected = np.abs(learnt_values) * part / _LEARNT
    return 2 * shown / np.maximum(expected, _TINY), shown / np.maximum(noise, _TINY)


def _over_pairs(links: csr_array, u: FloatArray) -> FloatArray:
    """Return the sum over pairs of the products of the two coordinates of each vector."""
    sums: FloatArray = (u * (links @ u)).sum(axis=0)
    return sums


def _matched(
    learnt_values: FloatArray, u: FloatArray, values: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sort eigenvalues and vectors of a part of the links like those of all links.

    Eigenvalues of similar size may swap places, but must still describe the same structure.
    """
    alike = (vectors.T @ u) ** 2 * (np.sign(values)[:, None] == np.sign(learnt_values))
    order = linear_sum_assignment(-alike)[1]
    return learnt_values[order], u[:, order]

"""Edge differential privacy by flipping pairs of nodes.

Proof: doc/theory/graphs.md, "Flips".
"""

import math
from collections.abc import Iterator
from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import RandomStateLike, SparseLike
from sklearn_dptda.graph._adjacency import GraphLike, check_adjacency, check_graph, check_links
from sklearn_dptda.graph._flipped_pairs import (
    Pairs,
    changed,
    flip_packed,
    flip_sparse,
    in_blocks,
    refuse_too_large,
)
from sklearn_dptda.graph._noisy import NoisyAdjacency, PackedAdjacency
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._estimator import Paid, PrivateTags, refused_without_trace
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._noise import flip_numerator
from sklearn_dptda.privacy._rare_coins import successes
from sklearn_dptda.utils._sklearn import Interval, ListOutputMixin, StrOptions, _fit_context

# Density above which bits are smaller than a sparse matrix of 5 bytes an entry.
_LEAST_PACKED_DENSITY = 1 / 40
# Number of nodes below which both are small.
_LEAST_PACKED_NODES = 2000
# Edges that iter_edges hands over together.
_EDGES_PER_BLOCK = 1 << 20


class _Flip(ListOutputMixin, PrivateEstimatorMixin, TransformerMixin, BaseEstimator):
    """Base of mechanisms that flip each pair of nodes independently."""

    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "directed": ["boolean"],
        "storage": [StrOptions({"auto", "sparse", "packed"})],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        directed: bool = False,
        storage: Literal["auto", "sparse", "packed"] = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.directed = directed
        self.storage = storage
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: GraphLike, y: object = None) -> Self:
        """Check the graph, and say what :meth:`transform` will promise.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_nodes, n_nodes), or networkx graph
            Zeros and ones with an empty diagonal; symmetric unless
            ``directed``.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the graph or a parameter is refused.
        """
        A = check_adjacency(X, self.directed)
        self.n_features_in_ = A.shape[1]
        self.flip_probability_ = self._numerator() / 2.0**64
        self._promise(self._guarantee_ahead(A.shape[1]))
        return self

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0,
            adjacency="replace-one",
            unit="one directed link, there or not" if self.directed else "one edge, there or not",
            mechanism="randomized response on every pair of nodes",
            released="a graph on the same nodes",
            seeded=self.random_state is not None,
        )

    def transform(self, X: GraphLike) -> NoisyAdjacency | PackedAdjacency:
        """Pay, and flip pairs of nodes.

        Parameters
        ----------
        X : array-like, sparse matrix or networkx graph
            With a row for each node: the graph of :meth:`fit`. With more or
            fewer rows: links of other nodes, as in :meth:`transform_links`.

        Returns
        -------
        NoisyAdjacency or PackedAdjacency
            Of the shape of ``X``, with its ``flip_probability``.

        Raises
        ------
        ValueError
            If the graph is refused, a parameter has changed since ``fit``, or the release,
            by its public numbers, does not fit into memory. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        check_is_fitted(self)
        A = check_links(X)
        if A.shape != (self.n_features_in_, self.n_features_in_):
            return self.transform_links(A)
        try:
            check_graph(A, self.directed)
        except ValueError as error:
            raise ValueError(
                f"{error} Links of as many other nodes: use transform_links."
            ) from None
        return self._release(A, "directed" if self.directed else "undirected")

    def transform_links(self, X: ArrayLike | SparseLike) -> NoisyAdjacency | PackedAdjacency:
        """Pay, and flip links of other nodes to those of the graph.

        Each entry is a record of its own. Rows of the graph itself do not
        belong here: a pair of its nodes would be in two of them, or in one and
        in the graph that :meth:`transform` releases, and pay twice.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_nodes)

        Returns
        -------
        NoisyAdjacency or PackedAdjacency
            Of the shape of ``X``, with its ``flip_probability``.

        Raises
        ------
        ValueError, PrivacyBudgetExceeded
            As :meth:`transform`.
        """
        check_is_fitted(self)
        A = check_links(X)
        if A.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {A.shape[1]} columns, but the graph of fit has {self.n_features_in_} nodes."
            )
        return self._release(A, "bipartite")

    def iter_edges(self, X: GraphLike) -> Iterator[NDArray[np.int64]]:
        """Pay, flip pairs of nodes, and hand over the edges in blocks, for graphs beyond memory.

        Parameters
        ----------
        X : array-like, sparse matrix or networkx graph
            The graph of :meth:`fit`.

        Returns
        -------
        iterator of ndarray of shape (n_edges_i, 2)
            Edges of one release, from and to, sorted, 2**20 to a block; of an
            undirected graph each edge once, with the smaller node first. It
            can be read once, and is paid for at once, read or not.

        Raises
        ------
        ValueError, PrivacyBudgetExceeded
            As :meth:`transform`.
        """
        check_is_fitted(self)
        A = check_links(X)
        if A.shape != (self.n_features_in_, self.n_features_in_):
            raise ValueError("X is not on the nodes of fit.")
        check_graph(A, self.directed)
        pairs = Pairs(A.shape[0], A.shape[1], "directed" if self.directed else "undirected")
        # What is handed over in blocks is nowhere as a whole, and so it is not kept.
        _, flips = self._pay_and_flip(pairs, A)
        blocks = in_blocks(changed(A, pairs, flips), _EDGES_PER_BLOCK)
        return (np.column_stack(pairs.pair(ranks)) for ranks in blocks)

    def _release(self, A: csr_array, kind: str) -> NoisyAdjacency | PackedAdjacency:
        pairs = Pairs(A.shape[0], A.shape[1], kind)
        packed = self.storage == "packed"
        if self.storage == "auto":
            # From public numbers alone.
            dense = self.flip_probability_ > _LEAST_PACKED_DENSITY
            packed = dense and min(A.shape) >= _LEAST_PACKED_NODES
        refuse_too_large(pairs, packed, self.flip_probability_)
        flip = flip_packed if packed else flip_sparse
        paid, flips = self._pay_and_flip(pairs, A)
        return paid.keep(flip(A, pairs, flips, self.flip_probability_))

    def _pay_and_flip(self, pairs: Pairs, A: csr_array) -> tuple[Paid, Iterator[NDArray[np.int64]]]:
        """Ranks of the pairs that are flipped, part by part."""
        self._check_promise()
        with self._paid(self.privacy_guarantee_, records=A) as seeds:
            return seeds, successes(NoiseSource(*seeds), self._numerator(), len(pairs))

    def _numerator(self) -> int:
        """Probability of a flip, times 2**64."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> PrivateTags:
        """Say what input and a release are."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        tags.input_tags.two_d_array = False
        tags.privacy.input = "graph"
        tags.privacy.releases = "transform"
        return tags


class EdgeFlip(_Flip):
    """Release a graph under edge differential privacy, by randomized response.

    Each pair of nodes is flipped, from an edge to none or back, with
    probability ``1 / (1 + exp(epsilon))``: the least that the promise allows.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release. ``inf`` flips nothing; 0 throws a fair coin
        for each pair, and releases nothing of the graph.
    directed : bool, default=False
        Whether edges have a direction; then each direction is a pair.
    storage : {"auto", "sparse", "packed"}, default="auto"
        A sparse matrix, or an operator that keeps eight pairs in a byte.
        ``"auto"``: packed where the flips alone would fill a sparse matrix of
        2,000 nodes or more.
    accountant : PrivacyAccountant, default=None
        Budget that each release is paid from.
    random_state : int, RandomState instance, Generator or None, default=None
        Of the flips. None draws from the operating system's entropy; a seed is
        for tests and study only.

    Attributes
    ----------
    flip_probability_ : float
        Public probability of a flip. It travels with what is released, so
        that an embedding takes its bias off.
    privacy_guarantee_ : PrivacyGuarantee
        What each release promises.
    n_features_in_ : int
        Number of nodes.

    See Also
    --------
    LaplaceFlip : Rounded Laplace noise; more flips for the same promise.
    AdjacencySpectralEmbedding : Coordinates of the nodes.
    sklearn_dptda.theory.detection_limit : How dense a block must be to be seen afterwards.

    Notes
    -----
    .. rubric:: Privacy

    One release is a graph on the same nodes, and is ``epsilon``-differentially
    private for replacing one edge by none or back, with ``directed`` one
    directed link: a friendship told in both directions is two. Links of other
    nodes, of :meth:`transform_links` or a :meth:`transform` of another shape,
    are a release of their own, each of them a record; no pair may be in two
    releases that are paid for once.

    The nodes and their order are public. The nodes of a networkx graph made
    from a list of edges are not: those without edges are missing, and the
    order is that of the list. Add nodes from a public list first. Keeping the
    largest component of a graph beforehand is not covered either.
    Where both ends of a pair randomize their own copy, the pair pays twice.

    At ``epsilon=0`` the released graph has the same law whatever the graph was:
    that of independent fair coins. An accountant writes such a release down, with
    a loss of 0, which fits any budget.

    References
    ----------
    S. Vishwanath, J. Hehir, "The shape of edge differential privacy",
    Definition 3 and Corollary 1 (iii); V. Karwa, P. Krivitsky, A. Slavkovic,
    "Sharing social network data", 2017.

    Examples
    --------
    >>> from sklearn_dptda.graph import EdgeFlip, make_sbm
    >>> A, _ = make_sbm([50, 50], [[0.5, 0.1], [0.1, 0.5]], random_state=0)
    >>> noisy = EdgeFlip(2.0, random_state=0).fit_transform(A)
    >>> noisy.shape, round(noisy.flip_probability, 3)
    ((100, 100), 0.119)
    """

    _parameter_constraints = {
        **_Flip._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="both")],
    }

    def _numerator(self) -> int:
        if self.epsilon == 0:
            return 1 << 63
        return flip_numerator(float(self.epsilon), 2)

    def __sklearn_tags__(self) -> PrivateTags:
        """Say that no loss at all can be asked for."""
        tags = super().__sklearn_tags__()
        tags.privacy.zero_epsilon = True
        return tags


class LaplaceFlip(_Flip):
    """Release a graph by rounding Laplace noise: dominated by :class:`EdgeFlip`.

    An edge is released where its indicator plus Laplace noise of scale
    ``1 / epsilon`` exceeds one half. That flips each pair with probability
    ``exp(-epsilon / 2) / 2``, more than ``epsilon`` asks for: the release is
    ``log(2 exp(epsilon / 2) - 1)``-differentially private.

    Parameters
    ----------
    epsilon, directed, storage, accountant, random_state
        As in :class:`EdgeFlip`.

    Attributes
    ----------
    flip_probability_, privacy_guarantee_, n_features_in_
        As in :class:`EdgeFlip`.

    Notes
    -----
    .. rubric:: Privacy

    One release is a graph on the same nodes, and is ``epsilon``-differentially
    private for replacing one edge by none or back, with some to spare.

    References
    ----------
    The code of S. Vishwanath, J. Hehir, "The shape of edge differential
    privacy".

    Examples
    --------
    >>> from sklearn_dptda.graph import EdgeFlip, LaplaceFlip, make_sbm
    >>> A, _ = make_sbm([50, 50], [[0.5, 0.1], [0.1, 0.5]], random_state=0)
    >>> EdgeFlip().fit(A).flip_probability_ < LaplaceFlip().fit(A).flip_probability_
    True
    """

    def _numerator(self) -> int:
        epsilon = float(self.epsilon)
        if math.isinf(epsilon):
            return 0
        # Rounded up, so that the promise holds to the last digit; half at most, which keeps any,
        # and never nothing.
        rounded = math.ceil(2.0**63 * math.exp(-epsilon / 2) * ROUND_UP)
        return min(max(rounded, 1), 1 << 63)

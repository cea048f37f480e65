"""Edge differential privacy by flipping pairs of nodes.

Proof: doc/theory/graphs.md, "Flips".
"""

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import RandomStateLike, SparseLike
from sklearn_dptda.graph._adjacency import (
    GraphLike,
    NoisyAdjacency,
    PackedAdjacency,
    check_graph,
    check_links,
    without_diagonal,
)
from sklearn_dptda.graph._edge_list import NodesLike, links_between, node_names
from sklearn_dptda.graph._flipped_pairs import (
    Pairs,
    changed,
    flip_packed,
    flip_sparse,
    in_blocks,
    refuse_too_large,
)
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

# Above this density, one bit per pair needs less memory than a sparse matrix of 5 bytes per entry.
_LEAST_PACKED_DENSITY = 1 / 40
# Below this number of nodes, both formats are small.
_LEAST_PACKED_NODES = 2000
# Number of edges in a block of iter_edges.
_EDGES_PER_BLOCK = 1 << 20


class _Flip(ListOutputMixin, PrivateEstimatorMixin, TransformerMixin, BaseEstimator):
    """Base of mechanisms that flip each pair of nodes independently."""

    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "nodes": [Interval(Integral, 2, None, closed="left"), "array-like", None],
        "directed": ["boolean"],
        "drop_self_loops": ["boolean"],
        "storage": [StrOptions({"auto", "sparse", "packed"})],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        nodes: NodesLike = None,
        directed: bool = False,
        drop_self_loops: bool = False,
        storage: Literal["auto", "sparse", "packed"] = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.nodes = nodes
        self.directed = directed
        self.drop_self_loops = drop_self_loops
        self.storage = storage
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: GraphLike, y: object = None) -> Self:
        """Check the graph, and determine the guarantee. No budget is spent.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_nodes, n_nodes), or networkx graph
            The graph: zeros and ones with a zero diagonal, symmetric unless ``directed``.
            Explicit zeros of a sparse matrix are no edges. A networkx graph whose edges
            have weights other than 1, also zeros, is refused.

            With ``nodes``, it can also be a list of edges: pairs, or an array or data frame
            whose first two columns are the ends of edges. An edge that is listed several
            times, or in both directions of an undirected graph, counts once. Weights, of a
            networkx graph as well, are left out. A dense table with two or three columns
            is always a list of edges.
        y : Ignored

        Returns
        -------
        self
        """
        A = self._links(X)
        check_graph(A, self.directed)
        self.nodes_ = node_names(self.nodes)
        n_nodes = self.nodes if self.nodes_ is None else len(self.nodes_)
        if n_nodes not in (None, A.shape[1]):
            raise ValueError(
                f"nodes states {n_nodes} nodes, but the graph has {A.shape[1]}. Both numbers are "
                "public and must agree."
            )
        self.n_features_in_ = A.shape[1]
        self.flip_probability_ = self._numerator() / 2.0**64
        self._promise(self._guarantee_ahead(A.shape[1]))
        return self

    def _links(self, X: GraphLike) -> csr_array:
        """Return the zeros and ones of any input, which are not yet checked to be a graph."""
        A = check_links(X) if self.nodes is None else links_between(X, self.nodes, self.directed)
        return without_diagonal(A) if self.drop_self_loops and A.shape[0] == A.shape[1] else A

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
        """Flip pairs of nodes. Each call is a new release and spends its own budget.

        Parameters
        ----------
        X : array-like, sparse matrix or networkx graph
            With as many rows as nodes: the graph of :meth:`fit`. With another number of rows:
            links of other nodes, as in :meth:`transform_links`.

        Returns
        -------
        NoisyAdjacency or PackedAdjacency
            The noisy graph, of the shape of ``X``, with its ``flip_probability``.

        Raises
        ------
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        check_is_fitted(self)
        A = self._links(X)
        if A.shape != (self.n_features_in_, self.n_features_in_):
            return self.transform_links(A)
        try:
            check_graph(A, self.directed)
        except ValueError as error:
            raise ValueError(
                f"{error} For links of as many other nodes, use transform_links."
            ) from None
        return self._release(A, "directed" if self.directed else "undirected")

    def transform_links(self, X: ArrayLike | SparseLike) -> NoisyAdjacency | PackedAdjacency:
        """Flip links between other nodes and those of the graph, and spend budget.

        Each entry is a record of its own. Do not pass rows of the graph itself: its pairs
        would be in two releases, or in two rows of one, and be charged only once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_nodes)
            Links of other nodes to the nodes of :meth:`fit`: zeros and ones.

        Returns
        -------
        NoisyAdjacency or PackedAdjacency
            The noisy links, of the shape of ``X``, with their ``flip_probability``.

        Raises
        ------
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        check_is_fitted(self)
        A = check_links(X)
        if A.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {A.shape[1]} columns, but the graph of fit has {self.n_features_in_} nodes."
            )
        return self._release(A, "bipartite")

    def iter_edges(self, X: GraphLike) -> Iterator[NDArray[Any]]:
        """Flip pairs of nodes, and iterate over the edges in blocks, for graphs beyond memory.

        Parameters
        ----------
        X : array-like, sparse matrix or networkx graph
            The graph of :meth:`fit`.

        Returns
        -------
        iterator of ndarray of shape (n_edges_i, 2)
            Sorted edges of one release in blocks of 2**20: the nodes from which and to which
            each edge goes, once for an undirected graph, with the smaller node first. Nodes
            are numbers, or names if ``nodes`` is a list. The budget is spent immediately,
            even if the iterator is not consumed.

        Raises
        ------
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        check_is_fitted(self)
        A = self._links(X)
        if A.shape != (self.n_features_in_, self.n_features_in_):
            raise ValueError(
                f"X must be a graph on the nodes of fit, of shape ({self.n_features_in_}, "
                f"{self.n_features_in_})."
            )
        check_graph(A, self.directed)
        pairs = Pairs(A.shape[0], A.shape[1], "directed" if self.directed else "undirected")
        # The release never exists as a whole, so it cannot be stored.
        _, flips = self._pay_and_flip(pairs, A)
        blocks = in_blocks(changed(A, pairs, flips), _EDGES_PER_BLOCK)
        edges = (np.column_stack(pairs.pair(ranks)) for ranks in blocks)
        return edges if self.nodes_ is None else map(self.nodes_.__getitem__, edges)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the nodes, or ``x0``, ``x1`` and so on if they have none.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        if self.nodes_ is None:
            return np.array([f"x{i}" for i in range(self.n_features_in_)], dtype=object)
        return np.array([str(name) for name in self.nodes_], dtype=object)

    def _release(self, A: csr_array, kind: str) -> NoisyAdjacency | PackedAdjacency:
        pairs = Pairs(A.shape[0], A.shape[1], kind)
        packed = self.storage == "packed"
        if self.storage == "auto":
            # The choice depends on public numbers only.
            dense = self.flip_probability_ > _LEAST_PACKED_DENSITY
            packed = dense and min(A.shape) >= _LEAST_PACKED_NODES
        refuse_too_large(pairs, packed, self.flip_probability_)
        flip = flip_packed if packed else flip_sparse
        paid, flips = self._pay_and_flip(pairs, A)
        noisy = flip(A, pairs, flips, self.flip_probability_)
        noisy.nodes = self.nodes_
        return paid.keep(noisy)

    def _pay_and_flip(self, pairs: Pairs, A: csr_array) -> tuple[Paid, Iterator[NDArray[np.int64]]]:
        """Spend the budget, and return the ranks of the flipped pairs, part by part."""
        self._check_promise()
        with self._paid(self.privacy_guarantee_, records=(pairs, A)) as seeds:
            noise, numerator = NoiseSource(*seeds), self._numerator()
            flips = noise.cross(
                A,
                lambda _: successes(noise, numerator, len(pairs)),
                metric=pairs.n_different,
                sensitivity=1,
                rate=math.log((2**64 - numerator) / numerator) if numerator else math.inf,
            )
            return seeds, flips

    def _numerator(self) -> int:
        """Return the probability of a flip, times 2**64."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> PrivateTags:
        """Describe the input and the release."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        tags.input_tags.two_d_array = False
        tags.privacy.input = "graph"
        tags.privacy.releases = "transform"
        return tags


@fill_doc
class EdgeFlip(_Flip):
    """Release a graph under edge differential privacy, by randomised response.

    Each pair of nodes is flipped, from an edge to no edge or vice versa, with probability
    ``1 / (1 + exp(epsilon))``. This is the smallest probability that the guarantee allows.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release. A smaller ``epsilon`` protects better and flips more
        pairs. ``inf`` flips nothing, without privacy. 0 flips each pair with probability 1/2:
        the release does not depend on the graph, and fits every budget.
    %(flip_parameters)s

    Attributes
    ----------
    %(flip_attributes)s

    See Also
    --------
    LaplaceFlip : Rounded Laplace noise, which needs more flips for the same guarantee.
    AdjacencySpectralEmbedding : Coordinates of the nodes of a noisy graph.
    sklearn_dptda.published.detection_limit : The density from which blocks can be detected.

    Notes
    -----
    .. rubric:: Privacy

    One release is a graph on the same nodes. It is ``epsilon``-differentially private for
    replacing the entry of one pair of nodes, that is, for adding or removing one edge, or
    with ``directed`` one directed link. A friendship that is reported in both directions
    consists of two directed links. Links of other nodes, released by
    :meth:`transform_links`, are a separate release in which each link is a record.

    The nodes and their order must be public. Those that occur in a list of edges are not:
    :doc:`pass a public list of all nodes </guide/networks>`. The record is the pair, however
    often the list repeats it. Reducing a graph to its largest component in advance is not
    covered by the guarantee either. If both ends of a pair randomise their own copy of the
    link, the pair has twice the privacy loss.

    References
    ----------
    S. Vishwanath, J. Hehir, "The shape of edge differential privacy", Definition 3; V. Karwa,
    P. Krivitsky, A. Slavkovic, "Sharing social network data", 2017.

    Examples
    --------
    >>> from sklearn_dptda.graph import EdgeFlip, make_sbm
    >>> A, _ = make_sbm([50, 50], [[0.5, 0.1], [0.1, 0.5]], random_state=0)
    >>> noisy = EdgeFlip(2.0, random_state=0).fit_transform(A)
    >>> noisy.shape, round(noisy.flip_probability, 3)
    ((100, 100), 0.119)

    A list of edges needs a public list of all nodes:

    >>> edges = [("ann", "bob"), ("bob", "cleo")]
    >>> noisy = EdgeFlip(2.0, nodes=["ann", "bob", "cleo", "dan"]).fit_transform(edges)
    >>> noisy.shape, noisy.nodes.tolist()
    ((4, 4), ['ann', 'bob', 'cleo', 'dan'])
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
        """Declare that an epsilon of 0 is allowed."""
        tags = super().__sklearn_tags__()
        tags.privacy.zero_epsilon = True
        return tags


@fill_doc
class LaplaceFlip(_Flip):
    """Release a graph by rounding Laplace noise. :class:`EdgeFlip` is always better.

    An edge is released if its indicator plus Laplace noise of scale ``1 / epsilon`` exceeds
    1/2. This flips each pair with probability ``exp(-epsilon / 2) / 2``, which is more than
    ``epsilon`` requires. The release is ``log(2 exp(epsilon / 2) - 1)``-differentially
    private. Use this class only to compare with published results.

    Parameters
    ----------
    epsilon : float, default=1.0
        Upper bound of the privacy loss of one release, above 0, as for :class:`EdgeFlip`.
    %(flip_parameters)s

    Attributes
    ----------
    %(flip_attributes)s

    Notes
    -----
    .. rubric:: Privacy

    One release is a graph on the same nodes. It is ``epsilon``-differentially private for
    replacing the entry of one pair of nodes, under the conditions of :class:`EdgeFlip`.

    References
    ----------
    The code of S. Vishwanath, J. Hehir, "The shape of edge differential privacy".

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
        # Rounding up preserves the guarantee. The result is at least 1, and at most 1/2 in these
        # units, with which every guarantee holds.
        rounded = math.ceil(2.0**63 * math.exp(-epsilon / 2) * ROUND_UP)
        return min(max(rounded, 1), 1 << 63)

"""The least density of a block of nodes that a graph with flipped pairs reveals.

Proof: doc/theory/graphs.md, "What can be seen".
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real

from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.utils import check_scalar

from sklearn_dptda.graph._embedding import NOISE_EDGE_MARGIN
from sklearn_dptda.privacy._noise import flip_numerator
from sklearn_dptda.privacy._parameters import quoted


@dataclass(frozen=True)
class DetectionLimit:
    """Least differences of densities that can be detected.

    :func:`detection_limit` returns one. ``print`` describes it in a sentence.

    Attributes
    ----------
    given : float
        Limit for a block that is specified in advance, by a test of its number of
        edges; ``inf`` if no difference can be detected.
    spectral : float
        Limit for an unknown block, by an eigenvalue that
        :class:`~sklearn_dptda.graph.AdjacencySpectralEmbedding` counts. At this
        difference it does so in about half of the releases, and at a quarter more
        in nearly all of them. ``inf`` if no difference produces an eigenvalue.
    confidence : float
        Confidence of ``given``: how often a block with that difference is
        detected, and a block without a difference is not.

    Examples
    --------
    >>> from sklearn_dptda.published import detection_limit
    >>> limit = detection_limit(1000, 100, epsilon=1.0)
    >>> limit.given < limit.spectral
    True
    """

    given: float
    spectral: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"A block that is specified in advance is detected in {self.confidence:.0%} of the "
            f"releases {_difference(self.given)}. An unknown block produces an eigenvalue of its "
            f"own in about half of the releases {_difference(self.spectral)}."
        )


def detection_limit(
    n_nodes: int,
    block_size: int,
    epsilon: float,
    *,
    density: float | None = None,
    confidence: float = 0.95,
) -> DetectionLimit:
    """Least difference of densities that :class:`~sklearn_dptda.graph.EdgeFlip` reveals.

    The limit tells by how much the density within a block of nodes must exceed that
    of the rest of the graph for a release to show it. It depends on public numbers
    only, so you can compute it before you spend any budget.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    block_size : int
        Number of nodes of the block, from 2 to ``n_nodes - 1``.
    epsilon : float
        Privacy loss of :class:`~sklearn_dptda.graph.EdgeFlip`.
    density : float, default=None
        Share of all pairs that are edges. If it is given, the block belongs to a
        random graph whose edges are drawn, so that sampling is noise as well.
        None: only the flips are noise, and the limit is about this very graph.
    confidence : float, default=0.95
        A number above 0.5. A test that takes a block without a difference for a
        denser one in ``1 - confidence`` of the releases detects the difference in
        ``confidence`` of them.

    Returns
    -------
    DetectionLimit

    Notes
    -----
    Both limits are estimates, derived on the page :doc:`/theory/graphs`. The one for a
    block that is specified in advance approximates sums of flips by normal variables,
    which is good from about 10 expected flips in the block on. The one for an unknown
    block assumes many nodes. Without a ``density`` there is no background, and the limit
    is the smallest possible.

    Examples
    --------
    >>> from sklearn_dptda.published import detection_limit
    >>> limit = detection_limit(1000, 100, epsilon=1.0)
    >>> round(limit.given, 3), round(limit.spectral, 2)
    (0.045, 0.42)
    """
    check_scalar(n_nodes, "n_nodes", Integral, min_val=3)
    check_scalar(block_size, "block_size", Integral, min_val=2, max_val=n_nodes - 1)
    _check_share(confidence, "confidence", 0.5)
    if not (isinstance(epsilon, Real) and epsilon > 0):
        raise ValueError(f"epsilon must be a positive number; got {quoted(epsilon)}.")
    if density is not None:
        _check_share(density, "density", 0.0)
    p = flip_numerator(float(epsilon), 2) / 2.0**64
    return DetectionLimit(
        given=_given(n_nodes, block_size, p, density, norm.isf(1 - confidence)),
        spectral=_spectral(n_nodes, block_size, p, density or 0.0),
        confidence=float(confidence),
    )


def _check_share(value, name, least):
    if not (isinstance(value, Real) and least < value < 1):
        raise ValueError(f"{name} must be between {least:g} and 1; got {quoted(value)}.")


def _variance(density, p):
    """Variance of the unbiased estimate of a pair of the noisy graph, at a density of edges."""
    noisy = p + (1 - 2 * p) * density
    return noisy * (1 - noisy) / (1 - 2 * p) ** 2


def _given(n_nodes, block_size, p, density, quantile):
    """Limit of a test of one block, with the same quantile for both kinds of error."""
    inside = math.comb(block_size, 2)
    outside = math.comb(n_nodes, 2) - inside
    background = density or 0.0
    variance = _variance(background, p)
    even = math.sqrt(variance * (1 / inside + 1 / outside))

    def seen(difference):
        # In a random graph, the pairs of the block vary by the density of the block.
        own = variance if density is None else _variance(background + difference, p)
        return difference - quantile * (even + math.sqrt(own / inside + variance / outside))

    return _root(seen, 1 - background)


def _spectral(n_nodes, block_size, p, density):
    """Limit for an additional eigenvalue that an embedding counts.

    In units of the square root of the noise, an eigenvalue ``x`` appears at ``x + 1 / x``.
    """
    edge = 2 * NOISE_EDGE_MARGIN
    threshold = (edge + math.sqrt(edge**2 - 4)) / 2

    def seen(difference):
        trace = n_nodes * density + block_size * difference
        product = block_size * (n_nodes - block_size) * density * difference
        first = (trace + math.sqrt(max(trace**2 - 4 * product, 0.0))) / 2
        second = product / max(first, 1e-300)
        overall = density + difference * math.comb(block_size, 2) / math.comb(n_nodes, 2)
        noise = threshold * math.sqrt(n_nodes * _variance(overall, p))
        # The first eigenvalue belongs to the stronger one, the background or the block.
        block_is_first = block_size * difference > n_nodes * density
        return (first if block_is_first else second) - noise

    return _root(seen, 1 - density)


def _root(seen, most):
    """Difference at which ``seen`` becomes positive, or inf if it does not up to ``most``."""
    if seen(0.0) >= 0:
        return 0.0
    return float(brentq(seen, 0.0, most)) if seen(most) > 0 else math.inf


def _difference(limit):
    return "at no difference" if math.isinf(limit) else f"if it is denser by at least {limit:.2g}"

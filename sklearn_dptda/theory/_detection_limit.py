"""How much denser than the rest a block of nodes must be to be seen in a graph of flipped pairs.

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
    """Least differences of densities that are seen.

    Attributes
    ----------
    given : float
        For a block that is named beforehand, by a test of its number of edges;
        ``inf`` where no difference is seen.
    spectral : float
        For a block that nobody has named, by an eigenvalue that
        :class:`~sklearn_dptda.graph.AdjacencySpectralEmbedding` counts, in
        about half of the releases, and in nearly all with a quarter more;
        ``inf`` where no difference makes one.
    confidence : float
        Of ``given``: how often a block of that difference is seen, and one
        without is not.
    """

    given: float
    spectral: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"A block that was named beforehand is seen, in {self.confidence:.0%} of releases, "
            f"{_difference(self.given)}; one that was not makes an eigenvalue of its own, in about "
            f"half of them, {_difference(self.spectral)}."
        )


def detection_limit(
    n_nodes: int,
    block_size: int,
    epsilon: float,
    *,
    density: float | None = None,
    confidence: float = 0.95,
) -> DetectionLimit:
    """Least difference of densities that a release of :class:`~sklearn_dptda.graph.EdgeFlip` shows.

    From public numbers, before anything is paid: how much denser than the rest
    of the graph a block of nodes must be within itself to be seen.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    block_size : int
        Number of nodes of the block, from 2 to ``n_nodes - 1``.
    epsilon : float
        Of :class:`~sklearn_dptda.graph.EdgeFlip`.
    density : float, default=None
        Share of all pairs that are edges. With it, the block is one of a random
        graph, whose edges are drawn: sampling is noise as well. None: the noise of
        flips alone, and so what is seen of this very graph.
    confidence : float, default=0.95
        More than a half. A test that takes a block for denser in
        ``1 - confidence`` of releases where it is not, sees the difference in
        ``confidence`` of them.

    Returns
    -------
    DetectionLimit

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or no number.

    Notes
    -----
    **Given block.** The density of the pairs of a part of the noisy graph, less
    the flip probability ``p``, over ``1 - 2 p``, is an unbiased estimate; with
    ``K`` of all ``N`` pairs in the block the difference to all other pairs has
    the standard deviation ``sqrt(v / K + v / (N - K))``, where ``v = p (1 - p) /
    (1 - 2 p)**2`` whatever the graph is. Sums of flips are taken for normal,
    which is an estimate: good from some 10 expected flips in the block on.

    **Unknown block.** A block and its background make two eigenvalues, in a matrix
    of noise whose own reach ``2 sqrt(n_nodes v)``. One comes out so far that an
    embedding counts it from 1.37 times ``sqrt(n_nodes v)`` on, when its vector
    has a correlation of .68 with the block. The limit of many nodes, and an
    estimate; without a density there is no background, and it is the least.

    Examples
    --------
    >>> from sklearn_dptda.theory import detection_limit
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
    """Variance of a pair of the noisy graph, without bias, where so many of them are edges."""
    noisy = p + (1 - 2 * p) * density
    return noisy * (1 - noisy) / (1 - 2 * p) ** 2


def _given(n_nodes, block_size, p, density, quantile):
    """Limit of a test of one block, at as many deviations from both sides."""
    inside = math.comb(block_size, 2)
    outside = math.comb(n_nodes, 2) - inside
    background = density or 0.0
    variance = _variance(background, p)
    even = math.sqrt(variance * (1 / inside + 1 / outside))

    def seen(difference):
        # In a random graph pairs of the block vary by its own density.
        own = variance if density is None else _variance(background + difference, p)
        return difference - quantile * (even + math.sqrt(own / inside + variance / outside))

    return _root(seen, 1 - background)


def _spectral(n_nodes, block_size, p, density):
    """Limit of an eigenvalue more that an embedding counts.

    An eigenvalue ``x`` of the graph, in roots of the noise, is pushed to ``x + 1 / x`` by it, and
    the edge of the noise is at two.
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
        # The first one belongs to whatever is stronger, the background or the block.
        block_is_first = block_size * difference > n_nodes * density
        return (first if block_is_first else second) - noise

    return _root(seen, 1 - density)


def _root(seen, most):
    """Difference at which ``seen`` turns positive, or inf where it does not up to ``most``."""
    if seen(0.0) >= 0:
        return 0.0
    return float(brentq(seen, 0.0, most)) if seen(most) > 0 else math.inf


def _difference(limit):
    return "at no difference" if math.isinf(limit) else f"from a difference of {limit:.2g} on"

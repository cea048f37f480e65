"""Errors of private diagrams: floors for every mechanism, the published bound, and sampling.

Proof: doc/theory/accuracy.md, "Every mechanism, from below".
Proof: doc/theory/accuracy.md, "The published law, from above".
"""

import math
from bisect import bisect_left
from typing import Any

import numpy as np

from sklearn_dptda.filtration._dtm import neighbour_count
from sklearn_dptda.privacy._parameters import (
    check_confidence,
    check_from_one,
    check_loss,
    check_positive,
    quoted,
)

# Results are moved to the safe side by this share, which is more than floating-point numbers lose.
_SAFETY = 1e-12
# Largest number of widths of windows whose misses are summed for a mean error, and the loss up to
# which widths are tried. Wider windows add nothing.
_MAX_WIDTHS, _MAX_LOSS_OF_WIDTHS = 2**20, 40


def bottleneck_error_floor(
    epsilon: float, sensitivity: float, upper: float, *, confidence: float = 0.95
) -> float:
    """Bottleneck distance that no private release of components stays below.

    Take any mechanism that is ``epsilon``-private under replacement of one point. For
    some cloud, its release is at least this far from the exact diagram, with a
    probability of at least ``1 - confidence``. Further homology dimensions do not
    decrease the error.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a release.
    sensitivity : float
        Sup-norm change of the L1 distance-to-measure when one point is replaced. It
        is ``c / k``, with ``k = ceil(m n)`` at most half the number of points and
        distances capped at ``c``, or ``diameter / k`` without a cap.
    upper : float
        Public bound of the function: the smaller of the cap and half the diameter
        of the convex set that contains the cloud.
    confidence : float, default=0.95
        Probability up to which the error can be below the floor.

    Returns
    -------
    float
        In the units of the function.

    See Also
    --------
    sklearn_dptda.persistence.DiagramErrors :
        Upper bound of the error of our mechanism, at the same confidence.
    published_error_floor : The floor of the paper's proof.

    Notes
    -----
    The clouds are those of :func:`~sklearn_dptda.published.dtm_worst_case`. The function is
    that of the whole box, or of a grid that contains its corners and its centre.
    :doc:`/theory/accuracy` has the proof.

    References
    ----------
    The statement is ours. The rate ``1 / (n epsilon)`` is Theorem 18 of T. Kang, S. Kim,
    J. Sohn, J. Awan, "Differentially private topological data analysis", 2024.

    Examples
    --------
    >>> from sklearn_dptda.published import bottleneck_error_floor
    >>> round(bottleneck_error_floor(1.0, sensitivity=0.0034, upper=2.75), 4)
    0.0085
    """
    check_loss(epsilon)
    check_positive(sensitivity=sensitivity, upper=upper)
    check_confidence(confidence)
    if math.isinf(epsilon):
        return 0.0
    steps, miss = math.floor(upper / sensitivity), (1 - confidence) * (1 + _SAFETY)
    widths = range(1, steps // 2 + 1)
    by_chain = bisect_left(
        widths, True, key=lambda w: _missed(epsilon, w, steps - 2 * w + 1) < miss
    )
    odds = math.log(confidence / (1 - confidence)) * (1 - _SAFETY)
    by_pair = max(math.floor(min(odds / epsilon, steps // 2)), 0)
    return float(max(by_chain, by_pair) * sensitivity / 2)


def mean_error_floor(epsilon: float, sensitivity: float, upper: float) -> float:
    """Mean bottleneck distance that no private release of components stays below.

    For any mechanism that is ``epsilon``-private under replacement of one point, there is
    a cloud for which the mean distance of the release from the exact diagram is at least
    this large.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a release.
    sensitivity, upper : float
        Public numbers of the function, as for :func:`bottleneck_error_floor`.

    Returns
    -------
    float
        In the units of the function. It is about ``sensitivity / epsilon`` if that
        is well above ``sensitivity`` and well below ``upper``.

    Examples
    --------
    >>> from sklearn_dptda.published import mean_error_floor
    >>> round(mean_error_floor(1.0, sensitivity=0.0034, upper=2.75), 4)
    0.0024
    """
    check_loss(epsilon)
    check_positive(sensitivity=sensitivity, upper=upper)
    if math.isinf(epsilon):
        return 0.0
    steps = math.floor(upper / sensitivity)
    # Pairs of clouds that are K points apart; the best K is near 1.28 / epsilon.
    pairs = (min(max(round(x / epsilon), 1), steps // 2) for x in (1.2, 1.28, 1.36))
    # The output of one cloud of a pair is taken for that of the other with at least this
    # probability.
    by_pair = max(K * (math.exp(-epsilon * K) / (1 + math.exp(-epsilon * K))) for K in pairs)
    # A chain of clouds, in which the distances of the diagrams are those of the clouds, up to a
    # width.
    widest = min(steps // 2, round(min(_MAX_LOSS_OF_WIDTHS / epsilon, _MAX_WIDTHS)))
    widths = (2**i for i in range(widest.bit_length()))
    # In sensitivities: the sum over widths of the probability of missing by half a width.
    by_width = (_missed(epsilon, np.arange(1, w + 1), steps - 2 * w + 1) for w in widths)
    by_chain = max((missed.sum() / 2 for missed in by_width), default=0.0)
    return float(max(by_pair, by_chain) * sensitivity * (1 - _SAFETY))


def _missed(epsilon: float, w: Any, n_clouds: Any) -> Any:
    """Least probability of missing by ``w / 2`` sensitivities, over a chain of clouds.

    Each cloud has the weight one, and the two ends also have the weight of what lies beyond them.
    """
    infinite = 2 * np.exp(-epsilon * (w - w // 2)) / (1 + np.exp(-epsilon * (w % 2)))
    beyond = math.exp(-epsilon) / -math.expm1(-epsilon)
    return infinite * np.maximum(n_clouds - 2 * w, 0) / (n_clouds + 2 * beyond)


def published_error_bound(
    epsilon: float,
    n: int,
    m: float,
    diameter: float,
    *,
    max_points: int | None = None,
    n_places: int | None = None,
    n_dimensions: int = 2,
    confidence: float = 0.95,
    approximation: float = 0.0,
    ordered: bool = False,
) -> float:
    """Upper bound of the bottleneck distance between published releases and exact diagrams.

    Let ``Delta = n_dimensions * diameter / (m n)``, and let ``|Y|`` be the number of
    values of a release. The sum over the dimensions of the bottleneck distances is
    at most ``2 Delta / epsilon * (log |Y| + log(1 / (1 - confidence)))`` above the
    least one that a release can have.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a release of all dimensions together.
    n : int
        Number of points.
    m : float
        Mass of the distance-to-measure, in (0, 1].
    diameter : float
        Diameter of the set that contains the points.
    max_points : int, default=None
        Largest number of points of a diagram. None: ``log(n)``, rounded up.
    n_places : int, default=None
        Number of public places off the diagonal where points can be. None:
        ``n**2``.
    n_dimensions : int, default=2
        Number of homology dimensions that are released, ``l + 1`` in the paper.
    confidence : float, default=0.95
        Probability with which the bound holds.
    approximation : float, default=0.0
        Least sum of distances between the exact diagrams and the values of a
        release. For a grid with steps of ``s`` it is at most ``s / 2`` for each
        dimension, if no diagram has more than ``max_points`` points.
    ordered : bool, default=False
        Whether a diagram is a tuple of exactly ``max_points`` places, as in
        ``PrivatePersistence(utility="sum", base_measure="uniform")``, rather than a
        multiset of at most as many.

    Returns
    -------
    float
        In the units of the data.

    See Also
    --------
    sklearn_dptda.persistence.DiagramErrors :
        A sharper bound, which also holds for our mechanism.

    Notes
    -----
    The bound is Proposition 15 of the paper, after a repair of its
    :doc:`proof </theory/accuracy>`. The distance to what the paper calls ``OPT``, the best
    diagrams that a release can have, is larger by at most ``approximation``.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis",
    Propositions 3 and 15. The defaults are those of Theorem 17.

    Examples
    --------
    >>> from sklearn_dptda.published import published_error_bound
    >>> round(published_error_bound(1.0, n=4000, m=0.2, diameter=1.0, max_points=5), 3)
    0.797
    """
    _check_public(epsilon, n, m, diameter, confidence)
    max_points = math.ceil(math.log(n)) if max_points is None else max_points
    n_places = n**2 if n_places is None else n_places
    check_from_one(n_places=n_places, n_dimensions=n_dimensions)
    if not max_points >= 0:
        raise ValueError(f"max_points must be at least 0; got {quoted(max_points)}.")
    if not 0 <= approximation < math.inf:
        raise ValueError(
            f"approximation must be finite and at least 0; got {quoted(approximation)}."
        )
    size = n_places**max_points if ordered else math.comb(n_places + max_points, max_points)
    spread = n_dimensions * math.log(size) - math.log1p(-confidence)
    delta = n_dimensions * diameter / (m * n)
    return (2 * delta / epsilon * spread + approximation) * (1 + _SAFETY)


def published_error_floor(
    epsilon: float, n: int, m: float, diameter: float, *, confidence: float = 0.95
) -> float:
    """Bottleneck distance that no private release stays below, by the paper's proof.

    The two clouds of :func:`~sklearn_dptda.published.dtm_midpoint_case` differ in ``K``
    points. For one of them, any ``epsilon``-private release of the components has an
    error of at least ``K diameter / (4 k)``, with ``k = ceil(m n)``, with a probability of
    at least ``1 / (1 + exp(epsilon K))``. The floor is the largest such error whose
    probability is ``1 - confidence`` or more.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a release.
    n : int
        Number of points.
    m : float
        Mass of the distance-to-measure, in (0, 1], of at most ``n // 2`` points.
    diameter : float
        Diameter of the convex set that contains the points.
    confidence : float, default=0.95
        Probability up to which the error can be below the floor. The paper's
        ``K = floor(1 / epsilon)`` is 0.731.

    Returns
    -------
    float
        In the units of the data. It is at most ``diameter / 8``, and 0 if a single
        moved point is already too many.

    See Also
    --------
    bottleneck_error_floor : A sharper floor, from more than two clouds.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis", Theorem 18 and Lemmas 26 to 28; constants are ours.

    Examples
    --------
    >>> from sklearn_dptda.published import published_error_floor
    >>> published_error_floor(0.1, n=4000, m=0.2, diameter=1.0, confidence=0.732)
    0.003125
    """
    _check_public(epsilon, n, m, diameter, confidence)
    k = neighbour_count(m, n)
    if k > n // 2:
        raise ValueError(f"m must be of at most n // 2 = {n // 2} points; got m={m!r}, {k} of {n}.")
    odds = math.log(confidence / (1 - confidence)) * (1 - _SAFETY)
    K = max(math.floor(min(odds / epsilon, n // 2)), 0)
    return min(K / k, 0.5) * diameter / 4


def _check_public(epsilon: float, n: int, m: float, diameter: float, confidence: float) -> None:
    check_loss(epsilon)
    check_from_one(n=n)
    if not 0 < m <= 1:
        raise ValueError(f"m must be in (0, 1]; got {quoted(m)}.")
    check_positive(diameter=diameter)
    check_confidence(confidence)


def sampling_error_bound(
    n: int, m: float, diameter: float, n_nodes: int, *, confidence: float = 0.95
) -> float:
    """Distance between the diagrams of a sample and of its population.

    With the given probability, the L1 distance-to-measure of ``n`` independent
    points is at most this far from that of their distribution, at all nodes of a
    grid. The same holds for the bottleneck distance of the diagrams of each
    dimension, whatever the distribution and the dimension of its space.

    Parameters
    ----------
    n : int
        Number of points.
    m : float
        Mass of the distance-to-measure, in (0, 1].
    diameter : float
        Diameter of the set that contains the points, or the cap of the distances.
    n_nodes : int
        Number of nodes of the grid, all axes together.
    confidence : float, default=0.95
        Probability with which the bound holds.

    Returns
    -------
    float
        In the units of the data.

    Notes
    -----
    The bound is ``diameter / (k / n) * sqrt(log(2 n_nodes / (1 - confidence)) / (2 n))``
    with ``k = ceil(m n)``, the points of the mass ``k / n`` (:doc:`proof
    </theory/accuracy>`). The error of a private release is at most this plus the error of
    its noise.

    References
    ----------
    The rate is that of F. Chazal, P. Massart, B. Michel, "Rates of convergence for robust
    geometric inference", 2016. The constant is ours.

    Examples
    --------
    >>> from sklearn_dptda.published import sampling_error_bound
    >>> round(sampling_error_bound(4000, 0.2, 1.0, 101 * 101), 3)
    0.201
    """
    check_from_one(n=n, n_nodes=n_nodes)
    check_positive(diameter=diameter)
    check_confidence(confidence)
    share = neighbour_count(m, n) / n
    return diameter / share * math.sqrt(math.log(2 * n_nodes / (1 - confidence)) / (2 * n))

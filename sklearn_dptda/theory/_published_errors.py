"""Published bounds of the errors of private diagrams, and of sampling."""

import math

from sklearn_dptda.filtration._dtm import neighbour_count
from sklearn_dptda.privacy._parameters import (
    check_confidence,
    check_from_one,
    check_loss,
    check_positive,
    quoted,
)

# Floats are off by less, relatively: results are moved to the safe side by it.
_SLACK = 1e-12


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
    """Bottleneck distance that the published law keeps to the exact diagrams.

    With ``Delta = n_dimensions * diameter / (m n)`` and ``|Y|`` the number of
    values of a release, the sum over the dimensions of the bottleneck
    distances is at most ``2 Delta / epsilon * (log |Y| + log(1 / (1 -
    confidence)))`` above the least one that a release can have.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a release of all dimensions together.
    n : int
        Number of points.
    m : float
        Mass, in (0, 1].
    diameter : float
        Of the set that holds the points.
    max_points : int, default=None
        Points of a diagram, at most. None: ``log(n)``, rounded up.
    n_places : int, default=None
        Public places off the diagonal where points can be. None: ``n**2``.
    n_dimensions : int, default=2
        Homology dimensions released, ``l + 1`` in the paper.
    confidence : float, default=0.95
        Probability that the bound holds.
    approximation : float, default=0.0
        The least sum of distances between the exact diagrams and values of a
        release. For a grid with steps of ``s`` that is at most ``s / 2`` for
        each dimension, if no diagram has more than ``max_points`` points.
    ordered : bool, default=False
        Whether a diagram is a tuple of exactly ``max_points`` places, as in
        ``PrivatePersistence(utility="sum", base_measure="uniform")``, rather
        than a multiset of at most as many.

    Returns
    -------
    float
        In the units of the data.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    bottleneck_error_bound : Sharper, and for our law as well.

    Notes
    -----
    This is what the proof of Proposition 15 gives once it is mended. To the
    best diagrams that a release can have, the paper's ``OPT``, the distance is
    at most ``approximation`` more.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis", Propositions 3 and 15. The defaults are those of Theorem 17.

    Examples
    --------
    >>> from sklearn_dptda.theory import published_error_bound
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
        raise ValueError(f"approximation must be a number from 0 on; got {quoted(approximation)}.")
    size = n_places**max_points if ordered else math.comb(n_places + max_points, max_points)
    spread = n_dimensions * math.log(size) - math.log1p(-confidence)
    delta = n_dimensions * diameter / (m * n)
    return (2 * delta / epsilon * spread + approximation) * (1 + _SLACK)


def published_error_floor(
    epsilon: float, n: int, m: float, diameter: float, *, confidence: float = 0.95
) -> float:
    """Bottleneck distance that no private release stays below, by the paper's proof.

    Of the two clouds of :func:`~sklearn_dptda.theory.dtm_midpoint_case`,
    ``K`` points apart, one has an error in the components of at least ``K
    diameter / (4 k)``, ``k = ceil(m n)``, with a probability of at least ``1 /
    (1 + exp(epsilon K))``, whatever the ``epsilon``-private mechanism. This is
    the largest one for which the latter is ``1 - confidence`` or more.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a release.
    n : int
        Number of points.
    m : float
        Mass, in (0, 1], of no more than ``n // 2`` points.
    diameter : float
        Of the convex set that holds the points.
    confidence : float, default=0.95
        Probability up to which the error is below the floor. The paper takes
        ``K = floor(1 / epsilon)``, which is ``e / (1 + e) = 0.731``.

    Returns
    -------
    float
        In the units of the data; at most ``diameter / 8``, and 0 where a
        single point is too many.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    bottleneck_error_floor : Sharper: other clouds, and more than two of them.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis", Theorem 18 and Lemmas 26 to 28; constants are ours.

    Examples
    --------
    >>> from sklearn_dptda.theory import published_error_floor
    >>> published_error_floor(0.1, n=4000, m=0.2, diameter=1.0, confidence=0.732)
    0.003125
    """
    _check_public(epsilon, n, m, diameter, confidence)
    k = neighbour_count(m, n)
    if k > n // 2:
        raise ValueError(f"m must be of at most n // 2 = {n // 2} points; got m={m!r}, {k} of {n}.")
    odds = math.log(confidence / (1 - confidence)) * (1 - _SLACK)
    K = max(math.floor(min(odds / epsilon, n // 2)), 0)
    return min(K / k, 0.5) * diameter / 4


def _check_public(epsilon, n, m, diameter, confidence):
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

    With the given probability the L1 distance-to-measure of ``n`` independent
    points is this near that of their law, at all nodes of a grid. So are the
    diagrams of all dimensions, each in bottleneck distance, whatever the law
    and the dimension of its space.

    Parameters
    ----------
    n : int
        Number of points.
    m : float
        Mass, in (0, 1].
    diameter : float
        Of the set that holds the points, or where distances are capped.
    n_nodes : int
        Nodes of the grid, all axes together.
    confidence : float, default=0.95
        Probability that the bound holds.

    Returns
    -------
    float
        In the units of the data.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    ``diameter / (k / n) * sqrt(log(2 n_nodes / (1 - confidence)) / (2 n))``,
    by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart at each node;
    the mass of the law's function is ``k / n``, with ``k = ceil(m n)``. A
    release is off by this, and by the error of its noise. The rate ``n**-0.5``
    is known; what is said here beyond it is the constant.

    References
    ----------
    F. Chazal, P. Massart, B. Michel, "Rates of convergence for robust geometric
    inference", 2016; F. Chazal, B. T. Fasy, F. Lecci, B. Michel, A. Rinaldo, L.
    Wasserman, "Robust topological inference: distance to a measure and kernel
    distance", 2017.

    Examples
    --------
    >>> from sklearn_dptda.theory import sampling_error_bound
    >>> round(sampling_error_bound(4000, 0.2, 1.0, 101 * 101), 3)
    0.201
    """
    check_from_one(n=n, n_nodes=n_nodes)
    check_positive(diameter=diameter)
    check_confidence(confidence)
    share = neighbour_count(m, n) / n
    return diameter / share * math.sqrt(math.log(2 * n_nodes / (1 - confidence)) / (2 * n))

"""How far the function of a sample is from that of what it was drawn from."""

import math

from sklearn_dptda.filtration._filtration_sensitivity import neighbour_count
from sklearn_dptda.persistence._public_numbers import (
    check_confidence,
    check_from_one,
    check_positive,
)


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
    >>> from sklearn_dptda.persistence import sampling_error_bound
    >>> round(sampling_error_bound(4000, 0.2, 1.0, 101 * 101), 3)
    0.201
    """
    check_from_one(n=n, n_nodes=n_nodes)
    check_positive(diameter=diameter)
    check_confidence(confidence)
    share = neighbour_count(m, n) / n
    return diameter / share * math.sqrt(math.log(2 * n_nodes / (1 - confidence)) / (2 * n))

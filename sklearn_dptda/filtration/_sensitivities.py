"""Sensitivities of filtrations to one replaced point."""

import math

from sklearn_dptda.privacy._parameters import quoted


def neighbour_count(m: float, n: int) -> int:
    """Number of neighbours ``k = ceil(m * n)`` of the mass ``m`` in (0, 1].

    A product that exceeds an integer by rounding alone is not rounded up.
    """
    if not 0 < m <= 1:
        raise ValueError(f"m must be in (0, 1]; got {quoted(m)}.")
    return min(max(math.ceil(m * n * (1 - 1e-12)), 1), n)


def sensitivity_dtm(m: float, n: int, p: float, diameter: float) -> float:
    """Sup-norm sensitivity of the L^p distance-to-measure on a box.

    With ``k = ceil(m n)``, one replaced point changes the sum of the ``k``
    smallest ``p``-th powers of distances by at most ``diameter**p``, hence the
    distance-to-measure by at most ``(diameter**p / k)**(1/p)``. By stability
    this also bounds the bottleneck distance between the persistence diagrams.
    The bound needs nothing of the set of possible records but its diameter. It
    is attained for ``p = 1`` and ``k`` from 4 on wherever two records can be a
    diameter apart (:func:`dtm_worst_case`).

    Parameters
    ----------
    m : float
        Mass, in (0, 1].
    n : int
        Number of points.
    p : float
        Order, at least 1.
    diameter : float
        Largest distance between two points of the box, or the value at which
        distances are capped, whichever is smaller.

    Returns
    -------
    float

    Examples
    --------
    >>> sensitivity_dtm(0.1, 1000, 1, 5.0)
    0.05
    """
    if p < 1:
        raise ValueError(f"p must be at least 1; got {quoted(p)}.")
    return diameter / neighbour_count(m, n) ** (1 / p)


def sensitivity_cech(diameter: float) -> float:
    """Sensitivity of the components of Čech diagrams (Theorem 5).

    One replaced point can change them by a quarter of the diameter whatever
    the number of points (those of Rips, whose scale is twice that, by a half),
    and by no more: no amount of data makes these diagrams cheap to privatise,
    which is why there is no private version of them here. It is attained
    wherever two records can be a diameter apart (:func:`cech_worst_case`); the
    pair of the theorem has a point in the middle of them, and so needs a
    convex set.

    Parameters
    ----------
    diameter : float
        Diameter of the box, or of any set of possible records.

    Returns
    -------
    float

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological
    data analysis", Theorem 5.
    """
    return diameter / 4


def sensitivity_kernel_distance(
    n: int, bandwidth: float | None = None, diameter: float | None = None, squared: bool = False
) -> float:
    """Sup-norm sensitivity of the Gaussian kernel distance.

    One replaced point moves the mean embedding by ``(phi(X') - phi(X)) / n``,
    of norm at most ``sqrt(2 - 2 K(X, X')) / n``; by the triangle inequality
    the distance to the embedding moves by no more, and a cloud that sits at
    one point attains it. The squared distance moves by up to
    ``(4 - 2 / n) / n``: over a range of 2 against ``sqrt(2)`` this is worse,
    so the filtration uses the plain distance.

    Parameters
    ----------
    n : int
        Number of points.
    bandwidth, diameter : float or None
        With both, ``K(X, X') >= exp(-diameter**2 / (2 bandwidth**2))``
        sharpens the bound; without, the kernel is only known to be
        non-negative.
    squared : bool, default=False
        Return the sensitivity of the squared distance.

    Returns
    -------
    float
    """
    step = math.sqrt(2)
    if bandwidth is not None and diameter is not None:
        step = math.sqrt(-2 * math.expm1(-((diameter / bandwidth) ** 2) / 2))
    if squared:
        # (2/n) [K(x,X') - K(x,X) - (1/n) sum_j (K(Xj,X') - K(Xj,X))], the sum over the n - 1
        # points that stay, and every difference of kernel values at most 1 - lowest.
        return step * step * (2 - 1 / n) / n
    return step / n

"""Outer and diametric scales."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._finite_metrics import (
    cells_of_tree,
    check_alpha,
    check_distances,
    check_pair,
    is_ultrametric,
    tree_of,
)
from sklearn_dptda.metric_privacy._packing import EXACT_POINTS, Traversal, exact_packing
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, breakpoints, exactly
from sklearn_dptda.privacy._parameters import quoted


def packing_number(D: ArrayLike, scale: float) -> ScaleBounds:
    """Most points that are further apart than a scale.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    scale : float

    Returns
    -------
    ScaleBounds
        Exact up to 30 points, and on ultrametric spaces; otherwise the size of
        a greedy net, and the number of cells of no larger diameter that cover
        the space.

    Raises
    ------
    ValueError
        If ``D`` is no metric, or the scale is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.theory import packing_number
    >>> line = np.abs(np.subtract.outer(range(5), range(5)))
    >>> print(packing_number(line, 1.5))
    3
    """
    D = check_distances(D)
    if not scale >= 0:
        raise ValueError(f"scale must not be negative; got {quoted(scale)}.")
    if len(D) <= EXACT_POINTS:
        return exactly(exact_packing(D, scale))
    walk = Traversal(D)
    lower = len(walk.net(scale))
    if is_ultrametric(D):
        return exactly(lower)
    cells = cells_of_tree(tree_of(D, "complete"), scale).max() + 1
    return ScaleBounds(float(lower), float(min(cells, len(walk.net(scale / 2)))))


@fill_doc
def outer_scale(D: ArrayLike, *, alpha: float = 1.0) -> ScaleBounds:
    """Least sum of a scale and of the entropy of the space at it, per unit of loss.

    The minimum of ``s + log N(s) / alpha`` over scales ``s``, with ``N(s)`` the
    :func:`packing_number`: what the exponential mechanism on a net attains, up
    to a constant.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
    alpha : float, default=1.0

    Returns
    -------
    ScaleBounds
        Exact up to 30 points and on ultrametric spaces.

    %(no_metric)s

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Definition 2.10.
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    radii = Traversal(D).radii
    if is_ultrametric(D):
        # Farthest-first prefixes are largest separated sets here.
        return exactly(_prefixes(radii, alpha, 1.0))
    if len(D) <= EXACT_POINTS:
        sums = (s + np.log(exact_packing(D, s)) / alpha for s in breakpoints(D))
        return exactly(min(sums))
    return ScaleBounds(_prefixes(radii, alpha, 1.0), _prefixes(radii, alpha, 2.0))


def _prefixes(radii, alpha, factor):
    """Least sum over the nets of a traversal: their radius, and the logarithm of their size."""
    after = np.r_[radii[1:], 0.0]
    return float((factor * after + np.log(np.arange(1, len(radii) + 1)) / alpha).min())


_MOST_BALLS = 1000


@fill_doc
def diametric_scale(
    D1: ArrayLike, D2: ArrayLike | None = None, *, alpha: float = 1.0
) -> ScaleBounds:
    """Largest diameter of a ball, discounted by the loss across its radius.

    The maximum over balls of radius ``r`` of their diameter, in the distance
    of accuracy, times ``exp(-alpha * r)``.

    Parameters
    ----------
    %(privacy_and_accuracy)s

    Returns
    -------
    ScaleBounds
        Exact up to 1,000 points and where ``D2`` is ultrametric, and within a
        factor of two else.

    %(no_metric)s

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Definition 1.6.
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    centred = float((D2 * np.exp(-alpha * D1)).max())
    if is_ultrametric(D2):
        return exactly(centred)
    if len(D1) > _MOST_BALLS:
        return ScaleBounds(centred, 2 * centred)
    return exactly(max(_discounted_diameter(radii, D2, alpha) for radii in D1))


def _discounted_diameter(radii, D2, alpha):
    """Largest discounted diameter of the balls around one point."""
    order = np.argsort(radii, kind="stable")
    # How far each point is from those before it: the diameter grows by that.
    reach = np.tril(D2[np.ix_(order, order)]).max(axis=1)
    return float((np.maximum.accumulate(reach) * np.exp(-alpha * radii[order])).max())

"""Packing numbers, and the scale at which they balance the privacy loss."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._candidate_scales import breakpoints
from sklearn_dptda.metric_privacy._distance_matrices import check_alpha, check_distances
from sklearn_dptda.metric_privacy._linkage import cells_of_tree, is_ultrametric, tree_of
from sklearn_dptda.metric_privacy._packing import EXACT_POINTS, Traversal, exact_packing
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, exactly
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
    >>> from sklearn_dptda.metric_privacy import packing_number
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

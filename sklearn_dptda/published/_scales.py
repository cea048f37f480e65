"""Scales of metric spaces: computed for finite spaces, in closed form for infinite ones and words.

Proof: doc/theory/metric_privacy.md, "Scales".
Proof: doc/theory/metric_geometry.md, "Where the text slips".
Proof: doc/theory/metric_geometry.md, "Infinite spaces".
"""

import math
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray
from sklearn_dptda.metric_privacy._entropic_scale import (
    ScaleBounds,
    breakpoints,
    exactly,
    some_scales,
)
from sklearn_dptda.metric_privacy._finite_metrics import (
    EXACT_POINTS,
    ROUNDING,
    ExactPacking,
    Traversal,
    bit_mask,
    cells_of_tree,
    check_alpha,
    check_distances,
    check_pair,
    is_ultrametric,
    linkage_of,
    nearest_of_cells,
)
from sklearn_dptda.privacy._parameters import quoted

# The diametric scale is computed from all balls up to this number of points, and from pairs beyond
# it.
_MAX_POINTS_ALL_BALLS = 1000
# Number of points of a large space in whose balls the doubling scale grows packings.
_N_CENTRES = 64
_NORMS = ("l1", "l2", "linf")


def packing_number(D: ArrayLike, scale: float) -> ScaleBounds:
    """Largest number of points that are farther apart than a scale.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    scale : float
        Distance that separated points must exceed.

    Returns
    -------
    ScaleBounds
        Exact for up to 30 points, and on ultrametric spaces. Otherwise the lower
        bound is the size of a greedy net, and the upper bound is the number of
        cells that cover the space and have no larger diameter than the scale.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import packing_number
    >>> line = np.abs(np.subtract.outer(range(5), range(5)))
    >>> print(packing_number(line, 1.5))
    3
    """
    D = check_distances(D)
    if not scale >= 0:
        raise ValueError(f"scale must not be negative; got {quoted(scale)}.")
    if len(D) <= EXACT_POINTS:
        return exactly(_exact_packing(D, scale))
    walk = Traversal(D)
    lower = len(walk.net(scale))
    if is_ultrametric(D):
        return exactly(lower)
    cells = cells_of_tree(linkage_of(D, "complete"), scale).max() + 1
    return ScaleBounds(float(lower), float(min(cells, len(walk.net(scale / 2)))))


def _exact_packing(D: FloatArray, scale: float) -> int:
    return ExactPacking(D, scale).size((1 << len(D)) - 1)


@fill_doc
def outer_scale(D: ArrayLike, *, alpha: float = 1.0) -> ScaleBounds:
    """Least sum of a scale and the entropy of the space at it, per unit of loss.

    It is the minimum of ``s + log N(s) / alpha`` over scales ``s``, with ``N(s)`` the
    :func:`packing_number` (Definition 2.10 of Boedihardjo, Strohmer and Vershynin). Up to
    a constant, the exponential mechanism on a net attains it as its accuracy.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    alpha : float, default=1.0
        Privacy loss per unit of distance.

    Returns
    -------
    ScaleBounds
        Exact for up to 30 points and on ultrametric spaces.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import outer_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(outer_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.5747
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    radii = Traversal(D).radii
    if is_ultrametric(D):
        # On an ultrametric space, farthest-first prefixes are largest separated sets.
        return exactly(_prefixes(radii, alpha, 1.0))
    if len(D) <= EXACT_POINTS:
        sums = (s + np.log(_exact_packing(D, s)) / alpha for s in breakpoints(D))
        return exactly(min(sums))
    return ScaleBounds(_prefixes(radii, alpha, 1.0), _prefixes(radii, alpha, 2.0))


def _prefixes(radii: FloatArray, alpha: float, factor: float) -> float:
    """Least sum, over the nets of a traversal, of their radius and the logarithm of their size."""
    after = np.r_[radii[1:], 0.0]
    return float((factor * after + np.log(np.arange(1, len(radii) + 1)) / alpha).min())


@fill_doc
def diametric_scale(
    D1: ArrayLike, D2: ArrayLike | None = None, *, alpha: float = 1.0
) -> ScaleBounds:
    """Largest diameter of a ball, discounted by the loss across its radius.

    It is the maximum, over balls of radius ``r`` in the distance of privacy, of their
    diameter in the distance of accuracy, times ``exp(-alpha * r)`` (Definition 1.6 of
    Boedihardjo, Strohmer and Vershynin).

    Parameters
    ----------
    %(privacy_and_accuracy)s

    Returns
    -------
    ScaleBounds
        Exact for up to 1,000 points and if ``D2`` is ultrametric. Otherwise the
        bounds differ by a factor of two.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import diametric_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(diametric_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.1839
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    centred = float((D2 * np.exp(-alpha * D1)).max())
    if is_ultrametric(D2):
        return exactly(centred)
    if len(D1) > _MAX_POINTS_ALL_BALLS:
        return ScaleBounds(centred, 2 * centred)
    return exactly(max(_discounted_diameter(radii, D2, alpha) for radii in D1))


def _discounted_diameter(radii: FloatArray, D2: FloatArray, alpha: float) -> float:
    """Largest discounted diameter of the balls around one point."""
    order = np.argsort(radii, kind="stable")
    # Distance of each point from the points before it; the diameter grows up to this.
    reach = np.tril(D2[np.ix_(order, order)]).max(axis=1)
    return float((np.maximum.accumulate(reach) * np.exp(-alpha * radii[order])).max())


@fill_doc
def doubling_scale(D: ArrayLike, *, alpha: float = 1.0) -> ScaleBounds:
    """Largest scale at which some ball of twice the radius needs many smaller ones.

    It is the supremum of ``s`` such that a ball of radius ``2 s`` has more than
    ``exp(2 * alpha * s)`` points that are farther apart than ``s``. It is at most
    :func:`entropic_scale`.

    Parameters
    ----------
    D : array-like of shape (n_points, n_points)
        Distances.
    alpha : float, default=1.0
        Privacy loss per unit of distance.

    Returns
    -------
    ScaleBounds
        Exact for up to 30 points.

    Notes
    -----
    Definition 2.8 of Boedihardjo, Strohmer and Vershynin takes an infimum, which is zero
    on every finite space. On convex subsets of normed spaces both are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import doubling_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(doubling_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.1733
    """
    D, alpha = check_distances(D), check_alpha(alpha)
    ends = np.unique(np.r_[0.0, D[D > 0], D[D > 0] / 2])
    if len(D) > EXACT_POINTS:
        return _doubling_bounds(D, ends, alpha)
    for end, start in pairwise(ends[::-1]):
        packing = ExactPacking(D, start)
        balls = {bit_mask(row <= 2 * start) for row in D}
        reach = min(np.log(max(map(packing.size, balls))) / (2 * alpha), end)
        if reach > start:
            return exactly(reach)
    return exactly(0.0)


def _doubling_bounds(D: FloatArray, ends: FloatArray, alpha: float) -> ScaleBounds:
    """Bounds of the supremum, from packings grown in balls, and from partitions that balls meet."""
    some = some_scales(ends)
    upper = _doubling_upper_bound(D, some, alpha)
    for start in some[some < upper][::-1]:
        # Nothing changes up to the next distance, or the next half of a distance.
        end = ends[min(np.searchsorted(ends, start, side="right"), len(ends) - 1)]
        reach = min(np.log(_greedy_packing(D, start)) / (2 * alpha), end)
        if reach > start:
            return ScaleBounds(float(min(reach, upper)), upper)
    return ScaleBounds(0.0, upper)


def _doubling_upper_bound(D: FloatArray, some: FloatArray, alpha: float) -> float:
    """Scale above which no ball of twice the radius meets too many cells of a partition."""
    tree = linkage_of(D, "complete")
    for end, start in pairwise(some[::-1]):
        # Within an interval, balls are contained in those of its end, and separated sets are also
        # separated at its start.
        met = (nearest_of_cells(D, cells_of_tree(tree, start)) <= 2 * end).sum(axis=1).max()
        high = min(np.log(met) / (2 * alpha), end)
        if high > start:
            return float(high)
    return 0.0


def _greedy_packing(D: FloatArray, scale: float) -> int:
    """Size of the largest of the packings grown in balls of twice the scale.

    The balls have some of the points as centres. Each packing starts at a point farthest from the
    centre. On a line these packings are the largest ones.
    """
    largest = 1
    for row in D[np.unique(np.linspace(0, len(D) - 1, _N_CENTRES).astype(int))]:
        ball = np.flatnonzero(row <= 2 * scale)
        from_end = D[ball[row[ball].argmax()], ball]
        free, size = ball[np.argsort(from_end, kind="stable")], 0
        while len(free):
            free, size = free[D[free[0], free] > scale], size + 1
        largest = max(largest, size)
    return largest


@fill_doc
def normed_scale(
    n_dims: int,
    *,
    alpha: float = 1.0,
    norm: Literal["l1", "l2", "linf"] = "linf",
    diameter: float = math.inf,
) -> ScaleBounds:
    """Entropic scale of a normed space, or of a ball in it.

    Parameters
    ----------
    n_dims : int
        Dimension of the space.
    alpha : float, default=1.0
        Privacy loss per unit of distance.
    norm : {"l1", "l2", "linf"}, default="linf"
        Norm of the distance.
    diameter : float, default=inf
        Diameter of the ball: 2 for the unit ball, 1 for the unit cube.

    Returns
    -------
    ScaleBounds
        Exact for the maximum norm, and in one dimension.

    Notes
    -----
    In the maximum norm the scale is ``2 log(2) n_dims / alpha``, or the diameter if that
    is smaller. In any norm it is of the order ``min(n_dims / alpha, diameter)``, by
    Theorem 6.1 of Boedihardjo, Strohmer and Vershynin
    (:doc:`proof </theory/metric_geometry>`).

    Examples
    --------
    >>> from sklearn_dptda.published import normed_scale
    >>> print(normed_scale(1, alpha=2.0, diameter=1.0))
    0.6931
    """
    alpha, n_dims = check_alpha(alpha), _check_dims(n_dims)
    if norm not in _NORMS:
        raise ValueError(f"norm must be one of {', '.join(_NORMS)}; got {quoted(norm)}.")
    if not diameter > 0:
        raise ValueError(f"diameter must be positive; got {quoted(diameter)}.")
    two_points = 2 * math.log(2) / alpha
    if norm == "linf" or n_dims == 1:
        return exactly(min(n_dims * two_points, diameter))
    radius = min(n_dims / alpha, diameter / 2)
    volumes = radius * math.exp(-alpha * radius / n_dims)
    lower = max(min(two_points, diameter), volumes)
    return ScaleBounds(lower, min(2 * n_dims / alpha, diameter))


@fill_doc
def measure_scale(n_dims: int, *, alpha: float = 1.0) -> ScaleBounds:
    """Entropic scale of probability measures on the unit cube.

    The distance is the 1-Wasserstein distance of the maximum norm. The scale is of the
    order ``alpha ** (-1 / (n_dims + 1))``, by Theorem 6.2 and Lemma A.1 of Boedihardjo,
    Strohmer and Vershynin. :doc:`/theory/metric_geometry` proves the constants.

    Parameters
    ----------
    n_dims : int
        Dimension of the cube.
    alpha : float, default=1.0
        Privacy loss per unit of distance.

    Returns
    -------
    ScaleBounds

    Examples
    --------
    >>> from sklearn_dptda.published import measure_scale
    >>> print(measure_scale(1, alpha=1000.0))
    0.002841 to 0.07692
    """
    alpha, d = check_alpha(alpha), _check_dims(n_dims)
    k = math.floor((1.92 * alpha) ** (1 / (d + 1))) + 1
    n = math.floor((alpha / math.log(4)) ** (1 / (d + 1)))
    return _between(1 / (8 * k), n, alpha, diameter=1.0)


@fill_doc
def lipschitz_scale(n_dims: int, *, alpha: float = 1.0) -> ScaleBounds:
    """Entropic scale of the 1-Lipschitz functions on the unit cube that are zero at 0.

    Functions are Lipschitz for the maximum norm, and their distance is the largest
    difference of their values. The space has the diameter 2. The scale is of the order
    ``alpha ** (-1 / (n_dims + 1))``, by Theorem 6.3 of Boedihardjo, Strohmer and
    Vershynin. :doc:`/theory/metric_geometry` proves the constants.

    Parameters
    ----------
    n_dims : int
        Dimension of the cube.
    alpha : float, default=1.0
        Privacy loss per unit of distance.

    Returns
    -------
    ScaleBounds
        Exact for ``alpha`` up to ``log(2)``.

    Examples
    --------
    >>> from sklearn_dptda.published import lipschitz_scale
    >>> print(lipschitz_scale(1, alpha=1000.0))
    0.03704 to 0.06667
    """
    alpha, d = check_alpha(alpha), _check_dims(n_dims)
    k = math.floor((alpha / (2 * math.log(2))) ** (1 / (d + 1))) + 1
    m = math.floor((alpha / math.log(3)) ** (1 / (d + 1)))
    return _between(1 / k, m, alpha, diameter=2.0)


def _between(lower: float, cells: int, alpha: float, diameter: float) -> ScaleBounds:
    """Bounds of the scale: at least that of two opposite points, and at most the diameter."""
    opposite = min(2 * math.log(2) / alpha, diameter)
    return ScaleBounds(max(lower, opposite), min(2 / max(cells, 1), diameter))


def _check_dims(n_dims: int) -> int:
    if n_dims != int(n_dims) or n_dims < 1:
        raise ValueError(f"n_dims must be a positive integer; got {quoted(n_dims)}.")
    return int(n_dims)


def baire_scale(
    privacy: ArrayLike, accuracy: ArrayLike, *, alpha: float = 1.0, n_letters: int = 2
) -> ScaleBounds:
    """Entropic scale of words, whose distance falls with their common prefix.

    Source: Theorem 6.4 of Boedihardjo, Strohmer and Vershynin.

    Parameters
    ----------
    privacy : array-like of shape (n_places,)
        Distances of privacy of two words that first differ at the first, the
        second, ... place. They are positive and decrease.
    accuracy : array-like of shape (n_places,)
        Distances of accuracy of such words. They are positive and decrease.
    alpha : float, default=1.0
        Privacy loss per unit of the distance of privacy.
    n_letters : int, default=2
        Number of letters of the alphabet.

    Returns
    -------
    ScaleBounds
        Exact.

    Examples
    --------
    >>> from sklearn_dptda.published import baire_scale
    >>> print(baire_scale([0.5, 0.25, 0.125, 0.0625], [0.5, 0.25, 0.125, 0.0625], alpha=4.0))
    0.125
    """
    alpha, (f, g) = check_alpha(alpha), _falling(privacy, accuracy)
    if n_letters < 2:
        raise ValueError(f"n_letters must be at least 2; got {quoted(n_letters)}.")
    places = np.arange(1, len(f) + 1)
    # Zero after the last place: all words are separated.
    values = np.r_[g, 0.0]
    needed = [(j - places[: j - 1]) * math.log(n_letters) for j in range(1, len(f) + 2)]
    # At the largest distance, that of the first place, all words are one class.
    enough = [(n <= alpha * f[: len(n)] * (1 + ROUNDING)).all() for n in needed]
    return exactly(values[enough][-1])


def baire_diametric_scale(
    privacy: ArrayLike, accuracy: ArrayLike, *, alpha: float = 1.0
) -> ScaleBounds:
    """Diametric scale of words, whose distance falls with their common prefix.

    It is the largest ``accuracy[k] * exp(-alpha * privacy[k])`` (Theorem 6.4 of
    Boedihardjo, Strohmer and Vershynin).

    Parameters
    ----------
    privacy, accuracy : array-like of shape (n_places,)
        Distances, as for :func:`baire_scale`.
    alpha : float, default=1.0
        Privacy loss per unit of the distance of privacy.

    Returns
    -------
    ScaleBounds
        Exact, for any number of letters.

    Examples
    --------
    >>> from sklearn_dptda.published import baire_diametric_scale
    >>> print(baire_diametric_scale([0.5, 0.25, 0.125], [0.5, 0.25, 0.125], alpha=4.0))
    0.09197
    """
    alpha, (f, g) = check_alpha(alpha), _falling(privacy, accuracy)
    return exactly((g * np.exp(-alpha * f)).max())


def _falling(privacy: ArrayLike, accuracy: ArrayLike) -> tuple[FloatArray, FloatArray]:
    f, g = (np.asarray(side, dtype=float) for side in (privacy, accuracy))
    if f.ndim != 1 or f.shape != g.shape or len(f) == 0:
        raise ValueError("privacy and accuracy must be lists of distances of the same length.")
    for name, side in (("privacy", f), ("accuracy", g)):
        if (side <= 0).any() or (np.diff(side) >= 0).any():
            raise ValueError(f"{name} must be positive and decrease from place to place.")
    return f, g

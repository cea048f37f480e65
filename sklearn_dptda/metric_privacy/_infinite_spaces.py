"""Entropic scales of infinite spaces, exactly or between proved bounds."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._distance_matrices import check_alpha
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, exactly

_NORMS = ("l1", "l2", "linf")


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
    alpha : float, default=1.0
    norm : {"l1", "l2", "linf"}, default="linf"
    diameter : float, default=inf
        Of the ball.

    Returns
    -------
    ScaleBounds
        Exact for the maximum norm on the whole space, and for an interval.

    %(out_of_range)s

    Notes
    -----
    In the maximum norm a ball of radius ``(k - 1) s / 2`` holds up to
    ``k ** n_dims`` points that are ``s`` apart, and ``k = 2`` is critical: the
    scale is ``2 log(2) n_dims / alpha``. In any norm, volumes give at most
    ``2 n_dims / alpha`` and at least ``n_dims / (e alpha)``, and two opposite
    points at least ``2 log(2) / alpha``.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Section 6, Example 1.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import normed_scale
    >>> print(normed_scale(1, alpha=2.0, diameter=1.0))
    0.6931
    """
    alpha, n_dims = check_alpha(alpha), _check_dims(n_dims)
    if norm not in _NORMS:
        raise ValueError(f"norm must be one of {', '.join(_NORMS)}; got {norm!r}.")
    if not diameter > 0:
        raise ValueError(f"diameter must be positive; got {diameter!r}.")
    two_points = 2 * math.log(2) / alpha
    if norm == "linf" or n_dims == 1:
        exact = n_dims * two_points
        if math.isinf(diameter) or n_dims == 1:
            return exactly(min(exact, diameter))
        # Two points of a ball are apart as on an interval.
        return ScaleBounds(min(two_points, diameter), min(exact, diameter))
    volumes = n_dims / (math.e * alpha)
    lower = two_points if math.isfinite(diameter) else max(two_points, volumes)
    return ScaleBounds(min(lower, diameter), min(2 * n_dims / alpha, diameter))


def baire_scale(
    privacy: ArrayLike, accuracy: ArrayLike, *, alpha: float = 1.0, n_letters: int = 2
) -> ScaleBounds:
    """Entropic scale of words, whose distance falls with their common prefix.

    Parameters
    ----------
    privacy, accuracy : array-like of shape (n_places,)
        Distances of two words that first differ at the first, the second, ...
        place; positive, and falling.
    alpha : float, default=1.0
    n_letters : int, default=2

    Returns
    -------
    ScaleBounds
        Exact.

    Raises
    ------
    ValueError
        If the distances do not fall, or a parameter is out of range.

    Notes
    -----
    Words that agree on the first ``k - 1`` letters form a ball of radius
    ``privacy[k]``, and those among them that differ before place ``j`` are
    ``n_letters ** (j - k)`` classes.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Section 6, formula (6.4).

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import baire_scale
    >>> print(baire_scale([0.5, 0.25, 0.125, 0.0625], [0.5, 0.25, 0.125, 0.0625], alpha=4.0))
    0.125
    """
    alpha = check_alpha(alpha)
    f, g = (np.asarray(side, dtype=float) for side in (privacy, accuracy))
    if f.ndim != 1 or f.shape != g.shape or len(f) == 0:
        raise ValueError("privacy and accuracy must be lists of distances of the same length.")
    for name, side in (("privacy", f), ("accuracy", g)):
        if (side <= 0).any() or (np.diff(side) >= 0).any():
            raise ValueError(f"{name} must be positive and fall from place to place.")
    if n_letters < 2:
        raise ValueError(f"n_letters must be at least 2; got {n_letters!r}.")
    places = np.arange(1, len(f) + 1)
    # Zero after the last place: all words apart.
    values = np.r_[g, 0.0]
    for j in range(len(f) + 1, 0, -1):
        before = places[: j - 1]
        if ((j - before) * math.log(n_letters) <= alpha * f[: j - 1] * (1 + 1e-12)).all():
            return exactly(values[j - 1])
    raise AssertionError("at the largest distance all words are one class.")


@fill_doc
def measure_scale(n_dims: int, *, alpha: float = 1.0) -> ScaleBounds:
    """Entropic scale of probability measures on the unit cube.

    With the 1-Wasserstein distance of the maximum norm; of the order
    ``alpha ** (-1 / (n_dims + 1))``.

    Parameters
    ----------
    n_dims : int
    alpha : float, default=1.0

    Returns
    -------
    ScaleBounds

    %(out_of_range)s

    Notes
    -----
    *Lower.* In each of ``k ** n_dims`` cells of side ``h = 1 / k`` the mass of
    the cell sits at one of two atoms, ``h / 2`` apart and as far from those of
    other cells. By Gilbert and Varshamov, ``2 ** (0.456 k ** n_dims)`` of these
    measures differ in more than an eighth of the cells: they are ``h / 16``
    apart, all within ``h / 2`` of one. That is more than ``exp(alpha h / 2)``
    once ``k ** (n_dims + 1) > 1.583 alpha``. *Upper.* Eight times what the
    mechanism of :class:`PrivateMeasure` attains at half the rate (Theorem 3.1).

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Section 6, Example 2.
    """
    alpha, d = check_alpha(alpha), _check_dims(n_dims)
    k = math.floor((1.583 * alpha) ** (1 / (d + 1))) + 1
    return _attained(1 / (16 * k), _measure_error(d, alpha / 2))


def _measure_error(d, alpha):
    """Least proved error of the mechanism, over its resolutions."""
    cells = _resolutions(alpha, d)
    if d == 1:
        return min(m / alpha + 1 / (2 * m) for m in cells)
    # To the nearest probability measure is no further than to the exact one.
    return min(1 / k + 2 * _noise_on_a_grid(k, d) * 2 * d * k / alpha for k in cells)


def _noise_on_a_grid(k, d):
    """Mean Wasserstein size of Laplace noise of scale one on a grid, at most.

    By dyadic boxes: what is too much in one of a level moves within the box
    above it; the sum over nodes of a box is of the order of their root.
    """
    levels = np.arange(1, math.ceil(math.log2(k + 1)) + 1)
    nodes = (k / 2.0**levels + 1) ** d
    moved = 2.0 ** (1 - levels) * 2.0 ** (levels * d) * np.sqrt(2 * nodes)
    return math.sqrt(2 * (k + 1) ** d) + float(moved.sum())


@fill_doc
def lipschitz_scale(n_dims: int, *, alpha: float = 1.0) -> ScaleBounds:
    """Entropic scale of 1-Lipschitz functions on the unit cube, with values in [0, 1].

    With the maximum distance of functions, and Lipschitz for the maximum
    norm; of the order ``alpha ** (-1 / (n_dims + 1))``.

    Parameters
    ----------
    n_dims : int
    alpha : float, default=1.0

    Returns
    -------
    ScaleBounds

    %(out_of_range)s

    Notes
    -----
    *Lower.* Bumps of height ``1 / (2 k)`` in any of ``k ** n_dims`` cells:
    ``2 ** (k ** n_dims)`` functions, as far apart, within that of zero; more
    than ``exp(alpha / (2 k))`` once ``k ** (n_dims + 1) > alpha / (2 log 2)``.
    *Upper.* Eight times what values on a grid with noise of the maximum norm
    attain at half the rate.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Section 6, Example 3.
    """
    alpha, d = check_alpha(alpha), _check_dims(n_dims)
    k = math.floor((alpha / (2 * math.log(2))) ** (1 / (d + 1))) + 1
    cells = _resolutions(alpha, d)
    # Noise of the maximum norm in m = k**d coordinates has mean norm m / rate.
    error = min(1 / (2 * m) + m**d / (alpha / 2) for m in cells)
    return _attained(1 / (2 * k), error)


def _attained(lower, error):
    """Bounds of the scale of a space of diameter one, by what a mechanism at half the rate errs."""
    return ScaleBounds(lower, max(min(1.0, 8 * error), lower))


def _resolutions(alpha, d):
    """Some numbers of cells, up to more than any that balances noise and rounding."""
    most = 4 + (alpha + 1) ** (1 / (d + 1))
    return np.unique(np.round(np.geomspace(1, most, 200))).tolist()


def _check_dims(n_dims):
    if n_dims != int(n_dims) or n_dims < 1:
        raise ValueError(f"n_dims must be a positive integer; got {n_dims!r}.")
    return int(n_dims)

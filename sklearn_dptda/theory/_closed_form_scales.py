"""Scales of infinite spaces and of words, in closed form.

Proof: doc/theory/metric_geometry.md, "Infinite spaces".
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray
from sklearn_dptda.metric_privacy._entropic_scale import ScaleBounds, exactly
from sklearn_dptda.metric_privacy._finite_metrics import ROUNDING, check_alpha
from sklearn_dptda.privacy._parameters import quoted

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
        Of the ball: 2 for the unit ball, 1 for the unit cube.

    Returns
    -------
    ScaleBounds
        Exact for the maximum norm, and in one dimension.

    %(out_of_range)s

    Notes
    -----
    In the maximum norm a ball of radius ``(k - 1) s / 2`` holds up to
    ``k ** n_dims`` points that are more than ``s`` apart, and ``k = 2`` is
    critical: the scale is ``2 log(2) n_dims / alpha``, or the diameter where
    that is less. In any norm, volumes give at most ``2 n_dims / alpha``, and a
    ball of radius ``r`` that is all in the space shows ``r exp(-alpha r /
    n_dims)`` to be too small; two opposite points show ``2 log(2) / alpha``.
    So the scale is of the order ``min(n_dims / alpha, diameter)``.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Theorem 6.1.

    Examples
    --------
    >>> from sklearn_dptda.theory import normed_scale
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
    the cell sits at one of two atoms, ``h / 4`` from its middle and ``h / 2``
    apart. By Gilbert and Varshamov ``exp(0.13 k ** n_dims)`` of these measures
    differ in more than a quarter of the cells: they are ``h / 8`` apart, all
    within ``h / 4`` of the middles. That is more than ``exp(alpha h / 4)`` once
    ``k ** (n_dims + 1) > 1.92 alpha``. Or two opposite atoms. *Upper.* Lemma
    A.1 with middles of cells and nearest multiples: ``4 ** (n ** n_dims)``
    measures have all within ``1 / n``, so that no more are ``2 / n`` apart. That
    is at most ``exp(alpha / n)``, which balls of radius ``1 / n`` and more may
    hold, while ``n ** (n_dims + 1) <= alpha / log 4``.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Theorem 6.2 and Lemma A.1.
    """
    alpha, d = check_alpha(alpha), _check_dims(n_dims)
    k = math.floor((1.92 * alpha) ** (1 / (d + 1))) + 1
    n = math.floor((alpha / math.log(4)) ** (1 / (d + 1)))
    return _between(1 / (8 * k), n, alpha, diameter=1.0)


@fill_doc
def lipschitz_scale(n_dims: int, *, alpha: float = 1.0) -> ScaleBounds:
    """Entropic scale of the 1-Lipschitz functions on the unit cube that are zero at 0.

    With the maximum distance of functions, and Lipschitz for the maximum norm:
    a space of diameter 2. Of the order ``alpha ** (-1 / (n_dims + 1))``.

    Parameters
    ----------
    n_dims : int
    alpha : float, default=1.0

    Returns
    -------
    ScaleBounds
        Exact for ``alpha`` up to ``log(2)``.

    %(out_of_range)s

    Notes
    -----
    *Lower.* Bumps of height ``1 / (2 k)``, upwards or downwards, in each of
    ``k ** n_dims`` cells: ``2 ** (k ** n_dims)`` functions, ``1 / k`` apart,
    within ``1 / (2 k)`` of zero; more than ``exp(alpha / (2 k))`` once
    ``k ** (n_dims + 1) > alpha / (2 log 2)``. Or two opposite functions.
    *Upper.* Values at the middles of ``m ** n_dims`` cells, rounded down to
    multiples of ``1 / m``, on a way through all of them from the cell at 0: two
    possible first values, and at most three next ones. Functions that agree in
    them are less than ``2 / m`` apart. ``3 ** (m ** n_dims)`` is at most
    ``exp(alpha / m)``, which balls of radius ``1 / m`` and more may hold, while
    ``m ** (n_dims + 1) <= alpha / log 3``.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Theorem 6.3.

    Examples
    --------
    >>> from sklearn_dptda.theory import lipschitz_scale
    >>> print(lipschitz_scale(1, alpha=0.5))
    2
    >>> print(lipschitz_scale(1, alpha=1000.0))
    0.03704 to 0.06667
    """
    alpha, d = check_alpha(alpha), _check_dims(n_dims)
    k = math.floor((alpha / (2 * math.log(2))) ** (1 / (d + 1))) + 1
    m = math.floor((alpha / math.log(3)) ** (1 / (d + 1)))
    return _between(1 / k, m, alpha, diameter=2.0)


def _between(lower: float, cells: int, alpha: float, diameter: float) -> ScaleBounds:
    """Bounds of the scale: not below the one of two opposite points, nor above the diameter."""
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
    Boedihardjo, Strohmer, Vershynin, Theorem 6.4.

    Examples
    --------
    >>> from sklearn_dptda.theory import baire_scale
    >>> print(baire_scale([0.5, 0.25, 0.125, 0.0625], [0.5, 0.25, 0.125, 0.0625], alpha=4.0))
    0.125
    """
    alpha, (f, g) = check_alpha(alpha), _falling(privacy, accuracy)
    if n_letters < 2:
        raise ValueError(f"n_letters must be at least 2; got {quoted(n_letters)}.")
    places = np.arange(1, len(f) + 1)
    # Zero after the last place: all words apart.
    values = np.r_[g, 0.0]
    for j in range(len(f) + 1, 0, -1):
        before = places[: j - 1]
        if ((j - before) * math.log(n_letters) <= alpha * f[: j - 1] * (1 + ROUNDING)).all():
            return exactly(values[j - 1])
    raise AssertionError("at the largest distance all words are one class.")


def baire_diametric_scale(
    privacy: ArrayLike, accuracy: ArrayLike, *, alpha: float = 1.0
) -> ScaleBounds:
    """Diametric scale of words, whose distance falls with their common prefix.

    Parameters
    ----------
    privacy, accuracy : array-like of shape (n_places,)
        Distances of two words that first differ at the first, the second, ...
        place; positive, and falling.
    alpha : float, default=1.0

    Returns
    -------
    ScaleBounds
        Exact, for any number of letters.

    Raises
    ------
    ValueError
        If the distances do not fall, or ``alpha`` is not positive.

    Notes
    -----
    The ball of radius ``privacy[k]`` has the diameter ``accuracy[k]``: the scale
    is the largest ``accuracy[k] * exp(-alpha * privacy[k])``.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Theorem 6.4.

    Examples
    --------
    >>> from sklearn_dptda.theory import baire_diametric_scale
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
            raise ValueError(f"{name} must be positive and fall from place to place.")
    return f, g

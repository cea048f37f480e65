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

"""Scales of words, whose distance falls with their common prefix."""

import math

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda.metric_privacy._distance_matrices import check_alpha
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds, exactly
from sklearn_dptda.privacy._parameters import quoted


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
    >>> from sklearn_dptda.metric_privacy import baire_scale
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
        if ((j - before) * math.log(n_letters) <= alpha * f[: j - 1] * (1 + 1e-12)).all():
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
    >>> from sklearn_dptda.metric_privacy import baire_diametric_scale
    >>> print(baire_diametric_scale([0.5, 0.25, 0.125], [0.5, 0.25, 0.125], alpha=4.0))
    0.09197
    """
    alpha, (f, g) = check_alpha(alpha), _falling(privacy, accuracy)
    return exactly((g * np.exp(-alpha * f)).max())


def _falling(privacy, accuracy):
    f, g = (np.asarray(side, dtype=float) for side in (privacy, accuracy))
    if f.ndim != 1 or f.shape != g.shape or len(f) == 0:
        raise ValueError("privacy and accuracy must be lists of distances of the same length.")
    for name, side in (("privacy", f), ("accuracy", g)):
        if (side <= 0).any() or (np.diff(side) >= 0).any():
            raise ValueError(f"{name} must be positive and fall from place to place.")
    return f, g

"""Bottleneck distances up to a shift or a dilation of one diagram."""

import math
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda.persistence._families import Dilations, Shifts, least_distance
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import check_diagram, power_of_two


@overload
def shift_invariant_bottleneck_distance(
    first: ArrayLike,
    second: ArrayLike,
    *,
    scale: Literal["linear", "log"] = ...,
    tol: float = ...,
    return_shift: Literal[False] = ...,
) -> float: ...


@overload
def shift_invariant_bottleneck_distance(
    first: ArrayLike,
    second: ArrayLike,
    *,
    scale: Literal["linear", "log"] = ...,
    tol: float = ...,
    return_shift: Literal[True],
) -> tuple[float, float]: ...


def shift_invariant_bottleneck_distance(
    first: ArrayLike,
    second: ArrayLike,
    *,
    scale: Literal["linear", "log"] = "linear",
    tol: float = 1e-6,
    return_shift: bool = False,
) -> float | tuple[float, float]:
    """Least bottleneck distance between a diagram and the shifts of another.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        Births and deaths; deaths may be infinite.
    scale : {"linear", "log"}, default="linear"
        ``"log"`` takes logarithms of all coordinates first, so that a shift is
        a change of units; births must be positive then.
    tol : float, default=1e-6
        How far above the least value the result may be, as a part of the
        longest half persistence, or of the extent of the endless births of a
        diagram if that is more.
    return_shift : bool, default=False
        Whether to return what is added to the first diagram, too.

    Returns
    -------
    distance : float
        ``inf`` where the numbers of infinite deaths differ.
    shift : float
        Only with ``return_shift``; ``nan`` where the distance is infinite.

    Raises
    ------
    ValueError
        If a diagram is malformed, ``tol`` is not positive, or a birth is not
        positive on the log scale.

    See Also
    --------
    dilation_dissimilarity : Up to a factor, in the original units.

    Notes
    -----
    Branch and bound over shifts: an interval is dropped when a matching shows
    that no shift in it is better, which needs no distance. Every value is
    certified.

    References
    ----------
    D. Sheehy, O. Kisielius, N. J. Cavanna, "Computing the shift-invariant
    bottleneck distance for persistence diagrams", CCCG 2018, 78-84; Y. Cao, A.
    Monod, A. Vlontzos, L. Schmidtke, B. Kainz, "Topological information
    retrieval with dilation-invariant bottleneck comparative measures", 2022.

    Examples
    --------
    >>> from sklearn_dptda.persistence import shift_invariant_bottleneck_distance
    >>> shift_invariant_bottleneck_distance([[0, 2]], [[5, 7]])
    0.0
    """
    if scale not in ("linear", "log"):
        raise ValueError(f"scale must be 'linear' or 'log'; got {quoted(scale)}.")
    P, Q = _checked(first, second, tol)
    if scale == "log":
        P, Q = _logarithms(P, "first"), _logarithms(Q, "second")
    # Near the origin, and of order one: floating-point numbers are densest there.
    unit, middles = power_of_two(P, Q), (_middle(P), _middle(Q))
    already = (middles[0] - middles[1]) / unit
    P, Q = (P - middles[0]) / unit, (Q - middles[1]) / unit
    value, at = least_distance(P, Q, Shifts, tol, already)
    shift = (at - already) * unit
    return (value * unit, shift) if return_shift else value * unit


@overload
def dilation_dissimilarity(
    first: ArrayLike, second: ArrayLike, *, tol: float = ..., return_factor: Literal[False] = ...
) -> float: ...


@overload
def dilation_dissimilarity(
    first: ArrayLike, second: ArrayLike, *, tol: float = ..., return_factor: Literal[True]
) -> tuple[float, float]: ...


def dilation_dissimilarity(
    first: ArrayLike, second: ArrayLike, *, tol: float = 1e-6, return_factor: bool = False
) -> float | tuple[float, float]:
    """Least bottleneck distance between a diagram and the dilations of another.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        Births and deaths, not negative; deaths may be infinite.
    tol : float, default=1e-6
        How far above the least value the result may be, as a part of the
        longest half persistence of ``second``, or of the extent of its endless
        births if that is more.
    return_factor : bool, default=False
        Whether to return what the first diagram is multiplied by, too.

    Returns
    -------
    dissimilarity : float
        In the units of ``second``: not symmetric. ``inf`` where the numbers of
        infinite deaths differ.
    factor : float
        Only with ``return_factor``; ``nan`` where the dissimilarity is infinite.

    Raises
    ------
    ValueError
        If a diagram is malformed, or has a negative coordinate, or ``tol`` is
        not positive.

    References
    ----------
    Y. Cao, A. Monod, A. Vlontzos, L. Schmidtke, B. Kainz, "Topological
    information retrieval with dilation-invariant bottleneck comparative
    measures", 2022.

    Examples
    --------
    >>> from sklearn_dptda.persistence import dilation_dissimilarity
    >>> round(dilation_dissimilarity([[1, 3], [0.5, 1]], [[2, 6], [1, 2]]), 5)
    0.0
    """
    P, Q = _checked(first, second, tol)
    for name, diagram in (("first", P), ("second", Q)):
        if (diagram < 0).any():
            raise ValueError(f"{name} has a negative coordinate: dilations need them from 0 on.")
    units = power_of_two(P), power_of_two(Q)
    already = math.log(units[0] / units[1])
    value, at = least_distance(P / units[0], Q / units[1], Dilations, tol, already)
    factor = math.exp(at) * units[1] / units[0]
    return (value * units[1], factor) if return_factor else value * units[1]


def _checked(first, second, tol):
    if not 0 < tol < math.inf:
        raise ValueError(f"tol must be positive and finite; got {quoted(tol)}.")
    P, Q = check_diagram(first, "first"), check_diagram(second, "second")
    for name, diagram in (("first", P), ("second", Q)):
        if np.isinf(diagram[:, 0]).any():
            raise ValueError(f"{name} has an infinite birth.")
    return P, Q


def _middle(diagram):
    values = diagram[np.isfinite(diagram)]
    return float(values.max() + values.min()) / 2 if len(values) else 0.0


def _logarithms(diagram, name):
    if (diagram <= 0).any():
        raise ValueError(f"{name} has births that are not positive: there is no logarithm of them.")
    return np.log(diagram)

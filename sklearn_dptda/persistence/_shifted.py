"""Bottleneck distances that are invariant under a shift or a dilation, by certified search.

The distance is minimised over a family of moved diagrams by branch and bound: a range of the
parameter is discarded if a matching shows that none of its diagrams is close enough.
"""

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import product
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from sklearn_dptda._typing import BoolArray, FloatArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import bottleneck_distance, check_diagram, power_of_two

# Smallest tolerance, relative to the size of the diagrams. Below it, rounding errors dominate.
_MIN_TOLERANCE = 1e-12
# Range of the logarithms of factors that are searched. A diagram that is smaller by a factor of
# e**40 is below the precision of floating-point numbers.
_LOG_FACTORS = 40.0


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
    """Compute the least bottleneck distance between a diagram and the shifts of another.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        The diagrams: births and deaths. Deaths may be infinite.
    scale : {"linear", "log"}, default="linear"
        ``"log"`` takes the logarithms of all coordinates first, so that a shift is a change
        of units. All births must then be positive.
    tol : float, default=1e-6
        Tolerance: largest difference between the result and the least value, relative to the
        longest half persistence, or to the extent of the births of the essential classes of
        a diagram if that is larger.
    return_shift : bool, default=False
        Whether to return also the number that is added to the first diagram.

    Returns
    -------
    distance : float
        The distance, in the units of the diagrams. It is ``inf`` if the numbers of infinite
        deaths differ.
    shift : float
        The number that is added to all coordinates of ``first``. Only with
        ``return_shift=True``. It is ``nan`` if the distance is infinite.

    See Also
    --------
    dilation_dissimilarity : Invariant under a factor, in the original units.

    References
    ----------
    D. Sheehy, O. Kisielius, N. J. Cavanna, "Computing the shift-invariant bottleneck distance
    for persistence diagrams", CCCG 2018, 78-84.

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
        for name, diagram in (("first", P), ("second", Q)):
            if (diagram <= 0).any():
                raise ValueError(
                    f"{name} has births that are not positive, which have no logarithm. "
                    "Use scale='linear'."
                )
        P, Q = np.log(P), np.log(Q)
    # Diagrams are moved to the origin and scaled to order one, where floating-point numbers are
    # most precise.
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
    """Compute the least bottleneck distance between a diagram and the dilations of another.

    Parameters
    ----------
    first, second : array-like of shape (n, 2)
        The diagrams: births and deaths, which must not be negative. Deaths may be infinite.
        ``first`` is multiplied by a factor.
    tol : float, default=1e-6
        Tolerance: largest difference between the result and the least value, relative to the
        longest half persistence of ``second``, or to the extent of the births of its
        essential classes if that is larger.
    return_factor : bool, default=False
        Whether to return also the factor by which the first diagram is multiplied.

    Returns
    -------
    dissimilarity : float
        The least distance, in the units of ``second``. It is not symmetric. It is ``inf`` if
        the numbers of infinite deaths differ.
    factor : float
        The factor by which ``first`` is multiplied. Only with ``return_factor=True``. It is
        ``nan`` if the dissimilarity is infinite.

    See Also
    --------
    shift_invariant_bottleneck_distance : Invariant under a shift.

    References
    ----------
    Y. Cao, A. Monod, A. Vlontzos, L. Schmidtke, B. Kainz, "Topological information retrieval
    with dilation-invariant bottleneck comparative measures", 2022.

    Examples
    --------
    >>> from sklearn_dptda.persistence import dilation_dissimilarity
    >>> round(dilation_dissimilarity([[1, 3], [0.5, 1]], [[2, 6], [1, 2]]), 5)
    0.0
    """
    P, Q = _checked(first, second, tol)
    for name, diagram in (("first", P), ("second", Q)):
        if (diagram < 0).any():
            raise ValueError(f"{name} has a negative coordinate, which dilations do not support.")
    units = power_of_two(P), power_of_two(Q)
    already = math.log(units[0] / units[1])
    value, at = least_distance(P / units[0], Q / units[1], Dilations, tol, already)
    factor = math.exp(at) * units[1] / units[0]
    return (value * units[1], factor) if return_factor else value * units[1]


def _checked(first: ArrayLike, second: ArrayLike, tol: float) -> tuple[FloatArray, FloatArray]:
    if not 0 < tol < math.inf:
        raise ValueError(f"tol must be positive and finite; got {quoted(tol)}.")
    P, Q = check_diagram(first, "first"), check_diagram(second, "second")
    for name, diagram in (("first", P), ("second", Q)):
        if np.isinf(diagram[:, 0]).any():
            raise ValueError(f"{name} has an infinite birth.")
    return P, Q


def _middle(diagram: FloatArray) -> float:
    values = diagram[np.isfinite(diagram)]
    return float(values.max() + values.min()) / 2 if len(values) else 0.0


def least_distance(
    P: FloatArray, Q: FloatArray, kind: "type[Shifts | Dilations]", tol: float, already: float
) -> tuple[float, float]:
    """Return the least value, and the parameter that attains it.

    ``already`` is the parameter of the diagrams as given.
    """
    finite = [diagram[np.isfinite(diagram[:, 1])] for diagram in (P, Q)]
    essential = [np.sort(diagram[~np.isfinite(diagram[:, 1]), 0]) for diagram in (P, Q)]
    if len(essential[0]) != len(essential[1]):
        return math.inf, math.nan
    family = kind(*finite, *essential)
    # The steps use three quarters of the tolerance, and the intervals less than a quarter of it.
    slack = 0.75 * max(tol, _MIN_TOLERANCE) * max(family.size(), np.finfo(float).tiny)
    best, at = bottleneck_distance(family.moved(P, already), Q), already
    for guess in family.guesses():
        value = bottleneck_distance(family.moved(P, guess), Q)
        if value < best:
            best, at = value, guess
    heap = [(-(high - low), low, high) for low, high in [family.range(best)] if high >= low]
    while heap and best > slack:
        _, low, high = heapq.heappop(heap)
        middle = (low + high) / 2
        if not family.feasible(low, high, best - slack):
            continue
        if family.feasible(middle, middle, best - slack):
            best, at = _value(family, middle, best - slack, slack), middle
        # An interval without a floating-point number between its ends cannot be halved.
        if family.spread(low, high) > slack / 4 and low < middle < high:
            for part in ((low, middle), (middle, high)):
                heapq.heappush(heap, (part[0] - part[1], *part))
    exact = bottleneck_distance(family.moved(P, at), Q)
    return float(min(best, exact) if exact <= best + slack else best), float(at)


def _value(family: "_Family", at: float, feasible: float, slack: float) -> float:
    """Return the bottleneck distance at one parameter, which is feasible at a known value."""
    low, high = 0.0, feasible
    while high - low > slack / 4:
        middle = (low + high) / 2
        low, high = (low, middle) if family.feasible(at, at, middle) else (middle, high)
    return high


class _Family(ABC):
    """A family of moved diagrams, and bounds of distances over ranges of its parameter.

    The half lengths ``u_p`` and ``u_q`` are the distances of the finite points from the diagonal;
    ``born_p`` and ``born_q`` are the sorted births of the essential classes.
    """

    def __init__(self, P: FloatArray, Q: FloatArray, born_p: FloatArray, born_q: FloatArray):
        self.P, self.Q = P, Q
        self.born_p, self.born_q = born_p, born_q
        self.u_p, self.u_q = (P[:, 1] - P[:, 0]) / 2, (Q[:, 1] - Q[:, 0]) / 2

    def longest(self) -> Iterator[tuple[int, int]]:
        """Return pairs of the longest points of both diagrams."""
        return product(*(np.argsort(-u)[:3] for u in (self.u_p, self.u_q)))

    def feasible(self, low: float, high: float, value: float) -> bool:
        """Return whether a distance of ``value`` is possible for parameters in a range."""
        if value < 0 or self.essential_bound(low, high) > value:
            return False
        allowed = self.lower_costs(low, high) <= value
        rows = self.lower_diagonal(low) > value
        columns = self.u_q > value
        return saturates_matrix(allowed[rows]) and saturates_matrix(allowed[:, columns].T)

    @abstractmethod
    def essential_bound(self, low: float, high: float) -> float:
        """Return the least distance of the essential births over a range."""

    @abstractmethod
    def lower_costs(self, low: float, high: float) -> FloatArray:
        """Return the least distances of all pairs of finite points over a range."""

    @abstractmethod
    def lower_diagonal(self, low: float) -> FloatArray:
        """Return the least distances of the moved points from the diagonal, from a parameter on."""


def saturates_matrix(allowed: BoolArray) -> bool:
    """Return whether every row of a Boolean matrix can be matched with a column of its own.

    The matching runs in compiled code, for hundreds of rows, after 40 microseconds of preparation.
    """
    if len(allowed) == 0:
        return True
    if len(allowed) > allowed.shape[1] or not allowed.any(axis=1).all():
        return False
    matching = maximum_bipartite_matching(csr_array(allowed), perm_type="column")
    return bool((matching >= 0).all())


class Shifts(_Family):
    """Diagrams that are shifted. The parameter is the number that is added."""

    def __init__(self, P: FloatArray, Q: FloatArray, born_p: FloatArray, born_q: FloatArray):
        super().__init__(P, Q, born_p, born_q)
        self.gaps = Q.mean(axis=1) - P.mean(axis=1)[:, None]
        self.apart = np.abs(self.u_p[:, None] - self.u_q)
        shifts = born_q - born_p
        self.essential = (shifts.max() + shifts.min()) / 2 if len(shifts) else 0.0
        self.essential_width = np.ptp(shifts) / 2 if len(shifts) else -math.inf

    def size(self) -> float:
        return max(_size(self.u_p, self.born_p), _size(self.u_q, self.born_q))

    @staticmethod
    def moved(diagram: FloatArray, at: float) -> FloatArray:
        return diagram + at

    @staticmethod
    def spread(low: float, high: float) -> float:
        return high - low

    def guesses(self) -> Iterator[float]:
        """Yield shifts that align the essential births, or pairs of the longest points."""
        if len(self.born_p):
            yield self.essential
        yield from (self.gaps[i, j] for i, j in self.longest())

    def range(self, best: float) -> tuple[float, float]:
        if len(self.born_p):
            reach = max(best - self.essential_width, 0.0)
            return self.essential - reach, self.essential + reach
        if self.gaps.size == 0:
            return 0.0, -1.0
        return self.gaps.min() - best, self.gaps.max() + best

    def essential_bound(self, low: float, high: float) -> float:
        return self.essential_width + max(low - self.essential, self.essential - high, 0.0)

    def lower_costs(self, low: float, high: float) -> FloatArray:
        outside = np.maximum(np.maximum(low - self.gaps, self.gaps - high), 0.0)
        return self.apart + outside

    def lower_diagonal(self, low: float) -> FloatArray:
        return self.u_p


class Dilations(_Family):
    """Diagrams that are multiplied. The parameter is the logarithm of the factor."""

    def size(self) -> float:
        return _size(self.u_q, self.born_q)

    @staticmethod
    def moved(diagram: FloatArray, at: float) -> FloatArray:
        return diagram * math.exp(at)

    def spread(self, low: float, high: float) -> float:
        largest = max(self.P.max(initial=0.0), self.born_p.max(initial=0.0))
        return (math.exp(high) - math.exp(low)) * largest

    def guesses(self) -> Iterator[float]:
        """Yield factors that make the longest points, or the largest deaths, equal."""
        for i, j in self.longest():
            yield math.log(self.u_q[j] / self.u_p[i])
            yield math.log(self.Q[j, 1] / self.P[i, 1])

    def range(self, best: float) -> tuple[float, float]:
        longest_p, longest_q = self.u_p.max(initial=0.0), self.u_q.max(initial=0.0)
        last_p, last_q = self.born_p.max(initial=0.0), self.born_q.max(initial=0.0)
        tops = [(best + q) / p for p, q in ((longest_p, longest_q), (last_p, last_q)) if p > 0]
        if not tops:
            return 0.0, -1.0
        highest = math.log(max(min(tops), np.finfo(float).tiny))
        return highest - _LOG_FACTORS, highest

    def essential_bound(self, low: float, high: float) -> float:
        if len(self.born_p) == 0:
            return -math.inf
        return float(_apart(self.born_p, self.born_q, low, high).max())

    def lower_costs(self, low: float, high: float) -> FloatArray:
        return np.maximum(
            _apart(self.P[:, None, 0], self.Q[:, 0], low, high),
            _apart(self.P[:, None, 1], self.Q[:, 1], low, high),
        )

    def lower_diagonal(self, low: float) -> FloatArray:
        return math.exp(low) * self.u_p


def _size(half_lengths: FloatArray, births: FloatArray) -> float:
    """Return the longest half persistence, or the extent of the essential births if larger."""
    return float(max(half_lengths.max(initial=0.0), np.ptp(births) if len(births) else 0.0))


def _apart(p: FloatArray, q: FloatArray, low: float, high: float) -> FloatArray:
    """Return the least distances of ``q`` from multiples of ``p``, for factors in a range."""
    return np.maximum(np.maximum(math.exp(low) * p - q, q - math.exp(high) * p), 0.0)

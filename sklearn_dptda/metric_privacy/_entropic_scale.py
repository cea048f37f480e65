"""The entropic scale: the scale at which balls of privacy contain few separated points.

A ball of radius ``r`` contains *few* points if there are at most ``exp(alpha * r)``. Whether a
scale is large enough is tested exactly on small spaces, on ultrametric ones and on lines. On other
spaces, two tests give bounds. Both are right whenever they say yes.

Proof: doc/theory/metric_privacy.md, "Scales".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray
from sklearn_dptda.metric_privacy._finite_metrics import (
    EXACT_POINTS,
    METRIC_TOLERANCE,
    ROUNDING,
    ExactPacking,
    Traversal,
    bit_mask,
    cells_of_net,
    cells_of_tree,
    check_alpha,
    check_pair,
    is_ultrametric,
    linkage_of,
    nearest_of_cells,
    rows_at_a_time,
)
from sklearn_dptda.privacy._parameters import quoted

_ScaleTest: TypeAlias = Callable[[float], bool]


@dataclass(frozen=True)
class ScaleBounds:
    """Certified lower and upper bounds of a number.

    Attributes
    ----------
    lower : float
        The number is at least this large.
    upper : float
        The number is at most this large.

    Examples
    --------
    >>> from sklearn_dptda.published import entropic_scale
    >>> entropic_scale([[0, 1], [1, 0]], alpha=0.5)
    ScaleBounds(lower=1.0, upper=1.0)
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper:
            raise ValueError(
                f"bounds must be ordered, and not negative; got {self.lower} and {self.upper}."
            )

    @property
    def exact(self) -> bool:
        """Whether the bounds agree."""
        return self.lower == self.upper

    def __float__(self) -> float:
        if not self.exact:
            raise ValueError(
                f"the number is only known to lie between {self.lower:g} and {self.upper:g}. Use "
                "lower or upper."
            )
        return self.lower

    def __str__(self) -> str:
        return f"{self.lower:.4g}" if self.exact else f"{self.lower:.4g} to {self.upper:.4g}"


def exactly(value: float) -> ScaleBounds:
    """Bounds of a number that is known exactly."""
    return ScaleBounds(float(value), float(value))


@fill_doc
def entropic_scale(
    D1: ArrayLike,
    D2: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    method: Literal["auto", "exact", "bounds"] = "auto",
) -> ScaleBounds:
    """Least accuracy scale at which balls of privacy contain few separated points.

    It is the least ``s`` such that each ball of radius ``r``, in the distance of privacy,
    has at most ``exp(alpha * r)`` points that are farther apart than ``s`` in the distance
    of accuracy. :doc:`/theory/metric_privacy` explains how it is computed and bounded.

    Parameters
    ----------
    %(privacy_and_accuracy)s
    method : {"auto", "exact", "bounds"}, default="auto"
        ``"exact"``: compute the scale exactly, which takes at most 30 points, an
        ultrametric ``D2``, or points of a line. ``"bounds"``: compute bounds.
        ``"auto"``: exact if possible, and bounds otherwise.

    Returns
    -------
    ScaleBounds
        In units of ``D2``.

    References
    ----------
    M. Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Definition 1.4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import entropic_scale
    >>> line = np.linspace(0, 1, 21)
    >>> print(entropic_scale(np.abs(line[:, None] - line), alpha=4.0))
    0.3
    """
    if method not in ("auto", "exact", "bounds"):
        raise ValueError(f"method must be 'auto', 'exact' or 'bounds'; got {quoted(method)}.")
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    scales = breakpoints(D2)
    is_enough = None if method == "bounds" else _exact_test(D1, D2, alpha)
    if is_enough is not None:
        return exactly(scales[_bisect(is_enough, scales)])
    if method == "exact":
        raise ValueError(
            f"method='exact' takes at most {EXACT_POINTS} points, an ultrametric D2 or points "
            f"of a line; got {len(D1)} points. Use method='bounds'."
        )
    return _certified(D1, D2, alpha, scales)


def breakpoints(D: FloatArray) -> FloatArray:
    """Zero and all distances. Of those that differ by rounding alone, the largest is kept."""
    values = np.unique(np.r_[0.0, D.ravel()])
    apart = np.r_[np.diff(values) > ROUNDING * values[-1], True]
    return np.asarray(values[apart])


def _bisect(is_enough: _ScaleTest, scales: FloatArray, below: int = -1) -> int:
    """Place of a scale that is large enough, next to one that is not.

    The last scale is large enough and the one at ``below`` is not, without a test.
    """
    enough = len(scales) - 1
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if is_enough(scales[middle]) else (middle, enough)
    return enough


def _exact_test(D1: FloatArray, D2: FloatArray, alpha: float) -> _ScaleTest | None:
    """Exact test of whether a scale is large enough, or None if that takes too long."""
    if is_ultrametric(D2):
        # Separated points are points of different classes.
        tree = linkage_of(D2, "single")
        return lambda scale: _meets_few(
            nearest_of_cells(D1, cells_of_tree(tree, scale * (1 + ROUNDING))), alpha
        )
    if len(D1) <= EXACT_POINTS:
        return lambda scale: _few_separated(D1, D2, scale, alpha)
    places = _on_a_line(D1) if D1 is D2 else None
    return None if places is None else lambda scale: _few_separated_on_a_line(places, scale, alpha)


def _few_separated(D1: FloatArray, D2: FloatArray, scale: float, alpha: float) -> bool:
    """Whether no ball has too many separated points, by exact packing."""
    packing = ExactPacking(D2, scale)
    for row in D1:
        for radius in np.unique(row):
            ball = row <= radius
            # Capped, since the exponential would overflow.
            allowed = np.exp(min(alpha * radius, 700.0)) * (1 + ROUNDING)
            if ball.sum() > allowed and packing.size(bit_mask(ball)) > allowed:
                return False
    return True


def _on_a_line(D: FloatArray) -> FloatArray | None:
    """Sorted coordinates of points with these distances on a line, or None if there are none."""
    # The point that is farthest from another one is at an end.
    from_end = D[int(D[0].argmax())]
    order = np.argsort(from_end, kind="stable")
    places = from_end[order]
    expected = np.abs(places[:, None] - places)
    if np.abs(expected - D[np.ix_(order, order)]).max() > METRIC_TOLERANCE * D.max():
        return None
    return np.asarray(places)


def _few_separated_on_a_line(places: FloatArray, scale: float, alpha: float) -> bool:
    """Whether no ball around one of the sorted points has too many separated points.

    On a line, a greedy search from left to right finds the largest separated sets.
    """
    slack = ROUNDING * max(places[-1], 1e-300)
    n = len(places)
    # The next separated point of each point; n means that there is none.
    jump = np.r_[np.searchsorted(places, places + scale + slack, side="right"), n]
    last, count = np.arange(n), 1
    while True:
        last = jump[last]
        first = np.flatnonzero(last < n)
        if len(first) == 0:
            return True
        count += 1
        ends = places[first], places[last[first]]
        # The ball of least radius that contains both ends has its centre next to their middle.
        middle = np.searchsorted(places, (ends[0] + ends[1]) / 2)
        for centre in (np.minimum(middle, n - 1), np.maximum(middle - 1, 0)):
            radius = np.maximum(places[centre] - ends[0], ends[1] - places[centre])
            if (alpha * radius < np.log(count) * (1 - ROUNDING)).any():
                return False


def _certified(D1: FloatArray, D2: FloatArray, alpha: float, scales: FloatArray) -> ScaleBounds:
    """Bounds of the entropic scale from nets and partitions."""
    walk = Traversal(D2)
    tree = linkage_of(D2, "complete")

    def not_surely_too_small(scale: float) -> bool:
        # Points of a net are separated.
        return _meets_few(D1[:, walk.net(scale)], alpha)

    def is_surely_enough(scale: float) -> bool:
        # A ball contains no more separated points than it meets cells of no larger diameter. It
        # contains a single one if all its points are within half the scale of its centre.
        far = np.where(scale / 2 < D2, D1, np.inf).min(axis=1)
        return any(
            _meets_few(nearest_of_cells(D1, cells), alpha, far)
            for cells in (cells_of_tree(tree, scale), cells_of_net(D2, walk.net(scale / 2)))
        )

    some = some_scales(scales)
    # The tests need not be monotone. Each outcome of the bisection is a proof nevertheless.
    low = _bisect(not_surely_too_small, some) - 1
    lower = 0.0 if low < 0 else scales[np.searchsorted(scales, some[low], side="right")]
    upper = some[_bisect(is_surely_enough, some, low)]
    return ScaleBounds(float(lower), float(max(upper, lower)))


def some_scales(scales: FloatArray) -> FloatArray:
    """Zero and about two hundred of the scales, evenly spaced on both a linear and a log axis."""
    if scales[-1] == 0:
        return scales
    low, high = scales[scales > 0][0], scales[-1]
    wanted = np.r_[np.linspace(low, high, 100), np.geomspace(low, high, 100)]
    places = np.searchsorted(scales, wanted)
    return np.unique(np.r_[0.0, scales[np.minimum(places, len(scales) - 1)], high])


def _meets_few(nearest: FloatArray, alpha: float, before: FloatArray | None = None) -> bool:
    """Whether no ball meets more than ``exp(alpha * r)`` cells, by its distances from them.

    ``before`` are radii up to which balls are known to need a single cell.
    """
    needed = np.log(np.arange(1, nearest.shape[1] + 1)) / alpha
    part = rows_at_a_time(nearest.shape[1])
    for start in range(0, len(nearest), part):
        radii = np.sort(nearest[start : start + part], axis=1)
        if before is not None:
            radii[:, 1:] = np.maximum(radii[:, 1:], before[start : start + part, None])
        if (radii < needed * (1 - ROUNDING)).any():
            return False
    return True

"""Bounding boxes: validation, and the warning if the caller gives no bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import Bounds, FloatArray, RowBounds
from sklearn_dptda.privacy import PrivacyLeakWarning
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import warn_caller

# Smallest and largest length. Squares, multiples and parts of such lengths have full precision.
_LENGTH_RANGE = (1e-90, 1e90)
# Smallest width relative to the bounds. Parts of it, down to 2**-14, are still at least the spacing
# of floats at the bounds.
_LEAST_RELATIVE_WIDTH = 2.0**-36


def check_lengths(name: str, lengths: ArrayLike, ends: ArrayLike = 0.0) -> None:
    """Refuse public ``lengths`` for which floating-point arithmetic would fail.

    ``name`` is that of the parameter, and ``ends`` are the largest absolute values to which such a
    length is added.
    """
    lengths = np.asarray(lengths)
    usable = (lengths >= _LENGTH_RANGE[0]) & (lengths <= _LENGTH_RANGE[1])
    if not (usable & (lengths >= _LEAST_RELATIVE_WIDTH * np.asarray(ends))).all():
        raise ValueError(
            f"{name} cannot be computed with in floating-point numbers. Lengths must be between "
            f"{_LENGTH_RANGE[0]:g} and {_LENGTH_RANGE[1]:g}, and not negligible compared with the "
            "bounds. Rescale the data."
        )


def check_bounds(
    bounds: Bounds, n_features: int, name: str = "bounds"
) -> tuple[FloatArray, FloatArray]:
    """Convert ``bounds``, two numbers or two arrays, to two float arrays of shape (n_features,).

    ``name`` is that of the parameter.
    """
    try:
        if isinstance(bounds, Mapping):
            # Its keys would be taken for the bounds.
            raise TypeError
        low, high = bounds
        low = np.broadcast_to(np.asarray(low, dtype=float), (n_features,)).copy()
        high = np.broadcast_to(np.asarray(high, dtype=float), (n_features,)).copy()
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair (low, high) of numbers or of arrays with one number per "
            f"coordinate ({n_features} here); got {quoted(bounds)}.{_advice(bounds, n_features)}"
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(f"{name} must be finite; got {quoted(bounds)}.")
    if not (low < high).all():
        raise ValueError(
            f"{name} are crossed: they are (low, high), each a number or one number per "
            f"coordinate, and each low must be below its high; got {quoted(bounds)}."
            f"{_advice(bounds, n_features)}"
        )
    # The width of finite bounds may be infinite.
    with np.errstate(over="ignore"):
        check_lengths(name, high - low, np.maximum(np.abs(low), np.abs(high)))
    return low, high


def bounds_by_column(
    bounds: RowBounds | None, n_features: int, names: Sequence[Any] = ()
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds of shape (n_features,), NaN for columns without bounds.

    ``bounds`` is a pair, None, or a mapping of some of the ``names`` of columns to pairs.
    """
    if bounds is not None and not isinstance(bounds, Mapping):
        return check_bounds(bounds, n_features)
    low, high = np.full((2, n_features), np.nan)
    for name, pair in (bounds or {}).items():
        if name not in list(names):
            raise ValueError(
                f"bounds name a column that X does not have, or whose values are categories or "
                f"Boolean, which need no bounds; got {quoted(name)}."
            )
        j = list(names).index(name)
        low[j : j + 1], high[j : j + 1] = check_bounds(pair, 1)
    return low, high


def _advice(bounds: object, n_features: int) -> str:
    """Return advice if the bounds are given by name, or as one pair for each coordinate."""
    if isinstance(bounds, Mapping):
        return (
            " Names of columns cannot be used here. Instead, pass bounds=(all lows, all highs), in "
            "the order of the columns."
        )
    try:
        pairs: FloatArray = np.array(bounds, dtype=float)
    except (TypeError, ValueError):
        return ""
    if pairs.shape != (n_features, 2) or not (pairs[:, 0] < pairs[:, 1]).all():
        return ""
    return (
        " They look like one pair (low, high) for each coordinate. Instead, pass bounds=(all lows, "
        "all highs)."
    )


def bounds_from_data(
    clouds: Sequence[FloatArray], estimator_name: str
) -> tuple[FloatArray, FloatArray]:
    """Compute a bounding box from the data, and warn about this privacy leak."""
    warn_caller(
        f"{estimator_name} was given no bounds and computes them from the data. The privacy "
        "guarantee does not cover this. Pass bounds=(low, high) that you know without looking at "
        "the data.",
        PrivacyLeakWarning,
    )
    return reduce(add, map(Extremes.of, filter(len, clouds))).bounds()


@dataclass(frozen=True)
class Extremes:
    """Smallest and largest number of each column, *not* private. ``+`` combines several tables."""

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> Self:
        """Return the extremes of a table with at least one row."""
        return cls(X.min(axis=0), X.max(axis=0))

    def __add__(self, other: Self) -> Self:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return type(self)(low, high)

    def __rmul__(self, weight: int) -> Self:
        # The extremes do not depend on the weights of the rows.
        return self

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the extremes as bounds, with a small margin around constant columns."""
        flat = self.high <= self.low
        pad = np.where(flat, np.maximum(np.abs(self.low), 1.0) * 1e-3, 0.0)
        return self.low - pad, self.high + pad


def diameter(low: ArrayLike, high: ArrayLike) -> float:
    """Return the Euclidean length of the diagonal of a box, rounded up.

    Rounding up covers the rounding errors of the computation: no two points are farther apart.
    """
    return float(np.linalg.norm(np.asarray(high) - np.asarray(low)) * ROUND_UP)

"""Sums that no rounding, order or grouping of records can change, and their sensitivity.

Proof: doc/theory/noise_and_calibration.md, "Sums".
Proof: doc/theory/noise_and_calibration.md, "Adjacency".
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_dptda._typing import Adjacency, FloatArray
from sklearn_dptda.privacy._guarantee import check_adjacency
from sklearn_dptda.privacy._parameters import quoted

# Factors that pay for the roundings of a short computation in floating point: five or so
# operations, each off by at most 2**-53 of its result.
ROUND_UP = 1 + 2.0**-50
ROUND_DOWN = 1 - 2.0**-50
# A scale of noise has 2**30 to 2**31 steps of the lattice, so that delta grows by some 1e-19 per
# coordinate (doc/theory/noise_and_calibration.md, "Integer noise") and sums fit 62 bits.
_STEPS_PER_SCALE_BITS = 30
# Larger sums of steps are refused: noise added to them must not leave 64-bit integers.
_LARGEST_STEPS = 1 << 62


@dataclass(frozen=True)
class Sensitivity:
    """How far one record can move a statistic.

    A bare number cannot say whether the neighbour has one record replaced or
    one more or less; a factor of two hides there. Calibration takes this
    object, and refuses to combine one adjacency with the other.

    Parameters
    ----------
    value : float
        Largest change between neighbours, in the units of the statistic.
    norm : {"l1", "l2"}
        Laplace noise needs ``"l1"``, Gaussian noise ``"l2"``.
    adjacency : {"replace-one", "add-remove"}
        Who the neighbours are: same public size and one record changed, or
        one record more or less, the size itself private.

    Raises
    ------
    ValueError
        If the value is negative or not finite, or the others unknown.

    Examples
    --------
    >>> from sklearn_dptda.privacy import Sensitivity
    >>> count = Sensitivity(1.0, "l1", "add-remove")
    >>> count.for_replacement()
    Sensitivity(value=2.0, norm='l1', adjacency='replace-one')
    """

    value: float
    norm: Literal["l1", "l2"]
    adjacency: Adjacency

    def __post_init__(self) -> None:
        if not (self.value >= 0 and math.isfinite(self.value)):
            raise ValueError(f"value must be finite and non-negative; got {quoted(self.value)}.")
        if self.norm not in ("l1", "l2"):
            raise ValueError(f"norm must be 'l1' or 'l2'; got {quoted(self.norm)}.")
        check_adjacency(self.adjacency)

    def require(
        self, *, norm: Literal["l1", "l2"] | None = None, adjacency: Adjacency | None = None
    ) -> Self:
        """Return self, or raise ValueError if norm or adjacency is another one."""
        for name, wanted in (("norm", norm), ("adjacency", adjacency)):
            if wanted is not None and getattr(self, name) != wanted:
                raise ValueError(
                    f"needs a sensitivity with {name} {wanted!r}; got {getattr(self, name)!r}."
                )
        return self

    def for_replacement(self) -> Self:
        """Bound for replaced records: one removed and one added, so at most twice.

        The way back does not exist: a bound for replacement says nothing
        about a record more or less.
        """
        if self.adjacency == "replace-one":
            return self
        return replace(self, value=2 * self.value, adjacency="replace-one")

    def __mul__(self, factor: float) -> Self:
        return replace(self, value=self.value * abs(factor))

    __rmul__ = __mul__

    def __add__(self, other: object) -> Self:
        """Sensitivity of two statistics released jointly, as one vector."""
        if not isinstance(other, Sensitivity):
            return NotImplemented
        other.require(norm=self.norm, adjacency=self.adjacency)
        one, two = self.value, other.value
        return replace(self, value=math.hypot(one, two) if self.norm == "l2" else one + two)


@dataclass(frozen=True)
class FixedPoint:
    """The lattice ``step * Z`` on which a statistic is summed and released.

    Records are rounded to the lattice one by one, towards zero, before they
    meet; from there on sums are sums of integers, so neither their order nor
    their rounding can widen a sensitivity.

    Parameters
    ----------
    exponent : int
        The step is ``2**exponent``: dividing by it is exact.

    Notes
    -----
    **Sensitivity.** Rounding towards zero shrinks every coordinate: bounds of
    the norm of one record's contribution (add-remove) hold unchanged. Between
    two replaced contributions rounding can add at most one step per
    coordinate; :meth:`sum_sensitivity` includes it.

    **Gaussian noise.** With at least 2**30 steps per scale, discrete Gaussian
    noise is within ``1 / (40 s**2) < 1e-19`` in total variation, per
    coordinate, of a continuous Gaussian that is rounded to the lattice, and
    such rounding is post-processing. The analytic Gaussian calibration holds
    up to that.

    Examples
    --------
    >>> from sklearn_dptda.privacy import FixedPoint
    >>> lattice = FixedPoint.for_scale(1.0)
    >>> total = lattice.sum([[0.1], [0.2], [0.3]])
    >>> lattice.decode(total).round(6)
    array([0.6])
    """

    exponent: int

    @classmethod
    def for_scale(cls, scale: float) -> Self:
        """Lattice fine enough for noise of the given, public, scale."""
        if not (scale > 0 and math.isfinite(scale)):
            raise ValueError(f"scale must be positive and finite; got {quoted(scale)}.")
        return cls(math.frexp(scale)[1] - 1 - _STEPS_PER_SCALE_BITS)

    @property
    def step(self) -> float:
        """Distance of neighbouring lattice points."""
        return math.ldexp(1.0, self.exponent)

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Round towards zero to whole steps.

        Parameters
        ----------
        values : array-like of float

        Returns
        -------
        ndarray of int64

        Raises
        ------
        ValueError
            If a value is not finite, or its multiple of the step leaves 62 bits.
        """
        values = np.asarray(values, dtype=float)
        # The product with a power of two is exact, and far faster, where the power is a float.
        usual = abs(self.exponent) < 1000
        steps = np.asarray(
            values * 2.0**-self.exponent if usual else np.ldexp(values, -self.exponent)
        )
        np.trunc(steps, out=steps)
        # NaN is in no order.
        if not (steps.max(initial=0) < _LARGEST_STEPS and steps.min(initial=0) > -_LARGEST_STEPS):
            raise ValueError("values must be finite and below 2**62 steps of the lattice.")
        return steps.astype(np.int64)

    def decode(self, steps: ArrayLike) -> FloatArray:
        """Turn whole steps into floats.

        Parameters
        ----------
        steps : array-like of int

        Returns
        -------
        ndarray of float
        """
        return np.ldexp(np.asarray(steps).astype(float), self.exponent)

    def sum(self, values: ArrayLike, axis: int = 0) -> NDArray[np.int64]:
        """Exact sum of rounded values: the same in whatever order and grouping.

        Parameters
        ----------
        values : array-like of float
        axis : int, default=0

        Returns
        -------
        ndarray of int64
            In steps; :meth:`decode` makes floats of it.

        Raises
        ------
        ValueError
            If the sum could leave 62 bits.
        """
        steps = self.encode(values)
        largest = float(np.abs(steps).max(initial=0)) * steps.shape[axis]
        if largest >= _LARGEST_STEPS:
            raise ValueError("the sum could leave 62 bits: use a coarser lattice.")
        return steps.sum(axis=axis)

    def sum_sensitivity(self, sensitivity: Sensitivity, size: int) -> Sensitivity:
        """Sensitivity of a :meth:`sum` of records, in steps.

        Not that of a statistic that is computed first and encoded afterwards:
        neighbours of such a statistic can fall on both sides of a step.

        Parameters
        ----------
        sensitivity : Sensitivity
            Of the sum before rounding, in its own units: a bound of the norm
            of one record's contribution, or of the difference of two.
        size : int
            Number of coordinates that one record can move.

        Returns
        -------
        Sensitivity
        """
        in_steps = sensitivity * math.ldexp(1.0, -self.exponent)
        if sensitivity.adjacency == "add-remove":
            return in_steps
        extra = math.sqrt(size) if sensitivity.norm == "l2" else size
        return type(sensitivity)(in_steps.value + extra, in_steps.norm, in_steps.adjacency)

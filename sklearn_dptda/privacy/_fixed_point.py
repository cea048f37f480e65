"""Exact sums, independent of the order and grouping of records, and their sensitivity.

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

# Factors that cover the rounding errors of a short computation in floating point: about five
# operations, each with a relative error of at most 2**-53.
ROUND_UP = 1 + 2.0**-50
ROUND_DOWN = 1 - 2.0**-50
# A noise scale has 2**30 to 2**31 steps of the lattice. Then delta grows by about 1e-19 per
# coordinate (doc/theory/noise_and_calibration.md, "Integer noise"), and sums fit 62 bits.
_STEPS_PER_SCALE_BITS = 30
# Larger sums of steps are refused, so that sums with noise do not overflow 64-bit integers.
_LARGEST_STEPS = 1 << 62


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a statistic: its largest change between neighbouring data sets.

    Sensitivities for replaced and for added records can differ by a factor of two.
    Adding sensitivities of different adjacency raises an error.

    Parameters
    ----------
    value : float
        Largest change between neighbours, in the units of the statistic.
    norm : {"l1", "l2"}
        Norm of the change. Laplace noise needs ``"l1"``, Gaussian noise
        ``"l2"``.
    adjacency : {"replace-one", "add-remove"}
        Neighbours. ``"replace-one"`` (bounded): one record is replaced, and the
        number of records is public. ``"add-remove"`` (unbounded): one record is
        added or removed, and the number of records is private.

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
        """Check the norm and the adjacency.

        Parameters
        ----------
        norm : {"l1", "l2"}, default=None
            Required norm. None accepts both.
        adjacency : {"replace-one", "add-remove"}, default=None
            Required adjacency. None accepts both.

        Returns
        -------
        Sensitivity
        """
        for name, wanted in (("norm", norm), ("adjacency", adjacency)):
            if wanted is not None and getattr(self, name) != wanted:
                raise ValueError(
                    f"a sensitivity with {name} {wanted!r} is required; got "
                    f"{getattr(self, name)!r}."
                )
        return self

    def for_replacement(self) -> Self:
        """Return the sensitivity for replaced records.

        It is at most twice as large. There is no conversion in the other direction.

        Returns
        -------
        Sensitivity
        """
        if self.adjacency == "replace-one":
            return self
        return replace(self, value=2 * self.value, adjacency="replace-one")

    def __mul__(self, factor: float) -> Self:
        return replace(self, value=self.value * abs(factor))

    __rmul__ = __mul__

    def __add__(self, other: object) -> Self:
        """Return the sensitivity of two statistics that are released jointly, as one vector."""
        if not isinstance(other, Sensitivity):
            return NotImplemented
        other.require(norm=self.norm, adjacency=self.adjacency)
        one, two = self.value, other.value
        return replace(self, value=math.hypot(one, two) if self.norm == "l2" else one + two)


@dataclass(frozen=True)
class FixedPoint:
    """Lattice ``step * Z`` on which a statistic is summed and released.

    Each record is rounded to the lattice, towards zero, before records are added.
    Sums are then sums of integers, and independent of their order.

    Parameters
    ----------
    exponent : int
        Exponent of the step, which is ``2**exponent``.

    Notes
    -----
    **Sensitivity.** Bounds of the norm of one record's contribution (add-remove)
    remain valid. Between two replaced contributions, rounding can add at most one
    step per coordinate, which :meth:`sum_sensitivity` includes.

    **Gaussian noise.** With at least 2**30 steps per scale, the total variation
    distance, per coordinate, between discrete Gaussian noise and a continuous
    Gaussian that is rounded to the lattice is at most ``1 / (40 s**2) < 1e-19``. The
    analytic Gaussian calibration holds up to this distance.

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
        """Return a lattice that is fine enough for noise of a given scale.

        Parameters
        ----------
        scale : float
            Public scale of the noise, in the units of the statistic.

        Returns
        -------
        FixedPoint
        """
        if not (scale > 0 and math.isfinite(scale)):
            raise ValueError(f"scale must be positive and finite; got {quoted(scale)}.")
        return cls(math.frexp(scale)[1] - 1 - _STEPS_PER_SCALE_BITS)

    @property
    def step(self) -> float:
        """Distance between neighbouring lattice points, in the units of the statistic."""
        return math.ldexp(1.0, self.exponent)

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """Round values towards zero to whole steps.

        Parameters
        ----------
        values : array-like of float
            Values in the units of the statistic.

        Returns
        -------
        ndarray of int64
        """
        values = np.asarray(values, dtype=float)
        # The product with a power of two is exact. It is much faster than ldexp if the power is a
        # normal float.
        usual = abs(self.exponent) < 1000
        steps = np.asarray(
            values * 2.0**-self.exponent if usual else np.ldexp(values, -self.exponent)
        )
        np.trunc(steps, out=steps)
        # Comparisons with NaN are false, so that NaN is refused as well.
        if not (steps.max(initial=0) < _LARGEST_STEPS and steps.min(initial=0) > -_LARGEST_STEPS):
            raise ValueError("values must be finite and below 2**62 steps of the lattice.")
        return steps.astype(np.int64)

    def decode(self, steps: ArrayLike) -> FloatArray:
        """Convert whole steps to floats.

        Parameters
        ----------
        steps : array-like of int
            Values in steps.

        Returns
        -------
        ndarray of float
        """
        return np.ldexp(np.asarray(steps).astype(float), self.exponent)

    def sum(self, values: ArrayLike, axis: int = 0) -> NDArray[np.int64]:
        """Return the exact sum of rounded values, independent of their order and grouping.

        Parameters
        ----------
        values : array-like of float
            Values in the units of the statistic.
        axis : int, default=0
            Axis along which the values are added.

        Returns
        -------
        ndarray of int64
            The sum in steps.
        """
        steps = self.encode(values)
        largest = float(np.abs(steps).max(initial=0)) * steps.shape[axis]
        if largest >= _LARGEST_STEPS:
            raise ValueError("the sum could exceed 62 bits: use a coarser lattice.")
        return steps.sum(axis=axis)

    def sum_sensitivity(self, sensitivity: Sensitivity, size: int) -> Sensitivity:
        """Return the sensitivity of a :meth:`sum` of records, in steps.

        It is not valid for a statistic that is computed first and encoded afterwards.

        Parameters
        ----------
        sensitivity : Sensitivity
            Sensitivity of the sum before rounding, in the units of the statistic:
            a bound of the norm of one record's contribution (add-remove), or of
            the difference of two contributions (replace-one).
        size : int
            Number of coordinates that one record can change.

        Returns
        -------
        Sensitivity
        """
        in_steps = sensitivity * math.ldexp(1.0, -self.exponent)
        if sensitivity.adjacency == "add-remove":
            return in_steps
        extra = math.sqrt(size) if sensitivity.norm == "l2" else size
        return type(sensitivity)(in_steps.value + extra, in_steps.norm, in_steps.adjacency)

"""A sensitivity that knows its norm and its neighbours."""

import math
from dataclasses import dataclass, replace
from typing import Literal, Self

from sklearn_dptda._typing import Adjacency
from sklearn_dptda.privacy._parameters import quoted

ADJACENCIES = ("replace-one", "add-remove")


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

    def __post_init__(self):
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


def check_adjacency(adjacency):
    """Return a known adjacency, or raise ValueError."""
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {ADJACENCIES}; got {quoted(adjacency)}.")
    return adjacency

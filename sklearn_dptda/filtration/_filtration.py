"""Functions of one point cloud with their public numbers: on the nodes of a grid, on simplices."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy import PrivacyGuarantee

POINT = "one point of a cloud"


class Capped(NamedTuple):
    """A function whose distances are cut off sooner, and its public numbers."""

    values: FloatArray
    sensitivity: float
    upper: float


@dataclass(frozen=True, eq=False)
class Filtration:
    """A function of one point cloud at public places, with its public bounds.

    Subclasses say in a field of their own where its values are.
    """

    values: FloatArray = field(repr=False)
    sensitivity: float
    upper: float
    n_points: int
    statistic: str
    approximation_error: float = 0.0
    public_bounds: bool = True
    bounds_guarantee: PrivacyGuarantee | None = None
    n_clipped: int | None = field(default=None, repr=False)
    unit: str = POINT
    smaller: tuple[Capped, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.array(self.values, dtype=float))
        smaller = tuple(Capped(np.array(c.values, dtype=float), *c[1:]) for c in self.smaller)
        object.__setattr__(self, "smaller", smaller)
        if not np.isfinite(self.values).all():
            raise ValueError("values contains NaN or infinity.")
        for name in ("sensitivity", "upper"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a positive finite number.")
        for array in (self.values, *(each.values for each in smaller)):
            array.setflags(write=False)

    @property
    def smaller_caps(self) -> list[tuple[float, float]]:
        """Sensitivity and upper bound under each smaller cap: public."""
        return [(each.sensitivity, each.upper) for each in self.smaller]

    @property
    def adjacency(self) -> Literal["replace-one"]:
        """Neighbouring clouds differ in one replaced record."""
        return "replace-one"

    def __len__(self) -> int:
        return len(self.values)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Pickles of arrays do not keep that they are read-only.
        self.__post_init__()


@dataclass(frozen=True, eq=False)
class GridFiltration(Filtration):
    """A function of one point cloud on a public grid, with its public bounds.

    The values and ``n_clipped`` are exact statistics of the cloud: they are
    *not* private. Everything else is public.

    Parameters
    ----------
    values : ndarray of shape (r_1, ..., r_d)
        Filtration value of every grid node; at most ``upper``.
    sensitivity : float
        Largest change of any value when one record is replaced: one point of
        the cloud, or all points of one person.
    upper : float
        Public bound of the values. Sublevel sets are whole from here on.
    n_points : int
        Number of records in the cloud, points or people, public under
        replace-one adjacency.
    statistic : str
        What was computed.
    approximation_error : float, default=0.0
        Largest distance of the values from those of the untouched cloud,
        beyond floating point: half the diagonal of a lattice cell where the
        points were first moved to a lattice.
    public_bounds : bool, default=True
        False when the box was computed from the data, at no price.
    bounds_guarantee : PrivacyGuarantee, default=None
        What was paid for a private box; a release of diagrams adds its own.
    n_clipped : int, default=None
        How many records lay outside the box, or partly so, and were clipped to
        it: *not* private. None where that is not known.
    unit : str, default="one point of a cloud"
        What one record is, for the guarantees of what is released.
    smaller : tuple of (values, sensitivity, upper), default=()
        The same function under smaller caps of its distances, the largest
        first, among which releases may draw. As exact as ``values``: *not*
        private.
    axes : tuple of ndarray
        Coordinates of the grid along each axis, in the units of the data. By
        keyword.

    Raises
    ------
    ValueError
        If values and axes disagree, or a number is not finite or not positive
        where it has to be.
    """

    axes: tuple[FloatArray, ...] = field(repr=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "axes", tuple(np.array(a, dtype=float) for a in self.axes))
        if self.values.shape != tuple(len(axis) for axis in self.axes):
            raise ValueError("values must have one entry per grid node: shape and axes disagree.")
        for axis in self.axes:
            axis.setflags(write=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of grid nodes along each axis."""
        return self.values.shape

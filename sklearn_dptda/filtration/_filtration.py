"""Functions of one point cloud on grid nodes or on simplices, with their public numbers."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy import PrivacyGuarantee

POINT = "one point of a cloud"


class Capped(NamedTuple):
    """A function whose distances are cut off at a smaller cap, with its public numbers."""

    values: FloatArray
    sensitivity: float
    upper: float


@dataclass(frozen=True, eq=False)
class Filtration:
    """Base of functions of one point cloud at public evaluation points, with public bounds.

    Subclasses add a field that says where the values are located.
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
        """Sensitivity and upper bound under each smaller cap. Public."""
        return [(each.sensitivity, each.upper) for each in self.smaller]

    @property
    def adjacency(self) -> Literal["replace-one"]:
        """Neighbouring clouds differ by replacing one record."""
        return "replace-one"

    def __len__(self) -> int:
        return len(self.values)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Pickled arrays lose their read-only flag.
        self.__post_init__()


@dataclass(frozen=True, eq=False)
class GridFiltration(Filtration):
    """A function of one point cloud on a public grid, with its public bounds.

    ``values``, ``smaller`` and ``n_clipped`` are exact statistics of the point cloud: they
    are *not* private. All other fields are public. :class:`DTMFiltration` and
    :class:`KernelDistanceFiltration` return such objects. Construct one yourself if you
    release a function of your own whose sensitivity you have proved.

    Parameters
    ----------
    values : ndarray of shape (r_1, ..., r_d)
        Filtration value of every grid node, at most ``upper``, in the units of the
        function. *Not* private.
    sensitivity : float
        Largest change of any value when one record is replaced, in the units of the
        function. A record is one point of the cloud, or all points of one person. The
        noise of a private release is proportional to it.
    upper : float
        Public upper bound of the values. From this level on, every node belongs to the
        sublevel set.
    n_points : int
        Number of records in the cloud: points, or people. It is public, because
        neighbouring clouds differ by replacing one record.
    statistic : str
        Description of the function, for guarantees and reports.
    approximation_error : float, default=0.0
        Largest difference, apart from floating-point errors, between the values and
        those of the original points. It is half the diagonal of a lattice cell if the
        points were first moved to a lattice.
    public_bounds : bool, default=True
        Whether the box is public. False means that it was computed from the data
        without a privacy guarantee, so a release is not private.
    bounds_guarantee : PrivacyGuarantee, default=None
        Guarantee of a private box. A release of diagrams adds its own privacy loss to
        it. None if the box is public and costs nothing.
    n_clipped : int, default=None
        Number of records that were outside the box, or partly outside, and were
        clipped to it. *Not* private. None if it is not known.
    unit : str, default="one point of a cloud"
        Description of the privacy unit, for the guarantees of releases.
    smaller : tuple of (values, sensitivity, upper), default=()
        The same function with distances cut off at smaller caps, the largest cap first.
        A private release may draw one of them. The values are exact and *not* private;
        the other two numbers are public.
    axes : tuple of ndarray
        Coordinates of the grid nodes along each axis, in the units of the data. Keyword
        only.

    Attributes
    ----------
    shape : tuple of int
        Number of grid nodes along each axis.
    smaller_caps : list of (float, float)
        Sensitivity and upper bound under each smaller cap. Public.
    adjacency : str
        ``"replace-one"``: neighbouring clouds differ by replacing one record.

    See Also
    --------
    ComplexFiltration : A function on the simplices of public landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda import GridFiltration
    >>> axis = np.linspace(0.0, 1.0, 5)
    >>> values = np.abs(axis[:, None] - axis)
    >>> function = GridFiltration(values, 0.01, 1.0, 100, "an example", axes=(axis, axis))
    >>> function.shape, function.sensitivity
    ((5, 5), 0.01)
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

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
    """Base of functions of one point cloud at public evaluation points, with public bounds."""

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
        if not (np.isfinite(self.upper) and self.upper > 0):
            raise ValueError("upper must be a positive finite number.")
        if not (np.isfinite(self.sensitivity) and self.sensitivity >= 0):
            raise ValueError("sensitivity must be a finite number of at least 0.")
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
        Value of every grid node, at most ``upper``, in the units of the function.
    sensitivity : float
        Largest change of any value when one record is replaced, in the units of the
        function. A record is one point of the cloud, or all points of one person. 0: the
        function is public, such as that of a released cloud.
    upper : float
        Public upper bound of the values.
    n_points : int
        Public number of records in the cloud: points, or people.
    statistic : str
        Description of the function, for guarantees and reports.
    approximation_error : float, default=0.0
        Largest difference, apart from floating-point errors, between the values and
        those of the original points.
    public_bounds : bool, default=True
        Whether the box is public. False means that it was computed from the data
        without a privacy guarantee, so a release is not private.
    bounds_guarantee : PrivacyGuarantee, default=None
        Guarantee of a private box, to which a release of diagrams adds its own loss. None
        if the box is public.
    n_clipped : int, default=None
        Number of records clipped to the box, at least in part. None if it is not known.
    unit : str, default="one point of a cloud"
        Description of the privacy unit, for the guarantees of releases.
    smaller : tuple of (values, sensitivity, upper), default=()
        The same function with distances cut off at smaller caps, the largest cap first.
        A private release may draw one of them.
    axes : tuple of ndarray
        Grid nodes along each axis, in the units of the data. Keyword only.

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

"""Functions on a regular grid of public nodes, and the bounds that travel with them."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy import PrivacyGuarantee


@dataclass(frozen=True, eq=False)
class GridFiltration:
    """A function of one point cloud on a public grid, with its public bounds.

    The values and ``n_clipped`` are exact statistics of the cloud: they are
    *not* private. Everything else is public.

    Parameters
    ----------
    values : ndarray of shape (r_1, ..., r_d)
        Filtration value of every grid node; at most ``upper``.
    axes : tuple of ndarray
        Coordinates of the grid along each axis, in the units of the data.
    sensitivity : float
        Largest change of any value when one point of the cloud is replaced.
    upper : float
        Public bound of the values. Sublevel sets are whole from here on.
    n_points : int
        Size of the cloud, public under replace-one adjacency.
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
        How many points lay outside the box, and were clipped to it: *not*
        private. None where that is not known.

    Raises
    ------
    ValueError
        If values and axes disagree, or a number is not finite or not positive
        where it has to be.
    """

    values: FloatArray = field(repr=False)
    axes: tuple[FloatArray, ...] = field(repr=False)
    sensitivity: float
    upper: float
    n_points: int
    statistic: str
    approximation_error: float = 0.0
    public_bounds: bool = True
    bounds_guarantee: PrivacyGuarantee | None = None
    n_clipped: int | None = field(default=None, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "values", np.array(self.values, dtype=float))
        object.__setattr__(self, "axes", tuple(np.array(a, dtype=float) for a in self.axes))
        if not np.isfinite(self.values).all():
            raise ValueError("values contains NaN or infinity.")
        if self.values.shape != tuple(len(axis) for axis in self.axes):
            raise ValueError("values must have one entry per grid node: shape and axes disagree.")
        for name in ("sensitivity", "upper"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a positive finite number.")
        self._protect()

    def _protect(self):
        for array in (self.values, *self.axes):
            array.setflags(write=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of grid nodes along each axis."""
        return self.values.shape

    @property
    def adjacency(self) -> Literal["replace-one"]:
        """Neighbouring clouds differ in one replaced point."""
        return "replace-one"

    def __len__(self) -> int:
        return len(self.values)

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._protect()


def grid_axes(low, high, resolution):
    """Evenly spaced coordinates along each axis, both bounds included."""
    return tuple(np.linspace(a, b, r) for a, b, r in zip(low, high, resolution, strict=True))


def grid_nodes(axes):
    """All nodes of a grid, shape (n_nodes, d), last axis fastest."""
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1)

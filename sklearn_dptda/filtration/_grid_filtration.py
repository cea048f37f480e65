"""Functions on a regular grid of public nodes, and the bounds that travel with them."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy import PrivacyGuarantee
from sklearn_dptda.privacy._parameters import quoted


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


# Nodes of a grid along each axis: a default for each dimension, and a bound by memory.

# Odd numbers, so that the centre of the box is a node.
_DEFAULTS = {1: 1001, 2: 101, 3: 41, 4: 17}
_MOST_DIMENSIONS = max(_DEFAULTS)
_PROJECTION = (
    "the clouds to 2 or 3 dimensions by a projection that does not look at the data, such as "
    "sklearn.random_projection.GaussianRandomProjection."
)


def check_resolution(given, n_dims, memory):
    """Return one number of nodes per axis, or refuse what does not fit into ``memory`` MiB."""
    if n_dims > _MOST_DIMENSIONS:
        # The number of nodes may be beyond all floats.
        raise ValueError(
            f"A grid in {n_dims} dimensions is not supported: at most {_MOST_DIMENSIONS}. "
            f"Bring {_PROJECTION}"
        )
    if given is None:
        sizes = (_DEFAULTS[n_dims],) * n_dims
    else:
        resolution = np.asarray(given)
        if resolution.ndim == 0:
            resolution = np.full(n_dims, resolution)
        whole = np.issubdtype(resolution.dtype, np.integer)
        if resolution.shape != (n_dims,) or not whole or resolution.min() < 2:
            raise ValueError(
                "resolution must be an integer of at least 2, or one per coordinate "
                f"({n_dims} here); got {quoted(given)}."
            )
        sizes = tuple(int(r) for r in resolution)
    n_nodes = int(np.prod([float(r) for r in sizes]))
    if _mebibytes(n_dims, n_nodes) > memory:
        raise ValueError(
            f"A grid of {n_nodes} nodes in {n_dims} dimensions needs about "
            f"{_mebibytes(n_dims, n_nodes):.3g} MiB, but memory={memory:g} MiB. Lower resolution "
            f"or raise memory. Or bring {_PROJECTION}"
        )
    return sizes


def resolution_for(error, sides):
    """Nodes per axis for which no place of a box is further than ``error`` from a node.

    The default where that is enough, and less than twice as many where even they are not.
    """
    least = _DEFAULTS.get(len(sides), 2)
    needed = 1 + math.ceil(float(np.linalg.norm(sides)) / (2 * error))
    return min(max(least, needed | 1), 2 * least - 1)


def _mebibytes(n_dims, n_nodes):
    """Floating-point work of a grid: values, coordinates and sums of every node."""
    return n_nodes * 8 * (n_dims + 3) / 2**20

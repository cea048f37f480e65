"""Where a feature is: the places and the region of each point of a persistence diagram.

Proof: doc/theory/private_cloud.md, "Places".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from gudhi import CubicalComplex
from numpy.typing import ArrayLike
from scipy import ndimage

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.filtration import GridFiltration
from sklearn_dptda.privacy._parameters import quoted

# Points of diagrams are equal up to this share of the upper bound of the function.
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class FeatureRegion:
    """Where a feature of a function on a grid is.

    Attributes
    ----------
    birth, death : float
        The point of the diagram, in the units of the function.
    birth_place, death_place : ndarray of shape (d,)
        Nodes at which the feature is born and dies. A component is born where the function is
        least, and a loop or void dies in its middle. The death of the essential component has no
        place, but NaN.
    level : float
        Level at which the region is taken.
    inside : ndarray of bool, with the shape of the grid
        The region: nodes of a component below the level, or nodes that a loop or void encloses.
    axes : tuple of ndarray
        Nodes along each axis, in the units of the data.
    """

    birth: float
    death: float
    birth_place: FloatArray
    death_place: FloatArray
    level: float
    inside: BoolArray = field(repr=False)
    axes: tuple[FloatArray, ...] = field(repr=False)

    @property
    def persistence(self) -> float:
        """Death minus birth."""
        return self.death - self.birth

    @property
    def middle(self) -> FloatArray:
        """Place in the region: of the death of a loop or void, or the birth of a component."""
        return self.death_place if self.contains(self.death_place) else self.birth_place

    def contains(self, place: ArrayLike) -> bool:
        """Return whether the node next to a place is in the region.

        Parameters
        ----------
        place : array-like of shape (d,)

        Returns
        -------
        bool
        """
        place = np.asarray(place, dtype=float)
        if np.isnan(place).any():
            return False
        nodes = (int(np.abs(axis - x).argmin()) for axis, x in zip(self.axes, place, strict=True))
        return bool(self.inside[tuple(nodes)])

    def outline(self) -> list[FloatArray]:
        """Return the closed curves around the region, in the plane.

        Returns
        -------
        list of ndarray of shape (n, 2)
            The outer curve and those around holes, if there are any, the longest first. They run
            half a step of the grid outside of the nodes of the region.
        """
        if len(self.axes) != 2:
            raise ValueError("outlines are curves in the plane; this function has other columns.")
        try:
            from contourpy import contour_generator
        except ImportError:
            raise ImportError(
                'Outlines need contourpy: pip install "sklearn-dptda[plot]".'
            ) from None
        # A frame closes curves at the border of the box.
        x, y = (np.r_[2 * axis[0] - axis[1], axis, 2 * axis[-1] - axis[-2]] for axis in self.axes)
        curves = contour_generator(x, y, np.pad(self.inside, 1).T.astype(float)).lines(0.5)
        return sorted(map(np.asarray, curves), key=len, reverse=True)


def feature_regions(
    filtration: GridFiltration, diagram: ArrayLike, dimension: int
) -> list[FeatureRegion]:
    """Find where the features of a persistence diagram are.

    Components are taken at the lowest level at which they meet another component of ``diagram``,
    so pass the long points alone. The regions of loops in the plane, and of voids in space, are
    what they enclose, halfway between birth and death. Regions of loops in space are not defined.

    Parameters
    ----------
    filtration : GridFiltration
        A function on a grid, such as the distance-to-measure of a cloud or of a released cloud.
    diagram : array-like of shape (n, 2)
        Points of its persistence diagram from :class:`CubicalPersistence`, all or some of them.
    dimension : int
        Homology dimension of the diagram: 0, or one less than the number of coordinates.

    Returns
    -------
    list of FeatureRegion
        One for each point of ``diagram``, in the same order.

    See Also
    --------
    CloudResamples : How sure the features of a released cloud are.
    sklearn_dptda.PrivateCloud : Releases clouds, whose regions are public.

    Notes
    -----
    .. rubric:: Privacy

    The regions of a function of exact points are exact statistics, and *not* private. Those of a
    released cloud are post-processing, and cost nothing.

    Examples
    --------
    >>> from sklearn_dptda import CubicalPersistence, DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.persistence import feature_regions
    >>> X = make_two_circles(4000, random_state=0)
    >>> function, = DTMFiltration(m=0.1, bounds=(-3, 3.5)).fit_transform([X])
    >>> loops, = CubicalPersistence(1).fit_transform([function])
    >>> long = loops[loops[:, 1] - loops[:, 0] > 0.5]
    >>> [region.death_place.round(1).tolist() for region in feature_regions(function, long, 1)]
    [[-1.5, -1.5], [1.5, 1.5]]
    """
    if not isinstance(filtration, GridFiltration):
        raise ValueError("filtration must be a GridFiltration, whose function is on a grid.")
    d = len(filtration.axes)
    if dimension not in (0, d - 1) or d < 2:
        raise ValueError(
            f"dimension must be 0, or {d - 1} for functions of {d} coordinates in which it is "
            f"enclosed; got {quoted(dimension)}. Functions of one coordinate have no regions."
        )
    points = np.asarray(diagram, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError("diagram must be an array of shape (n, 2), of one homology dimension.")
    values = np.minimum(np.maximum(filtration.values, 0.0), filtration.upper)
    births, deaths = _pairs(values, dimension)
    which = _matched(points, values, births, deaths, filtration.upper)
    births, deaths = births[which], deaths[which]
    if dimension == 0:
        levels = _levels_of_meeting(values, births, points)
        parts = [_part(values < level, birth) for level, birth in zip(levels, births, strict=True)]
    else:
        levels = points.mean(axis=1)
        # Nodes that only touch at a corner are one part of what is above the level.
        corners = np.ones((3,) * d)
        parts = [
            _part(values > level, death, corners)
            for level, death in zip(levels, deaths, strict=True)
        ]
    return [
        FeatureRegion(
            birth=float(start),
            death=float(end),
            birth_place=_place(filtration.axes, birth),
            death_place=_place(filtration.axes, death),
            level=float(level),
            inside=inside,
            axes=filtration.axes,
        )
        for (start, end), birth, death, level, inside in zip(
            points, births, deaths, levels, parts, strict=True
        )
    ]


def _pairs(values: FloatArray, dimension: int) -> tuple[IntArray, IntArray]:
    """Return the nodes at which features are born and die; -1 for the end of an essential one."""
    if values.ndim == 2 and dimension == 1 and min(values.shape) > 2:
        # By duality: loops are components of superlevel sets, and GUDHI is faster on cells.
        cells = np.pad(-values, 1, constant_values=-np.inf)
        complex = CubicalComplex(top_dimensional_cells=cells)
        complex.compute_persistence()
        (pairs, *_), _ = complex.cofaces_of_persistence_pairs()
        nodes = np.array(np.unravel_index(np.reshape(pairs, (-1, 2)), cells.shape, order="F")) - 1
        inside = ((nodes >= 0) & (nodes < np.reshape(values.shape, (2, 1, 1)))).all(axis=(0, 2))
        ends, starts = _ravelled(nodes[:, inside], values).T
        return starts, ends
    complex = CubicalComplex(vertices=values)
    complex.compute_persistence()
    finite, essential = complex.vertices_of_persistence_pairs()
    pairs = np.reshape(finite[dimension] if dimension < len(finite) else [], (-1, 2)).astype(int)
    # GUDHI numbers the nodes along the first axis first.
    starts, ends = _ravelled(np.array(np.unravel_index(pairs, values.shape, order="F")), values).T
    if dimension > 0:
        return starts, ends
    oldest = np.array(np.unravel_index(essential[0], values.shape, order="F"))
    return np.r_[starts, _ravelled(oldest, values)], np.r_[ends, [-1] * oldest.shape[1]]


def _ravelled(nodes: IntArray, values: FloatArray) -> IntArray:
    return np.asarray(np.ravel_multi_index(tuple(nodes), values.shape))


def _matched(
    points: FloatArray, values: FloatArray, births: IntArray, deaths: IntArray, upper: float
) -> IntArray:
    """Return which pair each point is, each pair at most once."""
    flat = np.append(values.ravel(), upper)
    own = np.column_stack([flat[births], flat[deaths]])
    left, found = np.ones(len(own), dtype=bool), []
    for point in points:
        same = np.flatnonzero(left & (np.abs(own - point) <= _SAME * upper).all(axis=1))
        if len(same) == 0:
            raise ValueError(
                "diagram has a point that is none of this filtration in this dimension. Pass the "
                "diagram that CubicalPersistence computes of the same filtration."
            )
        found.append(same[0])
        left[same[0]] = False
    return np.array(found, dtype=int)


def _place(axes: Sequence[FloatArray], node: int) -> FloatArray:
    """Return the coordinates of a node, or NaN for none."""
    if node < 0:
        return np.full(len(axes), np.nan)
    index = np.unravel_index(node, tuple(map(len, axes)))
    return np.array([axis[i] for axis, i in zip(axes, index, strict=True)])


def _part(nodes: BoolArray, node: int, touching: FloatArray | None = None) -> BoolArray:
    """Return the connected part of some nodes that contains a node, or this node alone."""
    labels, _ = ndimage.label(nodes, structure=touching)
    label = labels.ravel()[node]
    if label > 0:
        return np.asarray(labels == label)
    alone = np.zeros(nodes.size, dtype=bool)
    alone[node] = True
    return alone.reshape(nodes.shape)


def _levels_of_meeting(values: FloatArray, births: IntArray, points: FloatArray) -> FloatArray:
    """Return the lowest level at which each component meets another one of these.

    By the rule of the elder alone, the older of two would be all that both become, and which one
    is older changes with little noise.
    """
    levels = np.full(len(births), float(values.max()))
    for level in sorted(set(points[:, 1].tolist()), reverse=True):
        labels, _ = ndimage.label(values <= level)
        own = labels.ravel()[births]
        shared = np.array([label > 0 and (own == label).sum() > 1 for label in own], dtype=bool)
        levels[shared] = level
    return levels

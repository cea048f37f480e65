"""Base class of the estimators that compute functions on a regular public grid.

Proof: doc/theory/people.md, "Clouds of people".
"""

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import Bounds, FloatArray, IntArray
from sklearn_dptda.filtration._cloud import Cloud, LatticeHistogram, counted_on_lattice
from sklearn_dptda.filtration._estimator import AnyCloud, BaseFiltration
from sklearn_dptda.filtration._filtration import Capped, Filtration, GridFiltration
from sklearn_dptda.filtration._place_histogram import PlaceHistogram
from sklearn_dptda.filtration._released_cloud import ReleasedCloud
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import NoiseWarning, warn_caller
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context

# Nodes along each axis, by dimension. The numbers are odd, so that the centre of the box is a node.
_DEFAULT_RESOLUTION = {1: 1001, 2: 101, 3: 41, 4: 17}
# Lattice steps per grid step, by dimension.
_DEFAULT_REFINEMENT = {1: 4, 2: 2, 3: 1, 4: 1}
# The estimators warn if the longest side of a box is at least this many times the shortest one.
_UNEQUAL_SIDES = 10.0
# Exact values or a finer lattice may take this many nanoseconds for one cloud if the error of the
# lattice would exceed the sensitivity. There are no exact values for people, so they get more.
_WORK_FOR_POINTS, _WORK_FOR_PEOPLE = 2.5e9, 6e9


@dataclass(frozen=True)
class ValuesAhead:
    """Public facts about the values of any ``n`` points, known before they are computed.

    ``lattice_error`` bounds the difference of values on a lattice. Costs are in nanoseconds.
    """

    statistic: str
    sensitivity: float
    upper: float
    lattice_error: float
    exact_cost: float
    lattice_cost: float
    # Sensitivities and upper bounds under smaller caps.
    smaller: tuple[tuple[float, float], ...] = ()


class BaseGridFiltration(BaseFiltration):
    """Base of the estimators that compute one :class:`GridFiltration` for each point cloud.

    A subclass bounds its function in ``_values_ahead``, and computes it in ``_exact`` and
    ``_from_histogram``.
    """

    _parameter_constraints = {
        **BaseFiltration._parameter_constraints,
        "bounds": ["array-like", PrivateBounds, None],
        "resolution": [Interval(Integral, 2, None, closed="left"), "array-like", None],
        "method": [StrOptions({"auto", "exact", "lattice"})],
        "refinement": [Interval(Integral, 1, None, closed="left"), None],
    }
    # For type checkers: parameters and fitted attributes that all subclasses have.
    bounds: Bounds | PrivateBounds | None
    resolution: Any
    method: str
    refinement: int | None
    bounds_: tuple[FloatArray, FloatArray]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[ArrayLike | LatticeHistogram], y: object = None) -> Self:
        """Fix the public grid.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The point clouds. Only their dimension is used, unless ``bounds`` is None or
            private. Histograms from :meth:`make_histogram` can replace clouds. With
            ``groups``, each cloud is a data frame with a column of ids, or a list of arrays
            with one array per person.
        y : Ignored

        Returns
        -------
        self
        """
        clouds, distinct = self._check_to_fit(X)
        d = clouds[0].n_features
        shape = _check_resolution(self.resolution, d, self.memory)
        low, high, guarantee, remarks = self._box(distinct, d, self._unit(len(clouds)))
        self.axes_ = tuple(map(np.linspace, low, high, shape))
        self.bounds_, self.bounds_guarantee_ = (low, high), guarantee
        self._is_public = self.bounds is not None
        self._refine(self.refinement or _DEFAULT_REFINEMENT.get(d, 1))
        self.n_features_in_ = d
        if guarantee is None:
            self._check_scale()
        if self.groups and self.refinement is None:
            most = max(cloud.n_points for cloud in clouds)
            self._refine_for(most, _WORK_FOR_PEOPLE, lambda last: 2 * last)
        # Warnings come last, so that the fitted box is kept even if warnings are errors.
        for remark in remarks:
            warn_caller(remark, NoiseWarning)
        if unequal := remark_on_sides(low, high):
            warn_caller(unequal)
        return self

    def _refine(self, refinement: int) -> None:
        """Set the lattice to which points are moved."""
        low, high = self.bounds_
        self.refinement_ = refinement
        self._lattice_shape = tuple((len(axis) - 1) * refinement + 1 for axis in self.axes_)
        # The largest distance between a point and the nearest node of the lattice.
        cell = (high - low) / (np.array(self._lattice_shape) - 1)
        self._lattice_shift = float(np.linalg.norm(cell)) / 2

    def _refine_for(self, n: int, most_work: float, finer: Callable[[int], int]) -> None:
        """Refine the lattice until its error is below what one of ``n`` records can change.

        The refinement stops before the work exceeds a limit, in nanoseconds.
        """
        last, ahead = self.refinement_, self._values_ahead(n)
        while ahead.lattice_error > ahead.sensitivity and ahead.lattice_cost <= most_work:
            last = self.refinement_
            self._refine(finer(last))
            ahead = self._values_ahead(n)
        if ahead.lattice_cost > most_work:
            self._refine(last)

    def _learns_records(self) -> bool:
        return self.bounds is None

    def _releases_ahead(self, method: str, n_features: int | None) -> list[Any]:
        """Return the releases of ``fit``, as private estimators do: a private box costs budget."""
        return self._releases_of_box(method, n_features)

    def _check(self, X: Iterable[Any], n_features: int | None = None) -> list[AnyCloud]:
        if self.groups and self.method == "exact":
            raise ValueError(
                "method='exact' is not supported with groups, where points are moved to a lattice. "
                "Use method='auto', and raise refinement for a finer lattice."
            )
        return super()._check(X, n_features)

    def _one(self, cloud: AnyCloud, unit: str) -> Filtration:
        n = cloud.n_points
        if isinstance(cloud, ReleasedCloud):
            return self._of_released(cloud)
        estimator, ahead, on_lattice = self._choose(n, in_memory=isinstance(cloud, Cloud))
        histogram = estimator._histogram_of(cloud, on_lattice)
        if histogram is not None:
            values = estimator._from_histogram(histogram)
            error, n_clipped = ahead.lattice_error, histogram.n_clipped
        else:
            assert isinstance(cloud, Cloud)
            inside = np.clip(cloud.points, *self.bounds_)
            values = self._exact(inside)
            error, n_clipped = 0.0, cloud.n_beyond((inside != cloud.points).any(axis=1))
        public = [(ahead.sensitivity, ahead.upper), *ahead.smaller]
        shape = tuple(map(len, self.axes_))
        function, *smaller = (
            Capped(np.minimum(each, upper).reshape(shape), sensitivity, upper)
            for each, (sensitivity, upper) in zip(values, public, strict=True)
        )
        return GridFiltration(
            values=function.values,
            axes=self.axes_,
            sensitivity=function.sensitivity,
            upper=function.upper,
            n_points=n,
            statistic=ahead.statistic,
            approximation_error=error,
            public_bounds=self._is_public,
            bounds_guarantee=self.bounds_guarantee_,
            n_clipped=n_clipped,
            unit=unit,
            smaller=tuple(smaller),
        )

    def _of_released(self, cloud: ReleasedCloud) -> GridFiltration:
        """Compute the function of a released cloud, which no record can change any more."""
        ahead, shape = self._values_ahead(cloud.n_points), tuple(map(len, self.axes_))
        values = np.minimum(self._from_weights(*cloud.integer_weights()), ahead.upper)
        return GridFiltration(
            values=values.reshape(shape),
            axes=self.axes_,
            sensitivity=0.0,
            upper=ahead.upper,
            n_points=cloud.n_points,
            statistic=f"{ahead.statistic}, of a released cloud",
            public_bounds=self._is_public,
        )

    def _histogram_of(self, cloud: AnyCloud, on_lattice: bool) -> LatticeHistogram | None:
        """Return weighted counts on the lattice, or None if the values are computed from points."""
        people = bool(self.groups)
        lattice = LatticeHistogram(self.bounds_, self._lattice_shape, people=people)
        if isinstance(cloud, Cloud):
            return lattice.update(*cloud) if on_lattice else None
        assert isinstance(cloud, LatticeHistogram)
        if not lattice.matches(cloud):
            raise ValueError(
                "The histogram does not belong to the lattice of this estimator. Create it with "
                "make_histogram() of this estimator."
            )
        return cloud

    def _choose(self, n: int, in_memory: bool = True) -> tuple[Self, ValuesAhead, bool]:
        """Choose how to compute the values of ``n`` points, which are in memory or counted.

        Return an estimator with the lattice, public facts about the values, and whether to use the
        lattice.
        """
        ahead = self._values_ahead(n)
        if self.method != "auto" or self.groups:
            return self, ahead, self.method != "exact"
        coarse = ahead.lattice_error > ahead.sensitivity
        affordable = coarse and ahead.exact_cost <= _WORK_FOR_POINTS
        if ahead.exact_cost <= ahead.lattice_cost or affordable:
            return self, ahead, False
        if self.refinement is not None or not in_memory:
            return self, ahead, True
        finer = copy.copy(self)
        finer._refine_for(n, _WORK_FOR_POINTS, lambda last: last + 1)
        return finer, finer._values_ahead(n), True

    def _seconds_ahead(self, cloud: AnyCloud) -> float:
        if isinstance(cloud, ReleasedCloud):
            return 0.0
        in_memory = isinstance(cloud, Cloud)
        _, ahead, on_lattice = self._choose(cloud.n_points, in_memory)
        on_lattice = on_lattice or not in_memory
        cost = ahead.lattice_cost if on_lattice else ahead.exact_cost
        return cost * self._slowdown(on_lattice) / 1e9

    def _slowdown(self, on_lattice: bool) -> float:
        """Return how many times as long as its cost, by which it is chosen, a method takes here."""
        return 1.0

    def _faster(self) -> str:
        if self.method == "exact":
            return "Lower resolution, or use method='lattice' or n_jobs."
        return "Lower resolution or refinement, or use n_jobs."

    def make_histogram(self, X: Any = None) -> LatticeHistogram | PlaceHistogram:
        """Count a point cloud on the lattice, or by distance from landmarks.

        Use a histogram if a cloud is too large for the memory or is stored in several parts.

        Parameters
        ----------
        X : array-like of shape (n, d), iterable of such arrays, Dask collection or None
            A cloud, or its chunks. The parts of a Dask array or data frame, of a list of
            delayed clouds, or of an object with a method ``map_reduce`` (described in
            :meth:`sklearn_dptda.cluster.DPMoG.fit_chunks`) are counted where they are stored.
            With ``groups``, chunks are data frames with the column of ids; the points of a
            person may be spread over several of them. None returns an empty histogram.

        Returns
        -------
        LatticeHistogram, or with ``landmarks`` PlaceHistogram
            Update it with further chunks, add it to the histograms of other parts, and pass it
            to :meth:`transform` in place of the cloud. It is exact, *not* private.
        """
        check_is_fitted(self)
        return self._counted(X, *self._counting())

    def _counting(self) -> tuple[Any, Any]:
        """Return the function that counts one part of a cloud, and an empty histogram."""
        lattice = partial(
            LatticeHistogram, self.bounds_, self._lattice_shape, people=bool(self.groups)
        )
        return partial(counted_on_lattice, lattice, self.groups), lattice()

    def _check_scale(self) -> None:
        """Raise an error if a length parameter is unreasonable for a public box of this size."""

    def _values_ahead(self, n: int) -> ValuesAhead:
        raise NotImplementedError

    def _exact(self, points: FloatArray) -> list[FloatArray]:
        """Compute the value at every node from points within the bounds, for each cap."""
        raise NotImplementedError

    def _from_histogram(self, histogram: LatticeHistogram) -> list[FloatArray]:
        """Compute the value at every node from counts on the lattice, for each cap."""
        raise NotImplementedError

    def _from_weights(self, points: FloatArray, weights: IntArray) -> FloatArray:
        """Compute the value at every node from points whose integer weights add up to 2**22."""
        raise NotImplementedError


def _check_resolution(given: Any, n_dims: int, memory: float) -> tuple[int, ...]:
    """Return the number of nodes along each axis, or raise an error if the grid is too large."""
    most = max(_DEFAULT_RESOLUTION)
    projection = (
        "project the clouds to 2 or 3 dimensions by a projection that does not depend on the data, "
        "such as sklearn.random_projection.GaussianRandomProjection."
    )
    if n_dims > most:
        # The number of nodes may exceed the range of floats.
        raise ValueError(
            f"A grid in {n_dims} dimensions is not supported: at most {most}. Pass landmarks to "
            "DTMFiltration, such as PrivateLandmarks(epsilon=0.5), which support any number of "
            f"columns, or {projection}"
        )
    resolution = np.asarray(_DEFAULT_RESOLUTION[n_dims] if given is None else given)
    if resolution.ndim == 0:
        resolution = np.full(n_dims, resolution)
    whole = np.issubdtype(resolution.dtype, np.integer)
    if resolution.shape != (n_dims,) or not whole or resolution.min() < 2:
        raise ValueError(
            "resolution must be an integer of at least 2, or one such integer per coordinate "
            f"({n_dims} here); got {quoted(given)}."
        )
    sizes = tuple(int(size) for size in resolution)
    n_nodes = math.prod(sizes)
    # Floating-point numbers of the computation: values, coordinates and sums of every node.
    needed = n_nodes * 8 * (n_dims + 3) / 2**20
    if needed > memory:
        raise ValueError(
            f"A grid of {n_nodes} nodes in {n_dims} dimensions needs about {needed:.3g} MiB, but "
            f"memory={memory:g} MiB. Lower resolution, raise memory, or {projection}"
        )
    return sizes


def remark_on_sides(low: FloatArray, high: FloatArray) -> str | None:
    """Return a warning if the sides of a box differ tenfold or more."""
    sides = high - low
    if sides.max() < _UNEQUAL_SIDES * sides.min():
        return None
    return (
        f"bounds has sides of very different lengths, {sides.max():g} and {sides.min():g}. "
        "Distances combine all columns, so the columns with short sides have hardly any influence. "
        "Divide the columns by public numbers that make their scales comparable."
    )


def resolution_for(error: float, sides: FloatArray) -> int:
    """Return the nodes per axis for which no point is farther than ``error`` from a node.

    It is the default resolution, or less than twice the default.
    """
    least = _DEFAULT_RESOLUTION.get(len(sides), 2)
    needed = 1 + math.ceil(float(np.linalg.norm(sides)) / (2 * error))
    return min(max(least, needed | 1), 2 * least - 1)

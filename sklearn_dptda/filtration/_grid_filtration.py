"""Functions on a regular grid of public nodes, and the base of the estimators that compute them.

Proof: doc/theory/people.md, "Clouds of people".
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import Bounds, FloatArray
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.filtration._people import (
    PeopleCloud,
    PeopleHistogram,
    counted_people,
    is_cloud_of_people,
)
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseWarning, PrivacyGuarantee
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, quoted
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds
from sklearn_dptda.utils._clouds import check_cloud, check_collection, first_places
from sklearn_dptda.utils._frames import parts_elsewhere, without_quotes
from sklearn_dptda.utils._sklearn import (
    Interval,
    ListInputMixin,
    ListOutputMixin,
    StrOptions,
    _fit_context,
)
from sklearn_dptda.utils._tasks import run

# Nodes along each axis, by dimension. Odd numbers, so that the centre of the box is a node.
_DEFAULT_RESOLUTION = {1: 1001, 2: 101, 3: 41, 4: 17}
# Lattice steps per grid step, by dimension.
_DEFAULT_REFINEMENT = {1: 4, 2: 2, 3: 1, 4: 1}
# Ratio of the longest to the shortest side of a box from which on the estimators warn.
_UNEQUAL_SIDES = 10.0
# Part of the largest value that a change of one person may reach before the estimators warn.
_HANDFUL = 0.1
# Nanoseconds per cloud that exact values may take where a lattice would be cheaper, but its error
# larger than the change that one point can make.
_NANOSECONDS_FOR_EXACT_VALUES = 30e9

POINT = "one point of a cloud"
# A cloud as it is worked with.
_Cloud: TypeAlias = FloatArray | LatticeHistogram | PeopleCloud | PeopleHistogram


class Capped(NamedTuple):
    """A function whose distances are cut off sooner, and its public numbers."""

    values: FloatArray
    sensitivity: float
    upper: float


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
        first, among which :class:`PrivatePersistence` may draw. As exact as
        ``values``: *not* private.

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
    unit: str = POINT
    smaller: tuple[Capped, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.array(self.values, dtype=float))
        object.__setattr__(self, "axes", tuple(np.array(a, dtype=float) for a in self.axes))
        smaller = tuple(Capped(np.array(c.values, dtype=float), *c[1:]) for c in self.smaller)
        object.__setattr__(self, "smaller", smaller)
        if not np.isfinite(self.values).all():
            raise ValueError("values contains NaN or infinity.")
        if self.values.shape != tuple(len(axis) for axis in self.axes):
            raise ValueError("values must have one entry per grid node: shape and axes disagree.")
        for name in ("sensitivity", "upper"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a positive finite number.")
        for array in (self.values, *self.axes, *(each.values for each in smaller)):
            array.setflags(write=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of grid nodes along each axis."""
        return self.values.shape

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


@dataclass(frozen=True)
class ValuesAhead:
    """What is public of the values of any ``n`` points, before they are computed.

    ``statistic``, ``sensitivity`` and ``upper`` are those of :class:`GridFiltration`. Values from a
    lattice are off by ``lattice_error`` at most. Costs are nanoseconds, roughly.
    """

    statistic: str
    sensitivity: float
    upper: float
    lattice_error: float
    exact_cost: float
    lattice_cost: float
    # Sensitivities and upper bounds under smaller caps.
    smaller: tuple[tuple[float, float], ...] = ()


class BaseGridFiltration(
    ListInputMixin, ListOutputMixin, QuotedParametersMixin, TransformerMixin, BaseEstimator
):
    """Point clouds in, one :class:`GridFiltration` per cloud out.

    A subclass bounds its function in ``_values_ahead``, and computes it in ``_exact`` and
    ``_from_histogram``.
    """

    _parameter_constraints = {
        "bounds": ["array-like", PrivateBounds, None],
        "resolution": [Interval(Integral, 2, None, closed="left"), "array-like", None],
        "method": [StrOptions({"auto", "exact", "lattice"})],
        "refinement": [Interval(Integral, 1, None, closed="left"), None],
        "groups": [str, bool, None],
        "memory": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }
    # For type checkers: parameters and fitted attributes of all subclasses.
    bounds: Bounds | PrivateBounds | None
    resolution: Any
    method: str
    refinement: int | None
    groups: str | bool | None
    memory: float
    n_jobs: int | None
    bounds_: tuple[FloatArray, FloatArray]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[ArrayLike | LatticeHistogram], y: object = None) -> Self:
        """Fix the public grid.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The clouds. Only their dimension is learnt, unless ``bounds`` is
            None. Histograms from :meth:`make_histogram` may stand for clouds.
            With ``groups``, each cloud is a data frame with a column of ids, or
            a list of arrays, one for each person.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the clouds, ``bounds`` or ``resolution`` are unusable, or if the
            grid does not fit into ``memory``.
        """
        clouds = self._check(X)
        d = _n_features(clouds[0])
        shape = _check_resolution(self.resolution, d, self.memory)
        low, high, guarantee, remarks = self._box(clouds, d)
        self.axes_ = tuple(map(np.linspace, low, high, shape))
        self.bounds_, self.bounds_guarantee_ = (low, high), guarantee
        self._is_public = self.bounds is not None
        self._refine(self.refinement or _DEFAULT_REFINEMENT.get(d, 1))
        self.n_features_in_ = d
        if guarantee is None:
            self._check_scale()
        if self.groups and self.refinement is None:
            self._refine_for(max(map(_n_records, clouds)))
        # Warnings come last: where they are errors, the box is there all the same.
        for remark in remarks:
            warn_caller(remark)
        sides = high - low
        if sides.max() > _UNEQUAL_SIDES * sides.min():
            warn_caller(
                f"bounds have sides of {sides.max():g} and {sides.min():g}: distances are measured "
                "across columns, so that a short side hardly counts, and what is seen of the shape "
                "is its shadow on the long ones. Divide columns by public numbers, so that a step "
                "of one means as much in each of them.",
            )
        return self

    def _refine(self, refinement: int) -> None:
        """Set the lattice that points are moved to."""
        low, high = self.bounds_
        self.refinement_ = refinement
        self._lattice_shape = tuple((len(axis) - 1) * refinement + 1 for axis in self.axes_)
        # How far a point moves to the nearest node of the lattice, at most.
        cell = (high - low) / (np.array(self._lattice_shape) - 1)
        self._lattice_shift = float(np.linalg.norm(cell)) / 2

    def _refine_for(self, n_people: int) -> None:
        """Refine the lattice until its error is below what one of so many people can change.

        There are no exact values of people. The work stays within that of exact values of points.
        """
        last, ahead = self.refinement_, self._values_ahead(n_people)
        while (
            ahead.lattice_error > ahead.sensitivity
            and ahead.lattice_cost <= _NANOSECONDS_FOR_EXACT_VALUES
        ):
            last = self.refinement_
            self._refine(2 * last)
            ahead = self._values_ahead(n_people)
        if ahead.lattice_cost > _NANOSECONDS_FOR_EXACT_VALUES:
            self._refine(last)

    def _check(self, X: Iterable[Any], n_features: int | None = None) -> list[_Cloud]:
        if self.groups and self.method == "exact":
            raise ValueError(
                "method='exact' is not there for people: with groups, points are moved to a "
                "lattice. Leave method at 'auto', and raise refinement for a finer one."
            )
        clouds: list[_Cloud] = []
        # A frame with a column of ids is one of several clouds, a list of arrays is not.
        for i, given in enumerate(check_collection(X)):
            cloud = self._read(given, f"X[{i}]", n_features)
            n_features = _n_features(cloud)
            clouds.append(cloud)
        return clouds

    def _read(self, cloud: Any, name: str, n_features: int | None) -> _Cloud:
        """One cloud, or a histogram that stands for one, of the records that are protected."""
        if isinstance(cloud, LatticeHistogram | PeopleHistogram):
            if isinstance(cloud, PeopleHistogram) != bool(self.groups):
                raise ValueError(
                    f"{name} is a {type(cloud).__name__}: with groups the records are people, and "
                    "points without. Make it with make_histogram()."
                )
            if n_features not in (None, cloud.n_features):
                raise ValueError(f"{name} has {cloud.n_features} features, not {n_features}.")
            if _n_records(cloud) < 2:
                raise ValueError(f"{name} has fewer than 2 {_records(self.groups)}.")
            return cloud
        if self.groups:
            return PeopleCloud.read(cloud, self.groups, name, n_features)
        return check_cloud(cloud, name, n_features)

    def _unit(self, n_clouds: int) -> str:
        """What one record is, for the guarantees of what is released."""
        if not self.groups:
            return POINT
        which = "" if n_clouds == 1 else " in one cloud"
        by = "" if self.groups is True else f", by {self.groups!r}"
        return f"all points of one person{which}{by}"

    def _box(
        self, clouds: list[_Cloud], n_features: int
    ) -> tuple[FloatArray, FloatArray, PrivacyGuarantee | None, list[str]]:
        """Lower and upper bounds, the guarantee of a private box, and what to warn of.

        Proof: doc/theory/private_bounds.md, "Composition".
        """
        if self.bounds is not None and not isinstance(self.bounds, PrivateBounds):
            return *check_bounds(self.bounds, n_features), None, []
        if any(isinstance(cloud, LatticeHistogram | PeopleHistogram) for cloud in clouds):
            raise ValueError("bounds must be given where histograms stand for clouds.")
        points: list[FloatArray] = [
            cloud.points if isinstance(cloud, PeopleCloud) else cloud  # type: ignore[misc]
            for cloud in clouds
        ]
        if self.bounds is None:
            return *bounds_from_data(points, type(self).__name__), None, []
        if self.bounds.adjacency != "replace-one":
            raise ValueError(
                "bounds must have adjacency='replace-one': the sizes of clouds are public here."
            )
        box = clone(self.bounds)
        ids = [cloud.ids for cloud in clouds if isinstance(cloud, PeopleCloud)]
        remarks = box._fit_clouds(points, ids or None, self._unit(len(clouds)))
        self.clipped_share_ = box.clipped_share_
        return *box.bounds_, box.privacy_guarantee_, remarks

    def _learns_records(self) -> bool:
        return self.bounds is None

    def _releases_ahead(self, method: str, n_features: int | None) -> list[Any]:
        """As of private estimators: a box that is not public is paid for in ``fit``."""
        if isinstance(self.bounds, PrivateBounds):
            return [
                (payer, replace(guarantee, unit=self._unit(1)))
                for payer, guarantee in self.bounds._releases_ahead(method, n_features)
            ]
        return []

    def transform(self, X: Iterable[ArrayLike | LatticeHistogram]) -> list[GridFiltration]:
        """Compute the filtration of each cloud.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            As in :meth:`fit`. Points outside the bounds are clipped to them.

        Returns
        -------
        list of GridFiltration
            Exact statistics, *not* private. For a cloud that stands in several
            places the same object.
        """
        check_is_fitted(self)
        items = check_collection(X)
        clouds = self._check(items, self.n_features_in_)
        unit, firsts = self._unit(len(items)), first_places(items)
        distinct = sorted(set(firsts))
        # Threads suffice: sorting, distances and matrix products release the lock.
        filtrations = run(
            self._one, [(clouds[i], unit) for i in distinct], n_jobs=self.n_jobs, prefer="threads"
        )
        if self.groups and any(f.sensitivity > _HANDFUL * f.upper for f in filtrations):
            warn_caller(
                "one person moves the function by more than a tenth of its largest value: there "
                "are too few people for what is released of it. Raise m, or the number of people.",
                NoiseWarning,
            )
        # One cloud, one filtration: a release can see that it would be one of the same records.
        of_cloud = dict(zip(distinct, filtrations, strict=True))
        return [of_cloud[i] for i in firsts]

    def _one(self, cloud: _Cloud, unit: str) -> GridFiltration:
        n = _n_records(cloud)
        ahead, on_lattice = self._choose(n)
        histogram = self._histogram_of(cloud, on_lattice)
        if histogram is not None:
            values = self._from_histogram(histogram)
            error, n_clipped = ahead.lattice_error, histogram.n_clipped
        else:
            assert isinstance(cloud, np.ndarray)
            inside = np.clip(cloud, *self.bounds_)
            values = self._exact(inside)
            error, n_clipped = 0.0, int((inside != cloud).any(axis=1).sum())
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

    def _histogram_of(self, cloud: _Cloud, on_lattice: bool) -> LatticeHistogram | None:
        """Weighted counts on the lattice, where values are to be computed from them."""
        lattice = LatticeHistogram(self.bounds_, self._lattice_shape)
        if isinstance(cloud, PeopleCloud):
            cloud = PeopleHistogram(self.bounds_, self._lattice_shape).update(*cloud)
        if isinstance(cloud, np.ndarray):
            return lattice.update(cloud) if on_lattice else None
        weighted = cloud.weighted() if isinstance(cloud, PeopleHistogram) else cloud
        if not lattice.matches(weighted):
            raise ValueError(
                "A histogram must live on the lattice of this filtration: make it with "
                "make_histogram()."
            )
        return weighted

    def _choose(self, n: int) -> tuple[ValuesAhead, bool]:
        """What is public of the values of ``n`` points, and whether they come from the lattice."""
        ahead = self._values_ahead(n)
        if self.method != "auto" or self.groups:
            return ahead, self.method != "exact"
        coarse = ahead.lattice_error > ahead.sensitivity
        affordable = coarse and ahead.exact_cost <= _NANOSECONDS_FOR_EXACT_VALUES
        return ahead, ahead.exact_cost > ahead.lattice_cost and not affordable

    def make_histogram(self, X: Any = None) -> LatticeHistogram | PeopleHistogram:
        """Count points on the lattice that ``method="lattice"`` works with.

        Parameters
        ----------
        X : array-like of shape (n, d), iterable of such arrays, Dask collection or None
            A cloud, or its chunks. The parts of a Dask array or data frame, of a
            list of delayed clouds, or of an object with ``map_reduce`` as in
            :meth:`sklearn_dptda.cluster.DPMoG.fit_chunks`, are counted where they
            are. With ``groups``, frames with the column of ids: the points of a
            person may be in several of them. None returns an empty histogram.

        Returns
        -------
        LatticeHistogram or PeopleHistogram
            It can be updated with further chunks, added to the histograms of
            other parts of the cloud, and passed to :meth:`transform` in place
            of the cloud.
        """
        check_is_fitted(self)
        lattice = self.bounds_, self._lattice_shape
        count: Any = partial(_counted, *lattice)
        if self.groups:
            count = partial(counted_people, *lattice, self.groups)
        if (parts := parts_elsewhere(X)) is not None:
            with without_quotes("a part of the cloud"):
                return parts.map_reduce(count)
        empty = (PeopleHistogram if self.groups else LatticeHistogram)(*lattice)
        if X is None:
            return empty
        is_whole = is_cloud_of_people(X, self.groups) if self.groups else _is_cloud(X)
        return sum(map(count, [X] if is_whole else X), start=empty)

    def _check_scale(self) -> None:
        """Refuse a length parameter that makes no sense for a public box of this size."""

    def _values_ahead(self, n: int) -> ValuesAhead:
        raise NotImplementedError

    def _exact(self, points: FloatArray) -> list[FloatArray]:
        """Value at every node, of points within the bounds; and under each smaller cap."""
        raise NotImplementedError

    def _from_histogram(self, histogram: LatticeHistogram) -> list[FloatArray]:
        """Value at every node, of counts on the lattice; and under each smaller cap."""
        raise NotImplementedError


def _n_records(cloud: _Cloud) -> int:
    """Number of points, or of people."""
    if isinstance(cloud, LatticeHistogram):
        return cloud.n_points
    return len(cloud) if isinstance(cloud, np.ndarray) else cloud.n_people


def _n_features(cloud: _Cloud) -> int:
    """Dimension of the points."""
    if isinstance(cloud, LatticeHistogram | PeopleHistogram):
        return cloud.n_features
    return (cloud.points if isinstance(cloud, PeopleCloud) else cloud).shape[1]


def _records(groups: str | bool | None) -> str:
    return "people" if groups else "points"


def _counted(bounds: Bounds, shape: tuple[int, ...], part: ArrayLike) -> LatticeHistogram:
    """Histogram of a part of a cloud, computed where that part is."""
    return LatticeHistogram(bounds, shape).update(part)


def _is_cloud(X: Any) -> bool:
    """Whether X is one cloud rather than an iterable of chunks."""
    if hasattr(X, "shape"):
        return len(X.shape) == 2
    return isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 1


def _check_resolution(given: Any, n_dims: int, memory: float) -> tuple[int, ...]:
    """Return one number of nodes per axis, or refuse what does not fit into ``memory`` MiB."""
    most = max(_DEFAULT_RESOLUTION)
    projection = (
        "the clouds to 2 or 3 dimensions by a projection that does not look at the data, such as "
        "sklearn.random_projection.GaussianRandomProjection."
    )
    if n_dims > most:
        # The number of nodes may be beyond all floats.
        raise ValueError(
            f"A grid in {n_dims} dimensions is not supported: at most {most}. Bring {projection}"
        )
    resolution = np.asarray(_DEFAULT_RESOLUTION[n_dims] if given is None else given)
    if resolution.ndim == 0:
        resolution = np.full(n_dims, resolution)
    whole = np.issubdtype(resolution.dtype, np.integer)
    if resolution.shape != (n_dims,) or not whole or resolution.min() < 2:
        raise ValueError(
            "resolution must be an integer of at least 2, or one per coordinate "
            f"({n_dims} here); got {quoted(given)}."
        )
    sizes = tuple(int(size) for size in resolution)
    n_nodes = math.prod(sizes)
    # Floating-point work: values, coordinates and sums of every node.
    needed = n_nodes * 8 * (n_dims + 3) / 2**20
    if needed > memory:
        raise ValueError(
            f"A grid of {n_nodes} nodes in {n_dims} dimensions needs about {needed:.3g} MiB, but "
            f"memory={memory:g} MiB. Lower resolution or raise memory. Or bring {projection}"
        )
    return sizes


def resolution_for(error: float, sides: FloatArray) -> int:
    """Nodes per axis for which no place of a box is further than ``error`` from a node.

    The default where that is enough, and less than twice as many where even they are not.
    """
    least = _DEFAULT_RESOLUTION.get(len(sides), 2)
    needed = 1 + math.ceil(float(np.linalg.norm(sides)) / (2 * error))
    return min(max(least, needed | 1), 2 * least - 1)

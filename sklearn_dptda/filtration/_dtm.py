"""The distance-to-measure of point clouds: as a function, on public grids, and on landmarks.

Proof: doc/theory/sensitivity.md, "Distance-to-measure".
Proof: doc/theory/private_cap.md, "All caps at once".
Proof: doc/theory/landmarks.md, "Values of simplices".
"""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Bounds, FloatArray, IntArray
from sklearn_dptda.cluster import PrivateLandmarks
from sklearn_dptda.filtration import _nearest_sums
from sklearn_dptda.filtration._cloud import WEIGHT_BITS, Cloud, LatticeHistogram, point_weights
from sklearn_dptda.filtration._complex import ComplexFiltration, LandmarkComplex
from sklearn_dptda.filtration._estimator import AnyCloud
from sklearn_dptda.filtration._filtration import Capped, Filtration
from sklearn_dptda.filtration._grid_filtration import BaseGridFiltration, ValuesAhead
from sklearn_dptda.filtration._landmarks import find_landmarks
from sklearn_dptda.filtration._lattice_sums import lattice_slowdown, lattice_sums
from sklearn_dptda.filtration._nearest_sums import (
    FixedPointPower,
    grid_sums,
    nearest_in_blocks,
    refuse_too_many_people,
    rounding_of_places,
    scattered_sums,
    slowdown,
    weighted_sums,
)
from sklearn_dptda.filtration._place_histogram import (
    PlaceHistogram,
    counted_at_places,
    mebibytes_of_counts,
)
from sklearn_dptda.filtration._released_cloud import TOTAL_WEIGHT, ReleasedCloud
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import NoiseWarning, warn_caller
from sklearn_dptda.utils._bounds import diameter
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context
from sklearn_dptda.utils._validation import check_cloud

# Costs in nanoseconds, measured in two and three columns: for a place, one point and one neighbour
# by the compiled sums; one neighbour from a k-d tree; one offset of the lattice, and one grid node
# for each offset, by NumPy. Choices depend on them, so they are the same on all computers.
_POINT, _NEIGHBOUR, _TREE_NEIGHBOUR, _LATTICE_OFFSET, _LATTICE_NODE = 0.4, 4.0, 100.0, 2900.0, 0.4
# Nanoseconds for a point and a place in any number of columns, and if the points have weights.
_DISTANCE, _WEIGHTED_DISTANCE = 3.0, 8.0
# The smaller caps, as shares of the default one.
_CAPS = tuple(2.0 ** (-j / 2) for j in range(1, 7))
# Caps below this share of the longest distance are refused.
_LEAST_CAP = 1e-9


def neighbour_count(m: float, n: int) -> int:
    """Return ``k = ceil(m * n)`` for the mass ``m`` in (0, 1], without effects of rounding."""
    if not 0 < m <= 1:
        raise ValueError(f"m must be in (0, 1]; got {quoted(m)}.")
    return min(max(math.ceil(m * n * (1 - 1e-12)), 1), n)


def sensitivity_dtm(m: float, n: int, p: float, diameter: float) -> float:
    """Compute the sup-norm sensitivity of the L^p distance-to-measure on a box.

    Replacing one point changes the distance-to-measure by at most
    ``(diameter**p / k)**(1/p)`` with ``k = ceil(m n)``. By stability, this also bounds the
    bottleneck distance between the persistence diagrams. The bound is attained for
    ``p = 1`` and ``k >= 4`` if two records can be a diameter apart
    (:func:`~sklearn_dptda.published.dtm_worst_case`). It is public, as all parameters are.

    Parameters
    ----------
    m : float
        Mass: the share of the points that each value averages over, in (0, 1].
    n : int
        Number of points, or of people if each person is one record.
    p : float
        Order of the mean, at least 1.
    diameter : float
        Largest distance between two points of the box or the value at which distances are
        capped, whichever is smaller, in the units of the data.

    Returns
    -------
    float
        The sensitivity, in the units of the data.

    Examples
    --------
    >>> from sklearn_dptda.filtration import sensitivity_dtm
    >>> sensitivity_dtm(0.1, 1000, 1, 5.0)
    0.05
    """
    if not p >= 1:
        raise ValueError(f"p must be at least 1; got {quoted(p)}.")
    return diameter / neighbour_count(m, n) ** (1 / p)


def distance_to_measure(
    X: ArrayLike, query: ArrayLike, m: float, p: float = 1, *, memory: float = 256.0
) -> FloatArray:
    """Compute the L^p distance to the empirical measure of a point cloud.

    The value at a query point is the ``p``-mean of its distances to the ``ceil(m n)``
    nearest points of the cloud.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The point cloud.
    query : array-like of shape (q, d)
        The points at which to evaluate the function, in the units of ``X``.
    m : float
        Mass: the share of the points that each value averages over, in (0, 1].
    p : float, default=1
        Order of the mean, at least 1.
    memory : float, default=256.0
        Upper bound of the working memory, in MiB. It does not change the result.

    Returns
    -------
    ndarray of shape (q,)
        Values in the units of the data. They are exact, *not* private.

    See Also
    --------
    DTMFiltration : The same function on a public grid, with its sensitivity.

    References
    ----------
    F. Chazal, D. Cohen-Steiner, Q. Mérigot, "Geometric inference for probability
    measures", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda import distance_to_measure
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> circle = 1.5 * np.c_[np.cos(angle), np.sin(angle)]
    >>> distance_to_measure(circle, [[0.0, 0.0]], m=0.2)
    array([1.5])
    """
    X = check_cloud(X, "X", min_points=1)
    query = check_cloud(query, "query", X.shape[1], min_points=1)
    if not p >= 1:
        raise ValueError(f"p must be at least 1; got {quoted(p)}.")
    k = neighbour_count(m, len(X))
    values = np.empty(len(query))
    for part, squared in nearest_in_blocks(X, query, k, memory):
        values[part] = np.mean(squared ** (p / 2), axis=1) ** (1 / p)
    return values


@fill_doc
class DTMFiltration(BaseGridFiltration):
    """Distance to the empirical measure of each point cloud, on a public grid or on landmarks.

    The value at a point is the ``p``-mean of its distances to the ``k = ceil(m n)`` nearest
    points of the cloud. One point has little effect on it, so that private diagrams of this
    function need little noise. A grid supports up to four coordinates, and ``landmarks`` any
    number: the function is then evaluated inside all simplices that the landmarks span.

    Parameters
    ----------
    m : float, default=0.1
        Mass: the share of the points that each value averages over, in (0, 1]. A larger
        ``m`` has a smaller sensitivity, but blurs small features.
    p : float, default=1
        Order of the mean, at least 1. ``p=1`` has the smallest sensitivity.
    %(grid_of_clouds)s
    max_distance : float, "private" or None, default="private"
        Public cap of distances, in the units of the data: longer distances count as this
        one. The sensitivity is proportional to it.

        - None uses half the longest side of the box, or half the largest distance between two
          landmarks. It hardly affects features, except components in opposite corners.
        - ``inf`` uses the diagonal of the box, or the largest distance between two landmarks.
        - ``"private"`` uses the cap of None and six smaller ones, down to an eighth of it.
          :class:`PrivatePersistence` draws one of them with the diagrams, at no additional
          privacy loss. :class:`PersistenceProfile` spends a part of its budget on the choice
          if there are enough points.
    method : {"auto", "exact", "lattice"}, default="auto"
        How to compute the values on a grid. It does not affect the sensitivity.

        - ``"exact"`` uses the points.
        - ``"lattice"`` first moves each point to the nearest node of a public lattice, which
          changes values by at most half the diagonal of a cell, and is fast for many points.
        - ``"auto"`` chooses the faster method, or exact values if the error of the lattice is
          larger than the sensitivity and they take at most about three seconds.
    %(refinement)s
    landmarks : array-like, LandmarkComplex or estimator, default=None
        Public points of shape (n_landmarks, d) close to the clouds, in place of a grid. Leave
        ``bounds``, ``resolution``, ``method`` and ``refinement`` at their defaults. A
        :class:`~sklearn_dptda.cluster.PrivateLandmarks` is fitted to the clouds in ``fit``
        and spends its own privacy budget. A fitted private estimator in a
        :class:`~sklearn.frozen.FrozenEstimator` provides its ``cluster_centers_`` or rows of
        its ``sample``. The guarantee of private diagrams includes that of the landmarks.
    %(people_memory_and_jobs)s

    Attributes
    ----------
    bounds_ : tuple of two ndarray of shape (d,)
        Lower and upper bounds of the box, public or released privately.
    bounds_guarantee_ : PrivacyGuarantee or None
        Guarantee of a private box or of private landmarks. None if nothing was spent.
    clipped_share_ : float
        Private share of the points outside a private box.
    axes_ : tuple of ndarray
        Coordinates of the public grid along each axis.
    refinement_ : int
        Number of lattice steps per grid step.
    complex_ : LandmarkComplex
        The public simplices. With it, only ``bounds_guarantee_`` exists of the above.
    n_features_in_ : int
        Dimension of the points.

    See Also
    --------
    PrivatePersistence : Releases the persistence diagrams under differential privacy.
    KernelDistanceFiltration : A smooth alternative with a bandwidth.

    Notes
    -----
    .. rubric:: Privacy

    The filtrations are exact and *not* private. Each carries its sensitivity: that of
    :func:`sensitivity_dtm` for the cap, and a bound on rounding errors. With ``groups``, it is
    that of ``n`` people and the replacement of all points of one person. The points that no
    landmark or public box covers are counted: ``PrivatePersistence(clipped_share=True)``
    releases their share.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis".

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(1000, random_state=0)
    >>> filtration, = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform([X])
    >>> filtration.shape, round(filtration.sensitivity, 4)
    ((101, 101), 0.0163)
    """

    _parameter_constraints = {
        **BaseGridFiltration._parameter_constraints,
        "m": [Interval(Real, 0, 1, closed="right")],
        "p": [Interval(Real, 1, None, closed="left")],
        "max_distance": [Interval(Real, 0, None, closed="right"), StrOptions({"private"}), None],
        "landmarks": ["array-like", LandmarkComplex, BaseEstimator, None],
    }

    def __init__(
        self,
        m: float = 0.1,
        p: float = 1,
        bounds: Bounds | PrivateBounds | None = None,
        resolution: int | Sequence[int] | None = None,
        *,
        max_distance: float | Literal["private"] | None = "private",
        method: Literal["auto", "exact", "lattice"] = "auto",
        refinement: int | None = None,
        landmarks: ArrayLike | LandmarkComplex | BaseEstimator | None = None,
        groups: str | bool | None = None,
        memory: float = 256.0,
        n_jobs: int | None = None,
    ) -> None:
        self.m = m
        self.p = p
        self.bounds = bounds
        self.resolution = resolution
        self.max_distance = max_distance
        self.method = method
        self.refinement = refinement
        self.landmarks = landmarks
        self.groups = groups
        self.memory = memory
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[ArrayLike | LatticeHistogram], y: object = None) -> Self:
        """Fix the public grid, or the public simplices.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The point clouds. Only their dimension is used, unless ``bounds`` and
            ``landmarks`` are both None, or one of them is private. On a grid, histograms from
            :meth:`make_histogram` can replace clouds. With ``groups``, each cloud is a data
            frame with a column of ids, or a list of arrays with one array per person.
        y : Ignored

        Returns
        -------
        self
        """
        if self.landmarks is None:
            self._forget("complex_")
            return super().fit(X)
        self._refuse_grid()
        clouds, distinct = self._check_to_fit(X)
        if self.groups:
            refuse_too_many_people(max(neighbour_count(self.m, c.n_points) for c in clouds))
        complex, guarantee, remarks = find_landmarks(
            self.landmarks, distinct, self._unit(len(clouds))
        )
        longest = complex.diameter
        # Private landmarks have already spent privacy budget, so for them _cap() raises a
        # negligible cap instead of failing here.
        if guarantee is None and self._cap_of(longest, longest) <= _LEAST_CAP * longest:
            raise ValueError(
                "max_distance is negligible compared with the distances between landmarks. "
                "Increase it."
            )
        self.complex_, self.bounds_guarantee_ = complex, guarantee
        self.n_features_in_ = clouds[0].n_features
        self._forget("bounds_", "clipped_share_", "axes_", "refinement_")
        for remark in remarks:
            warn_caller(remark, NoiseWarning)
        return self

    def _forget(self, *names: str) -> None:
        """Remove the attributes of an earlier fit to the other kind of evaluation points."""
        for name in names:
            self.__dict__.pop(name, None)

    def _refuse_grid(self) -> None:
        """Raise an error if parameters of grids are set together with landmarks."""
        given = {name: getattr(self, name) for name in ("bounds", "resolution", "refinement")}
        names = [name for name, value in given.items() if value is not None]
        names += ["method"] * (self.method != "auto")
        if names:
            raise ValueError(
                f"landmarks replace the grid, so {', '.join(names)} must keep the default value. "
                "Leave out the landmarks to use a grid, or pass bounds to PrivateLandmarks."
            )

    def _read(self, cloud: Any, name: str, n_features: int | None) -> AnyCloud:
        if isinstance(cloud, PlaceHistogram) and (self.groups or self.landmarks is None):
            raise ValueError(
                f"{name} counts distances of points from landmarks. It needs an estimator with "
                "landmarks and without groups."
            )
        if self.landmarks is not None and isinstance(cloud, LatticeHistogram):
            raise ValueError(
                f"{name} is a histogram on a grid, which cannot be used with landmarks. Pass the "
                "points."
            )
        return super()._read(cloud, name, n_features)

    def _paid_first(self) -> Any:
        if isinstance(self.landmarks, PrivateLandmarks):
            return self.landmarks
        return super()._paid_first()

    def _learns_records(self) -> bool:
        return self.landmarks is None and super()._learns_records()

    def _counting(self) -> tuple[Any, Any]:
        if not hasattr(self, "complex_"):
            return super()._counting()
        if self.groups:
            raise ValueError(
                "make_histogram does not support groups together with landmarks. Pass point clouds "
                "in memory to transform."
            )
        needed = mebibytes_of_counts(self.complex_)
        if needed > self.memory:
            raise ValueError(
                f"Counts at all evaluation points of the landmarks need {needed:.0f} MiB, but "
                f"memory={self.memory:g} MiB. Use fewer landmarks, or raise memory."
            )
        places = self.complex_, self._cap(), self.p
        return partial(counted_at_places, *places), PlaceHistogram(*places)

    def _one(self, cloud: AnyCloud, unit: str) -> Filtration:
        on_simplices = hasattr(self, "complex_")
        return self._on_simplices(cloud, unit) if on_simplices else super()._one(cloud, unit)

    def _on_simplices(self, cloud: AnyCloud, unit: str) -> ComplexFiltration:
        """Compute the filtration of one cloud on landmarks."""
        n = cloud.n_points
        if isinstance(cloud, ReleasedCloud):
            values = self._at_places(*cloud.integer_weights(), self.complex_.places())
            cap = self._cap()
            return ComplexFiltration(
                np.minimum(self.complex_.highest(values), cap),
                sensitivity=0.0,
                upper=cap,
                n_points=n,
                statistic=f"{self._statistic()}, of a released cloud",
                bounds_guarantee=self.bounds_guarantee_,
                complex=self.complex_,
            )
        power = self._power(n)
        error = rounding_of_places(self.complex_.landmarks, power.cap)
        sums: list[tuple[NDArray[np.int64], FloatArray | None]]
        if isinstance(cloud, PlaceHistogram):
            if not cloud.matches(self.complex_, power.cap, self.p):
                raise ValueError(
                    "The histogram does not belong to the landmarks, max_distance and p of this "
                    "estimator. Create it with make_histogram() of this estimator."
                )
            power, n_beyond = cloud.power(power.k, self._smaller_caps()), cloud.n_clipped
            error += cloud.rounding
            sums = [(each, None) for each in cloud.sums(power)]
        else:
            sums, n_beyond = self._sums_at_places(cloud, power)
        function, *smaller = (
            Capped(
                np.minimum(self.complex_.highest(power.values(*own)), cap),
                sensitivity_dtm(self.m, n, self.p, cap) + power.rounding,
                cap,
            )
            for own, cap in zip(sums, power.caps, strict=True)
        )
        return ComplexFiltration(
            *function,
            n_points=n,
            statistic=self._statistic(),
            approximation_error=error,
            bounds_guarantee=self.bounds_guarantee_,
            n_clipped=n_beyond,
            unit=unit,
            smaller=tuple(smaller),
            complex=self.complex_,
        )

    def _sums_at_places(
        self, cloud: AnyCloud, power: FixedPointPower
    ) -> tuple[list[tuple[NDArray[np.int64], FloatArray | None]], int]:
        """Return sums of the nearest points at all places, and the number of uncovered records."""
        places = self.complex_.places()
        assert isinstance(cloud, Cloud)
        n_beyond = cloud.n_beyond(self.complex_.beyond(cloud.points))
        if cloud.ids is None:
            sums = scattered_sums(cloud.points, places, power, self.memory)
            return [(each, None) for each in sums], n_beyond
        refuse_too_many_people(power.k)
        weights = point_weights(cloud.ids)
        # If a person has millions of points, the weight of some of them is zero.
        points, weights = cloud.points[weights > 0], weights[weights > 0]
        of_people = weighted_sums(points, weights, WEIGHT_BITS, places, power, self.memory)
        return [*of_people], n_beyond

    def _seconds_ahead(self, cloud: AnyCloud) -> float:
        if hasattr(self, "complex_"):
            if isinstance(cloud, PlaceHistogram | ReleasedCloud):
                return 0.0
            each = _WEIGHTED_DISTANCE if self.groups else _DISTANCE
            return slowdown(self.p) * each * cloud.n_points * self.complex_.n_places / 1e9
        return super()._seconds_ahead(cloud)

    def _slowdown(self, on_lattice: bool) -> float:
        return lattice_slowdown() if on_lattice else slowdown(self.p)

    def _warn_of_time(self, clouds: list[AnyCloud]) -> None:
        if _nearest_sums.compiled is None:
            warn_caller(
                "The compiled sums of distances are missing, and NumPy computes the same values 4 "
                "to 20 times more slowly. Install a wheel, or a C compiler and the package again, "
                "and start Python outside of the folder of the source."
            )
        super()._warn_of_time(clouds)

    def _faster(self) -> str:
        if hasattr(self, "complex_"):
            return "Use fewer landmarks, or n_jobs."
        return super()._faster()

    def _check_scale(self) -> None:
        if self._cap() < _LEAST_CAP * diameter(*self.bounds_):
            raise ValueError("max_distance is negligible compared with the bounds. Increase it.")

    def _cap(self) -> float:
        """Return the distance above which all points count alike.

        Proof: doc/theory/sensitivity.md, "The upper bound and the default cap".
        """
        if hasattr(self, "complex_"):
            longest = self.complex_.diameter
            return max(self._cap_of(longest, longest), _LEAST_CAP * longest)
        low, high = self.bounds_
        return self._cap_of(diameter(low, high), float((high - low).max()))

    def _cap_of(self, longest: float, width: float) -> float:
        """Return the cap if no two points are farther apart than ``longest``."""
        if self.max_distance in (None, "private"):
            return width / 2
        return min(float(self.max_distance), longest)

    def _statistic(self) -> str:
        return f"L{self.p:g} distance-to-measure, m={self.m:g}"

    def _power(self, n: int) -> "FixedPointPower":
        k = neighbour_count(self.m, n)
        return FixedPointPower(self._cap(), self.p, k, self._smaller_caps())

    def _smaller_caps(self) -> tuple[float, ...]:
        """Return the smaller caps as shares of the cap."""
        return _CAPS if self.max_distance == "private" else ()

    def _values_ahead(self, n: int) -> ValuesAhead:
        power, n_nodes = self._power(n), math.prod(map(len, self.axes_))
        mebibytes, n_offsets = self._lattice_work()
        lattice_cost = n_offsets * (n_nodes * _LATTICE_NODE + _LATTICE_OFFSET)
        (sensitivity, upper), *smaller = (
            (
                sensitivity_dtm(self.m, n, self.p, cap) + power.rounding,
                min(cap, diameter(*self.bounds_) / 2),
            )
            for cap in power.caps
        )
        return ValuesAhead(
            statistic=self._statistic(),
            sensitivity=sensitivity,
            upper=upper,
            lattice_error=self._lattice_shift,
            exact_cost=n_nodes * min(_POINT * n + _NEIGHBOUR * power.k, _TREE_NEIGHBOUR * power.k),
            lattice_cost=lattice_cost if mebibytes <= self.memory else math.inf,
            smaller=tuple(smaller),
        )

    def _exact(self, points: FloatArray) -> list[FloatArray]:
        power = self._power(len(points))
        return [power.values(sums) for sums in grid_sums(points, self.axes_, power, self.memory)]

    def _from_weights(self, points: FloatArray, weights: IntArray) -> FloatArray:
        nodes = np.stack(np.meshgrid(*self.axes_, indexing="ij"), axis=-1)
        return self._at_places(points, weights, nodes.reshape(-1, len(self.axes_)))

    def _at_places(self, points: FloatArray, weights: IntArray, places: FloatArray) -> FloatArray:
        """Compute the distance of the measure of a released cloud at any places."""
        power = FixedPointPower(self._cap(), self.p, neighbour_count(self.m, TOTAL_WEIGHT))
        ((sums, _),) = weighted_sums(points, weights, 0, places, power, self.memory)
        return power.values(sums)

    def _from_histogram(self, histogram: LatticeHistogram) -> list[FloatArray]:
        needed, _ = self._lattice_work()
        if needed > self.memory:
            raise ValueError(
                f"The lattice needs about {needed:.0f} MiB, but memory={self.memory:g} MiB. Lower "
                "refinement, resolution or max_distance, or raise memory."
            )
        power = self._power(histogram.n_points)
        return [power.values(*s) for s in lattice_sums(histogram, self.refinement_, power)]

    def _lattice_work(self) -> tuple[float, float]:
        """Return the MiB of padded counts and sorted offsets, and the number of visited offsets."""
        sides = np.array(self._lattice_shape)
        low, high = self.bounds_
        reach = np.minimum(self._cap() // ((high - low) / (sides - 1)), sides - 1)
        n_offsets = float(np.prod(2 * reach + 1))
        numbers = np.prod(sides + 2 * reach) + (2 * len(sides) + 4) * n_offsets
        # Offsets beyond the cap are not visited.
        d = len(sides)
        in_ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1) / 2**d * n_offsets
        return 8 * float(numbers) / 2**20, in_ball

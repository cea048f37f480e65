"""Choosing epsilon, mass and grid of a private diagram before anything is spent.

Whatever a plan needs follows from public numbers: the bounds that the filtration of any cloud of a
size will carry, and a model of the loop that one expects to see.

Proof: doc/theory/error_bounds.md, "Planning".
"""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from sklearn_dptda._typing import Bounds, FloatArray
from sklearn_dptda.filtration import DTMFiltration
from sklearn_dptda.filtration._dtm import neighbour_count
from sklearn_dptda.filtration._grid_filtration import resolution_for
from sklearn_dptda.model_selection._release_plan import Detection, ReleasePlan, rounded_up
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.persistence._cubical import check_dimensions
from sklearn_dptda.persistence._error_bounds import PART, least_epsilon
from sklearn_dptda.privacy._parameters import check_confidence, quoted
from sklearn_dptda.utils._bounds import check_bounds

_LOG = logging.getLogger(__name__)

# Masses that are tried for a loop if none is given.
MASSES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
# Cap of distances that nobody has to know.
_DEFAULT_CAP = "private"
# Share of its persistence that a feature may lose to the grid (doc/theory/error_bounds.md).
_GRID_LOSS = 0.1
# The model of a loop: equally heavy points at so many distances from the centre and so many angles
# of half a circle stand for the measure, and its function is computed at so many radii.
_N_RINGS, _N_ANGLES, _N_RADII = 64, 512, 65


def plan_release(
    n_points: int,
    bounds: Bounds,
    *,
    loop_radius: float | None = None,
    share: float = 1.0,
    spread: float = 0.0,
    persistence: float | None = None,
    homology_dimension: int = 1,
    m: float | Sequence[float] | None = None,
    n_dims: int | None = None,
    max_distance: float | Literal["private"] | None = None,
    private: PrivatePersistence | None = None,
    n_features: int | Sequence[int] = 2,
    confidence: float = 0.95,
) -> ReleasePlan:
    """Least epsilon at which a private diagram shows a feature, and the mass and grid for it.

    Made of public numbers: what one expects to see, in which box, of how many
    points. Nothing is read, released, or paid.

    Parameters
    ----------
    n_points : int
        Size of the cloud, public.
    bounds : tuple (low, high)
        Public box, numbers or one per coordinate.
    loop_radius : float, default=None
        Plan for a loop: points around a flat circle of this radius.
    share : float, default=1.0
        Part of the points that lie on the loop, in (0, 1]. The others are
        taken to be far away: those that fill the loop hide it.
    spread : float, default=0.0
        Standard deviation of the points across the circle, in its plane.
    persistence : float, default=None
        Or plan for any feature that persists so long in the exact diagram of
        the distance-to-measure of mass ``m``. Two groups that are small
        against the gap between them make a component that persists for half
        the gap, if each holds more than the mass ``m``.
    homology_dimension : int, default=1
        Of that feature; a loop has 1.
    m : float or sequence of float, default=None
        Masses to choose from, for a loop; the mass, for a stated persistence.
        None tries thirteen from 0.01 to 0.6.
    n_dims : int, default=None
        Number of coordinates. None: as many as ``bounds`` has, or 2.
    max_distance : float or "private", default=None
        As in :class:`DTMFiltration`. None: for a loop, its radius is tried as
        well, since what is farther away tells nothing about it.
    private : PrivatePersistence, default=None
        Its parameters count, but for ``epsilon``. None: the defaults.
    n_features : int or sequence of int, default=2
        As in :func:`bottleneck_error_bound`: how many features of a dimension
        may stand out.
    confidence : float, default=0.95
        Probability with which a feature of that persistence is flagged; and,
        of a loop, with which a sample leaves it.

    Returns
    -------
    ReleasePlan
        Prints as two sentences, draws its curve with
        :class:`ReleasePlanDisplay`, and makes the pipeline that releases.

    Raises
    ------
    ValueError
        If a number is out of range, or if no epsilon shows the feature.

    See Also
    --------
    bottleneck_error_bound : How far points of a private diagram move.
    planned_loss : What several releases cost together.

    Notes
    -----
    A released point is flagged as no noise if it persists for more than twice
    the error bound ``r``, or if it is the longest of its dimension and
    persists for more than the noise floor. With probability ``confidence`` no
    birth or death moves by more than ``r``, so that a feature of persistence P
    is flagged if ``P - 2 r >= min(2 r, floor)``. By the floor alone the
    dimension is flagged: which of its points is the feature remains open.

    The model of a loop gives the diagram of the measure. Two things are taken
    off: what the grid may hide, a tenth where twice the default number of
    nodes suffices for that, and, to first order, what chance takes from a
    sample, again with probability ``confidence``. See
    :doc:`/theory/error_bounds`.

    This is the price of a diagram that may be looked at from all sides. How
    long the longest feature lives, or how many are long, costs a fraction of
    it.

    .. rubric:: Privacy

    Nothing is touched that would have to be protected. What is stated has to
    be known without looking at the records.

    Examples
    --------
    >>> from sklearn_dptda.model_selection import plan_release
    >>> plan = plan_release(4000, bounds=(-1.5, 1.5), loop_radius=1.0, spread=0.1, m=0.3)
    >>> print(plan)
    epsilon=0.585 with m=0.3, max_distance=1 and 103 grid nodes per axis shows a loop ...
    """
    if not isinstance(n_points, Integral) or n_points < 2:
        raise ValueError(f"n_points must be an integer of at least 2; got {quoted(n_points)}.")
    check_confidence(confidence)
    private = PrivatePersistence() if private is None else private
    private._validate_params()
    low, high = check_bounds(bounds, _coordinates(bounds, n_dims))
    if homology_dimension not in check_dimensions(private.homology_dimensions)[0]:
        raise ValueError(
            f"homology_dimension={homology_dimension!r} is not among those of the release, "
            f"{quoted(private.homology_dimensions)}."
        )
    search = _Search(
        n_points=int(n_points),
        bounds=(low, high),
        max_distance=max_distance,
        private=private,
        homology_dimension=homology_dimension,
        confidence=float(confidence),
        n_features=n_features,
    )
    if (persistence is None) == (loop_radius is None):
        raise ValueError("Say what to look for: either loop_radius, or persistence and m.")
    if persistence is None:
        _check_loop(loop_radius, share, spread, homology_dimension, high - low)
        masses = MASSES if m is None else np.atleast_1d(np.asarray(m, dtype=float)).tolist()
        return search.best(search.loops(loop_radius, share, spread, masses))
    if (share, spread) != (1.0, 0.0):
        raise ValueError("share and spread describe a loop: they need loop_radius.")
    if not isinstance(m, Real):
        raise ValueError(f"m must be one number where persistence is stated; got {quoted(m)}.")
    _check_positive("persistence", persistence)
    return search.best([search.candidate(float(m), float(persistence))])


def _coordinates(bounds, n_dims):
    if n_dims is not None:
        if not isinstance(n_dims, Integral) or n_dims < 1:
            raise ValueError(f"n_dims must be an integer of at least 1; got {quoted(n_dims)}.")
        return int(n_dims)
    try:
        return max((np.size(end) for end in bounds if np.ndim(end)), default=2)
    except (TypeError, ValueError):
        # Bounds that are no pair of numbers or arrays are refused where bounds are checked.
        return 2


def _check_loop(radius, share, spread, homology_dimension, sides):
    _check_positive("loop_radius", radius)
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1]; got {quoted(share)}.")
    if not 0 <= spread < math.inf:
        raise ValueError(f"spread must be a number from 0 on; got {quoted(spread)}.")
    if homology_dimension != 1:
        raise ValueError("homology_dimension of a loop is 1.")
    if len(sides) < 2 or 2 * radius > sides.max():
        raise ValueError(f"bounds have no room for a loop of loop_radius={radius!r}.")


def _check_positive(name, value):
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number; got {quoted(value)}.")


@dataclass(frozen=True)
class BoundsAhead:
    """Numbers that the filtration of a cloud follows from, or carries, whatever the points are.

    Distances count up to ``cap``. ``grid_error`` is how far a place of the box is from the nearest
    node, and so how far the diagram of the nodes is from that of the whole function, which is
    1-Lipschitz.
    """

    cap: float
    sensitivity: float
    upper: float
    approximation_error: float
    grid_error: float
    smaller_caps: Sequence[tuple[float, float]] = ()


def bounds_ahead(filtration, n_points, n_dims):
    """Bounds of a :class:`DTMFiltration` of any ``n_points`` points in ``n_dims`` coordinates.

    Its box must be public. Fits a copy to two points that tell their number of coordinates, which
    is all that a fit learns.
    """
    fitted = clone(filtration).fit([np.zeros((2, n_dims))])
    values, on_lattice = fitted._choose(n_points)
    cell = [axis[1] - axis[0] for axis in fitted.axes_]
    return BoundsAhead(
        cap=fitted._cap(),
        sensitivity=values.sensitivity,
        upper=values.upper,
        approximation_error=values.lattice_error if on_lattice else 0.0,
        grid_error=float(np.linalg.norm(cell)) / 2,
        smaller_caps=values.smaller,
    )


@dataclass(frozen=True)
class _Candidate:
    """A filtration, and what can be seen of the feature in it."""

    filtration: DTMFiltration
    ahead: BoundsAhead
    persistence: float
    sampling_error: float

    @property
    def visible(self) -> float:
        """What sampling and the grid leave of the persistence."""
        return self.persistence - self.sampling_error - 2 * self.ahead.grid_error


@dataclass(frozen=True)
class _Search:
    """What all candidates of a plan share, and the search for the best of them."""

    n_points: int
    bounds: tuple[FloatArray, FloatArray]
    max_distance: float | Literal["private"] | None
    private: PrivatePersistence
    homology_dimension: int
    confidence: float
    n_features: int | Sequence[int]

    def loops(self, radius, share, spread, masses) -> Iterator[_Candidate]:
        """A candidate for each mass at which the model has a loop."""
        for m in masses:
            neighbour_count(m, self.n_points)
        for cap in [_DEFAULT_CAP, float(radius)] if self.max_distance is None else [None]:
            ahead = self._ahead(self._filtration(max(masses), None, cap))
            model = LoopModel(radius, share, spread, cap=ahead.cap)
            for m in filter(model.exists, masses):
                birth, death = (min(value, ahead.upper) for value in model.birth_and_death(m))
                if death > birth:
                    lost = model.sampling_error(m, self.n_points, self.confidence)
                    yield self.candidate(m, death - birth, lost, cap)

    def candidate(self, m, persistence, sampling_error=0.0, cap=_DEFAULT_CAP) -> _Candidate:
        """The filtration of a mass, with a grid that is fine enough for the persistence.

        Under a cap that is tried, if the caller states none.
        """
        low, high = self.bounds
        resolution = resolution_for(_GRID_LOSS * persistence / 2, high - low)
        filtration = self._filtration(m, resolution, cap)
        return _Candidate(
            filtration=filtration,
            ahead=self._ahead(filtration),
            persistence=persistence,
            sampling_error=sampling_error,
        )

    def _filtration(self, m, resolution, cap):
        stated = self.max_distance
        return DTMFiltration(
            m,
            bounds=self.bounds,
            resolution=resolution,
            max_distance=cap if stated is None else stated,
        )

    def _ahead(self, filtration):
        ahead = bounds_ahead(filtration, self.n_points, len(self.bounds[0]))
        stated = self.private.upper
        if stated is None:
            return ahead
        return replace(ahead, upper=min(ahead.upper, stated), smaller_caps=())

    def best(self, candidates) -> ReleasePlan:
        """The plan of the candidate that is shown at the least epsilon."""
        # Noise is proportional to the sensitivity: in this order the first is nearly always best.
        candidates = sorted(candidates, key=lambda c: c.visible / c.ahead.sensitivity, reverse=True)
        chosen, least = self._least(candidates)
        if chosen is None:
            raise ValueError(_hopeless(candidates))
        plan = self._plan(chosen, rounded_up(least))
        if self.max_distance is None and plan.max_distance != _DEFAULT_CAP:
            others = [c for c in candidates if c.filtration.max_distance == _DEFAULT_CAP]
            _, dearer = self._least(others)
            plan = replace(plan, epsilon_without_cap=dearer)
        return plan

    def _least(self, candidates):
        """The candidate that is shown at the least epsilon, and that epsilon; None if none is."""
        chosen, least = None, math.inf
        for number, candidate in enumerate(candidates, 1):
            _LOG.info("candidate %d of %d", number, len(candidates))
            # No error bound is below the sensitivity.
            if candidate.visible <= 2 * candidate.ahead.sensitivity:
                continue
            detection = self._detection(candidate)

            def shows(epsilon, detection=detection, visible=candidate.visible):
                return detection.shows(visible, rounded_up(epsilon))

            # The bisection is worth its time for candidates that beat the best one so far.
            if chosen is None or shows(least * (1 - PART)):
                epsilon = least_epsilon(shows, candidate.ahead.sensitivity, candidate.ahead.upper)
                if epsilon < least:
                    chosen, least = candidate, epsilon
        return chosen, least

    def _detection(self, candidate):
        return Detection(
            self.private,
            candidate.ahead,
            homology_dimension=self.homology_dimension,
            confidence=self.confidence,
            n_features=self.n_features,
        )

    def _plan(self, chosen, epsilon):
        detection = self._detection(chosen)
        error, floor = detection.at(epsilon)
        return ReleasePlan(
            n_points=self.n_points,
            epsilon=epsilon,
            m=chosen.filtration.m,
            max_distance=chosen.filtration.max_distance,
            resolution=chosen.filtration.resolution,
            error_bound=error,
            noise_floor=floor,
            persistence=chosen.persistence,
            sampling_error=chosen.sampling_error,
            grid_error=chosen.ahead.grid_error,
            sensitivity=chosen.ahead.sensitivity,
            upper=chosen.ahead.upper,
            homology_dimension=self.homology_dimension,
            confidence=self.confidence,
            _filtration=chosen.filtration,
            _detection=detection,
        )


def _hopeless(candidates):
    """Why no epsilon shows the feature."""
    if not candidates:
        return "No epsilon shows this loop: none of the masses m sees a hole in it. Lower m."
    best = candidates[0]
    return (
        f"No epsilon shows this feature. With m={best.filtration.m:g} it persists for "
        f"{best.persistence:.3g}, of which the grid may take {2 * best.ahead.grid_error:.2g} and "
        f"sampling {best.sampling_error:.2g}, and one point moves it by "
        f"{best.ahead.sensitivity:.2g}. It takes more points, or a smaller box."
    )


class LoopModel:
    """The distance-to-measure of points at uniform angles of a circle, made of public numbers.

    Off the circle they lie by a Gaussian of deviation ``spread``. On the loop lies the ``share`` of
    all points; the others are taken to be nowhere near. Longer distances than ``cap`` count as the
    cap. By symmetry the function depends on the distance from the centre alone: the loop is born at
    the least value along a radius, and dies at the largest one further inside.
    """

    def __init__(self, radius, share, spread, cap):
        self.share = share
        levels = (np.arange(_N_RINGS) + 0.5) / _N_RINGS
        rings = radius + spread * ndtri(levels)
        angles = np.pi * (np.arange(_N_ANGLES) + 0.5) / _N_ANGLES
        x, y = (np.outer(rings, f(angles)).ravel() for f in (np.cos, np.sin))
        places = np.linspace(0, radius, _N_RADII)[:, None]
        self._distances = np.minimum(np.sort(np.hypot(x - places, y), axis=1), cap)
        self._sums = np.cumsum(self._distances, axis=1)

    def exists(self, m):
        """Whether the loop alone has a mass."""
        return m < self.share

    def birth_and_death(self, m):
        """Birth and death of the loop; the same number where there is none."""
        values = self._values(self._count(m))
        birth, death = self._places(values)
        return float(values[birth]), float(values[death])

    def sampling_error(self, m, n_points, confidence):
        """How much shorter the loop of a sample may be, to first order in one over the root of n.

        A value at mass m has the influence function ``-(d - D)_+ / m``, D the distance of a point
        and d that of the last one counted. Loops close where the sample is thinnest: at the worst
        of about ``share / m`` places that have no points in common.
        """
        quantile = -float(ndtri((1 - confidence) * m / self.share))
        places = self._places(self._values(self._count(m)))
        return quantile * sum(self._deviation(i, m) for i in places) / math.sqrt(n_points)

    def _count(self, m):
        size = self._distances.shape[1]
        return min(max(round(m / self.share * size), 1), size)

    def _values(self, count):
        return self._sums[:, count - 1] / count

    @staticmethod
    def _places(values):
        """Places of birth and death along the radius."""
        birth = int(values.argmin())
        return birth, int(values[: birth + 1].argmax())

    def _deviation(self, place, m):
        """Standard deviation of the influence function."""
        distances = self._distances[place]
        count = self._count(m)
        gaps = distances[count - 1] - distances[:count]
        mean, square = (self.share * float(g.sum()) / len(distances) for g in (gaps, gaps**2))
        return math.sqrt(max(square - mean**2, 0.0)) / m

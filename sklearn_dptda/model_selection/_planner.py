"""Planning of epsilon, mass and grid of a private diagram before anything is spent.

A plan uses only public numbers: the bounds of the filtration of any cloud with a given number of
points, and a model of the expected loop.

Proof: doc/theory/error_bounds.md, "Planning".
"""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Literal

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from sklearn_dptda._typing import Bounds, FloatArray
from sklearn_dptda.filtration import DTMFiltration
from sklearn_dptda.filtration._dtm import neighbour_count
from sklearn_dptda.filtration._grid_filtration import ValuesAhead, resolution_for
from sklearn_dptda.model_selection._release_plan import (
    ReleasePlan,
    epsilon_rounded_up,
    noise_floor,
    threshold,
)
from sklearn_dptda.model_selection._simulated_feature import SimulatedFeature
from sklearn_dptda.persistence import DiagramErrors, PrivatePersistence
from sklearn_dptda.persistence._cubical import check_dimensions
from sklearn_dptda.persistence._error_bounds import PART
from sklearn_dptda.privacy._calibration import largest_valid
from sklearn_dptda.privacy._parameters import check_confidence, check_positive, quoted
from sklearn_dptda.utils._bounds import check_bounds

_LOG = logging.getLogger(__name__)

# Masses that are tried for a loop if the caller gives none.
MASSES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
# Default cap of distances, which needs no knowledge of the data.
_DEFAULT_CAP = "private"
# Share of its persistence that a feature may lose to the grid (doc/theory/error_bounds.md).
_GRID_LOSS = 0.1
# An epsilon that simulations find is too large by at most this part of it.
_SIMULATED_PART = 0.05
# The largest share of simulated releases that can be asked for.
_MOST_CONFIDENCE = 0.95
# The least epsilon that a plan names for an advantage, as a share of the one that is needed.
_LEAST_SHARE = 1e-6
# Size of the model of a loop. Points of equal weight at this number of distances from the centre
# (rings) and angles of half a circle represent the measure. Its function is computed at this number
# of radii.
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
    claim: Literal["bound", "probable"] = "bound",
    max_advantage: float | None = None,
) -> ReleasePlan:
    """Find the smallest epsilon at which a private diagram shows a feature.

    The plan also chooses the mass and the grid of the filtration. It depends only on
    public numbers: no data are read, and nothing is released or spent. You must know
    the arguments without looking at the records.

    Parameters
    ----------
    n_points : int
        Public number of points of the cloud.
    bounds : tuple (low, high)
        Public box: two numbers, or two arrays with one number for each coordinate.
    loop_radius : float, default=None
        Plan for a loop: points around a flat circle of this radius, in the units
        of the points. Give either this or ``persistence``.
    share : float, default=1.0
        Share of the points that are on the loop, in (0, 1]. The other points are
        assumed to be far away, not inside of the loop.
    spread : float, default=0.0
        Standard deviation of the distance of the points from the circle, in its
        plane and in the units of the points.
    persistence : float, default=None
        Plan for any feature with this persistence in the exact diagram of the
        distance-to-measure of mass ``m``, in the units of the points. For example,
        two small groups that each contain more than the mass ``m`` give a component
        that persists for half of the gap between them.
    homology_dimension : int, default=1
        Homology dimension of the feature. A loop has dimension 1.
    m : float or sequence of float, default=None
        For a loop, the masses to choose from. None tries thirteen masses from 0.01
        to 0.6. With ``persistence``, the mass.
    n_dims : int, default=None
        Number of coordinates of the points. None uses the number of coordinates
        of ``bounds``, or 2 if the bounds are numbers.
    max_distance : float or "private", default=None
        Public cap of the filtration: longer distances count as this distance, and the
        noise is proportional to it. ``"private"`` lets the release draw the cap under
        differential privacy. None tries ``"private"`` and, for a loop, also its
        radius.
    private : PrivatePersistence, default=None
        Estimator of the release, whose parameters except for ``epsilon`` are
        used. None uses the defaults.
    n_features : int or sequence of int, default=2
        Largest number of features of a dimension, or of each dimension, that may
        be longer than the noise. The essential component does not count.
    confidence : float, default=0.95
        Probability with which a feature of this persistence is flagged. For a
        loop, also the probability with which a sample has the loop.
    claim : {"bound", "probable"}, default="bound"
        What is said of the feature. ``"bound"`` flags it by the error bound, which holds
        for every diagram with ``n_features`` long features. ``"probable"`` finds the
        epsilon at which :meth:`PrivatePersistence.posterior` gives it a probability of at
        least 95 %, in a share ``confidence`` of 40 simulated releases of a diagram that has
        this feature alone. It needs between a quarter and two thirds of the epsilon, and
        about a minute.
    max_advantage : float, default=None
        Largest advantage that an attack on one record may gain, in (0, 1); see
        :class:`PrivacyRisk`. A plan whose epsilon allows more is refused, with the number
        of points that would suffice. None accepts any epsilon.

    Returns
    -------
    ReleasePlan
        The plan. It prints as a short text, :func:`plot_release_plan` draws its
        curve, and ``make_pipeline()`` makes the pipeline of the release.

    See Also
    --------
    DiagramErrors : Largest distance that points of a private diagram move.
    planned_loss : Privacy loss of several releases together.

    Notes
    -----
    A released point is flagged as a feature if it persists for more than twice the
    error bound ``r``, or if it is the longest of its dimension and persists for more
    than the noise floor. A feature of persistence P is therefore flagged if ``P - 2 r
    >= min(2 r, floor)``. If it is flagged by the noise floor alone, it is unknown
    which point of the dimension is the feature.

    The model of a loop subtracts from its persistence the part that the grid may hide
    and, to first order, the part that a random sample may lose, again with
    probability ``confidence``. See :doc:`/theory/error_bounds`.

    This is the cost of a complete diagram. The length of the longest feature, or
    the number of long features, costs a fraction of it.

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
            f"homology_dimension={homology_dimension!r} is not one of the homology dimensions of "
            f"the release, {quoted(private.homology_dimensions)}."
        )
    search = _Search(
        n_points=int(n_points),
        bounds=(low, high),
        max_distance=max_distance,
        private=private,
        homology_dimension=homology_dimension,
        confidence=float(confidence),
        n_features=n_features,
        claim=claim,
    )
    if claim not in ("bound", "probable"):
        raise ValueError(f"claim must be 'bound' or 'probable'; got {quoted(claim)}.")
    if claim == "probable":
        _check_probable(private, confidence)
    if max_advantage is not None and not 0 < max_advantage < 1:
        raise ValueError(f"max_advantage must be in (0, 1); got {quoted(max_advantage)}.")
    if (persistence is None) == (loop_radius is None):
        raise ValueError(
            "Say what to look for: give either loop_radius, or persistence together with m."
        )
    if persistence is None:
        _check_loop(loop_radius, share, spread, homology_dimension, high - low)
        masses = MASSES if m is None else np.atleast_1d(np.asarray(m, dtype=float)).tolist()
        candidates = search.loops(loop_radius, share, spread, masses)
        return _accepted(search.best(candidates), max_advantage)
    if homology_dimension >= len(low):
        raise ValueError(
            f"homology_dimension={homology_dimension!r} needs points of more than "
            f"{len(low)} coordinates. Give n_dims, or bounds for each coordinate."
        )
    if (share, spread) != (1.0, 0.0):
        raise ValueError("share and spread describe a loop and can only be used with loop_radius.")
    if not isinstance(m, Real):
        raise ValueError(f"m must be one number if persistence is given; got {quoted(m)}.")
    check_positive(persistence=persistence)
    plan = search.best([search.candidate(float(m), float(persistence))])
    return _accepted(plan, max_advantage)


def _accepted(plan, max_advantage):
    """Return a plan, or raise ValueError if its epsilon allows a larger advantage."""
    if (
        max_advantage is None
        or plan.make_pipeline()[-1]._guarantee_ahead(None).advantage <= max_advantage
    ):
        return plan
    private = plan.make_pipeline()[-1]

    def is_accepted(epsilon):
        guarantee = private.set_params(epsilon=epsilon)._guarantee_ahead(None)
        return guarantee.advantage <= max_advantage

    allowed = largest_valid(is_accepted, plan.epsilon * _LEAST_SHARE, plan.epsilon)
    # The noise is inversely proportional to the product of epsilon and the number of points.
    n_points = math.ceil(plan.n_points * plan.epsilon / allowed)
    raise ValueError(
        f"max_advantage={max_advantage!r} allows epsilon={allowed:.3g}, but the feature needs "
        f"epsilon={plan.epsilon:g}. Use about {n_points} points, or a larger max_advantage."
    )


def _check_probable(private, confidence):
    if not hasattr(private, "posterior"):
        raise ValueError(
            "claim='probable' needs a private estimator with a posterior: mechanism='exact', "
            "utility='max', base_measure='spike-slab' and slab='uniform'."
        )
    if confidence > _MOST_CONFIDENCE:
        raise ValueError(
            f"confidence={confidence!r} must be at most {_MOST_CONFIDENCE} with claim='probable', "
            "because it is the share of 40 simulated releases."
        )


def _coordinates(bounds, n_dims):
    if n_dims is not None:
        if not isinstance(n_dims, Integral) or n_dims < 1:
            raise ValueError(f"n_dims must be an integer of at least 1; got {quoted(n_dims)}.")
        return int(n_dims)
    try:
        return max((np.size(end) for end in bounds if np.ndim(end)), default=2)
    except (TypeError, ValueError):
        # Invalid bounds are refused later, by check_bounds.
        return 2


def _check_loop(radius, share, spread, homology_dimension, sides):
    check_positive(loop_radius=radius)
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1]; got {quoted(share)}.")
    if not 0 <= spread < math.inf:
        raise ValueError(f"spread must be a finite number, 0 or larger; got {quoted(spread)}.")
    if homology_dimension != 1:
        raise ValueError("homology_dimension must be 1 for a loop.")
    if len(sides) < 2 or 2 * radius > sides.max():
        raise ValueError(
            f"bounds have no room for a loop of loop_radius={radius!r}. Use a smaller radius or "
            "larger bounds."
        )


def values_ahead(
    filtration: DTMFiltration, n_points: int, n_dims: int
) -> tuple[DTMFiltration, ValuesAhead]:
    """Public facts about a :class:`DTMFiltration` of any ``n_points`` points, in a public box.

    A copy is fitted to two points, because a fit learns only the number of coordinates. It is
    returned with what is known of the values.
    """
    fitted = clone(filtration).fit([np.zeros((2, n_dims))])
    _, values, on_lattice = fitted._choose(n_points)
    return fitted, values if on_lattice else replace(values, lattice_error=0.0)


def grid_error(fitted: DTMFiltration) -> float:
    """Return the largest distance of a point of the box from the nearest node.

    It also bounds the distance between the diagram of the nodes and that of the whole function,
    which is 1-Lipschitz.
    """
    return float(np.linalg.norm([axis[1] - axis[0] for axis in fitted.axes_])) / 2


@dataclass(frozen=True)
class _Candidate:
    """A filtration, the errors of its diagrams, and the persistence of the feature in it."""

    filtration: DTMFiltration
    errors: DiagramErrors
    persistence: float
    sampling_error: float
    grid_error: float
    birth: float | None

    @property
    def sensitivity(self) -> float:
        return self.errors.caps[0][0]

    @property
    def visible(self) -> float:
        """Persistence minus the losses by sampling and by the grid."""
        return self.persistence - self.sampling_error - 2 * self.grid_error

    def shown_at(self, epsilon, dimension) -> bool:
        """Whether the feature, of this dimension, is flagged."""
        errors = self.errors.at(epsilon_rounded_up(epsilon))
        # Outside of these limits, the bound alone decides, and the floor is not computed.
        if not 2 * errors.bound < self.visible < 4 * errors.bound:
            return 2 * errors.bound < self.visible
        return bool(self.visible >= threshold(errors.bound, noise_floor(errors, dimension)))

    def probable_at(self, epsilon, dimension, confidence) -> bool:
        """Whether the feature is probable, given simulated releases of it alone."""
        feature = SimulatedFeature(
            self.errors.private,
            self.errors.caps,
            dimension,
            self.visible,
            self.birth,
            self.errors.moved,
        )
        return feature.at(epsilon_rounded_up(epsilon)).is_probable(confidence)


@dataclass(frozen=True)
class _Search:
    """Common settings of all candidates of a plan, and the search for the best candidate."""

    n_points: int
    bounds: tuple[FloatArray, FloatArray]
    max_distance: float | Literal["private"] | None
    private: PrivatePersistence
    homology_dimension: int
    confidence: float
    n_features: int | Sequence[int]
    claim: Literal["bound", "probable"]

    def loops(self, radius, share, spread, masses) -> Iterator[_Candidate]:
        """Yield a candidate for each mass at which the model has a loop."""
        for m in masses:
            neighbour_count(m, self.n_points)
        for cap in [_DEFAULT_CAP, float(radius)] if self.max_distance is None else [None]:
            fitted, ahead = self._ahead(self._filtration(max(masses), None, cap))
            model = LoopModel(radius, share, spread, cap=fitted._cap())
            for m in filter(model.exists, masses):
                birth, death = (min(value, ahead.upper) for value in model.birth_and_death(m))
                if death > birth:
                    lost = model.sampling_error(m, self.n_points, self.confidence)
                    yield self.candidate(m, death - birth, lost, cap, birth)

    def candidate(
        self, m, persistence, sampling_error=0.0, cap=_DEFAULT_CAP, birth=None
    ) -> _Candidate:
        """Return the filtration of a mass, with a grid that is fine enough for the persistence.

        ``cap`` is used if the caller has not given one.
        """
        low, high = self.bounds
        resolution = resolution_for(_GRID_LOSS * persistence / 2, high - low)
        filtration = self._filtration(m, resolution, cap)
        fitted, ahead = self._ahead(filtration)
        caps = [(ahead.sensitivity, ahead.upper), *ahead.smaller]
        errors = DiagramErrors(
            self.private, caps, self.confidence, self.n_features, moved=ahead.lattice_error
        )
        return _Candidate(
            filtration, errors, persistence, sampling_error, grid_error(fitted), birth
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
        fitted, ahead = values_ahead(filtration, self.n_points, len(self.bounds[0]))
        if self.private.upper is not None:
            ahead = replace(ahead, upper=min(ahead.upper, self.private.upper), smaller=())
        return fitted, ahead

    def best(self, candidates) -> ReleasePlan:
        """Return the plan of the candidate that is visible at the smallest epsilon."""
        # The noise is proportional to the sensitivity. In this order, the first candidate is nearly
        # always the best.
        candidates = sorted(candidates, key=lambda c: c.visible / c.sensitivity, reverse=True)
        find = self._least if self.claim == "bound" else self._least_probable
        chosen, least = find(candidates)
        if chosen is None:
            raise ValueError(_hopeless(candidates))
        dearer = None
        other = self.claim == "bound" and self.max_distance is None
        if other and chosen.filtration.max_distance != _DEFAULT_CAP:
            others = [c for c in candidates if c.filtration.max_distance == _DEFAULT_CAP]
            _, dearer = self._least(others)
        errors = chosen.errors.at(epsilon_rounded_up(least))
        sensitivity, upper = errors.caps[0]
        return ReleasePlan(
            n_points=self.n_points,
            epsilon=errors.private.epsilon,
            m=chosen.filtration.m,
            max_distance=chosen.filtration.max_distance,
            resolution=chosen.filtration.resolution,
            error_bound=errors.bound,
            noise_floor=noise_floor(errors, self.homology_dimension),
            persistence=chosen.persistence,
            sampling_error=chosen.sampling_error,
            grid_error=chosen.grid_error,
            sensitivity=sensitivity,
            upper=upper,
            homology_dimension=self.homology_dimension,
            confidence=self.confidence,
            claim=self.claim,
            _filtration=chosen.filtration,
            _errors=errors,
            epsilon_without_cap=dearer,
        )

    def _least(self, candidates):
        """Return the candidate that is visible at the smallest epsilon, if any, and the epsilon."""
        chosen, least = None, math.inf
        for number, candidate in enumerate(candidates, 1):
            _LOG.info("candidate %d of %d", number, len(candidates))
            # An error bound is never below the sensitivity.
            if candidate.visible <= 2 * candidate.sensitivity:
                continue
            shows = partial(candidate.shown_at, dimension=self.homology_dimension)
            # Bisection is slow, and only used for candidates that are better than the best so far.
            if chosen is None or shows(least * (1 - PART)):
                epsilon = candidate.errors.least_epsilon(shows)
                if epsilon < least:
                    chosen, least = candidate, epsilon
        return chosen, least

    def _least_probable(self, candidates):
        """Return the best candidate of little noise, and the epsilon that makes it probable."""
        for candidate in candidates:
            if candidate.visible > 2 * candidate.sensitivity:
                probable = partial(
                    candidate.probable_at,
                    dimension=self.homology_dimension,
                    confidence=self.confidence,
                )
                return candidate, candidate.errors.least_epsilon(probable, _SIMULATED_PART)
        return None, math.inf


def _hopeless(candidates):
    """Return a message that explains why no epsilon shows the feature."""
    if not candidates:
        return "No epsilon shows this loop, because it has no hole at any of the masses m. Lower m."
    best = candidates[0]
    return (
        f"No epsilon shows this feature. With m={best.filtration.m:g}, it persists for "
        f"{best.persistence:.3g}. The grid may hide up to {2 * best.grid_error:.2g} of this "
        f"and sampling up to {best.sampling_error:.2g}, and one point changes it by "
        f"{best.sensitivity:.2g}. Use more points or a smaller box."
    )


class LoopModel:
    """The distance-to-measure of points at uniform angles of a circle, from public numbers.

    The distances of the points from the circle are Gaussian, and points that are not on the loop
    are far away. By symmetry, the function depends only on the distance from the centre. The loop
    is born at the smallest value along a radius, and dies at the largest value further inside.
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
        """Whether the loop contains more than a given mass."""
        return m < self.share

    def birth_and_death(self, m):
        """Return birth and death of the loop, which are equal if there is no loop."""
        values = self._values(self._count(m))
        birth, death = self._places(values)
        return float(values[birth]), float(values[death])

    def sampling_error(self, m, n_points, confidence):
        """Loss of persistence of the loop in a sample, to first order in ``1 / sqrt(n)``.

        A value at mass m has the influence function ``-(d - D)_+ / m``, where D is the distance of
        a point and d the distance of the last point that counts. A loop closes where the sample is
        thinnest: at the worst of about ``share / m`` places that have no points in common.
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
        """Return the indices of birth and death along the radius."""
        birth = int(values.argmin())
        return birth, int(values[: birth + 1].argmax())

    def _deviation(self, place, m):
        """Return the standard deviation of the influence function."""
        distances = self._distances[place]
        count = self._count(m)
        gaps = distances[count - 1] - distances[:count]
        mean, square = (self.share * float(g.sum()) / len(distances) for g in (gaps, gaps**2))
        return math.sqrt(max(square - mean**2, 0.0)) / m

"""Error bounds of private diagrams that are known before any release, from public numbers.

The law of a draw is a mixture, over levels, of the base measure on balls. Bounds of the weights of
balls therefore bound its tails. Everything is computed on the grid of the draw, as if in integers.

Proof: doc/theory/error_bounds.md, "Tails of the distance".
Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
Proof: doc/theory/private_cap.md, "Bounds of its error".
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from numbers import Integral, Number
from typing import NamedTuple, Self

from sklearn.base import BaseEstimator, clone

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.persistence._cubical import check_dimensions
from sklearn_dptda.persistence._error_levels import (
    BirthVolumes,
    DiagramVolumes,
    DrawTails,
    Odds,
    Volumes,
)
from sklearn_dptda.persistence._mechanisms import ExactMechanism, mechanism_of
from sklearn_dptda.persistence._private_cap import grids_of_caps, prior_of_caps
from sklearn_dptda.persistence._private_grid_persistence import Public
from sklearn_dptda.privacy._parameters import check_confidence, check_positive, quoted

# An epsilon is searched between these privacy losses over the whole range.
_MIN_LOSS, _MAX_LOSS = 1.0, 2.0**20
# Factor of the losses that are tried before the bisection.
_LEAP = 4
# Relative error of an epsilon that is computed by bisection.
PART = 1e-3


@fill_doc
def bottleneck_error_bound(
    private: BaseEstimator,
    sensitivity: float,
    upper: float,
    *,
    confidence: float = 0.95,
    n_features: int | Sequence[int] = 2,
    floor: float | None = None,
    inside: bool = False,
    smaller_caps: Sequence[Public] = (),
) -> float:
    """Bound the bottleneck distance between private and exact diagrams, before any release.

    If the exact diagrams of a cloud have at most ``n_features`` points that are longer than
    a floor, and any number of shorter points, all released diagrams together are within the
    bound of the exact ones with probability ``confidence``. It follows that a feature whose
    persistence is more than twice the bound survives, and that a released point whose
    persistence is more than twice the bound is not noise. The bound does not apply to other
    clouds.

    The result depends only on public numbers, so it costs no privacy.

    Parameters
    ----------
    %(public_numbers)s
    %(class_of_diagrams)s
    inside : bool, default=False
        Whether to assume that these features are born later than the bound, and die earlier
        than ``upper`` minus the bound. The bound is then about a fifth smaller.
    %(smaller_caps)s

    Returns
    -------
    float
        The bound, in the units of the function. It is ``inf`` if no bound can be given, and 0
        for ``epsilon=inf``.

    See Also
    --------
    epsilon_for_error : The epsilon that achieves a given error.
    noise_floor : The largest persistence that noise alone shows.
    sklearn_dptda.published.bottleneck_error_floor : An error that no private diagram can avoid.

    Notes
    -----
    The bound includes all rounding errors. It concerns the privacy noise only, not the
    difference between the diagram of the sample and that of the population.

    Examples
    --------
    >>> from sklearn_dptda.persistence import PrivatePersistence, bottleneck_error_bound
    >>> round(bottleneck_error_bound(PrivatePersistence(2.0), sensitivity=0.0034, upper=2.75), 2)
    0.15
    """
    caps = [(sensitivity, upper), *smaller_caps]
    return DiagramErrors(private, caps, confidence, n_features, floor, inside).bound


@fill_doc
def noise_floor(
    private: BaseEstimator,
    sensitivity: float,
    upper: float,
    *,
    confidence: float = 0.95,
    n_features: int | Sequence[int] = 2,
    floor: float | None = None,
    smaller_caps: Sequence[Public] = (),
) -> tuple[float, ...]:
    """Compute the longest persistence that noise shows in a dimension without features.

    Suppose that the exact diagram of one dimension has no points longer than the floor, and
    that the diagrams of the other dimensions have at most ``n_features`` such points each.
    With probability ``confidence``, no point of the private diagram of this dimension then
    persists longer than the noise floor. A longer point is therefore evidence of a feature.

    The result depends only on public numbers, so it costs no privacy.

    Parameters
    ----------
    %(public_numbers)s
    %(class_of_diagrams)s
    %(smaller_caps)s

    Returns
    -------
    tuple of float
        Persistence (death minus birth) for each homology dimension, in the units of the
        function. It is ``inf`` if no bound can be given, and 0 for ``epsilon=inf``.

    See Also
    --------
    not_empty : Compares a released diagram with the noise floor.
    bottleneck_error_bound : The error of diagrams that have features.

    Examples
    --------
    >>> from sklearn_dptda.persistence import PrivatePersistence, noise_floor
    >>> components, loops = noise_floor(PrivatePersistence(2.0), sensitivity=0.0034, upper=2.75)
    >>> round(loops, 2)
    0.16
    """
    caps = [(sensitivity, upper), *smaller_caps]
    return DiagramErrors(private, caps, confidence, n_features, floor).noise_floors


@fill_doc
def epsilon_for_error(
    error: float,
    private: BaseEstimator,
    sensitivity: float,
    upper: float,
    *,
    confidence: float = 0.95,
    n_features: int | Sequence[int] = 2,
    floor: float | None = None,
    inside: bool = False,
    smaller_caps: Sequence[Public] = (),
) -> float:
    """Compute the epsilon at which private diagrams are within a given error of the exact ones.

    The ``epsilon`` of ``private`` is not used. The result depends only on public numbers, so it
    costs no privacy.

    Parameters
    ----------
    error : float
        Bottleneck distance that the diagrams must not exceed, in the units of the function.
    %(public_numbers)s
    %(class_of_diagrams)s
    inside : bool, default=False
        Whether to assume that these features are born later than the bound, and die earlier
        than ``upper`` minus the bound. The bound is then about a fifth smaller.
    %(smaller_caps)s

    Returns
    -------
    float
        The smallest sufficient epsilon, or a value that is larger by at most 0.1 %. It is
        ``inf`` if no epsilon suffices, because the error is below the floor.

    See Also
    --------
    bottleneck_error_bound : The error for a given epsilon.

    Examples
    --------
    >>> from sklearn_dptda.persistence import PrivatePersistence, epsilon_for_error
    >>> round(epsilon_for_error(0.1, PrivatePersistence(), sensitivity=0.0034, upper=2.75), 1)
    3.3
    """
    if not error > 0:
        raise ValueError(f"error must be positive; got {quoted(error)}.")
    caps = [(sensitivity, upper), *smaller_caps]
    return DiagramErrors(private, caps, confidence, n_features, floor, inside).epsilon_for(error)


class _Cap(NamedTuple):
    """Step of the grid, and tails of the draws, under one cap."""

    step: float
    tails: DrawTails


@dataclass(frozen=True)
class DiagramErrors:
    """Errors of the private diagrams of one function, from public numbers.

    The parameters are those of :func:`bottleneck_error_bound`. ``caps`` has the sensitivities and
    upper bounds under the default cap of distances and under smaller ones, and ``moved`` is the
    error of the values on a lattice. Features that are short on a lattice may be artefacts of
    rounding, so this error is part of the default floor.
    """

    private: BaseEstimator = field(compare=False)
    caps: Sequence[Public]
    confidence: float = 0.95
    n_features: int | Sequence[int] = 2
    floor: float | None = None
    inside: bool = False
    moved: float = 0.0
    # What errors depend on of the estimator, so that equal objects have equal errors.
    dimensions: tuple[int, ...] = field(init=False)
    mechanism: ExactMechanism | None = field(init=False)

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        sensitivity, upper = self.caps[0]
        check_positive(sensitivity=sensitivity, upper=upper)
        dimensions, _ = check_dimensions(self.private.homology_dimensions)
        mechanism = mechanism_of(self.private, dimensions)
        if not isinstance(mechanism, ExactMechanism | None):
            raise ValueError(
                "mechanism='mcmc' has no error bound, because the law of a stopped chain is "
                "unknown. Use mechanism='exact'."
            )
        if not 0 <= self._floor < math.inf:
            raise ValueError(
                f"floor must be a finite number of at least 0; got {quoted(self.floor)}."
            )
        object.__setattr__(self, "dimensions", dimensions)
        object.__setattr__(self, "mechanism", mechanism)
        numbers, n = self._numbers, len(dimensions)
        if len(numbers) != n or any(not isinstance(j, Integral) or j < 0 for j in numbers):
            raise ValueError(
                f"n_features must be an integer of at least 0, or one for each of {n} homology "
                f"dimensions; got {quoted(self.n_features)}."
            )

    @property
    def _floor(self) -> float:
        return self.caps[0][0] + self.moved if self.floor is None else self.floor

    @property
    def _numbers(self) -> list[int]:
        """Largest number of long points of each dimension."""
        if isinstance(self.n_features, int | Number):
            return [self.n_features] * len(self.dimensions)
        return list(self.n_features)

    def at(self, epsilon: float) -> Self:
        """Return the errors at another epsilon."""
        return replace(self, private=clone(self.private).set_params(epsilon=epsilon))

    @property
    def bound(self) -> float:
        """Bound of the bottleneck distance under the cap that is drawn, whichever it is."""
        return max(self.bounds)

    @cached_property
    def bounds(self) -> list[float]:
        """Bounds of the distance under each cap that may be drawn, all jointly valid."""
        errors = []
        for step, tails in self._caps:
            r = tails.error_level(self._share)
            # Rounding to the grid adds half a step.
            errors.append(self.moved + (math.inf if r is None else (r + 0.5) * step))
        return errors or [self.moved]

    @cached_property
    def noise_floors(self) -> tuple[float, ...]:
        """Longest persistence of noise in each dimension, if it has no features."""
        floors = [(0.0,) * len(self.dimensions)]
        for step, tails in self._caps:
            levels = tails.noise_levels(self._share)
            # Lengths are whole steps. Half a step covers the rounding of floats.
            floors.append(tuple(math.inf if r is None else (2 * r + 0.5) * step for r in levels))
        return tuple(map(max, zip(*floors, strict=True)))

    def noise_floor(self, dimension: int) -> float:
        """Return the longest persistence of noise in one dimension, if it has no features."""
        return self.noise_floors[self.dimensions.index(dimension)]

    def epsilon_for(self, error: float, part: float = PART) -> float:
        """Return the least epsilon for which the bound is at most this error, or ``inf``."""
        # No epsilon makes a bound smaller than the floor, and looking for one takes seconds.
        if error < self.moved + min(self._floor, self.caps[0][1]):
            return math.inf
        return self.least_epsilon(lambda epsilon: self.at(epsilon).bound <= error, part)

    def least_epsilon(self, suffices: Callable[[float], bool], part: float = PART) -> float:
        """Return the least sufficient epsilon, too large by at most this part of it, or ``inf``.

        Errors depend on the loss over the whole range, ``epsilon * upper / sensitivity``, so this
        quantity is bisected. It is assumed that every epsilon above a sufficient one suffices.
        """
        sensitivity, upper = self.caps[0]
        per_loss = sensitivity / upper
        low, high = _MIN_LOSS, _LEAP * _MIN_LOSS
        while not suffices(high * per_loss):
            low, high = high, _LEAP * high
            if high > _MAX_LOSS:
                return math.inf
        while high > low * (1 + part):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if suffices(middle * per_loss) else (middle, high)
        return high * per_loss

    @property
    def _share(self) -> float:
        """Confidence for each cap that makes all statements hold jointly."""
        return 1 - (1 - float(self.confidence)) / max(len(self._caps), 1)

    @cached_property
    def _caps(self) -> list[_Cap]:
        """The caps that may be drawn, of which the first is the default; none without noise."""
        if self.mechanism is None:
            return []
        (sensitivity, upper), *_ = self.caps
        self.mechanism.check(sensitivity, upper)
        law = self.mechanism.prepare(sensitivity, upper)
        weights = prior_of_caps(self.mechanism, self.caps)
        caps, odds = list[_Cap](), None
        grids = [law.grid, *grids_of_caps(law.grid, self.caps[1:])]
        for weight, grid, (own, _) in zip(weights, grids, self.caps, strict=False):
            # Rounding changes half the persistence by up to half a step.
            steps = min(math.ceil((self._floor - sensitivity + own) / grid.step + 0.5), grid.size)
            birth = BirthVolumes(grid.size, self.inside, law.birth_decay)
            parts = list[tuple[Volumes, ...]]()
            for q, most in zip(self.dimensions, self._numbers, strict=True):
                finite = DiagramVolumes(law.measure, int(most), steps, self.inside)
                parts.append((finite, birth) if q == 0 else (finite,))
            groups = (tuple(chain(*parts)),) if self.mechanism.joint else tuple(parts)
            if caps:
                odds = Odds(weight, weights[0], caps[0].tails.groups[0])
            caps.append(_Cap(grid.step, DrawTails(groups, law.table, odds)))
        return caps

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


class _Cap(NamedTuple):
    """Step of the grid, and tails of the draws, under one cap."""

    step: float
    tails: DrawTails


@dataclass(frozen=True)
class DiagramErrors:
    """Errors of the private diagrams of one function, before any release.

    The errors depend only on public numbers, so they cost no privacy. They concern the privacy
    noise, including all rounding errors, but not the difference between the diagram of the sample
    and that of the population. They hold for the exact diagrams of one cloud that have at most
    ``n_features`` points longer than a floor, and any number of shorter points.

    Parameters
    ----------
    private : PrivatePersistence
        The estimator whose parameters are used. It need not be fitted.
    caps : sequence of (sensitivity, upper)
        Largest change of the function (sup norm) when one record is replaced, and public upper
        bound of the function, in its units. Further pairs are those under smaller caps, from which
        the release draws: the attribute ``smaller_caps`` of a :class:`GridFiltration`. The
        statements then apply to the exact diagrams under the cap that is drawn.
    confidence : float, default=0.95
        Probability with which a statement holds, in (0, 1).
    n_features : int or sequence of int, default=2
        Largest number of points longer than the floor, without the essential component: one
        for all homology dimensions, or one for each.
    floor : float, default=None
        Half the persistence, in the units of the function, up to which any number of points
        is allowed. None uses the sensitivity and ``moved``. A smaller cap lowers the floor as much
        as the sensitivity.
    inside : bool, default=False
        Whether to assume that these features are born later than the bound, and die earlier
        than ``upper`` minus the bound. The bound is then about a fifth smaller.
    moved : float, default=0.0
        Error of the values of the function if points were moved to a lattice: the attribute
        ``approximation_error`` of a :class:`GridFiltration`.

    Attributes
    ----------
    bound : float
        All released diagrams together are within this bottleneck distance of the exact ones. A
        feature whose persistence is more than twice the bound survives, and a released point whose
        persistence is more than twice the bound is not noise. It is ``inf`` if no bound can be
        given, and 0 for ``epsilon=inf``.
    bounds : list of float
        Bounds under each cap that may be drawn, all jointly valid.
    noise_floors : tuple of float
        For each homology dimension, the longest persistence that noise shows there if the exact
        diagram of this dimension has no points longer than the floor. A longer point is evidence of
        a feature. It is ``inf`` if nothing can be said, and 0 for ``epsilon=inf``.

    See Also
    --------
    beyond_noise : Compares a released diagram with the bound.
    not_empty : Compares a released diagram with the noise floor.
    sklearn_dptda.published.bottleneck_error_floor : An error that no private diagram can avoid.

    Examples
    --------
    >>> from sklearn_dptda.persistence import DiagramErrors, PrivatePersistence
    >>> errors = DiagramErrors(PrivatePersistence(2.0), [(0.0034, 2.75)])
    >>> round(errors.bound, 2)
    0.15
    >>> components, loops = errors.noise_floors
    >>> round(loops, 2)
    0.16
    >>> round(errors.epsilon_for(0.1), 1)
    3.3
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
        """Return the errors at another epsilon.

        Parameters
        ----------
        epsilon : float
            The epsilon.

        Returns
        -------
        DiagramErrors
        """
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

    def epsilon_for(self, error: float, part: float = PART) -> float:
        """Return the least epsilon for which the bound is at most a given error.

        Parameters
        ----------
        error : float
            Bottleneck distance that the diagrams must not exceed, in the units of the function.
        part : float, default=0.001
            The epsilon may be too large by this part of it.

        Returns
        -------
        float
            It is ``inf`` if no epsilon suffices, because the error is below the floor.
        """
        if not error > 0:
            raise ValueError(f"error must be positive; got {quoted(error)}.")
        # No epsilon makes a bound smaller than the floor, and looking for one takes seconds.
        if error < self.moved + min(self._floor, self.caps[0][1]):
            return math.inf
        return self.least_epsilon(lambda epsilon: self.at(epsilon).bound <= error, part)

    def least_epsilon(self, suffices: Callable[[float], bool], part: float = PART) -> float:
        """Return the least epsilon that suffices for something.

        Parameters
        ----------
        suffices : callable
            Whether an epsilon suffices. Every larger epsilon must then suffice, too.
        part : float, default=0.001
            The epsilon may be too large by this part of it.

        Returns
        -------
        float
            It is ``inf`` if no epsilon suffices.
        """
        # Errors depend on the loss over the whole range, so this quantity is bisected.
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

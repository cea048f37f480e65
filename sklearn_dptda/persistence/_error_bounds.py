"""Error bounds of private diagrams that are known before any release, from public numbers.

The law of a draw is a mixture, over levels, of the base measure on balls. Bounds of the weights of
balls therefore bound its tails. Everything is computed in integers on the grid of the draw.

Proof: doc/theory/error_bounds.md, "Tails of the distance".
Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
Proof: doc/theory/private_cap.md, "Bounds of its error".
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral, Number
from typing import Any

from sklearn.base import BaseEstimator, clone

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.persistence._cubical import check_dimensions
from sklearn_dptda.persistence._error_levels import (
    BirthVolumes,
    DiagramVolumes,
    Odds,
    Part,
    error_level,
    noise_level,
)
from sklearn_dptda.persistence._exact_sampler import DecayTable
from sklearn_dptda.persistence._mechanisms import ExactMechanism, mechanism_of
from sklearn_dptda.persistence._private_cap import Public, grids_of_caps, prior_of_caps
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
    confidence : float, default=0.95
        Probability that the bound holds, in (0, 1).
    n_features : int or sequence of int, default=2
        Largest number of points longer than the floor, without the essential component: one
        for all homology dimensions, or one for each.
    floor : float, default=None
        Half the persistence, in the units of the function, up to which any number of points
        is allowed. None uses the sensitivity. A smaller cap lowers the floor as much as the
        sensitivity.
    inside : bool, default=False
        Whether to assume that these features are born later than the bound, and die earlier
        than ``upper`` minus the bound. The bound is then about a fifth smaller.
    smaller_caps : sequence of (sensitivity, upper), default=()
        Public numbers of the function under smaller caps, from which the release draws:
        the attribute ``smaller_caps`` of a :class:`GridFiltration`. The bound then applies
        to the distance from the exact diagrams under the cap that is drawn.

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
    return max(
        error_bounds_of_caps(
            private,
            [(sensitivity, upper), *smaller_caps],
            confidence=confidence,
            n_features=n_features,
            floor=floor,
            inside=inside,
        )
    )


def error_bounds_of_caps(
    private: BaseEstimator,
    caps: Sequence[Public],
    *,
    confidence: float,
    n_features: int | Sequence[int],
    floor: float | None,
    inside: bool = False,
) -> list[float]:
    """Return one bound for each cap that may be drawn, all jointly valid; zero if none is."""
    check_confidence(confidence)
    settings = _settings_of(private, caps, n_features, floor, inside)
    share = _share(confidence, settings)
    errors = []
    for setting in settings:
        groups = tuple(tuple(chain.from_iterable(group)) for group in setting.groups)
        odds = _odds(setting, settings[0], settings[0].groups[0])
        r = error_level(groups, setting.table, share, odds)
        # Rounding to the grid adds half a step.
        errors.append(math.inf if r is None else (r + 0.5) * setting.step)
    return errors or [0.0]


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
    confidence : float, default=0.95
        Probability that no noise point exceeds the noise floor, in (0, 1).
    n_features : int or sequence of int, default=2
        Largest number of points of the other dimensions that are longer than the floor,
        without the essential component: one for all homology dimensions, or one for each.
    floor : float, default=None
        Half the persistence, in the units of the function, up to which any number of points
        is allowed. None uses the sensitivity. A smaller cap lowers the floor as much as the
        sensitivity.
    smaller_caps : sequence of (sensitivity, upper), default=()
        Public numbers of the function under smaller caps, from which the release draws:
        the attribute ``smaller_caps`` of a :class:`GridFiltration`.

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
    check_confidence(confidence)
    caps = [(sensitivity, upper), *smaller_caps]
    settings = _settings_of(private, caps, n_features, floor)
    share = _share(confidence, settings)
    highest = [0.0] * len(check_dimensions(private.homology_dimensions)[0])
    for setting in settings:
        floors = []
        for group, default in zip(setting.groups, settings[0].groups, strict=True):
            for i, (part, *birth) in enumerate(group):
                others = (*birth, *chain.from_iterable(group[:i] + group[i + 1 :]))
                empty = (default[i][0].without_long(), *default[i][1:])
                odds = _odds(setting, settings[0], (*default[:i], empty, *default[i + 1 :]))
                r = noise_level(part.without_long(), others, setting.table, share, odds)
                # Lengths are whole steps. Half a step covers the rounding of floats.
                floors.append(math.inf if r is None else (2 * r + 0.5) * setting.step)
        highest = [*map(max, highest, floors)]
    return tuple(highest)


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

    The result depends only on public numbers, so it costs no privacy.

    Parameters
    ----------
    error : float
        Bottleneck distance that the diagrams must not exceed, in the units of the function.
    private : PrivatePersistence
        The estimator whose parameters are used, except for ``epsilon``. It need not be
        fitted.
    sensitivity : float
        Largest change of the function (sup norm) when one record is replaced, in the units
        of the function.
    upper : float
        Public upper bound of the function, in its units.
    confidence : float, default=0.95
        Probability with which the diagrams are within ``error``, in (0, 1).
    n_features : int or sequence of int, default=2
        Largest number of points longer than the floor, without the essential component: one
        for all homology dimensions, or one for each.
    floor : float, default=None
        Half the persistence, in the units of the function, up to which any number of points
        is allowed. None uses the sensitivity. A smaller cap lowers the floor as much as the
        sensitivity.
    inside : bool, default=False
        Whether to assume that these features are born later than the bound, and die earlier
        than ``upper`` minus the bound. A smaller epsilon then suffices.
    smaller_caps : sequence of (sensitivity, upper), default=()
        Public numbers of the function under smaller caps, from which the release draws:
        the attribute ``smaller_caps`` of a :class:`GridFiltration`.

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
    check_positive(sensitivity=sensitivity, upper=upper)

    def suffices(epsilon: float) -> bool:
        at = clone(private).set_params(epsilon=epsilon)
        bound = bottleneck_error_bound(
            at,
            sensitivity,
            upper,
            confidence=confidence,
            n_features=n_features,
            floor=floor,
            inside=inside,
            smaller_caps=smaller_caps,
        )
        return bound <= error

    # No epsilon makes an error bound smaller than the floor, and looking for one takes seconds.
    # The call checks the other parameters.
    least = min(sensitivity if floor is None else floor, upper)
    if not suffices(sensitivity / upper) and error < least:
        return math.inf
    return least_epsilon(suffices, sensitivity, upper)


def least_epsilon(
    suffices: Callable[[float], bool], sensitivity: float, upper: float, part: float = PART
) -> float:
    """Return the least sufficient epsilon, too large by at most this part of it, or ``inf``.

    Errors depend on the loss over the whole range, ``epsilon * upper / sensitivity``, so this
    quantity is bisected. It is assumed that every epsilon above a sufficient one suffices.
    """
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


@dataclass(frozen=True)
class _Setting:
    """Step of the grid, weights of levels, and the dimensions of each draw under one cap."""

    step: float
    table: DecayTable
    groups: "tuple[tuple[Part, ...], ...]"
    weight: int


def _share(confidence: float, settings: Sequence[_Setting]) -> float:
    """Return the confidence for each cap that makes all statements hold jointly."""
    return 1 - (1 - float(confidence)) / max(len(settings), 1)


def _settings_of(
    private: BaseEstimator,
    caps: Sequence[Public],
    n_features: int | Sequence[int],
    floor: float | None,
    inside: bool = False,
) -> list[_Setting]:
    """Check public numbers, and return the settings of each cap; none if the release is exact."""
    sensitivity, upper = caps[0]
    check_positive(sensitivity=sensitivity, upper=upper)
    if private.mechanism != "exact":
        raise ValueError(
            "mechanism='mcmc' has no error bound, because the law of a stopped chain is unknown. "
            "Use mechanism='exact'."
        )
    floor = sensitivity if floor is None else floor
    if not 0 <= floor < math.inf:
        raise ValueError(f"floor must be a finite number of at least 0; got {quoted(floor)}.")
    dimensions, _ = check_dimensions(private.homology_dimensions)
    n = len(dimensions)
    numbers: list[Any] = (
        [n_features] * n if isinstance(n_features, int | Number) else list(n_features)
    )
    if len(numbers) != n or any(not isinstance(j, Integral) or j < 0 for j in numbers):
        raise ValueError(
            f"n_features must be an integer of at least 0, or one for each of {n} homology "
            f"dimensions; got {quoted(n_features)}."
        )
    mechanism = mechanism_of(private, dimensions)
    if not isinstance(mechanism, ExactMechanism):
        return []
    mechanism.check(sensitivity, upper)
    law, weights = mechanism.prepare(sensitivity, upper), prior_of_caps(mechanism, caps)
    caps = caps[: len(weights)]
    settings = []
    grids = [law.grid, *grids_of_caps(law.grid, caps[1:])]
    for weight, grid, (own, _) in zip(weights, grids, caps, strict=True):
        # Rounding changes half the persistence by up to half a step.
        steps = min(math.ceil((floor - sensitivity + own) / grid.step + 0.5), grid.size)
        birth = (BirthVolumes(grid.size, inside, law.birth_decay),)
        parts: tuple[Part, ...] = tuple(
            (DiagramVolumes(law.measure, int(j), steps, inside), *(birth if q == 0 else ()))
            for q, j in zip(dimensions, numbers, strict=True)
        )
        groups = (parts,) if mechanism.joint else tuple((part,) for part in parts)
        settings.append(_Setting(grid.step, law.table, groups, weight))
    return settings


def _odds(setting: _Setting, default: _Setting, parts: "Sequence[Part]") -> Odds | None:
    """Return the weight of a smaller cap relative to the default one, or None for the default.

    ``parts`` are the parts of the default cap.
    """
    if setting is default:
        return None
    return Odds(setting.weight, default.weight, tuple(chain.from_iterable(parts)))

"""What private diagrams can show, in bounds that hold before anything is paid or looked at.

The law of a draw is a mixture over levels of the base measure on balls, so that bounds of the
weights of balls bound its tails. The bounds hold for a public class of exact diagrams: a stated
number of points is longer than a floor, any number is shorter. Everything is computed in integers
on the grid of the draw.

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

# Privacy losses over the whole range between which an epsilon is looked for.
_MIN_LOSS, _MAX_LOSS = 1.0, 2.0**20
# Relative error of an epsilon that is found by bisection.
PART = 1e-3


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
    """Bottleneck distance that a private diagram keeps to the exact one.

    Known before anything is paid or looked at: for every cloud whose exact
    diagrams have at most ``n_features`` points longer than a floor, and any
    number of shorter ones, all released diagrams are within the bound of the
    exact ones, jointly, with probability ``confidence``. So a feature of more
    than twice the bound's persistence survives, and a released point of more
    than that is no noise.

    Parameters
    ----------
    private : PrivatePersistence
        Its parameters count, fitted or not.
    sensitivity : float
        Sup-norm change of the function when one record is replaced.
    upper : float
        Public bound of the function.
    confidence : float, default=0.95
        Probability that the bound holds.
    n_features : int or sequence of int, default=2
        Points longer than the floor in each dimension, at most; the essential
        component is not counted.
    floor : float, default=None
        Half persistence that any number of points may have. None: the
        sensitivity. Under a smaller cap, as far above its own sensitivity.
    inside : bool, default=False
        Whether these features are born later than the bound, and die earlier
        than ``upper`` minus the bound. The bound is a fifth smaller then.
    smaller_caps : sequence of (sensitivity, upper), default=()
        Public numbers of the function under smaller caps, among which the
        release draws, such as ``smaller_caps`` of a :class:`GridFiltration`.
        The bound is then the distance to the exact diagrams under the cap that
        is drawn.

    Returns
    -------
    float
        In the units of the function; ``inf`` if nothing can be said, 0 for
        ``epsilon=inf``.

    Raises
    ------
    ValueError
        If a number is out of range, or the draw is not exact
        (``mechanism="mcmc"``).

    See Also
    --------
    epsilon_for_error : The other way round.
    bottleneck_error_floor : What no private diagram stays below.
    noise_floor : What is seen where there is nothing.

    Notes
    -----
    Integers on the grid of the draw: no rounding is left out. Where more
    features than ``n_features`` are longer than the floor, nothing is said.
    The error is that of the noise alone: how far the cloud's diagram is from
    that of the population is another question.

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
    """Bounds for each cap that is drawn from, which hold together; zero where there is no draw."""
    check_confidence(confidence)
    settings = _settings_of(private, caps, n_features, floor, inside)
    share = _share(confidence, settings)
    errors = []
    for setting in settings:
        groups = tuple(tuple(chain.from_iterable(group)) for group in setting.groups)
        odds = _odds(setting, settings[0], settings[0].groups[0])
        r = error_level(groups, setting.table, share, odds)
        # Half a step of rounding on the way to the grid.
        errors.append(math.inf if r is None else (r + 0.5) * setting.step)
    return errors or [0.0]


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
    """Longest persistence that noise shows where a dimension has nothing.

    Whatever the other dimensions have, up to ``n_features`` points each longer
    than the floor: where the exact diagram of a dimension has none, no point
    of the private one persists longer than this, with probability
    ``confidence``. One that does refutes that there is nothing.

    Parameters
    ----------
    private : PrivatePersistence
        Its parameters count, fitted or not.
    sensitivity, upper, confidence, n_features, floor, smaller_caps
        As in :func:`bottleneck_error_bound`.

    Returns
    -------
    tuple of float
        Death minus birth, for each homology dimension; ``inf`` if nothing can
        be said.

    Raises
    ------
    ValueError
        As :func:`bottleneck_error_bound`.

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
                # Lengths are whole steps: half of one for the rounding of floats.
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
    """Epsilon at which a private diagram keeps within an error of the exact one.

    Parameters
    ----------
    error : float
        Bottleneck distance, in the units of the function.
    private : PrivatePersistence
        Its parameters count, but for ``epsilon``.
    sensitivity, upper, confidence, n_features, floor, inside, smaller_caps
        As in :func:`bottleneck_error_bound`.

    Returns
    -------
    float
        At most a thousandth more than the least one that will do; ``inf`` if
        none will, because the error is below the floor.

    Raises
    ------
    ValueError
        As :func:`bottleneck_error_bound`, and if ``error`` is not positive.

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

    return least_epsilon(suffices, sensitivity, upper)


def least_epsilon(suffices: Callable[[float], bool], sensitivity: float, upper: float) -> float:
    """Least epsilon for which ``suffices(epsilon)``, too large by a thousandth at most; or ``inf``.

    What suffices at one epsilon has to suffice at all larger ones. Errors depend on the loss over
    the whole range, ``epsilon * upper / sensitivity``, so that this is what is bisected.
    """
    per_loss = sensitivity / upper
    low, high = _MIN_LOSS, 2 * _MIN_LOSS
    while not suffices(high * per_loss):
        low, high = high, 2 * high
        if high > _MAX_LOSS:
            return math.inf
    while high > low * (1 + PART):
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
    """Confidence for each cap, so that all statements hold together."""
    return 1 - (1 - float(confidence)) / max(len(settings), 1)


def _settings_of(
    private: BaseEstimator,
    caps: Sequence[Public],
    n_features: int | Sequence[int],
    floor: float | None,
    inside: bool = False,
) -> list[_Setting]:
    """Check public numbers, and find the settings of each cap; none where the release is exact."""
    sensitivity, upper = caps[0]
    check_positive(sensitivity=sensitivity, upper=upper)
    if private.mechanism != "exact":
        raise ValueError("mechanism='mcmc' has no error bound: its law is not known.")
    floor = sensitivity if floor is None else floor
    if not 0 <= floor < math.inf:
        raise ValueError(f"floor must be a number from 0 on; got {quoted(floor)}.")
    dimensions, _ = check_dimensions(private.homology_dimensions)
    n = len(dimensions)
    numbers: list[Any] = (
        [n_features] * n if isinstance(n_features, int | Number) else list(n_features)
    )
    if len(numbers) != n or any(not isinstance(j, Integral) or j < 0 for j in numbers):
        raise ValueError(
            f"n_features must be a number from 0 on, or one for each of {n} homology "
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
        # Half a step of rounding in half persistence.
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
    """Weight of a smaller cap beside the default one, which has these parts."""
    if setting is default:
        return None
    return Odds(setting.weight, default.weight, tuple(chain.from_iterable(parts)))

"""What private diagrams can show, in bounds that hold before anything is paid or looked at.

The law of a draw is a mixture over levels of the base measure on balls, so that bounds of the
weights of balls bound its tails. The bounds hold for a public class of exact diagrams: a stated
number of points is longer than a floor, any number is shorter. Everything is computed in integers
on the grid of the draw.

Proof: doc/theory/error_bounds.md, "Tails of the distance".
Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain
from math import comb, perm, prod
from numbers import Integral, Number
from typing import Any, TypeAlias

from sklearn.base import BaseEstimator, clone

from sklearn_dptda.persistence._cubical import check_dimensions
from sklearn_dptda.persistence._exact_sampler import BaseMeasure, DecayTable
from sklearn_dptda.persistence._mechanisms import ExactMechanism, mechanism_of
from sklearn_dptda.privacy._parameters import check_confidence, check_positive, quoted

# Privacy losses over the whole range between which an epsilon is looked for.
_MIN_LOSS, _MAX_LOSS = 1.0, 2.0**20
# Relative error of an epsilon that is found by bisection.
PART = 1e-3
# Probabilities are rounded up to multiples of this power of one half.
_PROBABILITY_BITS = 64
# Levels are taken one by one up to the first number, then in blocks that hold one level for each 64
# before them: speed, for a bound that is hardly larger.
_SINGLE_LEVELS, _LEVELS_PER_LENGTH = 128, 64


def bottleneck_error_bound(
    private: BaseEstimator,
    sensitivity: float,
    upper: float,
    *,
    confidence: float = 0.95,
    n_features: int | Sequence[int] = 2,
    floor: float | None = None,
    inside: bool = False,
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
        sensitivity.
    inside : bool, default=False
        Whether these features are born later than the bound, and die earlier
        than ``upper`` minus the bound. The bound is a fifth smaller then.

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
    check_confidence(confidence)
    setting = _setting_of(private, sensitivity, upper, n_features, floor, inside)
    if setting is None:
        return 0.0
    groups = tuple(tuple(chain.from_iterable(group)) for group in setting.groups)
    r = error_level(groups, setting.table, float(confidence))
    # Half a step of rounding on the way to the grid.
    return math.inf if r is None else (r + 0.5) * setting.step


def noise_floor(
    private: BaseEstimator,
    sensitivity: float,
    upper: float,
    *,
    confidence: float = 0.95,
    n_features: int | Sequence[int] = 2,
    floor: float | None = None,
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
    sensitivity, upper, confidence, n_features, floor
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
    setting = _setting_of(private, sensitivity, upper, n_features, floor)
    if setting is None:
        return (0.0,) * len(check_dimensions(private.homology_dimensions)[0])
    floors = []
    for group in setting.groups:
        for i, (part, *birth) in enumerate(group):
            others = (*birth, *chain.from_iterable(group[:i] + group[i + 1 :]))
            r = noise_level(part.without_long(), others, setting.table, float(confidence))
            # Lengths are whole steps: half of one for the rounding of floats.
            floors.append(math.inf if r is None else (2 * r + 0.5) * setting.step)
    return tuple(floors)


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
) -> float:
    """Epsilon at which a private diagram keeps within an error of the exact one.

    Parameters
    ----------
    error : float
        Bottleneck distance, in the units of the function.
    private : PrivatePersistence
        Its parameters count, but for ``epsilon``.
    sensitivity, upper, confidence, n_features, floor, inside
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
    """Step of the grid, weights of levels, and the dimensions of each draw of one release."""

    step: float
    table: DecayTable
    groups: "tuple[tuple[Part, ...], ...]"


def _setting_of(
    private: BaseEstimator,
    sensitivity: float,
    upper: float,
    n_features: int | Sequence[int],
    floor: float | None,
    inside: bool = False,
) -> _Setting | None:
    """Check public numbers, and find the setting of a release; None where it is exact."""
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
        return None
    mechanism.check(sensitivity, upper)
    grid, table, measure = mechanism.prepare(sensitivity, upper)
    # Half a step of rounding in half persistence.
    steps = min(math.ceil(floor / grid.step + 0.5), grid.size)
    birth = (BirthVolumes(grid.size, inside),)
    parts: tuple[Part, ...] = tuple(
        (DiagramVolumes(measure, int(j), steps, inside), *(birth if q == 0 else ()))
        for q, j in zip(dimensions, numbers, strict=True)
    )
    return _Setting(grid.step, table, (parts,) if mechanism.joint else tuple((p,) for p in parts))


@dataclass(frozen=True)
class DiagramVolumes:
    """Bounds for the finite points of one diagram, ``floor`` in steps of half persistence.

    With ``inside``, points longer than the floor are also further than the level from the ends of
    the range.
    """

    measure: BaseMeasure
    most: int
    floor: int
    inside: bool = False

    def highest(self, s: int) -> int:
        """Weight of a ball of level ``s``, at most: a point is near a long one, or is short."""
        measure = self.measure
        strip = self._strip(s + self.floor)
        square = (2 * s + 1) ** 2 * (measure.size if measure.linear else 1)
        total = sum(
            omega
            * sum(
                perm(m, i) * comb(self.most, i) * square**i * strip ** (m - i)
                for i in range(min(m, self.most) + 1)
            )
            for m, omega in enumerate(measure.count_weights)
        )
        return min(total, self.near_diagonal(measure.size))

    def lowest(self, s: int) -> int:
        """Weight of a ball of level ``s``, at least; zero where short points are not free yet."""
        if s < self.floor or self.most > self.measure.max_points:
            return 0
        return min(self._with_forced(s, j) for j in range(self.most + 1))

    def without_long(self) -> "DiagramVolumes":
        """Volumes for diagrams without long points."""
        return replace(self, most=0)

    def near_diagonal(self, r: int) -> int:
        """Weight of the diagrams whose points are all within ``r`` of the diagonal."""
        strip = self._strip(r)
        return sum(omega * strip**m for m, omega in enumerate(self.measure.count_weights))

    def _with_forced(self, s: int, j: int) -> int:
        """Weight of diagrams near one of which ``j`` points are longer than ``2 s``, at least.

        The first points of a tuple serve these, in order; the others are near the diagonal.
        """
        # Where a square is cut, the quarter towards the middle of the range is left.
        side = 2 * s + 1 if self.inside else s + 1
        square = side**2 * (s + 1 if self.measure.linear else 1)
        strip, omegas = self._strip(s), self.measure.count_weights
        return square**j * sum(omegas[m] * strip ** (m - j) for m in range(j, len(omegas)))

    def _strip(self, r: int) -> int:
        """Weight of the points within ``r`` of the diagonal."""
        size, width = self.measure.size, min(2 * r, self.measure.size)
        # Births, by the length of what is above them.
        full = size - width
        return full * self.measure.column(width) + self.measure.staircase(width)


@dataclass(frozen=True)
class BirthVolumes:
    """Bounds for the birth of the essential component."""

    size: int
    inside: bool = False

    def highest(self, s: int) -> int:
        """Number of births within ``s``, at most."""
        return min(2 * s, self.size) + 1

    def lowest(self, s: int) -> int:
        """Number of births within ``s``, at least."""
        return self.highest(s) if self.inside else min(s, self.size) + 1


Volumes: TypeAlias = DiagramVolumes | BirthVolumes
# One dimension: its finite points, and in dimension 0 the birth of the essential component.
Part: TypeAlias = tuple[DiagramVolumes, *tuple[BirthVolumes, ...]]
# First and last levels of consecutive blocks.
Blocks: TypeAlias = list[tuple[int, int]]


@lru_cache(maxsize=32)
def error_level(
    groups: tuple[tuple[Volumes, ...], ...], table: DecayTable, confidence: float
) -> int | None:
    """Smallest level that the distances of all parts stay within, or None.

    Each group is a tuple of volumes of parts that share one draw, by the weights of the table.
    """
    blocks = _blocks(table.n_levels)
    tails = [_tails(group, table, blocks) for group in groups]
    allowed = _allowed(confidence)
    levels = (last for _, last in blocks)
    return next((r for r, *p in zip(levels, *tails, strict=True) if sum(p) <= allowed), None)


@lru_cache(maxsize=32)
def noise_level(
    part: DiagramVolumes, others: tuple[Volumes, ...], table: DecayTable, confidence: float
) -> int | None:
    """Smallest half persistence that no private point of a part without long points exceeds.

    In steps, or None. The ``others`` are the volumes of the parts that share its draw.
    """
    blocks = _blocks(table.n_levels)
    most, least = _weights(others, table, blocks)
    wide = [part.near_diagonal(b + part.floor) for _, b in blocks]
    inside = [part.near_diagonal(a) if a >= part.floor else 0 for a, _ in blocks]
    # Sums over all later blocks.
    spread = _sums_from([h * w for h, w in zip(most, wide, strict=True)])
    most, later = (
        _sums_from(most),
        _sums_from([w if a >= part.floor else 0 for w, (a, _) in zip(least, blocks, strict=True)]),
    )
    within = [*accumulate(w * v for w, v in zip(least, inside, strict=True))]
    allowed, first = _allowed(confidence), 0
    for i, (_, t) in enumerate(blocks):
        # The first block whose balls reach further than t.
        while first < len(blocks) and blocks[first][1] + part.floor <= t:
            first += 1
        near = part.near_diagonal(t)
        beyond = spread[first] - near * most[first]
        if _rounded_up(beyond, beyond + within[i] + near * later[i + 1]) <= allowed:
            return t
    return None


def _blocks(n_levels: int) -> Blocks:
    """First and last levels of consecutive blocks."""
    blocks, first = [], 0
    while first < n_levels:
        length = 1 if first < _SINGLE_LEVELS else first // _LEVELS_PER_LENGTH
        blocks.append((first, min(first + length, n_levels) - 1))
        first += length
    return blocks


def _weights(
    group: Sequence[Volumes], table: DecayTable, blocks: Blocks
) -> tuple[list[int], list[int]]:
    """Weights of the balls of the levels of each block together, at most and at least."""
    masses = [table.weight(a) - table.weight(b + 1) for a, b in blocks]
    most = [m * prod(p.highest(b) for p in group) for m, (_, b) in zip(masses, blocks, strict=True)]
    least = [m * prod(p.lowest(a) for p in group) for m, (a, _) in zip(masses, blocks, strict=True)]
    return most, least


def _tails(group: Sequence[Volumes], table: DecayTable, blocks: Blocks) -> list[int]:
    """Bounds of the probabilities that the distance is beyond the last level of each block."""
    most, least = _weights(group, table, blocks)
    spread, within = _sums_from(most), [*accumulate(least)]
    tails = []
    for i, (_, r) in enumerate(blocks):
        # Balls of later levels hold that of this one, too.
        ball = table.weight(r + 1) * prod(part.lowest(r) for part in group)
        tails.append(_rounded_up(spread[i + 1] - ball, spread[i + 1] + within[i]))
    return tails


def _sums_from(values: Sequence[int]) -> list[int]:
    """Sums of all values from each place on, zero at the end."""
    return [*accumulate(reversed(values), initial=0)][::-1]


def _rounded_up(part: int, whole: int) -> int:
    """Ratio of integers as a multiple of a power of one half, from above; at most one."""
    return (
        min(-(-(part << _PROBABILITY_BITS) // whole), 1 << _PROBABILITY_BITS)
        if whole > 0
        else 1 << _PROBABILITY_BITS
    )


def _allowed(confidence: float) -> int:
    """Probability of being wrong as a multiple of that power of one half, from below."""
    return math.floor((1 - Fraction(confidence)) * 2**_PROBABILITY_BITS)

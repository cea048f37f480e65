"""What private diagrams can show, from public numbers."""

import math
from collections.abc import Sequence
from itertools import chain
from numbers import Integral, Number

from sklearn.base import clone

from sklearn_dptda.persistence._ball_volumes import BirthVolumes, DiagramVolumes
from sklearn_dptda.persistence._base_persistence import BaseGridPersistence, check_dimensions
from sklearn_dptda.persistence._error_levels import error_level, noise_level
from sklearn_dptda.persistence._least_epsilon import least_epsilon
from sklearn_dptda.persistence._mechanisms import mechanism_of
from sklearn_dptda.persistence._public_numbers import check_confidence, check_positive
from sklearn_dptda.privacy._parameters import quoted


def bottleneck_error_bound(
    private: BaseGridPersistence,
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
        Points longer than the floor in each dimension, at most; the component
        that never dies is not counted.
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
    setting = _Setting(private, sensitivity, upper, n_features, floor, inside)
    if setting.is_exact:
        return 0.0
    groups = tuple(tuple(chain.from_iterable(group)) for group in setting.groups())
    r = error_level(groups, setting.table, _checked(confidence))
    # Half a step of rounding on the way to the grid.
    return math.inf if r is None else (r + 0.5) * setting.grid.step


def noise_floor(
    private: BaseGridPersistence,
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
    setting = _Setting(private, sensitivity, upper, n_features, floor)
    if setting.is_exact:
        return (0.0,) * len(setting.dimensions)
    confidence, floors = _checked(confidence), []
    for group in setting.groups():
        for i, (part, *birth) in enumerate(group):
            others = (*birth, *chain.from_iterable(group[:i] + group[i + 1 :]))
            r = noise_level(part.without_long(), others, setting.table, confidence)
            # Lengths are whole steps: half of one for the rounding of floats.
            floors.append(math.inf if r is None else (2 * r + 0.5) * setting.grid.step)
    return tuple(floors)


def epsilon_for_error(
    error: float,
    private: BaseGridPersistence,
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
    options = {
        "confidence": confidence,
        "n_features": n_features,
        "floor": sensitivity if floor is None else floor,
        "inside": inside,
    }

    def suffices(epsilon):
        return bottleneck_error_bound(_at(private, epsilon), sensitivity, upper, **options) <= error

    return least_epsilon(suffices, sensitivity, upper)


class _Setting:
    """Grid, weights of levels, and volumes of all parts of one release."""

    def __init__(self, private, sensitivity, upper, n_features, floor, inside=False):
        check_positive(sensitivity=sensitivity, upper=upper)
        if private.mechanism != "exact":
            raise ValueError("mechanism='mcmc' has no error bound: its law is not known.")
        floor = sensitivity if floor is None else floor
        if not 0 <= floor < math.inf:
            raise ValueError(f"floor must be a number from 0 on; got {quoted(floor)}.")
        self.dimensions, _ = check_dimensions(private.homology_dimensions)
        most = _checked_numbers(n_features, len(self.dimensions))
        mechanism = mechanism_of(private, self.dimensions)
        self.is_exact = mechanism is None
        if self.is_exact:
            return
        mechanism.check(sensitivity, upper)
        self._joint = mechanism.joint
        self.grid, self.table = mechanism.prepare(sensitivity, upper)
        measure = mechanism.measure(sensitivity, upper)
        # Half a step of rounding in half persistence.
        steps = min(math.ceil(floor / self.grid.step + 0.5), self.grid.size)
        self._parts = [
            (
                DiagramVolumes(measure, j, steps, inside),
                *([BirthVolumes(self.grid.size, inside)] if q == 0 else []),
            )
            for q, j in zip(self.dimensions, most, strict=True)
        ]

    def groups(self):
        """Parts of one dimension each, by the draw that they share."""
        return [self._parts] if self._joint else [[part] for part in self._parts]


def _at(private, epsilon):
    return clone(private).set_params(epsilon=epsilon)


def _checked(confidence):
    check_confidence(confidence)
    return float(confidence)


def _checked_numbers(n_features, n_dimensions):
    alone = isinstance(n_features, Number)
    numbers = [n_features] * n_dimensions if alone else list(n_features)
    if len(numbers) != n_dimensions or any(not isinstance(j, Integral) or j < 0 for j in numbers):
        raise ValueError(
            f"n_features must be a number from 0 on, or one for each of {n_dimensions} homology "
            f"dimensions; got {quoted(n_features)}."
        )
    return [int(j) for j in numbers]

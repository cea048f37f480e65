"""What private diagrams show: the errors of a fitted estimator in numbers and words, and flags.

Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.persistence._error_bounds import (
    bottleneck_error_bound,
    epsilon_for_error,
    error_bounds_of_caps,
    noise_floor,
)
from sklearn_dptda.persistence._private_cap import Public
from sklearn_dptda.persistence._private_grid_persistence import GridFunction
from sklearn_dptda.privacy import NoiseWarning
from sklearn_dptda.privacy._warnings import warn_caller

# Longest persistence that a feature may have, as a share of the range of a function: births are not
# at zero, nor deaths at its end.
VISIBLE_SHARE = 0.9
# Homology classes by dimension; others are named by their number.
FEATURE_NAMES = {0: "component", 1: "loop", 2: "void"}
# Sensitivity, upper bound, error of a lattice, and smaller caps: the public numbers of a function.
_Numbers = tuple[float, float, float, tuple[Public, ...]]


def beyond_noise(diagram: ArrayLike, error_bound: float, *, dimension: int) -> BoolArray:
    """Which points of a private diagram are no noise.

    Those that persist longer than twice the error bound, and the essential
    component. Where the bound holds, each is near a feature:
    post-processing of the release, at no cost.

    Parameters
    ----------
    diagram : array-like of shape (n, 2)
        A private diagram of one dimension.
    error_bound : float
        From :func:`bottleneck_error_bound`, or ``error_bound_`` of a fitted
        :class:`PrivatePersistence`.
    dimension : int
        Homology dimension. In dimension 0 the longest of those that die last
        is the essential component.

    Returns
    -------
    ndarray of shape (n,), dtype=bool

    Examples
    --------
    >>> from sklearn_dptda.persistence import beyond_noise
    >>> beyond_noise([[0.1, 0.9], [0.3, 0.5], [0.2, 0.3]], 0.2, dimension=1)
    array([ True, False, False])
    """
    lengths, oldest = _lengths(diagram, dimension)
    beyond = lengths > 2 * error_bound
    beyond[oldest] = True
    return beyond


def not_empty(diagram: ArrayLike, noise_floor: float, *, dimension: int) -> bool:
    """Whether a private diagram shows that the exact one has something.

    So it is if a point persists longer than the noise floor; the essential
    component does not count. Which point it is, and where, the floor
    does not say: :func:`beyond_noise` does.

    Parameters
    ----------
    diagram : array-like of shape (n, 2)
        A private diagram of one dimension.
    noise_floor : float
        That of this dimension, from :func:`noise_floor` or ``noise_floor_`` of
        a fitted :class:`PrivatePersistence`.
    dimension : int
        Homology dimension.

    Returns
    -------
    bool

    Examples
    --------
    >>> from sklearn_dptda.persistence import not_empty
    >>> not_empty([[0.1, 0.9], [0.3, 0.5]], 0.4, dimension=1)
    True
    """
    lengths, oldest = _lengths(diagram, dimension)
    return bool(np.delete(lengths, oldest).max(initial=0.0) > noise_floor)


def _lengths(diagram: ArrayLike, dimension: int) -> tuple[FloatArray, IntArray]:
    """Persistences, and the place of the essential component, as an array of one or none."""
    diagram = np.asarray(diagram, dtype=float).reshape(-1, 2)
    lengths = diagram[:, 1] - diagram[:, 0]
    last = np.lexsort((-lengths, -diagram[:, 1]))[:1]
    return lengths, last if dimension == 0 else last[:0]


def errors_of_fit(
    private: BaseEstimator, functions: Sequence[GridFunction]
) -> tuple[float | None, tuple[float, ...] | None, str]:
    """Error bound and noise floors at 95 %, and both in words; None where they are not known.

    The largest over the functions, of which only public numbers count. Warns where nothing can be
    seen.
    """
    dimensions = private.homology_dimensions_
    if math.isinf(private.epsilon):
        return 0.0, (0.0,) * len(dimensions), "The diagrams are exact."
    warn_of_lattice(functions)
    if private.mechanism != "exact":
        return None, None, "A Markov chain that is stopped has no known law, and no error bound."
    public = tuple(sorted({(*f[1:4], tuple(f.caps[1:])) for f in functions}))
    setting = _Setting.of(private)
    errors, floors = zip(*(_errors(setting, numbers) for numbers in public), strict=True)
    if all(2 * e >= VISIBLE_SHARE * p[1] for e, p in zip(errors, public, strict=True)):
        warn_of_noise("diagrams", private.epsilon, _epsilon_that_shows(setting, public))
    error, highest = max(errors), tuple(map(max, zip(*floors, strict=True)))
    return error, highest, statement(error, highest, dimensions)


def errors_of_release(
    private: BaseEstimator, functions: Sequence[GridFunction], caps: Sequence[float]
) -> list[float]:
    """Error bounds at 95 % under the caps that were drawn; NaN where they are not known."""
    if math.isinf(private.epsilon):
        return [0.0] * len(caps)
    if private.mechanism != "exact":
        return [math.nan] * len(caps)
    errors = []
    for function, cap in zip(functions, caps, strict=True):
        off = function.approximation_error
        short = _short(private, function.sensitivity, off, ())
        bounds = error_bounds_of_caps(
            private,
            function.caps,
            confidence=0.95,
            n_features=short["n_features"],
            floor=short["floor"],
        )
        uppers = [upper for _, upper in function.caps]
        errors.append(off + bounds[uppers.index(cap)])
    return errors


def statement(error: float, floors: Sequence[float], dimensions: Sequence[int]) -> str:
    """Bound and floors as sentences."""
    names = [FEATURE_NAMES.get(q, f"class of H{q}") for q in dimensions]
    empty = "; ".join(
        f"no {name} that lives longer than {floor:.3g} where there is none"
        for name, floor in zip(names, floors, strict=True)
    )
    if math.isinf(error):
        return f"No feature is sure to survive. With 95 % probability each, noise shows {empty}."
    return (
        f"With 95 % probability all points move by at most {error:.3g}, where no diagram has more "
        f"than two features that stand out: a {' or '.join(names)} survives that lives longer than "
        f"{2 * error:.3g}. As likely each, noise shows {empty}."
    )


def _short(
    private: BaseEstimator, sensitivity: float, off: float, caps: Sequence[Public]
) -> dict[str, Any]:
    """Class of diagrams that statements are about: what is short on a lattice was no feature."""
    most = min(2, private.max_points)
    return {"n_features": most, "floor": sensitivity + off, "smaller_caps": caps}


@dataclass(frozen=True)
class _Setting:
    """An estimator with the parameters that errors depend on, by which it is known."""

    parameters: str
    private: BaseEstimator = field(compare=False)

    @classmethod
    def of(cls, private: BaseEstimator) -> Self:
        alone = clone(private).set_params(accountant=None, random_state=None, n_jobs=None)
        return cls(repr(sorted(alone.get_params(deep=False).items())), alone)


@lru_cache(maxsize=64)
def _errors(setting: _Setting, numbers: _Numbers) -> tuple[float, tuple[float, ...]]:
    """Error bound and noise floors of a function of these public numbers."""
    sensitivity, upper, off, caps = numbers
    short = _short(setting.private, sensitivity, off, caps)
    error = off + bottleneck_error_bound(setting.private, sensitivity, upper, **short)
    return error, noise_floor(setting.private, sensitivity, upper, **short)


@lru_cache(maxsize=64)
def _epsilon_that_shows(
    setting: _Setting, public: tuple[_Numbers, ...]
) -> tuple[float, float] | None:
    """Least epsilon at which a quarter of the range is sure to survive, and its length; or None."""
    private, needed = setting.private, []
    for sensitivity, upper, off, caps in public:
        short = _short(private, sensitivity, off, caps)
        if off < upper / 8:
            epsilon = epsilon_for_error(upper / 8 - off, private, sensitivity, upper, **short)
            needed.append((epsilon, upper / 4))
    return min(needed, default=None)


def warn_of_noise(what: str, epsilon: float, enough: tuple[float, float] | None) -> None:
    """Warn, before the payment, of a release that is sure to show no feature within its range.

    ``enough`` is an epsilon and the length of features that are shown from there on, or None.
    """
    remedy = "Raise m, or take more points."
    if enough is not None:
        remedy = (
            "Raise epsilon, or m, or take more points: a feature of persistence "
            f"{enough[1]:.3g} is sure to be seen from epsilon={enough[0]:.2g} on."
        )
    warn_caller(
        f"At epsilon={epsilon:g} the noise hides every feature: no feature within the range of the "
        f"function is sure to be seen in {what}. {remedy}",
        NoiseWarning,
    )


def warn_of_lattice(functions: Sequence[GridFunction]) -> None:
    """Warn where points or distances were rounded by more than one record can change values."""
    worst = max(functions, key=lambda function: function.approximation_error / function.sensitivity)
    if worst.approximation_error > worst.sensitivity:
        what = "Points were moved to a lattice"
        remedy = "Take a higher refinement, or method='exact' of points."
        if worst.complex is not None:
            what = "Distances were rounded to be counted"
            remedy = "Shorter features say nothing. Of a cloud in memory, pass the points."
        warn_caller(
            f"{what}: values are off by up to {worst.approximation_error:.2g}, which is more than "
            f"the sensitivity, {worst.sensitivity:.2g}. {remedy}",
        )

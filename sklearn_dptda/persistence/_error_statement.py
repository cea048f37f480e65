"""Errors of private diagrams in numbers and sentences, and tests of released points.

Proof: doc/theory/error_bounds.md, "Bounds of the weights".
Proof: doc/theory/error_bounds.md, "The noise floor".
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.persistence._error_bounds import DiagramErrors
from sklearn_dptda.persistence._mechanisms import ExactMechanism, mechanism_of
from sklearn_dptda.persistence._private_grid_persistence import GridFunction
from sklearn_dptda.privacy import NoiseWarning
from sklearn_dptda.privacy._warnings import warn_caller

# Longest persistence that a feature may have, as a share of the range of a function. Births are
# above zero, and deaths are below the upper bound.
VISIBLE_SHARE = 0.9
# Relative error of the epsilon that a warning recommends.
_PART_OF_ADVICE = 0.1
# Names of homology classes by dimension. Others are named by their number.
FEATURE_NAMES = {0: "component", 1: "loop", 2: "void"}


def beyond_noise(diagram: ArrayLike, error_bound: float, *, dimension: int) -> BoolArray:
    """Find the points of a private diagram that are not noise.

    These are the points whose persistence exceeds twice the error bound, and the essential
    component. If the error bound holds, each of them is close to a feature of the exact
    diagram. This is post-processing, so it costs no privacy.

    Parameters
    ----------
    diagram : array-like of shape (n, 2)
        A private diagram of one dimension: births and deaths.
    error_bound : float
        The bound from :class:`DiagramErrors`, or ``error_bound_`` of a fitted
        :class:`PrivatePersistence`, in the units of the diagram.
    dimension : int
        Homology dimension of the diagram. In dimension 0, the longest of the points with the
        largest death is the essential component.

    Returns
    -------
    ndarray of shape (n,), dtype=bool
        True for points that are not noise.

    See Also
    --------
    not_empty : Tests with a lower threshold whether there is any feature.

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
    """Test whether a private diagram shows that the exact diagram has a feature.

    This is the case if a point persists longer than the noise floor. The essential component
    is not counted. The test does not say which point is a feature, or where the feature is;
    :func:`beyond_noise` does. This is post-processing, so it costs no privacy.

    Parameters
    ----------
    diagram : array-like of shape (n, 2)
        A private diagram of one dimension: births and deaths.
    noise_floor : float
        The noise floor of this dimension, from :class:`DiagramErrors` or from ``noise_floor_``
        of a fitted :class:`PrivatePersistence`, in the units of the diagram.
    dimension : int
        Homology dimension of the diagram. In dimension 0, the longest of the points with the
        largest death is the essential component.

    Returns
    -------
    bool
        True if there is a feature, with the confidence of the noise floor.

    Examples
    --------
    >>> from sklearn_dptda.persistence import not_empty
    >>> not_empty([[0.1, 0.9], [0.3, 0.5]], 0.4, dimension=1)
    True
    """
    lengths, oldest = _lengths(diagram, dimension)
    return bool(np.delete(lengths, oldest).max(initial=0.0) > noise_floor)


def _lengths(diagram: ArrayLike, dimension: int) -> tuple[FloatArray, IntArray]:
    """Return the persistences, and an array with the index of the essential component, if any."""
    diagram = np.asarray(diagram, dtype=float).reshape(-1, 2)
    lengths = diagram[:, 1] - diagram[:, 0]
    last = np.lexsort((-lengths, -diagram[:, 1]))[:1]
    return lengths, last if dimension == 0 else last[:0]


def errors_of_fit(
    private: BaseEstimator, functions: Sequence[GridFunction]
) -> tuple[float | None, tuple[float, ...] | None, str]:
    """Return the error bound and noise floors at 95 % confidence, and a statement of both.

    The numbers are the largest over the functions, and depend only on public numbers. They are None
    if they are unknown. Warns if no feature is sure to be visible.
    """
    dimensions = private.homology_dimensions_
    if math.isinf(private.epsilon):
        return 0.0, (0.0,) * len(dimensions), "The diagrams are exact."
    warn_of_lattice(functions)
    if not isinstance(mechanism_of(private, dimensions), ExactMechanism):
        return None, None, "There is no error bound, because the law of a Markov chain is unknown."
    errors = frozenset(_errors_of(private, functions))
    if all(2 * each.bound >= VISIBLE_SHARE * each.caps[0][1] for each in errors):
        # Without the epsilon, so that a search over epsilon computes the advice once.
        of_any = frozenset(each.at(1.0) for each in errors)
        warn_of_noise("diagrams", private.epsilon, _epsilon_that_shows(of_any))
    error = max(each.bound for each in errors)
    highest = tuple(map(max, zip(*(each.noise_floors for each in errors), strict=True)))
    return error, highest, statement(error, highest, dimensions)


def errors_of_release(
    private: BaseEstimator, functions: Sequence[GridFunction], caps: Sequence[float]
) -> list[float]:
    """Return error bounds at 95 % confidence under the caps that were drawn; NaN if unknown."""
    if math.isinf(private.epsilon):
        return [0.0] * len(caps)
    if not isinstance(mechanism_of(private, private.homology_dimensions_), ExactMechanism):
        return [math.nan] * len(caps)
    return [
        each.bounds[[upper for _, upper in each.caps].index(cap)]
        for each, cap in zip(_errors_of(private, functions), caps, strict=True)
    ]


def _errors_of(private: BaseEstimator, functions: Sequence[GridFunction]) -> list[DiagramErrors]:
    """Return the errors that statements are about, for each function."""
    # The cache must not keep an accountant.
    alone = clone(private).set_params(accountant=None, random_state=None, n_jobs=None)
    most = min(2, private.max_points)
    return [
        _known(DiagramErrors(alone, tuple(f.caps), n_features=most, moved=f.approximation_error))
        for f in functions
    ]


@lru_cache(maxsize=64)
def _known(errors: DiagramErrors) -> DiagramErrors:
    """Return the first of equal objects, which may have computed its bounds already."""
    return errors


@lru_cache(maxsize=64)
def _epsilon_that_shows(errors: frozenset[DiagramErrors]) -> tuple[float, float] | None:
    """Return the least epsilon, to within 10 %, that shows a quarter of the range; or None.

    The length of that quarter is returned as well.
    """
    uppers = [(each, each.caps[0][1]) for each in errors]
    needed = [(each.epsilon_for(upper / 8, _PART_OF_ADVICE), upper / 4) for each, upper in uppers]
    return min((pair for pair in needed if pair[0] < math.inf), default=None)


def statement(error: float, floors: Sequence[float], dimensions: Sequence[int]) -> str:
    """Describe the error bound and the noise floors in sentences."""
    names = [FEATURE_NAMES.get(q, f"class of H{q}") for q in dimensions]
    empty = "; ".join(
        f"no {name} with a persistence above {floor:.3g} if there is none"
        for name, floor in zip(names, floors, strict=True)
    )
    if math.isinf(error):
        return (
            "No feature is sure to survive the noise. With 95 % probability each, noise shows "
            f"{empty}."
        )
    return (
        f"With 95 % probability, all points move by at most {error:.3g}, provided that no diagram "
        f"has more than two features that stand out. A {' or '.join(names)} with a persistence "
        f"above {2 * error:.3g} then survives. With 95 % probability each, noise shows {empty}."
    )


def warn_of_noise(what: str, epsilon: float, enough: tuple[float, float] | None) -> None:
    """Warn, before any budget is spent, if no feature within the range is sure to be visible.

    ``enough`` is a sufficient epsilon and the length of the features that are visible from there
    on, or None.
    """
    remedy = "Raise m, use more points, or release the cloud by PrivateCloud."
    if enough is not None:
        remedy = (
            "Raise epsilon or m, use more points, or release the cloud by PrivateCloud, which "
            "shows more where noise is large. A feature of persistence "
            f"{enough[1]:.3g} is sure to be visible from epsilon={enough[0]:.2g} on."
        )
    warn_caller(
        f"At epsilon={epsilon:g}, the noise hides every feature: no feature within the range of "
        f"the function is sure to be visible in {what}. {remedy}",
        NoiseWarning,
    )


def warn_of_lattice(functions: Sequence[GridFunction]) -> None:
    """Warn if rounding points or distances changes values by more than one record can."""
    worst = max(functions, key=lambda function: function.approximation_error / function.sensitivity)
    if worst.approximation_error > worst.sensitivity:
        what = "Points were moved to a lattice"
        remedy = "Raise refinement, or use method='exact' if the records are points."
        if worst.complex is not None:
            what = "Distances were rounded for a histogram"
            remedy = (
                "Features shorter than that are not meaningful. If the cloud fits into memory, "
                "pass the points instead of a histogram."
            )
        warn_caller(
            f"{what}, so values have an error of up to {worst.approximation_error:.2g}, which is "
            f"more than the sensitivity, {worst.sensitivity:.2g}. {remedy}",
        )

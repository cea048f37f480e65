"""What a fitted private estimator of diagrams says about its errors, in numbers and words."""

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import BoolArray
from sklearn_dptda.persistence._error_bounds import (
    bottleneck_error_bound,
    epsilon_for_error,
    noise_floor,
)
from sklearn_dptda.privacy import NoiseWarning

_NAMES = {0: "component", 1: "loop", 2: "void"}
# Where the noise hides everything, the epsilon is named that shows features of this part of the
# range: half persistence.
_SHOWN = 1 / 8


def errors_of_fit(private, X, read):
    """Error bound and noise floors at 95 %, and both in words; None where they are not known.

    The largest over the filtrations ``X``, of which ``read`` lists values, sensitivities and
    bounds of the values; only public numbers count. Warns where nothing can be seen.
    """
    dimensions = private.homology_dimensions_
    if math.isinf(private.epsilon):
        return 0.0, (0.0,) * len(dimensions), "The diagrams are exact."
    off = max(getattr(item, "approximation_error", 0.0) for item in X)
    public = sorted({(sensitivity, upper) for _, sensitivity, upper in read})
    if off > max(sensitivity for sensitivity, _ in public):
        warn_of_lattice(off)
    if private.mechanism != "exact":
        return None, None, "A Markov chain that is stopped has no known law, and no error bound."
    warn_of_noise(private, public)
    error = off + max(bottleneck_error_bound(private, *numbers) for numbers in public)
    floors = zip(*(noise_floor(private, *numbers) for numbers in public), strict=True)
    # Where a cloud has nothing, its lattice may have something as long.
    floors = tuple(2 * off + max(column) for column in floors)
    return error, floors, statement(error, floors, dimensions)


def statement(error, floors, dimensions):
    """Bound and floors as sentences."""
    names = [_NAMES.get(q, f"class of H{q}") for q in dimensions]
    empty = "; ".join(
        f"no {name} that lives longer than {floor:.3g} where there is none"
        for name, floor in zip(names, floors, strict=True)
    )
    if math.isinf(error):
        return f"No feature is sure to survive. With 95 % probability the noise shows {empty}."
    return (
        f"With 95 % probability all points move by at most {error:.3g}, where no diagram has more "
        f"than two features that stand out: a {' or '.join(names)} survives that lives longer than "
        f"{2 * error:.3g}. As likely, noise shows {empty}."
    )


def warn_of_noise(private, public):
    """Warn, before the payment, where nothing can be seen of any filtration."""
    favourable = {"n_features": 1, "floor": 0.0, "inside": True}
    needed = []
    for sensitivity, upper in public:
        if bottleneck_error_bound(private, sensitivity, upper, **favourable) < upper / 2:
            return
        needed.append(epsilon_for_error(upper * _SHOWN, private, sensitivity, upper, **favourable))
    warnings.warn(
        f"At epsilon={private.epsilon:g} the noise hides every feature: diagrams will be all "
        "noise, or empty. Raise epsilon, or m, or take more points. One feature that lives for a "
        f"quarter of the range is seen from epsilon={min(needed):.2g} on.",
        NoiseWarning,
        stacklevel=5,
    )


def warn_of_lattice(error):
    """Warn where points were moved to a lattice by more than one of them can change values."""
    warnings.warn(
        f"Points were moved to a lattice: values are off by up to {error:.2g}, which is more than "
        "the sensitivity. Take method='exact', or a higher refinement.",
        stacklevel=5,
    )


def beyond_noise(
    diagram: ArrayLike, error_bound: float, noise_floor: float, *, dimension: int
) -> BoolArray:
    """Which points of a private diagram are no noise.

    Those that persist longer than twice the error bound, and the longest one
    if it is above the noise floor; so is the component that never dies. Where
    the two numbers hold, all of these are there, with the probability that
    they were computed for: post-processing of the release, at no cost.

    Parameters
    ----------
    diagram : array-like of shape (n, 2)
        A private diagram of one dimension.
    error_bound : float
        From :func:`bottleneck_error_bound`, or ``error_bound_`` of a fitted
        :class:`PrivatePersistence`.
    noise_floor : float
        That of this dimension, from :func:`noise_floor` or ``noise_floor_``.
    dimension : int
        Homology dimension. In dimension 0 one component never dies.

    Returns
    -------
    ndarray of shape (n,), dtype=bool

    Examples
    --------
    >>> from sklearn_dptda.persistence import beyond_noise
    >>> beyond_noise([[0.1, 0.9], [0.3, 0.5], [0.2, 0.3]], 0.2, 0.15, dimension=1)
    array([ True, False, False])
    """
    diagram = np.asarray(diagram, dtype=float).reshape(-1, 2)
    lengths = diagram[:, 1] - diagram[:, 0]
    beyond = lengths > 2 * error_bound
    # From the longest down; nothing outlives the component that never dies.
    order = np.lexsort((-lengths, -diagram[:, 1])) if dimension == 0 else np.argsort(-lengths)
    if dimension == 0:
        beyond[order[:1]] = True
        order = order[1:][np.argsort(-lengths[order[1:]], kind="stable")]
    beyond[order[:1]] |= lengths[order[:1]] > noise_floor
    return beyond

"""Noise whose density falls with a norm, on a lattice."""

import math
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import Bounds, FloatArray, RandomStateLike
from sklearn_dptda.metric_privacy._choice_mechanism import MetricMechanism
from sklearn_dptda.metric_privacy._metric_guarantee import MetricPrivacyGuarantee
from sklearn_dptda.privacy import FixedPoint, PrivacyAccountant
from sklearn_dptda.privacy._rounding import ROUND_UP
from sklearn_dptda.utils import check_bounds
from sklearn_dptda.utils._rows import check_rows
from sklearn_dptda.utils._sklearn import StrOptions, _fit_context

_ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
# Lattice steps per unit of the noise.
_BITS = 20
# Balls of more dimensions are too small a part of their cubes to be hit.
_MOST_ROUND = 10
_BATCH = 1 << 16


class KNormMechanism(MetricMechanism):
    """Add noise to points under metric privacy, its density falling with the distance.

    Points of a plane: *geo-indistinguishability*. The mean distance of a
    release is ``n_features / alpha``.

    Parameters
    ----------
    alpha : float, default=1.0
        Privacy loss per unit of distance.
    norm : {"l1", "l2", "linf"}, default="l2"
        Of the distance; ``"l2"`` in at most ten dimensions.
    bounds : pair of float or array-like, default=None
        Public box. Points are clipped to it before and after the noise, and
        the loss between any two of them is bounded. None: no box.
    accountant : PrivacyAccountant, default=None
        Charged with ``alpha`` times the diameter of the box for each release.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws from the operating system's entropy; a seed is for tests and
        study only.

    Attributes
    ----------
    resolution_ : float
        Step of the lattice of points.
    privacy_guarantee_ : MetricPrivacyGuarantee
        What each release promises.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where they have names.

    See Also
    --------
    MetricExponentialMechanism : Public candidates instead of noise.

    Notes
    -----
    .. rubric:: Privacy

    One release is a point for each record. Moving one record by a distance
    ``r`` changes the logarithm of the probability of any release by at most
    ``alpha * (r + resolution)``, the resolution of the guarantee being a
    lattice cell and a step, about a millionth of the noise: points are rounded
    to the lattice, on which the noise is exact and which floating-point
    numbers cannot betray. ``epsilon`` of the guarantee is that at the diameter
    of the box.

    An integer radius ``k`` is drawn with probability proportional to
    ``(2 k + 1) ** n_features * exp(-alpha * step * k)``, and a point of the
    cube of that radius; in the Euclidean norm again, until it lies in the
    ball. In the sum norm coordinates are independent.

    References
    ----------
    M. Hardt, K. Talwar, "On the geometry of differential privacy"; M. Andres
    et al., "Geo-indistinguishability"; Boedihardjo, Strohmer, Vershynin,
    Section 6, Example 1.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import KNormMechanism
    >>> places = [[0.2, 0.3], [0.25, 0.3]]
    >>> private = KNormMechanism(alpha=20.0, bounds=(0, 1), random_state=0).fit(places)
    >>> private.transform(places).shape
    (2, 2)
    """

    _parameter_constraints = {
        **MetricMechanism._parameter_constraints,
        "norm": [StrOptions(set(_ORDERS))],
        "bounds": ["array-like", None],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        norm: Literal["l1", "l2", "linf"] = "l2",
        *,
        bounds: Bounds | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.alpha = alpha
        self.norm = norm
        self.bounds = bounds
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the input; nothing is learnt from it, nothing is released.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the input or a parameter is refused.
        """
        X = check_rows(self, X)
        d = X.shape[1]
        if self.norm == "l2" and d > _MOST_ROUND:
            raise ValueError(
                f"norm='l2' takes at most {_MOST_ROUND} columns; got {d}. Use 'linf' or 'l1'."
            )
        self._lattice = FixedPoint(math.frexp(1 / self.alpha)[1] - 1 - _BITS)
        self.resolution_ = self._lattice.step
        self._box = None if self.bounds is None else check_bounds(self.bounds, d)
        if self._box is not None:
            try:
                self._lattice.encode(np.array(self._box))
            except ValueError:
                raise ValueError("bounds are too wide for alpha.") from None
        diameter = (
            math.inf
            if self._box is None
            else float(np.linalg.norm(self._box[1] - self._box[0], _ORDERS[self.norm]))
        )
        # Rounding moves two points by a cell, and a norm up to the next whole number.
        cell = float(np.linalg.norm(np.ones(d), _ORDERS[self.norm]))
        slack = (cell + 1) * self.resolution_ * (1 + 1e-9)
        self._parameters_at_fit = self._parameters()
        self.privacy_guarantee_ = MetricPrivacyGuarantee(
            epsilon=float(self.alpha) * (diameter + slack),
            delta=0.0,
            adjacency="replace-one",
            unit="one point",
            mechanism=f"K-norm mechanism of the {self.norm} norm",
            released="a point for each record",
            seeded=self.random_state is not None,
            alpha=float(self.alpha),
            metric=f"{self.norm} distance",
            diameter=diameter,
            resolution=slack,
        )
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Pay, and add noise to each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Each row is a record.

        Returns
        -------
        ndarray of shape (n_samples, n_features)

        Raises
        ------
        ValueError
            If the input is refused, a parameter has changed since ``fit``, or
            there is an accountant and no box. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        if self._box is not None:
            X = np.clip(X, *self._box)
        try:
            steps = self._lattice.encode(X)
        except ValueError:
            raise ValueError("X is too far out for alpha: give bounds.") from None
        noise = self._pay()
        rate = float(self.alpha) * self.resolution_
        moved = self._lattice.decode(steps + lattice_noise(noise, rate, X.shape, self.norm))
        return moved if self._box is None else np.clip(moved, *self._box)


def lattice_noise(noise, rate, shape, norm):
    """Integer vectors with probabilities proportional to ``exp(-rate * norm)``.

    Parameters
    ----------
    noise : NoiseSource
    rate : float
    shape : tuple (n_vectors, n_dims)
    norm : {"l1", "l2", "linf"}
        The Euclidean one is rounded up to a whole number.

    Returns
    -------
    ndarray of int64
    """
    if norm == "l1":
        # Rounded up: no loss of a last digit.
        return noise.discrete_laplace(ROUND_UP / rate, shape)
    found = []
    missing, d = shape[0], shape[1]
    while missing > 0:
        # Enough for what is kept of the cube, and little more.
        wanted = min(int(missing * _part_of_cube(norm, d) * 1.1) + 16, _BATCH)
        radii = cube_radii(noise, rate, wanted, d)
        points = _in_cubes(noise, radii, d)
        if norm == "l2":
            points = points[(points.astype(float) ** 2).sum(axis=1) <= radii.astype(float) ** 2]
        found.append(points[:missing])
        missing -= len(found[-1])
    return np.concatenate([np.empty((0, d), np.int64), *found])


def _part_of_cube(norm, d):
    """Cubes for each ball."""
    if norm == "linf":
        return 1.0
    return 2.0**d * math.gamma(d / 2 + 1) / math.pi ** (d / 2)


def cube_radii(noise, rate, size, d):
    """Integers ``k`` with probability proportional to ``(2 k + 1)**d * exp(-rate * k)``.

    Sums of ``d + 1`` geometric variables have weights ``binom(k + d, d)``; the
    ratio to the wanted ones is a product of fractions, each of which a coin
    with this probability accepts.
    """
    found, missing = [], size
    while missing > 0:
        k = sum(_geometric(noise, rate, missing) for _ in range(d + 1))
        for i in range(1, d + 1):
            # (2 k + 1) / (2 k + 2 i): exact, by integers.
            k = k[_below(noise, 2 * (k + i)) < 2 * k + 1]
        found.append(k)
        missing -= len(k)
    return np.concatenate([np.empty(0, np.int64), *found])


def _geometric(noise, rate, size):
    """Integers from zero on with probability proportional to ``exp(-rate * k)``."""
    found, missing = [], size
    while missing > 0:
        k = noise.discrete_laplace(ROUND_UP / rate, int(2.2 * missing) + 16)
        found.append(k[k >= 0][:missing])
        missing -= len(found[-1])
    return np.concatenate([np.empty(0, np.int64), *found])


def _in_cubes(noise, radii, d):
    """Uniform integer points of cubes around zero."""
    sides = np.repeat(2 * radii + 1, d)
    return _below(noise, sides).reshape(-1, d) - radii[:, None]


def _below(noise, limits):
    """Integers uniform from zero to below each limit, exactly, by rejection."""
    limits = np.asarray(limits, dtype=np.int64)
    shift = (64 - np.frexp(limits.astype(float))[1]).astype(np.uint64)
    out = np.empty(len(limits), dtype=np.int64)
    open_ = np.arange(len(limits))
    while len(open_):
        draws = (noise.words(len(open_)) >> shift[open_]).astype(np.int64)
        good = draws < limits[open_]
        out[open_[good]] = draws[good]
        open_ = open_[~good]
    return out

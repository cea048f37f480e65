"""Private profiles: the persistences of the longest features.

Proof: doc/theory/private_profiles.md, "The profile".
Proof: doc/theory/private_cap.md, "A cap by itself".
"""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainccinv
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, RandomStateLike
from sklearn_dptda.persistence._cubical import Functions
from sklearn_dptda.persistence._lifetimes import (
    LifetimeLattice,
    PrivateLifetimes,
    lifetimes_of,
    make_lattice,
)
from sklearn_dptda.persistence._private_cap import ChoiceOfCap
from sklearn_dptda.persistence._private_grid_persistence import GridFunction, pure_guarantee
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
)
from sklearn_dptda.privacy._lattice_noise import lattice_noise
from sklearn_dptda.utils._sklearn import Interval

# Rounding exact persistences down, and floating-point errors, move a number by up to these steps.
_ROUNDED_STEPS = 2


class _Drawn(NamedTuple):
    """Parameters of the draw under one cap: upper bound, noise, and half width."""

    upper: float
    lattice: LifetimeLattice | None
    rate: float
    half_width: float


@fill_doc
class PersistenceProfile(PrivateLifetimes):
    """Persistences of the longest features of each dimension, under differential privacy.

    A profile says how persistent the longest features are, in numbers with confidence
    intervals, but not when they are born. For the same accuracy, it needs a smaller
    epsilon than a private diagram.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud, for all numbers together. Smaller
        values give more privacy and wider intervals. ``inf`` gives the exact
        persistences, without privacy.
    n_longest : int, default=2
        Number of persistences to release in each dimension, from 1 to 100. The noise of
        each of them grows with their total number.
    homology_dimensions : int or sequence of int, default=(0, 1)
        Homology dimensions of the features: 0 for components, 1 for loops, 2 for voids.
    confidence : float, default=0.95
        Probability that all intervals of one cloud hold jointly, in (0, 1). It does not
        affect privacy.
    %(function_bounds)s
    %(pays_for_transform)s

    Attributes
    ----------
    half_widths_ : ndarray of shape (n_clouds,)
        Half widths of the confidence intervals for each filtration of ``fit``, from
        public numbers only.
    cap_ : ndarray of shape (n_clouds,)
        Cap of the distances under which the last :meth:`transform` measured the
        persistences of each cloud. It is part of the release; see ``max_distance`` of
        :class:`DTMFiltration`.
    release_half_widths_ : ndarray of shape (n_clouds,)
        Half widths for the last :meth:`transform`, under the caps in ``cap_``.
    privacy_guarantee_ : PrivacyGuarantee
        The guarantee of one call of :meth:`transform` for each cloud.
    homology_dimensions_ : tuple of int
        The homology dimensions as a tuple.
    single_ : bool
        Whether ``homology_dimensions`` is a single integer.

    See Also
    --------
    PrivateBettiNumbers : Counts the features that are longer than a threshold.
    PrivatePersistence : Releases whole diagrams.

    Notes
    -----
    Persistence is death minus birth, in the units of the filtration. The essential
    component is not included: in dimension 0, the first number is the persistence of the
    second component. If there are fewer than ``n_longest`` features, the remaining exact
    persistences are zero.

    .. rubric:: Privacy

    Each call of :meth:`transform` releases one row per cloud.
    %(privacy_of_functions)s

    Replacing one record changes all persistences jointly by at most twice the sensitivity
    of the filtration. If a filtration has smaller caps, and the noise is not too large, one
    fifth of ``epsilon`` is spent on the choice of a cap. A smaller cap has a smaller
    sensitivity, but shortens features above it. The noise is an integer vector whose
    probability decreases with the largest of its entries. Post-processing restores the
    decreasing order and the public range. With ``d`` numbers, the mean absolute error of
    each is at most about ``(d + 1) * sensitivity / epsilon``. The confidence intervals hold
    for every data set.

    References
    ----------
    M. Hardt, K. Talwar, "On the geometry of differential privacy", STOC 2010, for the
    noise.

    D. Cohen-Steiner, H. Edelsbrunner, J. Harer, "Stability of persistence diagrams", 2007.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dptda import DTMFiltration, PersistenceProfile
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(4000, random_state=0)
    >>> pipeline = make_pipeline(
    ...     DTMFiltration(m=0.2, bounds=(-2.5, 3)), PersistenceProfile(1.0, random_state=0)
    ... )
    >>> profile = pipeline.fit_transform([X])
    >>> print(*pipeline[-1].get_feature_names_out())
    h0_longest_1 h0_longest_2 h1_longest_1 h1_longest_2
    >>> pipeline[-1].confidence_intervals(profile).round(1)[0, 2:]
    array([[0.5, 0.6],
           [0.3, 0.4]])
    """

    _parameter_constraints = {
        **PrivateLifetimes._parameter_constraints,
        "n_longest": [Interval(Integral, 1, 100, closed="both")],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        n_longest: int = 2,
        homology_dimensions: int | Sequence[int] = (0, 1),
        *,
        confidence: float = 0.95,
        sensitivity: float | None = None,
        upper: float | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.n_longest = n_longest
        self.homology_dimensions = homology_dimensions
        self.confidence = confidence
        self.sensitivity = sensitivity
        self.upper = upper
        self.accountant = accountant
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fill_doc
    def transform(self, X: Functions) -> FloatArray:
        """Release private profiles. Each call is a new release and spends its own budget.

        Parameters
        ----------
        X : list of GridFiltration, ComplexFiltration or array-like
            The functions, one for each cloud.

        Returns
        -------
        ndarray of shape (n_clouds, n_dimensions * n_longest)
            The persistences, in decreasing order within each dimension.

        %(refused_functions)s
        """
        rows, _, paid = self._draw(X)
        self.cap_, self.release_half_widths_ = rows[:, -2:].T
        return paid.keep(rows[:, :-2], cap_=self.cap_)

    def confidence_intervals(self, profile: ArrayLike, X: Functions | None = None) -> FloatArray:
        """Compute intervals that contain all exact persistences of a cloud.

        They hold jointly with probability ``confidence``, for the persistences under the cap
        that was drawn. This is post-processing, so it costs no privacy.

        Parameters
        ----------
        profile : array-like of shape (n_clouds, n_dimensions * n_longest)
            Private profiles, as :meth:`transform` returned them.
        X : list of GridFiltration, ComplexFiltration or array-like, default=None
            The filtrations of the rows, of which only public numbers are used. The intervals
            are then as wide as under the largest cap. None uses the widths of the last
            :meth:`transform`, or those of :meth:`fit` if there was none.

        Returns
        -------
        ndarray of shape (n_clouds, n_dimensions * n_longest, 2)
            Lower and upper ends, in the units of the filtration.
        """
        check_is_fitted(self)
        latest = getattr(self, "release_half_widths_", self.half_widths_)
        rows, widths = self._rows_of_release(profile, "profile", X, latest)
        widths = widths[:, None]
        return np.stack([np.maximum(rows - widths, 0.0), rows + widths], axis=-1)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Get the names of the columns, by dimension and rank, such as ``"h1_longest_2"``.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        ranks = range(1, self.n_longest + 1)
        return np.array(
            [f"h{q}_longest_{rank}" for q in self.homology_dimensions_ for rank in ranks],
            dtype=object,
        )

    def _size(self) -> int:
        return len(self.homology_dimensions_) * int(self.n_longest)

    def _task(self) -> tuple[Any, ...]:
        return _release, dict.fromkeys(self.homology_dimensions_, int(self.n_longest))

    def _scale(self, function: GridFunction) -> tuple[ChoiceOfCap | None, list[_Drawn]]:
        choice = ChoiceOfCap.of(float(self.epsilon), function.caps)
        epsilon = float(self.epsilon) if choice is None else choice.rest
        caps = function.caps if choice is not None else function.caps[:1]
        return choice, [self._under(cap, epsilon, function.approximation_error) for cap in caps]

    def _under(self, cap: tuple[float, float], epsilon: float, moved: float) -> _Drawn:
        """Return the parameters of the draw under one cap."""
        # Birth and death both have this error.
        off = 2 * moved
        if math.isinf(epsilon):
            return _Drawn(cap[1], None, 0.0, off)
        # The scale of the noise must be many steps, because short radii are often rejected.
        lattice = make_lattice(*cap, epsilon * self._size())
        rate = epsilon / lattice.sensitivity
        width = half_width(lattice, rate, self._size(), self.confidence)
        return _Drawn(cap[1], lattice, rate, off + width)

    def _error(self, function: GridFunction) -> float:
        _, caps = self._scale(function)
        return max(each.half_width for each in caps)

    def _least_seen(self, functions: list[GridFunction]) -> FloatArray:
        # The interval of a longer feature does not contain zero.
        return 2 * self._errors(functions)

    def _set_errors(self, functions: list[GridFunction]) -> None:
        self._warn_of_noise(functions, "profiles")
        self.half_widths_ = self._errors(functions)
        # The widths of an earlier release belong to other filtrations.
        self.__dict__.pop("release_half_widths_", None)

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        names = ", ".join(self._names())
        return pure_guarantee(
            self,
            "permute-and-flip mechanism for a cap, and K-norm mechanism of the maximum norm",
            f"the {self.n_longest} longest persistences per cloud and dimension ({names}), and "
            "the cap under which they are measured",
            public_bounds,
        )


def _release(
    numbers: Mapping[int, int],
    function: GridFunction,
    choice: ChoiceOfCap | None,
    drawn: Sequence[_Drawn],
    seed: Any,
) -> FloatArray:
    """Return the profile of one filtration, its cap, and its half width; exact without a lattice.

    The draw of a cap and the call of ``noisy_profile`` are the boundary between private and public
    values.
    """
    source, diagrams = NoiseSource(seed), function.diagrams(numbers, len(drawn))
    place = 0
    if choice is not None:
        place = choice.draw(function.caps, diagrams, list(numbers), source)
    under = drawn[place]
    exact = lifetimes_of(diagrams[place], numbers, under.lattice)
    if under.lattice is None:
        profile = np.concatenate(exact)
    else:
        noisy = under.lattice.levels.decode(
            noisy_profile(exact, under.lattice.sensitivity, under.rate, source)
        )
        profile = in_order(noisy, under.upper).ravel()
    return np.r_[profile, under.upper, under.half_width]


def noisy_profile(
    lifetimes: Sequence[NDArray[Any]], change: int, rate: float, source: NoiseSource
) -> IntArray:
    """Add integer noise with probabilities ``~ exp(-rate * max |z|)`` to all lifetimes.

    One record changes a lifetime by at most ``change``.
    """

    def with_noise(steps: IntArray) -> IntArray:
        return steps + lattice_noise(source, rate, (1, steps.size), "linf").reshape(steps.shape)

    return source.cross(
        np.array(lifetimes), with_noise, metric="linf", sensitivity=change, rate=rate
    )


def in_order(profile: FloatArray, upper: float) -> FloatArray:
    """Return the nearest decreasing rows within the public bounds.

    The distance to any row that is already decreasing and within the bounds does not increase.
    """
    rows = [isotonic_regression(row, increasing=False) for row in profile]
    return np.clip(rows, 0.0, upper)


def half_width(lattice: LifetimeLattice, rate: float, size: int, confidence: float) -> float:
    """Return the error that all of ``size`` noisy persistences keep within, with this confidence.

    The tail of the discrete law is at most ``exp(rate)`` times that of the continuous one, whose
    norm is gamma distributed, because a unit cube around an integer vector is within 1/2 of it.
    """
    norm = gammainccinv(size, (1 - confidence) * math.exp(-rate))
    # The margin is a thousand times the error of the inverse.
    steps = math.ceil(norm * (1 + 1e-9) / rate - 0.5)
    return (steps + _ROUNDED_STEPS) * lattice.step

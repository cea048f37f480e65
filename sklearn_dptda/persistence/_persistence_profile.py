"""Profiles: how long the longest features live, under differential privacy.

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
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, PrivacyGuarantee
from sklearn_dptda.privacy._lattice_noise import lattice_noise
from sklearn_dptda.utils._sklearn import Interval

# Steps by which rounding the exact persistences down, and floating point, move a number.
_ROUNDED_STEPS = 2


class _Drawn(NamedTuple):
    """How persistences are drawn under one cap: its public numbers, noise, and half width."""

    sensitivity: float
    upper: float
    lattice: LifetimeLattice | None
    rate: float
    half_width: float


@fill_doc
class PersistenceProfile(PrivateLifetimes):
    """Persistences of the longest features of each dimension, under differential privacy.

    Answers "how long do the longest features live?" with numbers and
    confidence intervals, for two fifths to two thirds of the epsilon that a
    diagram of the same dimensions needs to be as accurate. When features are
    born it does not say.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud, all numbers together. ``inf``
        releases them exactly.
    n_longest : int, default=2
        How many persistences of each dimension, from 1 to 100. The error grows
        with the number of all of them together.
    homology_dimensions : int or sequence of int, default=(0, 1)
        Of which diagrams.
    confidence : float, default=0.95
        Probability that all intervals of one cloud hold at once.
    %(function_bounds)s
    %(pays_for_transform)s

    Attributes
    ----------
    half_widths_ : ndarray of shape (n_clouds,)
        For each filtration of ``fit``: with probability ``confidence`` no
        persistence of a release is further than this from the exact one, under
        the cap that is drawn. A function of public numbers.
    cap_ : ndarray of shape (n_clouds,)
        Of the last :meth:`transform`: the cap under which persistences were
        measured, itself part of the release; see ``max_distance`` of
        :class:`DTMFiltration`.
    release_half_widths_ : ndarray of shape (n_clouds,)
        Likewise, ``half_widths_`` under these caps.
    privacy_guarantee_ : PrivacyGuarantee
        What one call of :meth:`transform` promises for each cloud.
    homology_dimensions_ : tuple of int
        The dimensions as a tuple.
    single_ : bool
        Whether a single dimension was given.

    See Also
    --------
    PrivateBettiNumbers : How many features are longer than a threshold.
    PrivatePersistence : Whole diagrams.

    Notes
    -----
    Persistence is death minus birth, in the units of the filtration. Of
    dimension 0 the essential component, which never dies, is kept apart: the
    first number is the persistence of the second component. Where there are
    fewer features than asked for, exact persistences are zero.

    .. rubric:: Privacy

    Each call of :meth:`transform` releases one row per cloud.
    %(privacy_of_functions)s

    Replacing one record moves all persistences together by at most twice the
    sensitivity of the filtration. Where a filtration has smaller caps, and
    noise leaves something to be seen, a fifth of ``epsilon`` goes to the choice
    of one: under a smaller cap the sensitivity is smaller, and features longer
    than it are cut short. The noise is an integer vector whose
    probability falls with the largest of its entries; sorting it in by
    isotonic regression and clipping it to the public range costs nothing, and
    brings no number further from the exact one. With ``d`` numbers the mean
    absolute error of each is about ``(d + 1) * sensitivity / epsilon``, or
    less. Intervals hold for every data set, not only for large ones.

    References
    ----------
    M. Hardt, K. Talwar, "On the geometry of differential privacy", STOC 2010,
    for the noise; D. Cohen-Steiner, H. Edelsbrunner, J. Harer, "Stability of
    persistence diagrams", 2007.

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
        """Release private profiles: each call is a new release.

        Parameters
        ----------
        X : list of GridFiltration or of array-like

        Returns
        -------
        ndarray of shape (n_clouds, n_dimensions * n_longest)
            Persistences in the units of the filtration, those of each
            dimension in decreasing order.

        %(refused_functions)s
        """
        rows, paid = self._draw(X)
        self.cap_, self.release_half_widths_ = rows[:, -2:].T
        return paid.keep(rows[:, :-2], cap_=self.cap_)

    def confidence_intervals(self, profile: ArrayLike, X: Functions | None = None) -> FloatArray:
        """Intervals that hold all exact persistences of a cloud with probability ``confidence``.

        Those under the cap that was drawn. Post-processing: nothing is paid.

        Parameters
        ----------
        profile : array-like of shape (n_clouds, n_dimensions * n_longest)
            Private profiles, as :meth:`transform` released them.
        X : list of GridFiltration or of array-like, default=None
            The filtrations of the rows, of which only public numbers are read:
            intervals are as long as under the largest of their caps. None:
            those of the last :meth:`transform`, or of :meth:`fit` before it.

        Returns
        -------
        ndarray of shape (n_clouds, n_dimensions * n_longest, 2)
            Lower ends, none below zero, and upper ends.

        Raises
        ------
        ValueError
            If the numbers of rows and of filtrations differ, or columns are missing.
        """
        check_is_fitted(self)
        latest = getattr(self, "release_half_widths_", self.half_widths_)
        rows, widths = self._rows_of_release(profile, "profile", X, latest)
        widths = widths[:, None]
        return np.stack([np.maximum(rows - widths, 0.0), rows + widths], axis=-1)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the columns: dimension, and rank by length.

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
        """How persistences are drawn under one cap."""
        # Both ends of a persistence are off.
        off = 2 * moved
        if math.isinf(epsilon):
            return _Drawn(*cap, None, 0.0, off)
        # Noise of many steps: radii of a few would be rejected over and over.
        lattice = make_lattice(*cap, epsilon * self._size())
        rate = epsilon / lattice.sensitivity
        width = half_width(lattice, rate, self._size(), self.confidence)
        return _Drawn(*cap, lattice, rate, off + width)

    def _error(self, function: GridFunction) -> float:
        _, caps = self._scale(function)
        return max(each.half_width for each in caps)

    def _least_seen(self, functions: list[GridFunction]) -> FloatArray:
        # Longer ones have intervals without zero.
        return 2 * self._errors(functions)

    def _set_errors(self, functions: list[GridFunction]) -> None:
        self._warn_of_noise(functions, "profiles")
        self.half_widths_ = self._errors(functions)
        # Those of another fit are of other filtrations.
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
    """Profile of one filtration, its cap, and its half width; exact without a lattice.

    The border between private and public is where it draws a cap, and calls ``noisy_profile``.
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
        noisy = under.lattice.levels.decode(noisy_profile(exact, under.rate, source))
        profile = in_order(noisy, under.upper).ravel()
    return np.r_[profile, under.upper, under.half_width]


def noisy_profile(lifetimes: Sequence[NDArray[Any]], rate: float, source: NoiseSource) -> IntArray:
    """Add integer vectors of probabilities ``~ exp(-rate * max |z|)`` to one row per dimension."""
    steps = np.array(lifetimes)
    return steps + lattice_noise(source, rate, (1, steps.size), "linf").reshape(steps.shape)


def in_order(profile: FloatArray, upper: float) -> FloatArray:
    """Nearest decreasing rows, within the public bounds: no further from any that is so already."""
    rows = [isotonic_regression(row, increasing=False) for row in profile]
    return np.clip(rows, 0.0, upper)


def half_width(lattice: LifetimeLattice, rate: float, size: int, confidence: float) -> float:
    """Error that all of ``size`` noisy persistences stay within, with at least this probability.

    A unit cube around an integer vector is within 1/2 of it, so that the tail of the discrete law
    is at most ``exp(rate)`` times that of the continuous one, whose norm is gamma distributed.
    """
    norm = gammainccinv(size, (1 - confidence) * math.exp(-rate))
    # A thousand times what the inverse may be off by.
    steps = math.ceil(norm * (1 + 1e-9) / rate - 0.5)
    return (steps + _ROUNDED_STEPS) * lattice.step

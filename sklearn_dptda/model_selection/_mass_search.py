"""Private choice of the mass of a distance-to-measure.

Proof: doc/theory/private_profiles.md, "The mass of the distance-to-measure".
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from sklearn_dptda._typing import RandomStateLike
from sklearn_dptda.filtration import DTMFiltration, LatticeHistogram, ReleasedCloud
from sklearn_dptda.persistence._lifetimes import longest_lifetimes, make_lattice
from sklearn_dptda.persistence._private_grid_persistence import pure_guarantee
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivateEstimatorMixin,
    private_choice,
)
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._sklearn import Interval, ListInputMixin, _fit_context
from sklearn_dptda.utils._validation import check_collection, refuse_repeated

# Scores are integers, and one record changes them by at most this number. It is large, so that
# rounding has little effect.
_SCORE_SENSITIVITY = 2**20


class PrivateMassSearch(ListInputMixin, PrivateEstimatorMixin, BaseEstimator):
    """Private choice of the mass of a distance-to-measure, by the features that it shows.

    A larger mass has less noise and shows fewer features. The search prefers the mass
    at which a feature is longest in units of the sensitivity, by one draw of
    permute-and-flip. The cost does not depend on the number of candidates.

    Parameters
    ----------
    filtration : DTMFiltration
        Filtration whose mass ``m`` is chosen. Its bounds must be numbers.
    candidates : array-like of float, default=(0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
        Public masses to choose from, in (0, 1].
    epsilon : float, default=0.2
        Privacy loss of the choice. ``inf`` chooses the best mass, without privacy.
    homology_dimension : int, default=1
        Homology dimension of the features.
    rank : int, default=1
        Rank of the feature that is scored: 1 for the longest, 2 for the second
        longest, and so on. In dimension 0, the essential component does not count.
    accountant : PrivacyAccountant, default=None
        Privacy budget from which each fit spends, before anything is computed.
        None uses the accountant of the surrounding ``with`` block. Without such a
        block, losses are not counted.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of the noise. None draws from the operating system's entropy. A seed is
        for tests and study only, because the noise can be undone with it.

    Attributes
    ----------
    m_ : float
        The chosen mass.
    filtration_ : DTMFiltration
        An unfitted copy of ``filtration`` with this mass.
    privacy_guarantee_ : PrivacyGuarantee
        Guarantee of the choice. Add those of releases that use it.
    n_features_in_ : int
        Number of coordinates of the points.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases one of the candidates. It is ``epsilon``-differentially private
    for replacing one point of a cloud, or, if ``filtration`` has ``groups``, all
    points of one person. Each individual must have points in only one cloud. The
    score of a mass is the persistence of the feature divided by twice the sensitivity
    of the filtration, summed over the clouds. One record changes it by at most one,
    for every mass.

    Do not choose ``max_distance`` by such a score, which prefers caps below the
    features.

    References
    ----------
    R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for
    differentially private selection", NeurIPS 2020.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration, PersistenceProfile
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import PrivateMassSearch
    >>> X = make_two_circles(4000, random_state=0)
    >>> search = PrivateMassSearch(DTMFiltration(bounds=(-2.5, 3)), epsilon=0.2, random_state=0)
    >>> search.fit([X]).m_
    0.15
    >>> profile = PersistenceProfile(0.8).fit(search.filtration_.fit_transform([X]))
    >>> (search.privacy_guarantee_ + profile.privacy_guarantee_).epsilon
    1.0
    """

    _parameter_constraints = {
        "filtration": [DTMFiltration],
        "candidates": ["array-like"],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "homology_dimension": [Interval(Integral, 0, None, closed="left")],
        "rank": [Interval(Integral, 1, 100, closed="both")],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        filtration: DTMFiltration | None = None,
        candidates: ArrayLike = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4),
        epsilon: float = 0.2,
        *,
        homology_dimension: int = 1,
        rank: int = 1,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.filtration = filtration
        self.candidates = candidates
        self.epsilon = epsilon
        self.homology_dimension = homology_dimension
        self.rank = rank
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[ArrayLike | LatticeHistogram], y: object = None) -> Self:
        """Spend epsilon and choose a mass.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            Point clouds, or histograms that represent them. One mass is chosen for
            all of them.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the choice. Nothing is
            spent.
        """
        self._check_epsilon()
        clouds = check_collection(X)
        fitted = self._fitted_candidates(clouds)
        guarantee = self._after_steps(self._guarantee(len(fitted), len(clouds)))
        # Errors that depend only on public numbers must be raised before the payment.
        functions = [each.transform(clouds) for each in fitted]
        lattices = [[make_lattice(f.sensitivity, f.upper) for f in each] for each in functions]
        # One record may increase some costs and decrease others, which halves the rate.
        rate = float(self.epsilon) / (2 * _SCORE_SENSITIVITY)
        with self._paid(guarantee, records=functions) as seeds:
            pairs = zip(functions, lattices, strict=True)
            costs = [-sum(map(self._score, *each)) for each in pairs]
            place = private_choice(
                costs,
                rate,
                NoiseSource(*seeds),
                bounded_range=False,
                change=2 * _SCORE_SENSITIVITY,
            )
        chosen = fitted[place]
        self.m_, self.filtration_ = chosen.m, clone(chosen)
        self.n_features_in_ = chosen.n_features_in_
        self.privacy_guarantee_ = guarantee
        seeds.keep_fitted(self)
        return self

    def _score(self, filtration, lattice):
        """Persistence divided by its change by one record, in integers.

        The score changes by at most ``_SCORE_SENSITIVITY``, which rounding down does not
        increase.
        """
        numbers = {int(self.homology_dimension): int(self.rank)}
        (lifetimes,) = longest_lifetimes(filtration.values, filtration.upper, numbers, lattice)
        return int(lifetimes[-1]) * _SCORE_SENSITIVITY // lattice.sensitivity

    def _fitted_candidates(self, clouds):
        """Return one filtration for each mass, fitted to public numbers, after all input checks."""
        bounds = getattr(self.filtration, "bounds", None)
        if bounds is None or isinstance(bounds, PrivateBounds):
            raise ValueError(
                "filtration must have bounds in numbers. To use a private box, fit PrivateBounds "
                "first and pass its bounds_."
            )
        if any(isinstance(cloud, ReleasedCloud) for cloud in clouds):
            raise ValueError(
                "X holds released clouds, of which every m costs nothing. Use GridSearchCV."
            )
        masses = _checked_masses(self.candidates)
        fitted = [clone(self.filtration).set_params(m=m).fit(clouds) for m in masses]
        most = max(2, fitted[0].n_features_in_)
        if self.homology_dimension >= most:
            raise ValueError(
                f"homology_dimension={quoted(self.homology_dimension)} is too large: functions of "
                f"{fitted[0].n_features_in_} coordinate(s) have no H{self.homology_dimension}."
            )
        if math.isfinite(self.epsilon):
            refuse_repeated(clouds)
        return fitted

    def _guarantee_ahead(self, n_features):
        return self._guarantee(len(_checked_masses(self.candidates)))

    def _guarantee(self, n_candidates, n_clouds=1):
        guarantee = pure_guarantee(
            self,
            "permute-and-flip mechanism",
            f"which of {n_candidates} masses shows H{self.homology_dimension} best",
        )
        return replace(guarantee, unit=(self.filtration or DTMFiltration())._unit(n_clouds))

    @staticmethod
    def _parameters_for_checks() -> dict[str, Any]:
        """Parameters for the privacy checks, whose clouds are in the unit box."""
        # In clouds as small as those of the checks, scores of components differ between masses.
        filtration = DTMFiltration(bounds=(0, 1), resolution=6)
        return {"filtration": filtration, "homology_dimension": 0}

    def __sklearn_tags__(self):
        """Describe the input."""
        tags = super().__sklearn_tags__()
        tags.privacy.input = "clouds"
        return tags


def _checked_masses(candidates):
    try:
        masses = np.asarray(candidates, dtype=float)
    except (TypeError, ValueError):
        masses = np.empty(0)
    if masses.ndim != 1 or len(masses) == 0 or not ((masses > 0) & (masses <= 1)).all():
        raise ValueError(
            f"candidates must be a non-empty list of masses in (0, 1]; got {quoted(candidates)}."
        )
    if len(np.unique(masses)) < len(masses):
        raise ValueError(
            f"candidates has duplicates, which must be removed; got {quoted(candidates)}."
        )
    return masses.tolist()

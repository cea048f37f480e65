"""The mass of a distance-to-measure, chosen under differential privacy.

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
from sklearn_dptda.filtration import DTMFiltration, LatticeHistogram
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
from sklearn_dptda.utils._clouds import check_collection, refuse_repeated
from sklearn_dptda.utils._sklearn import Interval, ListInputMixin, _fit_context

# Scores are whole numbers, and one record moves them by this number at most. It is large, so that
# rounding hardly matters.
_SCORE_SENSITIVITY = 2**20


class PrivateMassSearch(ListInputMixin, PrivateEstimatorMixin, BaseEstimator):
    """Choose the mass of a distance-to-measure by the features that it shows.

    A larger mass has less noise, and shows fewer features. One draw of
    permute-and-flip looks for the mass at which the longest feature stands
    out most, in units of the sensitivity. It costs little, whatever the
    number of candidates.

    Parameters
    ----------
    filtration : DTMFiltration
        Whose ``m`` is chosen. With bounds in numbers: a private box has to be
        found, and paid for, before.
    candidates : array-like of float, default=(0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
        Public masses, in (0, 1].
    epsilon : float, default=0.2
        Privacy loss of the choice. ``inf`` takes the best.
    homology_dimension : int, default=1
        Of the features that count.
    rank : int, default=1
        Which of them: the longest, the second longest, and so on. Of dimension
        0 the component that never dies is left out.
    accountant : PrivacyAccountant, default=None
        Charged before anything is computed. None takes the accountant of the
        surrounding ``with`` block; without one, nobody keeps count.
    random_state : int, RandomState instance, Generator or None, default=None
        None draws from the operating system's entropy. A seed makes the choice
        reproducible, for tests and study only: whoever knows it can undo the
        noise.

    Attributes
    ----------
    m_ : float
        The mass that was chosen.
    filtration_ : DTMFiltration
        A copy of ``filtration`` with this mass, not fitted.
    privacy_guarantee_ : PrivacyGuarantee
        What the choice promises. Add to it that of what follows.
    n_features_in_ : int
        Dimension of the points.

    See Also
    --------
    sklearn_dptda.DTMFiltration : What the mass is for.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases one of the candidates, and is
    ``epsilon``-differentially private for replacing one point of a cloud, or
    all points of one person where ``filtration`` has ``groups``, where every
    individual has points in one cloud only. The score of a mass is the
    persistence of the feature over twice the sensitivity of the filtration,
    summed over the clouds: one record moves it by at most one, whatever the
    mass. Losses of the choice and of releases that use it add up.

    Do not choose ``max_distance`` by such a score: it prefers caps below the
    features, a bias that no epsilon takes away.

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
        """Pay, and choose a mass.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The clouds, for all of which one mass is chosen, or histograms that
            stand for them.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the input is refused. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the choice. Nothing is
            spent.
        """
        self._check_epsilon()
        clouds = check_collection(X)
        fitted = self._fitted_candidates(clouds)
        guarantee = self._after_steps(self._guarantee(len(fitted), len(clouds)))
        # Whatever can fail by public numbers, fails before the payment.
        functions = [each.transform(clouds) for each in fitted]
        lattices = [[make_lattice(f.sensitivity, f.upper) for f in each] for each in functions]
        # Costs of masses may rise and fall at once, which halves the rate.
        rate = float(self.epsilon) / (2 * _SCORE_SENSITIVITY)
        with self._paid(guarantee, records=functions) as seeds:
            pairs = zip(functions, lattices, strict=True)
            costs = [-sum(map(self._score, *each)) for each in pairs]
            place = private_choice(costs, rate, NoiseSource(*seeds), bounded_range=False)
        chosen = fitted[place]
        self.m_, self.filtration_ = chosen.m, clone(chosen)
        self.n_features_in_ = chosen.n_features_in_
        self.privacy_guarantee_ = guarantee
        seeds.keep_fitted(self)
        return self

    def _score(self, filtration, lattice):
        """Persistence over what one record moves it by, in whole numbers.

        Neighbours differ by at most ``sensitivity`` steps, so that the score moves by the unit at
        most: rounding down does not mind whole numbers that are added.
        """
        numbers = {int(self.homology_dimension): int(self.rank)}
        (lifetimes,) = longest_lifetimes(filtration.values, filtration.upper, numbers, lattice)
        return int(lifetimes[-1]) * _SCORE_SENSITIVITY // lattice.sensitivity

    def _fitted_candidates(self, clouds):
        """One filtration for each mass, fitted to public numbers, after all checks of the input."""
        bounds = getattr(self.filtration, "bounds", None)
        if bounds is None or isinstance(bounds, PrivateBounds):
            raise ValueError(
                "filtration must have bounds in numbers; a private box is fitted before, and its "
                "bounds_ are numbers."
            )
        masses = _checked_masses(self.candidates)
        fitted = [clone(self.filtration).set_params(m=m).fit(clouds) for m in masses]
        most = max(2, fitted[0].n_features_in_)
        if self.homology_dimension >= most:
            raise ValueError(
                f"homology_dimension={quoted(self.homology_dimension)}: functions of so few "
                f"coordinates have no H{self.homology_dimension}."
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
        """What the privacy checks need, whose clouds lie in the unit box."""
        # Scores of components tell masses apart in clouds as small as theirs.
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
        raise ValueError(f"candidates must be masses in (0, 1]; got {quoted(candidates)}.")
    if len(np.unique(masses)) < len(masses):
        raise ValueError(f"candidates has duplicates: {quoted(candidates)}.")
    return masses.tolist()

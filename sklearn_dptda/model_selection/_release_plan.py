"""Plans of private diagrams: their accuracy and privacy loss, from public numbers.

Proof: doc/theory/error_bounds.md, "Planning".
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration import DTMFiltration
from sklearn_dptda.model_selection._simulated_feature import N_RELEASES, PROBABLE, allowed_misses
from sklearn_dptda.persistence import DiagramErrors
from sklearn_dptda.persistence._error_statement import FEATURE_NAMES
from sklearn_dptda.privacy._risk import PrivacyRisk, sentence_of

# Accuracy only: m * n * epsilon below which a released cloud has the smaller error, by the number
# of coordinates, and the most features of which a diagram shows more; measured in
# doc/measured/private_cloud.md.
_CLOUD_BELOW, _FEW_FEATURES = {2: 300.0, 3: 50.0}, 2
# Number of values of a curve in each factor of ten of epsilon.
_EPSILONS_PER_DECADE = 8


@dataclass(frozen=True, eq=False)
class PlanCurve:
    """Accuracy of private diagrams over a range of epsilon.

    :meth:`ReleasePlan.curve` makes it.

    Attributes
    ----------
    epsilons : ndarray of shape (n_values,)
        Privacy losses.
    error_bounds : ndarray of shape (n_values,)
        Largest distance that points of the diagram move, in the units of the
        filtration, with the confidence of the plan. ``inf`` means that there is no
        bound.
    thresholds : ndarray of shape (n_values,)
        Smallest persistence, in the exact diagram, of a feature that is flagged.

    Examples
    --------
    >>> from sklearn_dptda.model_selection import plan_release
    >>> plan = plan_release(4000, bounds=(-1.5, 1.5), loop_radius=1.0, spread=0.1, m=0.3)
    >>> curve = plan.curve([0.5, 1.0, 2.0])
    >>> bool(curve.thresholds[0] > curve.thresholds[2])
    True
    """

    epsilons: FloatArray
    error_bounds: FloatArray
    thresholds: FloatArray


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Parameters of a release that shows a feature, made by :func:`plan_release`.

    A plan prints as a short text. All lengths are in the units of the points.

    Attributes
    ----------
    n_points : int
        Number of points of the cloud.
    epsilon : float
        Smallest privacy loss at which the feature is flagged, rounded up to three
        digits.
    m : float
        Mass of the distance-to-measure.
    max_distance : float or "private"
        Cap of the distance-to-measure.
    resolution : int
        Number of grid nodes along each axis.
    error_bound : float
        Largest distance that points of the diagram move, with probability
        ``confidence``.
    noise_floor : float
        If there is no feature in the dimension of the feature, all points of noise
        are shorter than this, with the same probability.
    persistence : float
        Persistence of the feature, as given or according to the model.
    sampling_error : float
        Largest loss of persistence of a loop in a random sample.
    grid_error : float
        Largest distance of a point of the box from the nearest node. Births and
        deaths on the grid are off by at most this number.
    sensitivity : float
        Largest change of the filtration by one replaced point.
    upper : float
        Upper bound of the values of the filtration.
    homology_dimension : int
        Homology dimension of the feature.
    confidence : float
        Probability with which the bounds hold.
    claim : {"bound", "probable"}
        What is said of the feature.
    epsilon_without_cap : float or None
        Smallest epsilon under the default cap, if the plan has another cap. ``inf``
        if no epsilon shows the feature.

    Examples
    --------
    >>> from sklearn_dptda.model_selection import plan_release
    >>> plan = plan_release(4000, bounds=(-1.5, 1.5), loop_radius=1.0, spread=0.1, m=0.3)
    >>> plan.epsilon
    0.585
    >>> pipeline = plan.make_pipeline()
    """

    n_points: int
    epsilon: float
    m: float
    max_distance: float | str
    resolution: int
    error_bound: float
    noise_floor: float
    persistence: float
    sampling_error: float
    grid_error: float
    sensitivity: float
    upper: float
    homology_dimension: int
    confidence: float
    claim: str
    _filtration: DTMFiltration = field(repr=False)
    _errors: DiagramErrors = field(repr=False)
    epsilon_without_cap: float | None = None

    @property
    def visible_persistence(self) -> float:
        """Persistence minus the losses by sampling and by the grid."""
        return self.persistence - self.sampling_error - 2 * self.grid_error

    @property
    def cloud_is_better(self) -> bool:
        """Whether :class:`PrivateCloud` is expected to show more at the same epsilon.

        This is so for more than two features, and if ``m * n_points * epsilon`` is small: below
        300 in the plane, and 50 in space. A released cloud also answers later questions.
        """
        low, _ = self._filtration.bounds  # type: ignore[misc]
        n_dims = np.size(low)
        many = np.max(self._errors.n_features) > _FEW_FEATURES and n_dims in _CLOUD_BELOW
        kept = self.m * self.n_points * self.epsilon
        return bool(many or kept < _CLOUD_BELOW.get(n_dims, 0.0))

    def make_pipeline(self) -> Pipeline:
        """Make the pipeline for this plan.

        Returns
        -------
        Pipeline
            A new, unfitted pipeline. Set an accountant before you fit it.
        """
        return make_pipeline(clone(self._filtration), clone(self._errors.private))

    def risk(self, prior: float = 0.5, fpr: float = 0.01) -> PrivacyRisk:
        """Compute what the release can tell about one record.

        Parameters
        ----------
        prior : float, default=0.5
            Probability, before the release, that an accusation is right.
        fpr : float, default=0.01
            Rate of false accusations.

        Returns
        -------
        PrivacyRisk
        """
        return self._errors.private._guarantee_ahead(None).risk(prior, fpr)

    def curve(self, epsilons: ArrayLike | None = None) -> PlanCurve:
        """Compute error bounds and thresholds over a range of epsilon.

        Parameters
        ----------
        epsilons : array-like of shape (n_values,), default=None
            Privacy losses. None uses values from one tenth of the epsilon of the
            plan to ten times that epsilon.

        Returns
        -------
        PlanCurve
        """
        if epsilons is None:
            epsilons = self.epsilon * np.geomspace(0.1, 10, 2 * _EPSILONS_PER_DECADE + 1)
        values = np.asarray(epsilons, dtype=float)
        errors = [self._errors.at(epsilon) for epsilon in values.tolist()]
        bounds = np.array([each.bound for each in errors])
        floors = np.array([noise_floor(each, self.homology_dimension) for each in errors])
        return PlanCurve(values, bounds, threshold(bounds, floors))

    def __str__(self):
        name = FEATURE_NAMES.get(self.homology_dimension, f"class of H{self.homology_dimension}")
        lost = f"of which the grid may hide up to {2 * self.grid_error:.2g}"
        if self.sampling_error:
            lost += f" and sampling up to {self.sampling_error:.2g}"
        cap, without = "", ""
        if not isinstance(self.max_distance, str):
            cap = f", max_distance={self.max_distance:g}"
        if self.epsilon_without_cap is not None:
            dearer = self.epsilon_without_cap
            takes = "no epsilon shows it" if math.isinf(dearer) else f"this takes {dearer:.3g}"
            without = f" Under the default cap of distances, {takes}."
        shows = (
            f"epsilon={self.epsilon:g} with m={self.m:g}{cap} and {self.resolution} grid nodes "
            f"per axis shows a {name} of {self.n_points} points that persists for "
            f"{self.persistence:.3g}, {lost}."
        )
        guarantee = self._errors.private._guarantee_ahead(None)
        risk = f" {sentence_of(guarantee.advantage, guarantee.adjacency)}"
        search = (
            " PrivateSearchCV over releases like this one costs up to "
            f"epsilon={2 * self.epsilon:.3g}: with less, make one release."
        )
        if self.cloud_is_better:
            search += " PrivateCloud is expected to show more at this epsilon."
        often = f"With a probability of {100 * self.confidence:g} %"
        if self.claim == "probable":
            least = N_RELEASES - allowed_misses(self.confidence)
            return (
                f"{shows} In {least} of {N_RELEASES} simulated releases, its stated probability "
                f"is at least {100 * PROBABLE:g} %.{risk}{search}"
            )
        return (
            f"{shows} {often}, the noise moves points by at most {self.error_bound:.3g}. With the "
            f"same probability, if there is no {name}, the noise shows none that persists for more "
            f"than {self.noise_floor:.3g}.{without}{risk}{search}"
        )


def noise_floor(errors, dimension):
    """Return the noise floor of one homology dimension."""
    return errors.noise_floors[errors.dimensions.index(dimension)]


def threshold(error, floor):
    """Smallest persistence of a feature that is flagged for any noise within its bound.

    The feature loses at most twice the error. The remaining persistence is flagged if it is above
    twice the error or, for the longest feature of its dimension, above the floor.
    """
    return 2 * error + np.minimum(2 * error, floor)


def epsilon_rounded_up(epsilon):
    """Round epsilon up to three digits, so that the printed value is the exact one."""
    digits = 2 - math.floor(math.log10(epsilon))
    return round(math.ceil(epsilon * 10.0**digits) / 10.0**digits, max(digits, 0))

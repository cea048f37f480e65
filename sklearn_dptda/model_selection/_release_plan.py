"""What a private diagram will show, and at what price: a plan made of public numbers.

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
from sklearn_dptda.persistence import bottleneck_error_bound, noise_floor
from sklearn_dptda.persistence._cubical import check_dimensions

# Names of features, by dimension.
_FEATURES = {0: "component", 1: "loop", 2: "void"}
# A curve has so many values from one epsilon to ten times that.
_EPSILONS_PER_DECADE = 8


class Detection:
    """When a feature of a private diagram is flagged: error bounds and noise floors by epsilon."""

    def __init__(self, private, ahead, *, homology_dimension, confidence, n_features):
        self._private = private
        self._place = check_dimensions(private.homology_dimensions)[0].index(homology_dimension)
        self._off = ahead.approximation_error
        self._public = ahead.sensitivity, ahead.upper
        self._options = {
            "confidence": confidence,
            "n_features": n_features,
            "floor": ahead.sensitivity + ahead.approximation_error,
            "smaller_caps": ahead.smaller_caps,
        }

    def private_at(self, epsilon):
        """The estimator, with this epsilon."""
        return clone(self._private).set_params(epsilon=epsilon)

    def at(self, epsilon):
        """Error bound, and noise floor of the dimension of the feature."""
        private = self.private_at(epsilon)
        floors = noise_floor(private, *self._public, **self._options)
        return self._error(private), floors[self._place]

    def shows(self, persistence, epsilon):
        """Whether a feature of this persistence is flagged."""
        error = self._error(self.private_at(epsilon))
        # Beyond these limits the error decides alone, and the floor need not be computed.
        if not 2 * error < persistence < 4 * error:
            return 2 * error < persistence
        return bool(persistence >= threshold(*self.at(epsilon)))

    def _error(self, private):
        return self._off + bottleneck_error_bound(private, *self._public, **self._options)


@dataclass(frozen=True, eq=False)
class PlanCurve:
    """What diagrams show over a range of epsilon.

    Attributes
    ----------
    epsilons : ndarray of shape (n_values,)
    error_bounds : ndarray of shape (n_values,)
        By how much points move at most, with the confidence of the plan, in
        the units of the filtration; ``inf`` where nothing can be said.
    thresholds : ndarray of shape (n_values,)
        Persistence from which on a feature of the exact diagram is flagged.
    """

    epsilons: FloatArray
    error_bounds: FloatArray
    thresholds: FloatArray


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Parameters of a release that shows a feature; made by :func:`plan_release`.

    Prints as two sentences. All lengths are in the units of the points.

    Attributes
    ----------
    n_points : int
        Size of the cloud.
    epsilon : float
        Privacy loss at which the feature is flagged, rounded up to three
        digits.
    m : float
        Mass of the distance-to-measure.
    max_distance : float or "private"
        Its cap: the radius of a loop, where that is better than the default.
    resolution : int
        Grid nodes along each axis.
    error_bound : float
        By how much points move at most, with probability ``confidence``; what
        :attr:`PrivatePersistence.error_bound_` will say, if that is 0.95.
    noise_floor : float
        Persistence that noise stays below in the dimension of the feature if
        there is nothing, with the same probability.
    persistence : float
        Of the feature, as stated or by the model.
    sampling_error : float
        How much shorter a loop of so many points may be than in the model.
    grid_error : float
        Distance of a place of the box from the nearest node, at most: births
        and deaths on the grid are off by no more.
    sensitivity, upper : float
        Of the filtration: change by one replaced point, bound of the values.
    homology_dimension : int
        Of the feature.
    confidence : float
        Probability.
    epsilon_without_cap : float or None
        What the feature would take under the default cap, where the plan has
        another; ``inf`` if no epsilon shows it.
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
    _filtration: DTMFiltration = field(repr=False)
    _detection: Detection = field(repr=False)
    epsilon_without_cap: float | None = None

    @property
    def visible_persistence(self) -> float:
        """What sampling and the grid leave of the persistence."""
        return self.persistence - self.sampling_error - 2 * self.grid_error

    def make_pipeline(self) -> Pipeline:
        """Make the pipeline that releases by this plan.

        Returns
        -------
        Pipeline
            Of new estimators, not fitted. Set an accountant before you fit it.
        """
        return make_pipeline(clone(self._filtration), self._detection.private_at(self.epsilon))

    def curve(self, epsilons: ArrayLike | None = None) -> PlanCurve:
        """Error bounds and thresholds over a range of epsilon.

        Parameters
        ----------
        epsilons : array-like of shape (n_values,), default=None
            None: from a tenth to ten times the epsilon of the plan.

        Returns
        -------
        PlanCurve
        """
        if epsilons is None:
            epsilons = self.epsilon * np.geomspace(0.1, 10, 2 * _EPSILONS_PER_DECADE + 1)
        values = np.asarray(epsilons, dtype=float)
        pairs = [self._detection.at(epsilon) for epsilon in values.tolist()]
        errors, floors = np.array(pairs).T
        thresholds = threshold(errors, floors)
        return PlanCurve(epsilons=values, error_bounds=errors, thresholds=thresholds)

    def __str__(self):
        name = _FEATURES.get(self.homology_dimension, f"class of H{self.homology_dimension}")
        lost = f"of which the grid may take {2 * self.grid_error:.2g}"
        if self.sampling_error:
            lost += f" and sampling {self.sampling_error:.2g}"
        cap, without = "", ""
        if not isinstance(self.max_distance, str):
            cap = f", max_distance={self.max_distance:g}"
        if self.epsilon_without_cap is not None:
            dearer = self.epsilon_without_cap
            takes = "no epsilon shows it" if math.isinf(dearer) else f"that takes {dearer:.3g}"
            without = f" Under the default cap of distances {takes}."
        return (
            f"epsilon={self.epsilon:g} with m={self.m:g}{cap} and {self.resolution} grid nodes "
            f"per axis shows a {name} of {self.n_points} points that persists for "
            f"{self.persistence:.3g}, {lost}. With a probability of {100 * self.confidence:g} % "
            f"the noise moves points by at most {self.error_bound:.3g}, and shows no {name} that "
            f"persists for more than {self.noise_floor:.3g} where there is none.{without}"
        )


def threshold(error, floor):
    """Persistence from which on a feature is flagged, whatever the noise does within its bound.

    It loses at most twice the error. What is left is flagged above twice the error, or, as the
    longest of its dimension, above the floor.
    """
    return 2 * error + np.minimum(2 * error, floor)


def rounded_up(epsilon):
    """To three digits, so that what is printed is what is used."""
    digits = 2 - math.floor(math.log10(epsilon))
    return round(math.ceil(epsilon * 10.0**digits) / 10.0**digits, max(digits, 0))

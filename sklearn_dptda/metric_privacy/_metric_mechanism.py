"""The guarantee of metric privacy, and the base classes of its mechanisms.

A mechanism states its guarantee in ``fit``, which learns from public numbers alone. It spends the
budget before it draws.

Proof: doc/theory/metric_privacy.md, "Mechanisms on a public list".
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.metric_privacy._finite_laws import (
    MAX_OUTPUTS,
    drawn_once,
    floored,
    least_weight,
    lowered_rate,
)
from sklearn_dptda.metric_privacy._finite_metrics import (
    DIAGRAM_METRICS,
    LP_METRICS,
    cross_distances,
    metric_closure,
)
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._estimator import Paid
from sklearn_dptda.privacy._parameters import comparable, quoted
from sklearn_dptda.privacy._release import state
from sklearn_dptda.privacy._risk import Curve, LossLaw
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._distances import check_diagram
from sklearn_dptda.utils._sklearn import Interval, ListOutputMixin
from sklearn_dptda.utils._validation import check_collection, refuse_repeated, without_quotes

# Largest loss that floating-point rounding adds. Logarithms of weights that are not floored are
# below 2**10 in size, and few of their roundings meet in a ratio of two probabilities.
_LOSS_OF_ROUNDING = 2.0**-40
# Share of the largest distance that rounding adds to distances that are given, or that are sums of
# such: room for 128 roundings of a double.
ROUNDING_OF_SUMS = 2.0**-46
# Share of alpha by which the measured loss may exceed it, because the check itself rounds.
_ATTAINED_TOLERANCE = 1e-9


@dataclass(frozen=True)
class MetricPrivacyGuarantee(PrivacyGuarantee):
    """The promise that records at a small distance are hard to distinguish.

    Parameters
    ----------
    epsilon : float
        Privacy loss of replacing a record by any other one; ``inf`` in an unbounded space.
    delta : float
        Failure probability of the bound; 0 for the mechanisms of metric privacy.
    adjacency : {"replace-one", "add-remove"}
        Which data sets count as neighbours.
    unit : str
        What one record is.
    mechanism : str
        The mechanism that draws the release.
    released : str
        What is released.
    seeded : bool
        Whether the randomness came from a known seed, with which the noise can be removed.
    exact : bool, default=True
        False if the distribution of the release only approximates the one of the proof.
    public_parameters : bool, default=True
        False if a public parameter, such as the candidates, was computed from the data.
    rho : float, default=None
        Zero-concentrated privacy loss (zCDP), if it is smaller than ``epsilon**2 / 2``.
    labels : bool, default=False
        True if a record is a row together with its label, and both are protected.
    release_id : str, default=None
        Random name of the release, if several steps may share it.
    alpha : float, default=1.0
        Privacy loss per unit of distance.
    metric : str, default="distance"
        Name of the distance.
    diameter : float, default=inf
        Diameter of the space. Beyond it, the loss does not grow.
    resolution : float, default=0.0
        Amount that rounding adds to each distance.
    attained : float, default=None
        Largest loss per unit of distance (``resolution`` included) that a check of all pairs
        of distinguishable records found. None if the guarantee rests on a proof alone.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import MetricPrivacyGuarantee
    >>> promise = MetricPrivacyGuarantee(4.0, 0.0, "replace-one", "one place", "a mechanism",
    ...     "a place", False, alpha=2.0, metric="euclidean distance", diameter=2.0)
    >>> promise.at_distance(0.5)
    1.0
    """

    alpha: float = 1.0
    metric: str = "distance"
    diameter: float = math.inf
    resolution: float = 0.0
    attained: float | None = None

    def at_distance(self, distance: float) -> float:
        """Privacy loss between two records at a distance."""
        return self.alpha * (min(distance, self.diameter) + self.resolution)

    @property
    def holds(self) -> bool:
        """Whether the release can be published as private."""
        return (
            math.isfinite(self.alpha)
            and self._is_kept()
            and self.exact
            and self.public_parameters
            and not self.seeded
        )

    def _curve(self) -> Curve:
        # A check found this loss between two records.
        excess = 1.0 if self.attained is None else max(1.0, self.attained / self.alpha)
        return LossLaw((self.epsilon * excess,)).delta

    def _is_kept(self) -> bool:
        return self.attained is None or self.attained <= self.alpha * (1 + _ATTAINED_TOLERANCE)

    def __str__(self) -> str:
        if math.isinf(self.alpha):
            return super().__str__()
        end = f", and never more than {self.epsilon:g}" if math.isfinite(self.epsilon) else ""
        loss = f"alpha * (r + {self.resolution:.2g})" if self.resolution else "alpha * r"
        text = (
            f"Metric privacy at the rate alpha={self.alpha:g}: moving {self.unit} by a "
            f"{self.metric} r costs at most {loss}{end}: {self.released}, drawn by the "
            f"{self.mechanism}."
        )
        if not self._is_kept():
            text += f" However, a check found a loss of {self.attained:g} per unit of distance."
        if not self.public_parameters:
            text += (
                " Its candidates or bounds came from the data, which the guarantee does not cover."
            )
        if self.seeded:
            text += (
                " The draw came from a known seed. It is reproducible, for tests and study only,"
                " and not private towards anyone who knows the seed."
            )
        return text


class MetricMechanism(PrivateEstimatorMixin, TransformerMixin, BaseEstimator):
    """Base class of mechanisms of metric privacy, whose ``fit`` states the guarantee."""

    _parameter_constraints = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }

    _not_compared = PrivateEstimatorMixin._not_compared | {"candidates"}

    set_output = ListOutputMixin.set_output

    def __sklearn_tags__(self) -> Tags:
        """Declare that releases are random, and that the loss is one of metric privacy."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic, tags.privacy = True, None
        return tags

    def _releasing_method(self) -> str:
        return "transform"

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        # A fit learns from public candidates, and from the number of columns alone.
        if getattr(self, "candidates", ()) is None:
            raise ValueError("candidates must be given: the cost of a release depends on them.")
        row = None if n_features is None else np.zeros((1, n_features))
        return clone(self).fit(row).privacy_guarantee_

    def _promise_metric(self, **details: Any) -> None:
        """Set the guarantee that follows from the rate and the details."""
        self._promise(
            MetricPrivacyGuarantee(
                delta=0.0,
                adjacency="replace-one",
                seeded=self.random_state is not None,
                alpha=float(self.alpha),
                **details,
            )
        )

    @contextmanager
    def _paid_for(self, records: Any, n_draws: int = 1) -> Iterator[Paid]:
        """Spend the budget of this number of draws, and yield the seed of their noise."""
        self._check_promise()
        guarantee = self.privacy_guarantee_
        if math.isinf(guarantee.epsilon) and self._payer() is not None:
            raise ValueError(
                "bounds must be given if there is an accountant: without them, the loss between "
                "two records is unbounded."
            )
        all_draws = replace(guarantee, epsilon=n_draws * guarantee.epsilon)
        # What a fit has learnt from public input, such as candidates, decides as well.
        with self._paid(all_draws, records=(records, state(self), n_draws)) as seeds:
            yield seeds


class ChoiceMechanism(MetricMechanism):
    """Base class of mechanisms that release candidates from a public list.

    Subclasses learn ``candidates_``, ``_between`` (distances between candidates), ``_outputs``
    (places of the candidates that can be released) and ``_log_weights`` of these. They call
    ``_promise_law``.
    """

    def _full_rate(self, n_candidates: int) -> float:
        # A lower bound on probabilities costs at most this share of the rate.
        return float(self.alpha) * (1 - 4 * n_candidates * least_weight(n_candidates))

    def _promise_law(
        self, rate: float, mechanism: str, *, public: bool = True, rounding: float = 0.0
    ) -> None:
        """Lower the rate until the law is private as it is computed, and state the guarantee."""
        D, alpha = self._between, float(self.alpha)
        diameter, spare = float(D.max()), _LOSS_OF_ROUNDING / alpha
        # What rounding adds to distances is part of the guarantee, and so of the check. It adds
        # nothing to the largest distance, which epsilon covers.
        granted = np.minimum(D + rounding + spare, diameter - spare)
        self.rate_, self.privacy_parameter_ = lowered_rate(
            self._log_weights, self._to_outputs(D), rate, np.where(D > 0, granted, 0.0), alpha
        )
        self._promise_metric(
            epsilon=alpha * diameter,
            unit="one record",
            mechanism=mechanism,
            released="a public candidate for each record",
            public_parameters=public,
            metric=f"{comparable(self.metric)} distance",
            diameter=diameter,
            # Rounding occurs when the law is checked, and when it is drawn from.
            resolution=rounding + 2 * spare,
            attained=self.privacy_parameter_,
        )

    def _to_outputs(self, D: FloatArray) -> FloatArray:
        """Distances from the outputs, given the distances from all candidates."""
        return np.asarray(D[:, self._outputs])

    def _logs(self, D: FloatArray) -> FloatArray:
        """Logarithms of the weights of outputs."""
        return np.asarray(self._log_weights - self.rate_ * self._to_outputs(D))

    def _takes_diagrams(self) -> bool:
        return isinstance(self.metric, str) and self.metric in DIAGRAM_METRICS

    def _read(self, X: Any) -> Any:
        """Inputs in the form that the metric takes. Errors do not quote a diagram."""
        if not self._takes_diagrams():
            return check_rows(self, X, reset=False)
        with without_quotes():
            diagrams = [check_diagram(diagram, "a diagram") for diagram in X]
        if not diagrams:
            raise ValueError("X is empty: it must be a list of diagrams.")
        return diagrams

    @without_quotes("the distance of a record")
    def _distances(self, X: Any) -> FloatArray:
        """Distances of inputs from the candidates, in the form that the guarantee needs."""
        check_is_fitted(self)
        if self._takes_diagrams():
            X = check_collection(X)
            refuse_repeated(X)
        X = self._read(X)
        if self.metric == "precomputed":
            D = X
        else:
            if isinstance(self.metric, str) and self.metric in LP_METRICS:
                X = np.clip(X, *self._reach)
            D = cross_distances(X, self.candidates_, self.metric)
        if not (np.isfinite(D) & (D >= 0)).all():
            raise ValueError(
                "X has records whose distances from the candidates are negative or not finite."
            )
        return self._covered(D)

    def _covered(self, D: FloatArray) -> FloatArray:
        """Distances for which the guarantee holds, whatever the metric returns."""
        # A part common to all candidates carries no information, and would absorb the digits that
        # do.
        D = D - D.min(axis=1, keepdims=True)
        if self.metric == "precomputed" or not isinstance(self.metric, str):
            return metric_closure(D, self._between)
        # With or without rounding, the distances of an input from two candidates differ by no more
        # than the distance between these candidates.
        return np.minimum(D, self._between[D.argmin(axis=1)])

    def transform(self, X: ArrayLike | Iterable[ArrayLike]) -> NDArray[Any] | list[FloatArray]:
        """Spend the budget and replace each input by a candidate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list of diagrams
            Records to replace; each sample is one record. With ``metric="precomputed"``,
            their distances from the candidates, of shape (n_samples, n_candidates).

        Returns
        -------
        ndarray of shape (n_samples, n_features), or list of diagrams
            The released candidates. With ``metric="precomputed"``, their numbers.

        Raises
        ------
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        D = self._distances(X)
        with self._paid_for(D) as paid:
            loss = self.privacy_guarantee_.epsilon
            released = self._candidates(drawn_once(self._logs(D), NoiseSource(*paid), loss))
        return paid.keep(released)

    def sample(
        self, X: ArrayLike | Iterable[ArrayLike], n_samples: int = 1
    ) -> list[NDArray[Any] | list[FloatArray]]:
        """Spend the budget of several releases of each input, and draw them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list of diagrams
            Records, in the same form as for :meth:`transform`.
        n_samples : int, default=1
            Number of releases of each record.

        Returns
        -------
        list of length n_samples
            Each item is a result of :meth:`transform`, and costs as much.
        """
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer; got {quoted(n_samples)}.")
        D = self._distances(X)
        with self._paid_for(D, n_samples) as paid:
            logs, noise = self._logs(D), NoiseSource(*paid)
            loss = self.privacy_guarantee_.epsilon
            released = [self._candidates(drawn_once(logs, noise, loss)) for _ in range(n_samples)]
        return paid.keep(released)

    def log_probability(self, X: ArrayLike | Iterable[ArrayLike]) -> FloatArray:
        """Logarithms of the probabilities of all candidates: *not* private.

        Use it to study a mechanism with public inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list of diagrams
            Records, in the same form as for :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_samples, `n_candidates_`)
        """
        D = self._distances(X)
        log_probability = np.full(D.shape, -np.inf)
        log_probability[:, self._outputs] = floored(self._logs(D))
        return log_probability

    def _candidates(self, chosen: IntArray) -> NDArray[Any] | list[FloatArray]:
        places = self._outputs[chosen]
        if self.metric == "precomputed":
            return np.asarray(places)
        if self._takes_diagrams():
            return [self.candidates_[i] for i in places]
        return np.asarray(self.candidates_[places])


def check_n_candidates(n_candidates: int) -> None:
    """Refuse more candidates than the sampler can handle."""
    if n_candidates > MAX_OUTPUTS:
        raise ValueError(f"there are {n_candidates} candidates; at most {MAX_OUTPUTS} are allowed.")

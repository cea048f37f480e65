"""What a release under metric privacy promises."""

import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
)
from sklearn_dptda.utils._sklearn import Interval, ListOutputMixin


@dataclass(frozen=True)
class MetricPrivacyGuarantee(PrivacyGuarantee):
    """The promise that what is close is hard to tell apart.

    Parameters
    ----------
    epsilon, delta, adjacency, unit, mechanism, released, seeded, exact, public_parameters, rho
        As in :class:`~sklearn_dptda.privacy.PrivacyGuarantee`: what replacing a
        record by any other of the space costs, ``inf`` where the space has no
        bound.
    alpha : float
        Loss per unit of distance.
    metric : str
        What distance is meant.
    diameter : float, default=inf
        Of the space: the loss grows no further.
    resolution : float, default=0.0
        What rounding adds to each distance, to a lattice or of numbers.
    attained : float, default=None
        Loss per unit of distance, ``resolution`` included, that the law was
        found to have, where it was held against all pairs of what can be told
        apart; None where a proof stands alone.

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
        """Privacy loss between what is at a distance."""
        return self.alpha * (min(distance, self.diameter) + self.resolution)

    @property
    def holds(self) -> bool:
        """Whether the release is fit to be handed on as private."""
        return (
            math.isfinite(self.alpha)
            and self._is_kept()
            and self.exact
            and self.public_parameters
            and not self.seeded
        )

    def _is_kept(self):
        return self.attained is None or self.attained <= self.alpha * (1 + 1e-9)

    def __str__(self):
        end = f", {self.epsilon:g} at most" if math.isfinite(self.epsilon) else ""
        loss = f"alpha * (r + {self.resolution:.2g})" if self.resolution else "alpha * r"
        text = (
            f"Metric privacy at the rate alpha={self.alpha:g}: moving {self.unit} by a "
            f"{self.metric} r costs at most {loss}{end}: {self.released}, drawn by the "
            f"{self.mechanism}."
        )
        if not self._is_kept():
            text += f" But the law was found to lose {self.attained:g} per unit of distance."
        if not self.public_parameters:
            text += " Its candidates or bounds came from the data, which the bound does not cover."
        if self.seeded:
            text += (
                " The draw came from a known seed: reproducible, for tests and study only, and"
                " not private towards anyone who knows the seed."
            )
        return text


# What all mechanisms under metric privacy share: parameters, promise, payment, seeds.


class MetricMechanism(PrivateEstimatorMixin, ListOutputMixin, TransformerMixin, BaseEstimator):
    """Base of mechanisms: children promise in ``fit``, and pay before they draw."""

    _parameter_constraints = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }

    _not_compared = PrivateEstimatorMixin._not_compared | {"candidates"}

    def __sklearn_tags__(self):
        """Say that equal input does not give equal output, and that the loss is a metric's."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic, tags.privacy = True, None
        return tags

    def _releasing_method(self):
        return "transform"

    def _guarantee_ahead(self, n_features):
        # Fits learn from public candidates, and from rows of some width alone.
        if getattr(self, "candidates", ()) is None:
            raise ValueError("candidates must be given: what a release costs depends on them.")
        row = None if n_features is None else np.zeros((1, n_features))
        return clone(self).fit(row).privacy_guarantee_

    def _promise_metric(self, **details):
        """Promise what the rate and the details say."""
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
    def _paid_for(self, n_draws=1):
        """Pay for so many draws as they were promised, and yield a source of noise."""
        self._check_promise()
        guarantee = self.privacy_guarantee_
        if math.isinf(guarantee.epsilon) and self._payer() is not None:
            raise ValueError(
                "bounds must be given where an accountant counts: without them the loss between "
                "two records has no limit."
            )
        with self._paid(replace(guarantee, epsilon=n_draws * guarantee.epsilon)) as (seed,):
            yield NoiseSource(seed)

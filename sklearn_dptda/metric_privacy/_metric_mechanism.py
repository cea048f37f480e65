"""What all mechanisms under metric privacy share: parameters, promise, payment, seeds."""

import math
from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from sklearn_dptda.metric_privacy._metric_guarantee import MetricPrivacyGuarantee
from sklearn_dptda.privacy import (
    AccountedMixin,
    NoiseSource,
    PrivacyAccountant,
    default_accountant,
    spawn_seeds,
)
from sklearn_dptda.utils._output import ListOutputMixin
from sklearn_dptda.utils._sklearn import Interval


class MetricMechanism(AccountedMixin, ListOutputMixin, TransformerMixin, BaseEstimator):
    """Base of mechanisms: children promise in ``fit``, and pay before they draw."""

    _parameter_constraints = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __sklearn_tags__(self):
        """Say that equal input does not give equal output."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def _promise(self, **details):
        """Set the guarantee, and remember the parameters that it describes."""
        self._parameters_at_fit = self._parameters()
        self.privacy_guarantee_ = MetricPrivacyGuarantee(
            delta=0.0,
            adjacency="replace-one",
            seeded=self.random_state is not None,
            alpha=float(self.alpha),
            **details,
        )

    def _pay(self, n_draws=1):
        """Pay for what the guarantee promises, if anybody keeps count; return a source of noise."""
        guarantee = self.privacy_guarantee_
        if self._parameters() != self._parameters_at_fit:
            raise ValueError(
                "A parameter has changed since fit, so privacy_guarantee_ no longer describes "
                "what would be released: call fit again."
            )
        counted = self.accountant is not None or default_accountant() is not None
        if counted and math.isinf(guarantee.epsilon):
            raise ValueError(
                "bounds must be given where an accountant counts: without them the loss between "
                "two records has no limit."
            )
        (seed,) = spawn_seeds(self.random_state, 1)
        self._spend(replace(guarantee, epsilon=n_draws * guarantee.epsilon))
        return NoiseSource(seed)

    def _parameters(self):
        """What the guarantee depends on, in values that can be compared and pickled."""
        values = {
            name: comparable(value)
            for name, value in self.get_params(deep=False).items()
            if name not in ("accountant", "random_state", "candidates")
        }
        return {**values, "seeded": self.random_state is not None}


def comparable(value):
    """A parameter as a number, a string, a list or None; of a function, its name."""
    if callable(value):
        kind = value if hasattr(value, "__qualname__") else type(value)
        return f"{kind.__module__}.{kind.__qualname__}"
    if value is None or isinstance(value, str | Real):
        return value
    return np.asarray(value).tolist()

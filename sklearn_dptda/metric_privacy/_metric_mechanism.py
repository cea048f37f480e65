"""What all mechanisms under metric privacy share: parameters, promise, payment, seeds."""

import math
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from sklearn_dptda.metric_privacy._metric_guarantee import MetricPrivacyGuarantee
from sklearn_dptda.privacy import (
    AccountedMixin,
    NoiseSource,
    PrivacyAccountant,
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

    _not_compared = AccountedMixin._not_compared | {"candidates"}

    def __sklearn_tags__(self):
        """Say that equal input does not give equal output."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

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

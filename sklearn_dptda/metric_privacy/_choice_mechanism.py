"""What mechanisms that choose from a public list share."""

import math
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.metric_privacy._distance_matrices import (
    DIAGRAM_METRICS,
    LP_METRICS,
    closed,
    cross_distances,
)
from sklearn_dptda.metric_privacy._exact_draws import MOST_OUTPUTS, draw, floored
from sklearn_dptda.metric_privacy._metric_guarantee import MetricPrivacyGuarantee
from sklearn_dptda.privacy import (
    AccountedMixin,
    NoiseSource,
    PrivacyAccountant,
    default_accountant,
    spawn_seeds,
)
from sklearn_dptda.utils import check_collection, refuse_repeated
from sklearn_dptda.utils._distances import check_diagram
from sklearn_dptda.utils._output import ListOutputMixin
from sklearn_dptda.utils._rows import check_rows, without_values
from sklearn_dptda.utils._sklearn import Interval


class MetricMechanism(AccountedMixin, ListOutputMixin, TransformerMixin, BaseEstimator):
    """Base of mechanisms under metric privacy: parameters, payment, seeds."""

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

    def _pay(self, n_draws=1):
        """Pay for what the guarantee promises, if anybody keeps count."""
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
        found = {
            name: _comparable(value)
            for name, value in self.get_params(deep=False).items()
            if name not in ("accountant", "random_state", "candidates")
        }
        return {**found, "seeded": self.random_state is not None}


def _comparable(value):
    if callable(value):
        kind = value if hasattr(value, "__qualname__") else type(value)
        return f"{kind.__module__}.{kind.__qualname__}"
    if value is None or isinstance(value, str | Real):
        return value
    return np.asarray(value).tolist()


class ChoiceMechanism(MetricMechanism):
    """Base of mechanisms whose releases are from a public list of candidates.

    Children learn ``candidates_``, ``_outputs`` (places of those that can be
    released), and give the logarithms of weights in ``_logs(distances)``.
    """

    def _read(self, X):
        """Inputs as the metric takes them."""
        if self._takes_diagrams():
            return _diagrams(X)
        return check_rows(self, X, reset=False)

    def _distances(self, X):
        """Distances of inputs from the candidates, as the guarantee needs them."""
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
            with np.errstate(over="ignore", invalid="ignore"):
                D = cross_distances(X, self.candidates_, self.metric)
        if not (np.isfinite(D) & (D >= 0)).all():
            raise ValueError(
                "X has records whose distances from candidates are negative or not finite."
            )
        return self._covered(D)

    def _covered(self, D):
        """Distances that keep the guarantee, whatever the metric claims."""
        # What is common to all candidates says nothing, and would swallow the digits that do.
        D = D - D.min(axis=1, keepdims=True)
        if self.metric == "precomputed" or not isinstance(self.metric, str):
            return closed(D, self._between)
        # Rounded or not, no input is nearer to one candidate than to another by more than these
        # are apart.
        return np.minimum(D, self._between[D.argmin(axis=1)])

    def _takes_diagrams(self):
        return isinstance(self.metric, str) and self.metric in DIAGRAM_METRICS

    def transform(self, X: ArrayLike | Iterable[ArrayLike]) -> NDArray[Any] | list[FloatArray]:
        """Pay, and replace each input by a candidate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list of diagrams
            Each sample is a record. With ``metric="precomputed"`` distances
            from the candidates, of shape (n_samples, n_candidates).

        Returns
        -------
        ndarray of shape (n_samples, n_features), or list of diagrams
            With ``metric="precomputed"`` the numbers of the candidates.

        Raises
        ------
        ValueError
            If the input is refused, or a parameter has changed since ``fit``.
            Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the release.
        """
        D = self._distances(X)
        return self._candidates(draw(self._logs(D), self._pay()))

    def sample(
        self, X: ArrayLike | Iterable[ArrayLike], n_samples: int = 1
    ) -> list[NDArray[Any] | list[FloatArray]]:
        """Pay for several releases of each input.

        Parameters
        ----------
        X : as for :meth:`transform`
        n_samples : int, default=1

        Returns
        -------
        list of length n_samples
            Of what :meth:`transform` returns; each costs as much.
        """
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer; got {n_samples!r}.")
        D = self._distances(X)
        noise = self._pay(n_samples)
        logs = self._logs(D)
        return [self._candidates(draw(logs, noise)) for _ in range(n_samples)]

    def log_probability(self, X: ArrayLike | Iterable[ArrayLike]) -> FloatArray:
        """Logarithms of the probabilities of all candidates: *not* private.

        A function of the inputs without noise; for study, and to see what a
        mechanism would do with public inputs.

        Parameters
        ----------
        X : as for :meth:`transform`

        Returns
        -------
        ndarray of shape (n_samples, `n_candidates_`)
        """
        return self._law(self._distances(X))

    def _law(self, D):
        """What is drawn from, for all candidates."""
        out = np.full(D.shape, -np.inf)
        out[:, self._outputs] = floored(self._logs(D))
        return out

    def _candidates(self, chosen):
        places = self._outputs[chosen]
        if self.metric == "precomputed":
            return places
        if self._takes_diagrams():
            return [self.candidates_[i] for i in places]
        return self.candidates_[places]

    def _set_guarantee(self, D1, mechanism, public, resolution=0.0):
        self._parameters_at_fit = self._parameters()
        self.privacy_guarantee_ = MetricPrivacyGuarantee(
            epsilon=float(self.alpha) * float(D1.max()),
            delta=0.0,
            adjacency="replace-one",
            unit="one record",
            mechanism=mechanism,
            released="a public candidate for each record",
            seeded=self.random_state is not None,
            public_parameters=public,
            alpha=float(self.alpha),
            metric=f"{_comparable(self.metric)} distance",
            diameter=float(D1.max()),
            resolution=resolution,
            attained=self.privacy_parameter_,
        )


def check_number(n_candidates):
    """Refuse more candidates than can be drawn from."""
    if n_candidates > MOST_OUTPUTS:
        raise ValueError(
            f"there are {n_candidates} candidates; at most {MOST_OUTPUTS} are allowed."
        )


def _diagrams(X):
    """List of persistence diagrams, and errors that do not quote them."""
    try:
        found = [check_diagram(diagram, "a diagram") for diagram in X]
    except (TypeError, ValueError) as error:
        raise ValueError(without_values(str(error))) from None
    if not found:
        raise ValueError("X is empty: it must be a list of diagrams.")
    return found

"""What mechanisms that choose from a public list share."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.metric_privacy._finite_laws import MOST_OUTPUTS, draw, floored, least, lowered
from sklearn_dptda.metric_privacy._finite_metrics import (
    DIAGRAM_METRICS,
    LP_METRICS,
    closed,
    cross_distances,
)
from sklearn_dptda.metric_privacy._metric_mechanism import MetricMechanism
from sklearn_dptda.privacy._parameters import comparable, quoted
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._clouds import check_collection, refuse_repeated
from sklearn_dptda.utils._distances import check_diagram
from sklearn_dptda.utils._reading import without_quotes

# What floats add to a loss, at most: logarithms of weights that are not floored are below 2**10 in
# size, and few of their roundings meet in a ratio of two probabilities.
_LOST = 2.0**-40


class ChoiceMechanism(MetricMechanism):
    """Base of mechanisms whose releases are from a public list of candidates.

    Children learn ``candidates_``, ``_between`` (their distances), ``_outputs`` (places of those
    that can be released) and ``_log_weights`` of these, and call ``_settle``.
    """

    def _full_rate(self, n_candidates):
        # A floor of probabilities costs this part of the rate at most.
        return float(self.alpha) * (1 - 4 * n_candidates * least(n_candidates))

    def _settle(self, rate, mechanism, public=True, rounding=0.0):
        """Lower the rate until the law is private as it is computed, and promise that."""
        D, alpha = self._between, float(self.alpha)
        diameter, spare = float(D.max()), _LOST / alpha
        # What rounding adds to distances is part of the promise, and so of the check; to the
        # largest one, which epsilon is for, it adds nothing.
        granted = np.minimum(D + rounding + spare, diameter - spare)
        self.rate_, self.privacy_parameter_ = lowered(
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
            # Rounded where the law is checked, and where it is drawn from.
            resolution=rounding + 2 * spare,
            attained=self.privacy_parameter_,
        )

    def _to_outputs(self, D):
        """Distances from what can be released, by those from all candidates."""
        return D[:, self._outputs]

    def _logs(self, D):
        """Logarithms of the weights of outputs."""
        return self._log_weights - self.rate_ * self._to_outputs(D)

    def _takes_diagrams(self):
        return isinstance(self.metric, str) and self.metric in DIAGRAM_METRICS

    def _read(self, X):
        """Inputs as the metric takes them."""
        if self._takes_diagrams():
            return _diagrams(X)
        return check_rows(self, X, reset=False)

    @without_quotes("the distance of a record")
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
        with self._paid_for() as noise:
            return self._candidates(draw(self._logs(D), noise))

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
            raise ValueError(f"n_samples must be a positive integer; got {quoted(n_samples)}.")
        D = self._distances(X)
        with self._paid_for(n_samples) as noise:
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
        D = self._distances(X)
        log_probability = np.full(D.shape, -np.inf)
        log_probability[:, self._outputs] = floored(self._logs(D))
        return log_probability

    def _candidates(self, chosen):
        places = self._outputs[chosen]
        if self.metric == "precomputed":
            return places
        if self._takes_diagrams():
            return [self.candidates_[i] for i in places]
        return self.candidates_[places]


def check_number(n_candidates):
    """Refuse more candidates than can be drawn from."""
    if n_candidates > MOST_OUTPUTS:
        raise ValueError(
            f"there are {n_candidates} candidates; at most {MOST_OUTPUTS} are allowed."
        )


def _diagrams(X):
    """List of persistence diagrams, and errors that do not quote them."""
    with without_quotes():
        diagrams = [check_diagram(diagram, "a diagram") for diagram in X]
    if not diagrams:
        raise ValueError("X is empty: it must be a list of diagrams.")
    return diagrams

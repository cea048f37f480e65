"""Laws on finitely many outputs: their draws, costs, privacy parameters and weights.

A law is a matrix of logarithms of probabilities, with a row for each input and a column for each
output.

Proof: doc/theory/metric_privacy.md, "Mechanisms on a public list".
"""

import secrets
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.metric_privacy._finite_metrics import check_places, rows_at_a_time
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._estimator import FRESH, Paid
from sklearn_dptda.privacy._noise import spawn_seeds

# Largest number of outputs whose weights fit into the integers that are drawn from.
MAX_OUTPUTS = 1 << 16
# Number of bits of the first integer of a weight, of which a sum of weights needs no more, and of
# the second one, which contains what is left below the unit of the first; see ``integer_weights``.
_HIGH_BITS, _LOW_BITS = 62, 44
_LOW_MASK = np.uint64((1 << _LOW_BITS) - 1)
# Largest number of points for which the privacy parameter of a law is computed exactly from
# triples. With more points it is bounded from pairs.
_MAX_POINTS_EXACT_PARAMETER = 500


@dataclass(frozen=True)
class FiniteMechanism:
    """A private mechanism on a finite public set, whose points are inputs and outputs.

    :func:`~sklearn_dptda.published.optimal_mechanism` returns one.

    Attributes
    ----------
    log_matrix : ndarray of shape (n_points, n_points)
        Logarithm of the probability of each output (column) for each input (row).
    alpha : float
        Privacy loss per unit of distance that the mechanism guarantees.
    accuracy : float
        Mean distance of the output from the input, for the input for which it is
        worst.
    optimum : float
        Accuracy of the linear program before its solution was repaired: no private
        mechanism is better, up to the precision of the solver.
    diameter : float
        Largest distance of privacy.

    Examples
    --------
    >>> from sklearn_dptda.published import optimal_mechanism
    >>> mechanism = optimal_mechanism([[0, 1], [1, 0]], alpha=1.0)
    >>> mechanism.sample([0, 0, 1], random_state=0).shape
    (3,)
    """

    log_matrix: FloatArray
    alpha: float
    accuracy: float
    optimum: float
    diameter: float

    def __getstate__(self) -> dict[str, Any]:
        # A cache that recognised a mechanism by its pickle would return old draws without spending.
        return {**vars(self), FRESH: secrets.token_hex(16)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: value for name, value in state.items() if name != FRESH})

    def sample(
        self,
        inputs: ArrayLike,
        *,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> NDArray[np.int64]:
        """Spend the budget and draw an output for each input.

        Parameters
        ----------
        inputs : array-like of int of shape (n_samples,)
            Numbers of points, from 0.
        accountant : PrivacyAccountant, default=None
            Budget that is charged with ``alpha`` times the diameter. None: the
            accountant of the surrounding ``with`` block, if there is one.
        random_state : int, RandomState instance, Generator or None, default=None
            Source of the draw. None: the operating system's entropy, for real
            releases. With a known seed a release is not private.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            Numbers of the outputs.
        """
        inputs = check_places(inputs, len(self.log_matrix))
        (seed,) = spawn_seeds(random_state, 1)
        accountant = accountant if accountant is not None else default_accountant()
        paid = Paid([seed], accountant, uuid.uuid4().hex)
        if accountant is not None:
            accountant.spend(
                self.alpha * self.diameter,
                key=paid.key,
                adjacency="replace-one",
                what="a point of a finite space for each record",
                estimator="optimal_mechanism",
                parameters={"alpha": self.alpha},
            )
        loss = self.alpha * self.diameter
        return paid.keep(drawn_once(self.log_matrix[inputs], NoiseSource(*paid), loss))


def least_weight(n_outputs: int) -> float:
    """Least weight, in units of the largest one, such that all its bits fit."""
    return 2.0 ** -(40 - max(n_outputs.bit_length() - 13, 0))


def normalised(logs: FloatArray) -> FloatArray:
    """Rows that sum to one, in logarithms."""
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def floored(logs: FloatArray) -> FloatArray:
    """Laws that are drawn from: rows sum to one, and no output is too rare.

    The argument contains logarithms of weights, ``-inf`` for outputs that are impossible for all
    rows. The least weight moves with the largest one of its row, so that ratios keep their bounds.
    """
    logs = logs - logs.max(axis=1, keepdims=True)
    floor = np.log(least_weight(logs.shape[1]))
    return normalised(np.where(np.isneginf(logs), -np.inf, np.maximum(logs, floor)))


def drawn_once(logs: FloatArray, noise: NoiseSource, loss: float) -> NDArray[np.int64]:
    """One output for each row, whose laws differ by at most a loss between any two records."""
    return noise.cross(
        logs,
        lambda logs: draw(logs, noise),
        metric=_largest_log_ratio,
        sensitivity=loss,
        rate=1.0,
    )


def _largest_log_ratio(one: FloatArray, other: FloatArray) -> float:
    """Largest loss between the laws of a record, both of which may exclude an output."""
    one, other = floored(one), floored(other)
    with np.errstate(invalid="ignore"):
        differences = np.where(one == other, 0.0, np.abs(one - other))
    return float(differences.max(initial=0.0))


def draw(logs: FloatArray, noise: NoiseSource) -> NDArray[np.int64]:
    """One output for each row of logarithms of weights; see :func:`floored`.

    Outputs are drawn exactly in proportion to the weights; only the exponential is rounded.
    """
    part = rows_at_a_time(logs.shape[1])
    drawn = [_draw(logs[i : i + part], noise) for i in range(0, len(logs), part)]
    return np.concatenate([np.empty(0, np.int64), *drawn])


def integer_weights(logs: FloatArray) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Integers in proportion to which outputs are drawn, with all bits of each weight.

    A weight is the first integer times ``2**44``, plus the second one.
    """
    logs = logs - logs.max(axis=1, keepdims=True)
    floor = least_weight(logs.shape[1])
    weights = np.where(np.isneginf(logs), 0.0, np.maximum(np.exp(logs), floor))
    weights = np.ldexp(weights, _HIGH_BITS - logs.shape[1].bit_length())
    high = np.floor(weights)
    # Exact, since the rest of a number of 53 bits has few enough bits.
    return high.astype(np.uint64), np.ldexp(weights - high, _LOW_BITS).astype(np.uint64)


def _draw(logs: FloatArray, noise: NoiseSource) -> NDArray[np.int64]:
    high, low = (np.cumsum(side, axis=1) for side in integer_weights(logs))
    high, low = high + (low >> np.uint64(_LOW_BITS)), low & _LOW_MASK
    chosen = np.empty(len(logs), dtype=np.int64)
    missing = np.arange(len(logs))
    # Uniform integers below a power of two that exceeds the sum.
    shift = (64 - np.frexp(high[:, -1].astype(float))[1]).astype(np.uint64)
    while len(missing):
        first = noise.words(len(missing)) >> shift[missing]
        second = noise.words(len(missing)) >> np.uint64(64 - _LOW_BITS)
        top, rest = high[missing], low[missing]
        below = (top < first[:, None]) | ((top == first[:, None]) & (rest <= second[:, None]))
        # Draws that exceed the sum are repeated.
        inside = ~below[:, -1]
        chosen[missing[inside]] = below[inside].sum(axis=1)
        missing = missing[~inside]
    return chosen


def worst_cost(logs: FloatArray, costs: FloatArray) -> float:
    """Largest expected cost of the output; both arrays have the shape (n_points, n_outputs)."""
    part = rows_at_a_time(costs.shape[1])
    return max(
        float((np.exp(logs[i : i + part]) * costs[i : i + part]).sum(axis=1).max())
        for i in range(0, len(logs), part)
    )


def log_parameter(logs: FloatArray, D: FloatArray) -> float:
    """Privacy loss per unit of distance of a law.

    It is ``inf`` if laws at distance zero, or sets of possible outputs, differ.
    """
    largest = 0.0
    for x in range(len(logs) - 1):
        with np.errstate(invalid="ignore"):
            differences = np.abs(logs[x + 1 :] - logs[x])
        # An output that is impossible for both causes no loss.
        differences[np.isneginf(logs[x + 1 :]) & np.isneginf(logs[x])] = 0.0
        loss = differences.max(axis=1)
        distances = D[x, x + 1 :]
        apart = distances > 0
        if (loss[~apart] > 0).any():
            return np.inf
        largest = max(largest, float((loss[apart] / distances[apart]).max(initial=0.0)))
    return largest


def rated_parameter(
    log_weights: FloatArray, to_outputs: FloatArray, rate: float, D: FloatArray
) -> float:
    """Privacy loss per unit of ``D`` of the law that is drawn from, or an upper bound of it.

    Weights of outputs are multiplied by ``exp(-rate * to_outputs)``. ``D`` includes what rounding
    adds to distances. For more than 500 points, the result is an upper bound: ``rate`` plus the
    difference of the sums of weights.
    """
    logs = log_weights - rate * to_outputs
    law = floored(logs)
    if len(D) <= _MAX_POINTS_EXACT_PARAMETER:
        return log_parameter(law, D)
    sums = logs.max(axis=1) - law.max(axis=1)
    return rate + log_parameter(sums[:, None], D)


def lowered_rate(
    log_weights: FloatArray, to_outputs: FloatArray, rate: float, D: FloatArray, alpha: float
) -> tuple[float, float]:
    """Rate at which a law is private as it is computed, and its privacy parameter.

    The given rate is private in exact arithmetic. It is lowered if rounding matters.
    """
    for _ in range(60):
        parameter = rated_parameter(log_weights, to_outputs, rate, D)
        if parameter <= alpha:
            return rate, parameter
        rate *= max(0.5, alpha / parameter * (1 - 1e-9))
    raise ValueError(
        "alpha times the distances of candidates is so small that it is lost in rounding. Raise "
        "alpha."
    )


def raised_rate(
    log_weights: FloatArray, to_outputs: FloatArray, D: FloatArray, alpha: float
) -> float:
    """Largest rate in [alpha / 2, alpha] at which the normalised law is private."""
    if rated_parameter(log_weights, to_outputs, alpha, D) <= alpha:
        return alpha
    low, high = alpha / 2, alpha
    for _ in range(20):
        middle = (low + high) / 2
        private = rated_parameter(log_weights, to_outputs, middle, D) <= alpha
        low, high = (middle, high) if private else (low, middle)
    return low


def row_weights(D: FloatArray, rate: float) -> FloatArray:
    """Solution ``w`` of ``exp(-rate * D) w = 1``, the weights of a magnitude."""
    return np.asarray(np.linalg.solve(np.exp(-rate * D), np.ones(len(D))))


def weighted_law(D: FloatArray, alpha: float) -> tuple[float, FloatArray]:
    """Rate and logarithms of weights of a public set, which contains all inputs and all outputs.

    The rate is ``alpha`` if no weight is negative, and otherwise the largest one found, of at least
    ``alpha / 2``, for which the law of the positive weights is private. The weights are those of T.
    Leinster, "The magnitude of metric spaces".
    """
    # Copies count as one point: only the first of them is released.
    first = np.unique((D <= 0).argmax(axis=1))
    w = np.zeros(len(D))
    try:
        w[first] = row_weights(D[np.ix_(first, first)], alpha)
    except np.linalg.LinAlgError:
        return alpha / 2, np.zeros(len(D))
    if not np.isfinite(w).all() or not (w > 0).any():
        return alpha / 2, np.zeros(len(D))
    positive = w > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.where(positive, np.log(w), -np.inf)
    if positive[first].all():
        return alpha, log_weights
    return raised_rate(log_weights[positive], D[:, positive], D, alpha), log_weights

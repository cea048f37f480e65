"""Laws on finitely many outputs: their costs, their draws, weights that lower the cost."""

import numpy as np
from scipy.special import logsumexp

from sklearn_dptda.metric_privacy._finite_metrics import rows_at_a_time

# Bits of a sum of weights, and of what is left of a weight below its unit.
_HIGH, _LOW = 62, 44
MOST_OUTPUTS = 1 << 16
_MASK = np.uint64((1 << _LOW) - 1)


def least(n_outputs):
    """Least weight, in units of the largest: all bits of it must fit."""
    return 2.0 ** -(40 - max(n_outputs.bit_length() - 13, 0))


def normalised(logs):
    """Rows that sum to one, in logarithms."""
    return logs - logsumexp(logs, axis=1, keepdims=True)


def floored(logs):
    """Laws that are drawn from: rows sum to one, and nothing is too rare.

    From logarithms of weights, ``-inf`` for what is impossible for all rows. No weight is less
    than ``2**-40`` of the largest of its row, or a little more for many thousands of outputs. The
    floor moves with the largest weight of a row, as weights do, so that ratios of two rows keep
    their bounds.
    """
    logs = logs - logs.max(axis=1, keepdims=True)
    logs = np.where(np.isneginf(logs), -np.inf, np.maximum(logs, np.log(least(logs.shape[1]))))
    return normalised(logs)


def draw(logs, noise):
    """One output, of type int64, for each row of logarithms of weights; see :func:`floored`.

    Weights are floating-point numbers, and are drawn exactly in proportion: two integers hold all
    bits of each, and a uniform integer below their sum decides. What is left to rounding is the
    exponential function.
    """
    part = rows_at_a_time(logs.shape[1])
    drawn = [_draw(logs[i : i + part], noise) for i in range(0, len(logs), part)]
    return np.concatenate([np.empty(0, np.int64), *drawn])


def integer_weights(logs):
    """Integers in proportion to which is drawn: the first times ``2**44``, plus the second."""
    logs = logs - logs.max(axis=1, keepdims=True)
    weights = np.where(np.isneginf(logs), 0.0, np.maximum(np.exp(logs), least(logs.shape[1])))
    weights = np.ldexp(weights, _HIGH - logs.shape[1].bit_length())
    high = np.floor(weights)
    # Exact: what is left of a number of 53 bits has few enough of them.
    return high.astype(np.uint64), np.ldexp(weights - high, _LOW).astype(np.uint64)


def _draw(logs, noise):
    high, low = (np.cumsum(side, axis=1) for side in integer_weights(logs))
    high, low = high + (low >> np.uint64(_LOW)), low & _MASK
    chosen = np.empty(len(logs), dtype=np.int64)
    missing = np.arange(len(logs))
    # To a power of two above the sum.
    shift = (64 - np.frexp(high[:, -1].astype(float))[1]).astype(np.uint64)
    while len(missing):
        first = noise.words(len(missing)) >> shift[missing]
        second = noise.words(len(missing)) >> np.uint64(64 - _LOW)
        top, rest = high[missing], low[missing]
        below = (top < first[:, None]) | ((top == first[:, None]) & (rest <= second[:, None]))
        # Beyond the sum: drawn again.
        inside = ~below[:, -1]
        chosen[missing[inside]] = below[inside].sum(axis=1)
        missing = missing[~inside]
    return chosen


# Up to it the parameter of a law is looked for over all triples, above it bounded over pairs.
MOST_EXACT = 500


def log_parameter(logs, D):
    """Privacy loss per unit of distance of a law, given by logarithms of probabilities.

    Rows are points, columns are outputs. ``inf`` where an output is possible for one point only,
    or two points without distance have different laws.
    """
    largest = 0.0
    for x in range(len(logs) - 1):
        with np.errstate(invalid="ignore"):
            differences = np.abs(logs[x + 1 :] - logs[x])
        # Impossible for both is no loss.
        differences[np.isneginf(logs[x + 1 :]) & np.isneginf(logs[x])] = 0.0
        loss = differences.max(axis=1)
        distances = D[x, x + 1 :]
        apart = distances > 0
        if (loss[~apart] > 0).any():
            return np.inf
        largest = max(largest, float((loss[apart] / distances[apart]).max(initial=0.0)))
    return largest


def rated_parameter(log_weights, to_outputs, rate, D):
    """Privacy loss per unit of ``D`` of the law that is drawn from, or a bound of it.

    The law of weights of outputs times ``exp(-rate * to_outputs)``, distances of shape (n_points,
    n_outputs). ``D`` includes what rounding adds to distances, where that is granted. Exact for up
    to 500 points. For more: ``rate``, and what the sums of two points differ by, per unit of their
    distance. Weights differ by the rate at most, by the triangle inequality, and what they are
    divided by differs as their sums do.
    """
    logs = log_weights - rate * to_outputs
    law = floored(logs)
    if len(D) <= MOST_EXACT:
        return log_parameter(law, D)
    sums = logs.max(axis=1) - law.max(axis=1)
    return rate + log_parameter(sums[:, None], D)


def lowered(log_weights, to_outputs, rate, D, alpha):
    """Rate at which a law is private as it is computed, and its privacy parameter.

    The given rate is private in exact arithmetic, and is lowered where rounding matters; see
    :func:`rated_parameter`.
    """
    for _ in range(60):
        parameter = rated_parameter(log_weights, to_outputs, rate, D)
        if parameter <= alpha:
            return rate, parameter
        rate *= max(0.5, alpha / parameter * (1 - 1e-9))
    raise ValueError("alpha times the distances of candidates is lost in rounding.")


def worst_cost(logs, costs):
    """Expected cost of the output, for the point where it is largest; (n_points, n_outputs)."""
    part = rows_at_a_time(costs.shape[1])
    return max(
        float((np.exp(logs[i : i + part]) * costs[i : i + part]).sum(axis=1).max())
        for i in range(0, len(logs), part)
    )


def row_weights(D, rate):
    """Solution ``w`` of ``exp(-rate * D) w = 1``, the weights of a magnitude."""
    return np.linalg.solve(np.exp(-rate * D), np.ones(len(D)))


def weighted_law(D, alpha):
    """Rate and logarithms of weights of a public set, which is that of inputs and of outputs.

    The rate is ``alpha`` if no weight is negative; else the largest found for which the law of the
    positive weights is private, at least ``alpha / 2``. Logarithms are ``-inf`` for points that are
    never released. With ``K = exp(-alpha D)`` and ``K w = 1``, the rows of ``K diag(w)`` sum to
    one. Where no weight is negative it is a law, and
    ``M[x, y] / M[x', y] = exp(alpha (D[x', y] - D[x, y])) <= exp(alpha D[x, x'])``: no factor of
    two. Any nonnegative weights are private at half the rate.

    T. Leinster, "The magnitude of metric spaces", for the weights; E. ElSalamouny, K.
    Chatzikokolakis, C. Palamidessi, "Generalized differential privacy: regions of priors that
    admit robust optimal mechanisms", 2014.
    """
    # Copies are one point: only the first of them is released.
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
    return raised_rate(D[:, positive], log_weights[positive], D, alpha), log_weights


def raised_rate(to_outputs, log_weights, D, alpha):
    """Largest rate in [alpha / 2, alpha] at which the normalised law is private."""
    if rated_parameter(log_weights, to_outputs, alpha, D) <= alpha:
        return alpha
    low, high = alpha / 2, alpha
    for _ in range(20):
        middle = (low + high) / 2
        private = rated_parameter(log_weights, to_outputs, middle, D) <= alpha
        low, high = (middle, high) if private else (low, middle)
    return low

"""Laws of mechanisms on a finite public set: their privacy loss, rates and accuracy."""

import numpy as np

from sklearn_dptda.metric_privacy._distance_matrices import rows_at_a_time
from sklearn_dptda.metric_privacy._exact_draws import floored

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

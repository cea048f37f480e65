"""Laws of mechanisms on a finite public set: rates, weights, what they give and attain."""

import numpy as np
from scipy.special import logsumexp

from sklearn_dptda.metric_privacy._distance_matrices import rows_at_a_time
from sklearn_dptda.metric_privacy._exact_draws import floored

# Up to it the parameter of a law is looked for over all triples, above it bounded over pairs.
MOST_EXACT = 500


def log_parameter(logs, D, atol=0.0):
    """Privacy loss per unit of distance of a law.

    Parameters
    ----------
    logs : ndarray of shape (n_points, n_outputs)
        Logarithms of probabilities.
    D : ndarray of shape (n_points, n_points)

    Returns
    -------
    float
        ``inf`` where an output is possible for one point only, or two points
        without distance have different laws.
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
        if (loss[~apart] > atol).any():
            return np.inf
        largest = max(largest, float((loss[apart] / distances[apart]).max(initial=0.0)))
    return largest


def rated_parameter(logs, rate, D):
    """Privacy loss per unit of distance of the law that is drawn from, or a bound of it.

    Parameters
    ----------
    logs : ndarray of shape (n_points, n_outputs)
        Logarithms of weights: a function of the output, less ``rate`` times a
        distance of the point from the output.
    rate : float
    D : ndarray of shape (n_points, n_points)
        With what rounding adds to distances, where that is granted.

    Returns
    -------
    float
        Exact for up to 500 points. For more: ``rate``, and what the sums of
        two points differ by, per unit of their distance. Weights differ by
        the rate at most, by the triangle inequality, and what they are
        divided by differs as their sums do.
    """
    law = floored(logs)
    if len(D) <= MOST_EXACT:
        return log_parameter(law, D)
    sums = logs.max(axis=1) - law.max(axis=1)
    return rate + log_parameter(sums[:, None], D)


def normalised(logs):
    """Rows that sum to one, in logarithms."""
    return logs - logsumexp(logs, axis=1, keepdims=True)


def weighted_law(D, alpha):
    """Law at the full rate, by weights that make all rows sum to one.

    Parameters
    ----------
    D : ndarray of shape (n_points, n_points)
        Distances of privacy of a public set, which is the set of inputs and
        that of outputs.
    alpha : float

    Returns
    -------
    rate : float
        ``alpha``, if no weight is negative; else the largest found for which
        the law of the positive weights is private, at least ``alpha / 2``.
    log_weights : ndarray of shape (n_points,)
        Logarithms; ``-inf`` for points that are never released.

    Notes
    -----
    With ``K = exp(-alpha D)`` and ``K w = 1``, the rows of ``K diag(w)`` sum to
    one. Where no weight is negative it is a law, and
    ``M[x, y] / M[x', y] = exp(alpha (D[x', y] - D[x, y])) <= exp(alpha D[x, x'])``:
    no factor of two. Any nonnegative weights are private at half the rate.

    References
    ----------
    T. Leinster, "The magnitude of metric spaces", for the weights; E.
    ElSalamouny, K. Chatzikokolakis, C. Palamidessi, "Generalized differential
    privacy: regions of priors that admit robust optimal mechanisms", 2014.
    """
    # Copies are one point: only the first of them is released.
    first = np.unique((D <= 0).argmax(axis=1))
    w = np.zeros(len(D))
    try:
        w[first] = np.linalg.solve(np.exp(-alpha * D[np.ix_(first, first)]), np.ones(len(first)))
    except np.linalg.LinAlgError:
        return alpha / 2, np.zeros(len(D))
    if not np.isfinite(w).all() or not (w > 0).any():
        return alpha / 2, np.zeros(len(D))
    positive = w > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.where(positive, np.log(w), -np.inf)
    if positive[first].all():
        return alpha, log_weights
    return _raised(D, log_weights, alpha), log_weights


def _raised(D, log_weights, alpha):
    """Largest rate in [alpha / 2, alpha] at which the normalised law is private."""
    kept = np.isfinite(log_weights)
    low, high = alpha / 2, alpha
    for _ in range(20):
        middle = (low + high) / 2
        private = rated_parameter(log_weights[kept] - middle * D[:, kept], middle, D) <= alpha
        low, high = (middle, high) if private else (low, middle)
    return low


def lowered(logs_at, D, rate, alpha):
    """Rate at which a law is private as it is computed, no more than the given one.

    Parameters
    ----------
    logs_at : callable
        From a rate to logarithms of weights.
    D : ndarray of shape (n_points, n_points)
    rate : float
        Private in exact arithmetic; lowered where rounding matters.
    alpha : float

    Returns
    -------
    rate, parameter : float

    Raises
    ------
    ValueError
        If distances are too small against rounding.
    """
    for _ in range(60):
        parameter = rated_parameter(logs_at(rate), rate, D)
        if parameter <= alpha * (1 + 1e-9):
            return rate, min(parameter, alpha)
        rate *= max(0.5, alpha / parameter * (1 - 1e-9))
    raise ValueError("alpha times the distances of candidates is lost in rounding.")


def worst_cost(logs, D2, outputs=None):
    """Expected distance of accuracy, for the point where it is largest.

    Parameters
    ----------
    logs : ndarray of shape (n_points, n_outputs)
    D2 : ndarray of shape (n_points, n_points)
    outputs : ndarray of int, default=None
        Which points the columns are; None: all.

    Returns
    -------
    float
    """
    costs = D2 if outputs is None else D2[:, outputs]
    part = rows_at_a_time(costs.shape[1])
    return max(
        float((np.exp(logs[i : i + part]) * costs[i : i + part]).sum(axis=1).max())
        for i in range(0, len(logs), part)
    )

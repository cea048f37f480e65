"""Laws at the full rate, by weights that make all rows sum to one."""

import numpy as np

from sklearn_dptda.metric_privacy._finite_laws import rated_parameter


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

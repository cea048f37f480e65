"""Which candidates the exponential mechanism chooses from: those of a net, or all."""

import numpy as np

from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._packing import Traversal

# Part of the worst cost that must be saved: for less, all candidates serve the others better.
_WORTH = 0.05


def chosen_net(D, alpha, net):
    """Places of the candidates that can be released at the rate ``alpha / 2``.

    ``net``: ``"all"``, a separation, ``"entropic"`` for the one of the theorem, or ``"auto"`` for
    the most accurate of the nets of a farthest-first traversal.
    """
    if net == "all":
        return np.arange(len(D))
    walk = Traversal(D)
    if net == "auto":
        return _best_net(D, walk.order, alpha / 2)
    return np.sort(walk.net(_separation(D, alpha) if net == "entropic" else float(net)))


def _separation(D, alpha):
    """Scale of the theorem: entropic at a third of the rate, or all of a small space.

    What is at least as large has as few points in each ball, so that an upper bound will do.
    """
    if 3 / alpha >= 2 * D.max():
        return float(D.max())
    return entropic_scale(D, alpha=alpha / 3).upper


def _best_net(D, order, rate):
    """Prefix of the order of which the worst cost is least; all, where that saves little."""
    costs = prefix_costs(D[:, order], rate)
    best = int(costs.argmin())
    if costs[best] >= costs[-1] * (1 - _WORTH):
        return np.arange(len(D))
    return np.sort(order[: best + 1])


def prefix_costs(to_order, rate):
    """Worst expected distances of the exponential laws on the first 1, 2, ... columns.

    In logarithms: the first columns may be far from a row, which makes their weights tiny.
    """
    logs = -rate * to_order
    with np.errstate(divide="ignore"):
        costs = np.logaddexp.accumulate(logs + np.log(to_order), axis=1)
    return np.exp((costs - np.logaddexp.accumulate(logs, axis=1)).max(axis=0))

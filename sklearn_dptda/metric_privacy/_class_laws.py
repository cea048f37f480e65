"""Laws on classes of near points, one of which stands for all of them.

Two kinds. *Weighted*: classes of a tree of privacy, at the full rate. *Relaxed*: classes of a tree
of accuracy, by the distance of privacy from the whole class, at half the rate or as much more as is
found to be private.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.metric_privacy._exact_draws import floored
from sklearn_dptda.metric_privacy._finite_laws import worst_cost
from sklearn_dptda.metric_privacy._linkage import cells_of_tree, tree_of
from sklearn_dptda.metric_privacy._packing import nearest_of_cells
from sklearn_dptda.metric_privacy._weighted_law import raised_rate, row_weights


class ClassLaw(NamedTuple):
    """A law on classes: what it costs, and all that it is drawn from."""

    kind: str
    radius: float
    rate: float
    cost: float
    outputs: IntArray
    log_weights: FloatArray
    to_classes: FloatArray


def weighted_class_law(D1, D2, radius, rate):
    """Weights of the classes of an ultrametric of privacy, by which rows sum to one."""
    cells = _classes(D1, radius)
    outputs = _representatives(cells, D2)
    between = D1[np.ix_(outputs, outputs)]
    try:
        weights = row_weights(between, rate)
    except np.linalg.LinAlgError:
        raise ValueError("alpha times the distances is lost in rounding.") from None
    log_weights = np.log(np.maximum(weights, np.finfo(float).tiny))
    return _law("weighted", radius, rate, outputs, log_weights, between[cells], D2)


def relaxed_class_law(D1, D2, radius, alpha):
    """Half the rate of the distance of privacy from classes of an ultrametric of accuracy.

    The mechanism of Theorem 5.1, at any radius. The distance of ``x`` from a class is the least
    from its points, and changes by at most that of ``x``: ``D1`` keeps all triangles.
    """
    cells = _classes(D2, radius)
    outputs = _representatives(cells, D2)
    to_classes = nearest_of_cells(D1, cells)
    return _law("relaxed", radius, alpha / 2, outputs, np.zeros(len(outputs)), to_classes, D2)


def raised(law, D1, D2, alpha):
    """A relaxed law at the largest rate, from half of ``alpha`` on, at which it is private."""
    rate = raised_rate(law.to_classes, law.log_weights, D1, alpha)
    return _law("raised", law.radius, rate, law.outputs, law.log_weights, law.to_classes, D2)


def cheapest(laws):
    """The law of the least cost, of several; of equal ones, up to rounding, the first."""
    return reduce(lambda best, law: law if law.cost < best.cost * (1 - 1e-6) else best, laws)


def _law(kind, radius, rate, outputs, log_weights, to_classes, D2):
    cost = worst_cost(floored(log_weights - rate * to_classes), D2[:, outputs])
    return ClassLaw(kind, float(radius), rate, cost, outputs, log_weights, to_classes)


def _classes(D, radius):
    """Number of the class of each point; up to rounding, heights of a tree are its radii."""
    return cells_of_tree(tree_of(D, "single"), radius * (1 + 1e-9))


def _representatives(cells, D2):
    """The point of each class whose farthest one is nearest."""
    order = np.argsort(cells, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)
    return np.array([mine[D2[np.ix_(mine, mine)].max(axis=1).argmin()] for mine in members])

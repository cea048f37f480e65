"""Private measures by noisy integrals against smooth functions."""

import math
from itertools import product

import numpy as np
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack, vstack

# Nodes of a grid that is projected by linear programming.
MOST_NODES = 5000
# Cells of a line.
MOST_CELLS = 1 << 16


def resolution_for(alpha, d):
    """Cells along an axis at which noise and rounding are about equal."""
    most = MOST_CELLS if d == 1 else max(1, int(MOST_NODES ** (1 / d)) - 1)
    if math.isinf(alpha):
        return most
    wanted = math.sqrt(alpha / 2) if d == 1 else (alpha / (2 * d)) ** (1 / (d + 1))
    return min(max(1, round(wanted)), most)


def size_for(alpha, d):
    """How many numbers are released at the resolution for a rate."""
    k = resolution_for(alpha, d)
    return k if d == 1 else (k + 1) ** d


def integrals(points, m):
    """Integrals of the distribution function over ``m`` cells of [0, 1].

    Moving the measure by a Wasserstein distance ``w`` moves them by ``w`` in
    sum at most, since that is the integral of the difference of distribution
    functions.

    Parameters
    ----------
    points : ndarray of shape (n, 1)
    m : int

    Returns
    -------
    ndarray of shape (m,)
    """
    x = np.minimum(points[:, 0] * m, m)
    cell = np.minimum(x.astype(np.int64), m - 1)
    # Of its own cell a point gives what lies beyond it, of all later ones everything.
    own = np.bincount(cell, weights=cell + 1 - x, minlength=m)
    later = np.r_[0, np.cumsum(np.bincount(cell, minlength=m))[:-1]]
    return (own + later) / (m * len(points))


def measure_of_integrals(noisy):
    """Atoms on a line, from noisy integrals of the distribution function.

    Returns
    -------
    support : ndarray of shape (m + 1, 1)
    weights : ndarray of shape (m + 1,)
    """
    m = len(noisy)
    steps = np.clip(isotonic_regression(m * noisy).x, 0.0, 1.0)
    return np.linspace(0, 1, m + 1)[:, None], np.diff(np.r_[0.0, steps, 1.0])


def hat_means(points, k):
    """Means of the multilinear hats of a grid with ``k`` cells along each axis.

    Hats sum to one. Moving a point by ``r`` in the maximum norm moves their
    values by ``2 d k r`` in sum at most: along one axis two groups of hats
    exchange ``k r``.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        In [0, 1].
    k : int

    Returns
    -------
    ndarray of shape ((k + 1)**d,)
        Sums to one.
    """
    n, d = points.shape
    scaled = points * k
    cell = np.minimum(scaled.astype(np.int64), k - 1)
    rest = scaled - cell
    total = np.zeros((k + 1) ** d)
    for corner in product((0, 1), repeat=d):
        weights = np.prod(np.where(corner, rest, 1 - rest), axis=1)
        flat = np.ravel_multi_index(tuple((cell + corner).T), (k + 1,) * d)
        total += np.bincount(flat, weights=weights, minlength=len(total))
    return total / n


def nearest_measure(noisy, k, d):
    """Probability weights on a grid that are least away from noisy ones.

    Mass moves along the edges of the grid at the price of their length, and is
    made or lost at the price of the whole width.

    Parameters
    ----------
    noisy : ndarray of shape ((k + 1)**d,)
    k, d : int

    Returns
    -------
    support : ndarray of shape ((k + 1)**d, d)
    weights : ndarray of shape ((k + 1)**d,)
    """
    shape = (k + 1,) * d
    numbers = np.arange(len(noisy)).reshape(shape)
    tails = np.concatenate([_without(numbers, axis, -1).ravel() for axis in range(d)])
    heads = np.concatenate([_without(numbers, axis, 0).ravel() for axis in range(d)])
    edges = np.arange(len(tails))
    ones = np.ones(len(edges))
    flow = coo_array(
        (np.r_[ones, -ones], (np.r_[tails, heads], np.r_[edges, edges])),
        (len(noisy), len(edges)),
    )
    same = eye_array(len(noisy))
    # weights + outflow + lost - made = noisy, and weights sum to one.
    A = hstack([same, flow, -flow, same, -same]).tocsr()
    costs = np.r_[np.zeros(len(noisy)), np.full(2 * len(edges), 1 / k), np.ones(2 * len(noisy))]
    sums = np.r_[np.ones(len(noisy)), np.zeros(len(costs) - len(noisy))]
    found = linprog(
        costs,
        A_eq=_with_row(A, sums),
        b_eq=np.r_[noisy, 1.0],
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError("the projection to probability measures was not solved.")
    weights = np.maximum(found.x[: len(noisy)], 0.0)
    support = np.stack(np.unravel_index(np.arange(len(noisy)), shape), axis=1) / k
    return support, weights / weights.sum()


def _without(numbers, axis, end):
    """All nodes but the last or the first ones along an axis."""
    return np.delete(numbers, end, axis=axis)


def _with_row(A, row):
    return vstack([A, csr_array(row[None])]).tocsr()

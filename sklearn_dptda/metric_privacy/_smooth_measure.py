"""Private measures by noisy integrals against smooth functions on the unit cube.

Proof: doc/theory/metric_privacy.md, "Measures".
"""

import math
from itertools import product

import numpy as np
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack, vstack

from sklearn_dptda.metric_privacy._box_measure import LineNoise
from sklearn_dptda.privacy import FixedPoint
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.rows._rows import BATCH, slices

# Nodes of a grid that is projected by linear programming.
MOST_NODES = 5000
# Cells of a line.
MOST_CELLS = 1 << 16
# Rates that noise can be scaled to in 64-bit integers.
_ALPHAS = (1e-6, 1e9)
# Bits of the two words of a number that is summed, and what stands for one.
_WORD = 32
_WHOLE = 2 ** (2 * _WORD)
# What floats add to the distance of two measures, at most: places in the grid, weights of a point
# and means are rounded by some 2**-53 of what they are, and sums are exact.
_LOST = 2.0**-50


def check_grid(alpha, d):
    """Refuse columns that no grid is made for, and rates that noise cannot be scaled to."""
    if d > 1 and 2**d > MOST_NODES:
        raise ValueError(f"method='metric' takes at most 12 columns; got {d}.")
    if not (_ALPHAS[0] <= alpha <= _ALPHAS[1] or math.isinf(alpha)):
        raise ValueError(
            f"alpha, or epsilon times the number of rows, must be inf or from {_ALPHAS[0]:g} "
            f"to {_ALPHAS[1]:g}; got {quoted(alpha)}."
        )


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


def rounding_for(alpha, d):
    """What rounding adds to the distance of two measures: that of floats, and to the lattice."""
    # Each number is rounded by less than a step, 2**-30 of the noise.
    return 0.0 if math.isinf(alpha) else _LOST + size_for(alpha, d) * 2.0**-30 / alpha


def smooth_measure(points, noise, alpha, factor):
    """Support and weights of a private measure, with ``factor`` times the noise of a rate.

    And the law of the noise, on a line.
    """
    d = points.shape[1]
    k = resolution_for(alpha, d)
    if d == 1:
        noisy = _with_noise(integrals(points, k), factor, alpha, noise)
        return *measure_of_integrals(noisy), _law(k, factor, alpha)
    noisy = _with_noise(hat_means(points, k), factor * 2 * d * k, alpha, noise)
    return *nearest_measure(noisy, k, d), None


def _with_noise(values, sensitivity, alpha, noise):
    """Numbers with Laplace noise for a sensitivity per unit of distance."""
    if math.isinf(alpha):
        return values
    scale = _scale(sensitivity, alpha)
    lattice = FixedPoint.for_scale(scale)
    # Each number is rounded by less than a step.
    steps = lattice.encode(values)
    return lattice.decode(steps + noise.discrete_laplace(scale / lattice.step, len(values)))


def _scale(sensitivity, alpha):
    # Rounded up: no loss of a last digit.
    return sensitivity / alpha * ROUND_UP


def _law(n_cells, factor, alpha):
    """Law of the noise of integrals."""
    if math.isinf(alpha):
        return LineNoise(n_cells, 0.0, 0.0)
    scale = _scale(factor, alpha)
    return LineNoise(n_cells, scale, FixedPoint.for_scale(scale).step)


def integrals(points, m):
    """Integrals of the distribution function over ``m`` cells of [0, 1], of points (n, 1).

    Moving the measure by a Wasserstein distance ``w`` moves them by ``w`` in
    sum at most, since that is the integral of the difference of distribution
    functions.
    """
    x = np.minimum(points[:, 0] * m, m)
    cell = np.minimum(x.astype(np.int64), m - 1)
    # A point adds the part of its own cell that lies beyond it, and the whole of all later cells.
    own = _exact_sums(cell, cell + 1 - x, m)
    later = np.r_[0, np.cumsum(np.bincount(cell, minlength=m))[:-1]]
    return ((own + later.astype(object) * _WHOLE) / (_WHOLE * int(m) * len(points))).astype(float)


def _exact_sums(places, parts, size):
    """Sums of numbers from 0 to 1, cut to whole units, by their places: in whatever order.

    Two words of each number are summed: floats hold the sums of a batch, and integers those of up
    to 2**31 rows.
    """
    high, low = np.zeros((2, size), dtype=np.int64)
    for place, part in zip(slices(places, BATCH), slices(parts, BATCH), strict=True):
        word = np.floor(np.ldexp(part, _WORD))
        rest = np.floor(np.ldexp(np.ldexp(part, _WORD) - word, _WORD))
        high += np.bincount(place, word, size).astype(np.int64)
        low += np.bincount(place, rest, size).astype(np.int64)
    return high.astype(object) * 2**_WORD + low


def measure_of_integrals(noisy):
    """Atoms (m + 1, 1) and weights on a line, from noisy integrals of the distribution function."""
    m = len(noisy)
    steps = np.clip(isotonic_regression(m * noisy).x, 0.0, 1.0)
    return np.linspace(0, 1, m + 1)[:, None], np.diff(np.r_[0.0, steps, 1.0])


def hat_means(points, k):
    """Means of the multilinear hats of a grid with ``k`` cells along each axis.

    Of shape ((k + 1)**d,), from points (n, d) in [0, 1]. Hats sum to one. Moving a point by ``r``
    in the maximum norm moves their values by ``2 d k r`` in sum at most: along one axis two groups
    of hats exchange ``k r``.
    """
    n, d = points.shape
    scaled = points * k
    cell = np.minimum(scaled.astype(np.int64), k - 1)
    rest = scaled - cell
    total = np.zeros((k + 1) ** d, dtype=object)
    for corner in product((0, 1), repeat=d):
        weights = np.prod(np.where(corner, rest, 1 - rest), axis=1)
        flat = np.ravel_multi_index(tuple((cell + corner).T), (k + 1,) * d)
        total += _exact_sums(flat, weights, len(total))
    return (total / (_WHOLE * n)).astype(float)


def nearest_measure(noisy, k, d):
    """Nodes ((k + 1)**d, d) of a grid, and the probability weights least away from noisy ones.

    Mass moves along the edges of the grid at the price of their length, and is
    made or lost at the price of the whole width.
    """
    n, shape = len(noisy), (k + 1,) * d
    numbers = np.arange(n).reshape(shape)
    # All nodes but the last ones along an axis, and all but the first.
    tails = np.concatenate([np.delete(numbers, -1, axis=axis).ravel() for axis in range(d)])
    heads = np.concatenate([np.delete(numbers, 0, axis=axis).ravel() for axis in range(d)])
    edges = np.arange(len(tails))
    ones = np.ones(len(edges))
    flow = coo_array(
        (np.r_[ones, -ones], (np.r_[tails, heads], np.r_[edges, edges])), (n, len(edges))
    )
    same = eye_array(n)
    # weights + outflow + lost - made = noisy, and weights sum to one.
    balance = hstack([same, flow, -flow, same, -same])
    costs = np.r_[np.zeros(n), np.full(2 * len(edges), 1 / k), np.ones(2 * n)]
    sums = csr_array(np.r_[np.ones(n), np.zeros(len(costs) - n)][None])
    solution = linprog(
        costs,
        A_eq=vstack([balance, sums]).tocsr(),
        b_eq=np.r_[noisy, 1.0],
        method="highs",
    )
    if solution.status != 0:
        raise RuntimeError("the projection to probability measures was not solved.")
    weights = np.maximum(solution.x[:n], 0.0)
    support = np.stack(np.unravel_index(np.arange(n), shape), axis=1) / k
    return support, weights / weights.sum()

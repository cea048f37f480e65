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

# Largest number of nodes of a grid, which is projected by linear programming.
MOST_NODES = 5000
# Largest number of cells of a line.
MOST_CELLS = 1 << 16
# Range of rates for which noise can be scaled to 64-bit integers.
_ALPHAS = (1e-6, 1e9)
# Number of bits of each of the two words of a number that is summed, and the integer that
# represents one.
_WORD = 32
_WHOLE = 2 ** (2 * _WORD)
# Largest distance that floating-point numbers add to two measures. Places in the grid, weights of a
# point and means are rounded by about 2**-53 of their size, and sums are exact.
_LOST = 2.0**-50


def check_grid(alpha, d):
    """Refuse too many columns for a grid, and rates to which noise cannot be scaled."""
    if d > 1 and 2**d > MOST_NODES:
        raise ValueError(
            f"method='metric' takes at most 12 columns; got {d}. Use method='hierarchical'."
        )
    if not (_ALPHAS[0] <= alpha <= _ALPHAS[1] or math.isinf(alpha)):
        raise ValueError(
            f"alpha, or epsilon times the number of rows, must be inf or between {_ALPHAS[0]:g} "
            f"and {_ALPHAS[1]:g}; got {quoted(alpha)}."
        )


def resolution_for(alpha, d):
    """Number of cells along an axis at which noise and rounding are about equal."""
    most = MOST_CELLS if d == 1 else max(1, int(MOST_NODES ** (1 / d)) - 1)
    if math.isinf(alpha):
        return most
    wanted = math.sqrt(alpha / 2) if d == 1 else (alpha / (2 * d)) ** (1 / (d + 1))
    return min(max(1, round(wanted)), most)


def size_for(alpha, d):
    """Number of numbers that are released at the resolution for a rate."""
    k = resolution_for(alpha, d)
    return k if d == 1 else (k + 1) ** d


def rounding_for(alpha, d):
    """Distance that rounding of floats, and rounding to the lattice, add to two measures."""
    # Each number is rounded by less than a step, which is 2**-30 of the noise.
    return 0.0 if math.isinf(alpha) else _LOST + size_for(alpha, d) * 2.0**-30 / alpha


def smooth_measure(points, noise, alpha, factor):
    """Support and weights of a private measure, and the law of the noise on a line.

    The noise is ``factor`` times that of the rate.
    """
    d = points.shape[1]
    k = resolution_for(alpha, d)
    # A row moves by at most the whole width.
    moved = 1 / len(points) + rounding_for(alpha, d)
    if d == 1:
        noisy = _with_noise(integrals(points, k), factor, alpha, noise, moved)
        return *measure_of_integrals(noisy), _law(k, factor, alpha)
    moved *= 2 * d * k
    noisy = _with_noise(hat_means(points, k), factor * 2 * d * k, alpha, noise, moved)
    return *nearest_measure(noisy, k, d), None


def _with_noise(values, sensitivity, alpha, noise, moved):
    """Numbers with Laplace noise for a sensitivity per unit of distance.

    A row moves the numbers by at most ``moved`` in sum.
    """
    if math.isinf(alpha):
        return values
    scale = _scale(sensitivity, alpha)
    lattice = FixedPoint.for_scale(scale)
    # Each number is rounded by less than a step.
    noisy = noise.cross(
        lattice.encode(values),
        lambda steps: steps + noise.discrete_laplace(scale / lattice.step, len(steps)),
        metric="l1",
        sensitivity=moved / lattice.step,
        rate=lattice.step / scale,
    )
    return lattice.decode(noisy)


def _scale(sensitivity, alpha):
    # Rounded up, so that rounding does not reduce the noise.
    return sensitivity / alpha * ROUND_UP


def _law(n_cells, factor, alpha):
    """Law of the noise of the integrals."""
    if math.isinf(alpha):
        return LineNoise(n_cells, 0.0, 0.0)
    scale = _scale(factor, alpha)
    return LineNoise(n_cells, scale, FixedPoint.for_scale(scale).step)


def integrals(points, m):
    """Integrals of the distribution function over ``m`` cells of [0, 1], of points (n, 1).

    If the measure moves by a Wasserstein distance ``w``, they move by at most ``w`` in sum.
    """
    x = np.minimum(points[:, 0] * m, m)
    cell = np.minimum(x.astype(np.int64), m - 1)
    # A point adds the part of its own cell that lies beyond it, and all later cells as a whole.
    own = _exact_sums(cell, cell + 1 - x, m)
    later = np.r_[0, np.cumsum(np.bincount(cell, minlength=m))[:-1]]
    return ((own + later.astype(object) * _WHOLE) / (_WHOLE * int(m) * len(points))).astype(float)


def _exact_sums(places, parts, size):
    """Sums by place of numbers from 0 to 1 that are cut to whole units, in any order.

    Floating-point numbers can represent the sums of a batch, and integers those of 2**31 rows.
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

    They have the shape ((k + 1)**d,), and come from points (n, d) in [0, 1]. If a point moves by
    ``r`` in the maximum norm, their values move by at most ``2 d k r`` in sum.
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
    """Nodes ((k + 1)**d, d) of a grid, and the probability weights nearest to noisy ones.

    Mass moves along the edges of the grid at the price of their length, and is created or removed
    at the price of the whole width.
    """
    n, shape = len(noisy), (k + 1,) * d
    numbers = np.arange(n).reshape(shape)
    # All nodes but the last ones along an axis, and all but the first ones.
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

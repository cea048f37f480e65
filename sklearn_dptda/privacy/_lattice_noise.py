"""Random integer vectors whose probability decreases with a norm.

Proof: doc/theory/metric_privacy.md, "Noise by a norm".
"""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._noise import NoiseSource

# Largest number of vectors that are drawn together.
_MAX_BATCH = 1 << 16


def lattice_noise(
    noise: NoiseSource, rate: float, shape: tuple[int, int], norm: Literal["l1", "l2", "linf"]
) -> NDArray[np.int64]:
    """Draw integer vectors with probabilities proportional to ``exp(-rate * norm)``.

    The norm is ``"l1"``, ``"linf"``, or ``"l2"`` rounded up to a whole number. The shape is
    (n_vectors, n_dims), with at least one vector.
    """
    if norm == "l1":
        # The scale is rounded up, so that rounding does not increase the privacy loss.
        return noise.discrete_laplace(ROUND_UP / rate, shape)
    d = shape[1]
    cubes_per_ball = 1.0
    if norm == "l2":
        cubes_per_ball = 2.0**d * math.gamma(d / 2 + 1) / math.pi ** (d / 2)

    def in_ball(missing: int) -> NDArray[np.int64]:
        # Draw slightly more points of the cube than needed, because some are outside of the ball.
        wanted = min(int(missing * cubes_per_ball * 1.1) + 16, _MAX_BATCH)
        radii = cube_radii(noise, rate, wanted, d)
        # These are uniform integer points of cubes around zero.
        points = _below(noise, np.repeat(2 * radii + 1, d)).reshape(-1, d) - radii[:, None]
        if norm == "linf":
            return points
        return points[(points.astype(float) ** 2).sum(axis=1) <= radii.astype(float) ** 2]

    return _until(shape[0], in_ball)


def _until(size: int, some: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Collect ``size`` entries from calls of ``some(missing)``, which may return fewer."""
    batches, missing = [], size
    while missing > 0:
        batches.append(some(missing)[:missing])
        missing -= len(batches[-1])
    return np.concatenate(batches)


def cube_radii(noise: NoiseSource, rate: float, size: int, d: int) -> NDArray[np.int64]:
    """Draw integers ``k`` with probability proportional to ``(2 k + 1)**d * exp(-rate * k)``.

    Sums of ``d + 1`` geometric variables have weights ``binom(k + d, d)``. The ratio of the
    required weights to these is a product of fractions, the probabilities of coins that accept the
    draw.
    """

    def accepted(missing: int) -> NDArray[np.int64]:
        k = np.sum([_geometric(noise, rate, missing) for _ in range(d + 1)], axis=0)
        for i in range(1, d + 1):
            # The probability (2 k + 1) / (2 k + 2 i) is exact, since it is drawn by integers.
            k = k[_below(noise, 2 * (k + i)) < 2 * k + 1]
        return k

    return _until(size, accepted)


def _geometric(noise: NoiseSource, rate: float, size: int) -> NDArray[np.int64]:
    """Draw non-negative integers ``k`` with probability proportional to ``exp(-rate * k)``."""

    def not_negative(missing: int) -> NDArray[np.int64]:
        k = noise.discrete_laplace(ROUND_UP / rate, int(2.2 * missing) + 16)
        return k[k >= 0]

    return _until(size, not_negative)


def _below(noise: NoiseSource, limits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw exactly uniform integers from zero to below each limit, by rejection."""
    shift = (64 - np.frexp(limits.astype(float))[1]).astype(np.uint64)
    uniform = np.empty(len(limits), dtype=np.int64)
    missing = np.arange(len(limits))
    while len(missing):
        draws = (noise.words(len(missing)) >> shift[missing]).astype(np.int64)
        inside = draws < limits[missing]
        uniform[missing[inside]] = draws[inside]
        missing = missing[~inside]
    return uniform

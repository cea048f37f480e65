"""Draws from rows of weights, in integers."""

import numpy as np
from scipy.special import logsumexp

from sklearn_dptda.metric_privacy._distance_matrices import rows_at_a_time

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

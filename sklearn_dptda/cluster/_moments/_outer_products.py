"""Sum of outer products of rows of any width: exact, since integers are multiplied."""

import math
from functools import partial

import numpy as np

from sklearn_dptda.cluster._moments._joint_moments import MomentWeights

# Products of 2**17 rows stay below 2**53, where floats hold integers, and sums of 2**27 rows within
# 64 bits.
_BITS = 18
# Noise stays below a scale of 2**52; beyond this one rows take fewer bits.
_LARGEST_SCALE = 2.0**14


def entry_noise(budget, share):
    """Scales of the noise of entries off the diagonal and on it, for residuals of norm one."""
    declared = MomentWeights(0.0, 0.0, 1.0).sensitivity(budget.adjacency, budget.norm)
    scale = budget.scale(declared, share)
    # In L2 a product off the diagonal counts twice: as two entries.
    return (math.sqrt(0.5) if budget.norm == "l2" else 1.0) * scale, scale


def release_outer_products(rows, residuals, budget, share):
    """Release the sum of the outer products of residuals of norm at most one, with noise.

    A symmetric matrix. Residuals are rounded towards zero before they are multiplied, so that they
    stay in the ball, and the sensitivity is what it was.
    """
    d, (off, on) = rows.n_features, entry_noise(budget, share)
    bits = _BITS - max(0, math.ceil(math.log2(max(on, _LARGEST_SCALE) / _LARGEST_SCALE) / 2))
    total = rows.sum(partial(_outer_products, residuals=residuals, bits=bits), width=d)
    upper = np.triu_indices(d, 1)
    noise = np.zeros((d, d), dtype=np.int64)
    noise[upper] = budget.draw(math.ldexp(off, 2 * bits), len(upper[0]))
    noise += noise.T
    noise[np.diag_indices(d)] = budget.draw(math.ldexp(on, 2 * bits), d)
    return np.ldexp((total + noise).astype(float), -2 * bits)


def _outer_products(batch, residuals, bits):
    """Exact sum, in squared steps."""
    steps = np.trunc(np.ldexp(residuals(batch), bits))
    # No product and no sum of them is rounded, in whatever order a library adds.
    return (steps.T @ steps).astype(np.int64)

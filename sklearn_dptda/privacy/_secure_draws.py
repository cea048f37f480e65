"""Exact integer noise and choices from the operating system's entropy, by OpenDP."""

import numpy as np
import opendp.prelude as dp
from joblib import Parallel, delayed

# Fewer draws are not worth a thread.
_CHUNK = 1 << 14


def draw(law, scale, size):
    """Discrete Laplace or Gaussian noise of a positive scale, of shape (size,).

    OpenDP works outside the interpreter's lock, so threads share long draws.
    """
    lengths = [min(_CHUNK, size - start) for start in range(0, size, _CHUNK)]
    parts = Parallel(n_jobs=-1 if len(lengths) > 1 else 1, require="sharedmem")(
        delayed(_chunk)(law, scale, length) for length in lengths
    )
    return np.concatenate(parts)


def noisy_min(costs, scale, bounded_range):
    """Index of a small cost: the exponential mechanism, or permute-and-flip.

    Of OpenDP's two forms only that for zero-concentrated divergence has a loss of bounded range.
    """
    dp.enable_features("contrib")
    measure = dp.zero_concentrated_divergence() if bounded_range else dp.max_divergence()
    space = _vectors(), dp.linf_distance(T=dp.i64)
    return int(dp.m.make_noisy_max(*space, measure, scale=scale, negate=True)(costs))


def _vectors():
    return dp.vector_domain(dp.atom_domain(T=dp.i64))


def _chunk(law, scale, length):
    # Measurements do not pickle: built where they are used.
    dp.enable_features("contrib")
    space = _vectors()
    if law == "laplace":
        measurement = dp.m.make_laplace(space, dp.l1_distance(T=dp.i64), scale=scale)
    else:
        measurement = dp.m.make_gaussian(space, dp.l2_distance(T=dp.i64), scale=scale)
    return np.asarray(measurement(np.zeros(length, dtype=np.int64)), dtype=np.int64)

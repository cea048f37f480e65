"""Exact integer noise from the operating system's entropy, by OpenDP."""

import numpy as np
import opendp.prelude as dp
from joblib import Parallel, delayed

# Fewer draws are not worth a thread.
_CHUNK = 1 << 14


def draw(law, scale, size):
    """Draw exact discrete Laplace or Gaussian noise.

    OpenDP works outside the interpreter's lock, so threads share long draws.

    Parameters
    ----------
    law : {"laplace", "gaussian"}
    scale : float
        Positive.
    size : int

    Returns
    -------
    ndarray of shape (size,), dtype int64
    """
    lengths = [min(_CHUNK, size - start) for start in range(0, size, _CHUNK)]
    parts = Parallel(n_jobs=-1 if len(lengths) > 1 else 1, require="sharedmem")(
        delayed(_chunk)(law, scale, length) for length in lengths
    )
    return np.concatenate(parts)


def _chunk(law, scale, length):
    # Measurements do not pickle: built where they are used.
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64))
    if law == "laplace":
        measurement = dp.m.make_laplace(space, dp.l1_distance(T=dp.i64), scale=scale)
    else:
        measurement = dp.m.make_gaussian(space, dp.l2_distance(T=dp.i64), scale=scale)
    return np.asarray(measurement(np.zeros(length, dtype=np.int64)), dtype=np.int64)

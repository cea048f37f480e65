"""Nodes of a grid along each axis: a default for each dimension, and a bound by memory."""

import math

import numpy as np

from sklearn_dptda.privacy._parameters import quoted

# Odd numbers, so that the centre of the box is a node.
_DEFAULTS = {1: 1001, 2: 101, 3: 41, 4: 17}
_MOST_DIMENSIONS = max(_DEFAULTS)
_PROJECTION = (
    "the clouds to 2 or 3 dimensions by a projection that does not look at the data, such as "
    "sklearn.random_projection.GaussianRandomProjection."
)


def check_resolution(given, n_dims, memory):
    """Return one number of nodes per axis, or refuse what does not fit into ``memory`` MiB."""
    if n_dims > _MOST_DIMENSIONS:
        # The number of nodes may be beyond all floats.
        raise ValueError(
            f"A grid in {n_dims} dimensions is not supported: at most {_MOST_DIMENSIONS}. "
            f"Bring {_PROJECTION}"
        )
    if given is None:
        sizes = (_DEFAULTS[n_dims],) * n_dims
    else:
        resolution = np.asarray(given)
        if resolution.ndim == 0:
            resolution = np.full(n_dims, resolution)
        whole = np.issubdtype(resolution.dtype, np.integer)
        if resolution.shape != (n_dims,) or not whole or resolution.min() < 2:
            raise ValueError(
                "resolution must be an integer of at least 2, or one per coordinate "
                f"({n_dims} here); got {quoted(given)}."
            )
        sizes = tuple(int(r) for r in resolution)
    n_nodes = int(np.prod([float(r) for r in sizes]))
    if _mebibytes(n_dims, n_nodes) > memory:
        raise ValueError(
            f"A grid of {n_nodes} nodes in {n_dims} dimensions needs about "
            f"{_mebibytes(n_dims, n_nodes):.3g} MiB, but memory={memory:g} MiB. Lower resolution "
            f"or raise memory. Or bring {_PROJECTION}"
        )
    return sizes


def resolution_for(error, sides):
    """Nodes per axis for which no place of a box is further than ``error`` from a node.

    The default where that is enough, and less than twice as many where even they are not.
    """
    least = _DEFAULTS.get(len(sides), 2)
    needed = 1 + math.ceil(float(np.linalg.norm(sides)) / (2 * error))
    return min(max(least, needed | 1), 2 * least - 1)


def _mebibytes(n_dims, n_nodes):
    """Floating-point work of a grid: values, coordinates and sums of every node."""
    return n_nodes * 8 * (n_dims + 3) / 2**20

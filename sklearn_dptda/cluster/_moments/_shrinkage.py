"""Post-processing of noisy moments: shrunk means and covariances."""

import numpy as np

# Of the pooled covariance, times the dimension, in units of the squared clipping radius.
_LEAST_VARIANCE = 1e-3
_TINY = 1e-300


def floored_counts(moments):
    """Counts, at least one standard deviation of their noise, and at least one half."""
    return np.maximum(moments.counts, max(moments.sd_count, 0.5))


def shrunk_steps(moments):
    """Means of the residuals, shrunk by the noise that is known to be in them.

    James and Stein: the expected squared norm of the noise is known, so the part of a step that
    noise explains is taken off.
    """
    counts = floored_counts(moments)
    steps = moments.sums / counts[:, None]
    d = steps.shape[1]
    noise = d * (moments.sd_sum / counts) ** 2
    squared = np.maximum((steps**2).sum(axis=1), _TINY)
    steps = steps * np.clip(1 - noise / squared, 0.0, 1.0)[:, None]
    norms = np.linalg.norm(steps, axis=1)
    return steps / np.maximum(norms, 1.0)[:, None]


def shrunk_covariances(moments, steps, floor):
    """Covariances about the stepped centres, shrunk towards a scaled pooled one.

    ``floor`` is the smallest eigenvalue, as a share of the mean pooled variance.
    """
    counts = floored_counts(moments)
    k, d = steps.shape
    squares = steps[:, :, None] * steps[:, None, :]
    if len(moments.seconds) < k:
        return _tied(moments, counts, squares, floor)
    raw = _like(moments.seconds, moments.seconds / counts[:, None, None] - squares)
    pooled = _within(np.einsum("k,kij->ij", _shares(moments), raw), _LEAST_VARIANCE / d, 1.0)
    pooled_trace = np.trace(pooled) / d
    # Mean variances of the cells, shrunk to the pooled one by the variance of their noise.
    traces = np.trace(raw, axis1=1, axis2=2) / d
    traces = _towards(traces, pooled_trace, moments.var_trace / (d * counts) ** 2)
    traces = np.clip(traces, floor * pooled_trace, None)
    target = pooled * (traces / pooled_trace)[:, None, None]
    deviation = raw - target
    squared = np.maximum((deviation**2).sum(axis=(1, 2)), _TINY)
    kept = np.clip(1 - moments.var_second / counts**2 / squared, 0.0, 1.0)
    mixed = target + kept[:, None, None] * deviation
    return _within(mixed, floor * pooled_trace, 1.0)


def _tied(moments, counts, squares, floor):
    """One covariance for all cells."""
    k, d = squares.shape[:2]
    total = counts.sum()
    raw = moments.seconds[0] / total - np.einsum("k,kij->ij", counts / total, squares)
    pooled = _within(raw, _LEAST_VARIANCE / d, 1.0)
    pooled = _within(pooled, floor * np.trace(pooled) / d, 1.0)
    return np.tile(pooled, (k, 1, 1))


def _like(seconds, raw):
    """Covariances with the structure of the second moments: diagonal, or isotropic."""
    d = raw.shape[1]
    off = ~np.eye(d, dtype=bool)
    if d == 1 or (seconds[:, off] != 0).any():
        return raw
    diagonals = np.diagonal(raw, axis1=1, axis2=2)
    seen = np.diagonal(seconds, axis1=1, axis2=2)
    if (seen == seen[:, :1]).all():
        diagonals = np.repeat(diagonals.mean(axis=1, keepdims=True), d, axis=1)
    return diagonals[:, :, None] * np.eye(d)


def _shares(moments):
    counts = np.maximum(moments.counts, 0.0)
    total = counts.sum()
    return counts / total if total > 0 else np.full(len(counts), 1 / len(counts))


def _towards(values, centre, noise):
    deviation = values - centre
    return centre + deviation * np.clip(1 - noise / np.maximum(deviation**2, _TINY), 0, 1)


def _within(matrices, least, most):
    """Clip eigenvalues; residuals have norm at most one, so no variance is above one."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.clip(values, least, most)
    clipped = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return 0.5 * (clipped + np.swapaxes(clipped, -1, -2))

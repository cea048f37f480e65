"""Post-processing of noisy moments: cells that are kept, shrunk means and covariances."""

import numpy as np

# Of the pooled covariance, times the dimension, in units of the squared clipping radius.
_LEAST_VARIANCE = 1e-3
_TINY = 1e-300
# Standard deviations of the noise of a count up to which a cell may have no rows at all.
KEPT = 3.0


def floored_counts(moments):
    """Counts, at least one standard deviation of their noise, and at least one half."""
    return np.maximum(moments.counts, max(moments.sd_count, 0.5))


def above_noise(moments, counts):
    """Which cells are kept: by their noisy counts, and never none."""
    kept = moments.counts > KEPT * moments.sd_count
    return kept if kept.any() else counts == counts.max()


def shrunk_steps(moments):
    """Means of the residuals, shrunk by the noise that is known to be in them.

    James and Stein: the expected squared norm of the noise is known, so the part of a step that
    noise explains is taken off.
    """
    counts = floored_counts(moments)
    steps = moments.sums / counts[:, None]
    d = steps.shape[1]
    noise = d * (moments.sd_sum / counts) ** 2
    steps = steps * _signal(noise, (steps**2).sum(axis=1))[:, None]
    norms = np.linalg.norm(steps, axis=1)
    return steps / np.maximum(norms, 1.0)[:, None]


def shrunk_covariances(moments, steps, floor):
    """Covariances about the stepped centres, shrunk towards a scaled pooled one.

    ``floor`` is the smallest eigenvalue, as a share of the mean pooled variance. Returns also what
    part of the differences between the covariances is no noise.
    """
    counts = floored_counts(moments)
    k, d = steps.shape
    outer = steps[:, :, None] * steps[:, None, :]
    if len(moments.second_moments) < k:
        return _tied(moments, counts, outer, floor), 0.0
    raw = _like(moments.second_moments, moments.second_moments / counts[:, None, None] - outer)
    pooled = _within(np.einsum("k,kij->ij", _shares(moments), raw), _LEAST_VARIANCE / d)
    pooled_trace = np.trace(pooled) / d
    # Mean variances of the cells, shrunk to the pooled one by the variance of their noise.
    traces = np.trace(raw, axis1=1, axis2=2) / d
    traces = _towards(traces, pooled_trace, moments.var_trace / (d * counts) ** 2)
    traces = np.clip(traces, floor * pooled_trace, None)
    target = pooled * (traces / pooled_trace)[:, None, None]
    deviation = raw - target
    kept = _common_signal(moments.var_second_moment / counts**2, (deviation**2).sum(axis=(1, 2)))
    mixed = target + kept[:, None, None] * deviation
    return _within(mixed, floor * pooled_trace), float(np.average(kept, weights=counts))


def _tied(moments, counts, outer, floor):
    """One covariance for all cells."""
    k, d = outer.shape[:2]
    total = counts.sum()
    raw = moments.second_moments[0] / total - np.einsum("k,kij->ij", counts / total, outer)
    pooled = _within(raw, _LEAST_VARIANCE / d)
    pooled = _within(pooled, floor * np.trace(pooled) / d)
    return np.tile(pooled, (k, 1, 1))


def _like(second_moments, raw):
    """Covariances with the structure of the second moments: diagonal, or isotropic."""
    d = raw.shape[1]
    off = ~np.eye(d, dtype=bool)
    if d == 1 or (second_moments[:, off] != 0).any():
        return raw
    diagonals = np.diagonal(raw, axis1=1, axis2=2)
    seen = np.diagonal(second_moments, axis1=1, axis2=2)
    if (seen == seen[:, :1]).all():
        diagonals = np.repeat(diagonals.mean(axis=1, keepdims=True), d, axis=1)
    return diagonals[:, :, None] * np.eye(d)


def _shares(moments):
    counts = np.maximum(moments.counts, 0.0)
    total = counts.sum()
    return counts / total if total > 0 else np.full(len(counts), 1 / len(counts))


def _towards(values, centre, noise):
    deviation = values - centre
    return centre + deviation * _common_signal(noise, deviation**2)


def _signal(noise, squared):
    """Part of a squared deviation that its expected noise does not explain."""
    return np.clip(1 - noise / np.maximum(squared, _TINY), 0.0, 1.0)


def _common_signal(noise, squared):
    """Part of each of many deviations that is no noise, were they drawn from one normal law.

    Its variance is what the noise leaves of the squares, the least noisy counting most: with the
    expected noise of each this is the empirical Bayes rule of Efron and Morris, which shrinks
    deviations of pure noise altogether.
    """
    noise = np.maximum(np.broadcast_to(noise, squared.shape), _TINY)
    variance = max(float(np.average(squared - noise, weights=noise.min() / noise)), 0.0)
    return variance / (variance + noise)


def clip_eigenvalues(matrices, least, most):
    """Symmetric matrices with eigenvalues from ``least`` to ``most``."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.clip(values, least, most)
    return (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _within(matrices, least):
    """Covariances of residuals, which have norm at most one, so that no variance is above one."""
    clipped = clip_eigenvalues(matrices, least, 1.0)
    return 0.5 * (clipped + np.swapaxes(clipped, -1, -2))

"""Post-processing of noisy moments: centres, covariances, light clusters."""

import numpy as np

# Of the pooled covariance, times the dimension, in units of the squared clipping radius.
_LEAST_VARIANCE = 1e-3


def floored_counts(moments):
    """Counts, at least one standard deviation of their noise, and at least one half."""
    return np.maximum(moments.counts, max(moments.sd_count, 0.5))


def shrunk_steps(moments):
    """Means of the residuals, shrunk by the noise that is known to be in them.

    James and Stein: the expected squared norm of the noise is known, so the
    part of a step that noise explains is taken off.

    Returns
    -------
    ndarray of shape (n_cells, n_features)
    """
    counts = floored_counts(moments)
    steps = moments.sums / counts[:, None]
    d = steps.shape[1]
    noise = d * (moments.sd_sum / counts) ** 2
    squared = np.maximum((steps**2).sum(axis=1), 1e-300)
    steps = steps * np.clip(1 - noise / squared, 0.0, 1.0)[:, None]
    norms = np.linalg.norm(steps, axis=1)
    return steps / np.maximum(norms, 1.0)[:, None]


def shrunk_covariances(moments, steps, floor):
    """Covariances about the stepped centres, shrunk towards a scaled pooled one.

    Parameters
    ----------
    moments : Moments
    steps : ndarray of shape (n_cells, n_features)
    floor : float
        Smallest eigenvalue, as a share of the mean pooled variance.

    Returns
    -------
    ndarray of shape (n_cells, n_features, n_features)
    """
    counts = floored_counts(moments)
    k, d = steps.shape
    raw = moments.seconds / counts[:, None, None] - steps[:, :, None] * steps[:, None, :]
    shares = np.maximum(moments.counts, 0.0)
    shares = shares / shares.sum() if shares.sum() > 0 else np.full(k, 1 / k)
    pooled = _within(np.einsum("k,kij->ij", shares, raw), _LEAST_VARIANCE / d, 1.0)
    pooled_trace = np.trace(pooled) / d
    # Mean variances of the cells, shrunk to the pooled one by the variance of their noise.
    traces = np.trace(raw, axis1=1, axis2=2) / d
    trace_noise = (moments.sd_second / counts) ** 2 / d
    traces = _towards(traces, pooled_trace, trace_noise)
    traces = np.clip(traces, floor * pooled_trace, None)
    target = pooled * (traces / pooled_trace)[:, None, None]
    deviation = raw - target
    noise = d * (d + 1) / 2 * (moments.sd_second / counts) ** 2
    squared = np.maximum((deviation**2).sum(axis=(1, 2)), 1e-300)
    kept = np.clip(1 - noise / squared, 0.0, 1.0)
    mixed = target + kept[:, None, None] * deviation
    return _within(mixed, floor * pooled_trace, 1.0)


def _towards(values, centre, noise):
    deviation = values - centre
    return centre + deviation * np.clip(1 - noise / np.maximum(deviation**2, 1e-300), 0, 1)


def _within(matrices, least, most):
    """Clip eigenvalues; residuals have norm at most one, so no variance is above one."""
    values, vectors = np.linalg.eigh(matrices)
    values = np.clip(values, least, most)
    clipped = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return 0.5 * (clipped + np.swapaxes(clipped, -1, -2))


def split_light(centres, moments, spread, rng):
    """Move the centres of light clusters next to the heaviest ones.

    Parameters
    ----------
    centres : ndarray of shape (n_cells, n_features)
    moments : Moments
        Only its noisy counts are used.
    spread : float
        How far from the heavy centre the new one is put.
    rng : numpy.random.Generator
        Of directions, independent of the records.

    Returns
    -------
    ndarray of shape (n_cells, n_features)
    """
    centres, counts = centres.copy(), np.maximum(moments.counts, 0.0)
    light = max(3 * moments.sd_count, 0.02 * counts.sum() / len(counts))
    for cell in np.flatnonzero(moments.counts < light):
        heavy = int(np.argmax(counts))
        direction = rng.standard_normal(centres.shape[1])
        direction *= spread / np.linalg.norm(direction)
        centres[cell] = centres[heavy] + direction
        centres[heavy] = centres[heavy] - direction
        counts[heavy] /= 2
        counts[cell] = counts[heavy]
    return centres


def packed_centres(n, n_features, half_width, rng):
    """Centres far apart in a cube, without looking at data: farthest points first."""
    candidates = rng.uniform(-half_width, half_width, (max(1000, 50 * n), n_features))
    chosen = [candidates[0]]
    nearest = np.full(len(candidates), np.inf)
    for _ in range(n - 1):
        nearest = np.minimum(nearest, ((candidates - chosen[-1]) ** 2).sum(axis=1))
        chosen.append(candidates[int(np.argmax(nearest))])
    return np.array(chosen)

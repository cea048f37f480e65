"""Densities of rows: distance to a measure, kernels, or a given function."""

import numpy as np
from sklearn.neighbors import KernelDensity


def row_densities(X, density, distances, bandwidth, metric):
    """Density of each row, or its logarithm, by the name of a density or a function of the rows.

    ``distances`` to the nearest rows are for the distance to a measure. A ValueError says that
    some density is not finite.
    """
    if callable(density):
        values = np.asarray(density(X), dtype=float)
        if values.shape != (X.shape[0],) or not np.isfinite(values).all():
            raise ValueError("density must return one finite number for each row.")
        return values
    if density in ("kde", "log_kde"):
        logs = KernelDensity(bandwidth=bandwidth, metric=metric).fit(X).score_samples(X)
    else:
        # The exponent that makes a density of a distance.
        dimension = 2 if metric == "precomputed" else X.shape[1]
        logs = -0.5 * dimension * _log_mean_squares(distances)
    if not np.isfinite(logs).all():
        raise ValueError(
            f"density={density!r} is not finite: with metric={metric!r}, distances "
            "of these rows are undefined or overflow."
        )
    return logs if density.startswith("log") else np.exp(logs - logs.max())


def _log_mean_squares(distances):
    """Logarithms of the mean squares of the distances of each row.

    Taken in units of the largest, whose square may overflow.
    """
    if isinstance(distances, np.ndarray):
        largest = distances.max() or 1.0
        means = np.square(distances / largest).mean(axis=1)
    else:
        largest = max(row.max() for row in distances) or 1.0
        means = np.array([np.square(row / largest).mean() for row in distances])
    positive = means[means > 0]
    # Copies of a row are nearer than anything else, but not infinitely so.
    floor = 0.25 * positive.min() if len(positive) else 1.0
    return np.log(np.maximum(means, floor)) + 2 * np.log(largest)

"""Where k-means steps start."""

import numpy as np
from sklearn.cluster import KMeans

from sklearn_dptda.cluster._mixture._centre_steps import KMEANS_WEIGHTS, kmeans_steps
from sklearn_dptda.cluster._mixture._centres import initial_centres

# Of the share for all k-means steps, and number of steps, for cells to start from.
_SHARE, _STEPS = 0.4, 3
# Cells hold this many standard deviations of the noise of a count, on average and at least; their
# number is at least and at most so many times that of the centres.
_MEAN_COUNT, _LEAST_COUNT = 5.0, 3.0
_FEW, _MANY = 2, 6


def moved_centres(data, n, n_steps, budget, share, rng, along_axes=False):
    """Centres after so many k-means steps, and their last moments.

    Where noise allows for cells, the first three steps move cells, whose clusters are the initial
    centres of the others; else these are far apart. ``along_axes``: on both sides along the
    principal axes, if these are enough, whatever their signs are: components in the tails, which
    merging cuts off, come from there.
    """
    if along_axes and n <= 2 * data.n_features:
        return kmeans_steps(data, _both_sides(data, n), n_steps, budget, share, rng)
    first, n_cells = _SHARE * share, 0
    if n_steps > _STEPS:
        n_cells = int(min(data.n_rows / _mean_count(budget, first), _MANY * n))
    if n_cells < _FEW * n:
        return kmeans_steps(data, initial_centres(data, n, rng), n_steps, budget, share, rng)
    cells = initial_centres(data, n_cells, rng)
    finer = n_cells ** (-1 / data.n_features)
    cells, moments = kmeans_steps(data, cells, _STEPS, budget, first, rng, finer)
    centres = _clusters(cells, moments, n)
    return kmeans_steps(data, centres, n_steps - _STEPS, budget, share - first, rng)


def _mean_count(budget, share):
    """Rows that a cell should have."""
    weights = KMEANS_WEIGHTS[budget.adjacency]
    declared = weights.sensitivity(budget.adjacency, budget.norm)
    sd = budget.deviation(budget.scale(declared, share / _STEPS)) / weights.roots[0]
    return max(_MEAN_COUNT * sd, 1.0)


def _clusters(cells, moments, n):
    """K-means of the cells that are above the noise, or of the ``n`` heaviest."""
    above = moments.counts > _LEAST_COUNT * moments.sd_count
    kept = above if above.sum() >= n else np.argsort(-moments.counts)[:n]
    weights = np.maximum(moments.counts[kept], 1.0)
    return (
        KMeans(n, n_init=10, random_state=0)
        .fit(cells[kept], sample_weight=weights)
        .cluster_centers_
    )


def _both_sides(data, n):
    """Centres on both sides along the longest axes, as far out as a row is in all columns."""
    axes = data.n_features**0.5 * data.axes.T[::-1]
    return np.stack([axes, -axes], axis=1).reshape(-1, data.n_features)[:n]

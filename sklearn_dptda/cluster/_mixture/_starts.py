"""Where k-means steps start."""

from functools import partial

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import KMeans

from sklearn_dptda.cluster._mixture._centre_steps import KMEANS_WEIGHTS, kmeans_steps
from sklearn_dptda.cluster._mixture._centres import initial_centres

# Of the share for all k-means steps, and number of steps, for cells to start from.
_SHARE, _STEPS = 0.4, 3
# Cells hold this many standard deviations of the noise of a count, on average and at least; their
# number is at least and at most so many times that of the centres.
_MEAN_COUNT, _LEAST_COUNT = 5.0, 3.0
_FEW, _MANY = 2, 6
# Centres where nobody says how many, unless more clusters than these are far apart: then some to
# spare where they are to be merged.
USUAL, _SPARE = 8, 4
# Cells to tell that from, at most; and how many times as far as cells of one cluster those of
# different ones are.
_MOST_CELLS, _CLEAR = 512, 1.3
# So many cells for each of the usual clusters say something; that share of them can be clusters,
# at most so many.
_ENOUGH, _FULL, _MOST_FOUND = 3, 0.9, 128


def moved_centres(data, n, n_steps, budget, share, rng, merged=False):
    """Centres after so many k-means steps: the last one.

    Where noise allows for cells, the first three steps move cells, whose clusters are the initial
    centres of the others; else these are far apart. With ``n=None`` their number is that of
    clusters of cells far apart, if that is clear, or 8. Centres to be ``merged`` start on both
    sides along the principal axes, if these are enough, whatever their signs are: components in
    the tails, which merging cuts off, come from there.
    """
    along_axes = merged and (n or USUAL) <= 2 * data.n_features
    initial = partial(_both_sides, data) if along_axes else partial(initial_centres, data, rng=rng)
    first = _SHARE * share
    most = _MANY * n if n else _MOST_CELLS
    n_cells = int(min(data.n_rows / _mean_count(budget, first), most))
    if n_steps <= _STEPS or (n and along_axes) or n_cells < _FEW * (n or USUAL):
        return kmeans_steps(data, initial(n or USUAL), n_steps, budget, share, rng)
    cells = initial_centres(data, n_cells, rng)
    finer = n_cells ** (-1 / data.n_features)
    step = kmeans_steps(data, cells, _STEPS, budget, first, rng, finer)
    cells, moments = step.means, step.moments
    above = moments.counts > _LEAST_COUNT * moments.sd_count
    kept = above if above.sum() >= (n or USUAL) else np.argsort(-moments.counts)[: n or USUAL]
    cells, weights = cells[kept], np.maximum(moments.counts[kept], 1.0)
    found = n or far_clusters(cells)
    if found is None and along_axes:
        centres = initial(USUAL)
    else:
        n = n or (USUAL if found is None else min(found + _SPARE * merged, len(cells)))
        kmeans = KMeans(n, n_init=10, random_state=0)
        centres = kmeans.fit(cells, sample_weight=weights).cluster_centers_
    return kmeans_steps(data, centres, n_steps - _STEPS, budget, share - first, rng)


def far_clusters(cells):
    """Number of clusters of cells that are far apart, if it is clear and more than the usual one.

    The largest ratio of successive lengths in single linkage, among numbers that leave clusters
    with several cells.
    """
    most = min(int(_FULL * len(cells)), _MOST_FOUND)
    if len(cells) < _ENOUGH * USUAL:
        return None
    lengths = linkage(cells, "single")[::-1, 2][:most]
    ratios = lengths[:-1] / np.maximum(lengths[1:], np.finfo(float).tiny)
    number = int(ratios.argmax()) + 2
    return number if number > USUAL and ratios.max() >= _CLEAR else None


def _mean_count(budget, share):
    """Rows that a cell should have."""
    weights = KMEANS_WEIGHTS[budget.adjacency]
    declared = weights.sensitivity(budget.adjacency, budget.norm)
    sd = budget.deviation(budget.scale(declared, share / _STEPS)) / weights.roots[0]
    return max(_MEAN_COUNT * sd, 1.0)


def _both_sides(data, n):
    """Centres on both sides along the longest axes, as far out as a row is in all columns."""
    axes = data.n_features**0.5 * data.axes.T[::-1]
    return np.stack([axes, -axes], axis=1).reshape(-1, data.n_features)[:n]

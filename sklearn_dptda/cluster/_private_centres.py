"""Private centres of standardised rows: starts, and noisy steps of k-means.

Proof: doc/theory/private_mixtures.md, "Starts, numbers of steps, kinds of covariances".
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import KMeans

from sklearn_dptda.rows._localisation import localise
from sklearn_dptda.rows._moments import FitBudget, Moments, MomentWeights, hard_assignment, one_cell
from sklearn_dptda.rows._rows import clip_norm, euclidean, in_norm, nearest_to, residuals_about
from sklearn_dptda.rows._shrinkage import KEPT, floored_counts, shrunk_steps
from sklearn_dptda.utils._distances import farthest_first

# Share of what localisation has left of a fit's budget.
_STANDARD_SHARE = 0.08
_STANDARD_WEIGHTS = MomentWeights(0.2, 0.4, 0.4)
# In root mean square radii of the standardised records.
RECORD_RADIUS = 2.0
# In more columns principal axes would be noise, and slow: the columns stand for them.
_MOST_TURNED = 64
# Of the mean variance: below it, the noise of a covariance says nothing on a direction.
_FLAT = 0.02


@dataclass(frozen=True)
class Standardised:
    """Records about a private centre, in units of one private scale.

    ``rows`` have norm at most ``2 * sqrt(n_features)``, and ``n_rows`` is their private number;
    columns of ``axes`` are private principal axes, as long as the standard deviations; ``budget``
    is what is left for all that follows.
    """

    rows: object
    centre: np.ndarray
    scale: float
    axes: np.ndarray
    n_rows: float
    budget: FitBudget

    @property
    def n_features(self):
        """Dimension of the records."""
        return self.rows.n_features

    def back(self, means, covariances=None):
        """Means, and covariances, in the units of the cube."""
        means = self.centre + self.scale * means
        return means if covariances is None else (means, self.scale**2 * covariances)


def standardise(rows, budget):
    """Release centre, scale and principal axes of all records, and apply the first two.

    Noise of moments is relative to the ball that records are clipped to: a private one first.
    """
    d = rows.n_features
    middle, ball, spent = localise(rows, budget)
    budget = budget.rest(spent)
    radius = in_norm(ball, d, budget.norm)
    moments = budget.release(
        rows,
        one_cell(middle, radius, budget.norm),
        1,
        weights=_STANDARD_WEIGHTS,
        share=_STANDARD_SHARE,
        kind="full" if d <= _MOST_TURNED else "diag",
    )
    count = floored_counts(moments)[0]
    offset = radius * moments.sums[0] / count
    offset = offset / max(float(np.linalg.norm(offset)) / ball, 1.0)
    covariance = radius**2 * moments.second_moments[0] / count - np.outer(offset, offset)
    centre, most = middle + offset, ball**2 / d
    scale = float(np.sqrt(np.clip(np.trace(covariance) / d, 1e-4 * most, most)))
    values, vectors = np.linalg.eigh(covariance / scale**2)
    limit = RECORD_RADIUS * d**0.5
    return Standardised(
        rows.map(partial(_in_units, centre=centre, scale=scale, limit=limit)),
        centre,
        scale,
        vectors * np.sqrt(np.clip(values, _FLAT, d)),
        float(count),
        budget.rest(_STANDARD_SHARE),
    )


def _in_units(part, centre, scale, limit):
    return clip_norm((part - centre) / scale, limit) * limit


def split_light(centres, moments, spread, rng):
    """Move the centres of light clusters, by noisy counts alone, next to the heaviest ones.

    They go as far as ``spread``, in directions that ``rng`` draws independently of the records.
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


def packed_points(n, n_features, rng):
    """Points far apart in the unit ball, without looking at data: farthest points first."""
    candidates = rng.standard_normal((max(2000, 100 * n), n_features))
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    candidates *= rng.uniform(size=(len(candidates), 1)) ** (1 / n_features)
    return candidates[far_apart(candidates, n)]


def far_apart(points, n):
    """Indices of ``n`` points, the first one and then always the farthest from those before."""
    return farthest_first(lambda i: ((points - points[i]) ** 2).sum(axis=1), n)[0]


def initial_centres(data, n, rng):
    """Centres far apart in the ball of twice the size of the records' private ellipsoid."""
    return data.n_features**0.5 * packed_points(n, data.n_features, rng) @ data.axes.T


def inside(centres):
    """Keep centres where records can be."""
    limit = RECORD_RADIUS * centres.shape[1] ** 0.5
    return centres / np.maximum(euclidean(centres) / limit, 1.0)[:, None]


@dataclass(frozen=True)
class NoisyClusters:
    """Centres and numbers of rows, and standard deviations of the noise in both.

    The noise is that of one release, given all before it, to first order: relative to numbers of
    rows, and without shrinkage, which makes errors smaller on average.
    """

    centres: np.ndarray
    counts: np.ndarray
    sd_centres: np.ndarray
    sd_counts: np.ndarray

    @property
    def weights(self):
        """Shares of the rows."""
        return self.counts / self.counts.sum()

    @property
    def sd_weights(self):
        """Standard deviations of the noise in the shares: counts over a sum that has it too."""
        variances, weights = self.sd_counts**2, self.weights
        total = variances * (1 - 2 * weights) + weights**2 * variances.sum()
        return np.sqrt(total) / self.counts.sum()

    @property
    def within_noise(self):
        """Which clusters have no more rows than noise makes."""
        return self.counts <= KEPT * self.sd_counts


@dataclass(frozen=True)
class NoisyStep:
    """Moments of cells about some centres, in units of a radius, and what follows from them.

    The radius is a number, or one for each cell, of shape (n_cells, 1).
    """

    centres: np.ndarray
    radius: float | np.ndarray
    moments: Moments

    @property
    def counts(self):
        """Noisy counts, floored."""
        return floored_counts(self.moments)

    @property
    def means(self):
        """Means of the cells."""
        return inside(self.centres + self.radius * shrunk_steps(self.moments))

    def clusters(self):
        """Each cell as a cluster."""
        everything = np.arange(len(self.centres))
        return self.pooled(everything, everything, self.means)

    def pooled(self, cells, labels, means, sd_counts=None):
        """Clusters of some cells, by their labels, about the means of their rows.

        A row that noise makes in a cell pulls a mean to the cell's centre, since the moments are
        about that one. ``sd_counts``, of all cells, are as they were released where none are given.
        """
        k, d = means.shape
        if sd_counts is None:
            sd_counts = np.full(len(self.centres), self.moments.sd_count)
        radii = np.broadcast_to(self.radius, (len(self.centres), 1))[cells]
        pulls = sd_counts[cells, None] * (self.centres[cells] - means[labels])
        variances = np.zeros((k, d))
        np.add.at(variances, labels, pulls**2 + (radii * self.moments.sd_sum) ** 2)
        counts = np.bincount(labels, self.counts[cells], minlength=k)
        return NoisyClusters(
            means,
            counts,
            np.sqrt(variances) / counts[:, None],
            np.sqrt(np.bincount(labels, sd_counts[cells] ** 2, minlength=k)),
        )


# In root mean square radii of the standardised records.
_RESIDUAL_RADIUS, _CELL_RADIUS = 0.7, 1.3
# Under replace-one a count as heavy as the sum is free.
KMEANS_WEIGHTS = {"add-remove": MomentWeights(0.3, 0.7), "replace-one": MomentWeights(0.5, 0.5)}


def residual_radius(data, n_cells, budget):
    """Where residuals are clipped, in the budget's norm.

    Cells that share a volume are the narrower the more there are.
    """
    d = data.n_features
    radius = d**0.5 * min(_RESIDUAL_RADIUS, _CELL_RADIUS * n_cells ** (-1 / d))
    return in_norm(radius, d, budget.norm)


def kmeans_steps(data, centres, n_steps, budget, share, rng, finer=1.0):
    """Move centres to the private means of their records; the last step.

    ``share`` is that of all steps together; ``rng`` is for the places of centres that lose their
    records, and ``finer`` makes these nearer to those that they leave.
    """
    spread = 0.5 * _RESIDUAL_RADIUS * data.n_features**0.5 * finer
    for step in range(n_steps):
        # Wide at first, while centres may be far from their records.
        radius = residual_radius(data, len(centres), budget) * (2.0 if step == 0 else 1.0)
        moments = budget.release(
            data.rows,
            hard_assignment(nearest_to(centres), residuals_about(centres, radius, budget.norm)),
            len(centres),
            weights=KMEANS_WEIGHTS[budget.adjacency],
            share=share / n_steps,
        )
        last = NoisyStep(centres, radius, moments)
        centres = last.means
        if step < n_steps - 1:
            centres = split_light(centres, moments, spread, rng)
    return last


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

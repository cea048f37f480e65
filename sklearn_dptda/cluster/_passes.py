"""Passes over private records: standardising, k-means steps, mixture steps.

Records come as :class:`Rows` of the cube ``[-1, 1]**d``, and every pass
touches them only through a budget's ``release``.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_dptda.cluster._budgets import hard_assignment, soft_assignment
from sklearn_dptda.cluster._density import MixtureDensity
from sklearn_dptda.cluster._moments import MomentWeights, clip_norm, euclidean, row_products
from sklearn_dptda.cluster._steps import (
    floored_counts,
    packed_points,
    shrunk_covariances,
    shrunk_steps,
    split_light,
)

_STANDARD = MomentWeights(0.2, 0.4, 0.4)
# Under replace-one a count as heavy as the sum is free.
_KMEANS = {"add-remove": MomentWeights(0.3, 0.7), "replace-one": MomentWeights(0.5, 0.5)}
_MIXTURE = MomentWeights(0.1, 0.3, 0.6)
# In root mean square radii of the standardised records.
_RECORD_RADIUS, _RESIDUAL_RADIUS, _CELL_RADIUS = 2.0, 0.7, 1.3
_EIGENVALUE_FLOOR = 0.02
# In more columns principal axes would be noise, and slow: the columns stand for them.
_MOST_TURNED = 64
# Of the mean variance: below it, the noise of a covariance says nothing on a direction.
_FLAT = 0.02


@dataclass(frozen=True)
class Standardised:
    """Records about a private centre, in units of one private scale.

    Attributes
    ----------
    rows : Rows
        Of norm at most ``2 * sqrt(n_features)``.
    centre : ndarray of shape (n_features,)
    scale : float
    axes : ndarray of shape (n_features, n_features)
        Private principal axes in columns, as long as the standard deviations.
    """

    rows: object
    centre: np.ndarray
    scale: float
    axes: np.ndarray

    @property
    def n_features(self):
        """Dimension of the records."""
        return self.rows.n_features

    def back(self, means, covariances=None):
        """Means, and covariances, in the units of the cube."""
        means = self.centre + self.scale * means
        return means if covariances is None else (means, self.scale**2 * covariances)


def standardise(rows, budget, share):
    """Release centre, scale and principal axes of all records, and apply the first two."""
    d = rows.n_features
    radius = _cube(d, budget)
    moments = budget.release(
        rows,
        hard_assignment(_one_cell, lambda part, _: clip_norm(part, radius, budget.norm)),
        1,
        _STANDARD,
        share,
        kind="full" if d <= _MOST_TURNED else "diag",
    )
    count = floored_counts(moments)[0]
    centre = np.clip(radius * moments.sums[0] / count, -1.0, 1.0)
    covariance = radius**2 * moments.seconds[0] / count - np.outer(centre, centre)
    scale = float(np.sqrt(np.clip(np.trace(covariance) / d, 1e-4, 1.0)))
    values, vectors = np.linalg.eigh(covariance / scale**2)
    limit = _RECORD_RADIUS * d**0.5
    return Standardised(
        rows.map(lambda part: clip_norm((part - centre) / scale, limit) * limit),
        centre,
        scale,
        vectors * np.sqrt(np.clip(values, _FLAT, d)),
    )


def _one_cell(part):
    return np.zeros(len(part), dtype=np.intp)


def _cube(d, budget):
    """Radius of the ball, in the budget's norm, around the cube."""
    return float(d) if budget.norm == "l1" else d**0.5


def residual_radius(data, n_cells, budget):
    """Where residuals are clipped, in the budget's norm.

    Cells that share a volume are the narrower the more there are.
    """
    d = data.n_features
    radius = d**0.5 * min(_RESIDUAL_RADIUS, _CELL_RADIUS * n_cells ** (-1 / d))
    # A vector with entries of one size is longer in L1 by the root of the dimension.
    return radius * (d**0.5 if budget.norm == "l1" else 1.0)


def initial_centres(data, n, rng):
    """Centres far apart in the ball of twice the size of the records' private ellipsoid."""
    return data.n_features**0.5 * packed_points(n, data.n_features, rng) @ data.axes.T


def kmeans_steps(data, centres, n_steps, budget, share, rng):
    """Move centres to the private means of their records.

    Parameters
    ----------
    data : Standardised
    centres : ndarray of shape (n_cells, n_features)
    n_steps : int
    budget : GaussianBudget
    share : float
        Of all steps together.
    rng : numpy.random.Generator
        Of the places of centres that lose their records.

    Returns
    -------
    centres : ndarray of shape (n_cells, n_features)
    counts : ndarray of shape (n_cells,)
    """
    spread = 0.5 * _RESIDUAL_RADIUS * data.n_features**0.5
    counts = np.ones(len(centres))
    for step in range(n_steps):
        # Wide at first, while centres may be far from their records.
        radius = residual_radius(data, len(centres), budget) * (2.0 if step == 0 else 1.0)
        moments = budget.release(
            data.rows,
            hard_assignment(_nearest_to(centres), _residuals(centres, radius, budget.norm)),
            len(centres),
            _KMEANS[budget.adjacency],
            share / n_steps,
        )
        centres = _inside(centres + radius * shrunk_steps(moments))
        counts = floored_counts(moments)
        if step < n_steps - 1:
            centres = split_light(centres, moments, spread, rng)
    return centres, counts


def mixture_steps(data, centres, n_steps, budget, share, kind="full", soft=False):
    """Fit components with covariances, from the partition of nearest centres.

    Parameters
    ----------
    data : Standardised
    centres : ndarray of shape (n_cells, n_features)
    n_steps : int
    budget : GaussianBudget
    share : float
        Of all steps together.
    kind : {"full", "tied", "diag", "spherical"}
    soft : bool
        Whether records belong to components in parts, from the second step on.

    Returns
    -------
    weights, means, covariances : ndarray
        Components that are hardly above the noise are left out.
    """
    radius = residual_radius(data, len(centres), budget)
    density = None
    for step in range(n_steps):
        assign = _assignment(centres, density, radius, budget.norm, soft)
        parts = soft and density is not None
        moments = budget.release(
            data.rows, assign, len(centres), _MIXTURE, share / n_steps, kind, parts
        )
        steps = shrunk_steps(moments)
        centres = _inside(centres + radius * steps)
        covariances = radius**2 * shrunk_covariances(moments, steps, _EIGENVALUE_FLOOR)
        counts = floored_counts(moments)
        if step < n_steps - 1:
            density = MixtureDensity(counts, centres, covariances)
    kept = above_noise(moments, counts)
    return counts[kept] / counts[kept].sum(), centres[kept], covariances[kept]


def above_noise(moments, counts):
    """Which cells are kept: by their noisy counts, and never none."""
    kept = moments.counts > 3 * moments.sd_count
    return kept if kept.any() else counts == counts.max()


def _assignment(centres, density, radius, norm, soft):
    residuals = _residuals(centres, radius, norm)
    if density is None:
        return hard_assignment(_nearest_to(centres), residuals)
    if soft:
        return soft_assignment(
            lambda part: _responsibilities(part, density), residuals, len(centres)
        )
    return hard_assignment(lambda part: log_joint(part, density).argmax(axis=1), residuals)


def _nearest_to(centres):
    # Without the square of the record, which is the same for all centres.
    halves = 0.5 * (centres**2).sum(axis=1)

    def cells(part):
        scores = [h - row_products(part, c) for h, c in zip(halves, centres, strict=True)]
        return np.argmin(scores, axis=0)

    return cells


def log_joint(part, density):
    """Log of weight times component density, row by row."""
    scores = np.empty((len(part), density.n_components))
    for k, (mean, factor, log_scale) in enumerate(density.parts()):
        residuals = part - mean
        whitened = np.column_stack([row_products(residuals, row) for row in factor])
        scores[:, k] = log_scale - 0.5 * row_products(whitened, whitened)
    return scores


def _responsibilities(part, density):
    joint = log_joint(part, density)
    joint = np.exp(joint - joint.max(axis=1, keepdims=True))
    return joint / row_products(joint, np.ones(joint.shape[1]))[:, None]


def _residuals(centres, radius, norm):
    return lambda part, cells: clip_norm(part - centres[cells], radius, norm)


def _inside(centres):
    """Keep centres where records can be."""
    limit = _RECORD_RADIUS * centres.shape[1] ** 0.5
    return centres / np.maximum(euclidean(centres) / limit, 1.0)[:, None]

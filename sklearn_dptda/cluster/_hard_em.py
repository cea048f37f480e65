"""The private fit of a Gaussian mixture with hard assignment, in standard units."""

from dataclasses import dataclass

import numpy as np

from sklearn_dptda.cluster._density import MixtureDensity
from sklearn_dptda.cluster._moments import (
    MomentWeights,
    clip_norm,
    release_moments,
    row_products,
)
from sklearn_dptda.cluster._steps import (
    floored_counts,
    packed_centres,
    shrunk_covariances,
    shrunk_steps,
    split_light,
)

# Shares of the squared budget: centre and scale, k-means steps, mixture steps.
_SHARES = (0.05, 0.38, 0.57)
_STANDARD = MomentWeights(0.2, 0.4, 0.4)
_KMEANS = {"add-remove": MomentWeights(0.3, 0.7), "replace-one": MomentWeights(0.5, 0.5)}
_MIXTURE = MomentWeights(0.1, 0.3, 0.6)
# In root mean square radii of the standardised records.
_RECORD_RADIUS, _RESIDUAL_RADIUS, _HALF_WIDTH = 2.0, 0.7, 1.5
_EIGENVALUE_FLOOR = 0.02


@dataclass(frozen=True)
class Budget:
    """Noise scales for a share of the budget.

    Attributes
    ----------
    mu : float
        Combined Gaussian privacy parameter of the whole fit; ``inf`` for none.
    adjacency : str
    noise : NoiseSource
    """

    mu: float
    adjacency: str
    noise: object

    def release(self, residuals, cells, n_cells, weights, share):
        """Release moments at a share of the squared budget."""
        scale = weights.sensitivity(self.adjacency).value / (self.mu * share**0.5)
        return release_moments(
            residuals, cells, n_cells, weights, scale, self.adjacency, self.noise
        )


def fit_hard_mixture(X, n_components, n_kmeans, n_mixture, budget, rng):
    """Fit a mixture to records in the cube ``[-1, 1]**d``.

    Every step touches the records only through :meth:`Budget.release`.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Records, already clipped to the cube.
    n_components : int
    n_kmeans, n_mixture : int
        Numbers of steps, public.
    budget : Budget
    rng : numpy.random.Generator
        Of initial centres, independent of the records.

    Returns
    -------
    weights, means, covariances : ndarray
        In the units of ``X``; components that are hardly above the noise are
        left out.
    """
    d = X.shape[1]
    centre, spread = _standardise(X, budget)
    Z = clip_norm((X - centre) / spread, _RECORD_RADIUS * d**0.5) * _RECORD_RADIUS * d**0.5
    centres = packed_centres(n_components, d, _HALF_WIDTH, rng)
    centres = _kmeans(Z, centres, n_kmeans, budget, rng)
    weights, means, covariances = _mixture(Z, centres, n_mixture, budget)
    return weights, centre + spread * means, spread**2 * covariances


def _standardise(X, budget):
    """Noisy centre and one scale of all records."""
    d = X.shape[1]
    one_cell = np.zeros(len(X), dtype=np.intp)
    moments = budget.release(
        lambda part: clip_norm(X[part], d**0.5), one_cell, 1, _STANDARD, _SHARES[0]
    )
    count = floored_counts(moments)[0]
    centre = np.clip(d**0.5 * moments.sums[0] / count, -1.0, 1.0)
    squared = d * np.trace(moments.seconds[0]) / count - centre @ centre
    return centre, float(np.sqrt(np.clip(squared / d, 1e-4, 1.0)))


def _kmeans(Z, centres, n_steps, budget, rng):
    d = Z.shape[1]
    for step in range(n_steps):
        # Wide at first, while centres may be far from their records.
        radius = _RESIDUAL_RADIUS * d**0.5 * (2.0 if step == 0 else 1.0)
        cells = _nearest(Z, centres)
        moments = budget.release(
            _residuals(Z, centres, cells, radius),
            cells,
            len(centres),
            _KMEANS[budget.adjacency],
            _SHARES[1] / n_steps,
        )
        centres = _inside(centres + radius * shrunk_steps(moments))
        if step < n_steps - 1:
            centres = split_light(centres, moments, 0.5 * _RESIDUAL_RADIUS * d**0.5, rng)
    return centres


def _mixture(Z, centres, n_steps, budget):
    d = Z.shape[1]
    radius = _RESIDUAL_RADIUS * d**0.5
    cells = _nearest(Z, centres)
    for step in range(n_steps):
        moments = budget.release(
            _residuals(Z, centres, cells, radius),
            cells,
            len(centres),
            _MIXTURE,
            _SHARES[2] / n_steps,
        )
        steps = shrunk_steps(moments)
        centres = _inside(centres + radius * steps)
        covariances = radius**2 * shrunk_covariances(moments, steps, _EIGENVALUE_FLOOR)
        counts = floored_counts(moments)
        if step < n_steps - 1:
            density = MixtureDensity(counts, centres, covariances)
            cells = _likeliest(Z, density)
    kept = moments.counts >= 3 * moments.sd_count
    if not kept.any():
        kept = counts == counts.max()
    return counts[kept] / counts[kept].sum(), centres[kept], covariances[kept]


def _nearest(Z, centres):
    # Without the square of Z, which is the same for all centres.
    halves = 0.5 * (centres**2).sum(axis=1)
    scores = [half - row_products(Z, c) for half, c in zip(halves, centres, strict=True)]
    return np.argmin(scores, axis=0)


def _likeliest(Z, density):
    """Component of the largest weighted density, row by row."""
    scores = []
    for mean, factor, log_scale in density.parts():
        residuals = Z - mean
        whitened = np.column_stack([row_products(residuals, row) for row in factor])
        scores.append(log_scale - 0.5 * row_products(whitened, whitened))
    return np.argmax(scores, axis=0)


def _residuals(Z, centres, cells, radius):
    return lambda part: clip_norm(Z[part] - centres[cells[part]], radius)


def _inside(centres):
    """Keep centres where records can be."""
    limit = _RECORD_RADIUS * centres.shape[1] ** 0.5
    norms = np.linalg.norm(centres, axis=1)
    return centres / np.maximum(norms / limit, 1.0)[:, None]

"""Private mixtures, from rows of the cube to weights, means and covariances."""

from functools import partial

import numpy as np

from sklearn_dptda.cluster._mixture._centres import packed_points
from sklearn_dptda.cluster._mixture._component_steps import (
    FLOOR,
    likeliest,
    mixture_steps,
    steps_and_floor,
)
from sklearn_dptda.cluster._mixture._noisy_step import NoisyStep
from sklearn_dptda.cluster._mixture._standardised import standardise
from sklearn_dptda.cluster._mixture._starts import moved_centres
from sklearn_dptda.cluster._moments._joint_moments import MomentWeights
from sklearn_dptda.cluster._moments._moment_release import hard_assignment
from sklearn_dptda.cluster._moments._row_arithmetic import clip_norm
from sklearn_dptda.cluster._moments._shrinkage import (
    KEPT,
    above_noise,
    clip_eigenvalues,
    floored_counts,
)
from sklearn_dptda.cluster._morse._mixture_density import MixtureDensity

# Of what standardising leaves.
_KMEANS_SHARE = 0.45 / 0.95
# Components that are to be merged need no shapes of their own.
_MERGED_STEPS = 2
# In the cube: variances below it are noise.
_RAW_FLOOR = 1e-3
# The published algorithm states no start: one public start, the same in every fit.
_RAW_START = 0
# Components of less than this part of an average one have died, also without noise.
_DEAD = 0.02


def fit_mixture(rows, n_components, n_kmeans, n_mixture, kind, soft, merged, budget, rng):
    """Fit a mixture to rows of the cube: standardise, start, k-means steps, mixture steps.

    ``merged`` says that there are more components than clusters, to be merged; ``rng`` is
    independent of the records. Returns the last step, and the units that take it to the cube.
    """
    data = standardise(rows, budget)
    start = moved_centres(data, n_components, n_kmeans, data.budget, _KMEANS_SHARE, rng, merged)
    centres = start.means
    left, floor = 1 - _KMEANS_SHARE, FLOOR
    if n_mixture == "auto":
        n_mixture = _MERGED_STEPS
        if not merged:
            n_mixture, floor = steps_and_floor(data, len(centres), data.budget, left)
    last = mixture_steps(data, centres, n_mixture, data.budget, left, kind, soft, floor)
    return last, data


def fit_raw_mixture(rows, n_components, n_steps, budget):
    """Fit a mixture by raw moments in the cube: Algorithm 2 of Byun, Choi and Lee.

    The printed covariance step sums squares about noisy means and has no bounded sensitivity. Here
    count, sum and raw second moment of a cell are released together, and the covariance is
    computed from them: the reading under which the paper's proposition holds. It states neither a
    start nor what becomes of components without rows: these split the heaviest ones. Returns
    clusters and covariances.
    """
    d = rows.n_features
    # Unit weights of raw moments, in units of the ball around the cube.
    weights = MomentWeights(1.0, d, d**2)
    centres = d**0.5 * packed_points(n_components, d, np.random.default_rng(_RAW_START))
    centres = np.clip(centres, -1.0, 1.0)
    covariances = np.tile(np.eye(d) / 3, (n_components, 1, 1))
    counts = np.ones(n_components)
    for step in range(n_steps):
        density = MixtureDensity(counts, centres, covariances)
        moments = budget.release(
            rows,
            hard_assignment(likeliest(density), partial(_residuals_about_zero, d=d)),
            n_components,
            weights,
            1 / n_steps,
            kind="full",
        )
        counts = floored_counts(moments)
        centres = np.clip(d**0.5 * moments.sums / counts[:, None], -1.0, 1.0)
        second_moments = d * moments.second_moments / counts[:, None, None]
        covariances = second_moments - centres[:, :, None] * centres[:, None, :]
        # No variance in the cube is above one.
        covariances = clip_eigenvalues(covariances, _RAW_FLOOR, 1.0)
        if step < n_steps - 1:
            counts, centres, covariances = _split_dead(moments, counts, centres, covariances)
    kept = np.flatnonzero(above_noise(moments, counts))
    about_zero = NoisyStep(np.zeros_like(centres), d**0.5, moments)
    return about_zero.pooled(kept, np.arange(len(kept)), centres[kept]), covariances[kept]


def _split_dead(moments, counts, centres, covariances):
    """Components that may have no rows become halves of the heaviest ones, by noisy counts alone.

    Halves lie a standard deviation off along the longest axis, and keep the covariance.
    """
    least = max(KEPT * moments.sd_count, _DEAD * np.maximum(moments.counts, 0.0).mean())
    dead = moments.counts < least
    if dead.all():
        return counts, centres, covariances
    counts, centres, covariances = np.where(dead, 0.0, counts), centres.copy(), covariances.copy()
    for cell in np.flatnonzero(dead):
        heavy = int(counts.argmax())
        values, axes = np.linalg.eigh(covariances[heavy])
        away = values[-1] ** 0.5 * axes[:, -1]
        centres[cell], centres[heavy] = np.clip(
            [centres[heavy] + away, centres[heavy] - away], -1.0, 1.0
        )
        covariances[cell] = covariances[heavy]
        counts[cell] = counts[heavy] = counts[heavy] / 2
    return counts, centres, covariances


def _residuals_about_zero(part, cells, d):
    return clip_norm(part, d**0.5)

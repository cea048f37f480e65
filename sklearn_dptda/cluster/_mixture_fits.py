"""Private mixture steps, with covariances."""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sklearn_dptda.cluster._mixture_density import MixtureDensity
from sklearn_dptda.cluster._private_centres import (
    NoisyStep,
    moved_centres,
    packed_points,
    residual_radius,
    standardise,
)
from sklearn_dptda.rows._moments import MomentWeights, hard_assignment, soft_assignment
from sklearn_dptda.rows._rows import clip_norm, nearest_to, residuals_about, row_products
from sklearn_dptda.rows._shrinkage import (
    KEPT,
    above_noise,
    clip_eigenvalues,
    floored_counts,
    shrunk_covariances,
    shrunk_steps,
)

_MIXTURE_WEIGHTS = MomentWeights(0.1, 0.3, 0.6)
# Least eigenvalues, as a share of the mean pooled variance: where components are to be merged, and
# from what the noise of a covariance allows, times a part, where they are not.
FLOOR, _LEAST_FLOOR, _PART_OF_NOISE = 0.02, 0.005, 0.1
# Rows, times the privacy parameter, for each column of each component: so many times the square of
# the number of steps that they allow for, which is at most the last.
_ROWS_OF_STEPS, _MOST_STEPS = 4.0, 20
# Covariances of which less than this part of their differences is no noise are made one.
_DIFFERING = 0.5


@dataclass(frozen=True)
class MixtureStep(NoisyStep):
    """A step of which second moments make covariances, with eigenvalues above a floor."""

    floor: float

    def parameters(self):
        """Means, full covariances, and what part of the differences of these is no noise."""
        steps = shrunk_steps(self.moments)
        covariances, differing = shrunk_covariances(self.moments, steps, self.floor)
        return self.means, self.radius**2 * covariances, differing

    def components(self):
        """Clusters and full covariances, without what is hardly above the noise."""
        kept = np.flatnonzero(above_noise(self.moments, self.counts))
        means, covariances, _ = self.parameters()
        return self.pooled(kept, np.arange(len(kept)), means[kept]), covariances[kept]

    def redrawn(self, rng):
        """The same after as much noise once more."""
        return replace(self, moments=self.moments.redrawn(rng))


def mixture_steps(data, centres, n_steps, budget, share, kind="full", soft=False, floor=FLOOR):
    """Fit components with covariances, from the partition of nearest centres.

    ``share`` is that of all steps together, half of it for the last one, which is returned; with
    ``kind="auto"`` covariances are full until their differences are found to be noise, and tied
    from there on; with ``soft``, records belong to components in parts from the second step on.
    """
    radius = residual_radius(data, len(centres), budget)
    density, now = None, "full" if kind == "auto" else kind
    for step in range(n_steps):
        assign = _assignment(centres, density, radius, budget.norm, soft)
        parts, last = soft and density is not None, step == n_steps - 1
        step_share = share if n_steps == 1 else share / 2 if last else share / 2 / (n_steps - 1)
        moments = budget.release(
            data.rows,
            assign,
            len(centres),
            weights=_MIXTURE_WEIGHTS,
            share=step_share,
            kind=now,
            soft=parts,
        )
        state = MixtureStep(centres, radius, moments, floor)
        if last:
            return state
        centres, covariances, differing = state.parameters()
        density = MixtureDensity(state.counts, centres, covariances)
        if kind == "auto" and differing < _DIFFERING:
            now = "tied"


def steps_and_floor(data, n_components, budget, share):
    """Number of mixture steps, and least eigenvalues, that private numbers of rows allow for.

    Shapes of overlapping components take many steps and thin covariances; noise takes few and
    thick ones.
    """
    d = data.n_features
    rows = budget.total * data.n_rows / (n_components * d)
    n_steps = 1 + int(np.clip(math.sqrt(min(rows, 1e6) / _ROWS_OF_STEPS), 1, _MOST_STEPS - 1))
    declared = _MIXTURE_WEIGHTS.sensitivity(budget.adjacency, budget.norm)
    sd = budget.deviation(budget.scale(declared, share / 2)) / _MIXTURE_WEIGHTS.roots[2]
    # Of the noise of a covariance, as a share of the variance of rows spread over a cell.
    noise = 4 * d**1.5 * sd * n_components / max(data.n_rows, 1.0)
    return n_steps, float(np.clip(_PART_OF_NOISE * noise, _LEAST_FLOOR, FLOOR))


def _assignment(centres, density, radius, norm, soft):
    residuals = residuals_about(centres, radius, norm)
    if density is None:
        return hard_assignment(nearest_to(centres), residuals)
    if soft:
        parts = partial(_responsibilities, density=density)
        return soft_assignment(parts, residuals, len(centres))
    return hard_assignment(likeliest(density), residuals)


def log_joint_by_rows(part, density):
    """Log of weight times component density, row by row."""
    scores = np.empty((len(part), density.n_components))
    for k, (mean, factor, log_scale) in enumerate(density.parts()):
        # One sum for all rows of the factor: by each of them, many columns would take minutes.
        whitened = row_products(part - mean, factor[:, None]).T
        scores[:, k] = log_scale - 0.5 * row_products(whitened, whitened)
    return scores


def likeliest(density):
    """From rows to the index of the component that is likeliest for each."""
    return partial(_likeliest, density=density)


def _likeliest(part, density):
    return log_joint_by_rows(part, density).argmax(axis=1)


def _responsibilities(part, density):
    joint = log_joint_by_rows(part, density)
    joint = np.exp(joint - joint.max(axis=1, keepdims=True))
    return joint / row_products(joint, np.ones(joint.shape[1]))[:, None]


# Private mixtures, from rows of the cube to weights, means and covariances.

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
            weights=weights,
            share=1 / n_steps,
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

"""Private mixture steps, with covariances."""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sklearn_dptda.cluster._mixture._centre_steps import residual_radius
from sklearn_dptda.cluster._mixture._noisy_step import NoisyStep
from sklearn_dptda.cluster._moments._joint_moments import MomentWeights
from sklearn_dptda.cluster._moments._moment_release import hard_assignment, soft_assignment
from sklearn_dptda.cluster._moments._row_arithmetic import (
    nearest_to,
    residuals_about,
    row_products,
)
from sklearn_dptda.cluster._moments._shrinkage import (
    above_noise,
    shrunk_covariances,
    shrunk_steps,
)
from sklearn_dptda.cluster._morse._mixture_density import MixtureDensity

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
            data.rows, assign, len(centres), _MIXTURE_WEIGHTS, step_share, now, parts
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

"""Private mixture steps, with covariances."""

from functools import partial

import numpy as np

from sklearn_dptda.cluster._mixture._centre_steps import residual_radius
from sklearn_dptda.cluster._mixture._centres import inside
from sklearn_dptda.cluster._moments._joint_moments import MomentWeights
from sklearn_dptda.cluster._moments._moment_release import hard_assignment, soft_assignment
from sklearn_dptda.cluster._moments._row_arithmetic import (
    nearest_to,
    residuals_about,
    row_products,
)
from sklearn_dptda.cluster._moments._shrinkage import (
    above_noise,
    floored_counts,
    shrunk_covariances,
    shrunk_steps,
)
from sklearn_dptda.cluster._morse._mixture_density import MixtureDensity

_MIXTURE_WEIGHTS = MomentWeights(0.1, 0.3, 0.6)
_EIGENVALUE_FLOOR = 0.02


def mixture_steps(data, centres, n_steps, budget, share, kind="full", soft=False):
    """Fit components with covariances, from the partition of nearest centres.

    ``share`` is that of all steps together; with ``soft``, records belong to components in parts
    from the second step on. Returns weights, means and full covariances, without components that
    are hardly above the noise.
    """
    radius = residual_radius(data, len(centres), budget)
    density = None
    for step in range(n_steps):
        assign = _assignment(centres, density, radius, budget.norm, soft)
        parts = soft and density is not None
        moments = budget.release(
            data.rows, assign, len(centres), _MIXTURE_WEIGHTS, share / n_steps, kind, parts
        )
        steps = shrunk_steps(moments)
        centres = inside(centres + radius * steps)
        covariances = radius**2 * shrunk_covariances(moments, steps, _EIGENVALUE_FLOOR)
        counts = floored_counts(moments)
        if step < n_steps - 1:
            density = MixtureDensity(counts, centres, covariances)
    kept = above_noise(moments, counts)
    return counts[kept] / counts[kept].sum(), centres[kept], covariances[kept]


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
        residuals = part - mean
        whitened = np.column_stack([row_products(residuals, row) for row in factor])
        scores[:, k] = log_scale - 0.5 * row_products(whitened, whitened)
    return scores


def likeliest(density):
    """From rows to the index of the component that is likeliest for each."""
    return lambda part: log_joint_by_rows(part, density).argmax(axis=1)


def _responsibilities(part, density):
    joint = log_joint_by_rows(part, density)
    joint = np.exp(joint - joint.max(axis=1, keepdims=True))
    return joint / row_products(joint, np.ones(joint.shape[1]))[:, None]

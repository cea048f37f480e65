"""Private k-means steps."""

from sklearn_dptda.cluster._mixture._centres import split_light
from sklearn_dptda.cluster._mixture._noisy_step import NoisyStep
from sklearn_dptda.cluster._moments._joint_moments import MomentWeights
from sklearn_dptda.cluster._moments._moment_release import hard_assignment
from sklearn_dptda.cluster._moments._row_arithmetic import in_norm, nearest_to, residuals_about

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
            KMEANS_WEIGHTS[budget.adjacency],
            share / n_steps,
        )
        last = NoisyStep(centres, radius, moments)
        centres = last.means
        if step < n_steps - 1:
            centres = split_light(centres, moments, spread, rng)
    return last

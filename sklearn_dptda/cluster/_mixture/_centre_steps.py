"""Private k-means steps."""

import numpy as np

from sklearn_dptda.cluster._mixture._centres import _inside, split_light
from sklearn_dptda.cluster._mixture._standardised import _CELL_RADIUS, _RESIDUAL_RADIUS
from sklearn_dptda.cluster._moments._joint_moments import MomentWeights
from sklearn_dptda.cluster._moments._moment_release import hard_assignment
from sklearn_dptda.cluster._moments._row_arithmetic import clip_norm, row_products
from sklearn_dptda.cluster._moments._shrinkage import floored_counts, shrunk_steps

# Under replace-one a count as heavy as the sum is free.
_KMEANS = {"add-remove": MomentWeights(0.3, 0.7), "replace-one": MomentWeights(0.5, 0.5)}


def residual_radius(data, n_cells, budget):
    """Where residuals are clipped, in the budget's norm.

    Cells that share a volume are the narrower the more there are.
    """
    d = data.n_features
    radius = d**0.5 * min(_RESIDUAL_RADIUS, _CELL_RADIUS * n_cells ** (-1 / d))
    # A vector with entries of one size is longer in L1 by the root of the dimension.
    return radius * (d**0.5 if budget.norm == "l1" else 1.0)


def kmeans_steps(data, centres, n_steps, budget, share, rng):
    """Move centres to the private means of their records; the centres, and their noisy counts.

    ``share`` is that of all steps together; ``rng`` is for the places of centres that lose their
    records.
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


def _nearest_to(centres):
    # Without the square of the record, which is the same for all centres.
    halves = 0.5 * (centres**2).sum(axis=1)

    def cells(part):
        scores = [h - row_products(part, c) for h, c in zip(halves, centres, strict=True)]
        return np.argmin(scores, axis=0)

    return cells


def _residuals(centres, radius, norm):
    return lambda part, cells: clip_norm(part - centres[cells], radius, norm)

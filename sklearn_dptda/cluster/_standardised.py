"""Rows about a private centre, in units of a private scale."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_dptda.rows._arithmetic import clip_norm, in_norm
from sklearn_dptda.rows._budget import Budget
from sklearn_dptda.rows._localisation import localise
from sklearn_dptda.rows._moments import MomentWeights, one_cell
from sklearn_dptda.rows._shrinkage import floored_counts

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
    budget: Budget

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
        _STANDARD_WEIGHTS,
        _STANDARD_SHARE,
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

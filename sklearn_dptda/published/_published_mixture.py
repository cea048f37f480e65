"""Algorithm 2 of Byun, Choi and Lee: a private mixture by raw moments in the box.

Proof: doc/theory/private_mixtures.md, "Why not the published covariance step".
Proof: doc/theory/private_mixtures.md, "What the noise of the published mixture covers".
"""

from functools import partial
from numbers import Integral
from typing import cast

import numpy as np

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, RandomStateLike, RowBounds
from sklearn_dptda.cluster import DPMoG
from sklearn_dptda.cluster._mixture_density import DensityByRows, MixtureDensity
from sklearn_dptda.cluster._noisy_steps import NoisyStep, packed_points
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._assignments import clip_norm, hard_assignment
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._moments import KEPT, FitBudget, MomentWeights, clip_eigenvalues
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import Interval

# Variances in the cube below this one count as noise.
_LEAST_VARIANCE = 1e-3
# The published algorithm states no start. This seed gives one public start, the same in every fit.
_START_SEED = 0
# Components with less than this share of an average component count as dead, also without noise.
_DEAD = 0.02


@fill_doc
class PublishedMixture(DPMoG):
    """Gaussian mixture under differential privacy by Algorithm 2 of Byun, Choi and Lee.

    Each step releases the count, the sum and the raw second moment of every component in
    the box of the bounds, with an equal share of the budget. The paper states neither a
    start nor a rule for components without rows: here, all fits have the same public
    start, and components without rows split the heaviest ones.

    Parameters
    ----------
    n_components : int, default=8
        Number of components at the start. It is public.
    %(epsilon)s
    %(gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    n_steps : int, default=10
        Number of steps.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    %(mixture_covariances)s
    %(noise_of_components)s
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, weights, means and covariances. It is
    (``epsilon``, ``delta``)-differentially private for adding or removing one row,
    or for replacing one.
    %(privacy_of_groups)s

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing". As printed, the covariance step of
    the paper has no bounded sensitivity.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.published import PublishedMixture
    >>> X, _ = make_blobs(5000, centers=3, random_state=0)
    >>> PublishedMixture(3, epsilon=2.0, bounds=(-15, 15), random_state=0).fit(X).means_.shape
    (3, 2)
    """

    _parameter_constraints = {
        **PrivateRowsEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
    }
    covariance_type = "full"

    def __init__(
        self,
        n_components: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        n_steps: int = 10,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.n_steps = n_steps
        self.accountant = accountant
        self.random_state = random_state

    def _searches_within(self) -> bool:
        return False

    def _learn(self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box) -> None:
        self._columns, self._box = cast(Columns, rows.columns), box
        fitted = fit_paper_mixture(rows, cast(int, self.n_components), self.n_steps, budget)
        self._keep_in_units(*fitted)


def fit_paper_mixture(rows, n_components, n_steps, budget):
    """Fit a mixture by raw moments in the cube: Algorithm 2 of Byun, Choi and Lee.

    As printed, the covariance step has no bounded sensitivity. Here, the count, the sum and the raw
    second moment of a cell are released together. The paper states neither a start nor what happens
    to components without rows: here, these split the heaviest ones.
    """
    d = rows.n_features
    # Weights of raw moments are one in units of the ball around the cube.
    weights = MomentWeights(1.0, d, d**2)
    centres = d**0.5 * packed_points(n_components, d, np.random.default_rng(_START_SEED))
    centres = np.clip(centres, -1.0, 1.0)
    covariances = np.tile(np.eye(d) / 3, (n_components, 1, 1))
    counts = np.ones(n_components)
    for step in range(n_steps):
        by_rows = DensityByRows(MixtureDensity(counts, centres, covariances), limit=1.0)
        moments = budget.release(
            rows,
            hard_assignment(by_rows.likeliest, partial(_residuals_about_zero, d=d)),
            n_components,
            weights=weights,
            share=1 / n_steps,
            kind="full",
        )
        counts = moments.floored_counts
        centres = np.clip(d**0.5 * moments.sums / counts[:, None], -1.0, 1.0)
        second_moments = d * moments.second_moments / counts[:, None, None]
        covariances = second_moments - centres[:, :, None] * centres[:, None, :]
        # No variance in the cube is larger than one.
        covariances = clip_eigenvalues(covariances, _LEAST_VARIANCE, 1.0)
        if step < n_steps - 1:
            counts, centres, covariances = _split_dead(moments, counts, centres, covariances)
    kept = np.flatnonzero(moments.above_noise(counts))
    about_zero = NoisyStep(np.zeros_like(centres), d**0.5, moments)
    return about_zero.pooled(kept, np.arange(len(kept)), centres[kept]), covariances[kept]


def _split_dead(moments, counts, centres, covariances):
    """Turn components that may have no rows, by noisy counts, into halves of the heaviest ones.

    The halves are a standard deviation away along the longest axis, and keep the covariance.
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

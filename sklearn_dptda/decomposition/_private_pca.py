"""Private principal components, from a mean and a covariance released about a private ball.

In each stage, a noisy sum gives a centre, and a histogram of the distances from it gives a ball. If
this ball is small beside the last one, the next stage looks there, since the noise of a sum is
relative to the ball. The number of stages follows from what they release.

Proof: doc/theory/private_components.md, "Centre and ball".
Proof: doc/theory/private_components.md, "What is read off".
Proof: doc/theory/private_components.md, "Projected rows".
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, FloatArray, RandomStateLike, RowBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._assignments import clip_norm, in_norm
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._localisation import distances_beyond, mean_in_ball
from sklearn_dptda.rows._methods import by_rows, fit_transform
from sklearn_dptda.rows._moments import (
    FitBudget,
    MomentWeights,
    entry_noise,
    release_outer_products,
)
from sklearn_dptda.rows._public_box import PublicBox
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._people import beside_ids
from sklearn_dptda.utils._sklearn import Interval
from sklearn_dptda.utils._validation import without_quotes

# Accuracy only: each share is taken off the budget, and noise has the scale of any weights.
# Shares of the budget that is left: for count and sum, and for the distances of a stage, by the
# norm of the noise. Pure losses add up without squares.
_STAGE_SHARES = {"l2": (0.1, 0.01), "l1": (0.15, 0.03)}
_MEAN_WEIGHTS = MomentWeights(0.1, 0.9)
_MOST_STAGES = 4
# Shares of the rows that may lie outside the ball of the next stage, and outside the last ball,
# into which they are then clipped.
_OUTSIDE, _DRAWN_IN = 0.02, 0.5
# Number of cells of the histogram for each doubling of the distance.
_PER_OCTAVE = 8


@dataclass(frozen=True)
class NoisyCovariance:
    """Private mean and covariance, and standard deviations of the noise of one entry of each.

    ``sd`` is that of a covariance off the diagonal. Gaussian noise on the diagonal is ``sqrt(2)``
    times as large.
    """

    mean: np.ndarray
    covariance: np.ndarray
    sd_mean: float
    sd: float


def noisy_covariance(rows, budget):
    """Release mean and covariance of rows that are clipped to a ball about the mean."""
    d, norm = rows.n_features, budget.norm
    mean, ball = np.zeros(d), d**0.5
    of_mean, of_distances = _STAGE_SHARES[norm]
    for _ in range(_MOST_STAGES):
        last = ball
        mean, sd_mean, n, budget = mean_in_ball(rows, mean, last, budget, _MEAN_WEIGHTS, of_mean)
        beyond, budget = distances_beyond(rows, mean, 2 * last, budget, of_distances, _PER_OCTAVE)
        sd = budget.deviation(entry_noise(budget, 1.0)[0])
        # In units of the squared radius, the sum of the trace of what is clipped and of the
        # Frobenius norm of the noise is least when as many rows are clipped as this norm says.
        worth = in_norm(1.0, d, norm) ** 2 * sd * math.sqrt(d * (d + 1))
        ball = beyond(min(worth, _OUTSIDE * n))
        if ball > last / 2:
            break
    radius = in_norm(beyond(min(worth, _DRAWN_IN * n)), d, norm)
    drawn_in = partial(_drawn_in, centre=mean, radius=radius, norm=norm)
    unit = radius**2 / max(n - 1, 1.0)
    total = release_outer_products(rows, drawn_in, budget, 1.0)
    return NoisyCovariance(mean, unit * total, sd_mean, unit * sd)


def _drawn_in(part, centre, radius, norm):
    return clip_norm(part - centre, radius, norm)


# Accuracy only: it is compared with a released variance.
# Standard deviations above what noise reaches on average. Gaussian noise exceeds this with a
# probability of at most exp(-9 / 2).
_ROOM = 3.0


@fill_doc
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateRowsEstimator):
    """Principal components under differential privacy, of tables of any width.

    A fit releases a noisy mean, a private ball about it, and noisy second moments of the
    rows, which are clipped to the ball. The components are eigenvectors of these moments.

    Parameters
    ----------
    n_components : int, default=None
        Number of components. It is public. None: the components whose variance is
        larger than that of the noise, and at least one.
    %(epsilon)s
    delta : float, default=1e-6
        Failure probability of the guarantee. A positive ``delta`` gives Gaussian noise. 0
        gives pure differential privacy with Laplace noise, which is larger by about a
        factor of the number of columns.
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    components_ : ndarray of shape (`n_components_`, n_features)
        Private directions: orthonormal rows, in the order of decreasing variance.
    mean_ : ndarray of shape (n_features,)
        Private mean.
    explained_variance_ : ndarray of shape (`n_components_`,)
        Private variances along the components, of the clipped rows, without the
        expected contribution of the noise.
    explained_variance_ratio_ : ndarray of shape (`n_components_`,)
        Their shares of the private sum of the variances of all columns.
    noise_edge_ : float
        Variance that noise alone can reach.
    n_components_ : int
        Number of components.
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    sklearn_dptda.cluster.DPMoG : Clusters of the projected rows.
    sklearn_dptda.filtration.DTMFiltration : Functions of projected clouds.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, mean, components and their variances. It is
    (``epsilon``, ``delta``)-differentially private for adding or removing one row,
    or for replacing one. **Projected rows are not private**: what you learn from
    the result of :meth:`transform` spends a privacy budget as well, and both losses
    add up.

    With ``epsilon=inf`` and rows within the bounds, the result is that of
    :class:`~sklearn.decomposition.PCA`, except that rows are rounded to ``2**-18``
    of the ball. Columns keep their units. If the bounds of the columns differ, the
    noise is that of the ball around all of them. A fit takes up to ``2**27`` rows.

    References
    ----------
    C. Dwork, K. Talwar, A. Thakurta, L. Zhang, "Analyze Gauss: optimal bounds
    for privacy-preserving principal component analysis", STOC 2014. The mean, the
    ball and the rounding are additions of this implementation.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.decomposition import PrivatePCA
    >>> X, _ = make_blobs(5000, n_features=50, centers=3, random_state=0)
    >>> PrivatePCA(2, bounds=(-15, 15), random_state=0).fit_transform(X).shape
    (5000, 2)
    """

    _parameter_constraints = {
        **PrivateRowsEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
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
        self.accountant = accountant
        self.random_state = random_state

    def _check_columns(self, columns: Columns) -> None:
        n_features = len(columns.names)
        if self.n_components is not None and self.n_components > n_features:
            raise ValueError(
                f"n_components={self.n_components} is larger than the number of columns, "
                f"{n_features}."
            )
        super()._check_columns(columns)

    def _learn(
        self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box
    ) -> list[str]:
        noisy = noisy_covariance(rows, budget)
        values, vectors = np.linalg.eigh(noisy.covariance)
        values, vectors = values[::-1], vectors.T[::-1]
        edge = _noise_edge(len(values), noisy)
        kept = self.n_components or max(int((values > edge).sum()), 1)
        variances = _without_noise(values, noisy.sd)[:kept]
        # As in scikit-learn, the largest coordinate of each direction is positive.
        largest = np.abs(vectors).argmax(axis=1)
        vectors = vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None]
        self.components_, self.n_components_ = vectors[:kept], int(kept)
        self.mean_, unit = box.inside(noisy.mean), float(box.unit[0])
        self.explained_variance_ = unit**2 * variances
        total = max(float(np.trace(noisy.covariance)), float(variances.sum()))
        self.explained_variance_ratio_ = variances / total if total > 0 else np.zeros(kept)
        self.noise_edge_ = unit**2 * edge
        if values[0] > edge:
            return []
        return [
            f"At epsilon={float(self.epsilon):g}, noise alone can produce each variance of this "
            "release. Raise epsilon, give tighter bounds, or select fewer columns."
        ]

    def _public_box(self, n_features: int) -> PublicBox:
        return replace(super()._public_box(n_features), one_unit=True)

    def _released(self) -> str:
        return "mean, principal components and their variances"

    @property
    def _n_features_out(self):
        return len(self.components_)

    fit_transform = fit_transform

    @by_rows
    def transform(self, X: ArrayLike) -> FloatArray:
        """Coordinates of rows along the components. They are *not* private for private rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to project.

        Returns
        -------
        ndarray of shape (n_samples, `n_components_`)
            For a data frame with the column ``groups``, a data frame with this column
            as the last one.
        """
        rows = (self._rows(X) - self.mean_) @ self.components_.T
        return beside_ids(X, self.groups, rows, super().get_feature_names_out())

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the components, and of the column of ids if there is one.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        names = super().get_feature_names_out()
        return names if self.groups is None else np.append(names, self.groups)

    @by_rows
    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Points of the original space with given coordinates along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, `n_components_`)
            Coordinates. The result is as private as they are.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        with without_quotes():
            rows: FloatArray = check_array(X, dtype=np.float64)
        if rows.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {rows.shape[1]} columns; there are {self.n_components_} components. Pass "
                "one column for each component."
            )
        return rows @ self.components_ + self.mean_


def _noise_edge(d, noisy):
    """Variance that noise reaches, including that of the mean, which is subtracted."""
    of_mean = noisy.sd_mean * (math.sqrt(d) + _ROOM)
    return noisy.sd * (2 * math.sqrt(d) + _ROOM * math.sqrt(2)) + of_mean**2


def _without_noise(values, sd):
    """Eigenvalues without the expected contribution of symmetric noise of independent entries.

    The noise moves a large eigenvalue ``t`` to ``t + d * sd**2 / t``.
    """
    roots = np.sqrt(np.maximum(values**2 - 4 * len(values) * sd**2, 0.0))
    return np.maximum(values + roots, 0.0) / 2

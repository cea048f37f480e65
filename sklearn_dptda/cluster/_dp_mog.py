"""A Gaussian mixture under differential privacy."""

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax
from sklearn.base import DensityMixin
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    ColumnUnits,
    CovarianceType,
    FloatArray,
    IntArray,
    LegacyRandomStateLike,
    RandomStateLike,
    RowBounds,
    Table,
)
from sklearn_dptda.cluster._mixture_density import (
    COVARIANCE_TYPES,
    MixtureDensity,
    compact,
    mixture_parameters,
)
from sklearn_dptda.cluster._noisy_steps import (
    RULES,
    MixtureStep,
    NoisyClusters,
    mixture_steps,
    moved_centres,
    steps_and_floor,
    worthwhile_components,
    worthwhile_steps,
)
from sklearn_dptda.cluster._standardise import Standardised, standardise
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._localisation import box_within
from sklearn_dptda.rows._methods import by_rows, fit_predict, sum_by_rows
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._public_box import PublicBox, Search
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import Interval, StrOptions

# Weights, means and covariances of a mixture.
Parameters: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


@fill_doc
class DPMoG(DensityMixin, PrivateRowsEstimator):
    """Gaussian mixture under differential privacy, by noisy k-means and mixture steps.

    A fit releases a noisy centre and scale of all rows, standardises the rows, and
    takes k-means steps, then mixture steps, which have covariances. Each step clips
    the residuals of the rows, and releases the count, sum and second moment of
    every component together, with Gaussian noise.

    Parameters
    ----------
    n_components : int, default=8
        Number of components at the start. It is public. Components that are hardly
        above the noise are dropped at the end. None: if the private cells form a
        clear number of clusters, and this number is larger than eight, it is used;
        otherwise there are eight components.
    %(epsilon)s
    %(gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    %(column_units)s
    %(mixture_fit)s
    %(missing_values)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    %(mixture_covariances)s
    %(noise_of_components)s
    %(bounds_of_rows)s
    %(logarithms_of_columns)s
    %(share_of_missing_values)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    DPMoGMorse : The same mixture, with its components merged into clusters.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, weights, means and covariances. It is
    (``epsilon``, ``delta``)-differentially private for adding or removing one row,
    or for replacing one. ``score``, and what ``predict`` returns for private rows,
    are *not* private. The guarantee does not cover a scaling or projection that
    was learnt from the rows beforehand.
    %(privacy_of_groups)s

    .. rubric:: Limits

    Each step assigns a row to one component, and the first steps divide the space.
    So clusters that share a centre, such as a dense cluster in the middle of a wide
    one, or planes through one point, are not told apart at any ``epsilon``.

    %(noise_of_clusters)s

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing". As printed, the covariance step of
    the paper has no bounded sensitivity; here, residuals are clipped.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.cluster import DPMoG
    >>> X, _ = make_blobs(5000, centers=3, random_state=0)
    >>> mixture = DPMoG(3, epsilon=2.0, bounds=(-15, 15), random_state=0).fit(X)
    >>> mixture.means_.shape
    (3, 2)
    """

    _parameter_constraints = {
        **PrivateRowsEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "units": [StrOptions({"columns", "bounds"}), "array-like"],
        "covariance_type": [StrOptions({"auto", *COVARIANCE_TYPES})],
        "missing": ["boolean", list, tuple],
    }
    _search: Search | None = staticmethod(box_within)
    _has_mixture = _adapts_to_columns = True
    # Whether there are more components than clusters, which are merged afterwards.
    _merges_components = False
    # Number of k-means steps, and of mixture steps; None: as many as private numbers allow for.
    # Studies of single steps change these numbers in subclasses.
    _n_kmeans_steps: int | None = None
    _n_mixture_steps: int | None = None

    def __init__(
        self,
        n_components: int | None = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        units: ColumnUnits = "columns",
        covariance_type: CovarianceType | Literal["auto"] = "auto",
        missing: bool | Sequence[Any] = False,
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
        self.units = units
        self.covariance_type = covariance_type
        self.missing = missing
        self.accountant = accountant
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.delta == 0:
            raise ValueError(
                "delta must be positive, since the noise is Gaussian. For pure differential "
                "privacy, use DPLloyd or DPTree with delta=0."
            )

    def _learn(
        self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box
    ) -> list[str] | None:
        self._columns, self._box = cast(Columns, rows.columns), box
        merged = self._merges_components
        data = standardise(rows, budget, box.spreads, self.covariance_type == "spherical")
        self.units_ = box.unit * data.scales
        share, left = RULES.kmeans_share, 1 - RULES.kmeans_share
        n = self._n_start()
        if merged and self.n_components is None and n is not None:
            n = max(n, worthwhile_components(data, share))
        n_steps = self._n_kmeans_steps or worthwhile_steps(data, n, share)
        start = moved_centres(data, n, n_steps, share=share, rng=rng, merged=merged)
        floor = RULES.floor
        if self._n_mixture_steps is not None:
            n_steps = self._n_mixture_steps
        elif merged:
            n_steps = RULES.merged_steps
        else:
            n_steps, floor = steps_and_floor(data, len(start.means), left)
        step = mixture_steps(
            data,
            start.means,
            n_steps,
            share=left,
            kind=self.covariance_type,
            floor=floor,
        )
        self._keep_in_units(*step.components(), data, partial(step.redrawn, rng))
        return data.remarks()

    def _keep_in_units(
        self,
        clusters: NoisyClusters,
        covariances: FloatArray,
        data: Standardised | None = None,
        redrawn: Callable[[], MixtureStep] | None = None,
    ) -> None:
        """Keep clusters of the cube, or of standardised rows, in the units of the box."""

        def in_units(clusters: NoisyClusters, covariances: FloatArray) -> Parameters:
            means = clusters.centres
            if data is not None:
                means, covariances = data.back(means), data.covariances_back(covariances)
            return clusters.weights, self._box.inside(means), self._box.covariances(covariances)

        scale = 1.0 if data is None else data.scales
        parameters = in_units(clusters, covariances)
        self.weights_noise_, self.within_noise_ = clusters.sd_weights, clusters.within_noise
        noise = self._box.unit * scale * clusters.sd_centres
        points = self._logarithms.back(parameters[1])
        self.means_noise_ = self._logarithms.spreads_back(noise, points)
        redraw = None if redrawn is None else lambda: in_units(*redrawn().components())
        self._keep(*parameters, redraw=redraw)

    def _keep(
        self,
        weights: FloatArray,
        means: FloatArray,
        covariances: FloatArray,
        redraw: Callable[[], Parameters] | None = None,
    ) -> None:
        """Keep private parameters. ``redraw`` returns them with as much noise added again."""
        self.weights_, self.means_ = weights, self._logarithms.back(means)
        self.covariances_ = compact(covariances, self.covariance_type)

    def _public_box(self, n_features: int) -> PublicBox:
        box = super()._public_box(n_features)
        return box.with_units(self.units, self.covariance_type == "spherical")

    def _n_start(self) -> int | None:
        """Number of components that the steps start from; None if it is estimated."""
        return self.n_components

    def _released(self) -> str:
        return "weights, means and covariances of a Gaussian mixture"

    def _mixture(self):
        check_is_fitted(self)
        return MixtureDensity(*mixture_parameters(self))

    def _given_mixture(self, random_state=None):
        return given_mixture(self._mixture(), random_state)

    @by_rows
    @fill_doc
    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log density of each row under the private mixture.

        The result is *not* private for private rows.

        %(one_number_for_each_row)s
        """
        rows = self._rows(X)
        # Densities are those of the columns as they are given.
        slopes = self._logarithms.log_slopes(rows)
        if np.isnan(rows).any():
            return logsumexp(self._mixture().log_joint_of_known(rows), axis=1) + slopes
        return self._given_mixture().score_samples(rows) + slopes

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log density of rows under the private mixture. It is *not* private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or Dask collection
            Rows to score. The parts of a Dask collection are summed where they are.
        y : Ignored

        Returns
        -------
        float
        """
        n_rows, total = sum_by_rows(self, X, "score_samples")
        return float(total / n_rows)

    @by_rows
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Posterior probability of each component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to assign.

        Returns
        -------
        ndarray of shape (n_samples, n_kept)
        """
        rows = self._rows(X)
        if np.isnan(rows).any():
            return softmax(self._mixture().log_joint_of_known(rows), axis=1)
        return self._given_mixture().predict_proba(rows)

    fit_predict = fit_predict

    @by_rows
    @fill_doc
    def predict(self, X: ArrayLike) -> IntArray:
        """Index of the likeliest component of each row.

        %(one_number_for_each_row)s
        """
        return self.predict_proba(X).argmax(axis=1)

    def sample(self, n_samples: int = 1, random_state: LegacyRandomStateLike = None) -> Table:
        """Draw synthetic rows from the private mixture, which spends nothing.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows to draw.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw.

        Returns
        -------
        array or data frame of shape (n_samples, n_features)
            A table of the same kind as that of ``fit``, with the same names. All rows are
            within ``bounds_``, at which the tails of components are reflected, because
            rows of ``fit`` that lay beyond counted there. Columns of integers and of
            Booleans are rounded.
        """
        check_is_fitted(self)
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        rng = check_random_state(random_state)
        rows, _ = self._given_mixture(rng).sample(n_samples)
        # scikit-learn returns the rows component by component.
        rows = _reflected(rng.permutation(rows), self._box.low, self._box.high)
        shares, missing = getattr(self, "missing_share_", None), None
        if shares is not None and shares.any():
            missing = rng.random_sample(rows.shape) < shares
        rows = self._logarithms.back(rows)
        return self._columns.of_numbers(rows, *self.bounds_, missing)


def _reflected(rows: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return rows inside a box, at whose sides those beyond are reflected, as often as needed."""
    side = high - low
    beyond = np.abs((rows - low + side) % (2 * side) - side)
    # Rows inside stay as they are, without rounding.
    return np.where((rows < low) | (rows > high), np.clip(low + beyond, low, high), rows)


def given_mixture(
    density: MixtureDensity, random_state: LegacyRandomStateLike = None
) -> GaussianMixture:
    """Return scikit-learn's mixture with the given parameters."""
    mixture = GaussianMixture(density.n_components, random_state=random_state)
    mixture.weights_, mixture.means_ = density.weights, density.means
    mixture.covariances_ = density.covariances
    mixture.precisions_cholesky_ = np.swapaxes(density.factors, 1, 2)
    return mixture

"""Gaussian mixtures under differential privacy."""

import math
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_dptda.cluster._density import MixtureDensity
from sklearn_dptda.cluster._hard_em import Budget, fit_hard_mixture
from sklearn_dptda.cluster._morse import MergedMixtureMixin
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
    gaussian_mu,
    gaussian_rho,
    spawn_seeds,
)
from sklearn_dptda.utils import bounds_from_data, check_bounds
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context

# Components beyond the number of clusters, so that clusters can have any shape.
_SPARE_COMPONENTS = 4
_PUBLIC_SEED = 0


class DPMoG(PrivateEstimatorMixin, DensityMixin, BaseEstimator):
    """Gaussian mixture under differential privacy, by hard assignment.

    A noisy centre and scale of all rows, k-means steps from public initial
    centres, and mixture steps with covariances. Each step releases count, sum
    and second moment of every cluster jointly, of residuals that are clipped,
    with Gaussian noise; everything else is post-processing.

    Parameters
    ----------
    n_components : int, default=8
        Number of components at the start; those hardly above the noise are
        dropped at the end.
    epsilon : float, default=1.0
        Privacy loss of one fit. ``inf`` adds no noise.
    delta : float, default=1e-6
        Failure probability; positive, since the noise is Gaussian.
    bounds : pair of float or array-like, default=None
        Public lower and upper bounds of the columns; rows are clipped to them.
        None computes them from the data, which leaks, and warns.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Whether neighbours have one row more or less, the number of rows being
        private, or the same public number and one row replaced.
    kmeans_steps : int, default=6
        Number of k-means steps.
    mixture_steps : int, default=2
        Number of steps with covariances.
    accountant : PrivacyAccountant, default=None
        Budget that each fit is paid from.
    random_state : int, RandomState instance, Generator or None, default=None
        Of the noise. None draws from the operating system's entropy; a seed is
        for tests and study only.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kept,)
        Private weights of the components that were kept.
    means_ : ndarray of shape (n_kept, n_features)
        Private means.
    covariances_ : ndarray of shape (n_kept, n_features, n_features)
        Private covariances.
    privacy_guarantee_ : PrivacyGuarantee
        What the fit promises.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where they have names.

    See Also
    --------
    DPMoGMorse : The same, with components merged into clusters.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases weights, means and covariances, and is (``epsilon``,
    ``delta``)-differentially private for adding or removing one row, or for
    replacing one. The steps compose exactly as Gaussian mechanisms. The
    numbers of steps and the initial centres are public. ``score`` and what
    ``predict`` returns for private rows are *not* private. Scaling or
    projecting the rows by other rows beforehand is not covered.

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing", whose covariance step has no
    bounded sensitivity as printed; clipped residuals here.

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
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "bounds": ["array-like", None],
        "adjacency": [StrOptions({"add-remove", "replace-one"})],
        "kmeans_steps": [Interval(Integral, 1, None, closed="left")],
        "mixture_steps": [Interval(Integral, 1, None, closed="left")],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_components=8,
        epsilon=1.0,
        delta=1e-6,
        bounds=None,
        *,
        adjacency="add-remove",
        kmeans_steps=6,
        mixture_steps=2,
        accountant=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.adjacency = adjacency
        self.kmeans_steps = kmeans_steps
        self.mixture_steps = mixture_steps
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Pay, and fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the input is refused. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the fit.
        """
        X = validate_data(self, X, dtype=np.float64)
        low, high = self._box(X)
        mu = gaussian_mu(float(self.epsilon), float(self.delta))
        self.privacy_guarantee_ = self._guarantee(mu)
        self._spend(self.privacy_guarantee_)
        (seed,) = spawn_seeds(self.random_state, 1)
        middle, half = (low + high) / 2, (high - low) / 2
        weights, means, covariances = fit_hard_mixture(
            np.clip((np.clip(X, low, high) - middle) / half, -1.0, 1.0),
            self._n_start(),
            self.kmeans_steps,
            self.mixture_steps,
            Budget(mu, self.adjacency, NoiseSource(seed)),
            np.random.default_rng(_PUBLIC_SEED),
        )
        self.weights_ = weights
        self.means_ = middle + half * means
        self.covariances_ = covariances * half[:, None] * half
        return self

    def _n_start(self):
        return int(self.n_components)

    def _box(self, X):
        if self.bounds is None:
            return bounds_from_data([X], type(self).__name__)
        return check_bounds(self.bounds, X.shape[1])

    def _guarantee(self, mu):
        exact = math.isinf(self.epsilon)
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0 if exact else float(self.delta),
            adjacency=self.adjacency,
            unit="one row",
            mechanism="discrete Gaussian mechanism, composed exactly",
            released="weights, means and covariances of a Gaussian mixture",
            seeded=self.random_state is not None,
            public_parameters=self.bounds is not None,
            rho=gaussian_rho(mu),
        )

    def _mixture(self):
        check_is_fitted(self)
        return MixtureDensity(self.weights_, self.means_, self.covariances_)

    def _rows(self, X):
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def score_samples(self, X):
        """Log density of each row under the private mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return -self._mixture().height(self._rows(X))

    def score(self, X, y=None):
        """Mean log density of rows: *not* private, since the rows enter without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def predict_proba(self, X):
        """Posterior probability of each component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_kept)
        """
        return self._mixture().responsibilities(self._rows(X))

    def predict(self, X):
        """Likeliest component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X, y=None):
        """Fit and assign the training rows: the labels are *not* private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.fit(X).predict(X)

    def sample(self, n_samples=1, random_state=None):
        """Draw synthetic rows: post-processing, as private as the mixture.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        components : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        components = rng.choice(len(self.weights_), n_samples, p=self.weights_)
        factors = np.linalg.cholesky(self.covariances_)[components]
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        return self.means_[components] + np.einsum("nij,nj->ni", factors, noise), components

    def __sklearn_tags__(self):
        """Say what a release is."""
        tags = super().__sklearn_tags__()
        tags.privacy.adjacency = self.adjacency
        tags.privacy.ragged = True
        return tags


class DPMoGMorse(MergedMixtureMixin, DPMoG):
    """Private clusters of any shape: a private mixture, merged along density saddles.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters. None cuts the merge tree in its largest gap.
    n_components : int, default=None
        Components of the mixture. None: four more than clusters, or eight.
    epsilon, delta, bounds, adjacency, kmeans_steps, mixture_steps
        As in :class:`DPMoG`.
    merge_threshold, predict_method
        As in :class:`MorseMerging`.
    accountant, random_state
        As in :class:`DPMoG`.

    Attributes
    ----------
    weights_, means_, covariances_
        The private mixture.
    modes_, saddles_, linkage_, mode_labels_, component_labels_, n_clusters_
        The merge tree and its cut, as in :class:`MorseMerging`.
    privacy_guarantee_ : PrivacyGuarantee
        What the fit promises.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where they have names.

    See Also
    --------
    DPMoG : The mixture.
    MorseMerging : The merging, for any mixture.

    Notes
    -----
    .. rubric:: Privacy

    As :class:`DPMoG`: one fit is (``epsilon``, ``delta``)-differentially
    private for adding or removing one row, or for replacing one; merging is
    post-processing. Labels of private rows are *not* private.

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from sklearn_dptda.cluster import DPMoGMorse
    >>> X, y = make_moons(5000, noise=0.05, random_state=0)
    >>> private = DPMoGMorse(2, 8, epsilon=2.0, bounds=([-1.5, -1], [2.5, 1.5]), random_state=0)
    >>> adjusted_rand_score(y, private.fit_predict(X)) > 0.8
    True
    """

    _parameter_constraints = {
        **DPMoG._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "merge_threshold": [Interval(Real, 0, None, closed="left"), None],
        "predict_method": [StrOptions({"responsibility", "flow"})],
    }

    def __init__(
        self,
        n_clusters=None,
        n_components=None,
        epsilon=1.0,
        delta=1e-6,
        bounds=None,
        *,
        adjacency="add-remove",
        kmeans_steps=6,
        mixture_steps=2,
        merge_threshold=None,
        predict_method="responsibility",
        accountant=None,
        random_state=None,
    ):
        super().__init__(
            n_components,
            epsilon,
            delta,
            bounds,
            adjacency=adjacency,
            kmeans_steps=kmeans_steps,
            mixture_steps=mixture_steps,
            accountant=accountant,
            random_state=random_state,
        )
        self.n_clusters = n_clusters
        self.merge_threshold = merge_threshold
        self.predict_method = predict_method

    def fit(self, X, y=None):
        """Pay, fit the mixture and merge it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the input is refused. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the fit.
        """
        self._validate_params()
        self._check_cut(self._n_start())
        super().fit(X)
        self._merge(self.weights_, self.means_, self.covariances_)
        return self

    def _n_start(self):
        if self.n_components is not None:
            return int(self.n_components)
        return (
            2 * _SPARE_COMPONENTS
            if self.n_clusters is None
            else (self.n_clusters + _SPARE_COMPONENTS)
        )

"""Covariances as scikit-learn's mixtures keep them, and in full."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import logsumexp

from sklearn_dptda.rows._assignments import row_products

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


def compact(covariances, kind):
    """Covariances of shape (n_components, n_features, n_features) as ``kind`` keeps them."""
    if kind in ("auto", "full"):
        return covariances
    if kind == "tied":
        return covariances[0]
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    return diagonals.copy() if kind == "diag" else diagonals.mean(axis=1)


def mixture_parameters(estimator):
    """Weights, means and full covariances of a fitted mixture, or of k-means with covariances.

    ``covariance_type`` says how covariances are stored, in full where there is none. A ValueError
    names an attribute that is missing.
    """
    centres = "means_" if hasattr(estimator, "means_") else "cluster_centers_"
    missing = [n for n in ("weights_", centres, "covariances_") if not hasattr(estimator, n)]
    if missing:
        name = "means_" if missing[0] == "cluster_centers_" else missing[0]
        raise ValueError(
            f"estimator {type(estimator).__name__} has learnt no {name}: a mixture with "
            "weights_, means_ and covariances_ is needed."
        )
    weights, means = np.asarray(estimator.weights_), np.asarray(getattr(estimator, centres))
    k, d = means.shape
    stored = np.asarray(estimator.covariances_, dtype=float)
    kind = getattr(estimator, "covariance_type", "full")
    kind = "full" if kind == "auto" else kind
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    if stored.shape != shapes.get(kind):
        raise ValueError(
            f"covariances_ of shape {stored.shape} do not fit covariance_type={kind!r}."
        )
    if kind == "tied":
        stored = np.broadcast_to(stored, (k, d, d))
    elif kind == "diag":
        stored = stored[:, :, None] * np.eye(d)
    elif kind == "spherical":
        stored = stored[:, None, None] * np.eye(d)
    return weights, means, stored


# A Gaussian mixture as a smooth landscape: values, slopes, curvature.

# Rows for which one call for all components is faster than one for each.
_FEW = 64


@dataclass(frozen=True)
class MixtureDensity:
    """Density of a Gaussian mixture, from its parameters alone.

    Covariances have shape (n_components, n_features, n_features); weights are normalised here, and
    ``pulls`` are precisions times means. The landscape is ``f = -log p``: modes are its minima, and
    the barrier between two modes is the least height that a path between them must climb. A
    ValueError says that shapes disagree, weights are not positive, or a covariance is not positive
    definite.
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    precisions: np.ndarray = field(init=False, repr=False)
    factors: np.ndarray = field(init=False, repr=False)
    pulls: np.ndarray = field(init=False, repr=False)
    _log_scales: np.ndarray = field(init=False, repr=False)

    def __post_init__(self):
        weights = np.asarray(self.weights, dtype=float)
        means = np.asarray(self.means, dtype=float)
        covariances = np.asarray(self.covariances, dtype=float)
        k, d = means.shape if means.ndim == 2 else (0, 0)
        if k == 0 or weights.shape != (k,) or covariances.shape != (k, d, d):
            raise ValueError("weights, means and covariances must have matching shapes.")
        if not (np.isfinite(means).all() and (weights > 0).all() and np.isfinite(weights).all()):
            raise ValueError("weights must be positive, and means finite.")
        try:
            lower = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            raise ValueError("covariances must be positive definite.") from None
        weights = weights / weights.sum()
        # Rows of a factor F with F' F the precision: distances are norms of F (x - m).
        factors = np.linalg.solve(lower, np.broadcast_to(np.eye(d), (k, d, d)))
        log_determinants = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        log_scales = np.log(weights) - log_determinants - 0.5 * d * np.log(2 * np.pi)
        precisions = np.swapaxes(factors, 1, 2) @ factors
        vars(self).update(
            weights=weights,
            means=means,
            covariances=covariances,
            precisions=precisions,
            factors=factors,
            pulls=np.einsum("kij,kj->ki", precisions, means),
            _log_scales=log_scales,
        )

    @property
    def n_components(self):
        """Number of components."""
        return len(self.means)

    @property
    def n_features(self):
        """Dimension of the space."""
        return self.means.shape[1]

    def parts(self):
        """Mean, factor of the precision and log scale of each component."""
        return zip(self.means, self.factors, self._log_scales, strict=True)

    def log_joint(self, X):
        """Log of weight times component density, of shape (n, n_components)."""
        if len(X) <= _FEW:
            residuals = np.einsum("kij,nkj->nki", self.factors, X[:, None] - self.means)
            return self._log_scales - 0.5 * np.einsum("nki,nki->nk", residuals, residuals)
        out = np.empty((len(X), self.n_components))
        for k, (mean, factor, log_scale) in enumerate(self.parts()):
            residuals = (X - mean) @ factor.T
            out[:, k] = log_scale - 0.5 * np.einsum("ij,ij->i", residuals, residuals)
        return out

    def height(self, X):
        """Minus the log density of each row."""
        return -logsumexp(self.log_joint(X), axis=1)

    def responsibilities(self, X):
        """Posterior probabilities of the components, of shape (n, n_components)."""
        joint = self.log_joint(X)
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        return joint

    def mean_shift(self, X):
        """One step uphill in density, to the fixed point of the present responsibilities.

        M. Carreira-Perpinan, "Gaussian mean-shift is an EM algorithm", 2007.
        """
        shares = self.responsibilities(X)
        matrices = np.einsum("nk,kij->nij", shares, self.precisions)
        return np.linalg.solve(matrices, (shares @ self.pulls)[..., None])[..., 0]

    def slopes_and_curvatures(self, X):
        """Gradients and Hessians of the height at each row."""
        shares = self.responsibilities(X)
        pulls = np.einsum("kij,nkj->nki", self.precisions, X[:, None] - self.means)
        slopes = np.einsum("nk,nki->ni", shares, pulls)
        curvatures = (
            np.einsum("nk,kij->nij", shares, self.precisions)
            - np.swapaxes(shares[..., None] * pulls, 1, 2) @ pulls
            + slopes[:, :, None] * slopes[:, None]
        )
        return slopes, curvatures

    def slope_and_curvature(self, x):
        """Gradient and Hessian of the height at one point."""
        shares = self.responsibilities(x[None])[0]
        pulls = np.einsum("kij,kj->ki", self.precisions, x - self.means)
        slope = shares @ pulls
        curvature = (
            np.einsum("k,kij->ij", shares, self.precisions)
            - (shares[:, None] * pulls).T @ pulls
            + np.outer(slope, slope)
        )
        return slope, curvature


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


def responsibilities_by_rows(part, density):
    joint = log_joint_by_rows(part, density)
    joint = np.exp(joint - joint.max(axis=1, keepdims=True))
    return joint / row_products(joint, np.ones(joint.shape[1]))[:, None]

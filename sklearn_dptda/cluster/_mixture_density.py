"""A Gaussian mixture as a smooth landscape: its heights, slopes and curvatures, and its modes.

The height of the landscape is the negative log density. Modes are therefore minima, and a saddle is
the top of the lowest path between two modes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.rows._assignments import ExactProducts
from sklearn_dptda.rows._sizes import Logarithms

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")
# Accuracy only: a row is computed by itself, and the landscape has been released.
# Number of residuals of rows from components in one batch, which fits a cache.
_NUMBERS_AT_ONCE = 1 << 16
# Largest number of mean-shift steps in a climb. On a hundred random planar mixtures, all climbs
# came to rest after 25 to 481 steps.
_MAX_CLIMB_STEPS = 2000
# Squared length of a step at which a climb comes to rest, in units of the mean covariance. It is
# the square of 1e-10, six digits above the rounding of a float.
_REST = 1e-20
# Squared distances from a mode, in units of the curvature there: between two climbs that end at the
# same mode; of a point that is identified with the mode; and of one that is identified with it
# without Newton steps. Rounding is far below them, and the distance between separate modes is far
# above. On random planar mixtures, modes and barriers agree with those of fine grids
# (tests/cluster/test_morse.py).
_SAME_END, _SAME_MODE, _SURELY_SAME_MODE = 1e-6, 1e-4, 1e-8


def compact(covariances: FloatArray, kind: str) -> FloatArray:
    """Covariances of shape (n_components, n_features, n_features), stored as ``kind`` says."""
    if kind in ("auto", "full"):
        return covariances
    if kind == "tied":
        return covariances[0]
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    return diagonals.copy() if kind == "diag" else diagonals.mean(axis=1)


def mixture_parameters(estimator: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and full covariances of a fitted mixture, or of k-means with covariances.

    The means of columns that count by their logarithms are logarithms, as the covariances are.
    Without ``covariance_type``, they are full. A ValueError names a missing attribute.
    """
    centres = "means_" if hasattr(estimator, "means_") else "cluster_centers_"
    missing = [n for n in ("weights_", centres, "covariances_") if not hasattr(estimator, n)]
    if missing:
        name = "means_" if missing[0] == "cluster_centers_" else missing[0]
        raise ValueError(
            f"estimator {type(estimator).__name__} has no {name}. Pass a mixture that learns "
            "weights_, means_ and covariances_."
        )
    weights, means = np.asarray(estimator.weights_), np.asarray(getattr(estimator, centres))
    k, d = means.shape
    means = Logarithms.learnt_by(estimator, d).of(means)
    stored = np.asarray(estimator.covariances_, dtype=float)
    kind = getattr(estimator, "covariance_type", "full")
    kind = "full" if kind == "auto" else kind
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    if stored.shape != shapes.get(kind):
        raise ValueError(
            f"covariances_ of shape {stored.shape} do not match covariance_type={kind!r}."
        )
    if kind == "tied":
        stored = np.broadcast_to(stored, (k, d, d))
    elif kind == "diag":
        stored = stored[:, :, None] * np.eye(d)
    elif kind == "spherical":
        stored = stored[:, None, None] * np.eye(d)
    return weights, means, stored


@dataclass(frozen=True)
class MixtureDensity:
    """Density of a Gaussian mixture, from its parameters alone.

    Covariances are full, and weights are normalised. ``factors`` are matrices F such that F' F is
    the precision, so that distances are norms of F (x - m). ``pulls`` are precisions times means. A
    ValueError says which parameters are impossible.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    n_components: int = field(init=False, repr=False)
    n_features: int = field(init=False, repr=False)
    precisions: FloatArray = field(init=False, repr=False)
    factors: FloatArray = field(init=False, repr=False)
    pulls: FloatArray = field(init=False, repr=False)
    log_scales: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=float)
        means = np.asarray(self.means, dtype=float)
        covariances = np.asarray(self.covariances, dtype=float)
        k, d = means.shape if means.ndim == 2 else (0, 0)
        if k == 0 or weights.shape != (k,) or covariances.shape != (k, d, d):
            raise ValueError("weights, means and covariances must have matching shapes.")
        if not (np.isfinite(means).all() and (weights > 0).all() and np.isfinite(weights).all()):
            raise ValueError("weights must be positive and finite, and means must be finite.")
        try:
            lower = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            raise ValueError("covariances must be positive definite.") from None
        weights = weights / weights.sum()
        factors = np.linalg.solve(lower, np.broadcast_to(np.eye(d), (k, d, d)))
        log_determinants = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        log_scales = np.log(weights) - log_determinants - 0.5 * d * np.log(2 * np.pi)
        precisions = np.swapaxes(factors, 1, 2) @ factors
        vars(self).update(
            weights=weights,
            means=means,
            covariances=covariances,
            n_components=k,
            n_features=d,
            precisions=precisions,
            factors=factors,
            pulls=np.einsum("kij,kj->ki", precisions, means),
            log_scales=log_scales,
        )

    def parts(self) -> Iterator[tuple[FloatArray, FloatArray, np.float64]]:
        """Mean, factor of the precision and log scale of each component."""
        return zip(self.means, self.factors, self.log_scales, strict=True)

    @cached_property
    def _centred_products(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A centre, the factors as columns of one matrix, and their products with the means.

        The matrix has first the first rows of all factors, then their second rows, and so on.
        """
        centre = self.weights @ self.means
        factors = np.swapaxes(self.factors, 0, 1).reshape(-1, self.n_features)
        offsets = np.einsum("kij,kj->ik", self.factors, self.means - centre).ravel()
        return centre, np.ascontiguousarray(factors.T), offsets

    def log_joint(self, X: FloatArray) -> FloatArray:
        """Log of the weight times the component density, of shape (n, n_components)."""
        (centre, factors, offsets), k = self._centred_products, self.n_components
        out = np.empty((len(X), k))
        size = max(1, _NUMBERS_AT_ONCE // factors.shape[1])
        for start in range(0, len(X), size):
            residuals = (X[start : start + size] - centre) @ factors
            residuals -= offsets
            residuals *= residuals
            squares = residuals.reshape(-1, self.n_features, k).sum(axis=1)
            out[start : start + size] = self.log_scales - 0.5 * squares
        return out

    def log_joint_of_known(self, X: FloatArray) -> FloatArray:
        """The same for rows with missing values, from the density of their other columns."""
        joint = np.empty((len(X), self.n_components))
        patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows, columns = np.flatnonzero(which.ravel() == number), np.flatnonzero(pattern)
            if len(columns) == 0:
                joint[rows] = np.log(self.weights)
                continue
            covariances = self.covariances[:, columns[:, None], columns]
            marginal = MixtureDensity(self.weights, self.means[:, columns], covariances)
            joint[rows] = marginal.log_joint(X[np.ix_(rows, columns)])
        return joint

    def height(self, X: FloatArray) -> FloatArray:
        """Negative log density of each row."""
        joint = self.log_joint(X)
        top = joint.max(axis=1)
        joint -= top[:, None]
        np.exp(joint, out=joint)
        return -(top + np.log(joint.sum(axis=1)))

    def responsibilities(self, X: FloatArray) -> FloatArray:
        """Posterior probabilities of the components, of shape (n, n_components)."""
        joint = self.log_joint(X)
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        return joint

    def _mean_precisions(self, shares: FloatArray) -> FloatArray:
        """Precisions weighted by the shares, the last axis of an array of any shape."""
        k, d = self.means.shape
        # np.tensordot computes the same product, and takes twice as long for few points.
        return (shares @ self.precisions.reshape(k, -1)).reshape(*shares.shape[:-1], d, d)

    def mean_shift(self, X: FloatArray) -> FloatArray:
        """One step uphill in density, to the fixed point of the present responsibilities.

        M. Carreira-Perpinan, "Gaussian mean-shift is an EM algorithm", 2007.
        """
        shares = self.responsibilities(X)
        matrices = self._mean_precisions(shares)
        ends = np.linalg.solve(matrices, (shares @ self.pulls)[..., None])[..., 0]
        return ends.astype(np.float64, copy=False)

    def slopes_and_curvatures(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradients and Hessians of the height at each row."""
        shares = self.responsibilities(X)
        pulls = np.einsum("kij,nkj->nki", self.precisions, X[:, None] - self.means)
        slopes = np.einsum("nk,nki->ni", shares, pulls)
        curvatures = (
            self._mean_precisions(shares)
            - np.swapaxes(shares[..., None] * pulls, 1, 2) @ pulls
            + slopes[:, :, None] * slopes[:, None]
        )
        return slopes, curvatures

    def slope_and_curvature(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and Hessian of the height at one point."""
        shares = self.responsibilities(x[None])[0]
        pulls = np.einsum("kij,kj->ki", self.precisions, x - self.means)
        slope = shares @ pulls
        curvature = (
            self._mean_precisions(shares)
            - (shares[:, None] * pulls).T @ pulls
            + np.outer(slope, slope)
        )
        return slope, curvature


@dataclass(frozen=True)
class DensityByRows:
    """Scores for rows clipped to a public ``limit``. Other rows do not change their rounding."""

    density: MixtureDensity
    limit: float

    @cached_property
    def _products(self) -> ExactProducts:
        # The first rows of all factors come first, then their second rows, and so on. The rows of
        # one component are not adjacent.
        factors = np.swapaxes(self.density.factors, 0, 1)
        return ExactProducts.of(factors.reshape(-1, self.density.n_features), self.limit)

    def log_joint(self, part: FloatArray) -> FloatArray:
        """Log of the weight times the component density."""
        density, (k, d) = self.density, self.density.means.shape
        offsets = np.einsum("kij,kj->ik", density.factors, density.means).ravel()
        scores = np.empty((len(part), k))
        for rows, whitened in self._products.batches(part):
            whitened -= offsets
            whitened *= whitened
            for j in range(1, d):
                whitened[:, :k] += whitened[:, j * k : (j + 1) * k]
            scores[rows] = density.log_scales - 0.5 * whitened[:, :k]
        return scores

    def likeliest(self, part: FloatArray) -> IntArray:
        """Index of the likeliest component of each row."""
        return self.log_joint(part).argmax(axis=1)


def find_modes(density: MixtureDensity) -> tuple[FloatArray, IntArray]:
    """Modes that the centres of the components climb to, densest first, and the mode of each."""
    ends = climb(density, density.means)
    squared = np.array([_squared_lengths(ends - end, _scale(density, end)) for end in ends])
    n, labels = connected_components(
        (squared < _SAME_END) | (squared.T < _SAME_END), directed=False
    )
    first = np.array([np.flatnonzero(labels == i)[0] for i in range(n)])
    order = np.argsort(density.height(ends[first]), kind="stable")
    return ends[first[order]], np.argsort(order)[labels]


def climb(density: MixtureDensity, starts: FloatArray, polish: bool = True) -> FloatArray:
    """Follow mean shift from each start to its mode, and polish the result by Newton steps."""
    points = np.array(starts, dtype=float)
    moving = np.arange(len(points))
    spread = np.linalg.inv(np.einsum("k,kij->ij", density.weights, density.covariances))
    for _ in range(_MAX_CLIMB_STEPS):
        moved = density.mean_shift(points[moving])
        step = moved - points[moving]
        points[moving] = moved
        moving = moving[_squared_lengths(step, spread) > _REST]
        if len(moving) == 0:
            break
    return np.array([polished(density, point) for point in points]) if polish else points


def polished(density: MixtureDensity, point: FloatArray) -> FloatArray:
    """Lower the height by Newton steps, since mean shift alone converges slowly at flat modes."""
    height = density.height(point[None])[0]
    for _ in range(20):
        slope, curvature = density.slope_and_curvature(point)
        try:
            np.linalg.cholesky(curvature)
        except np.linalg.LinAlgError:
            break
        moved = point - np.linalg.solve(curvature, slope)
        lower = density.height(moved[None])[0]
        if not lower < height:
            break
        point, height = moved, lower
    return point


def _scale(density: MixtureDensity, point: FloatArray) -> FloatArray:
    """Positive definite matrix that defines distances near a point."""
    values, vectors = np.linalg.eigh(density.slope_and_curvature(point)[1])
    floor = 1e-9 * np.abs(values).max()
    return (vectors * np.maximum(values, floor)) @ vectors.T


def _squared_lengths(offsets: FloatArray, scale: FloatArray) -> FloatArray:
    """Squared lengths of rows in the metric of a positive definite matrix."""
    return np.einsum("ni,ij,nj->n", offsets, scale, offsets)


def nearest_mode(density: MixtureDensity, point: FloatArray, modes: FloatArray) -> int:
    """Index of the mode that a point coincides with, or -1."""
    squared = _squared_lengths(modes - point, _scale(density, point))
    best = int(np.argmin(squared))
    return best if squared[best] < _SAME_MODE else -1

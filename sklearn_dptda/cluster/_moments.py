"""Joint moments of the cells of a partition: contributions and their sensitivity."""

from dataclasses import dataclass

import numpy as np

from sklearn_dptda.privacy import Sensitivity

# Room for the rounding of a clipped vector's norm.
INSIDE = 1 - 2.0**-40
_TINY = 1e-300


@dataclass(frozen=True)
class MomentWeights:
    """Squared weights of count, sum and second moment in one joint release.

    A record in its cell contributes ``(w0, w1 u, w2 q(u))`` with a residual
    ``u`` of norm at most one.

    Attributes
    ----------
    count, sum, second : float
        Squares of ``w0``, ``w1``, ``w2``.

    Notes
    -----
    **L2.** ``q`` stacks the diagonal of ``u u'`` and ``sqrt(2)`` times its
    upper triangle, or the diagonal alone, or the trace. In each case
    ``norm(q(u)) <= 1``, and contributions of ``u`` and ``v`` have an inner
    product of at least ``k(t) = w0**2 + w1**2 t + w2**2 t**2`` with
    ``t = u . v``, or are no further apart than if they had.

    **L1.** ``q`` stacks the upper triangle without the factor; then the L1
    norm of ``q(u)`` is at most one where that of ``u`` is.
    """

    count: float
    sum: float = 0.0
    second: float = 0.0

    @property
    def roots(self):
        """The weights themselves."""
        return self.count**0.5, self.sum**0.5, self.second**0.5

    def sensitivity(self, adjacency, norm="l2"):
        """Sensitivity of the moments of all cells together.

        One more record changes one cell by at most the norm of one
        contribution. A replaced record changes two cells, or one cell by the
        difference of two contributions: squared, in L2, at most twice the
        total less twice the least ``k``.

        Parameters
        ----------
        adjacency : {"add-remove", "replace-one"}
        norm : {"l1", "l2"}, default="l2"

        Returns
        -------
        Sensitivity
        """
        if norm == "l1":
            factor = 1 if adjacency == "add-remove" else 2
            return Sensitivity(factor * sum(self.roots), "l1", adjacency)
        total = self.count + self.sum + self.second
        if adjacency == "add-remove":
            return Sensitivity(total**0.5, "l2", adjacency)
        t = -1.0 if 2 * self.second <= self.sum else -self.sum / (2 * self.second)
        least = self.count + self.sum * t + self.second * t * t
        return Sensitivity((2 * total - 2 * min(least, 0.0)) ** 0.5, "l2", adjacency)


@dataclass(frozen=True)
class Moments:
    """Noisy moments of residuals, in units of the clipping radius.

    Attributes
    ----------
    counts : ndarray of shape (n_cells,)
    sums : ndarray of shape (n_cells, n_features)
    seconds : ndarray of shape (n_cells or 1, n_features, n_features) or None
        One for all cells together where they are tied.
    sd_count, sd_sum : float
        Standard deviations of the noise of a count and of a coordinate of a sum.
    var_second : float
        Expected squared Frobenius norm of the noise of a second moment.
    var_trace : float
        Variance of the noise of the trace of a second moment.
    """

    counts: np.ndarray
    sums: np.ndarray
    seconds: np.ndarray | None
    sd_count: float
    sd_sum: float
    var_second: float = 0.0
    var_trace: float = 0.0


def row_products(X, Y):
    """Inner products of rows, each by the same roundings whatever the other rows are.

    Matrix products may round a row differently when the number of rows changes,
    and then one record would move what others contribute.
    """
    total = X[:, 0] * Y[..., 0]
    for j in range(1, X.shape[1]):
        total = total + X[:, j] * Y[..., j]
    return total


def row_norms(X, norm):
    """Norms of rows, each by the same roundings whatever the other rows are."""
    return row_products(np.abs(X), np.ones(X.shape[1])) if norm == "l1" else euclidean(X)


def euclidean(X):
    """Euclidean norms of rows."""
    return np.sqrt(row_products(X, X))


def clip_norm(residuals, radius, norm="l2"):
    """Shrink residuals to norm at most ``radius`` and return them in units of it."""
    unit = residuals / radius
    return unit * (INSIDE / np.maximum(row_norms(unit, norm), 1.0))[:, None]


class SecondMoments:
    """How second moments of one kind are stacked, and read back as matrices.

    Parameters
    ----------
    kind : {"full", "tied", "diag", "spherical"} or None
        None has no second moments.
    n_features : int
    norm : {"l1", "l2"}
    """

    def __init__(self, kind, n_features, norm):
        self.kind, self.n_features = kind, n_features
        matrix = kind in ("full", "tied")
        self.rows, self.columns = np.triu_indices(n_features) if matrix else (None, None)
        if matrix:
            off = 1.0 if norm == "l1" else np.sqrt(2.0)
            self.stretch = np.where(self.rows == self.columns, 1.0, off)

    @property
    def width(self):
        """Number of entries."""
        d = self.n_features
        sizes = {None: 0, "spherical": 1, "diag": d}
        return sizes.get(self.kind, d * (d + 1) // 2)

    def stack(self, u):
        """Entries of the second moments of residuals, one row each."""
        if self.kind is None:
            return np.empty((len(u), 0))
        if self.kind == "spherical":
            return row_products(u, u)[:, None]
        if self.kind == "diag":
            return u * u
        return self.stretch * u[:, self.rows] * u[:, self.columns]

    def matrices(self, entries):
        """Second moments of shape (n, n_features, n_features)."""
        d = self.n_features
        if self.kind is None:
            return None
        if self.kind == "spherical":
            return entries[:, :, None] / d * np.eye(d)
        if self.kind == "diag":
            return entries[:, :, None] * np.eye(d)
        out = np.zeros((len(entries), d, d))
        out[:, self.rows, self.columns] = entries / self.stretch
        out[:, self.columns, self.rows] = out[:, self.rows, self.columns]
        return out

    def noise(self, sd):
        """Expected squared Frobenius norm, and variance of the trace, of noise of entries."""
        d = self.n_features
        if self.kind is None:
            return 0.0, 0.0
        if self.kind == "spherical":
            return sd**2 / d, sd**2
        if self.kind == "diag":
            return d * sd**2, d * sd**2
        weights = np.where(self.rows == self.columns, 1.0, 2.0) / self.stretch**2
        return float(weights.sum()) * sd**2, d * sd**2

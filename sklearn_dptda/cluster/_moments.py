"""Private joint moments of the clusters of a partition."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from sklearn_dptda.privacy import FixedPoint, Sensitivity

# Room for the rounding of a clipped vector's norm.
_INSIDE = 1 - 2.0**-40
_BATCH = 1 << 15


@dataclass(frozen=True)
class MomentWeights:
    """Squared weights of count, sum and second moment in one joint release.

    A record in its cell contributes ``(w0, w1 u, w2 svec(u u'))`` with a
    residual ``u`` of norm at most one; ``svec`` stacks the diagonal and
    ``sqrt(2)`` times the upper triangle, so that inner products are
    ``k(t) = w0**2 + w1**2 t + w2**2 t**2`` with ``t = u . u'``.

    Attributes
    ----------
    count, sum, second : float
        Squares of ``w0``, ``w1``, ``w2``.
    """

    count: float
    sum: float
    second: float = 0.0

    @property
    def total(self):
        """Squared norm of the largest contribution."""
        return self.count + self.sum + self.second

    def sensitivity(self, adjacency):
        """L2 sensitivity of the moments of all cells together.

        One more record changes one cell by at most the root of the total. A
        replaced record changes two cells (twice the total, squared), or one
        cell by ``k(1) + k(1) - 2 k(t)``, squared.

        Parameters
        ----------
        adjacency : {"add-remove", "replace-one"}

        Returns
        -------
        Sensitivity
        """
        if adjacency == "add-remove":
            return Sensitivity(self.total**0.5, "l2", adjacency)
        t = -1.0 if 2 * self.second <= self.sum else -self.sum / (2 * self.second)
        least = self.count + self.sum * t + self.second * t * t
        return Sensitivity((2 * self.total - 2 * min(least, 0.0)) ** 0.5, "l2", adjacency)


@dataclass(frozen=True)
class Moments:
    """Noisy moments of residuals, in units of the clipping radius.

    Attributes
    ----------
    counts : ndarray of shape (n_cells,)
    sums : ndarray of shape (n_cells, n_features)
    seconds : ndarray of shape (n_cells, n_features, n_features) or None
    sd_count, sd_sum, sd_second : float
        Standard deviations of the noise: of a count, of a coordinate of a sum,
        and of a diagonal entry of a second moment (off the diagonal it is
        ``sqrt(2)`` times smaller).
    """

    counts: np.ndarray
    sums: np.ndarray
    seconds: np.ndarray | None
    sd_count: float
    sd_sum: float
    sd_second: float


def row_products(X, Y):
    """Inner products of rows, each by the same roundings whatever the other rows are.

    Matrix products may round a row differently when the number of rows changes,
    and then one record would move what others contribute.
    """
    total = X[:, 0] * Y[..., 0]
    for j in range(1, X.shape[1]):
        total = total + X[:, j] * Y[..., j]
    return total


def clip_norm(residuals, radius):
    """Shrink residuals to norm at most ``radius`` and return them in units of it."""
    unit = residuals / radius
    norms = np.sqrt(row_products(unit, unit))
    return unit * (_INSIDE / np.maximum(norms, 1.0))[:, None]


def release_moments(residuals, cells, n_cells, weights, scale, adjacency, noise):
    """Sum the contributions of all records exactly and add Gaussian noise.

    Parameters
    ----------
    residuals : callable
        Takes a slice of rows and returns their residuals, of norm at most one.
    cells : ndarray of shape (n,)
        Cell of each row, a function of the row and of earlier releases.
    n_cells : int
    weights : MomentWeights
    scale : float
        Of the noise, for the sensitivity that ``weights`` declare.
    adjacency : str
    noise : NoiseSource

    Returns
    -------
    Moments
    """
    d = residuals(slice(0, 0)).shape[1]
    rows, columns = np.triu_indices(d) if weights.second else (np.empty(0, int),) * 2
    stretch = np.where(rows == columns, 1.0, np.sqrt(2.0))
    w0, w1, w2 = np.sqrt([weights.count, weights.sum, weights.second])
    width = 1 + d + len(rows)
    declared = weights.sensitivity(adjacency)
    lattice = FixedPoint.for_scale(scale if scale > 0 else 1.0)
    total = np.zeros((n_cells, width), dtype=np.int64)
    for start in range(0, len(cells), _BATCH):
        part = slice(start, start + _BATCH)
        u = residuals(part)
        contribution = np.hstack(
            [np.full((len(u), 1), w0), w1 * u, w2 * stretch * u[:, rows] * u[:, columns]]
        )
        steps = lattice.encode(contribution)
        members = csr_array(
            (np.ones(len(u), np.int64), (cells[part], np.arange(len(u)))), (n_cells, len(u))
        )
        total += members @ steps
    # Rounding to the lattice adds at most one step per coordinate of two cells.
    grown = lattice.sum_sensitivity(declared, 2 * width).value * lattice.step / declared.value
    noisy = lattice.decode(
        total + noise.discrete_gaussian(scale * grown / lattice.step, total.shape)
    )
    seconds = None
    if len(rows):
        seconds = np.zeros((n_cells, d, d))
        seconds[:, rows, columns] = noisy[:, 1 + d :] / (w2 * stretch)
        seconds[:, columns, rows] = seconds[:, rows, columns]
    return Moments(
        counts=noisy[:, 0] / w0,
        sums=noisy[:, 1 : 1 + d] / w1,
        seconds=seconds,
        sd_count=scale / w0,
        sd_sum=scale / w1,
        sd_second=scale / w2 if w2 else 0.0,
    )

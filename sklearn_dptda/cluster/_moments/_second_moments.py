"""Second moments of one kind, stacked into the entries that are released."""

import numpy as np

from sklearn_dptda.cluster._moments._row_arithmetic import row_products


class SecondMoments:
    """How second moments of one kind, if any, are stacked, and read back as matrices."""

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
        if self.kind == "spherical":
            return row_products(u, u)[:, None]
        if self.kind == "diag":
            return u * u
        entries = u[:, self.rows]
        entries *= self.stretch
        entries *= u[:, self.columns]
        return entries

    def matrices(self, entries):
        """Second moments of shape (n, n_features, n_features)."""
        d = self.n_features
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
        if self.kind == "spherical":
            return sd**2 / d, sd**2
        if self.kind == "diag":
            return d * sd**2, d * sd**2
        weights = np.where(self.rows == self.columns, 1.0, 2.0) / self.stretch**2
        return float(weights.sum()) * sd**2, d * sd**2

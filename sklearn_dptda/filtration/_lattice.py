"""Counts of points on a public lattice: histograms that add up."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import Bounds
from sklearn_dptda.filtration._grid_filtration import grid_nodes
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.rows._rows import count_beyond
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._clouds import check_cloud


class LatticeHistogram:
    """How many points of a cloud are nearest to each node of a public lattice.

    Points outside the bounds are clipped to them. Histograms of parts of a
    cloud add up to the histogram of the whole, so a cloud can be streamed in
    chunks or counted where its parts live.

    A histogram is an exact statistic of the cloud: *not* private.

    Parameters
    ----------
    bounds : tuple (low, high)
        Public bounding box.
    shape : tuple of int
        Nodes along each axis, at least 2 each, bounds included.

    Attributes
    ----------
    counts : ndarray of int64, shape ``shape``
    n_points : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.filtration import LatticeHistogram
    >>> rng = np.random.default_rng(0)
    >>> whole = LatticeHistogram((0, 1), (11, 11))
    >>> for _ in range(3):
    ...     part = LatticeHistogram((0, 1), (11, 11)).update(rng.random((100, 2)))
    ...     whole = whole + part
    >>> whole.n_points
    300
    """

    def __init__(self, bounds: Bounds, shape: Sequence[int]) -> None:
        self.shape = tuple(int(s) for s in shape)
        if not self.shape or min(self.shape) < 2:
            raise ValueError(f"shape must have at least 2 nodes per axis; got {quoted(shape)}.")
        self.low, self.high = check_bounds(bounds, len(self.shape))
        self.counts = np.zeros(self.shape, dtype=np.int64)
        self.n_clipped = 0

    @property
    def n_points(self) -> int:
        """Number of points counted so far."""
        return int(self.counts.sum())

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return len(self.shape)

    @property
    def cell_diagonal(self) -> float:
        """Length of the diagonal of a lattice cell; points move by at most half of it."""
        return float(np.linalg.norm((self.high - self.low) / (np.array(self.shape) - 1)))

    def update(self, X: ArrayLike, batch_size: int = 1_000_000) -> Self:
        """Count one more chunk of points.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Finite; an empty chunk is allowed.
        batch_size : int, default=1_000_000
            Rows that are handled at a time, which bounds the working memory.

        Returns
        -------
        self
        """
        X = check_cloud(X, "X", self.n_features, min_points=0)
        steps = (np.array(self.shape) - 1) / (self.high - self.low)
        for start in range(0, len(X), batch_size):
            batch = X[start : start + batch_size]
            self.n_clipped += count_beyond(batch, self.low, self.high)
            chunk = np.clip(batch, self.low, self.high)
            index = np.rint((chunk - self.low) * steps).astype(np.int64)
            flat = np.ravel_multi_index(tuple(index.T), self.shape)
            self.counts += np.bincount(flat, minlength=self.counts.size).reshape(self.shape)
        return self

    def matches(self, other: "LatticeHistogram") -> bool:
        """Whether two histograms live on the same lattice."""
        return (
            self.shape == other.shape
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
        )

    def __add__(self, other: object) -> "LatticeHistogram":
        if not isinstance(other, LatticeHistogram):
            return NotImplemented
        if not self.matches(other):
            raise ValueError("Only histograms on the same lattice can be merged.")
        merged = LatticeHistogram((self.low, self.high), self.shape)
        merged.counts = self.counts + other.counts
        merged.n_clipped = self.n_clipped + other.n_clipped
        return merged

    def __radd__(self, other):
        return self if other == 0 else NotImplemented

    def __repr__(self):
        return f"LatticeHistogram(shape={self.shape}, n_points={self.n_points})"


# The distance-to-measure of counts on a lattice, at nodes of the lattice.


def lattice_grid_values(histogram, refinement, power):
    """Distance-to-measure on a grid that is every ``refinement``-th lattice node.

    The sum of the ``k`` smallest values is the integral over the radius of how many of the ``k``
    neighbours are still missing. Offsets between a node and the lattice are the same for all
    nodes, so shells of equal distance are visited once, nearest first, for the whole grid
    together; the cost does not depend on the number of points.
    """
    shape = np.array(histogram.shape)
    spacing = (histogram.high - histogram.low) / (shape - 1)
    # Shells beyond the cap all count as the cap: they need not be visited.
    reach = np.minimum(shape - 1, np.floor(power.cap / spacing).astype(int))
    # Half as many bytes to move, where they hold the number of points.
    narrow = np.int32 if histogram.n_points < 2**31 else np.int64
    padded = np.pad(histogram.counts.astype(narrow), [(r, r) for r in reach])
    offsets, levels = _shells(reach, spacing, power)
    window = [slice(0, s, refinement) for s in shape]
    grid = tuple(len(range(s)[w]) for s, w in zip(shape, window, strict=True))
    reached = np.zeros(grid, dtype=narrow)
    missing_integral = np.zeros(grid, dtype=np.int64)
    distinct, starts = np.unique(levels, return_index=True)
    previous = 0
    for level, (begin, end) in zip(distinct, pairwise([*starts, len(levels)]), strict=True):
        missing = np.maximum(power.k - reached, 0).astype(np.int64)
        if not missing.any():
            break
        missing_integral += missing * (level - previous)
        previous = level
        for offset in offsets[begin:end]:
            view = tuple(
                slice(r + o, r + o + s, refinement)
                for r, o, s in zip(reach, offset, shape, strict=True)
            )
            reached += padded[view]
    missing = np.maximum(power.k - reached, 0).astype(np.int64)
    missing_integral += missing * (2**power.bits - previous)
    return power.values(missing_integral.ravel())


def _shells(reach, spacing, power):
    """Offsets within the cap and their integer distances, nearest first."""
    offsets = grid_nodes([np.arange(-r, r + 1) for r in reach])
    levels = power.integers(((offsets * spacing) ** 2).sum(axis=1))
    inside = levels < 2**power.bits
    order = np.argsort(levels[inside], kind="stable")
    return offsets[inside][order], levels[inside][order]

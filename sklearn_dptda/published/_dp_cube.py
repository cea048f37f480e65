"""K-means by candidates from a private partition, private swaps, and noisy means.

Proof: doc/theory/private_mixtures.md, "The choices of `DPCube`".
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, RandomStateLike, RowBounds
from sklearn_dptda.cluster._dp_tree import default_depth, grow
from sklearn_dptda.cluster._noisy_steps import (
    NoisyClusters,
    NoisyStep,
    far_apart,
)
from sklearn_dptda.cluster._private_kmeans import PrivateKMeans
from sklearn_dptda.cluster._standardise import Standardised
from sklearn_dptda.privacy import PrivacyAccountant, zcdp_rho
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.rows._assignments import Cells, in_norm, nearest_to
from sklearn_dptda.rows._moments import MomentWeights, by_cell
from sklearn_dptda.rows._private_cubes import CellCounts
from sklearn_dptda.rows._rows import Box, batch_size, slices

# Number of whole steps in the radius. Its square is the largest cost of one record.
_STEPS = 1 << 10
LARGEST_COST = _STEPS**2
# Number of cells, of all axes together, in which rows are counted, and least number along each
# axis. Their sides are some tenths of a standard deviation; the sides of the boxes whose centres
# are candidates are several standard deviations.
_CELLS, _FEWEST_CELLS = 1 << 20, 8
# Largest number of rows of one entry. With as many entries as a batch has, sums of costs stay below
# 2**53.
_MOST_ROWS = 1 << 20


class Candidates:
    """Points that centres are chosen from, and their cost for a record.

    Costs do not grow beyond ``radius``. Coordinates are rounded to whole steps, so that sums are
    exact in any order, and the costs of a record do not depend on other records.
    """

    def __init__(self, points, radius):
        self.points, self.radius = points, radius
        steps = self._round(points)
        squared_norms = (steps**2).sum(axis=1, keepdims=True)
        self._factors = np.hstack([-2 * steps, np.ones_like(squared_norms), squared_norms]).T

    def __len__(self):
        return len(self.points)

    def _round(self, points):
        # Beyond 2**20 steps, costs are the largest possible anyway.
        return np.clip(np.rint(points * (_STEPS / self.radius)), -(2.0**20), 2.0**20)

    def costs(self, part):
        """Squared distances to all candidates in squared steps, of shape (n, n_candidates)."""
        steps = self._round(part)
        squared_norms = (steps**2).sum(axis=1, keepdims=True)
        factors = np.hstack([steps, squared_norms, np.ones_like(squared_norms)])
        squared_distances = factors @ self._factors
        return np.minimum(squared_distances, LARGEST_COST, out=squared_distances)


@dataclass(frozen=True)
class CountedRows:
    """Numbers of rows in the cells of a public lattice over a box.

    Each row is at the centre of its cell, and one pass counts the rows, however many swaps there
    are. ``points`` has the shape (n_cells, n_axes).
    """

    points: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, rows, low, high):
        """Count rows. Rows outside the box are counted in the cells at its boundary."""
        n_axes = len(low)
        n_cells = min(max(int(_CELLS ** (1 / n_axes)), _FEWEST_CELLS), _STEPS)
        side = (high - low) / n_cells
        counted = rows.sum(partial(_in_cells, low=low, side=side, n_cells=n_cells))
        cells, counts = counted.merged()
        return cls.in_entries(cells, counts, low, side)

    @classmethod
    def in_entries(cls, cells, counts, low, side):
        """Build the object from cells and their counts. Very full cells have several entries."""
        entries = -(-counts // _MOST_ROWS)
        points = np.repeat(low + (cells + 0.5) * side, entries, axis=0)
        shares = np.full(len(points), _MOST_ROWS)
        shares[np.cumsum(entries) - 1] = counts - (entries - 1) * _MOST_ROWS
        return cls(points, shares.astype(float))

    def pieces(self, width):
        """Batches for computations that need ``width`` numbers for each cell."""
        size = batch_size(width)
        return zip(slices(self.points, size), slices(self.counts, size), strict=True)


def _in_cells(part, low, side, n_cells):
    cells = np.clip(np.floor((part - low) / side), 0, n_cells - 1)
    return CellCounts.of(cells.astype(np.int64))


def swap_costs(candidates, rows, chosen):
    """Cost of each set that differs from the ``k`` chosen candidates by one centre.

    In entry (o, c) of the result, candidate c takes the place of the o-th centre.
    """
    k = len(chosen)
    total = np.zeros((k, len(candidates)), dtype=np.int64)
    for points, counts in rows.pieces(len(candidates)):
        costs = candidates.costs(points)
        present = costs[:, chosen]
        nearest = present.argmin(axis=1)
        nearest_cost = present.min(axis=1)
        # Without its centre, a record belongs to the second nearest one, or has the largest cost.
        present[np.arange(len(points)), nearest] = LARGEST_COST
        second_cost = present.min(axis=1)
        kept = np.minimum(costs, nearest_cost[:, None])
        total += (counts @ kept).astype(np.int64)
        # Additional cost of the second nearest centre, if the new centre is farther away than the
        # nearest.
        added = np.minimum(costs, second_cost[:, None], out=costs)
        added -= kept
        total += ((by_cell(nearest, k) * counts) @ added).astype(np.int64)
    return total


def set_costs(candidates, rows, sets):
    """Cost of each of some sets of candidates, as a list of int."""
    total = np.zeros(len(sets), dtype=np.int64)
    for points, counts in rows.pieces(len(candidates)):
        costs = candidates.costs(points)
        total += [int(counts @ costs[:, chosen].min(axis=1)) for chosen in sets]
    return total.tolist()


def search(candidates, rows, start, n_swaps, budget, share):
    """Swap centres privately, and choose the best set that was met, with a share of the budget."""
    each = share / (n_swaps + 1)
    sets = [np.array(start)]
    for _ in range(n_swaps):
        costs = swap_costs(candidates, rows, sets[-1])
        index = budget.choose(costs.ravel().tolist(), LARGEST_COST, each)
        out, into = divmod(index, costs.shape[1])
        swapped = sets[-1].copy()
        swapped[out] = into
        sets.append(swapped)
    return sets[budget.choose(set_costs(candidates, rows, sets), LARGEST_COST, each)]


# Shares of the tree, the swaps and the recovery, of the budget that standardising and covariances
# leave.
_SHARES = (0.25 / 0.95, 0.35 / 0.95, 0.35 / 0.95)
_RECOVERY_WEIGHTS = MomentWeights(0.4, 0.6)
# Radii at which the cost of a record and its residual are clipped, in root mean square radii of the
# rows.
_COST_RADIUS, _RECOVERY_RADIUS = 1.5, 1.4


@fill_doc
class DPCube(PrivateKMeans):
    """K-means under differential privacy, with candidate centres from a private partition.

    A fit has five steps:

    1. Release a noisy centre and scale of all rows, and standardise the rows.
    2. Project the rows on six public random directions, if there are more columns.
    3. Grow a tree of boxes, and split boxes whose noisy counts are large. The
       centres of the boxes are the candidates.
    4. Choose ``n_clusters`` candidates, and swap them for better ones by the
       exponential mechanism, twice as often as there are clusters.
    5. Release noisy means of the resulting clusters in the original space.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. It is public: do not choose it by looking at the rows.
        More clusters mean more noise in each centre.
    %(epsilon)s
    %(pure_or_gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    %(cluster_covariances)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Private centres.
    %(cluster_weights_and_covariances)s
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    sklearn_dptda.cluster.DPLloyd : K-means by noisy Lloyd steps.
    sklearn_dptda.cluster.DPTree : K-means of a private coreset, from a tree alone.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, centres, weights and, if you ask for them,
    covariances. It is (``epsilon``, ``delta``)-differentially private for adding
    or removing one row, or for replacing one. The losses of noisy sums and of
    private choices compose as zCDP, or add up with ``delta=0``. ``score``, and what
    ``predict`` and ``transform`` return for private rows, are *not* private.
    %(privacy_of_groups)s

    %(noise_of_clusters)s

    References
    ----------
    M.-F. Balcan, T. Dick, Y. Liang, W. Mou, H. Zhang, "Differentially private
    clustering in high-dimensional Euclidean spaces", ICML 2017. Here, all boxes of
    a level are counted, the number of swaps is public, the recovery divides by
    noisy counts, there is one partition, and costs are clipped.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.published import DPCube
    >>> X, _ = make_blobs(5000, centers=3, random_state=0)
    >>> DPCube(3, bounds=(-15, 15), random_state=0).fit(X).cluster_centers_.shape
    (3, 2)
    """

    # The units of columns, which are not a parameter here.
    units = "columns"
    # Largest dimension of the projection: boxes of more axes contain too few rows. And number of
    # swaps for each cluster; the swaps share their part of the budget equally with the final
    # choice. Studies of single swaps change these numbers in subclasses.
    _n_axes = 6
    _n_swaps_per_cluster = 2

    _adapts_to_columns = False

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        covariance_share: float = 0.0,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.covariance_share = covariance_share
        self.accountant = accountant
        self.random_state = random_state

    @staticmethod
    def _gaussian_loss(epsilon, delta):
        # Choices are not Gaussian mechanisms, so losses are added up as zCDP.
        rho = zcdp_rho(epsilon, delta)
        return math.sqrt(2 * rho), LossLaw(zcdp=rho)

    def _mechanism(self):
        if self.delta == 0:
            return "discrete Laplace mechanism and permute-and-flip, composed"
        return "discrete Gaussian and exponential mechanisms, composed"

    def _fit_centres(
        self, data: Standardised, share: float, rng: np.random.Generator, box: Box
    ) -> NoisyClusters:
        k, d, budget = int(self.n_clusters), data.n_features, data.budget
        grown, swapped, recovered = share * np.array(_SHARES)
        n_axes = min(d, self._n_axes)
        directions = np.eye(d) if n_axes == d else _orthogonal(d, n_axes, rng)
        half_widths = np.linalg.norm(data.axes.T @ directions, axis=0)
        tree = grow(
            data.rows,
            directions,
            half_widths,
            n_clusters=k,
            depth=default_depth(k),
            budget=budget,
            share=grown,
        )
        candidates = Candidates(tree.centres, _COST_RADIUS * n_axes**0.5)
        counted = CountedRows.of(data.rows.map(tree.coordinates), tree.low[0], tree.high[0])
        start = tree.leaves[far_apart(tree.centres[tree.leaves], k)]
        chosen = search(candidates, counted, start, self._n_swaps_per_cluster * k, budget, swapped)
        return _recover(data, tree, tree.centres[chosen], budget, recovered)


def _orthogonal(d, n_axes, rng):
    """Random orthonormal directions."""
    return np.linalg.qr(rng.standard_normal((d, n_axes)))[0]


def _recover(data, tree, projected, budget, share):
    """Noisy clusters in the original space, from centres in the projection."""
    base = projected @ tree.directions.T
    radius = in_norm(_RECOVERY_RADIUS * data.n_features**0.5, data.n_features, budget.norm)
    nearest = partial(_nearest_in, tree=tree, nearest=nearest_to(projected, data.limit))
    cells = Cells(base, radius, budget.norm, nearest)
    moments = budget.release(data.rows, cells, len(base), weights=_RECOVERY_WEIGHTS, share=share)
    return NoisyStep(base, radius, moments).clusters()


def _nearest_in(part, tree, nearest):
    return nearest(tree.coordinates(part))

"""Algorithms 2 and 3 of Byun, Choi and Lee: a private mixture, and the merging of its components.

Algorithm 2 computes a private mixture from raw moments in the box. Algorithm 3 joins its centres by
transition points, which quadratic strings find.

J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private clustering through
dynamical processing". Algorithm 3 is a variant of the search of D. Lee, J. Lee, Y.-G. Yoon, "A
quadratic string adapted barrier exploring method for locating transition states", Computer Physics
Communications 177, 2007.

Proof: doc/theory/private_mixtures.md, "Why not the published covariance step".
Proof: doc/theory/private_mixtures.md, "What the noise of the published mixture covers".
Proof: doc/theory/private_mixtures.md, "The published flow".
"""

from numbers import Integral
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, FloatArray, IntArray, RandomStateLike, RowBounds
from sklearn_dptda.cluster import DPMoG, MorseMerging
from sklearn_dptda.cluster._barriers import Edge, spanning_tree
from sklearn_dptda.cluster._merge_tree import MergeTree, tree_of_barriers
from sklearn_dptda.cluster._mixture_density import DensityByRows, MixtureDensity, climb
from sklearn_dptda.cluster._morse_merging import BATCH_ROWS
from sklearn_dptda.cluster._noisy_steps import NoisyStep, packed_points
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._assignments import Cells
from sklearn_dptda.rows._estimator import PrivateRowsEstimator
from sklearn_dptda.rows._moments import KEPT, FitBudget, MomentWeights, clip_eigenvalues
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import Interval

# Variances in the cube below this one count as noise.
_LEAST_VARIANCE = 1e-3
# The published algorithm states no start. This seed gives one public start, the same in every fit.
_START_SEED = 0
# Components with less than this share of an average component count as dead, also without noise.
_DEAD = 0.02
# The paper's m, tau_2 and perturbation: number of points that are examined on a string, number of
# strings after the segment, and distance to both sides of a transition point at which its two
# descents begin.
_N_POINTS, _N_STRINGS, _NUDGE = 20, 5, 0.05
# Length of the flow that a point of a string follows, in steps of mean shift. The paper does not
# state it. Followed to its end, the flow would lead to a mode. On ridges between components that
# are far apart it must be short.
_FLOW_TIME = 0.02
# Number of Newton steps; their greatest length in units of the curvature, since whole steps lead
# anywhere when they are far from a critical point; and the length at which they have settled.
_N_NEWTON, _MAX_NEWTON_LENGTH, _SETTLED = 100, 0.5, 1e-8
# Number of standard deviations around the centres that the cube contains.
_CUBE_MARGIN = 2.0


@fill_doc
class PublishedMixture(DPMoG):
    """Gaussian mixture under differential privacy by Algorithm 2 of Byun, Choi and Lee.

    Each step releases the count, the sum and the raw second moment of every component in
    the box of the bounds, with an equal share of the budget. The paper states neither a
    start nor a rule for components without rows: here, all fits have the same public
    start, and components without rows split the heaviest ones.

    Parameters
    ----------
    n_components : int, default=8
        Number of components at the start. It is public.
    %(epsilon)s
    %(gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    n_steps : int, default=10
        Number of steps.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    %(mixture_covariances)s
    %(noise_of_components)s
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, weights, means and covariances. It is
    (``epsilon``, ``delta``)-differentially private for adding or removing one row,
    or for replacing one.
    %(privacy_of_groups)s

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing". As printed, the covariance step of
    the paper has no bounded sensitivity.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_dptda.published import PublishedMixture
    >>> X, _ = make_blobs(5000, centers=3, random_state=0)
    >>> PublishedMixture(3, epsilon=2.0, bounds=(-15, 15), random_state=0).fit(X).means_.shape
    (3, 2)
    """

    _parameter_constraints = {
        **PrivateRowsEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
    }
    covariance_type, units = "full", "columns"
    _search = None

    _adapts_to_columns = False

    def __init__(
        self,
        n_components: int = 8,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        n_steps: int = 10,
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
        self.n_steps = n_steps
        self.accountant = accountant
        self.random_state = random_state

    def _learn(self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box) -> None:
        self._columns, self._box = cast(Columns, rows.columns), box
        fitted = fit_paper_mixture(rows, cast(int, self.n_components), self.n_steps, budget)
        self._keep_in_units(*fitted)


def fit_paper_mixture(rows, n_components, n_steps, budget):
    """Fit a mixture by raw moments in the cube: Algorithm 2 of Byun, Choi and Lee.

    As printed, the covariance step has no bounded sensitivity. Here, the count, the sum and the raw
    second moment of a cell are released together. The paper states neither a start nor what happens
    to components without rows: here, these split the heaviest ones.
    """
    d = rows.n_features
    # Weights of raw moments are one in units of the ball around the cube.
    weights = MomentWeights(1.0, d, d**2)
    centres = d**0.5 * packed_points(n_components, d, np.random.default_rng(_START_SEED))
    centres = np.clip(centres, -1.0, 1.0)
    covariances = np.tile(np.eye(d) / 3, (n_components, 1, 1))
    counts = np.ones(n_components)
    for step in range(n_steps):
        by_rows = DensityByRows(MixtureDensity(counts, centres, covariances), limit=1.0)
        moments = budget.release(
            rows,
            Cells(np.zeros_like(centres), d**0.5, "l2", by_rows.likeliest),
            n_components,
            weights=weights,
            share=1 / n_steps,
            kind="full",
        )
        counts = moments.floored_counts
        centres = np.clip(d**0.5 * moments.sums / counts[:, None], -1.0, 1.0)
        second_moments = d * moments.second_moments / counts[:, None, None]
        covariances = second_moments - centres[:, :, None] * centres[:, None, :]
        # No variance in the cube is larger than one.
        covariances = clip_eigenvalues(covariances, _LEAST_VARIANCE, 1.0)
        if step < n_steps - 1:
            counts, centres, covariances = _split_dead(moments, counts, centres, covariances)
    kept = np.flatnonzero(moments.above_noise)
    about_zero = NoisyStep(np.zeros_like(centres), d**0.5, moments)
    return about_zero.pooled(kept, np.arange(len(kept)), centres[kept]), covariances[kept]


def _split_dead(moments, counts, centres, covariances):
    """Turn components that may have no rows, by noisy counts, into halves of the heaviest ones.

    The halves are a standard deviation away along the longest axis, and keep the covariance.
    """
    least = max(KEPT * moments.sd_count, _DEAD * np.maximum(moments.counts, 0.0).mean())
    dead = moments.counts < least
    if dead.all():
        return counts, centres, covariances
    counts, centres, covariances = np.where(dead, 0.0, counts), centres.copy(), covariances.copy()
    for cell in np.flatnonzero(dead):
        heavy = int(counts.argmax())
        values, axes = np.linalg.eigh(covariances[heavy])
        away = values[-1] ** 0.5 * axes[:, -1]
        centres[cell], centres[heavy] = np.clip(
            [centres[heavy] + away, centres[heavy] - away], -1.0, 1.0
        )
        covariances[cell] = covariances[heavy]
        counts[cell] = counts[heavy] = counts[heavy] / 2
    return counts, centres, covariances


@fill_doc
class PublishedMerging(MorseMerging):
    """Clusters from a mixture by Algorithm 1 of Byun, Choi and Lee, for comparisons.

    Saddles are searched for by quadratic strings between all pairs of centres, the
    merge tree is cut by heights, and a row belongs to the cluster of the centre that
    it climbs to.

    Parameters
    ----------
    estimator : estimator, default=None
        A mixture that learns ``weights_``, ``means_`` and ``covariances_``, private or
        not. None: ``GaussianMixture(8)``, which is not private.
    n_clusters : int, default=None
        Number of clusters, at most the number of components. None: the merge tree is
        cut in its largest gap.
    %(merging)s

    Attributes
    ----------
    estimator_ : estimator
        The fitted mixture.
    modes_ : ndarray of shape (n_components, n_features)
        Centres of the components, the densest first.
    saddles_ : ndarray of shape (n_components - 1, n_features)
        Saddles of the merge tree, the lowest first; NaN where none was found.
    linkage_ : ndarray of shape (n_components - 1, 4)
        The merge tree in SciPy's format.
    mode_labels_, component_labels_ : ndarray of shape (n_components,)
        Cluster of each centre, in the orders of ``modes_`` and of the components.
    n_clusters_ : int
        Number of clusters.
    labels_ : ndarray of shape (n_samples,)
        Clusters of the training rows. Present only if the mixture is not private.
    %(columns)s

    Notes
    -----
    .. rubric:: Privacy

    The clusters are as private as the mixture. What ``predict`` returns for private
    rows is *not* private.

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.mixture import GaussianMixture
    >>> from sklearn_dptda.published import PublishedMerging
    >>> X, y = make_moons(500, noise=0.05, random_state=0)
    >>> PublishedMerging(GaussianMixture(6, random_state=0), 2).fit(X).n_clusters_
    2
    """

    _finds_crossings = False

    def _linkage(self, *parameters: ArrayLike) -> MergeTree:
        return published_linkage(*parameters)

    def _cut(self, tree: MergeTree) -> IntArray:
        # Nothing is known of how centres without saddles stand out.
        options = self.n_clusters, self.merge_threshold, self.min_cluster_weight
        return tree.cut(*options, rule="height")

    def _labels(self, X: FloatArray) -> IntArray:
        labels = np.empty(len(X), dtype=int)
        for rows in gen_batches(len(X), BATCH_ROWS):
            part = np.asarray(X[rows], dtype=float)
            labels[rows] = self.component_labels_[centres_climbed_to(self._mixture(), part)]
        return labels


def published_linkage(weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> MergeTree:
    """Merge tree of the centres of a Gaussian mixture, by Algorithms 3 and 4.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
        Weights of the components. They are positive and need not sum to one.
    means : array-like of shape (n_components, n_features)
        Means of the components.
    covariances : array-like of shape (n_components, n_features, n_features)
        Covariances of the components.

    Returns
    -------
    MergeTree

    See Also
    --------
    sklearn_dptda.cluster.morse_linkage : The merge tree of the modes, which misses no saddle.

    Notes
    -----
    .. rubric:: Privacy

    The tree is a function of the parameters alone, and as private as they are.

    .. rubric:: What the paper leaves open

    The search begins at the point of least density among 20 points on the segment between two
    centres, and follows the flow (7). It repeats this five times, from the point of least density
    on the parabola whose vertex is the last point. Newton steps then lead to a critical point. One
    of index one joins the centres nearest to the ends of its two descents, which begin 0.05 to both
    sides. The rest is not stated. Here it is as follows:

    - *Length of the flow*: one step, a fiftieth of a step of mean shift.
    - *Metric of the flow*: the mean of the precisions, by responsibility.
    - *Newton steps*: long steps are cut to half a unit of the curvature, and steps that do not
      settle find no saddle.
    - *Pairs without a saddle*: the densest centres are joined first.
    - *Lengths*: they are measured after the smallest box that holds all centres and two standard
      deviations around them has been scaled to a cube.

    Of centres that share a mode, all but one are left without a saddle, and so are many components
    that are more than a dozen standard deviations apart.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import published_linkage
    >>> tree = published_linkage([0.5, 0.3, 0.2], [[0.0], [4.0], [9.0]], np.ones((3, 1, 1)))
    >>> tree.n_modes, tree.cut(n_clusters=2, rule="height")
    (3, array([0, 0, 1]))
    """
    density = MixtureDensity(np.asarray(weights), np.asarray(means), np.asarray(covariances))
    return tree_of_barriers(density, CentreGraph(density))


class CentreGraph:
    """Centres, the densest first, and the lowest transition point found between each two of them.

    The attributes are those of ``Barriers``; ``modes`` are the centres. Between centres without a
    transition point, ``heights`` are infinite and ``places`` are missing.
    """

    def __init__(self, density: MixtureDensity) -> None:
        self.n_known = n = density.n_components
        heights = density.height(density.means)
        order = np.argsort(heights, kind="stable")
        self.owners: IntArray = np.argsort(order)
        self.modes = density.means[order]
        self.heights = np.full((n, n), np.inf)
        self.places: dict[Edge, FloatArray] = {}
        np.fill_diagonal(self.heights, heights[order])
        middle, half = _cube(density)
        pairs, places = transitions(_scaled(density, middle, half))
        places = middle + half * places
        for pair, place, height in zip(
            self.owners[pairs], places, density.height(places), strict=True
        ):
            i, j = sorted(pair.tolist())
            if height < self.heights[i, j]:
                self.heights[i, j] = self.heights[j, i] = height
                self.places[i, j] = place

    def edges(self) -> list[Edge]:
        """Single linkage, Algorithm 4. Pairs without a transition point come last."""
        pairs = np.triu_indices(self.n_known, 1)
        ranks = np.zeros((self.n_known, self.n_known))
        # SciPy treats zero as a missing edge.
        ranks[pairs] = 1 + np.argsort(np.argsort(self.heights[pairs], kind="stable"))
        return spanning_tree(ranks)


def centres_climbed_to(density: MixtureDensity, X: FloatArray) -> IntArray:
    """Index of the centre nearest to the mode that each row climbs to, in the cube."""
    middle, half = _cube(density)
    return _centres_reached(_scaled(density, middle, half), (X - middle) / half)


def _cube(density: MixtureDensity) -> tuple[FloatArray, FloatArray]:
    """Middle and half widths of a box around all centres and two deviations around them.

    It replaces the cube to which the paper scales its rows.
    """
    around = _CUBE_MARGIN * np.sqrt(np.einsum("kii->ki", density.covariances))
    low, high = (density.means - around).min(axis=0), (density.means + around).max(axis=0)
    return (low + high) / 2, (high - low) / 2


def _scaled(density: MixtureDensity, middle: FloatArray, half: FloatArray) -> MixtureDensity:
    means = (density.means - middle) / half
    return MixtureDensity(density.weights, means, density.covariances / np.outer(half, half))


def transitions(density: MixtureDensity) -> tuple[IntArray, FloatArray]:
    """Pairs of centres, and a transition point between the two centres of each pair.

    There is no pair if both descents end at the same centre.
    """
    first, last = (density.means[end] for end in np.triu_indices(density.n_components, 1))
    across = last - first
    # First the segment, then parabolas, each with the last point as its vertex. The paper prints
    # the first point in place of the last one, which would repeat one string.
    vertex = across / 2
    for _ in range(1 + _N_STRINGS):
        points = _highest_on_parabola(density, first, across, vertex)
        points = points + _FLOW_TIME * (density.mean_shift(points) - points)
        vertex = points - first
    points = _critical_points(density, points)
    values, vectors = np.linalg.eigh(density.slopes_and_curvatures(points)[1])
    index_one = (values < 0).sum(axis=1) == 1
    places, away = points[index_one], vectors[index_one, :, 0]
    ends = _centres_reached(density, np.vstack([places + _NUDGE * away, places - _NUDGE * away]))
    pairs = np.sort(ends.reshape(2, -1).T, axis=1)
    apart = pairs[:, 0] != pairs[:, 1]
    return pairs[apart], places[apart]


def _highest_on_parabola(
    density: MixtureDensity, first: FloatArray, across: FloatArray, vertex: FloatArray
) -> FloatArray:
    """Highest inner point of each parabola through ``first``, ``first + across`` and a vertex.

    The vertex is relative to ``first``.
    """
    s = (np.arange(1, _N_POINTS + 1) / (_N_POINTS + 1))[:, None, None]
    points = first + s * across + (s - s**2) * (4 * vertex - 2 * across)
    heights = density.height(points.reshape(-1, density.n_features))
    top = heights.reshape(points.shape[:2]).argmax(axis=0)
    return points[top, np.arange(len(first))]


def _critical_points(density: MixtureDensity, starts: FloatArray) -> FloatArray:
    """Zeros of the gradient at which Newton steps from the starts settle; others are left out."""
    points, lengths = starts.copy(), np.full(len(starts), np.inf)
    for _ in range(_N_NEWTON):
        moving = lengths > _SETTLED
        if not moving.any():
            break
        slopes, curvatures = density.slopes_and_curvatures(points[moving])
        values, vectors = np.linalg.eigh(curvatures)
        sizes = np.abs(values)
        sizes = np.maximum(sizes, 1e-12 * sizes.max(axis=1, keepdims=True))
        along = np.einsum("nij,ni->nj", vectors, slopes) / np.copysign(sizes, values)
        lengths[moving] = far = np.sqrt((along**2 * sizes).sum(axis=1))
        shorter = np.minimum(1.0, _MAX_NEWTON_LENGTH / np.maximum(far, _SETTLED))
        points[moving] -= np.einsum("nij,nj->ni", vectors, along) * shorter[:, None]
    # Many strings lead to the same point.
    return np.unique(points[lengths <= _SETTLED].round(9), axis=0)


def _centres_reached(density: MixtureDensity, points: FloatArray) -> IntArray:
    """Index of the centre nearest to the end of the flow from each point."""
    ends = climb(density, points, polish=False)
    return np.argmin(((ends[:, None] - density.means) ** 2).sum(axis=2), axis=1)

"""Noisy steps of k-means and of mixtures, from standardised rows to clusters with covariances.

Proof: doc/theory/private_mixtures.md, "Starts, numbers of steps, kinds of covariances".
Proof: doc/theory/private_mixtures.md, "The noise in what comes out".
Proof: doc/theory/private_mixtures.md, "What is public".
"""

import math
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from sklearn_dptda._typing import BoolArray, CovarianceType, FloatArray, IntArray
from sklearn_dptda.cluster._mixture_density import DensityByRows, MixtureDensity
from sklearn_dptda.cluster._standardise import Standardised, largest_norm
from sklearn_dptda.rows._assignments import (
    CellOf,
    Cells,
    euclidean,
    in_norm,
    nearest_to,
    row_products,
)
from sklearn_dptda.rows._moments import KEPT, FitBudget, Moments, MomentWeights
from sklearn_dptda.utils._distances import farthest_first


@dataclass(frozen=True)
class _StepRules:
    """Public constants of the steps, chosen together on the tables of doc/measured/clusters.md.

    Accuracy only: rows are clipped to any radius, and noise has the scale of any weights.
    Radii are in root mean square radii of the standardised rows.
    """

    # Radius at which residuals are clipped. It is smaller if many cells share a volume; the second
    # number is for this case.
    residual_radius: float = 0.7
    cell_radius: float = 1.3
    # Mean number of rows of a cluster, in standard deviations of the noise of a count in one of
    # eight steps, from which more steps are worth their noise: six in place of four, then eight.
    rows_of_more_steps: tuple[float, float] = (5.0, 10.0)
    # Largest numbers of columns and of centres with which counts of a lattice take the place of the
    # first one of two or three steps: k-means of a lattice finds a bad minimum for more centres.
    # Half width of the lattice, in standard deviations of its axes, and most cells.
    lattice_columns: int = 2
    lattice_centres: int = 20
    lattice_half_width: float = 2.2
    lattice_cells: int = 4096
    # Mean count of a cell, and its least count, in standard deviations of the noise of a count.
    mean_count: float = 5.0
    least_count: float = 3.0
    # Least and largest number of cells for each centre, and largest number of cells if the number
    # of clusters is to be estimated.
    fewest_cells: int = 2
    most_cells: int = 6
    most_cells_to_count: int = 512
    # Rows of a component in two columns, in standard deviations of the noise of a count in one of
    # eight steps, and largest number of components that are to be merged into fewer clusters. In
    # ``d`` columns, they have ``d**2 / 4`` times as many rows, because shapes have more to be told.
    rows_of_component: float = 9.0
    # Least rows of a component, for each cubed number of columns, whatever the noise is. In many
    # columns, more components split what is one cluster.
    rows_without_noise: float = 2.0
    most_components: int = 32
    # Number of additional centres if clusters were counted and are to be merged.
    spare: int = 4
    # The number of clusters of cells is clear if a length of Ward's linkage is this many times the
    # next one. In uniform, normal and heavy-tailed tables, and along curves, lengths from the ninth
    # on were hardly more than 1.5 times the next ones.
    clear_ratio: float = 1.6
    # The same for the cells alone that have so many rows, in standard deviations of the noise of a
    # count, that their places are precise. There are fewer of them, so ratios vary more.
    precise_count: float = 10.0
    clear_ratio_of_precise: float = 2.0
    # Largest number of clusters that may be found: as a share of the cells, and in total.
    clustered_share: float = 0.9
    most_found: int = 128
    # Least eigenvalues of covariances, as a share of the mean pooled variance. The first number is
    # for components that are to be merged. Otherwise the least eigenvalue is what the noise allows
    # times the third number, between the second number and the first one.
    floor: float = 0.02
    least_floor: float = 0.005
    part_of_noise: float = 0.1
    # Number of rows, times the privacy parameter, for each column of each component: this many
    # times the square of the number of mixture steps that they allow for.
    rows_of_steps: float = 4.0
    most_steps: int = 20
    # Number of mixture steps for components that are to be merged, which need no shapes of their
    # own.
    merged_steps: int = 2
    # Covariances become tied if less than this share of their differences is not noise.
    differing: float = 0.5
    # Share of the k-means steps: 9/19 of what standardising leaves. Mixture steps have the rest.
    kmeans_share: float = 0.45 / 0.95


RULES = _StepRules()
# Accuracy only: as those of :class:`_StepRules`.
# Largest number of coordinates of all candidates for points far apart, which is enough if there are
# many columns.
_CANDIDATE_NUMBERS = 1 << 20
# Number of centres if it is not given, unless more clusters than this are clear.
USUAL_CENTRES = 8
# Under replace-one adjacency, a count that weighs as much as the sum costs nothing more.
KMEANS_WEIGHTS = {"add-remove": MomentWeights(0.3, 0.7), "replace-one": MomentWeights(0.5, 0.5)}
_MIXTURE_WEIGHTS = MomentWeights(0.1, 0.3, 0.6)
# Weights of counts alone, because rows of a lattice are not clipped.
# Proof: doc/theory/private_mixtures.md, "Starts, numbers of steps, kinds of covariances".
_COUNT_WEIGHTS = MomentWeights(1.0)


def split_light(
    centres: FloatArray, moments: Moments, spread: float, rng: np.random.Generator
) -> FloatArray:
    """Move the centres of light clusters next to the heaviest ones, by noisy counts alone.

    They move by ``spread``, in directions that ``rng`` draws independently of the records.
    """
    centres, counts = centres.copy(), np.maximum(moments.counts, 0.0)
    light = max(3 * moments.sd_count, 0.02 * counts.sum() / len(counts))
    for cell in np.flatnonzero(moments.counts < light):
        heavy = int(np.argmax(counts))
        direction = rng.standard_normal(centres.shape[1])
        direction *= spread / float(np.linalg.norm(direction))
        centres[cell] = centres[heavy] + direction
        centres[heavy] = centres[heavy] - direction
        counts[heavy] /= 2
        counts[cell] = counts[heavy]
    return centres


def packed_points(n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
    """Points far apart in the unit ball, without looking at data, by farthest-first traversal."""
    n_candidates = max(2000, 10 * n, min(100 * n, _CANDIDATE_NUMBERS // n_features))
    candidates = rng.standard_normal((n_candidates, n_features))
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    candidates *= rng.uniform(size=(len(candidates), 1)) ** (1 / n_features)
    return candidates[far_apart(candidates, n)]


def far_apart(points: FloatArray, n: int) -> IntArray:
    """Indices of ``n`` points: the first one, then always the point farthest from those before."""
    # Points are public or have been released, so the rounding of a matrix product reveals nothing.
    squares = (points**2).sum(axis=1)
    return farthest_first(lambda i: squares + (squares[i] - 2 * (points @ points[i])), n)[0]


def initial_centres(data: Standardised, n: int, rng: np.random.Generator) -> FloatArray:
    """Centres far apart in the ball of twice the size of the private ellipsoid of the records."""
    return data.n_features**0.5 * packed_points(n, data.n_features, rng) @ data.axes.T


@dataclass(frozen=True)
class NoisyClusters:
    """Centres and numbers of rows, and standard deviations of the noise in both.

    The noise is that of one release, given all releases before it, to first order. It is relative
    to numbers of rows, and does not include shrinkage.
    """

    centres: FloatArray
    counts: FloatArray
    sd_centres: FloatArray
    sd_counts: FloatArray

    @property
    def weights(self) -> FloatArray:
        """Shares of the rows."""
        return self.counts / self.counts.sum()

    @property
    def sd_weights(self) -> FloatArray:
        """Standard deviations of the noise in the shares: counts over a sum with the same noise."""
        variances, weights = self.sd_counts**2, self.weights
        total = variances * (1 - 2 * weights) + weights**2 * variances.sum()
        return np.sqrt(total) / self.counts.sum()

    @property
    def within_noise(self) -> BoolArray:
        """Whether each cluster has no more rows than noise can produce."""
        return self.counts <= KEPT * self.sd_counts


@dataclass(frozen=True)
class NoisyStep:
    """Moments of cells about some centres, in units of one radius or of one for each cell."""

    centres: FloatArray
    radius: float | FloatArray
    moments: Moments

    @property
    def means(self) -> FloatArray:
        """Means of the cells, moved to where records can be."""
        means = self.centres + self.radius * self.moments.shrunk_steps()
        limit = largest_norm(means.shape[1])
        return means / np.maximum(euclidean(means) / limit, 1.0)[:, None]

    def clusters(self) -> NoisyClusters:
        """Each cell as a cluster."""
        everything = np.arange(len(self.centres))
        return self.pooled(everything, everything, self.means)

    def pooled(
        self,
        cells: IntArray,
        labels: IntArray,
        means: FloatArray,
        sd_counts: FloatArray | None = None,
    ) -> NoisyClusters:
        """Clusters of some cells, by their labels, about the means of their rows.

        A row that noise creates in a cell pulls a mean to the centre of this cell. ``sd_counts``,
        of all cells, default to those of the release.
        """
        k, d = means.shape
        if sd_counts is None:
            sd_counts = np.full(len(self.centres), self.moments.sd_count)
        radii = np.broadcast_to(self.radius, (len(self.centres), 1))[cells]
        pulls = sd_counts[cells, None] * (self.centres[cells] - means[labels])
        variances = np.zeros((k, d))
        np.add.at(variances, labels, pulls**2 + (radii * self.moments.sd_sum) ** 2)
        noisy = self.moments.floored_counts[cells]
        counts: FloatArray = np.bincount(labels, noisy, minlength=k).astype(float)
        return NoisyClusters(
            means,
            counts,
            np.sqrt(variances) / counts[:, None],
            np.sqrt(np.bincount(labels, sd_counts[cells] ** 2, minlength=k)),
        )


def residual_radius(data: Standardised, n_cells: int) -> float:
    """Radius at which residuals are clipped, in the norm of the budget; less for more cells."""
    d = data.n_features
    radius = d**0.5 * min(RULES.residual_radius, RULES.cell_radius * n_cells ** (-1 / d))
    return float(in_norm(radius, d, data.budget.norm))


def kmeans_steps(
    data: Standardised,
    centres: FloatArray,
    n_steps: int,
    *,
    share: float,
    rng: np.random.Generator,
    finer: float = 1.0,
) -> NoisyStep:
    """Move centres to the private means of their records, and return the last step.

    ``share`` is that of all steps together. ``rng`` draws the places of centres that lose their
    records, and ``finer`` brings these nearer to heavy centres.
    """
    budget = data.budget
    spread = 0.5 * RULES.residual_radius * data.n_features**0.5 * finer
    for step in range(n_steps):
        # The first radius is wide, since centres may be far from their records.
        radius = residual_radius(data, len(centres)) * (2.0 if step == 0 else 1.0)
        moments = budget.release(
            data.rows_beside(centres),
            Cells(centres, radius, budget.norm, nearest_to(centres, data.limit)),
            len(centres),
            weights=KMEANS_WEIGHTS[budget.adjacency],
            share=share / n_steps,
        )
        last = NoisyStep(centres, radius, moments)
        centres = last.means
        if step < n_steps - 1:
            centres = split_light(centres, moments, spread, rng)
    return last


def moved_centres(
    data: Standardised,
    n: int | None,
    n_steps: int,
    *,
    share: float,
    rng: np.random.Generator,
    merged: bool = False,
) -> NoisyStep:
    """Centres after a number of k-means steps: the last step.

    Half of the steps (none of a single one), with half of the budget, move cells, whose clusters
    are the initial centres of the others. ``n=None`` estimates the number of centres from the
    cells. Counts of a lattice take the place of a single first step for few centres in a plane.
    Centres to be ``merged`` start on both sides along the principal axes if there are enough
    axes, since components in the tails, which merging cuts off, come from there.
    """
    n_first, first = n_steps // 2, share / 2
    if n and n_first == 1 and _on_lattice(data, n):
        centres = _weighted_kmeans(*_lattice_counts(data, n, first), n)
        return kmeans_steps(data, centres, n_steps - 1, share=share - first, rng=rng)
    at_least = n or USUAL_CENTRES
    along_axes = merged and at_least <= 2 * data.n_features
    initial = partial(_both_sides, data) if along_axes else partial(initial_centres, data, rng=rng)
    fewest = RULES.fewest_cells * at_least
    n_cells = data.n_rows / (
        RULES.mean_count * _noise_of_count(data.budget, first / max(n_first, 1))
    )
    if n_first == 0 or (along_axes and (n or n_cells < fewest)):
        return kmeans_steps(data, initial(at_least), n_steps, share=share, rng=rng)
    most = RULES.most_cells * n if n else RULES.most_cells_to_count
    n_cells = int(np.clip(n_cells, fewest, most))
    cells = initial_centres(data, n_cells, rng)
    finer = n_cells ** (-1 / data.n_features)
    step = kmeans_steps(data, cells, n_first, share=first, rng=rng, finer=finer)
    cells, moments = step.means, step.moments
    kept = np.flatnonzero(moments.counts > RULES.least_count * moments.sd_count)
    if len(kept) < at_least:
        kept = np.argsort(-moments.counts)[:at_least]
    cells, weights = cells[kept], np.maximum(moments.counts[kept], 1.0)
    precise = cells[weights > RULES.precise_count * moments.sd_count]
    found = n or clear_clusters(cells)
    found = found or clear_clusters(precise, RULES.clear_ratio_of_precise)
    if found is None and along_axes:
        centres = initial(USUAL_CENTRES)
    else:
        spare = RULES.spare if merged else 0
        n = n or (USUAL_CENTRES if found is None else min(found + spare, len(cells)))
        centres = _weighted_kmeans(cells, weights, n)
    return kmeans_steps(data, centres, n_steps - n_first, share=share - first, rng=rng)


def _weighted_kmeans(points: FloatArray, weights: FloatArray, n: int) -> FloatArray:
    """Centres of k-means of released points."""
    # More starts find better centres of noisy counts, but not of the rows.
    kmeans = KMeans(n, n_init=5, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # Cells of a constant column coincide, and the steps move the centres of empty clusters.
        centres: FloatArray = kmeans.fit(points, sample_weight=weights).cluster_centers_
    return centres


def _lattice_counts(data: Standardised, n: int, share: float) -> tuple[FloatArray, FloatArray]:
    """Points of a lattice along the principal axes, and what noise leaves of their counts.

    On average, a cell has as many rows as its noise has standard deviations.
    """
    d, budget = data.n_features, data.budget
    lengths = np.linalg.norm(data.axes, axis=0)
    directions, half = data.axes / lengths, RULES.lattice_half_width * lengths
    declared = _COUNT_WEIGHTS.sensitivity(budget.adjacency, budget.norm)
    noise = max(budget.deviation(budget.scale(declared, share)), 0.2)
    n_cells = max(min(data.n_rows / noise, RULES.lattice_cells), 2 * n)
    side = (np.prod(2 * half) / n_cells) ** (1 / d)
    sizes = np.maximum(np.rint(2 * half / side), 2).astype(int)
    middles = [
        side * (np.arange(size) + 0.5) / size - side / 2
        for side, size in zip(2 * half, sizes, strict=True)
    ]
    points = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, d) @ directions.T
    moments = budget.release(
        data.rows_beside(points),
        partial(_lattice_cells, directions=directions, half=half, sizes=sizes),
        len(points),
        weights=_COUNT_WEIGHTS,
        share=share,
    )
    weights = np.maximum(moments.counts - moments.sd_count, 0.0)
    if np.count_nonzero(weights) < n:
        weights = np.maximum(moments.counts, 1.0)
    return points, weights


def _lattice_cells(
    part: FloatArray, directions: FloatArray, half: FloatArray, sizes: IntArray
) -> tuple[IntArray, FloatArray]:
    """Cells of rows; those at the ends also contain what lies outside. Residuals are not used."""
    coordinates = row_products(part, directions.T[:, None]).T
    places = np.floor((coordinates + half) * (sizes / (2 * half)))
    cells = np.clip(places, 0, sizes - 1).astype(np.intp)
    return np.ravel_multi_index(tuple(cells.T), tuple(sizes)), part


def worthwhile_components(data: Standardised, share: float) -> int:
    """Number of components to be merged that there are rows enough for."""
    rows = data.n_rows / _noise_of_count(data.budget, share / 8)
    each = RULES.rows_of_component * data.n_features**2 / 4
    without_noise = data.n_rows / (RULES.rows_without_noise * data.n_features**3)
    return int(min(rows / each, without_noise, RULES.most_components))


def worthwhile_steps(data: Standardised, n: int | None, share: float) -> int:
    """Number of steps for ``n`` centres. More steps have more noise in each of them."""
    rows = data.n_rows / (n or USUAL_CENTRES) / _noise_of_count(data.budget, share / 8)
    n_steps = 4 + 2 * sum(rows >= least for least in RULES.rows_of_more_steps)
    few = rows < RULES.rows_of_more_steps[-1]
    return 3 if n and few and _on_lattice(data, n) else n_steps


def _on_lattice(data: Standardised, n: int) -> bool:
    """Whether counts of a lattice find the initial places of ``n`` centres."""
    return data.n_features <= RULES.lattice_columns and n <= RULES.lattice_centres


def _noise_of_count(budget: FitBudget, share: float) -> float:
    """Standard deviation of a count of a k-means step, at least that of one row in five."""
    weights = KMEANS_WEIGHTS[budget.adjacency]
    declared = weights.sensitivity(budget.adjacency, budget.norm)
    return max(budget.deviation(budget.scale(declared, share)) / weights.roots[0], 0.2)


def clear_clusters(cells: FloatArray, least_ratio: float = RULES.clear_ratio) -> int | None:
    """Number of clusters of cells, if it is clear and exceeds the usual one.

    It is at the largest ratio of successive lengths in Ward's linkage.
    """
    most = min(int(RULES.clustered_share * len(cells)), RULES.most_found)
    if most <= USUAL_CENTRES:
        return None
    lengths = linkage(cells, "ward")[::-1, 2][USUAL_CENTRES - 1 : most]
    ratios = lengths[:-1] / np.maximum(lengths[1:], np.finfo(float).tiny)
    # The first of these lengths joins one cluster more than the usual number.
    number = USUAL_CENTRES + 1 + int(ratios.argmax())
    return number if ratios.max() >= least_ratio else None


def _both_sides(data: Standardised, n: int) -> FloatArray:
    """Centres on both sides along the longest axes, as far out as a row is in all columns."""
    axes = data.n_features**0.5 * data.axes.T[::-1]
    return np.stack([axes, -axes], axis=1).reshape(-1, data.n_features)[:n]


@dataclass(frozen=True)
class MixtureStep(NoisyStep):
    """A step whose second moments become covariances, with eigenvalues above a floor."""

    floor: float

    def parameters(self) -> tuple[FloatArray, FloatArray, float]:
        """Means, full covariances, and the share of the differences of these that is not noise."""
        steps = self.moments.shrunk_steps()
        covariances, differing = self.moments.shrunk_covariances(steps, self.floor)
        return self.means, self.radius**2 * covariances, differing

    def components(self) -> tuple[NoisyClusters, FloatArray]:
        """Clusters and full covariances, without those that are hardly above the noise."""
        kept = np.flatnonzero(self.moments.above_noise)
        means, covariances, _ = self.parameters()
        return self.pooled(kept, np.arange(len(kept)), means[kept]), covariances[kept]

    def redrawn(self, rng: np.random.Generator) -> "MixtureStep":
        """The same step after as much noise has been added once more."""
        return replace(self, moments=self.moments.redrawn(rng))


def mixture_steps(
    data: Standardised,
    centres: FloatArray,
    n_steps: int,
    *,
    share: float,
    kind: CovarianceType | Literal["auto"] = "full",
    floor: float = RULES.floor,
) -> MixtureStep:
    """Fit components with covariances, starting from the partition of nearest centres.

    ``share`` is that of all steps together, and half of it is for the last one, which is returned.
    With ``kind="auto"``, covariances are full until their differences are found to be noise, and
    then tied.
    """
    radius = residual_radius(data, len(centres))
    cell_of: CellOf = nearest_to(centres, data.limit)
    now: CovarianceType = "full" if kind == "auto" else kind
    known = data.rows.known
    if known is not None and kind == "spherical":
        known = np.full_like(known, known.mean())

    def step(step_share: float) -> MixtureStep:
        moments = data.budget.release(
            data.rows_beside(centres),
            Cells(centres, radius, data.budget.norm, cell_of),
            len(centres),
            weights=_MIXTURE_WEIGHTS,
            share=step_share,
            kind=now,
        )
        complete = moments.of_known(known)
        # Sums are exact at the centres of the known values, to which all steps together lead.
        moments = replace(complete, sums=moments.sums, sd_sum=moments.sd_sum)
        return MixtureStep(centres, radius, moments, floor)

    for _ in range(n_steps - 1):
        made = step(share / 2 / (n_steps - 1))
        centres, covariances, differing = made.parameters()
        density = MixtureDensity(made.moments.floored_counts, centres, covariances)
        cell_of = DensityByRows(density, data.limit).likeliest
        if kind == "auto" and differing < RULES.differing:
            now = "tied"
    return step(share if n_steps == 1 else share / 2)


def steps_and_floor(data: Standardised, n_components: int, share: float) -> tuple[int, float]:
    """Number of mixture steps, and least eigenvalues, that private numbers of rows allow for.

    Overlapping components need many steps and thin covariances; noise requires the opposite.
    """
    d, budget = data.n_features, data.budget
    rows = budget.total * data.n_rows / (n_components * d)
    allowed = math.sqrt(min(rows, 1e6) / RULES.rows_of_steps)
    n_steps = 1 + int(np.clip(allowed, 1, RULES.most_steps - 1))
    declared = _MIXTURE_WEIGHTS.sensitivity(budget.adjacency, budget.norm)
    sd = budget.deviation(budget.scale(declared, share / 2)) / _MIXTURE_WEIGHTS.roots[2]
    # The noise of a covariance, as a share of the variance of rows that are spread over a cell.
    noise = 4 * d**1.5 * sd * n_components / max(data.n_rows, 1.0)
    return n_steps, float(np.clip(RULES.part_of_noise * noise, RULES.least_floor, RULES.floor))

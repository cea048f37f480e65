"""Transition points between the centres of a mixture, by quadratic strings.

Algorithm 3 of J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private clustering
through dynamical processing", a variant of the search of D. Lee, J. Lee, Y.-G. Yoon, "A quadratic
string adapted barrier exploring method for locating transition states", Computer Physics
Communications 177, 2007. The notes of ``morse_linkage`` list what the paper leaves open.

Proof: doc/theory/private_mixtures.md, "The published flow".
"""

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.cluster._barriers import Edge, spanning_tree
from sklearn_dptda.cluster._mixture_density import MixtureDensity, climb

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


class CentreGraph:
    """Centres, the densest first, and the lowest transition point found between each two of them.

    The attributes are those of ``BarrierGraph``; ``modes`` are the centres. Between centres without
    a transition point, ``heights`` are infinite and ``places`` are missing.
    """

    def __init__(self, density: MixtureDensity) -> None:
        self.n_known = n = density.n_components
        heights = density.height(density.means)
        order = np.argsort(heights, kind="stable")
        self.owners, self.modes = np.argsort(order), density.means[order]
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

"""Barriers between the modes of a mixture density.

The barrier between two modes is the least height that a path between them must climb. It is the
height of a saddle of index one whose two descents end at the two modes. The top of the ridgeline
between two components is an upper bound of it.

S. Ray, B. Lindsay, "The topography of multivariate normal mixtures", Annals of Statistics 33, 2005.

W. E, W. Ren, E. Vanden-Eijnden, "Simplified and improved string method for computing the minimum
energy paths in barrier-crossing events", Journal of Chemical Physics 126, 2007.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Protocol

import numpy as np
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.cluster._mixture_density import MixtureDensity, climb, nearest_mode, polished

# Indices of two modes, the smaller one first.
Edge = tuple[int, int]

# Accuracy only: all that these constants are applied to has been released.
# Number of points on a ridgeline, and number of points of all ridgelines that are computed
# together, which bounds memory.
_N_RIDGE_POINTS, _BATCH_POINTS = 48, 1 << 16
# Number of times that the surroundings of the top of a ridgeline are sampled again with as many
# points, to the last digits of a float, when a saddle is compared to it.
_N_ZOOMS = 5
# Relative error of the top of a ridgeline by rounding.
_ROUNDING = 1e-9
# Number of images on a string between two modes; number of rounds in which they slide; and the part
# of a mean-shift step by which they move in one round, so that they remain in order.
_N_IMAGES, _N_ROUNDS, _STRING_STEP = 17, 10, 0.5
# Number of points between two others that are labelled together; the distance, as a share of the
# ridgeline's length, at which two points are close enough; and the multiple of it at which they are
# brought together again, since sliding drives them apart.
_N_BETWEEN, _CLOSE, _APART = 8, 1e-7, 1e3
# Largest number of steps of a walk to a saddle.
_MAX_WALK_STEPS = 100
# Number of rounds in which two points slide towards a saddle, and number of steps in one round.
_N_SLIDE_ROUNDS, _N_SLIDE_STEPS = 60, 20
# Largest number of slides along one ridgeline. Steps of mean shift leap over the basins of very
# narrow components, so that new basins turn up again and again.
_MAX_SLIDES = 20
# Largest number of modes that no centre climbs to, for each mode that a centre climbs to.
_MAX_HIDDEN = 4


def ridgeline_barriers(
    density: MixtureDensity, n_zooms: int = 0
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Pairs of components, and height and place of the highest point of the ridgeline between them.

    The height bounds the barrier in the whole mixture from above. It is that of the highest of 48
    points, around which the ridgeline is sampled again ``n_zooms`` times; without zooms, it is
    slightly too low.
    """
    pairs = np.column_stack(np.triu_indices(density.n_components, 1))
    size = _BATCH_POINTS // _N_RIDGE_POINTS
    parts = [_tops(density, pairs[i : i + size], n_zooms) for i in range(0, len(pairs), size)]
    if not parts:
        return pairs, np.empty(0), np.empty((0, density.n_features))
    heights, places = zip(*parts, strict=True)
    return pairs, np.concatenate(heights), np.concatenate(places)


def _tops(density: MixtureDensity, pairs: IntArray, n_zooms: int) -> tuple[FloatArray, FloatArray]:
    """Height and place of the highest point of each ridgeline, found by zooming in."""
    ridgelines = _Ridgelines(density, pairs)
    rows = np.arange(len(pairs))
    low, high = np.zeros(len(pairs)), np.ones(len(pairs))
    for _ in range(1 + n_zooms):
        times = np.linspace(low, high, _N_RIDGE_POINTS, axis=1)
        points = ridgelines.points(times)
        heights = density.height(points.reshape(-1, density.n_features)).reshape(times.shape)
        top = heights.argmax(axis=1)
        low = times[rows, np.maximum(top - 1, 0)]
        high = times[rows, np.minimum(top + 1, _N_RIDGE_POINTS - 1)]
    return heights[rows, top], points[rows, top]


class _Ridgelines:
    """Ridgelines between pairs of components.

    A point of a ridgeline solves a linear system with a weighted mean of the two precisions. In a
    basis in which both precisions are diagonal, this is one division for each coordinate.
    """

    def __init__(self, density: MixtureDensity, pairs: IntArray) -> None:
        # Even steps of the weights would crowd near the narrower component.
        _, logs = np.linalg.slogdet(density.precisions)
        self._scales = np.exp((logs - logs.max()) / density.n_features)[pairs].T[..., None]
        # With F^T F the first precision, L L^T the second covariance and F L = U S V^T, the basis
        # L V turns the first precision into S^2 and the second one into the identity.
        lower = np.linalg.cholesky(density.covariances)[pairs[:, 1]]
        factors = density.factors[pairs[:, 0]]
        left, roots, vectors = np.linalg.svd(factors @ lower)
        self._values, self._basis = roots[:, None] ** 2, vectors @ lower.swapaxes(1, 2)
        # Coordinates from the second centre, so that large coordinates do not cancel.
        start, self._origin = density.means[pairs.T]
        step = factors @ (start - self._origin)[..., None]
        self._pulls = roots[:, None] * (step.swapaxes(1, 2) @ left)

    def points(self, times: FloatArray) -> FloatArray:
        """Points from the centre of one component at time 0 to the other's at 1."""
        wide, narrow = times * self._scales[0], (1 - times) * self._scales[1]
        t = (wide / (wide + narrow))[..., None]
        offsets = (1 - t) * self._pulls / ((1 - t) * self._values + t)
        return self._origin[:, None] + offsets @ self._basis


def spanning_tree(weights: FloatArray) -> list[Edge]:
    """Edges of a minimum spanning tree of the weights above the diagonal, which are positive."""
    tree = minimum_spanning_tree(np.triu(weights, 1)).tocoo()
    return sorted((int(i), int(j)) for i, j in zip(tree.row, tree.col, strict=True))


class Barriers(Protocol):
    """Modes of a density, and the lowest known barrier between each two of them.

    The first ``n_known`` modes are those that centres climb to, and ``owners`` has the mode of each
    component. ``heights`` has the heights of the modes on its diagonal, and is infinite where no
    barrier is known. ``places`` has the point of each known barrier.
    """

    modes: FloatArray
    owners: IntArray
    n_known: int
    heights: FloatArray
    places: dict[Edge, FloatArray]

    def edges(self) -> list[Edge]:
        """Edges of the minimum spanning tree of the barriers."""


class BarrierGraph:
    """Barriers, of which the first are the tops of ridgelines.

    Modes that no centre climbs to are added when they are met. ``settled`` barriers are saddles, or
    remain as they are.
    """

    def __init__(self, density: MixtureDensity, modes: FloatArray, owners: IntArray) -> None:
        self.density, self.modes, self.owners = density, np.array(modes), owners
        self.n_known = n = len(modes)
        self.heights = np.full((n, n), np.inf)
        np.fill_diagonal(self.heights, density.height(self.modes))
        self.places: dict[Edge, FloatArray] = {}
        self.settled: set[Edge] = set()
        # The two components whose ridgeline bounds a barrier, and the barriers that are known to
        # the last digit.
        self._components: dict[Edge, IntArray] = {}
        self._sharp: set[Edge] = set()
        for pair, top, point in zip(*ridgeline_barriers(density), strict=True):
            edge = _edge(owners[pair])
            if edge[0] != edge[1] and top < self.heights[edge]:
                self._set(edge, top, point)
                self._components[edge] = pair

    def _set(self, edge: Edge, height: float, place: FloatArray) -> None:
        self.heights[edge] = self.heights[edge[::-1]] = height
        self.places[edge] = place

    def edges(self) -> list[Edge]:
        """Edges of the minimum spanning tree of the barriers."""
        # SciPy treats zero, and numbers close to it, as a missing edge. All heights are therefore
        # shifted above it.
        return spanning_tree(self.heights - self.heights.min() + 1.0)

    def add_saddle(self, start: FloatArray, ceiling: float = np.inf) -> Edge | None:
        """Search for a saddle from a point, and enter it between the modes of its two descents.

        Returns these two modes, or None if there is no saddle below ``ceiling``, or if both
        descents end at the same mode.
        """
        return self._add_saddles(start[None], ceiling)[0]

    def _add_saddles(self, starts: FloatArray, ceiling: float = np.inf) -> list[Edge | None]:
        """Search for a saddle from each point; all saddles and descents are computed together."""
        found, saddles, directions = _find_saddles(self.density, starts)
        heights = self.density.height(saddles)
        found[found] = heights[found] <= ceiling + _slack(heights[found])
        ends = saddles[found, None] + np.array([[1e-3], [-1e-3]]) * directions[found, None]
        labels = self._modes_of(ends.reshape(-1, ends.shape[2])).reshape(-1, 2)
        edges: list[Edge | None] = [None] * len(starts)
        for i, (low, high) in zip(np.flatnonzero(found), np.sort(labels).tolist(), strict=True):
            edges[i] = (low, high) if 0 <= low < high else None
        # Sampled tops are a little too low.
        above = zip(edges, heights, strict=True)
        self._sharpen(edge for edge, height in above if edge and height > self.heights[edge])
        for edge, height, saddle in zip(edges, heights, saddles, strict=True):
            if edge is not None:
                self._settle(edge, height, saddle)
        return edges

    def _settle(self, edge: Edge, height: float, saddle: FloatArray) -> None:
        """Settle the barrier between two modes at a saddle, unless a lower one is known."""
        if height <= self.heights[edge] + (0.0 if edge in self.settled else _slack(height)):
            self._set(edge, height, saddle)
            self.settled.add(edge)

    def _sharpen(self, edges: Iterable[Edge]) -> None:
        """Compute tops of ridgelines to the last digits, before saddles are compared to them."""
        dull = sorted({*edges} & {*self._components} - self.settled - self._sharp)
        self._sharp.update(dull)
        if dull:
            pairs = np.array([self._components[edge] for edge in dull])
            for edge, *top in zip(dull, *_tops(self.density, pairs, _N_ZOOMS), strict=True):
                self._set(edge, *top)

    def _modes_of(self, points: FloatArray) -> IntArray:
        """Index of the mode that each point climbs to, possibly a new one, or -1 if none."""
        labels = np.full(len(points), -1)
        for row, end in enumerate(climb(self.density, points, polish=False)):
            labels[row] = nearest_mode(self.density, end, self.modes)
            if labels[row] < 0:
                labels[row] = self._enter(polished(self.density, end))
        return labels

    def _enter(self, point: FloatArray) -> int:
        """Index of the mode at a polished point, which may be a new one, or -1."""
        index = nearest_mode(self.density, point, self.modes)
        n = len(self.modes)
        if index >= 0 or n >= (1 + _MAX_HIDDEN) * self.n_known:
            return index
        slope, curvature = self.density.slope_and_curvature(point)
        if np.linalg.eigvalsh(curvature)[0] <= 0:
            return -1
        if slope @ np.linalg.solve(curvature, slope) > 1e-12:
            return -1
        self.modes = np.vstack([self.modes, point])
        self.heights = np.pad(self.heights, (0, 1), constant_values=np.inf)
        self.heights[n, n] = self.density.height(point[None])[0]
        return n

    def add_tops_of_strings(self, n_neighbours: int | None) -> None:
        """Enter the saddle above the string between two modes, by the string method.

        There are strings from each mode to ``n_neighbours`` others, across the lowest known
        barriers, or to all.
        """
        modes = self.modes
        # Each mode is its own first neighbour.
        ranks = self.heights.argsort(axis=1, kind="stable").argsort(axis=1)
        near = np.minimum(ranks, ranks.T) <= (len(modes) if n_neighbours is None else n_neighbours)
        first, last = np.argwhere(np.triu(near, 1)).T
        for tops in _tops_of_strings(self.density, modes[first], modes[last]):
            self._add_saddles(tops)

    def refine(self) -> None:
        """Replace the tops of ridgelines in the tree by the saddles below them."""
        while edges := [edge for edge in self.edges() if edge not in self.settled]:
            for edge in edges:
                if edge in self.settled:
                    continue
                self._sharpen([edge])
                if self.add_saddle(self.places[edge], self.heights[edge]) == edge:
                    continue
                height = self.heights[edge]
                lower = {e for e in self.settled if self.heights[e] <= height + _slack(height)}
                spared = self._joined(edge, lower) or self._follow(self._components[edge])
                if spared and edge not in self.settled and self._joined(edge, self.places):
                    # There are other modes on the path, and the path through them is no higher.
                    self.heights[edge] = self.heights[edge[::-1]] = np.inf
                    del self.places[edge]
                self.settled.add(edge)

    def _joined(self, edge: Edge, known: Iterable[Edge]) -> bool:
        """Whether two modes are joined by known barriers other than the one between them."""
        others = np.zeros(self.heights.shape, dtype=bool)
        for other in known:
            others[other] = other != edge
        _, groups = connected_components(others, directed=False)
        return bool(groups[edge[0]] == groups[edge[1]])

    def _follow(self, pair: IntArray) -> bool:
        """Enter a saddle for each step of a ridgeline between basins. Tell if all were found."""
        path = _Ridgelines(self.density, pair[None]).points(
            np.linspace(0, 1, _N_RIDGE_POINTS)[None]
        )[0]
        labels = self._modes_of(path)
        close = _CLOSE * float(np.linalg.norm(path[-1] - path[0]))
        slides = count(1)
        return bool((labels >= 0).all()) and all(
            self._slide(path[s : s + 2], labels[s : s + 2], close, slides)
            for s in _last_steps(labels)
            if _edge(labels[s : s + 2]) not in self.settled
        )

    def _slide(
        self, pair: FloatArray, basins: IntArray, close: float, slides: Iterator[int]
    ) -> bool:
        """Slide two points, on the two sides of the ridge between two basins, to its saddle.

        On the ridge itself, mean shift leads to the saddle.
        """
        if next(slides) > _MAX_SLIDES:
            return False
        for _ in range(_N_SLIDE_ROUNDS):
            while np.linalg.norm(pair[1] - pair[0]) > close:
                points = np.linspace(pair[0], pair[1], _N_BETWEEN + 2)
                labels = np.r_[basins[0], self._modes_of(points[1:-1]), basins[1]]
                if (labels < 0).any():
                    # The point is on the boundary itself: its climb has ended at the saddle.
                    between = points[labels < 0][:1]
                    ceiling = self.density.height(between)[0]
                    end = climb(self.density, between)[0]
                    return self.add_saddle(end, ceiling) == _edge(basins)
                step, *more = _last_steps(labels)
                # There are other basins in between, whose other sides are other steps.
                for s in more:
                    if not self._slide(points[s : s + 2], labels[s : s + 2], close, slides):
                        return False
                pair, basins = points[step : step + 2], labels[step : step + 2]
            middle = (pair[0] + pair[1]) / 2
            ceiling = self.density.height(middle[None])[0]
            if self.add_saddle(middle, ceiling) == _edge(basins):
                return True
            for _ in range(_N_SLIDE_STEPS):
                pair = self.density.mean_shift(pair)
                if np.linalg.norm(pair[1] - pair[0]) > _APART * close:
                    break
        return False


def _edge(modes: IntArray) -> Edge:
    i, j = sorted(modes.tolist())
    return i, j


def _slack(height: Any) -> Any:
    """Error of one or several heights by rounding."""
    return _ROUNDING * np.maximum(1.0, np.abs(height))


def _last_steps(labels: IntArray) -> list[int]:
    """Places where a path leaves each basin for the last time."""
    steps, here = [], 0
    while labels[here] != labels[-1]:
        steps.append(int(np.flatnonzero(labels == labels[here])[-1]))
        here = steps[-1] + 1
    return steps


def _find_saddles(
    density: MixtureDensity, starts: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Walk from each start to a saddle of index one by eigenvector following.

    Returns for each walk whether it ended at a saddle, where it ended, and the vector along which
    the height falls to both sides, of length one in units of the curvature.
    """
    points, lengths = np.array(starts, dtype=float), np.full(len(starts), np.inf)
    moving = np.arange(len(points))
    for _ in range(_MAX_WALK_STEPS):
        if len(moving) == 0:
            break
        slopes, curvatures = density.slopes_and_curvatures(points[moving])
        values, vectors = np.linalg.eigh(curvatures)
        sizes = np.abs(values)
        signed = np.maximum(sizes, 1e-12 * sizes.max(axis=1, keepdims=True))
        signed[:, 0] *= -1
        along = (slopes[:, None] @ vectors)[:, 0] / signed
        # Lengths in units of the curvature, which are at most one half per step.
        length = np.sqrt((along**2 * np.abs(signed)).sum(axis=1))
        part = np.minimum(1.0, 0.5 / np.maximum(length, 1e-300))
        points[moving] -= (vectors @ along[..., None])[..., 0] * part[:, None]
        lengths[moving] = length
        moving = moving[length >= 1e-10]
    values, vectors = np.linalg.eigh(density.slopes_and_curvatures(points)[1])
    found = (lengths < 1e-6) & (values[:, 0] < 0) & (values[:, 1:2] > 0).all(axis=1)
    # Elsewhere the curvature may be zero, and the direction is not used.
    return found, points, vectors[:, :, 0] / np.sqrt(np.where(found, -values[:, 0], 1.0))[:, None]


def _tops_of_strings(
    density: MixtureDensity, first: FloatArray, last: FloatArray
) -> Iterator[FloatArray]:
    """Highest images of the strings between each two points that slide towards the lowest path."""
    size = max(1, _BATCH_POINTS // max(_N_IMAGES, density.n_components * density.n_features))
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        images = np.linspace(first[part], last[part], _N_IMAGES, axis=1)
        shape = images[:, 1:-1].shape
        for _ in range(_N_ROUNDS):
            moved = density.mean_shift(images[:, 1:-1].reshape(-1, shape[2])).reshape(shape)
            images[:, 1:-1] += _STRING_STEP * (moved - images[:, 1:-1])
            images = _evenly_spaced(images)
        heights = density.height(images[:, 1:-1].reshape(-1, shape[2])).reshape(shape[:2])
        yield images[np.arange(len(images)), 1 + heights.argmax(axis=1)]


def _evenly_spaced(strings: FloatArray) -> FloatArray:
    """Move the images of each string along its polygon, so that they are equally far apart."""
    n_images, rows = strings.shape[1], np.arange(len(strings))[:, None]
    times = np.zeros(strings.shape[:2])
    np.cumsum(np.linalg.norm(np.diff(strings, axis=1), axis=2), axis=1, out=times[:, 1:])
    even = np.linspace(0.0, times[:, -1], n_images, axis=1)
    after = np.clip((times[:, None] <= even[..., None]).sum(axis=2), 1, n_images - 1)
    start, stop = times[rows, after - 1], times[rows, after]
    parts = (even - start) / np.maximum(stop - start, np.finfo(float).tiny)
    before = strings[rows, after - 1]
    return before + parts[..., None] * (strings[rows, after] - before)

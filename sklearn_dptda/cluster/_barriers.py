"""Ridgelines between the components of a mixture density: paths that bound every barrier."""

import numpy as np
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from sklearn_dptda.cluster._critical_points import climb, find_saddle, nearest_mode, polished

_N_POINTS = 48
# Looked at more closely where the top is: twice among all pairs, and to the last digits of those
# that count.
_N_ZOOMS, _MOST_ZOOMS = 2, 5
# Points of all ridgelines that are looked at together.
_BATCH = 1 << 16


def ridgeline_barriers(density):
    """Pairs of components, and height and place of the highest point of the ridgeline between them.

    The ridgeline contains all critical points of the two components alone; its greatest height
    bounds the barrier in the whole mixture from above, and is always finite: S. Ray, B. Lindsay,
    "The topography of multivariate normal mixtures", Annals of Statistics 33, 2005.
    """
    pairs = np.column_stack(np.triu_indices(density.n_components, 1))
    size = max(1, _BATCH // _N_POINTS)
    parts = [_highest(density, pairs[i : i + size]) for i in range(0, len(pairs), size)]
    if not parts:
        return pairs, np.empty(0), np.empty((0, density.n_features))
    return pairs, *(np.concatenate(column) for column in zip(*parts, strict=True))


def top_of(density, pair):
    """Height and place of the top of the ridgeline of a pair, to the last digits."""
    (height,), (place,) = _highest(density, np.array([pair]), _MOST_ZOOMS)
    return height, place


def ridgeline(density, pair):
    """Points, 48 of them, of the ridgeline from the centre of one component to that of another."""
    return _ridgelines(density, np.array([pair]), np.linspace(0, 1, _N_POINTS)[None])[0]


def _highest(density, pairs, n_zooms=_N_ZOOMS):
    """Height and place of the highest point of each ridgeline, by zooms."""
    rows = np.arange(len(pairs))
    low, high = np.zeros(len(pairs)), np.ones(len(pairs))
    for _ in range(1 + n_zooms):
        times = np.linspace(low, high, _N_POINTS, axis=1)
        points = _ridgelines(density, pairs, times)
        heights = density.height(points.reshape(-1, density.n_features)).reshape(times.shape)
        top = heights.argmax(axis=1)
        low = times[rows, np.maximum(top - 1, 0)]
        high = times[rows, np.minimum(top + 1, _N_POINTS - 1)]
    return heights[rows, top], points[rows, top]


def _ridgelines(density, pairs, times):
    first, second = density.precisions[pairs[:, 0]], density.precisions[pairs[:, 1]]
    # Even steps of the weights would crowd where the narrower component is.
    _, logs = np.linalg.slogdet(density.precisions)
    scales = np.exp((logs - logs.max()) / density.n_features)
    wide, narrow = times * scales[pairs[:, :1]], (1 - times) * scales[pairs[:, 1:]]
    times = wide / (wide + narrow)
    t = times[..., None]
    matrices = (1 - t)[..., None] * first[:, None] + t[..., None] * second[:, None]
    right = (1 - t) * density.pulls[pairs[:, 0]][:, None] + t * density.pulls[pairs[:, 1]][:, None]
    return np.linalg.solve(matrices, right[..., None])[..., 0]


# Barriers between the modes of a mixture density.

# By how much rounding can miss the top of a ridgeline, relative.
_ROUNDING = 1e-9
# Points between two others that are labelled together, until two are as close as this part of
# the path's width; sliding drives them apart, and at this many times it they are brought together
# again.
_N_BETWEEN, _CLOSE, _APART = 8, 1e-7, 1e3
# Rounds of sliding towards a saddle, and steps in one.
_N_SLIDES, _N_STEPS = 60, 20
# Basins on one path: steps of mean shift leap over those of very narrow components.
_MOST_SLIDES = 20
# Modes that no centre climbs to, for each that one does.
_MOST_HIDDEN = 4


class BarrierGraph:
    """Modes of a mixture density, and the lowest known barrier between each two.

    The modes are those that centres climb to, with ``owners`` the mode of each component; others
    are added as they are met: a path can lead by way of them. ``heights`` and ``places`` of
    barriers are at first the tops of ridgelines; ``settled`` says which are saddles of index one
    whose two descents end at these modes, or stand as they are.
    """

    def __init__(self, density, modes, owners):
        self.density = density
        self.n_known = n = len(modes)
        self.modes = np.array(modes)
        self.heights = np.full((n, n), np.inf)
        self.places = np.zeros((n, n, density.n_features))
        self.settled = np.zeros((n, n), dtype=bool)
        self._ridge, self._sharp = {}, set()
        pairs, tops, points = ridgeline_barriers(density)
        for pair, top, point in zip(pairs, tops, points, strict=True):
            i, j = sorted(owners[pair].tolist())
            if i != j and top < self.heights[i, j]:
                self._set(i, j, top, point)
                self._ridge[i, j] = pair
        np.fill_diagonal(self.heights, density.height(self.modes))

    def _sharpen(self, edge):
        """Look at the top of a ridgeline to the last digits, before a saddle is compared to it."""
        if edge in self._ridge and not self.settled[edge] and edge not in self._sharp:
            self._sharp.add(edge)
            self._set(*edge, *top_of(self.density, self._ridge[edge]))

    def _set(self, i, j, height, place):
        self.heights[i, j] = self.heights[j, i] = height
        self.places[i, j] = self.places[j, i] = place

    def add_saddle(self, start, ceiling=np.inf):
        """Search a saddle from a point and enter it between the modes of its two descents.

        Returns these two: the barrier between them is this saddle, or is lower. None if there is
        no saddle below ``ceiling``, or both descents end at the same mode.
        """
        saddle, direction = find_saddle(self.density, start)
        if saddle is None:
            return None
        height = self.density.height(saddle[None])[0]
        slack = _slack(height)
        if height > ceiling + slack:
            return None
        ends = self.modes_of(saddle + np.array([[1e-3], [-1e-3]]) * direction)
        i, j = sorted(ends.tolist())
        if i < 0 or i == j:
            return None
        self._sharpen((i, j))
        if height <= self.heights[i, j] + (0.0 if self.settled[i, j] else slack):
            self._set(i, j, height, saddle)
            self.settled[i, j] = self.settled[j, i] = True
        return i, j

    def modes_of(self, points):
        """Index of the mode that each point climbs to, or -1 for none; new modes are entered."""
        labels = np.full(len(points), -1)
        for row, end in enumerate(climb(self.density, points, polish=False)):
            index = nearest_mode(self.density, end, self.modes)
            labels[row] = self._enter(polished(self.density, end)) if index is None else index
        return labels

    def _enter(self, point):
        index = nearest_mode(self.density, point, self.modes)
        if index is not None:
            return index
        slope, curvature = self.density.slope_and_curvature(point)
        values = np.linalg.eigvalsh(curvature)
        if len(self.modes) >= (1 + _MOST_HIDDEN) * self.n_known or values[0] <= 0:
            return -1
        if slope @ np.linalg.solve(curvature, slope) > 1e-12:
            return -1
        n = len(self.modes)
        self.modes = np.vstack([self.modes, point])
        wider = ((0, 1), (0, 1))
        self.heights = np.pad(self.heights, wider, constant_values=np.inf)
        self.heights[n, n] = self.density.height(point[None])[0]
        self.places = np.pad(self.places, (*wider, (0, 0)))
        self.settled = np.pad(self.settled, wider)
        return n

    def edges(self):
        """Edges of the minimum spanning tree of the barriers, as (smaller, larger) pairs."""
        # Zero means no edge to SciPy, and almost zero too: shift all heights above it.
        shifted = self.heights - self.heights.min() + 1.0
        tree = minimum_spanning_tree(np.triu(shifted, 1)).tocoo()
        return sorted((int(i), int(j)) for i, j in zip(tree.row, tree.col, strict=True))

    def refine(self):
        """Replace the tops of ridgelines in the tree by the saddles beneath them."""
        while edges := [edge for edge in self.edges() if not self.settled[edge]]:
            for edge in edges:
                if self.settled[edge] or self._top(edge) == edge:
                    self.settled[edge] = True
                    continue
                others = self._spared(*edge) or self._follow(self._ridge[edge])
                if others and not self.settled[edge] and self._joined(*edge, np.inf, True):
                    # Other modes are on the way, and what leads by them is no higher.
                    self.heights[edge] = self.heights[edge[::-1]] = np.inf
                self.settled[edge] = self.settled[edge[::-1]] = True

    def _spared(self, i, j):
        """Whether saddles that are no higher join two modes."""
        height = self.heights[i, j]
        return self._joined(i, j, height + _slack(height), self.settled)

    def _joined(self, i, j, height, known):
        """Whether barriers up to a height join two modes, without the one between them."""
        others = known & (self.heights <= height) & np.isfinite(self.heights)
        others[i, j] = others[j, i] = False
        _, groups = connected_components(others, directed=False)
        return groups[i] == groups[j]

    def _top(self, edge):
        self._sharpen(edge)
        return self.add_saddle(self.places[edge], self.heights[edge])

    def _follow(self, pair):
        """Enter a saddle for each step of a ridgeline between basins; whether all were there."""
        path = ridgeline(self.density, pair)
        labels = self.modes_of(path)
        close = _CLOSE * np.linalg.norm(path[-1] - path[0])
        self._slides = _MOST_SLIDES
        return (labels >= 0).all() and all(
            self._slide(path[s], path[s + 1], labels[s], labels[s + 1], close)
            for s in _last_steps(labels)
            if not self.settled[labels[s], labels[s + 1]]
        )

    def _slide(self, first, last, label, other, close):
        """Slide from two points in two basins down the ridge between these, to its saddle.

        On the boundary of two basins mean shift leads to a saddle; two points
        are kept on its two sides.
        """
        self._slides -= 1
        if self._slides < 0:
            return False
        for _ in range(_N_SLIDES):
            while np.linalg.norm(last - first) > close:
                points = np.linspace(first, last, _N_BETWEEN + 2)
                labels = np.r_[label, self.modes_of(points[1:-1]), other]
                if (labels < 0).any():
                    # On the boundary itself: its climb has ended at the saddle.
                    between = points[labels < 0][:1]
                    ceiling = self.density.height(between)[0]
                    end = climb(self.density, between)[0]
                    return self.add_saddle(end, ceiling) == tuple(sorted((label, other)))
                step, *more = _last_steps(labels)
                # Third basins lie between: their other sides are other steps.
                for s in more:
                    if not self._slide(points[s], points[s + 1], labels[s], labels[s + 1], close):
                        return False
                first, last, other = points[step], points[step + 1], labels[step + 1]
            middle = (first + last) / 2
            ceiling = self.density.height(middle[None])[0]
            if self.add_saddle(middle, ceiling) == tuple(sorted((label, other))):
                return True
            pair = np.array([first, last])
            for _ in range(_N_STEPS):
                pair = self.density.mean_shift(pair)
                if np.linalg.norm(pair[1] - pair[0]) > _APART * close:
                    break
            first, last = pair
        return False


def _slack(height):
    return _ROUNDING * max(1.0, abs(height))


def _last_steps(labels):
    """Where a path leaves each basin for the last time."""
    steps, here = [], 0
    while labels[here] != labels[-1]:
        steps.append(int(np.flatnonzero(labels == labels[here])[-1]))
        here = steps[-1] + 1
    return steps


def join(graph):
    """Barriers between the modes that centres climb to, whatever other ones lie between.

    Returns, with n modes: the height of the highest pass of the lowest path between each two, the
    diagonal being heights of modes; the two modes that each of the n - 1 passes joins, the lowest
    pass first; the places of the passes.
    """
    n = graph.n_known
    heights = np.full((n, n), np.inf)
    np.fill_diagonal(heights, np.diag(graph.heights)[:n])
    groups = np.arange(len(graph.modes))
    edges, saddles = [], []
    for i, j in sorted(graph.edges(), key=lambda edge: graph.heights[edge]):
        one, other = groups == groups[i], groups == groups[j]
        sides = [np.flatnonzero(side[:n]) for side in (one, other)]
        if len(sides[0]) and len(sides[1]):
            block = np.ix_(*sides)
            heights[block] = heights.T[block] = graph.heights[i, j]
            # For a mode that no centre climbs to stands the highest one on its side.
            ends = [
                end if end < n else int(side[0]) for end, side in zip((i, j), sides, strict=True)
            ]
            edges.append(sorted(ends))
            saddles.append(graph.places[i, j])
        groups[other] = groups[i]
    return (
        heights,
        np.array(edges, dtype=int).reshape(-1, 2),
        np.array(saddles).reshape(-1, graph.modes.shape[1]),
    )


# Saddles from the tops of strings between modes.

_N_IMAGES, _N_ROUNDS = 17, 10
# Part of a mean-shift step by which images move, and so stay in order.
_STEP = 0.5


def add_tops_of_strings(graph, n_neighbours=None):
    """Enter the saddle above the string between each two modes, by the string method.

    Images on a string between two modes slide downhill and are spaced evenly again; from the
    highest image Newton steps lead to a saddle of index one, and the modes that its two descents
    end at are joined. There are strings from each mode to ``n_neighbours`` others, those across
    the lowest barriers known, or to all.

    W. E, W. Ren, E. Vanden-Eijnden, "Simplified and improved string method", 2007. Quadratic
    strings are others: parabolas between centres.
    """
    modes = graph.modes
    # Each mode is its own first neighbour.
    ranks = graph.heights.argsort(axis=1, kind="stable").argsort(axis=1)
    near = np.minimum(ranks, ranks.T) <= (len(modes) if n_neighbours is None else n_neighbours)
    for i, j in np.argwhere(np.triu(near, 1)):
        graph.add_saddle(_top(graph.density, modes[i], modes[j]))


def _top(density, first, last):
    """Highest image of a string that has slid towards the lowest path."""
    images = np.linspace(first, last, _N_IMAGES)
    for _ in range(_N_ROUNDS):
        images[1:-1] += _STEP * (density.mean_shift(images[1:-1]) - images[1:-1])
        images = _evenly(images)
    return images[1:-1][np.argmax(density.height(images[1:-1]))]


def _evenly(images):
    lengths = np.linalg.norm(np.diff(images, axis=0), axis=1)
    times = np.concatenate([[0.0], np.cumsum(lengths)])
    even = np.linspace(0.0, times[-1], len(images))
    return np.column_stack([np.interp(even, times, column) for column in images.T])

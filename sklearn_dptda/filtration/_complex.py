"""Simplices on public landmarks, the places at which they are measured, and functions on them.

Proof: doc/theory/landmarks.md, "Values of simplices".
Proof: doc/theory/landmarks.md, "Which simplices".
"""

from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import combinations, product
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import comb
from sklearn.utils import check_scalar

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.cluster._private_landmarks import MOST_LANDMARKS, distances_to
from sklearn_dptda.filtration._filtration import Filtration
from sklearn_dptda.utils._clouds import check_cloud
from sklearn_dptda.utils._distances import farthest_first

# Parts of the largest distance of two landmarks that places within simplices are apart, at most, by
# the dimension of the complex; the first number that makes no more than the most places counts.
# Tetrahedra have so many places that with more parts there are too few of them, and voids between
# them.
_PARTS = {1: (16, 12, 8), 2: (16, 12, 8), 3: (6, 5, 4)}
# Places that a complex is cut down to: one second for 4,000 points. Places that all simplices of
# the least stretch may have: where they have more, the last landmarks span none.
_ENOUGH_PLACES, _MOST_PLACES = 2**15, 2**18
# Edges are shorter than these multiples of the distance at which the later of their landmarks was
# the farthest from all before it: the least multiple, and its growth while places are few.
_LEAST_STRETCH, _GROWTH = 2.0, 1.25
# Part of the landmarks that span simplices, where there are too many of these: the step down.
_FEWER = 0.8
# Simplices that are looked at together, against every landmark.
_AT_ONCE = 1 << 12

# Simplices by dimension, and into how many parts the longest edge of each is cut.
Parted: TypeAlias = list[tuple[IntArray, IntArray]]


@dataclass(frozen=True, eq=False)
class LandmarkComplex:
    """Simplices on public landmarks, long ones between a few and short ones between many.

    Landmarks are taken in an order in which each is the farthest from those
    before it, and each is joined to those that are near by the scale at which
    it was added: the first ones across the whole shape, the last ones to their
    neighbours alone. A long simplex is as high as the function is beneath it,
    so that it fills no hole. Where there are too many simplices even so, as in
    many columns, the last landmarks have one edge each, to the nearest of the
    others, and span no simplex.

    Parameters
    ----------
    landmarks : ndarray of shape (n_landmarks, d)
        Public points, in the units of the data.
    dimension : int, default=2
        That of the largest simplices, from 1 to 3: diagrams of dimensions
        below it are those of the function.
    reach : float, default=None
        What is farther than this from all landmarks is not covered by them.
        None: twice the largest gap, which is the distance of a landmark from
        the nearest other one.

    Raises
    ------
    ValueError
        If there are fewer than two landmarks, or more than a thousand, or if
        ``reach`` is no number, or negative.

    Attributes
    ----------
    simplices : list of ndarray of shape (n, q + 1)
        Numbers of the landmarks of each simplex, increasing, by dimension
        ``q``.
    """

    landmarks: FloatArray = field(repr=False)
    dimension: int = 2
    reach: float | None = None
    simplices: list[IntArray] = field(init=False, repr=False)
    # Parts of the diameter that places are apart at most.
    _parts: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        landmarks = check_cloud(self.landmarks, "landmarks").copy()
        landmarks.setflags(write=False)
        object.__setattr__(self, "landmarks", landmarks)
        with np.errstate(over="ignore"):
            squares = np.ptp(landmarks, axis=0) ** 2
        if not np.isfinite(squares).all():
            raise ValueError("landmarks are too far apart: squares of their distances overflow.")
        check_scalar(self.dimension, "dimension", Integral, min_val=1, max_val=3)
        if len(landmarks) > MOST_LANDMARKS:
            raise ValueError(
                f"There are {len(landmarks)} landmarks, more than {MOST_LANDMARKS}: take fewer "
                "landmarks."
            )
        far = self._distances
        if self.reach is None:
            object.__setattr__(self, "reach", 2 * float(np.sort(far, axis=1)[:, 1].max()))
        elif not (isinstance(self.reach, Real) and 0 <= float(self.reach) < np.inf):
            raise ValueError("reach must be a number, 0 or more, or None.")
        object.__setattr__(self, "simplices", self._chosen_simplices())

    def __getstate__(self) -> dict[str, Any]:
        # What follows from the landmarks is computed again where it is asked for.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Pickles of arrays do not keep that they are read-only.
        self.landmarks.setflags(write=False)

    @cached_property
    def _distances(self) -> FloatArray:
        return squareform(pdist(self.landmarks))

    def _chosen_simplices(self) -> list[IntArray]:
        """Simplices of the least stretch, and of as large a one as there are places for."""
        order, stretch = _stretches(self._distances)
        longest, limit = float(stretch[np.isfinite(stretch)].max()), _LEAST_STRETCH
        chosen = self._least_simplices(order, stretch <= limit)
        while _n_places(chosen) <= _ENOUGH_PLACES and limit < longest:
            limit *= _GROWTH
            found = self._flags(stretch <= limit)
            if found is None:
                break
            chosen = _cut(found, stretch)
            if _n_places(chosen) < _n_places(found):
                break
        return [simplices for simplices, _ in chosen]

    def _least_simplices(self, order: IntArray, joined: BoolArray) -> Parted:
        """Simplices whose landmarks are all joined, with fewer places or landmarks if need be."""
        for parts in _PARTS[self.dimension]:
            object.__setattr__(self, "_parts", parts)
            chosen = self._flags(joined)
            if chosen is not None:
                return chosen
        # An edge that is in no triangle makes no loop where it is the only one of its end.
        n = len(order)
        while chosen is None:
            n = int(_FEWER * n)
            first, others = order[:n], order[n:]
            among = np.zeros_like(joined)
            among[np.ix_(first, first)] = joined[np.ix_(first, first)]
            nearest = first[self._distances[np.ix_(others, first)].argmin(axis=1)]
            among[others, nearest] = among[nearest, others] = True
            chosen = self._flags(among)
        return chosen

    def _flags(self, joined: BoolArray) -> Parted | None:
        """Simplices whose landmarks are all joined; None of more than the most places."""
        found = list[tuple[IntArray, IntArray]]()
        simplices: IntArray = np.arange(len(joined), dtype=np.int32)[:, None]
        for q in range(self.dimension + 1):
            if q:
                more = _with_one_more(simplices, joined)
                if more is None:
                    return None
                simplices = more
            found.append((simplices, self._n_parts(simplices)))
            if _n_places(found) > _MOST_PLACES:
                return None
        return found

    def _n_parts(self, simplices: IntArray) -> IntArray:
        """Parts of the longest edge of each simplex, so that places lie dense enough."""
        step = max(self.diameter / self._parts, np.finfo(float).tiny)
        parts = np.ceil(_longest_edges(simplices, self._distances) / step * (1 - 1e-9))
        return np.clip(parts, simplices.shape[1], self._parts).astype(np.int64)

    @property
    def diameter(self) -> float:
        """Largest distance of two landmarks."""
        return float(self._distances.max())

    def beyond(self, points: FloatArray) -> BoolArray:
        """Which points no landmark covers."""
        return distances_to(self.landmarks, points) > float(self.reach or 0.0)

    @property
    def n_simplices(self) -> int:
        """Number of simplices of all dimensions."""
        return sum(map(len, self.simplices))

    @property
    def n_places(self) -> int:
        """Number of places of all simplices."""
        return sum(len(own) * len(weights) for blocks in self._blocks for own, weights in blocks)

    @cached_property
    def _blocks(self) -> list[list[tuple[IntArray, FloatArray]]]:
        """By dimension: simplices with equally many places, and the barycentric coordinates."""

        def block(q: int, parts: IntArray, n: int) -> tuple[IntArray, FloatArray]:
            return np.flatnonzero(parts == n), _inside(q, n)

        of_dimension = enumerate(map(self._n_parts, self.simplices))
        return [[block(q, parts, int(n)) for n in np.unique(parts)] for q, parts in of_dimension]

    def places(self) -> FloatArray:
        """Places of shape (n_places, d) at which a function is measured, by dimension."""
        return self._places

    @cached_property
    def _places(self) -> FloatArray:
        return np.concatenate(
            [
                np.einsum("pk,skd->psd", weights, self.landmarks[simplices[own]]).reshape(
                    -1, self.landmarks.shape[1]
                )
                for blocks, simplices in zip(self._blocks, self.simplices, strict=True)
                for own, weights in blocks
            ]
        )

    def highest(self, at_places: FloatArray) -> FloatArray:
        """Largest value of a function within each closed simplex, by dimension."""
        parts: list[FloatArray] = []
        start = 0
        for q, (blocks, simplices) in enumerate(zip(self._blocks, self.simplices, strict=True)):
            values = np.empty(len(simplices))
            for own, weights in blocks:
                stop = start + len(own) * len(weights)
                values[own] = at_places[start:stop].reshape(len(weights), -1).max(axis=0)
                start = stop
            for left_out in range(q + 1 if q else 0):
                facets = self._ranks(np.delete(simplices, left_out, axis=1))
                values = np.maximum(values, parts[-1][facets])
            parts.append(values)
        return np.concatenate(parts)

    def _ranks(self, simplices: IntArray) -> IntArray:
        """Where simplices stand among all of their dimension, which are in lexicographic order."""
        base = len(self.landmarks) ** np.arange(simplices.shape[1], dtype=np.int64)[::-1]
        return np.searchsorted(self.simplices[simplices.shape[1] - 1] @ base, simplices @ base)


def _stretches(distances: FloatArray) -> tuple[IntArray, FloatArray]:
    """Order of landmarks, and lengths of edges in parts of how far the later landmark was."""
    order, radii = farthest_first(lambda i: distances[i], len(distances))
    # Where only copies are left, the first landmark is the farthest once more.
    scale = np.zeros(len(distances))
    scale[order[::-1]] = radii[::-1]
    scales = np.minimum(scale[:, None], scale)
    stretch = np.full_like(distances, np.inf)
    np.divide(distances, scales, out=stretch, where=scales > 0)
    # Copies of a landmark are joined to it alone, and not to each other.
    stretch[(distances == 0) & (np.maximum(scale[:, None], scale) > 0)] = 0.0
    np.fill_diagonal(stretch, np.inf)
    return order, stretch


def _with_one_more(simplices: IntArray, joined: BoolArray) -> IntArray | None:
    """Simplices with one more landmark, which all theirs are joined to; None if there are many."""
    numbers, n_found = np.arange(len(joined), dtype=np.int32), 0
    found = [np.empty((0, simplices.shape[1] + 1), dtype=np.int32)]
    for start in range(0, len(simplices), _AT_ONCE):
        part = simplices[start : start + _AT_ONCE]
        rows, last = np.nonzero(joined[part].all(axis=1) & (numbers > part[:, -1:]))
        found.append(np.column_stack([part[rows], numbers[last]]))
        n_found += len(rows)
        # Each has a place of its own.
        if n_found > _MOST_PLACES:
            return None
    return np.concatenate(found)


def _longest_edges(simplices: IntArray, lengths: FloatArray) -> FloatArray:
    """Largest of some lengths over the edges of each simplex; none of a vertex."""
    longest = np.zeros(len(simplices))
    for i, j in combinations(range(simplices.shape[1]), 2):
        np.maximum(longest, lengths[simplices[:, i], simplices[:, j]], out=longest)
    return longest


def _n_places(found: Parted) -> int:
    """Number of places of simplices whose edges are cut into parts."""
    return int(sum(comb(n - 1, q).sum() for q, (_, n) in enumerate(found)))


def _cut(found: Parted, stretch: FloatArray) -> Parted:
    """The same without the simplices of the largest stretches, down to enough places."""
    if _n_places(found) <= _ENOUGH_PLACES:
        return found
    own = [_longest_edges(simplices, stretch) for simplices, _ in found]
    places = np.concatenate([comb(n - 1, q) for q, (_, n) in enumerate(found)])
    rising = np.concatenate(own)
    order = np.argsort(rising, kind="stable")
    first_out = np.searchsorted(np.cumsum(places[order]), _ENOUGH_PLACES, side="right")
    # The least stretch stays whole.
    limit = max(rising[order][first_out], np.nextafter(_LEAST_STRETCH, np.inf))
    return [(s[each < limit], n[each < limit]) for each, (s, n) in zip(own, found, strict=True)]


def _inside(q: int, n_parts: int) -> FloatArray:
    """Barycentric coordinates of the places within a simplex, the lattice of its parts."""
    inner = [w for w in product(range(1, n_parts), repeat=q) if sum(w) < n_parts]
    weights = np.array(inner, dtype=float).reshape(len(inner), q)
    return np.column_stack([n_parts - weights.sum(axis=1), weights]) / n_parts


@dataclass(frozen=True, eq=False)
class ComplexFiltration(Filtration):
    """A function of one point cloud on the simplices of public landmarks, with its public bounds.

    The values and ``n_clipped`` are exact statistics of the cloud: they are
    *not* private. Everything else is public. Other fields are those of
    :class:`GridFiltration`.

    Parameters
    ----------
    values : ndarray of shape (n_simplices,)
        Filtration value of every simplex, by dimension, none below those of
        its faces; at most ``upper``.
    complex : LandmarkComplex
        The simplices. By keyword.

    Raises
    ------
    ValueError
        If values and simplices disagree, or a number is not finite or not
        positive where it has to be.
    """

    complex: LandmarkComplex = field(repr=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values.shape != (self.complex.n_simplices,):
            raise ValueError("values must have one entry per simplex.")

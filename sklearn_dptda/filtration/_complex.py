"""Simplices on public landmarks, their evaluation points, and functions on the simplices.

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
from sklearn_dptda.utils._distances import farthest_first
from sklearn_dptda.utils._validation import check_cloud

# Neighbouring places in a simplex are at most the diameter of the landmarks divided by one of these
# numbers apart. They depend on the dimension of the complex, and the first that needs no more than
# the largest allowed number of places is used. Tetrahedra need so many places that a finer division
# would leave too few tetrahedra, with voids between them.
_PARTS = {1: (16, 12, 8), 2: (16, 12, 8), 3: (6, 5, 4)}
# A complex is reduced to the first number of places, which take one second for 4,000 points. The
# simplices of the least stretch may have up to the second number of places. If they have more, the
# last landmarks span no simplices.
_ENOUGH_PLACES, _MOST_PLACES = 2**15, 2**18
# The stretch of an edge is its length divided by the distance at which the later of its landmarks
# was the farthest from all earlier ones. The limit starts at the first number and grows by the
# second factor while there are few places.
_LEAST_STRETCH, _GROWTH = 2.0, 1.25
# If there are too many simplices, the number of landmarks that span them is reduced by this factor.
_FEWER = 0.8
# Number of simplices that are compared with all landmarks at a time.
_AT_ONCE = 1 << 12

# For each dimension, the simplices and into how many parts the longest edge of each is cut.
Parted: TypeAlias = list[tuple[IntArray, IntArray]]


@dataclass(frozen=True, eq=False)
class LandmarkComplex:
    """Simplicial complex on public landmarks: few long simplices, and many short ones.

    The landmarks are ordered so that each is the farthest from those before it, and joined
    to the others within a distance that is proportional to the scale at which they were
    added. The value of a simplex is the largest value of the function at evaluation points
    inside it, so a long simplex does not fill a hole. If there are still too many simplices,
    the last landmarks get one edge each.

    A complex is a function of public numbers only. It costs no privacy.

    Parameters
    ----------
    landmarks : array-like of shape (n_landmarks, d)
        Public points, in the units of the data: at least 2 and at most 1000. They must
        not depend on the data, unless they are the result of a private release.
    dimension : int, default=2
        Dimension of the largest simplices, from 1 to 3. Diagrams of all homology
        dimensions below it are those of the function. For voids (H2), pass 3.
    reach : float, default=None
        Points that are farther than this distance from all landmarks, in the units of
        the data, count as not covered. None uses twice the largest distance of a landmark
        from its nearest other landmark.

    Attributes
    ----------
    simplices : list of ndarray of shape (n, q + 1)
        For each dimension ``q``, the indices of the landmarks of each simplex, in
        increasing order.

    See Also
    --------
    ComplexFiltration : A function on the simplices of a complex.
    sklearn_dptda.cluster.PrivateLandmarks : Differentially private landmarks.

    Examples
    --------
    >>> from sklearn_dptda.filtration import LandmarkComplex
    >>> complex = LandmarkComplex([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> [len(simplices) for simplices in complex.simplices]
    [3, 3, 1]
    """

    landmarks: FloatArray = field(repr=False)
    dimension: int = 2
    reach: float | None = None
    simplices: list[IntArray] = field(init=False, repr=False)
    # The chosen number from _PARTS.
    _parts: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        landmarks = check_cloud(self.landmarks, "landmarks").copy()
        landmarks.setflags(write=False)
        object.__setattr__(self, "landmarks", landmarks)
        with np.errstate(over="ignore"):
            squares = np.ptp(landmarks, axis=0) ** 2
        if not np.isfinite(squares).all():
            raise ValueError(
                "landmarks are too far apart: the squares of their distances overflow. Rescale the "
                "columns."
            )
        check_scalar(self.dimension, "dimension", Integral, min_val=1, max_val=3)
        if len(landmarks) > MOST_LANDMARKS:
            raise ValueError(
                f"landmarks has {len(landmarks)} points, but at most {MOST_LANDMARKS} are "
                "supported. Pass fewer landmarks."
            )
        far = self._distances
        if self.reach is None:
            object.__setattr__(self, "reach", 2 * float(np.sort(far, axis=1)[:, 1].max()))
        elif not (isinstance(self.reach, Real) and 0 <= float(self.reach) < np.inf):
            raise ValueError("reach must be a number of at least 0, or None.")
        object.__setattr__(self, "simplices", self._chosen_simplices())

    def __getstate__(self) -> dict[str, Any]:
        # Cached quantities that follow from the landmarks are recomputed after unpickling.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Pickled arrays lose their read-only flag.
        self.landmarks.setflags(write=False)

    @cached_property
    def _distances(self) -> FloatArray:
        return squareform(pdist(self.landmarks))

    def _chosen_simplices(self) -> list[IntArray]:
        """Choose the simplices of the least stretch, then of larger ones while places remain."""
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
        """Return the simplices whose landmarks are all joined, with fewer places if need be."""
        for parts in _PARTS[self.dimension]:
            object.__setattr__(self, "_parts", parts)
            chosen = self._flags(joined)
            if chosen is not None:
                return chosen
        # An edge outside all triangles closes no loop if it is the only edge at one of its ends.
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
        """Return the simplices whose landmarks are all joined, or None if there are too many."""
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
        """Return into how many parts to cut the longest edge of each simplex."""
        step = max(self.diameter / self._parts, np.finfo(float).tiny)
        parts = np.ceil(_longest_edges(simplices, self._distances) / step * (1 - 1e-9))
        return np.clip(parts, simplices.shape[1], self._parts).astype(np.int64)

    @property
    def diameter(self) -> float:
        """Largest distance between two landmarks, or 1 if all are equal: caps are positive."""
        return float(self._distances.max()) or 1.0

    def beyond(self, points: FloatArray) -> BoolArray:
        """Return which points are farther than ``reach`` from every landmark. *Not* private.

        Parameters
        ----------
        points : ndarray of shape (n, d)
            Points, in the units of the data.

        Returns
        -------
        ndarray of bool, of shape (n,)
        """
        return distances_to(self.landmarks, points) > float(self.reach or 0.0)

    @property
    def n_simplices(self) -> int:
        """Number of simplices of all dimensions."""
        return sum(map(len, self.simplices))

    @property
    def n_places(self) -> int:
        """Number of evaluation points of all simplices."""
        return sum(len(own) * len(weights) for blocks in self._blocks for own, weights in blocks)

    @cached_property
    def _blocks(self) -> list[list[tuple[IntArray, FloatArray]]]:
        """Simplices with equally many places and their barycentric coordinates, by dimension."""

        def block(q: int, parts: IntArray, n: int) -> tuple[IntArray, FloatArray]:
            return np.flatnonzero(parts == n), _inside(q, n)

        of_dimension = enumerate(map(self._n_parts, self.simplices))
        return [[block(q, parts, int(n)) for n in np.unique(parts)] for q, parts in of_dimension]

    def places(self) -> FloatArray:
        """Return the evaluation points of all simplices.

        Returns
        -------
        ndarray of shape (n_places, d)
            Public points, in the units of the data, by the dimension of their simplex.
        """
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
        """Return the largest value of a function in each closed simplex, ordered by dimension.

        Parameters
        ----------
        at_places : ndarray of shape (n_places,)
            Values of the function at :meth:`places`.

        Returns
        -------
        ndarray of shape (n_simplices,)
        """
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
        """Return the positions of simplices in the sorted list of their dimension."""
        base = len(self.landmarks) ** np.arange(simplices.shape[1], dtype=np.int64)[::-1]
        return np.searchsorted(self.simplices[simplices.shape[1] - 1] @ base, simplices @ base)


def _stretches(distances: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the order of the landmarks, and the stretch of each edge."""
    order, radii = farthest_first(lambda i: distances[i], len(distances))
    # If only copies remain, the first landmark is selected again as the farthest.
    scale = np.zeros(len(distances))
    scale[order[::-1]] = radii[::-1]
    scales = np.minimum(scale[:, None], scale)
    stretch = np.full_like(distances, np.inf)
    np.divide(distances, scales, out=stretch, where=scales > 0)
    # Copies of a landmark are joined only to that landmark, not to each other.
    stretch[(distances == 0) & (np.maximum(scale[:, None], scale) > 0)] = 0.0
    np.fill_diagonal(stretch, np.inf)
    return order, stretch


def _with_one_more(simplices: IntArray, joined: BoolArray) -> IntArray | None:
    """Extend simplices by one landmark that is joined to all of theirs, or None if too many."""
    numbers, n_found = np.arange(len(joined), dtype=np.int32), 0
    found = [np.empty((0, simplices.shape[1] + 1), dtype=np.int32)]
    for start in range(0, len(simplices), _AT_ONCE):
        part = simplices[start : start + _AT_ONCE]
        rows, last = np.nonzero(joined[part].all(axis=1) & (numbers > part[:, -1:]))
        found.append(np.column_stack([part[rows], numbers[last]]))
        n_found += len(rows)
        # Each simplex has at least one place.
        if n_found > _MOST_PLACES:
            return None
    return np.concatenate(found)


def _longest_edges(simplices: IntArray, lengths: FloatArray) -> FloatArray:
    """Return the largest of given edge lengths for each simplex, zero for vertices."""
    longest = np.zeros(len(simplices))
    for i, j in combinations(range(simplices.shape[1]), 2):
        np.maximum(longest, lengths[simplices[:, i], simplices[:, j]], out=longest)
    return longest


def _n_places(found: Parted) -> int:
    """Return the number of places of simplices whose edges are cut into parts."""
    return int(sum(comb(n - 1, q).sum() for q, (_, n) in enumerate(found)))


def _cut(found: Parted, stretch: FloatArray) -> Parted:
    """Remove the simplices of the largest stretches until few enough places are left."""
    if _n_places(found) <= _ENOUGH_PLACES:
        return found
    own = [_longest_edges(simplices, stretch) for simplices, _ in found]
    places = np.concatenate([comb(n - 1, q) for q, (_, n) in enumerate(found)])
    rising = np.concatenate(own)
    order = np.argsort(rising, kind="stable")
    first_out = np.searchsorted(np.cumsum(places[order]), _ENOUGH_PLACES, side="right")
    # All simplices of the least stretch are kept.
    limit = max(rising[order][first_out], np.nextafter(_LEAST_STRETCH, np.inf))
    return [(s[each < limit], n[each < limit]) for each, (s, n) in zip(own, found, strict=True)]


def _inside(q: int, n_parts: int) -> FloatArray:
    """Return barycentric coordinates of the places in a simplex, the lattice of its parts."""
    inner = [w for w in product(range(1, n_parts), repeat=q) if sum(w) < n_parts]
    weights = np.array(inner, dtype=float).reshape(len(inner), q)
    return np.column_stack([n_parts - weights.sum(axis=1), weights]) / n_parts


@dataclass(frozen=True, eq=False)
class ComplexFiltration(Filtration):
    """A function of one point cloud on the simplices of public landmarks, with its public bounds.

    ``values``, ``smaller`` and ``n_clipped`` are exact statistics of the point cloud: they
    are *not* private. All other fields are public. :class:`DTMFiltration` returns such
    objects if you pass ``landmarks``.

    Parameters
    ----------
    values : ndarray of shape (n_simplices,)
        Filtration value of every simplex, ordered by dimension, in the units of the
        function: at least that of each of its faces, and at most ``upper``.
    sensitivity : float
        Largest change of any value when one record is replaced, in the units of the
        function. A record is one point of the cloud, or all points of one person.
    upper : float
        Public upper bound of the values.
    n_points : int
        Public number of records in the cloud: points, or people.
    statistic : str
        Description of the function, for guarantees and reports.
    approximation_error : float, default=0.0
        Largest difference, apart from floating-point errors, between the values and
        those of the original points, where points or distances were rounded.
    public_bounds : bool, default=True
        Whether the domain is public. False means that it was computed from the data
        without a privacy guarantee, so a release is not private.
    bounds_guarantee : PrivacyGuarantee, default=None
        Guarantee of private landmarks, to which a release of diagrams adds its own loss.
        None if the landmarks are public.
    n_clipped : int, default=None
        Number of records that the landmarks do not cover, or not completely. None if it
        is not known.
    unit : str, default="one point of a cloud"
        Description of the privacy unit, for the guarantees of releases.
    smaller : tuple of (values, sensitivity, upper), default=()
        The same function with distances cut off at smaller caps, the largest cap first.
        A private release may draw one of them.
    complex : LandmarkComplex
        The public simplices. Keyword only.

    Attributes
    ----------
    smaller_caps : list of (float, float)
        Sensitivity and upper bound under each smaller cap. Public.
    adjacency : str
        ``"replace-one"``: neighbouring clouds differ by replacing one record.

    See Also
    --------
    GridFiltration : A function on the nodes of a grid.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.filtration import ComplexFiltration, LandmarkComplex
    >>> complex = LandmarkComplex([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> values = np.linspace(0.1, 0.7, complex.n_simplices)
    >>> function = ComplexFiltration(values, 0.01, 1.0, 100, "an example", complex=complex)
    >>> len(function), function.upper
    (7, 1.0)
    """

    complex: LandmarkComplex = field(repr=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values.shape != (self.complex.n_simplices,):
            raise ValueError("values must have one entry per simplex of complex.")

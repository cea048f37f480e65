"""The distance-to-measure of point clouds: its sensitivity, a plain function, and on public grids.

Proof: doc/theory/sensitivity.md, "Distance-to-measure".
Proof: doc/theory/private_cap.md, "All caps at once".
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from sklearn_dptda._typing import Bounds, FloatArray, IntArray
from sklearn_dptda.filtration._grid_filtration import BaseGridFiltration, ValuesAhead
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._bounds import diameter
from sklearn_dptda.utils._clouds import check_cloud
from sklearn_dptda.utils._sklearn import Interval, StrOptions

# Nanoseconds, measured: one element of a partitioned row of distances, one neighbour from a k-d
# tree, one offset of the lattice, and one grid node at it.
_ROW_ELEMENT, _TREE_NEIGHBOUR, _LATTICE_OFFSET, _LATTICE_NODE = 3.0, 100.0, 2000.0, 1.2
# Elements of a partitioned row that take as long as one neighbour from a k-d tree, where a single
# call asks for them; measured for d = 2, 3 and n from 10^3 to 10^5.
_TREE_COST = 40
# Bytes of a block of distances: beyond them it leaves the processor's cache, and gains nothing.
_CACHE_BYTES = 16 * 2**20
# Nodes of a tile: more make the ring wider, fewer make more tiles.
_NODES_OF_TILE = 64
# Smaller caps are these parts of the default one.
_CAPS = tuple(2.0 ** (-j / 2) for j in range(1, 7))
# Relative rounding of distances, which may move a point across the edge of a ring.
_DISTANCE_ROUNDING = 1e-9


def neighbour_count(m: float, n: int) -> int:
    """Number of neighbours ``k = ceil(m * n)`` of the mass ``m`` in (0, 1].

    A product that exceeds an integer by rounding alone is not rounded up.
    """
    if not 0 < m <= 1:
        raise ValueError(f"m must be in (0, 1]; got {quoted(m)}.")
    return min(max(math.ceil(m * n * (1 - 1e-12)), 1), n)


def sensitivity_dtm(m: float, n: int, p: float, diameter: float) -> float:
    """Sup-norm sensitivity of the L^p distance-to-measure on a box.

    With ``k = ceil(m n)``, one replaced point changes the sum of the ``k``
    smallest ``p``-th powers of distances by at most ``diameter**p``, hence the
    distance-to-measure by at most ``(diameter**p / k)**(1/p)``. By stability
    this also bounds the bottleneck distance between the persistence diagrams.
    The bound needs nothing of the set of possible records but its diameter. It
    is attained for ``p = 1`` and ``k`` from 4 on wherever two records can be a
    diameter apart (:func:`~sklearn_dptda.theory.dtm_worst_case`).

    Parameters
    ----------
    m : float
        Mass, in (0, 1].
    n : int
        Number of points.
    p : float
        Order, at least 1.
    diameter : float
        Largest distance between two points of the box, or the value at which
        distances are capped, whichever is smaller.

    Returns
    -------
    float

    Examples
    --------
    >>> sensitivity_dtm(0.1, 1000, 1, 5.0)
    0.05
    """
    if p < 1:
        raise ValueError(f"p must be at least 1; got {quoted(p)}.")
    return diameter / neighbour_count(m, n) ** (1 / p)


def distance_to_measure(
    X: ArrayLike, query: ArrayLike, m: float, p: float = 1, *, memory: float = 256.0
) -> FloatArray:
    """L^p distance to the empirical measure of a point cloud.

    The ``p``-mean of the distances from a query to its ``ceil(m n)`` nearest
    points.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The cloud.
    query : array-like of shape (q, d)
        Where to evaluate.
    m : float
        Mass, in (0, 1].
    p : float, default=1
        Order, at least 1.
    memory : float, default=256.0
        Bound of the working memory, in MiB.

    Returns
    -------
    ndarray of shape (q,)
        In the units of the data. An exact statistic of the cloud, *not*
        private.

    Raises
    ------
    ValueError
        If ``m`` is outside (0, 1], ``p`` is below 1, or an array is not finite
        and two-dimensional.

    References
    ----------
    F. Chazal, D. Cohen-Steiner, Q. Mérigot, "Geometric inference for
    probability measures", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda import distance_to_measure
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> circle = 1.5 * np.c_[np.cos(angle), np.sin(angle)]
    >>> distance_to_measure(circle, [[0.0, 0.0]], m=0.2)
    array([1.5])
    """
    X = check_cloud(X, "X", min_points=1)
    query = check_cloud(query, "query", X.shape[1], min_points=1)
    if not p >= 1:
        raise ValueError(f"p must be at least 1; got {quoted(p)}.")
    k = neighbour_count(m, len(X))
    tree = KDTree(X) if _tree_is_cheaper(len(X), k) else None
    bytes_per_query = 8 * (2 * len(X) if tree is None else 4 * k)
    rows = max(1, int(min(memory * 2**20, _CACHE_BYTES) // bytes_per_query))
    values = np.empty(len(query))
    for start in range(0, len(query), rows):
        part = slice(start, start + rows)
        squared = _nearest_squared(X, tree, query[part], k)
        values[part] = np.mean(squared ** (p / 2), axis=1) ** (1 / p)
    return values


def _tree_is_cheaper(n: int, k: int) -> bool:
    """Whether a query of a k-d tree beats the partition of all distances."""
    return _TREE_COST * k < n


def _nearest_squared(
    points: FloatArray, tree: KDTree | None, queries: FloatArray, k: int
) -> FloatArray:
    """Squared distances of each query from its ``k`` nearest points, in no particular order."""
    if tree is not None:
        distances, _ = tree.query(queries, k)
        return distances.reshape(len(queries), k) ** 2
    squared = np.zeros((len(queries), len(points)))
    work = np.empty_like(squared)
    for axis in range(points.shape[1]):
        np.subtract(queries[:, axis, None], points[:, axis], out=work)
        np.multiply(work, work, out=work)
        squared += work
    if k < len(points):
        squared.partition(k - 1, axis=1)
    return squared[:, :k]


class DTMFiltration(BaseGridFiltration):
    r"""Distance to the empirical measure of each cloud, on a public grid.

    The ``p``-mean of the distances from a grid node to its
    ``k = ceil(m n)`` nearest points. Its sublevel sets are a robust version
    of unions of balls: a point more or less hardly matters, which is what
    makes the persistence diagrams cheap to release under differential
    privacy.

    Parameters
    ----------
    m : float, default=0.1
        Mass: the share of the points that each value looks at, in (0, 1].
    p : float, default=1
        Order of the mean, at least 1. ``p=1`` has the smallest sensitivity.
    bounds : tuple (low, high) or PrivateBounds, default=None
        Public bounding box, numbers or one per coordinate. Points outside are
        clipped to it. A :class:`~sklearn_dptda.preprocessing.PrivateBounds` is
        fitted to the clouds of ``fit``, which pays for it; private diagrams
        add its guarantee to theirs. None computes the box from the data and
        warns, because this is not private.
    resolution : int or tuple of int, default=None
        Grid nodes along each axis. None: 1001, 101, 41 or 17 in dimensions 1
        to 4.
    max_distance : float or "private", default="private"
        Public cap: longer distances count as this one. The sensitivity is
        proportional to it. None: half the longest side of the box, which cuts
        hardly a feature but components in opposite corners; ``inf`` does not
        cap. ``"private"``: as None, and the same function under six smaller
        caps, down to an eighth, travels along. :class:`PrivatePersistence`
        draws the cap together with the diagrams, at no additional loss, where
        enough points make that worthwhile.
    method : {"auto", "exact", "lattice"}, default="auto"
        ``"exact"`` uses the points. ``"lattice"`` moves each point to the
        nearest node of a public lattice first and works with counts: the cost
        after one pass over the points does not depend on their number, the
        sensitivity is the same, and the values are off by at most half the
        diagonal of a lattice cell. ``"auto"`` takes the cheaper one, but
        exact values where that error is above the sensitivity and they take
        half a minute at most.
    refinement : int, default=None
        Lattice steps per grid step. None: 4, 2, 1, 1 in dimensions 1 to 4, and
        with ``groups`` as many that the lattice moves values by less than one
        person can, if that takes half a minute at most.
    groups : str or bool, default=None
        Who a person is. The name of the column of ids, where each cloud is a
        data frame, or True where each cloud is a list of arrays, one for each
        person. Everybody then has the same mass, spread evenly over her points,
        and the guarantee is about all points of one person, whatever their
        number. None: about one point.
    memory : float, default=256.0
        Bound of the working memory per cloud, in MiB.
    n_jobs : int, default=None
        Number of clouds that are worked on at a time, by joblib.

    Attributes
    ----------
    bounds_ : tuple of two ndarray of shape (d,)
        The box, public or paid for.
    bounds_guarantee_ : PrivacyGuarantee or None
        What was paid for a private box.
    clipped_share_ : float
        Private share of the points outside a private box, which it released
        with itself. Of public bounds :class:`~sklearn_dptda.PrivatePersistence`
        releases it with ``clipped_share=True``.
    axes_ : tuple of ndarray
        The public grid.
    refinement_ : int
        Lattice steps per grid step.
    n_features_in_ : int
        Dimension of the points.

    See Also
    --------
    PrivatePersistence : Releases the persistence diagrams under differential privacy.
    KernelDistanceFiltration : A smooth alternative with a bandwidth.

    Notes
    -----
    .. rubric:: Privacy

    The filtrations are exact and *not* private. Each carries its
    sensitivity: replacing one point of a cloud changes every value by at most
    ``max_distance / k**(1/p)`` with ``k = ceil(m * n)`` of ``n`` points. The
    sums are exact integers, so rounding does not widen it. With ``groups`` the
    same holds of ``n`` people, and all points of one of them.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis". F. Chazal, D. Cohen-Steiner, Q. Mérigot, "Geometric inference
    for probability measures", 2011.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(1000, random_state=0)
    >>> filtration, = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform([X])
    >>> filtration.shape, round(filtration.sensitivity, 4)
    ((101, 101), 0.0163)
    """

    _parameter_constraints = {
        **BaseGridFiltration._parameter_constraints,
        "m": [Interval(Real, 0, 1, closed="right")],
        "p": [Interval(Real, 1, None, closed="left")],
        "max_distance": [Interval(Real, 0, None, closed="right"), StrOptions({"private"}), None],
    }

    def __init__(
        self,
        m: float = 0.1,
        p: float = 1,
        bounds: Bounds | PrivateBounds | None = None,
        resolution: int | Sequence[int] | None = None,
        *,
        max_distance: float | Literal["private"] | None = "private",
        method: Literal["auto", "exact", "lattice"] = "auto",
        refinement: int | None = None,
        groups: str | bool | None = None,
        memory: float = 256.0,
        n_jobs: int | None = None,
    ) -> None:
        self.m = m
        self.p = p
        self.bounds = bounds
        self.resolution = resolution
        self.max_distance = max_distance
        self.method = method
        self.refinement = refinement
        self.groups = groups
        self.memory = memory
        self.n_jobs = n_jobs

    def _check_scale(self) -> None:
        if self._cap() < 1e-9 * diameter(*self.bounds_):
            raise ValueError("max_distance is negligible against the bounds.")

    def _cap(self) -> float:
        """Distance from which on all points count alike.

        Proof: doc/theory/sensitivity.md, "The upper bound and the default cap".
        """
        low, high = self.bounds_
        if self.max_distance in (None, "private"):
            return float((high - low).max()) / 2
        return min(float(self.max_distance), diameter(low, high))

    def _power(self, n: int) -> "FixedPointPower":
        shares = _CAPS if self.max_distance == "private" else ()
        return FixedPointPower(self._cap(), self.p, neighbour_count(self.m, n), shares)

    def _values_ahead(self, n: int) -> ValuesAhead:
        power, n_nodes = self._power(n), math.prod(map(len, self.axes_))
        tree = _tree_is_cheaper(n, power.k)
        mebibytes, n_offsets = self._lattice_work()
        lattice_cost = n_offsets * (n_nodes * _LATTICE_NODE + _LATTICE_OFFSET)
        (sensitivity, upper), *smaller = (
            (
                sensitivity_dtm(self.m, n, self.p, cap) + power.rounding,
                min(cap, diameter(*self.bounds_) / 2),
            )
            for cap in power.caps
        )
        return ValuesAhead(
            statistic=f"L{self.p:g} distance-to-measure, m={self.m:g}",
            sensitivity=sensitivity,
            upper=upper,
            lattice_error=self._lattice_shift,
            exact_cost=n_nodes * (_TREE_NEIGHBOUR * power.k if tree else _ROW_ELEMENT * n),
            lattice_cost=lattice_cost if mebibytes <= self.memory else math.inf,
            smaller=tuple(smaller),
        )

    def _exact(self, points: FloatArray) -> list[FloatArray]:
        power = self._power(len(points))
        return [power.values(sums) for sums in tiled_sums(points, self.axes_, power, self.memory)]

    def _from_histogram(self, histogram: LatticeHistogram) -> list[FloatArray]:
        needed, _ = self._lattice_work()
        if needed > self.memory:
            raise ValueError(
                f"The lattice needs about {needed:.0f} MiB, but memory={self.memory:g} MiB: lower "
                "refinement, resolution or max_distance, or raise memory."
            )
        power = self._power(histogram.n_points)
        return [power.values(*s) for s in _lattice_sums(histogram, self.refinement_, power)]

    def _lattice_work(self) -> tuple[float, float]:
        """Mebibytes of the padded counts and the sorted offsets, and how many offsets there are."""
        sides = np.array(self._lattice_shape)
        low, high = self.bounds_
        reach = np.minimum(self._cap() // ((high - low) / (sides - 1)), sides - 1)
        n_offsets = float(np.prod(2 * reach + 1))
        numbers = np.prod(sides + 2 * reach) + (2 * len(sides) + 4) * n_offsets
        return 8 * float(numbers) / 2**20, n_offsets


class FixedPointPower:
    """``p``-th powers of capped distances as integers, so that sums are exact.

    A distance ``t`` becomes ``round(2**bits * min(t / cap, 1)**p)``: a map of one record at a
    time, with values in ``{0, ..., 2**bits}``. The sum of the ``k`` smallest is then an exact
    integer, and replacing one record moves it by at most ``2**bits``, whatever the order of the
    summation. Under a smaller cap, a part of this one, the integers end at its own.
    """

    def __init__(self, cap: float, p: float, k: int, shares: Sequence[float] = ()) -> None:
        self.cap, self.p, self.k = cap, p, k
        self.bits = min(40, 62 - int(k).bit_length())
        self.caps = [cap, *(share * cap for share in shares)]
        # Rounded down: no value is moved by more than its cap allows.
        self.tops = [math.floor(math.ldexp(share**p, self.bits)) for share in (1.0, *shares)]
        # Bound of the floating-point error of :meth:`values`, both neighbours together.
        self.rounding = cap * 2.0**-48

    def integers(self, squared: FloatArray) -> NDArray[np.int64]:
        """Turn squared distances into integers."""
        power = np.sqrt(squared)
        power /= self.cap
        np.minimum(power, 1.0, out=power)
        if self.p != 1:
            power **= self.p
        power *= 2.0**self.bits
        return np.rint(power, out=power).astype(np.int64)

    def values(self, sums: NDArray[np.int64], parts: FloatArray | None = None) -> FloatArray:
        """Turn sums of ``k`` integers, and of parts of them, into values of the distance."""
        total = np.asarray(sums, dtype=float)
        if parts is not None:
            total += parts
        mean = total / (self.k * 2.0**self.bits)
        return self.cap * (mean if self.p == 1 else mean ** (1 / self.p))


def tiled_sums(
    points: FloatArray, axes: Sequence[FloatArray], power: FixedPointPower, memory: float
) -> NDArray[np.int64]:
    """Sum the integers of the ``power.k`` nearest points at every node of a grid, for each cap.

    ``axes`` are the increasing coordinates of the nodes; the work takes at most ``memory`` MiB,
    down to one node at a time.

    The distance to the k-th nearest point differs by no more than the nodes are apart. So of a
    tile of nodes with centre ``c`` and radius ``t``, points nearer to ``c`` than ``r_k(c) - 2 t``
    are among the nearest of each of its nodes, and points beyond ``r_k(c) + 2 t`` of none: only
    the ring between is looked at node by node.
    """
    tree = None
    if _tree_is_cheaper(len(points), power.k):
        # Sorting into equal halves takes longer than it saves.
        tree = KDTree(points, balanced_tree=False, compact_nodes=False)
    size = max(1, int(min(memory * 2**20, _CACHE_BYTES) // 8))
    sums = np.empty((len(power.tops), *map(len, axes)), dtype=np.int64)
    for tile in _tiles(axes):
        sure, ring = _sure_and_ring(points, tree, power, tile)
        places = [axis[part] for axis, part in zip(axes, tile.part, strict=True)]
        part = (slice(None), *tile.part)
        sums[part] = _sums(places, sure, ring, power, size).reshape(sums[part].shape)
    return sums


@dataclass(frozen=True)
class _Tile:
    """A box of neighbouring nodes.

    ``part`` are its slices of the axes; ``blur`` is what the rounding of coordinates may move a
    point by.
    """

    part: tuple[slice, ...]
    centre: FloatArray
    radius: float
    blur: float


def _tiles(axes: Sequence[FloatArray]) -> Iterator[_Tile]:
    blur = 2.0**-49 * max(float(np.abs(axis).max()) for axis in axes)
    side = max(1, round(_NODES_OF_TILE ** (1 / len(axes))))
    parts = [[slice(i, i + side) for i in range(0, len(axis), side)] for axis in axes]
    for part in itertools.product(*parts):
        ends = np.array([axis[p][[0, -1]] for axis, p in zip(axes, part, strict=True)])
        radius = float(np.linalg.norm(np.ptp(ends, axis=1) / 2))
        yield _Tile(part, ends.mean(axis=1), radius, blur)


def _sure_and_ring(
    points: FloatArray, tree: KDTree | None, power: FixedPointPower, tile: _Tile
) -> tuple[FloatArray, FloatArray]:
    """Points that are among the nearest of all nodes of a tile, and those that may be of some."""
    if tree is None:
        distances = np.sqrt(_squared(tile.centre[:, None], points)[0])
        kth = np.partition(distances, power.k - 1)[power.k - 1]
    else:
        kth = tree.query(tile.centre, [power.k])[0][0]
    # Beyond the cap all points count alike.
    reach = min(kth + 2 * tile.radius, power.cap + tile.radius)
    reach = reach * (1 + _DISTANCE_ROUNDING) + tile.blur
    if tree is None:
        near = distances <= reach
        points, distances = points[near], distances[near]
    else:
        points = points[tree.query_ball_point(tile.centre, reach)]
        distances = np.sqrt(_squared(tile.centre[:, None], points)[0])
    sure = distances < (kth - 2 * tile.radius) * (1 - _DISTANCE_ROUNDING) - tile.blur
    return points[sure], points[~sure]


def _squared(places: Iterable[FloatArray], points: FloatArray) -> FloatArray:
    """Squared distances of the nodes of a box from points, axis by axis."""
    squared = np.zeros((1, len(points)))
    for axis, coordinates in enumerate(places):
        step = (coordinates[:, None] - points[:, axis]) ** 2
        squared = (squared[:, None] + step).reshape(len(squared) * len(step), len(points))
    return squared


def _sums(
    places: Sequence[FloatArray],
    sure: FloatArray,
    ring: FloatArray,
    power: FixedPointPower,
    size: int,
) -> NDArray[np.int64]:
    """Sums at the nodes of one tile, in parts of ``size`` numbers, which fit into the cache."""
    n_nodes = math.prod(map(len, places))
    # What is neither sure nor in the ring lies beyond the cap.
    rest = min(power.k - len(sure), len(ring))
    beyond = (power.k - len(sure) - rest) * np.array(power.tops)
    sums = np.repeat(beyond[:, None], n_nodes, axis=1)
    width = max(1, size // n_nodes)
    for start in range(0, len(sure), width):
        sums += _capped_sums(_squared(places, sure[start : start + width]), power)
    if rest == 0:
        return sums
    first, *others = places
    step = math.prod(map(len, others))
    rows = max(1, size // (step * len(ring)))
    for start in range(0, len(first), rows):
        squared = _squared([first[start : start + rows], *others], ring)
        if rest < len(ring):
            squared.partition(rest - 1, axis=1)
        part = slice(start * step, start * step + len(squared))
        sums[:, part] += _capped_sums(squared[:, :rest], power)
    return sums


def _capped_sums(squared: FloatArray, power: FixedPointPower) -> NDArray[np.int64]:
    """Sums of the rows of squared distances, for each cap."""
    integers = power.integers(squared)
    sums = [integers.sum(axis=1)]
    longest = integers.max(initial=0)
    for top in power.tops[1:]:
        # Caps beyond all distances change nothing, and the next one is smaller.
        if top < longest:
            np.minimum(integers, top, out=integers)
            sums.append(integers.sum(axis=1))
        else:
            sums.append(sums[-1])
    return np.array(sums)


def _lattice_sums(
    histogram: LatticeHistogram, refinement: int, power: FixedPointPower
) -> list[tuple[NDArray[np.int64], FloatArray | None]]:
    """Sum the integers of the ``power.k`` nearest points, on every ``refinement``-th lattice node.

    For each cap; of people, parts of whom are near: whole integers, and the sum of what is less
    than one.

    The sum of the ``k`` smallest values is the integral over the radius of how many of the ``k``
    neighbours are still missing. Offsets between a node and the lattice are the same for all
    nodes, so shells of equal distance are visited once, nearest first, for the whole grid
    together; the cost does not depend on the number of points. Under a smaller cap the integral
    ends sooner: all caps are passed on the way.
    """
    shape = np.array(histogram.shape)
    spacing = (histogram.high - histogram.low) / (shape - 1)
    # Shells beyond the cap all count as the cap: they need not be visited.
    reach = np.minimum(shape - 1, np.floor(power.cap / spacing).astype(int))
    offsets, levels = _shells(reach, spacing, power)
    bits = histogram.weight_bits
    # Half as many bytes to move, where they hold the number of points.
    narrow = np.int32 if histogram.n_points << bits < 2**31 else np.int64
    padded = np.pad(histogram.counts.astype(narrow), [(r, r) for r in reach])
    reached: IntArray = np.zeros([len(range(0, size, refinement)) for size in shape], dtype=narrow)
    sums = _Missing(reached.shape, bits)
    distinct, starts = np.unique(levels, return_index=True)
    previous, caps, capped = 0, list(power.tops), []
    for level, (begin, end) in zip(
        distinct, itertools.pairwise([*starts, len(levels)]), strict=True
    ):
        missing = np.maximum((power.k << bits) - reached, 0).astype(np.int64)
        if not missing.any():
            break
        while caps[-1] <= level:
            capped.append(sums.total(missing, caps.pop() - previous))
        sums.add(missing, level - previous)
        previous = level
        for corner in offsets[begin:end] + reach:
            ends = corner + shape
            reached += padded[tuple(map(slice, corner, ends, itertools.repeat(refinement)))]
    missing = np.maximum((power.k << bits) - reached, 0).astype(np.int64)
    capped += [sums.total(missing, cap - previous) for cap in reversed(caps)]
    return capped[::-1]


class _Missing:
    """Sum of missing neighbours times distances: exact, in two numbers where people have parts.

    One of 64 bits could not hold both 40 bits of distances and 22 bits of parts of many people.
    Proof: doc/theory/people.md, "Integer weights".
    """

    def __init__(self, shape: tuple[int, ...], bits: int) -> None:
        self.bits = bits
        self.whole = np.zeros(shape, dtype=np.int64)
        self.parts = np.zeros(shape, dtype=np.int64) if bits else None

    def add(self, missing: NDArray[np.int64], distance: int) -> None:
        if self.parts is not None:
            self.parts += (missing & ((1 << self.bits) - 1)) * distance
            missing = missing >> self.bits
        self.whole += missing * distance

    def total(
        self, missing: NDArray[np.int64], distance: int
    ) -> tuple[NDArray[np.int64], FloatArray | None]:
        """What the sum would be if this were added."""
        if self.parts is None:
            return self.whole + missing * distance, None
        parts = self.parts + (missing & ((1 << self.bits) - 1)) * distance
        whole = self.whole + (missing >> self.bits) * distance
        return whole, np.ldexp(parts.astype(float), -self.bits)


def _shells(
    reach: IntArray, spacing: FloatArray, power: FixedPointPower
) -> tuple[IntArray, NDArray[np.int64]]:
    """Offsets within the cap and their integer distances, nearest first."""
    offsets = np.indices(tuple(2 * reach + 1)).reshape(len(reach), -1).T - reach
    levels = power.integers(((offsets * spacing) ** 2).sum(axis=1))
    inside = levels < 2**power.bits
    order = np.argsort(levels[inside], kind="stable")
    return offsets[inside][order], levels[inside][order]

"""Exact integer sums of distances to the nearest points: on grids, and at places.

Proof: doc/theory/sensitivity.md, "Distance-to-measure".
Proof: doc/theory/private_cap.md, "All caps at once".
Proof: doc/theory/people.md, "Integer weights".
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.filtration._cloud import WEIGHT_BITS

try:
    import sklearn_dptda.filtration._nearest_kernel as compiled
except ImportError:
    # There was no compiler when the package was installed. The same integers come from NumPy.
    compiled = None  # type: ignore[assignment]

# One neighbour from a k-d tree, in a single call for all of them, takes as long as this many
# elements of a partitioned row. Measured for d = 2, 3 and n from 10^3 to 10^5.
_TREE_COST = 40
# The ratio holds up to this number of columns. Each further column doubles the work of a tree.
_TREE_COLUMNS = 3
# With this many points per neighbour, asking a k-d tree at every node is faster than compiled sums.
_DIRECT = 700
# Bytes of a block of distances. A larger block does not fit into the processor's cache.
_CACHE_BYTES = 4 * 2**20
# Orders of the mean that the compiled sums compute.
_COMPILED_ORDERS = (1, 2)
# The compiled sums accept no more columns.
_COMPILED_COLUMNS = 32
# From this number of columns on, a matrix product and a selection are as fast as the compiled sums
# at scattered places: on some processors from 5 columns on, and on others from 12.
_PRODUCT_COLUMNS = 8
# The compiled sums at scattered places take about half as long as partitioned rows.
_TREE_OR_COMPILED = 2
# Coordinates of points times places in one call of the compiled sums.
_WORK_OF_CALL = 10**9
# Bits of the lower halves of distances.
_LOW_BITS = 20
_LOW = (1 << _LOW_BITS) - 1
# Relative rounding error of distances from a k-d tree.
_DISTANCE_ROUNDING = 1e-9


def slowdown(p: float) -> float:
    """Return about how many times as long as compiled sums the sums of ``p``-th powers take."""
    if compiled is None:
        return 15.0
    return 1.0 if p in _COMPILED_ORDERS else 8.0


def tree_is_cheaper(n: int, k: int, d: int = _TREE_COLUMNS) -> bool:
    """Return whether a query of a k-d tree is faster than partitioning all distances."""
    return _TREE_COST * k * 2 ** max(d - _TREE_COLUMNS, 0) < n


def _tree(points: FloatArray) -> KDTree:
    """Build a tree that is not balanced, which is faster to build and to ask."""
    return KDTree(points, balanced_tree=False, compact_nodes=False)


def nearest_squared(
    points: FloatArray, tree: KDTree | None, queries: FloatArray, k: int
) -> FloatArray:
    """Return the squared distances of each query from its ``k`` nearest points, unordered."""
    if tree is not None:
        return _nearest_by_tree(points, tree, queries, k)
    return _smallest(_squared_distances(queries, points), k)


def _smallest(rows: FloatArray, k: int) -> FloatArray:
    """Return the ``k`` smallest values of each row, unordered, at the cost of the rows."""
    n_rows, n = rows.shape
    if k >= n:
        return rows
    if compiled is None:
        rows.partition(k - 1, axis=1)
    else:
        compiled.smallest_first(rows, n_rows, n, k)
    return rows[:, :k]


def _nearest_by_tree(points: FloatArray, tree: KDTree, queries: FloatArray, k: int) -> FloatArray:
    """Return exactly the squares that all points would give.

    The tree rounds, so it may miss a point as far away as the k-th. Unless a spare neighbour is
    clearly farther, all points up to a little beyond the k-th are examined.
    """
    n = min(k + 1, len(points))
    distances, places = (found.reshape(len(queries), n) for found in tree.query(queries, n))
    squared = np.zeros((len(queries), n))
    for axis in range(points.shape[1]):
        squared += (queries[:, axis, None] - points[:, axis][places]) ** 2
    reach = distances[:, k - 1] * (1 + _DISTANCE_ROUNDING)
    squared = squared[:, :k]
    for row in np.flatnonzero(distances[:, n - 1] <= reach) if n > k else ():
        near = points[tree.query_ball_point(queries[row], reach[row])]
        squared[row] = nearest_squared(near, None, queries[row : row + 1], k)
    return squared


def _squared_distances(queries: FloatArray, points: FloatArray) -> FloatArray:
    """Compute all squared distances, axis by axis, so that each depends on its own point only."""
    squared = np.zeros((len(queries), len(points)))
    work = np.empty_like(squared)
    for axis in range(points.shape[1]):
        np.subtract(queries[:, axis, None], points[:, axis], out=work)
        np.multiply(work, work, out=work)
        squared += work
    return squared


class FixedPointPower:
    """``p``-th powers of capped distances as integers, so that sums are exact.

    A distance ``t`` becomes ``round(2**bits * min(t / cap, 1)**p)``. The sum of the ``k`` smallest
    values is exact in any order, and replacing one record moves it by at most ``2**bits``. The
    integers of a smaller cap, a share of this one, have a smaller maximum.
    """

    def __init__(
        self, cap: float, p: float, k: int, shares: Sequence[float] = (), bits: int = 40
    ) -> None:
        self.cap, self.p, self.k = cap, p, k
        self.bits = min(bits, 62 - int(k).bit_length())
        self.caps = [cap, *(share * cap for share in shares)]
        # Rounding down ensures that no record moves a sum by more than the cap allows.
        self.tops = [math.floor(math.ldexp(share**p, self.bits)) for share in (1.0, *shares)]
        # Bound of the floating-point errors of :meth:`values` for both neighbours together.
        self.rounding = cap * 2.0**-48

    def integers(self, squared: FloatArray) -> NDArray[np.int64]:
        """Convert squared distances to integers."""
        return self.whole(squared).astype(np.int64)

    def whole(self, squared: FloatArray) -> FloatArray:
        """Convert squared distances to integers, as floats."""
        power = np.sqrt(squared)
        # Looking for a value beyond the cap is faster than capping all of them.
        if power.max(initial=0.0) > self.cap:
            np.minimum(power, self.cap, out=power)
        if self.p == 1:
            power *= 2.0**self.bits / self.cap
        else:
            power /= self.cap
            power **= self.p
            power *= 2.0**self.bits
        return np.rint(power, out=power)

    def whole_sums(self, whole: FloatArray) -> NDArray[np.int64]:
        """Sum the rows of integers that are given as floats."""
        if (n := whole.shape[1]) > 2 ** (53 - self.bits):
            return whole.astype(np.int64).sum(axis=1)
        # Floats add up such sums exactly in any order, and a matrix product is the fastest.
        return (whole @ np.ones(n)).astype(np.int64)

    def values(self, sums: NDArray[np.int64], parts: FloatArray | None = None) -> FloatArray:
        """Convert sums of ``k`` integers, and of fractions of them, to values of the distance."""
        total = np.asarray(sums, dtype=float)
        if parts is not None:
            total += parts
        mean = total / (self.k * 2.0**self.bits)
        return self.cap * (mean if self.p == 1 else mean ** (1 / self.p))


def grid_sums(
    points: FloatArray, axes: Sequence[FloatArray], power: FixedPointPower, memory: float
) -> NDArray[np.int64]:
    """Sum the integers of the ``power.k`` nearest points at every node of a grid, for each cap.

    ``axes`` are the increasing coordinates of the nodes. Without a compiler, the computation uses
    at most ``memory`` MiB, but never less than one node at a time needs.
    """
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    if compiled is not None and power.p in _COMPILED_ORDERS and len(points) < _DIRECT * power.k:
        sums = _compiled_sums(points, nodes, power, 1.0, _blur(nodes))
    else:
        sums = np.empty((len(power.tops), len(nodes)), dtype=np.int64)
        for part, squared in nearest_in_blocks(points, nodes, power.k, memory):
            sums[:, part] = _capped_sums(squared, power)
    return sums.reshape(-1, *map(len, axes))


def _compiled_sums(
    points: FloatArray, places: FloatArray, power: FixedPointPower, unit: float, blur: float
) -> NDArray[np.int64]:
    """Sum the integers of the nearest points at all places, for each cap.

    A call for some neighbouring places takes a few seconds at most, so that the user can interrupt
    the loop. ``unit`` is the square of a step of the coordinates, and ``blur`` bounds their
    rounding.
    """
    n, d = points.shape
    most = max(_WORK_OF_CALL // (n * d), 64)
    sums = np.empty((len(power.tops), len(places)), dtype=np.int64)
    # The kernel changes the order of the points.
    columns, tops = np.array(points.T, order="C"), np.array(power.tops, dtype=float)
    for near in _neighbouring(places, np.arange(len(places)), most):
        some, found = places[near], np.empty((len(tops), len(near)), dtype=np.int64)
        sizes = n, d, len(near), len(tops), power.k, int(power.p)
        scale = 2.0**power.bits / (power.cap if power.p == 1 else 1.0)
        compiled.sums_at_places(columns, some, tops, found, *sizes, power.cap, scale, unit, blur)
        sums[:, near] = found
    return sums


def _neighbouring(places: FloatArray, some: IntArray, most: int) -> Iterator[IntArray]:
    """Divide places into boxes of at most ``most`` places, unless all of them coincide."""
    sides = np.ptp(places[some], axis=0)
    if len(some) <= most or not sides.any():
        yield some
        return
    along = places[some, np.argmax(sides)]
    first = along < (along.min() + along.max()) / 2
    if not first.any():
        # The ends are so close that their middle is rounded to the first.
        first = along < along.max()
    yield from _neighbouring(places, some[first], most)
    yield from _neighbouring(places, some[~first], most)


def scattered_sums(
    points: FloatArray, places: FloatArray, power: FixedPointPower, memory: float
) -> NDArray[np.int64]:
    """Sum the integers of the ``power.k`` nearest points at arbitrary places, for each cap."""
    n, d = points.shape
    by_kernel = compiled is not None and power.p in _COMPILED_ORDERS and d < _PRODUCT_COLUMNS
    if tree_is_cheaper(n, power.k, d):
        # All points farther than the cap from every place count alike. The squares of their
        # distances could overflow.
        reach = 2 * power.cap
        points = np.clip(points, places.min(axis=0) - reach, places.max(axis=0) + reach)
        if by_kernel and not tree_is_cheaper(n, _TREE_OR_COMPILED * power.k, d):
            return _compiled_sums(points, places, power, 1.0, _blur(places))
        nearest = nearest_in_blocks(points, places, power.k, memory)
    elif by_kernel:
        points, places, step = _on_lattice(points, places, power.cap)
        return _compiled_sums(points, places, power, step**2, 0.0)
    else:
        nearest = whole_squares(points, places, power.cap, 2, memory)
    sums = np.empty((len(power.tops), len(places)), dtype=np.int64)
    for part, squared in nearest:
        sums[:, part] = _capped_sums(_smallest(squared, power.k), power)
    return sums


def _blur(places: FloatArray) -> float:
    """Return a bound of the rounding errors of distances between places."""
    return 2.0**-49 * float(np.abs(places).max())


def nearest_in_blocks(
    points: FloatArray, places: FloatArray, k: int, memory: float
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the squared distances of blocks of places from their ``k`` nearest points."""
    tree = _tree(points) if tree_is_cheaper(len(points), k, points.shape[1]) else None
    numbers = 2 * len(points) if tree is None else 4 * k
    for part in _blocks(len(places), numbers, memory):
        yield part, nearest_squared(points, tree, places[part], k)


def _blocks(n_places: int, numbers: int, memory: float) -> Iterator[slice]:
    """Yield slices of places, each of which takes ``numbers`` numbers, that fit into the memory."""
    rows = max(1, int(min(memory * 2**20, _CACHE_BYTES) // (8 * numbers)))
    return (slice(start, start + rows) for start in range(0, n_places, rows))


def rounding_of_places(places: FloatArray, cap: float) -> float:
    """Return the largest error at places, because points and places are moved to a fine lattice."""
    step, _ = _lattice_about(places, cap)
    return step * math.sqrt(places.shape[1])


def _lattice_about(places: FloatArray, cap: float) -> tuple[float, FloatArray]:
    """Return the step and origin of a lattice on which sums of squares are exact in 53 bits."""
    low, high = places.min(axis=0) - cap, places.max(axis=0) + cap
    bits = (50 - math.ceil(math.log2(places.shape[1]))) // 2
    return float((high - low).max()) * 2.0**-bits, low


def _on_lattice(
    points: FloatArray, places: FloatArray, cap: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return points and places as whole numbers of steps, and the step.

    Points are clipped to the box of the places enlarged by the cap.
    """
    step, low = _lattice_about(places, cap)
    most = places.max(axis=0) + cap - low
    points, places = (np.rint(np.clip(each - low, 0.0, most) / step) for each in (points, places))
    return points, places, step


def whole_squares(
    points: FloatArray, places: FloatArray, cap: float, copies: int, memory: float
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the squared distances of places from all points, for blocks of places.

    Coordinates are whole numbers, so that a distance depends only on its own point.
    """
    points, places, step = _on_lattice(points, places, cap)
    of_points, of_places = ((each**2).sum(axis=1) for each in (points, places))
    # One matrix product adds all three terms of a square.
    left = np.column_stack([places, of_places, np.ones(len(places))])
    right = np.vstack([-2.0 * points.T, np.ones(len(points)), of_points])
    for part in _blocks(len(places), copies * len(points), memory):
        squared = left[part] @ right
        squared *= step**2
        yield part, squared


def refuse_too_many_people(k: int) -> None:
    """Raise an error if sums over ``k`` people do not fit into 64 bits."""
    if k >= 2**20:
        raise ValueError(
            "m is too large: each value would average over more than 2**20 people. Lower m."
        )


def weighted_sums(
    points: FloatArray,
    weights: IntArray,
    bits: int,
    places: FloatArray,
    power: FixedPointPower,
    memory: float,
) -> list[tuple[NDArray[np.int64], FloatArray | None]]:
    """Sum the integers of the nearest points whose total weight is ``power.k``, for each cap.

    ``weights`` are integers from 1 to 2**22 in units of ``2**-bits``, where ``bits`` is 0 or 22.
    Results have the form of those of :func:`~sklearn_dptda.filtration._lattice_sums.lattice_sums`.
    """
    few_columns = points.shape[1] <= _COMPILED_COLUMNS
    if compiled is not None and power.p in _COMPILED_ORDERS and few_columns:
        found = _compiled_weighted_sums(points, weights, power.k << bits, places, power)
    else:
        found = np.empty((len(power.tops), 2, len(places)), dtype=np.int64)
        for part, squared in whole_squares(points, places, power.cap, 4, memory):
            found[:, :, part] = _sorted_sums(
                power.integers(squared), weights, power.k << bits, power
            )
    found[:, 0] += found[:, 1] >> _LOW_BITS
    found[:, 1] &= _LOW
    if bits == 0:
        return [((high << _LOW_BITS) | low, None) for high, low in found]
    rest = bits - _LOW_BITS
    parts = ((found[:, 0] & ((1 << rest) - 1)) << _LOW_BITS) | found[:, 1]
    return list(zip(found[:, 0] >> rest, np.ldexp(parts.astype(float), -bits), strict=True))


def _sorted_sums(
    integers: IntArray, weights: IntArray, target: int, power: FixedPointPower
) -> IntArray:
    """Return sums of upper and lower halves of distances, times weights, for rows of places."""
    # Each number contains a distance and a weight, so that one sort orders both.
    keys = (integers << WEIGHT_BITS) | (weights - 1)
    keys.sort(axis=1)
    taken = (keys & ((1 << WEIGHT_BITS) - 1)) + 1
    upto = np.cumsum(taken, axis=1)
    np.minimum(taken, np.maximum(target - (upto - taken), 0), out=taken)
    distances = keys >> WEIGHT_BITS
    found = np.empty((len(power.tops), 2, len(keys)), dtype=np.int64)
    for cap, top in enumerate(power.tops):
        np.minimum(distances, top, out=distances)
        # The distances are split into halves, so that sums of products fit into 64 bits.
        found[cap, 0] = ((distances >> _LOW_BITS) * taken).sum(axis=1)
        found[cap, 1] = ((distances & _LOW) * taken).sum(axis=1)
    return found


def _compiled_weighted_sums(
    points: FloatArray, weights: IntArray, target: int, places: FloatArray, power: FixedPointPower
) -> IntArray:
    """Return what :func:`_sorted_sums` does, up to a carry from the lower to the upper halves."""
    (points, places, step), n, d = _on_lattice(points, places, power.cap), *points.shape
    columns, weights_as_floats = np.array(points.T, order="C"), weights.astype(float)
    tops, sums = np.array(power.tops, dtype=float), list[IntArray]()
    scale = 2.0**power.bits / (power.cap if power.p == 1 else 1.0)
    most = max(_WORK_OF_CALL // (n * d), 64)
    for start in range(0, len(places), most):
        some = places[start : start + most]
        found = np.empty((len(tops), 2, len(some)), dtype=np.int64)
        sizes = n, d, len(some), len(tops), int(power.p)
        compiled.weighted_sums_at_places(
            columns, weights_as_floats, some, tops, found, *sizes, target, power.cap, scale, step**2
        )
        sums.append(found)
    return np.concatenate(sums, axis=2)


def _capped_sums(squared: FloatArray, power: FixedPointPower) -> NDArray[np.int64]:
    """Sum the rows of squared distances, for each cap."""
    whole = power.whole(squared)
    sums = [power.whole_sums(whole)]
    longest = whole.max(initial=0.0) if len(power.tops) > 1 else 0.0
    for top in power.tops[1:]:
        # A cap above all distances changes nothing. The caps are in descending order.
        if top < longest:
            np.minimum(whole, top, out=whole)
            sums.append(power.whole_sums(whole))
        else:
            sums.append(sums[-1])
    return np.array(sums)

"""Exact integer sums of distances to the nearest points, from counts on a lattice.

Proof: doc/theory/sensitivity.md, "Distance-to-measure".
Proof: doc/theory/private_cap.md, "All caps at once".
Proof: doc/theory/people.md, "Integer weights".
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.filtration import _nearest_sums
from sklearn_dptda.filtration._cloud import LatticeHistogram
from sklearn_dptda.filtration._nearest_sums import FixedPointPower

# Nodes along the last axes of a tile of the compiled sums, by dimension: 256 of them at most.
_TILES = {1: (256,), 2: (16, 16), 3: (4, 4, 16), 4: (2, 2, 4, 16)}
# Windows of tiles in one call of the compiled sums, which takes a few seconds at most.
_WINDOWS_OF_CALL = 10**8
# Time of the compiled sums in relation to NumPy's, which visit as many offsets for all nodes: 0.1
# for points of a shape, 0.35 for points everywhere with m = 0.9, and 0.45 for people.
_COMPILED_TIME = 0.25


def lattice_slowdown() -> float:
    """Return about how many times as long as those in NumPy the sums take here."""
    return 1.0 if _nearest_sums.compiled is None else _COMPILED_TIME


def lattice_sums(
    histogram: LatticeHistogram, refinement: int, power: FixedPointPower
) -> list[tuple[NDArray[np.int64], FloatArray | None]]:
    """Sum the integers of the ``power.k`` nearest points at every ``refinement``-th lattice node.

    There is one result for each cap. If records are people, of whom a fraction may be near a node,
    it consists of whole integers and the sum of the fractions.

    The sum is the integral, over the radius, of the number of the ``k`` neighbours that are still
    missing. Shells of equal distance are visited once for the whole grid, nearest first, so the
    cost does not depend on the number of points, and one pass computes the sums for all caps.
    The compiled sums visit them for each tile of the grid, until its own nodes are satisfied.
    """
    shape = np.array(histogram.shape)
    spacing = (histogram.high - histogram.low) / (shape - 1)
    # All shells beyond the cap count as the cap, so they need not be visited.
    reach = np.minimum(shape - 1, np.floor(power.cap / spacing).astype(int))
    offsets, levels = _shells(reach, spacing, power)
    bits = histogram.weight_bits
    # 32 bits halve the memory traffic if they can hold the number of points.
    narrow = np.int32 if bits == 0 and histogram.n_points < 2**31 else np.int64
    phases = _phases(histogram.counts.astype(narrow), reach, refinement)
    n_nodes = -(-shape // refinement)
    if _nearest_sums.compiled is not None:
        return _compiled_sums(phases, offsets + reach, levels, n_nodes, power, bits)
    reached: IntArray = np.zeros(n_nodes, dtype=narrow)
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
        starts, places = np.divmod(offsets[begin:end] + reach, refinement)
        for place, start, stop in zip(
            places.tolist(), starts.tolist(), (starts + n_nodes).tolist(), strict=True
        ):
            reached += phases[*place, *map(slice, start, stop)]
    missing = np.maximum((power.k << bits) - reached, 0).astype(np.int64)
    capped += [sums.total(missing, cap - previous) for cap in reversed(caps)]
    return capped[::-1]


def _phases(counts: IntArray, reach: IntArray, refinement: int) -> IntArray:
    """Return counts with margins of ``reach``, where the neighbours of all nodes are adjacent.

    The first indices are the place of a cell among ``refinement`` cells along each axis.
    """
    sizes = -(-(np.array(counts.shape) + 2 * reach) // refinement)
    phases = np.zeros((*itertools.repeat(refinement, counts.ndim), *sizes), dtype=counts.dtype)
    for place in itertools.product(range(refinement), repeat=counts.ndim):
        # The first cell with this place that is not in the margin.
        skipped = np.maximum(-(-(reach - place) // refinement), 0)
        starts = place + refinement * skipped - reach
        part = counts[tuple(slice(start, None, refinement) for start in starts)]
        phases[place][tuple(map(slice, skipped, skipped + part.shape))] = part
    return phases


class _Missing:
    """Exact sum of missing neighbours times distances, in two numbers if people have fractions.

    64 bits cannot hold 40 bits of distances and 22 bits of fractions of many people.
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
        """Return the sum that would result from adding this product."""
        if self.parts is None:
            return self.whole + missing * distance, None
        parts = self.parts + (missing & ((1 << self.bits) - 1)) * distance
        whole = self.whole + (missing >> self.bits) * distance
        return whole, np.ldexp(parts.astype(float), -self.bits)


def _shells(
    reach: IntArray, spacing: FloatArray, power: FixedPointPower
) -> tuple[IntArray, NDArray[np.int64]]:
    """Return the offsets within the cap and their integer distances, nearest first."""
    offsets = np.indices(tuple(2 * reach + 1)).reshape(len(reach), -1).T - reach
    levels = power.integers(((offsets * spacing) ** 2).sum(axis=1))
    inside = levels < 2**power.bits
    order = np.argsort(levels[inside], kind="stable")
    return offsets[inside][order], levels[inside][order]


def _compiled_sums(
    phases: IntArray,
    places: IntArray,
    levels: IntArray,
    n_nodes: IntArray,
    power: FixedPointPower,
    bits: int,
) -> list[tuple[NDArray[np.int64], FloatArray | None]]:
    """Sum by tiles. ``places`` are the cells of all offsets from the first node."""
    d, refinement = len(n_nodes), len(phases)
    sides = np.minimum(_TILES[d], n_nodes)
    # The last tile of an axis overlaps the one before.
    firsts = [
        np.minimum(np.arange(0, n, side), n - side)
        for n, side in zip(n_nodes.tolist(), sides.tolist(), strict=True)
    ]
    windows = phases.shape[d:]
    at = np.stack(np.meshgrid(*firsts, indexing="ij"), axis=-1)
    tiles, first_nodes = _flat(at, windows), _flat(at, n_nodes)
    within = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), axis=-1)
    starts, phase = np.divmod(places, refinement)
    offsets = _flat(np.hstack([phase, starts]), phases.shape)
    ends = np.append(np.flatnonzero(np.diff(levels)) + 1, len(levels))
    shells = levels[ends - 1]
    rows = _flat(within[..., 0, :].reshape(-1, d), windows)
    nodes = _flat(within.reshape(-1, d), n_nodes)
    tops, is_wide = np.array(power.tops), phases.dtype == np.int64
    occupied = _occupied(phases, sides)
    found = np.empty((len(tops), 2, math.prod(n_nodes.tolist())), dtype=np.int64)
    most = max(1, _WINDOWS_OF_CALL // len(offsets))
    for start in range(0, len(tiles), most):
        some = tiles[start : start + most]
        sums = np.empty((len(tops), 2, len(some), len(nodes)), dtype=np.int64)
        sizes = phases.size, len(offsets), len(shells), len(rows), int(sides[-1]), len(some)
        arrays = phases, occupied, offsets, ends, shells, rows, some, tops, sums
        _nearest_sums.compiled.lattice_sums(
            *arrays, *sizes, len(tops), is_wide, power.k << bits, bits
        )
        found[:, :, first_nodes[start : start + most, None] + nodes] = sums
    found = found.reshape(len(tops), 2, *n_nodes)
    if bits == 0:
        return [(whole, None) for whole, _ in found]
    return [(whole, np.ldexp(parts.astype(float), -bits)) for whole, parts in found]


def _flat(places: IntArray, shape: IntArray | tuple[int, ...]) -> IntArray:
    """Return the indices of places of shape (..., d) in a flattened array, in one row."""
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    return (places.reshape(-1, len(strides)) @ strides).astype(np.int64)


def _occupied(phases: IntArray, sides: IntArray) -> BoolArray:
    """Return whether there is a point in the window of a tile that begins at each cell."""
    occupied: BoolArray = phases != 0
    for axis, side in enumerate(sides.tolist(), start=len(sides)):
        reached = 1
        along = np.moveaxis(occupied, axis, 0)
        while reached < side:
            step = min(reached, side - reached)
            along[:-step] |= along[step:]
            reached += step
    return occupied

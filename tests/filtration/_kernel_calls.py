"""Calls of the compiled sums with awkward input, each compared with brute force.

``python _kernel_calls.py FILE`` loads the compiled module from a file, which may have been built
with sanitizers, and needs only NumPy.
"""

import importlib.util
import sys

import numpy as np


def loaded(path):
    """The compiled module from a file."""
    spec = importlib.util.spec_from_file_location("_nearest_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Integers of the longest distance that counts, and of a smaller cap.
TOPS = 1 << 20, 1 << 19


def sums_at(kernel, points, places, k, cap=1.0):
    """The sums of the k nearest points at places, for each cap."""
    (n, d), found = points.shape, np.empty((len(TOPS), len(places)), dtype=np.int64)
    columns = np.array(points.T, dtype=float, order="C")
    caps, scale = np.array(TOPS, dtype=float), TOPS[0] / cap
    sizes = n, d, len(places), len(TOPS), k, 1
    places = np.ascontiguousarray(places, dtype=float)
    kernel.sums_at_places(columns, places, caps, found, *sizes, cap, scale, 1.0, 0.0)
    return found


def brute_force(points, places, k, cap=1.0):
    with np.errstate(all="ignore"):
        squared = np.zeros((len(places), len(points)))
        for axis in range(points.shape[1]):
            squared += (places[:, axis, None] - points[:, axis]) ** 2
        nearest = np.sort(squared, axis=1)[:, :k]
        whole = np.rint(np.minimum(np.sqrt(nearest), cap) * (TOPS[0] / cap))
    return np.array([np.minimum(whole, top).sum(axis=1) for top in TOPS]).astype(np.int64)


def weighted_sums_at(kernel, points, weights, places, target, cap=1.0):
    """The sums of the nearest points, times weights up to the target, for each cap."""
    (n, d), found = points.shape, np.empty((len(TOPS), 2, len(places)), dtype=np.int64)
    columns = np.array(points.T, dtype=float, order="C")
    caps, scale = np.array(TOPS, dtype=float), TOPS[0] / cap
    sizes = n, d, len(places), len(TOPS), 1
    places = np.ascontiguousarray(places, dtype=float)
    kernel.weighted_sums_at_places(
        columns, weights, places, caps, found, *sizes, target, cap, scale, 1.0
    )
    return (found[:, 0] << 20) + found[:, 1]


def weighted_brute_force(points, weights, places, target, cap=1.0):
    found = np.zeros((len(TOPS), len(places)), dtype=np.int64)
    for j, place in enumerate(places):
        with np.errstate(all="ignore"):
            squared = np.zeros(len(points))
            for axis in range(points.shape[1]):
                squared += (place[axis] - points[:, axis]) ** 2
            whole = np.rint(np.minimum(np.sqrt(squared), cap) * (TOPS[0] / cap)).astype(int)
        left = target
        for i in np.argsort(whole, kind="stable"):
            taken = min(int(weights[i]), left)
            left -= taken
            found[:, j] += [min(int(whole[i]), top) * taken for top in TOPS]
    return found


def awkward(rng):
    """Points and places: spread, copies, on a line, and finite ones whose squares overflow."""
    n, n_places, d = rng.integers(1, 60), rng.integers(1, 90), rng.integers(1, 5)
    kinds = (
        lambda m: rng.uniform(size=(m, d)),
        lambda m: np.full((m, d), 0.4),
        lambda m: rng.integers(0, 3, (m, d)) / 2.0,
        lambda m: rng.choice([0.0, 1e200, -1e200, 1e154, 1e308, -1e308, 5e-324], (m, d)),
        lambda m: np.where(rng.random((m, d)) < 0.9, rng.uniform(size=(m, d)), 1e250),
        lambda m: rng.uniform(1e199, 1e200, (m, d)),
    )
    first, second = rng.integers(len(kinds), size=2)
    return kinds[first](n), kinds[second](n_places), int(rng.integers(1, n + 1))


def lattice_sums_at(kernel, counts, offsets, levels, starts, target, is_wide):
    """The sums of the nearest points at cells of a row, counted in windows of three cells."""
    width, tops = 3, np.array(TOPS)
    ends = np.append(np.flatnonzero(np.diff(levels)) + 1, len(levels))
    occupied = np.array([counts[i : i + width].any() for i in range(len(counts))])
    found = np.empty((len(TOPS), 2, len(starts), width), dtype=np.int64)
    arrays = counts.astype(np.int64 if is_wide else np.int32), occupied, offsets, ends
    sizes = len(counts), len(offsets), len(ends), 1, width, len(starts), len(tops), is_wide
    kernel.lattice_sums(
        *arrays, levels[ends - 1], np.zeros(1, dtype=np.int64), starts, tops, found,
        *sizes, target, 4 if is_wide else 0,
    )  # fmt: skip
    return (found[:, 0] << 4) + found[:, 1] if is_wide else found[:, 0]


def lattice_brute_force(counts, offsets, levels, starts, target):
    found = np.zeros((len(TOPS), len(starts), 3), dtype=np.int64)
    for cap, top in enumerate(TOPS):
        for t, j in np.ndindex(len(starts), 3):
            left = target
            for offset, level in zip(offsets, levels, strict=True):
                taken = min(int(counts[starts[t] + j + offset]), left)
                left -= taken
                found[cap, t, j] += taken * min(int(level), top)
            found[cap, t, j] += left * top
    return found


def check_lattice(kernel, rng):
    """Compare one call for counts on a lattice with brute force."""
    n_offsets, n_tiles = rng.integers(1, 30), rng.integers(1, 5)
    starts, offsets = rng.integers(0, 20, n_tiles), rng.integers(0, 30, n_offsets)
    levels = np.sort(rng.integers(0, rng.choice([8, TOPS[0]]), n_offsets))
    counts = rng.integers(0, 50, 19 + 29 + 3) * (rng.random(51) < rng.random())
    target = int(rng.integers(1, 400))
    expected = lattice_brute_force(counts, offsets, levels, starts, target)
    for is_wide in (False, True):
        found = lattice_sums_at(kernel, counts, offsets, levels, starts, target, is_wide)
        np.testing.assert_array_equal(found, expected)


def check(kernel, n_calls, seed=0):
    """Compare calls with brute force, and return their number."""
    rng = np.random.default_rng(seed)
    for _ in range(n_calls):
        points, places, k = awkward(rng)
        # Within the longer one, squares overflow as well.
        cap = rng.choice([1.0, 1e200])
        np.testing.assert_array_equal(
            sums_at(kernel, points, places, k, cap), brute_force(points, places, k, cap)
        )
        weights = rng.integers(1, rng.choice([2, 1 << 22]), len(points)).astype(float)
        target = max(int(weights.sum() * rng.random()), 1)
        given = points, weights, places[:9], target, cap
        np.testing.assert_array_equal(
            weighted_sums_at(kernel, *given), weighted_brute_force(*given)
        )
        rows = rng.choice([rng.random(), np.inf, 1e308, 0.0], (3, len(points)))
        expected = np.sort(rows, axis=1)[:, :k]
        kernel.smallest_first(rows, *rows.shape, k)
        check_lattice(kernel, rng)
        np.testing.assert_array_equal(np.sort(rows[:, :k], axis=1), expected)
    # Twice a coordinate is not a number of this type, and a tile has places with this one alone.
    points = np.array([[0.0], [1e308]])
    places = np.repeat(points, 90, axis=0)
    np.testing.assert_array_equal(sums_at(kernel, points, places, 1), 0)
    # Samples tell where a rank is in longer arrays.
    for n in (5000, 9000):
        points = rng.choice([0.0, 0.5, 1e200], (n, 2)) + rng.uniform(size=(n, 2))
        places = rng.uniform(size=(300, 2))
        for k in (1, n // 3, n):
            np.testing.assert_array_equal(
                sums_at(kernel, points, places, k), brute_force(points, places, k)
            )
    return n_calls


if __name__ == "__main__":
    print(check(loaded(sys.argv[1]), int(sys.argv[2])), "calls agree")

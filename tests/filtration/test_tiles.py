"""Tiles give exactly the integers of brute force, for all ties, caps and memory limits."""

import numpy as np
import pytest
from scipy.spatial import KDTree

from sklearn_dptda.filtration._nearest_sums import FixedPointPower, nearest_squared, tiled_sums
from tests.filtration.test_measure import grid_nodes


def brute_force(points, axes, power):
    nodes = grid_nodes(axes)
    squared = sum((nodes[:, axis, None] - points[:, axis]) ** 2 for axis in range(len(axes)))
    squared.partition(power.k - 1, axis=1)
    return power.integers(squared[:, : power.k]).sum(axis=1)


def clouds(d, rng):
    """Spread, crowded in a corner, on the nodes themselves (ties), copies of one point."""
    yield rng.uniform(size=(300, d))
    yield np.r_[1e-3 * rng.uniform(size=(280, d)), rng.uniform(size=(20, d))]
    yield rng.integers(0, 9, size=(300, d)) / 8
    yield np.full((60, d), 0.4)


@pytest.mark.laws
@pytest.mark.parametrize(("d", "p"), [(1, 2.5), (2, 1), (3, 2.5), (4, 1)])
def test_tiled_sums_equal_brute_force(d, p, rng):
    axes = tuple(map(np.linspace, np.zeros(d), np.arange(1.0, d + 1), (31, 13, 5, 2)[:d]))
    for points in clouds(d, rng):
        # Few neighbours are found by a tree, many by a scan. The cases include one neighbour, and
        # all.
        for k in {1, 3, len(points) // 5, len(points) - 1, len(points)}:
            for cap in (0.05, 0.4, 10.0):
                power = FixedPointPower(cap, p, k)
                expected = brute_force(points, axes, power)
                for memory in (256.0, 0.02) if cap == 0.4 else (256.0,):
                    found = tiled_sums(points, axes, power, memory)
                    assert found.dtype == np.int64
                    np.testing.assert_array_equal(found.ravel(), expected)


@pytest.mark.parametrize("n", [8192, 8193, 20_000])
def test_whole_sums_beyond_floats_are_exact(n):
    # All but one of the points lie beyond the cap, so that the sum is odd and as large as can be.
    power = FixedPointPower(1.0, 1, n)
    whole = np.full((2, n), 2.0**power.bits)
    whole[:, -1] -= 1
    assert power.whole_sums(whole).tolist() == [n * 2**power.bits - 1] * 2


class RoundingTree:
    """A tree that takes distances for equal that differ in their last digits, and any of them."""

    def __init__(self, points):
        self.points, self.tree = points, KDTree(points)

    def query(self, queries, n):
        distances = np.linalg.norm(queries[:, None] - self.points, axis=2)
        places = np.lexsort((-distances, np.round(distances, 12)), axis=1)[:, :n]
        return np.take_along_axis(distances, places, axis=1), places

    def query_ball_point(self, query, reach):
        return self.tree.query_ball_point(query, reach)


@pytest.mark.parametrize("k", [1, 3, 10, 40])
def test_nearest_squared_ignores_rounding_of_tree(k, rng):
    queries = rng.uniform(size=(30, 2))
    # Many points are nearly as far from the first query as the k-th.
    angles = np.linspace(0, 6, 60)
    ring = queries[0] + np.c_[np.cos(angles), np.sin(angles)] * (
        1 + rng.integers(0, 9, (60, 1)) / 2**50
    )
    points = np.r_[ring, rng.integers(0, 5, (60, 2)) / 4, rng.uniform(size=(20, 2))]
    found = nearest_squared(points, RoundingTree(points), queries, k)
    expected = nearest_squared(points, None, queries, k)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(expected, axis=1))


@pytest.mark.parametrize("shift", [0.0, 1e6, -1e9])
def test_tiled_sums_far_from_origin_are_exact(shift, rng):
    points = shift + rng.uniform(size=(400, 2))
    axes = tuple(map(np.linspace, np.full(2, shift), np.full(2, shift + 1.0), (30, 30)))
    for k in (2, 80, 400):
        power = FixedPointPower(0.7, 1, k)
        found = tiled_sums(points, axes, power, 256.0)
        np.testing.assert_array_equal(found.ravel(), brute_force(points, axes, power))


def test_tiled_sums_with_tiny_caps_are_exact(rng):
    # Nodes and points coincide except for the last digits of large coordinates.
    axes = tuple(map(np.linspace, np.array([1e10]), np.array([1e10 + 0.6747]), (272,)))
    points = rng.choice(axes[0], 100)[:, None]
    for cap in (1e-8, 1e-6, 1e-3):
        for k in (1, 10, 60):
            power = FixedPointPower(cap, 1, k)
            found = tiled_sums(points, axes, power, 256.0)
            np.testing.assert_array_equal(found.ravel(), brute_force(points, axes, power))

"""Tiles give exactly the integers of brute force, for all ties, caps and memory limits."""

import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import KDTree

import sklearn_dptda.filtration
from sklearn_dptda import DTMFiltration
from sklearn_dptda.filtration import LatticeHistogram, _nearest_sums
from sklearn_dptda.filtration._cloud import WEIGHT_BITS
from sklearn_dptda.filtration._lattice_sums import lattice_sums
from sklearn_dptda.filtration._nearest_sums import (
    FixedPointPower,
    grid_sums,
    nearest_squared,
    scattered_sums,
)
from sklearn_dptda.privacy import _warnings
from tests._refusals import refuses
from tests.filtration import _kernel_calls
from tests.filtration.test_measure import grid_nodes


@pytest.fixture(params=["compiled", "NumPy"])
def sums(request, monkeypatch):
    """The compiled sums, and those in NumPy for computers without a compiler."""
    if request.param == "NumPy":
        monkeypatch.setattr(_nearest_sums, "compiled", None)
    elif _nearest_sums.compiled is None:
        pytest.skip("the sums were not compiled when this package was installed")
    return request.param


def squares(points, nodes):
    return sum((nodes[:, axis, None] - points[:, axis]) ** 2 for axis in range(points.shape[1]))


def sums_of_nearest(squared, power):
    """The sums of the whole distances of the nearest points, for each cap."""
    whole = np.sort(power.integers(squared), axis=1)[:, : power.k]
    return np.array([np.minimum(whole, top).sum(axis=1) for top in power.tops])


def brute_force(points, axes, power):
    return sums_of_nearest(squares(points, grid_nodes(axes)), power)[0]


def clouds(d, rng):
    """Spread, crowded in a corner, on the nodes themselves (ties), copies of one point."""
    yield rng.uniform(size=(300, d))
    yield np.r_[1e-3 * rng.uniform(size=(280, d)), rng.uniform(size=(20, d))]
    yield rng.integers(0, 9, size=(300, d)) / 8
    yield np.full((60, d), 0.4)


@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize(("d", "refinement"), [(1, 3), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1)])
def test_lattice_sums_equal_brute_force(d, refinement, people, sums, rng, monkeypatch):
    n_nodes = [(300,), (23, 18), (7, 6, 19), (4, 3, 5, 2)][d - 1]
    shape = [(n - 1) * refinement + 1 for n in n_nodes]
    high = np.arange(1.0, d + 1)
    for points in clouds(d, rng):
        histogram = LatticeHistogram((np.zeros(d), high), shape, people=people)
        histogram.update(points, rng.integers(0, 20, len(points)) if people else None)
        axes = [np.arange(size) for size in shape]
        cells, spacing = grid_nodes(axes), high / (np.array(shape) - 1)
        nodes = cells[(cells % refinement == 0).all(axis=1)]
        for share, cap in ((0.1, 0.4), (1.0, 0.4), (0.5, 9.0)):
            k = max(1, int(share * histogram.n_points))
            power = FixedPointPower(cap, 1, k, (0.5, 0.25))
            # All places would make the tables of distances large.
            some = rng.choice(len(nodes), min(len(nodes), 15), replace=False)
            steps = (cells - nodes[some, None]) * spacing
            levels = power.integers((steps**2).sum(axis=2))
            found = lattice_sums(histogram, refinement, power)
            expected = sums_of_counts(levels, histogram.counts.ravel(), power, people)
            for (whole, parts), top in zip(found, expected, strict=True):
                values = whole if parts is None else whole + parts
                # Sums of fractions are rounded to floats.
                rounding = 2.0**-51 if people else 0
                np.testing.assert_allclose(values.ravel()[some], top, rtol=rounding)
            if sums == "compiled":
                monkeypatch.setattr(_nearest_sums, "compiled", None)
                np.testing.assert_equal(found, lattice_sums(histogram, refinement, power))
                monkeypatch.undo()


def sums_of_counts(levels, counts, power, people):
    """Sum the distances of the nearest counts, up to ``power.k`` of them, for each cap."""
    bits = WEIGHT_BITS if people else 0
    order = np.argsort(levels, axis=1)
    levels, counts = np.take_along_axis(levels, order, axis=1), counts[order]
    before = np.cumsum(counts, axis=1) - counts
    taken = np.clip((power.k << bits) - before, 0, counts).astype(object)
    for top in power.tops:
        totals = (np.minimum(levels, top).astype(object) * taken).sum(axis=1)
        yield np.array([total / 2**bits if people else total for total in totals])


@pytest.mark.laws
@pytest.mark.parametrize(("d", "p"), [(1, 2.5), (1, 1), (2, 1), (2, 2), (3, 2.5), (3, 2), (4, 1)])
def test_grid_sums_equal_brute_force(d, p, sums, rng):
    axes = tuple(map(np.linspace, np.zeros(d), np.arange(1.0, d + 1), (31, 13, 5, 2)[:d]))
    for points in clouds(d, rng):
        # Few neighbours are found by a tree, many by a scan. The cases include one neighbour, and
        # all.
        for k in {1, 3, len(points) // 5, len(points) - 1, len(points)}:
            for cap in (0.05, 0.4, 10.0):
                power = FixedPointPower(cap, p, k)
                expected = brute_force(points, axes, power)
                for memory in (256.0, 0.02) if cap == 0.4 else (256.0,):
                    found = grid_sums(points, axes, power, memory)
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


def far_from_origin(shift, rng):
    axes = tuple(map(np.linspace, np.full(2, shift), np.full(2, shift + 1.0), (30, 30)))
    return shift + rng.uniform(size=(400, 2)), axes


def on_nodes_at_large_coordinates(low, rng):
    """Nodes and points coincide except for the last digits of large coordinates."""
    axes = (np.linspace(low, low + 0.6747, 272),)
    return rng.choice(axes[0], 100)[:, None], axes


@pytest.mark.parametrize(
    ("make", "place", "caps", "ks"),
    [
        *((far_from_origin, shift, (0.7,), (2, 80, 400)) for shift in (0.0, 1e6, -1e9)),
        (on_nodes_at_large_coordinates, 1e10, (1e-8, 1e-6, 1e-3), (1, 10, 60)),
    ],
)
def test_grid_sums_of_large_coordinates_are_exact(make, place, caps, ks, sums, rng):
    points, axes = make(place, rng)
    for cap, k in itertools.product(caps, ks):
        power = FixedPointPower(cap, 1, k)
        found = grid_sums(points, axes, power, 256.0)
        np.testing.assert_array_equal(found.ravel(), brute_force(points, axes, power))


def test_sums_of_many_points_and_caps_equal_brute_force(sums, rng):
    # So many points that ranks are looked for in a sample, and sums over several caps that exceed
    # 53 bits.
    points = np.r_[rng.normal(0.5, 0.02, (9000, 2)), rng.uniform(size=(11_000, 2))]
    axes = (np.linspace(0, 1, 13), np.linspace(0, 1, 7))
    for k in (600, 15_000):
        power = FixedPointPower(0.7, 1, k, (0.3, 0.1, 0.01))
        found = grid_sums(points, axes, power, 256.0).reshape(4, -1)
        expected = sums_of_nearest(squares(points, grid_nodes(axes)), power)
        np.testing.assert_array_equal(found, expected)
        assert power.tops == [int(np.ldexp(share, power.bits)) for share in (1, 0.3, 0.1, 0.01)]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("d", [2, 10])
def test_scattered_sums_equal_those_of_whole_numbers(d, p, sums, rng):
    # Groups of places that coincide, and points that lie beyond the cap from all places.
    places = np.repeat(rng.uniform(size=(60, d)), 50, axis=0)
    points = np.r_[rng.uniform(size=(400, d)), rng.uniform(5, 9, size=(100, d))]
    for k in (40, 300, 450, 500):
        power = FixedPointPower(0.9, p, k, (0.5,))
        squared = np.concatenate(
            [part for _, part in _nearest_sums.whole_squares(points, places, 0.9, 2, 256.0)]
        )
        found = scattered_sums(points, places, power, 256.0)
        np.testing.assert_array_equal(found, sums_of_nearest(squared, power))


def test_places_whose_coordinates_are_neighbours_are_divided():
    for low in (1.0, np.nextafter(1.0, 2.0)):
        places = np.repeat([[low], [np.nextafter(low, 2.0)]], 5, axis=0)
        parts = list(_nearest_sums._neighbouring(places, np.arange(10), 5))
        assert [len(part) for part in parts] == [5, 5]


@pytest.mark.parametrize("n_places", [1, 40])
def test_points_that_coincide_with_places_are_counted(n_places, sums, rng):
    # Neither the tile nor the k-th distance has any extent.
    places = np.repeat([[3.0, 1.0]], n_places, axis=0)
    points = np.r_[np.repeat([[3.0, 1.0]], 30, axis=0), rng.uniform(0, 4, (70, 2))]
    for k in (1, 30, 31, 100):
        power = FixedPointPower(2.0, 1, k, (0.3,))
        found = scattered_sums(points, places, power, 256.0)
        expected = sums_of_nearest(squares(points, places), power)
        # Points are moved to a lattice with steps below 2**-20.
        assert np.abs(found - expected).max() <= k * 2.0 ** (power.bits - 19)
        assert np.ptp(found, axis=1).max() == 0


@pytest.mark.parametrize("n", [1, 50, 5000])
def test_smallest_values_of_rows(n, sums, rng):
    rows = rng.integers(0, 40, (30, n)) / 8
    rows[0] = np.arange(n)
    rows[1, ::2] = np.inf
    # The distances of a place from the points of a path.
    rows[2] = np.abs(np.arange(n) - n / 3)
    for k in {1, n // 3 + 1, n}:
        found = np.sort(_nearest_sums._smallest(rows.copy(), k), axis=1)
        np.testing.assert_array_equal(found, np.sort(rows, axis=1)[:, :k])


def test_compiled_sums_refuse_arrays_of_other_sizes():
    compiled = pytest.importorskip("sklearn_dptda.filtration._nearest_kernel")
    points, places, tops = np.zeros((2, 5)), np.zeros((3, 2)), np.ones(1)
    sums, good = np.zeros((1, 3), dtype=np.int64), (5, 2, 3, 1, 2)

    def changed(numbers, place, wrong):
        return *numbers[:place], wrong, *numbers[place + 1 :]

    for change in ((0, 6), (2, 4), (3, 2), (4, 6), (1, 0)):
        numbers = *changed(good, *change), 1, 1.0, 1.0, 1.0, 0.0
        refuses("size", compiled.sums_at_places, points, places, tops, sums, *numbers)
    compiled.sums_at_places(points, places, tops, sums, *good, 1, 1.0, 1.0, 1.0, 0.0)
    weights, halves = np.ones(5), np.zeros((1, 2, 3), dtype=np.int64)
    arrays = points, weights, places, tops, halves
    good = 5, 2, 3, 1, 1, 5.0, 1.0, 1.0, 1.0
    for change in ((5, 6.0), (5, np.nan), (0, 6), (1, 0), (3, 2)):
        message = "target" if change[0] == 5 else "size"
        refuses(message, compiled.weighted_sums_at_places, *arrays, *changed(good, *change))
    compiled.weighted_sums_at_places(*arrays, *good)
    one = np.zeros(1, dtype=np.int64)
    lattice = np.ones(9, dtype=np.int32), np.ones(9, dtype=bool), one, one + 1, one, one
    found, good = np.zeros((1, 2, 1, 4), dtype=np.int64), (9, 1, 1, 1, 4, 1, 1, False, 3, 0)
    compiled.lattice_sums(*lattice, one + 5, one + 8, found, *good)
    np.testing.assert_array_equal(found[0, 0], 2 * 8)
    for start in (6, -1):
        refuses("outside", compiled.lattice_sums, *lattice, one + start, one + 8, found, *good)
    for change in ((0, 8), (1, 2), (4, 5), (4, 300), (6, 33), (8, 0), (8, 2**31), (9, 22)):
        numbers = changed(good, *change)
        refuses("size", compiled.lattice_sums, *lattice, one + 5, one + 8, found, *numbers)
    refuses("size", compiled.smallest_first, np.zeros(5), 1, 6, 2)
    # What is no number ends a call, too.
    compiled.smallest_first(np.full((1, 5), np.nan), 1, 5, 2)
    fixed = np.zeros(5)
    fixed.setflags(write=False)
    refuses(None, compiled.smallest_first, fixed, 1, 5, 2, error=(ValueError, BufferError))


def test_a_long_computation_is_announced_before_it_begins(monkeypatch):
    estimator = DTMFiltration(0.2, bounds=(0, 1), resolution=401, method="exact").fit([np.eye(2)])
    monkeypatch.setattr(DTMFiltration, "_one", lambda self, *_: pytest.fail("it began"))
    with (
        pytest.warns(UserWarning, match=r"take about \d+ s\. Lower resolution") as caught,
        pytest.raises(pytest.fail.Exception, match="it began"),
    ):
        estimator.transform([np.zeros((90_000, 2))])
    assert caught[0].filename == __file__


@pytest.mark.parametrize("groups", [None, True])
def test_a_long_computation_on_landmarks_is_announced(groups, monkeypatch, rng):
    sites = rng.uniform(size=(12, 4))
    cloud = [each[None] for each in sites] if groups else sites
    estimator = DTMFiltration(0.2, landmarks=sites, groups=groups).fit([cloud])
    estimator.transform([cloud])
    monkeypatch.setattr(_warnings, "_LONG", 1e-6)
    with pytest.warns(UserWarning, match=r"take about \d+ s\. Use fewer landmarks"):
        estimator.transform([cloud])


def test_a_build_without_the_compiled_sums_says_so(monkeypatch):
    estimator = DTMFiltration(0.2, bounds=(0, 1), resolution=5).fit([np.eye(2)])
    monkeypatch.setattr(_nearest_sums, "compiled", None)
    with pytest.warns(UserWarning, match="compiled sums of distances are missing") as caught:
        estimator.transform([np.eye(2)])
    assert caught[0].filename == __file__


# Compiled sums.


FOLDER = Path(sklearn_dptda.filtration.__file__).parent
SOURCES = FOLDER / "_nearest_kernel.c", FOLDER / "_lattice_kernel.c"


@pytest.mark.skipif(_nearest_sums.compiled is None, reason="the sums were not compiled here")
def test_compiled_sums_equal_brute_force_even_if_squares_overflow():
    assert _kernel_calls.check(_nearest_sums.compiled, 300) == 300


def sanitized(sources, folder):
    """Compile sources with sanitizers; return the module and the library to load before it."""
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the sanitizers of gcc are used on Linux, and there is none here")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not os.path.isabs(library):
        pytest.skip("gcc has no sanitizers here: install its package libasan")
    module = folder / "_nearest_kernel.so"
    options = ["-O1", "-g", "-ffp-contract=off", "-shared", "-fPIC", "-fno-sanitize-recover=all"]
    options += ["-fsanitize=address,undefined", "-DPy_LIMITED_API=0x030B0000"]
    include = sysconfig.get_path("include")
    subprocess.run(
        [compiler, *options, f"-I{include}", f"-I{FOLDER}", *sources, "-o", module, "-lm"],
        check=True,
    )
    return module, library


def run_sanitized(sources, folder, n_calls):
    module, library = sanitized(sources, folder)
    environment = {**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run(
        [sys.executable, _kernel_calls.__file__, str(module), str(n_calls)],
        env=environment, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip


@pytest.mark.nightly
def test_compiled_sums_pass_sanitizers(tmp_path):
    run = run_sanitized(SOURCES, tmp_path, 3000)
    assert run.returncode == 0 and "3000 calls agree" in run.stdout, run.stderr[-3000:]


@pytest.mark.nightly
def test_sanitizers_detect_a_write_beyond_an_array(tmp_path):
    source = SOURCES[0].read_text(encoding="utf-8")
    right = "work = PyMem_Malloc(3 * t.n * sizeof *work);"
    assert source.count(right) == 1
    twin = tmp_path / "twin.c"
    wrong = "work = malloc((3 * t.n - 1) * sizeof *work);"
    twin.write_text(f"#include <stdlib.h>\n{source.replace(right, wrong)}", encoding="utf-8")
    run = run_sanitized((twin, SOURCES[1]), tmp_path, 50)
    assert run.returncode != 0 and "AddressSanitizer" in run.stderr

"""The distance to a measure, filtrations by it and by kernel distances, and their histograms."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from gudhi.point_cloud.dtm import DistanceToMeasure

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    KernelDistanceFiltration,
    distance_to_measure,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.filtration import LatticeHistogram
from tests._refusals import refuses


def grid_nodes(axes):
    """All nodes of a grid, the last axis fastest."""
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([m.ravel() for m in mesh], axis=1)


@pytest.mark.parametrize(("p", "m"), [(1, 0.3), (2, 0.01), (3.5, 1.0), (3.5, 0.3)])
def test_distance_to_measure_equals_gudhi(p, m, rng):
    X, query = rng.normal(size=(400, 3)), rng.normal(size=(50, 3))
    expected = DistanceToMeasure(max(int(np.ceil(m * 400)), 1), q=p).fit(X).transform(query)
    np.testing.assert_allclose(distance_to_measure(X, query, m, p), expected, rtol=1e-10)


def test_distance_to_measure_ignores_memory(rng):
    X, query = rng.normal(size=(500, 2)), rng.normal(size=(300, 2))
    np.testing.assert_array_equal(
        distance_to_measure(X, query, 0.3), distance_to_measure(X, query, 0.3, memory=0.01)
    )


@pytest.mark.parametrize(("d", "p"), [(1, 2), (2, 1), (3, 2)])
def test_dtm_filtration_is_capped_distance_to_measure(d, p, rng):
    X = rng.uniform(size=(200, d))
    item = DTMFiltration(
        0.2, p, bounds=(0, 1), resolution=7, max_distance=np.inf, method="exact"
    ).fit_transform([X])[0]
    expected = distance_to_measure(X, grid_nodes(item.axes), 0.2, p)
    upper = np.sqrt(d) / 2
    np.testing.assert_allclose(item.values.ravel(), np.minimum(expected, upper), atol=3e-6)


@pytest.mark.parametrize(("d", "p"), [(1, 2), (2, 3.5), (2, 1), (3, 1)])
def test_dtm_filtration_classes_die_by_half_diameter(d, p, rng):
    side = rng.uniform(0.5, 2, d)
    length = np.linalg.norm(side)
    # Points in opposite corners, and anywhere: the classes that live longest.
    corners = rng.integers(0, 2, (12, d)) * side
    for X in (corners, rng.random((40, d)) * side, np.r_[np.zeros((6, d)), np.tile(side, (6, 1))]):
        # The sublevel sets from half the diameter on are star-shaped about the centre.
        ends = rng.random((300, d)) * side
        inner = side / 2 + rng.random((300, 1)) * (ends - side / 2)
        at_ends, at_inner = (distance_to_measure(X, x, 0.3, p) for x in (ends, inner))
        assert (at_inner <= np.maximum(at_ends, length / 2) * (1 + 1e-12)).all()
        filtration = DTMFiltration(0.3, p, (np.zeros(d), side), resolution=9, max_distance=np.inf)
        (function,) = filtration.fit_transform([X])
        assert function.upper == pytest.approx(length / 2)
    # With points in two opposite corners, the component of the second one dies there, except for
    # a step of the grid.
    births, deaths = CubicalPersistence(0).fit_transform([function])[0].T
    assert births == pytest.approx([0.0, 0.0])
    assert deaths == pytest.approx([length / 2 - length / 16] * 2, abs=length / 15.9)


@pytest.mark.parametrize(
    ("d", "max_distance"), [(1, 0.2), (2, None), (2, np.inf), (3, 0.2), (3, None)]
)
def test_dtm_filtration_lattice_stays_within_stated_error(d, max_distance, rng):
    X = rng.uniform(size=(300, d))
    options = {"bounds": (0, 1), "resolution": 9, "max_distance": max_distance}
    exact = DTMFiltration(0.1, method="exact", **options).fit_transform([X])[0]
    lattice = DTMFiltration(0.1, method="lattice", **options).fit_transform([X])[0]
    error = np.abs(exact.values - lattice.values).max()
    assert 0 < error <= lattice.approximation_error
    assert lattice.sensitivity == exact.sensitivity


@pytest.mark.parametrize("estimator", [DTMFiltration(0.1), KernelDistanceFiltration(0.4)])
def test_lattice_histogram_of_parts_adds_up(estimator):
    X = make_two_circles(1000, random_state=0)
    estimator.set_params(bounds=(-3, 3.5), resolution=21, method="lattice").fit([X])
    whole = estimator.make_histogram(X)
    merged = sum(estimator.make_histogram(part) for part in np.array_split(X, 7))
    streamed = estimator.make_histogram(part for part in np.array_split(X, 7))
    listed = estimator.make_histogram(list(np.array_split(X, 7)))
    results = estimator.transform([X, whole, merged, streamed, listed])
    for item in results[1:]:
        np.testing.assert_array_equal(item.values, results[0].values)
        assert item.n_points == 1000 and item.sensitivity == results[0].sensitivity
    other = LatticeHistogram((-3, 3.5), (5, 5)).update(X)
    refuses("same lattice", lambda: merged + other)
    refuses("make_histogram", estimator.transform, [other])


def test_kernel_distance_filtration_equals_definition(rng):
    X = rng.uniform(size=(60, 2))
    item = KernelDistanceFiltration(0.3, bounds=(0, 1), resolution=6, method="exact").fit_transform(
        [X]
    )[0]
    nodes = grid_nodes(item.axes)

    def kernel(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2 * 0.3**2))

    squared = 1 + kernel(X, X).mean() - 2 * kernel(nodes, X).mean(axis=1)
    np.testing.assert_allclose(item.values.ravel(), np.sqrt(squared), atol=1e-10)
    lattice = KernelDistanceFiltration(
        0.3, bounds=(0, 1), resolution=6, method="lattice", refinement=20
    ).fit_transform([X])[0]
    assert np.abs(lattice.values - item.values).max() <= lattice.approximation_error


def test_filtrations_clip_points_outside(rng):
    X = rng.normal(size=(100, 2)) * 3
    options = {"bounds": (-1, 1), "resolution": 5}
    for estimator in (DTMFiltration(0.2, **options), KernelDistanceFiltration(0.5, **options)):
        a, b = estimator.fit_transform([X, np.clip(X, -1, 1)])
        np.testing.assert_array_equal(a.values, b.values)


def test_dtm_filtration_values_are_frozen(filtration):
    with pytest.raises(ValueError, match="read-only"):
        filtration.values[0, 0] = 1.0
    with pytest.raises(AttributeError):
        filtration.sensitivity = 0.0


def test_dtm_filtration_auto_is_exact_where_lattice_is_coarse(rng):
    # A lattice of 41**3 nodes is cheaper under this cap, and its error is ten sensitivities.
    X = rng.uniform(size=(5000, 3))
    options = {"bounds": (0, 1), "resolution": 21, "max_distance": 0.1}
    auto, lattice = (
        DTMFiltration(0.1, method=method, **options).fit_transform([X])[0]
        for method in ("auto", "lattice")
    )
    assert auto.approximation_error == 0
    assert lattice.approximation_error > 10 * lattice.sensitivity


def test_dtm_filtration_auto_takes_cheaper_method():
    estimator = DTMFiltration(0.01, bounds=(0, 1), resolution=11, refinement=20).fit([np.eye(2)])
    few, many = (estimator._choose(n)[1] for n in (100, 100_000))
    assert many.sensitivity < many.lattice_error < few.sensitivity
    assert [estimator._choose(n)[2] for n in (100, 10**9)] == [False, True]


# Histograms counted by a database, whose lines are counts at nodes.


SHAPE, BOX = (9, 6), ([-1.1, 0.0], [1.0, 0.7])
# Points at equal distances from two nodes, which databases round differently, are left out.
COUNT = """
SELECT ROUND((MAX(MIN(x, 1.0), -1.1) + 1.1) / 2.1 * 8), ROUND(MAX(MIN(y, 0.7), 0.0) / 0.7 * 5),
    COUNT(*), SUM(x < -1.1 OR x > 1.0 OR y < 0.0 OR y > 0.7)
FROM points GROUP BY 1, 2
"""


def test_counts_of_a_database_equal_those_of_points():
    X = np.random.default_rng(0).normal(0, 1, (400, 2))
    exact = LatticeHistogram(BOX, SHAPE).update(X)
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE points (x REAL, y REAL)")
        database.executemany("INSERT INTO points VALUES (?, ?)", X.tolist())
        counted = LatticeHistogram(BOX, SHAPE).update_counts(database.execute(COUNT))
    np.testing.assert_array_equal(counted.counts, exact.counts)
    assert (counted.n_clipped, counted.n_points) == (exact.n_clipped, len(X))
    assert exact.n_clipped > 100


def test_lattice_histogram_refuses_counts_off_lattice():
    histogram = LatticeHistogram(BOX, SHAPE)
    beside, broken = [(9, 1, 2, 0), (-1, 1, 2, 0)], [(None, 1, 2, 0), (0.5, 1, 2, 0)]
    wrong_counts = [(1, 1, 2, 3), (1, 1, 2, -1), (1, 1, np.inf, 0), (1, 1, 3.7, 0)]
    for line in beside + broken + wrong_counts:
        refuses("no counts on this lattice", histogram.update_counts, [(1, 1, 2, 0), line])
    assert histogram.n_points == 0 and histogram.update_counts([]).n_points == 0

"""Histograms counted by a database equal those of NumPy, with ties and clipped points."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from sklearn_dptda.filtration import LatticeHistogram

# The server that the tests of ledgers use.
from tests.privacy.conftest import fresh_database, postgresql  # noqa: F401

SHAPE, BOX = (9, 6), ([-1.1, 0.0], [1.0, 0.7])


def cloud():
    """Points near nodes, halfway between nodes, and outside."""
    rng = np.random.default_rng(0)
    lattice = LatticeHistogram(BOX, SHAPE)
    steps = (lattice.high - lattice.low) / (np.array(SHAPE) - 1)
    ties = lattice.low + steps * (rng.integers(0, 8, (300, 2)) + 0.5)
    around = np.nextafter(ties, rng.choice([-np.inf, np.inf], ties.shape))
    return np.concatenate([rng.normal(0, 1, (400, 2)), ties, around, lattice.low[None]])


def check(query):
    X, histogram = cloud(), LatticeHistogram(BOX, SHAPE)
    exact = LatticeHistogram(BOX, SHAPE).update(X)
    counted = histogram.update_counts(query(X.tolist(), histogram.sql("points", ["x", 'y"'])))
    np.testing.assert_array_equal(counted.counts, exact.counts)
    assert (counted.n_clipped, counted.n_points) == (exact.n_clipped, len(X))
    return exact


def test_lattice_histogram_sql_in_sqlite_equals_numpy():
    def query(rows, text):
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute('CREATE TABLE points (x REAL, "y""" REAL)')
            database.executemany("INSERT INTO points VALUES (?, ?)", rows)
            return database.execute(text).fetchall()

    assert check(query).n_clipped > 100


def test_lattice_histogram_sql_in_duckdb_equals_numpy():
    duckdb = pytest.importorskip("duckdb")

    def query(rows, text):
        with closing(duckdb.connect()) as database:
            database.execute('CREATE TABLE points (x DOUBLE, "y""" DOUBLE)')
            database.executemany("INSERT INTO points VALUES (?, ?)", rows)
            return database.execute(text).fetchall()

    check(query)


@pytest.mark.engines
def test_lattice_histogram_sql_in_postgresql_equals_numpy(fresh_database):  # noqa: F811
    psycopg = pytest.importorskip("psycopg")

    def query(rows, text):
        with psycopg.connect(fresh_database) as database, database.cursor() as cursor:
            cursor.execute('CREATE TABLE points (x DOUBLE PRECISION, "y""" DOUBLE PRECISION)')
            cursor.executemany("INSERT INTO points VALUES (%s, %s)", rows)
            return cursor.execute(text).fetchall()

    check(query)


def test_lattice_histogram_refuses_counts_off_lattice():
    histogram = LatticeHistogram(BOX, SHAPE)
    beside, broken = [(9, 1, 2, 0), (-1, 1, 2, 0)], [(None, 1, 2, 0), (0.5, 1, 2, 0)]
    wrong_counts = [(1, 1, 2, 3), (1, 1, 2, -1)]
    for line in beside + broken + wrong_counts:
        with pytest.raises(ValueError, match="no counts on this lattice"):
            histogram.update_counts([(1, 1, 2, 0), line])
    assert histogram.n_points == 0


def test_lattice_histogram_takes_no_counts_and_refuses_wrong_columns():
    assert LatticeHistogram(BOX, SHAPE).update_counts([]).n_points == 0
    with pytest.raises(ValueError, match="columns must name 2"):
        LatticeHistogram(BOX, SHAPE).sql("points", ["x"])

"""Histograms counted by a database, whose lines are counts at nodes."""

import sqlite3
from contextlib import closing

import numpy as np

from sklearn_dptda.filtration import LatticeHistogram
from tests._refusals import refuses

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

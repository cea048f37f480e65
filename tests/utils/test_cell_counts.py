"""Sparse counts add up to those of all rows, in all pieces and orders."""

from functools import reduce
from operator import add

import numpy as np
import pytest

from sklearn_dptda.rows._private_cubes import CellCounts
from sklearn_dptda.rows._rows import Rows, Tally
from tests._refusals import refuses


@pytest.mark.parametrize(("d", "n_parts"), [(1, 2), (1, 60), (3, 1), (3, 9)])
def test_cell_counts_add_up_in_any_order(d, n_parts, rng):
    cells = rng.integers(0, 7, size=(500, d))
    expected = np.unique(cells, axis=0, return_counts=True)
    parts = [CellCounts.of(part) for part in np.array_split(cells, n_parts)]
    for order in (parts, parts[::-1]):
        assert all(map(np.array_equal, reduce(add, order).merged(), expected))
    coarse = reduce(add, parts).coarser(1).merged()
    assert all(map(np.array_equal, coarse, np.unique(cells >> 1, axis=0, return_counts=True)))


def test_cell_counts_merge_small_pieces_in_time(rng):
    total = CellCounts.of(np.arange(1000)[:, None])
    for _ in range(200):
        total += CellCounts.of(rng.integers(0, 1000, size=(50, 1)))
        assert sum(len(counts) for _, counts in total.pieces) < 2 * 1000 + 50


def test_tally_says_what_was_refused_and_adds_to_nothing():
    good, bad = Tally(3, (np.ones(2), 1)), Tally.of(int, "no number")
    assert (good + 0).n_rows == (0 + good).n_rows == 3
    both = good + good
    assert both.n_rows == 6 and both.total[0].tolist() == [2, 2] and both.total[1] == 2
    for mixed in (good + bad, bad + good, sum([good, bad, good])):
        refuses("strings that are not numbers", mixed.checked)
    # Counts that do not add up are refused too, by value.
    assert (good + Tally(1, (np.ones(3), 1))).refused is not None


def test_rows_sum_mapped_and_selected_columns(rng):
    # Two batches.
    X = rng.normal(size=(40_000, 3))
    rows = Rows.of_array(X).map(np.sign).selected([2, 0])
    assert rows.n_features == 2
    assert (
        rows.sum(lambda part: (part > 0).sum(axis=0)).tolist()
        == (X > 0).sum(axis=0)[[2, 0]].tolist()
    )

"""Computations of the column tops: over all births, by runs of births, and for many points."""

import numpy as np
import pytest

from sklearn_dptda.persistence._exact_sampler import (
    ManyColumns,
    column_tops,
    column_tops_few,
    weight_below,
    weight_below_few,
)
from sklearn_dptda.persistence._mechanisms import make_base_measure
from tests.persistence._oracles import random_diagram


@pytest.mark.parametrize(
    ("size", "linear"), [(1, False), (2, True), (7, False), (7, True), (20, True)]
)
def test_column_tops_of_runs_and_arrays_agree(size, linear, rng):
    measure = make_base_measure("spike-slab", size, 3, linear=linear)
    for n_points in range(7):
        points = random_diagram(rng, size, n_points)
        deaths = np.zeros(size, dtype=np.int64)
        for b, d in points:
            deaths[b] = max(deaths[b], d)
        for r in range(size + 1):
            tops = column_tops(deaths, r)
            np.testing.assert_array_equal(column_tops_few(points, r, size), tops)
            assert weight_below_few(points, r, measure) == weight_below(tops, measure)[-1]
            if n_points:
                columns = ManyColumns(np.array(points, dtype=np.int64))
                assert columns.weight_below(r, measure) == weight_below(tops, measure)[-1]

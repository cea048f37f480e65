"""Exact replays of fits that take logarithms and leave far rows out, with one extreme record."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPToMATo, DPTree
from sklearn_dptda.utils._privacy_checks._border_checks import replayed, within_promise

RECORDS = (
    *([1e308, -1e308, 0.0], [5e-324, -0.0, 1.0], [-1e308, 1e308, 1e308]),
    *([1000.0, 12.0, 0.0], [-3.0, 900.0, -700.0], [2.0**60, 40.0, 5.0]),
)


def table(n=1500):
    """Amounts over decades, and two columns of which one row in twelve is far outside."""
    rng = np.random.default_rng(0)
    amounts = np.exp(3 * rng.standard_normal(n) + 5)
    X = np.column_stack([amounts, rng.normal(12, 3, n), rng.normal(0, 1, n)])
    far = rng.choice(n, n // 12, replace=False)
    X[far, 1:] = 800 * rng.standard_normal((len(far), 2))
    return X


@pytest.mark.laws
@pytest.mark.parametrize("bounds", [None, ([0, -5000, -5000], [1e7, 5000, 5000])])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "estimator",
    [
        DPLloyd(3, 8.0),
        DPLloyd(3, 16.0, delta=0),
        DPTree(3, 8.0),
        DPMoG(3, epsilon=8.0),
        DPMoGMorse(2, epsilon=8.0),
        DPToMATo(3, 16.0),
    ],
    ids=str,
)
def test_one_record_moves_no_statistic_of_an_adapting_fit_too_far(estimator, adjacency, bounds):
    estimator = clone(estimator).set_params(bounds=bounds, adjacency=adjacency, random_state=0)
    X = table()
    first = X if adjacency == "add-remove" else np.vstack([RECORDS[3], X])
    found = clone(estimator).fit(first)
    assert found.logarithms_[0] > 0
    for record in RECORDS:
        transcript, guarantee = replayed(estimator, first, np.vstack([record, X]))
        assert max(transcript.moves) <= 1 + 1e-9
        assert within_promise(transcript.declared(), guarantee)

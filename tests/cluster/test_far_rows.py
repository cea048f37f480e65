"""Rows far outside the box that was found: left out if they lie in all directions."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo
from sklearn_dptda.privacy import NoiseWarning
from sklearn_dptda.rows._far_rows import _of_places, without_far_rows
from sklearn_dptda.rows._rows import Box, Rows
from tests.cluster._tables import seeded

LOW, HIGH = -np.ones(2), np.ones(2)


def clusters(n, seed, far):
    """Three clusters, and a share of rows far away, of label -1."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 4.0]])[y] + 0.4 * rng.standard_normal((n, 2))
    wrong = rng.random(n) < far
    X[wrong] = 300 * rng.standard_normal((wrong.sum(), 2))
    y[wrong] = -1
    return X, y


def test_places_by_hand():
    rows = np.array([[0.5, -0.9], [1.5, 0.0], [-3.0, 2.0], [0.0, 100.0], [np.nan, -9.0]])
    counts = _of_places(rows, LOW, HIGH).reshape(2, 2, -1)
    expected = np.zeros((2, 2, 6), dtype=int)
    # Distances of 3, 100 and 9 half widths, from the middle. At 1.5, no row is far.
    expected[0, 0, 0] = expected[1, 1, 2] = expected[1, 0, 1] = 1
    np.testing.assert_array_equal(counts, expected)


def far(*parts):
    X, box = np.concatenate(parts), Box.centred(LOW, HIGH)
    n_far = float((np.abs(X) > 2).any(axis=1).sum())
    return without_far_rows(Rows.of_array(X), box, seeded("l2", 0), n_far, 5.0, float(len(X)))


def test_rows_in_all_directions_are_left_out_and_a_far_cluster_stays():
    rng = np.random.default_rng(0)
    inside = rng.uniform(-1, 1, (9000, 2))
    around = rng.uniform(-50, 50, (600, 2))
    cluster = np.array([30.0, -20.0]) + rng.standard_normal((400, 2))
    rows, _, left_out = far(inside, around)
    assert left_out and 9000 <= rows.sum(len) < 9010
    # Each pass still knows of all rows.
    assert rows.n_rows == 9600
    for others in ([], [around]):
        rows, budget, left_out = far(inside, cluster, *others)
        assert not left_out and rows.sum(len) == rows.n_rows
        # The question has been paid for.
        assert budget.total < seeded("l2", 0).total
    # Neither few rows nor many are asked for.
    for n in (20, 3000):
        _, budget, left_out = far(inside, rng.uniform(-50, 50, (n, 2)))
        assert not left_out and budget.total == seeded("l2", 0).total


@pytest.mark.parametrize("make", [DPLloyd, DPMoGMorse, DPToMATo])
def test_no_row_may_be_left(make):
    # Neighbours of which one has no row within the box: both are released.
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((2000, 4))
    wrong = rng.random(Z.shape) < 0.1
    wrong[np.arange(2000), rng.integers(4, size=2000)] = True
    Z[wrong] = 1000 * rng.standard_normal(wrong.sum())
    for X in (Z, np.vstack([Z, np.zeros(4)])):
        make(2, epsilon=8.0, random_state=0).fit(X)
    no_rows = Rows.of_array(Z).within(2e6 * np.ones(4), 3e6 * np.ones(4))
    assert no_rows.sum(len) == 0 and no_rows.map(np.abs).sum(len) == 0
    assert no_rows.onto(lambda X: X[:, :2], 2).sum(lambda X: X.sum(axis=0)).shape == (2,)


def test_missing_values_and_people_are_no_reason():
    X = np.array([[np.nan, 0.0], [2.0, 0.0], [np.nan, 3.0], [0.5, 0.5]])
    assert Rows.of_array(X).within(LOW, HIGH).sum(len) == 2
    people = Rows.of_array(X, ids=[0, 0, 0, 1]).within(LOW, HIGH)
    assert people.sum(len) == people.mass // 3 + people.mass
    assert people.n_rows == 2 * people.mass


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("make", [DPLloyd, DPMoGMorse, DPToMATo])
def test_far_rows_harm_at_no_budget(make, given):
    for epsilon in (1.0, 8.0):
        scores = []
        for seed in range(5):
            X, y = clusters(5000, seed, 0.06)
            bounds = (-2000.0, 2000.0) if given else None
            private = make(3, epsilon=epsilon, bounds=bounds, random_state=seed).fit(X)
            real = y >= 0
            scores.append(adjusted_rand_score(y[real], private.predict(X)[real]))
        assert np.median(scores) > 0.95


def test_chunks_have_the_same_result():
    X, _ = clusters(6000, 0, 0.06)
    whole, parts = (DPLloyd(3, 4.0, random_state=0) for _ in range(2))
    whole.fit(X)
    parts.fit_chunks([X[:2500], X[2500:]])
    np.testing.assert_array_equal(whole.cluster_centers_, parts.cluster_centers_)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        # Rows outside given bounds count as if they were at these.
        (([-2, -2], [6, 6]), "and are clipped to them:"),
        (None, ".* clipped to them, or left out"),
    ],
)
def test_the_warning_says_what_is_clipped_or_left_out(bounds, said):
    X, _ = clusters(5000, 0, 0.15)
    with pytest.warns(NoiseWarning, match=rf"\d+% of the rows lie outside the bounds {said}"):
        DPLloyd(3, 8.0, bounds=bounds, random_state=0).fit(X)

"""The Wasserstein distance of diagrams, compared with Hera and with a full assignment."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sklearn_dptda.persistence import wasserstein_distance


def by_all_points(P, Q):
    """Each point and a place on the diagonal for it: the definition."""
    cost = np.zeros((len(P) + len(Q),) * 2)
    cost[: len(P), : len(Q)] = np.abs(P[:, None] - Q).max(axis=2)
    cost[: len(P), len(Q) :] = ((P[:, 1] - P[:, 0]) / 2)[:, None]
    cost[len(P) :, : len(Q)] = (Q[:, 1] - Q[:, 0]) / 2
    return cost[linear_sum_assignment(cost)].sum()


def diagram(rng, n, whole=False):
    points = rng.integers(0, 6, (n, 2)).astype(float) if whole else rng.random((n, 2))
    points = np.sort(points, axis=1)
    return points[points[:, 1] > points[:, 0]]


@pytest.mark.parametrize("whole", [False, True])
def test_wasserstein_distance_equals_a_full_assignment(whole, rng):
    # Whole numbers have ties: many points are as near to each other as to the diagonal.
    for n, m in ((0, 0), (1, 0), (0, 4), (1, 1), (3, 7), (20, 20), (40, 11), (60, 90)):
        P, Q = diagram(rng, n, whole), diagram(rng, m, whole)
        assert wasserstein_distance(P, Q) == pytest.approx(by_all_points(P, Q), rel=1e-12)
        assert wasserstein_distance(P, P[::-1]) == 0


def test_wasserstein_distance_agrees_with_hera(rng):
    hera = pytest.importorskip("gudhi.hera")
    first = diagram(rng, 120)
    second = first + 0.02 * rng.random(first.shape)
    expected = hera.wasserstein_distance(first, second, order=1, internal_p=np.inf, delta=1e-4)
    assert wasserstein_distance(first, second) == pytest.approx(expected, rel=1e-4)


def test_wasserstein_distance_matches_essential_classes_in_order():
    first, second = [[0, np.inf], [3, np.inf], [1, 2]], [[4, np.inf], [1, np.inf]]
    assert wasserstein_distance(first, second) == 1 + 1 + 0.5
    assert wasserstein_distance(first, second[:1]) == np.inf

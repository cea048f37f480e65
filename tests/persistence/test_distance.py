"""Bottleneck and Wasserstein distances, compared with matchings of all kinds."""

import itertools

import numpy as np
import pytest
from gudhi import hera
from scipy.optimize import linear_sum_assignment

from sklearn_dptda import bottleneck_distance
from sklearn_dptda.persistence import wasserstein_distance
from sklearn_dptda.utils import _distances
from tests.persistence._oracles import bottleneck


@pytest.mark.parametrize("n_pairs", [20, pytest.param(300, marks=pytest.mark.laws)])
def test_bottleneck_distance_equals_exact_matching(rng, n_pairs):
    for _ in range(n_pairs):
        first, second = (
            np.sort(rng.integers(0, 10, (rng.integers(0, 6), 2)), axis=1) for _ in range(2)
        )
        expected = bottleneck(first[first[:, 1] > first[:, 0]], second[second[:, 1] > second[:, 0]])
        assert bottleneck_distance(first, second) == expected
        assert bottleneck_distance(second, first) == expected


@pytest.mark.parametrize("very_few_pairs", [0, 1 << 16])
@pytest.mark.parametrize("few_pairs", [0, 1 << 16])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (40, 40), (90, 3), (25, 120)])
def test_bottleneck_distance_equals_exact_matching_of_many_points(
    n, m, few_pairs, very_few_pairs, monkeypatch, rng
):
    # Points in floating point, equal coordinates, and copies of points; by trees, arrays and lists.
    monkeypatch.setattr(_distances, "_FEW_PAIRS", few_pairs)
    monkeypatch.setattr(_distances, "_VERY_FEW_PAIRS", very_few_pairs)
    for shift, decimals in ((0.0, 16), (0.0, 1), (1e6, 3)):
        first, second = (
            np.round(shift + np.c_[b, b + rng.exponential(0.3, len(b))], decimals)
            for b in (rng.random(n), rng.random(m))
        )
        second[: min(n, m) // 2] = first[: min(n, m) // 2]
        kept = [d[d[:, 1] > d[:, 0]] for d in (first, second)]
        assert bottleneck_distance(first, second) == bottleneck(*kept)


@pytest.mark.laws
def test_bottleneck_distance_is_close_to_that_of_hera(rng):
    # Hera takes differences below 2e-10 of the longest bar for zero.
    for n in (300, 1500):
        first, second = (np.c_[b, b + rng.exponential(0.1, n)] for b in rng.random((2, n)))
        for other in (second, np.sort(first + rng.uniform(0, 1e-3, first.shape), axis=1)):
            expected = hera.bottleneck_distance(first, other, delta=0)
            assert bottleneck_distance(first, other) == pytest.approx(expected, abs=1e-9)


def test_bottleneck_distance_of_a_pair_that_others_get_wrong():
    first = [[4, 9], [2, 7], [5, 7]]
    second = [[0, 2], [0, 2], [1, 5], [1, 6], [5, 8]]
    assert bottleneck_distance(first, second) == 2.0


def of_every_matching(first, second):
    """Return the bottleneck and the 1-Wasserstein distance by trying all matchings.

    Points may stay alone, which costs half their length. Equal infinite coordinates are at
    distance 0.
    """

    def apart(p, q):
        return max(0.0 if a == b else abs(a - b) for a, b in zip(p, q, strict=True))

    results = []
    for size in range(min(len(first), len(second)) + 1):
        for some in itertools.combinations(range(len(first)), size):
            for others in itertools.permutations(range(len(second)), size):
                costs = [apart(first[i], second[j]) for i, j in zip(some, others, strict=True)]
                for diagram, kept in ((first, some), (second, others)):
                    alone = (p for i, p in enumerate(diagram) if i not in kept)
                    costs += [(d - b) / 2 for b, d in alone if b != d]
                results.append((max(costs, default=0.0), sum(costs)))
    return tuple(map(min, zip(*results, strict=True)))


def with_infinities(rng, n):
    values = np.array([-np.inf, 0, 1, 2, 4, 7, np.inf])
    return np.sort(rng.choice(values, (n, 2), p=[0.2, *[0.12] * 5, 0.2]), axis=1)


@pytest.mark.laws
def test_distances_of_infinite_coordinates_equal_the_best_of_all_matchings(rng):
    finite = 0
    for _ in range(150):
        first = with_infinities(rng, rng.integers(0, 5))
        second = with_infinities(rng, rng.integers(0, 5))
        expected = of_every_matching(first.tolist(), second.tolist())
        found = bottleneck_distance(first, second), wasserstein_distance(first, second)
        assert found == expected, (first, second)
        finite += np.isfinite(expected[0])
    assert finite > 25


@pytest.mark.parametrize("distance", [bottleneck_distance, wasserstein_distance])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([[0, 4], [0, 4]], [[0, 4]], 2.0),
        ([[0, np.inf]], [[1, np.inf]], 1.0),
        ([[0, np.inf]], [], np.inf),
        ([[-np.inf, 1]], [[-np.inf, 2]], 1.0),
        ([[-np.inf, 1], [-np.inf, 9]], [[-np.inf, 9], [-np.inf, 1]], 0.0),
        ([[-np.inf, 1], [0, np.inf]], [[-np.inf, 1]], np.inf),
        ([[-np.inf, 1]], [[1, np.inf]], np.inf),
        ([[-np.inf, np.inf]], [[-np.inf, np.inf]], 0.0),
        ([[-np.inf, np.inf]], [[-np.inf, np.inf]] * 2, np.inf),
        ([[np.inf, np.inf], [-np.inf, -np.inf]], [[3, 3]], 0.0),
    ],
)
def test_distances_of_infinite_coordinates_by_hand(distance, first, second, expected):
    assert distance(first, second) == distance(second, first) == expected


@pytest.mark.parametrize("share", [1e-7, 1e-10, 1e-13])
def test_bottleneck_distance_beside_a_long_bar_is_off_by_little(share, rng):
    # The gates of private caps are padded by more than these errors.
    long = [[0.0, 1.0]]
    for _ in range(6):
        # Whole multiples of a small number, so that many distances nearly agree.
        first, second = (
            np.sort(rng.integers(0, 6, (rng.integers(1, 6), 2)), axis=1) * share for _ in range(2)
        )
        first, second = (d[d[:, 1] > d[:, 0]] for d in (first, second))
        expected = bottleneck([*first, *long], [*second, *long])
        for scale in (1.0, 3e-200, 7e200):
            distance = bottleneck_distance(
                scale * np.vstack([first, long]), scale * np.vstack([second, long])
            )
            assert abs(distance - scale * expected) <= 3e-10 * scale


@pytest.mark.parametrize("scale", [1e-290, 1e-12, 1e12, 1e290])
def test_bottleneck_distance_scales_with_the_unit(scale):
    P, Q = np.array([[0.0, 4.0]]), np.array([[0.0, 5.0]])
    assert bottleneck_distance(scale * P, scale * Q) == pytest.approx(scale, rel=1e-12)
    assert bottleneck_distance([[0, np.inf]], [[scale, np.inf]]) == pytest.approx(scale)


# Wasserstein distances.


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


def test_wasserstein_distance_matches_essential_classes_in_order():
    first, second = [[0, np.inf], [3, np.inf], [1, 2]], [[4, np.inf], [1, np.inf]]
    assert wasserstein_distance(first, second) == 1 + 1 + 0.5
    assert wasserstein_distance(first, second[:1]) == np.inf

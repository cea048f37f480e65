"""Distances up to shifts and dilations: known values, brute force, invariance."""

import math

import numpy as np
import pytest

from sklearn_dptda import bottleneck_distance
from sklearn_dptda.persistence import dilation_dissimilarity, shift_invariant_bottleneck_distance
from sklearn_dptda.persistence._shifted import saturates_matrix

INF = math.inf
PAIR = np.array([[1.0, 3.0], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("first", "second", "value", "at"),
    [
        ([[0, 2]], [[5, 7]], 0.0, 5.0),
        ([[0, 2], [1, 2]], [[5, 7], [6.5, 7.5]], 0.25, 5.25),
        ([[0, 4], [0, 2]], [[10, 14], [11, 13]], 0.5, 10.5),
        ([[0, INF], [1, 2]], [[3, INF], [4.5, 5.5]], 0.25, 3.25),
        ([[0, INF], [2, INF]], [[5, INF], [9, INF]], 1.0, 6.0),
        ([], [], 0.0, 0.0),
        ([], [[0, 3]], 1.5, 0.0),
    ],
)
def test_shift_invariant_distance_of_known_shifts(first, second, value, at):
    found, shift = shift_invariant_bottleneck_distance(first, second, return_shift=True)
    assert found == pytest.approx(value, abs=1e-6)
    assert shift == pytest.approx(at, abs=1e-5)


def test_dilation_dissimilarity_of_a_diagram_and_its_double():
    assert shift_invariant_bottleneck_distance(PAIR, 2 * PAIR) == pytest.approx(1.0, abs=1e-6)
    on_logs = shift_invariant_bottleneck_distance(PAIR, 2 * PAIR, scale="log", return_shift=True)
    assert on_logs == pytest.approx((0.0, math.log(2)), abs=1e-6)
    found = dilation_dissimilarity(PAIR, 2 * PAIR, return_factor=True)
    assert found == pytest.approx((0.0, 2.0), abs=1e-5)


def test_shifted_distances_are_infinite_for_other_essential_points():
    for function in (shift_invariant_bottleneck_distance, dilation_dissimilarity):
        assert function([[0, INF]], [[0, 1]]) == INF


def random_diagrams(seed, n=12, m=9):
    rng = np.random.default_rng(seed)
    return tuple(np.sort(rng.uniform(size=(k, 2)), axis=1) for k in (n, m))


@pytest.mark.laws
@pytest.mark.parametrize("seed", range(4))
def test_shifted_distances_equal_brute_force_and_are_attained(seed):
    P, Q = random_diagrams(seed)
    shifts, factors = np.linspace(-1, 1, 1001), np.linspace(0.002, 4, 2000)
    by_shift = min(bottleneck_distance(P + s, Q) for s in shifts)
    by_factor = min(bottleneck_distance(c * P, Q) for c in factors)
    found, shift = shift_invariant_bottleneck_distance(P, Q, return_shift=True)
    assert by_shift - 2e-3 <= found <= by_shift + 1e-6
    assert bottleneck_distance(P + shift, Q) == pytest.approx(found, abs=1e-6)
    found, factor = dilation_dissimilarity(P, Q, return_factor=True)
    assert by_factor - 2e-3 <= found <= by_factor + 1e-6
    assert bottleneck_distance(factor * P, Q) == pytest.approx(found, abs=1e-6)


@pytest.mark.laws
@pytest.mark.parametrize("seed", range(2))
def test_shifted_distances_are_invariant_and_symmetric(seed):
    P, Q = random_diagrams(seed)
    value = shift_invariant_bottleneck_distance(P, Q)
    for other in (
        shift_invariant_bottleneck_distance(P + 3, Q - 7),
        shift_invariant_bottleneck_distance(Q, P),
    ):
        assert other == pytest.approx(value, abs=2e-6)
    P, Q = P + 0.1, Q + 0.1
    logs = shift_invariant_bottleneck_distance(P, Q, scale="log")
    assert shift_invariant_bottleneck_distance(5 * P, 0.3 * Q, scale="log") == pytest.approx(
        logs, abs=5e-6
    )
    assert dilation_dissimilarity(7 * P, Q) == pytest.approx(dilation_dissimilarity(P, Q), abs=2e-6)


def test_saturates_matrix_by_hand():
    assert saturates_matrix(np.zeros((0, 3), dtype=bool)) and saturates_matrix(
        np.eye(3, dtype=bool)
    )
    assert not saturates_matrix(np.array([[True, False], [True, False]]))
    assert not saturates_matrix(np.ones((3, 2), dtype=bool))


@pytest.mark.laws
def test_shifted_distances_far_from_the_origin():
    # If timestamps are coordinates, the precision of floating-point numbers ends before the
    # tolerance.
    P = np.array([[1, 2.0], [3, 3.7], [0.2, 1.5]])
    Q = np.array([[1.5, 2.5], [3.1, 4], [0.4, 1.4]])
    for far in (1e6, 1e10, 1e12):
        value, shift = shift_invariant_bottleneck_distance(P, Q + far, return_shift=True)
        assert value == pytest.approx(0.3, abs=1e-3 if far > 1e11 else 1e-5)
        assert bottleneck_distance(P + shift, Q + far) == pytest.approx(value, abs=1e-3)
        assert dilation_dissimilarity(P + far, Q + far) == pytest.approx(0.3, abs=1e-3)
    assert dilation_dissimilarity(P, Q, tol=1e-300) == pytest.approx(0.35, abs=1e-6)


@pytest.mark.laws
@pytest.mark.parametrize("scale", [1e-12, 1e3, 1e12])
def test_dilation_dissimilarity_does_not_depend_on_units(scale, rng):
    P, Q = random_diagrams(0)
    expected = dilation_dissimilarity(P, Q)
    value, other = dilation_dissimilarity(scale * P, Q, return_factor=True)
    assert value == pytest.approx(expected, abs=2e-6)
    assert dilation_dissimilarity(scale * P, scale * Q) == pytest.approx(scale * expected, rel=1e-5)
    assert bottleneck_distance(other * scale * P, Q) == pytest.approx(value, abs=2e-6)
    essential = [[1.0, np.inf], [3.0, np.inf]], [[4.0, np.inf], [1.0, np.inf]]
    assert dilation_dissimilarity(scale * np.array(essential[0]), essential[1]) == pytest.approx(
        0.25, abs=1e-5
    )

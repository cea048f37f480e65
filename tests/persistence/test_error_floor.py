"""Lower bounds of the error, compared with the best mechanisms, with ours, and with a twin."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from sklearn_dptda import PrivatePersistence
from sklearn_dptda.persistence import DiagramErrors, bottleneck_distance
from sklearn_dptda.persistence._exact_sampler import decay_table
from sklearn_dptda.persistence._mechanisms import make_base_measure
from sklearn_dptda.published import bottleneck_error_floor, mean_error_floor, published_error_floor
from sklearn_dptda.published._diagram_errors import _missed
from tests.persistence._oracles import weights_of

ENDLESS = 10**12
EPSILONS = (0.1, 0.5, 1.0, 2.0)


def best_chance_to_miss(epsilon, w, n_clouds):
    """Least chance that an epsilon-private mechanism misses a cloud of a chain, whatever it does.

    Its output covers ``w`` clouds in a row: a linear program over all such mechanisms.
    """
    starts = range(1 - w, n_clouds)
    covers = np.array([[u <= j < u + w for j in range(n_clouds)] for u in starts], dtype=float)
    shape = covers.shape
    size = covers.size
    rows, ratio = [], math.exp(epsilon)
    for u in range(shape[0]):
        for i, j in [(j, j + 1) for j in range(n_clouds - 1)]:
            for a, b in ((i, j), (j, i)):
                row = np.zeros(size + 1)
                row[u * n_clouds + a], row[u * n_clouds + b] = 1, -ratio
                rows.append(row)
    for j in range(n_clouds):
        # Covered except with the probability that is sought, the last variable.
        row = np.zeros(shape)
        row[:, j] = -covers[:, j]
        rows.append(np.r_[row.ravel(), -1])
    limits = np.r_[np.zeros(len(rows) - n_clouds), -np.ones(n_clouds)]
    sums = np.zeros((n_clouds, size + 1))
    for j in range(n_clouds):
        sums[j, :size].reshape(shape)[:, j] = 1
    solved = linprog(
        np.r_[np.zeros(size), 1], np.array(rows), limits, sums, np.ones(n_clouds), method="highs"
    )
    assert solved.success
    return solved.fun


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_error_floor_is_below_the_best_mechanism_of_a_linear_program(epsilon):
    tight = []
    for w in (1, 2, 3):
        for n_clouds in (2, 12):
            best = best_chance_to_miss(epsilon, w, n_clouds)
            assert _missed(epsilon, w, n_clouds) <= best + 1e-7
        tight.append(_missed(epsilon, w, ENDLESS) - best)
    # Little of it is left for twelve clouds, and nothing for an infinite chain.
    assert max(tight) < 0.15
    # Two clouds with randomised response.
    pair = best_chance_to_miss(epsilon, 1, 2)
    assert pair == pytest.approx(1 / (1 + math.exp(epsilon)), abs=1e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_error_floor_of_an_endless_chain_is_attained_by_geometric_noise(epsilon):
    alpha = math.exp(-epsilon)
    for w in range(1, 9):
        # Noise about one cloud, or about the middle of two clouds: both are epsilon-private.
        about_two = alpha ** (w // 2)
        missed = 2 * alpha ** ((w + 1) // 2) / (1 + alpha) if w % 2 else about_two
        assert _missed(epsilon, w, ENDLESS) == pytest.approx(missed)


def geometric_chance(epsilon, w):
    """Worst chance that geometric noise, clipped to a long chain, misses by ``w / 2`` steps."""
    return 2 * math.exp(-epsilon * ((w + 1) // 2)) / (1 + math.exp(-epsilon))


@pytest.mark.parametrize(
    ("epsilon", "confidence"),
    [(0.1, 0.9), (0.5, 0.3), (0.5, 0.99), (1.0, 0.7), (2.0, 0.9), (2.0, 0.3)],
)
def test_bottleneck_error_floor_is_a_step_from_geometric_noise(epsilon, confidence):
    floor = bottleneck_error_floor(epsilon, 1.0, 800.0, confidence=confidence)

    def largest(epsilon):
        """Largest error with this chance, in half steps."""
        return sum(geometric_chance(epsilon, w) >= 1 - confidence for w in range(1, 400)) / 2

    assert floor <= largest(epsilon) <= 1.5 * floor + 1
    # A twin that spends three times as much is better than its claim allows.
    assert largest(3 * epsilon) < floor or floor < 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mean_error_floor_is_nearly_met_by_geometric_noise(epsilon):
    def mean(epsilon):
        return 2 * math.exp(-epsilon) / -math.expm1(-2 * epsilon)

    floor = mean_error_floor(epsilon, 1.0, 800.0)
    assert mean(3 * epsilon) < floor <= mean(epsilon) < 1.8 * floor


SIZE = 8
DIAGRAMS = list(weights_of(make_base_measure("spike-slab", SIZE, 2)))


@cache
def all_errors():
    """Errors of all releases for the clouds of the chain: (j, SIZE), in steps of a sensitivity."""
    clouds = [np.array([[j, SIZE]], float) for j in range(SIZE)]
    releases = [np.array(P, float).reshape(-1, 2) for P in DIAGRAMS]
    return np.array([[bottleneck_distance(P, cloud) for P in releases] for cloud in clouds])


def law(epsilon, name):
    """Probabilities of all diagrams, by the cloud of the chain."""
    weights = weights_of(make_base_measure(name, SIZE, 2, spike=0.9))
    table = decay_table(*(epsilon / 2).as_integer_ratio(), SIZE + 1)
    rows = [
        [weights.get(P, 0) * table.weight(math.ceil(r)) for P, r in zip(DIAGRAMS, row, strict=True)]
        for row in all_errors()
    ]
    return np.array([[float(Fraction(x, sum(row))) for x in row] for row in rows])


@pytest.mark.laws
@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("uniform", 0.5), ("uniform", 2.0), ("spike-slab", 1.0), ("spike-slab", 4.0)],
)
def test_error_floor_is_below_enumerated_mechanisms(name, epsilon):
    laws = law(epsilon, name)
    # The law is private, by its log-ratios between neighbours.
    inside = laws.max(axis=0) > 0
    losses = np.abs(np.diff(np.log(laws[:, inside]), axis=0))
    assert 0.3 * epsilon < losses.max() <= epsilon * (1 + 1e-9)
    for confidence in (0.2, 0.5, 0.7, 0.8, 0.9, 0.95):
        floor = bottleneck_error_floor(epsilon, 1.0, float(SIZE), confidence=confidence)
        assert (laws * (floor <= all_errors())).sum(axis=1).max() >= 1 - confidence
    assert (laws * all_errors()).sum(axis=1).max() >= mean_error_floor(epsilon, 1.0, float(SIZE))


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_error_floor_of_a_pair_is_attained_by_randomised_response(K):
    epsilon, lie = 0.5, 1 / (1 + math.exp(0.5 * K))
    ends = [np.array([[birth, SIZE]], float) for birth in (0, K)]
    errors = np.array([[bottleneck_distance(P, cloud) for P in ends] for cloud in ends])
    laws = np.array([[1 - lie, lie], [lie, 1 - lie]])
    assert (laws * (errors >= K / 2)).sum(axis=1) == pytest.approx(lie)
    assert (laws * errors).sum(axis=1) == pytest.approx(K * lie)
    # The floor is that of a pair if the range contains few sensitivities.
    assert bottleneck_error_floor(epsilon, 1.0, float(SIZE), confidence=1 - lie - 1e-9) <= K / 2
    assert bottleneck_error_floor(epsilon, 1.0, float(SIZE), confidence=1 - lie + 1e-9) >= K / 2
    assert mean_error_floor(epsilon, 1.0, float(SIZE)) >= K * lie - 0.05


@pytest.mark.laws
def test_error_floor_is_above_an_enumerated_twin_that_spends_more():
    # Our law, compared with the floor of a smaller epsilon than that of its draws.
    laws = law(10.0, "spike-slab")
    floor = bottleneck_error_floor(0.3, 1.0, float(SIZE), confidence=0.7)
    missed = floor <= all_errors()
    # On the pair that determines the floor.
    assert floor == 1 and (laws * missed).sum(axis=1)[[0, 2]].max() < 0.3
    assert (laws * all_errors()).sum(axis=1).max() < mean_error_floor(0.3, 1.0, float(SIZE))


@pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(e, marks=pytest.mark.laws) for e in (0.3, 3.0))]
)
def test_error_floor_is_between_the_published_floor_and_the_bound(epsilon):
    n, m, diameter = 4000, 0.2, 5.5
    sensitivity, upper = diameter / 800, diameter / 2
    for confidence in (0.5, 0.8, 0.95, 0.999):
        floor = bottleneck_error_floor(epsilon, sensitivity, upper, confidence=confidence)
        published = published_error_floor(epsilon, n, m, diameter, confidence=confidence)
        errors = DiagramErrors(PrivatePersistence(epsilon), [(sensitivity, upper)], confidence)
        assert 2 * published <= floor < errors.bound
    assert published_error_floor(0.1, n, m, diameter, confidence=0.74) == pytest.approx(
        10 * diameter / 3200
    )


def test_error_floor_of_extreme_numbers():
    assert bottleneck_error_floor(math.inf, 0.1, 1.0) == mean_error_floor(math.inf, 0.1, 1.0) == 0
    assert bottleneck_error_floor(800.0, 0.1, 1.0) == 0
    assert mean_error_floor(800.0, 0.1, 1.0) < 1e-300
    # A range that is too short for a chain, or an epsilon that is too small: the whole range of a
    # pair.
    assert bottleneck_error_floor(1e-9, 0.01, 1.0, confidence=0.51) == pytest.approx(0.25)
    assert mean_error_floor(1e-9, 0.01, 1.0) == pytest.approx(0.25)
    assert bottleneck_error_floor(1.0, 1.0, 1.0) == mean_error_floor(1.0, 1.0, 1.0) == 0
    assert 1e5 < bottleneck_error_floor(1e-5, 1.0, 1e9) < 4e5

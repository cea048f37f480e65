"""Declared sensitivities, tested with worst-case and random neighbours."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    KernelDistanceFiltration,
    bottleneck_distance,
)
from sklearn_dptda.filtration import sensitivity_dtm, sensitivity_kernel_distance
from sklearn_dptda.published import (
    dtm_worst_case,
    dtm_worst_case_loop,
    sensitivity_cech,
)
from sklearn_dptda.utils._bounds import diameter
from tests._refusals import refuses

RESOLUTION = {1: 9, 2: 7, 3: 5}
# Worst cases and a few random pairs, and hundreds of pairs in the layer of laws.
ATTACKS = [
    ("exact", 2, 25),
    *(
        pytest.param(*case, 600, marks=pytest.mark.laws)
        for case in [("exact", 1), ("lattice", 2), ("exact", 3), ("lattice", 3)]
    ),
]


def neighbours(rng, d, m, n_pairs):
    """Worst cases, and random clouds whose points crowd at corners, one point replaced."""
    yield dtm_worst_case(m, 16, np.zeros(d), np.ones(d))
    yield dtm_worst_case(1.0, 16, np.zeros(d), np.ones(d))
    yield dtm_worst_case_loop(64, np.zeros(d), np.ones(d))
    for _ in range(n_pairs - 3):
        n = int(rng.integers(3, 20))
        corners = rng.integers(0, 2, (3, d)).astype(float)
        cloud = corners[rng.integers(0, 3, n)]
        loose = rng.random(n) < 0.3
        cloud[loose] = rng.uniform(-0.2, 1.2, (loose.sum(), d))
        neighbour = cloud.copy()
        neighbour[rng.integers(n)] = (
            rng.integers(0, 2, d) if rng.random() < 0.7 else rng.uniform(-0.2, 1.2, d)
        )
        yield cloud, neighbour


def attack(estimator, d, n_pairs, m=0.3):
    """Worst ratio of change to declared sensitivity: of the values, and of each diagram."""
    rng = np.random.default_rng(d)
    estimator.set_params(bounds=(0, 1), resolution=RESOLUTION[d]).fit([np.zeros((2, d))])
    worst = np.zeros(1 + d)
    for cloud, neighbour in neighbours(rng, d, m, n_pairs):
        a, b = estimator.transform([cloud, neighbour])
        assert a.sensitivity == b.sensitivity and a.shape == b.shape
        changes = [np.abs(a.values - b.values).max()]
        first, second = CubicalPersistence(range(d)).fit_transform([a, b])
        changes += map(bottleneck_distance, first, second)
        worst = np.maximum(worst, np.array(changes) / a.sensitivity)
    return worst


@pytest.mark.parametrize("kind", [DTMFiltration(0.3), KernelDistanceFiltration(0.1)])
@pytest.mark.parametrize(("method", "d", "n_pairs"), ATTACKS)
def test_filtrations_move_by_sensitivity_and_no_more(kind, method, d, n_pairs):
    worst = attack(clone(kind).set_params(method=method), d, n_pairs)
    assert (worst <= 1 + 1e-12).all()
    # The declared value is reached, so no noise is wasted. Loops need a finer grid, see below.
    assert (worst[:2] >= 0.99).all()


@pytest.mark.parametrize(
    ("d", "estimator"),
    [
        (2, DTMFiltration(0.3)),
        (2, KernelDistanceFiltration(0.15)),
        pytest.param(3, DTMFiltration(0.3), marks=pytest.mark.laws),
        pytest.param(3, KernelDistanceFiltration(0.15), marks=pytest.mark.laws),
    ],
)
def test_filtrations_reach_half_of_sensitivity_in_top_dimension(d, estimator):
    resolution, n = {2: (51, 200), 3: (21, 1000)}[d]
    first, second = dtm_worst_case_loop(n, np.zeros(d), np.ones(d))
    estimator.set_params(bounds=(0, 1), resolution=resolution, method="exact")
    a, b = estimator.fit_transform([first, second])
    diagrams = CubicalPersistence(d - 1).fit_transform([a, b])
    assert 0.5 <= bottleneck_distance(*diagrams) / a.sensitivity <= 1


@pytest.mark.laws
@pytest.mark.parametrize("options", [{"p": 2}, {"max_distance": 0.3}, {"max_distance": np.inf}])
def test_dtm_filtration_with_options_moves_by_at_most_sensitivity(options):
    worst = attack(DTMFiltration(0.3, **options), 2, 400)
    assert (worst <= 1 + 1e-12).all()
    assert worst[0] >= 0.5


def test_dtm_filtration_exceeds_sensitivity_of_wrong_factor():
    # Dividing by n instead of k understates the sensitivity, and the attack must detect it.
    first, second = dtm_worst_case(0.3, 16, np.zeros(2), np.ones(2))
    estimator = DTMFiltration(0.3, bounds=(0, 1), resolution=5)
    a, b = estimator.fit_transform([first, second])
    # Of 16 points, the five nearest are 0.3 of the mass.
    wrong = a.sensitivity * 5 / 16
    assert np.abs(a.values - b.values).max() > 1.5 * wrong


def test_sensitivity_dtm_has_values_by_hand():
    assert sensitivity_dtm(0.1, 1000, 1, 5.0) == pytest.approx(0.05)
    assert sensitivity_dtm(0.1, 1000, 2, 5.0) == pytest.approx(0.5)
    assert sensitivity_cech(4.0) == 1.0
    # The numbers of neighbours, among which the effect of one point is shared. 0.07 * 100 is above
    # 7 in floating point.
    for m, n, k in ((0.07, 100, 7), (0.1, 11, 2), (1.0, 5, 5)):
        assert sensitivity_dtm(m, n, 1, 840.0) == 840.0 / k
    for m in (0, -0.1, 1.1, math.nan):
        refuses("m must be", sensitivity_dtm, m, 10, 1, 1.0)
    refuses("p must be", sensitivity_dtm, 0.1, 10, 0.5, 1.0)


def test_dtm_filtration_smaller_caps_have_values_and_sensitivities_by_hand(rng):
    # Six smaller caps, each by the root of two, below the first of half of a side of the box.
    X = rng.random((40, 2))
    filtration = DTMFiltration(0.1, bounds=(0, 1), resolution=5, max_distance="private")
    (f,) = filtration.fit_transform([X])
    nodes = np.stack(np.meshgrid(*f.axes, indexing="ij"), axis=-1).reshape(-1, 2)
    nearest = np.sort(np.linalg.norm(nodes[:, None] - X, axis=2), axis=1)[:, :4]
    caps = [0.5 / 2 ** (j / 2) for j in range(7)]
    assert [f.upper, *(cap for _, cap in f.smaller_caps)] == pytest.approx(caps)
    for each, cap in zip((f, *f.smaller), caps, strict=True):
        expected = np.minimum(nearest, cap).mean(axis=1)
        np.testing.assert_allclose(each.values.ravel(), expected, atol=1e-5)
        assert each.sensitivity == pytest.approx(cap / 4)


def test_kernel_distance_filtration_values_are_at_least_sensitivity():
    # Roots of smaller squares would magnify the rounding of squares beyond what is declared.
    (f,) = KernelDistanceFiltration(0.3, bounds=(0, 1), resolution=5).fit_transform(
        [np.zeros((20, 2))]
    )
    assert f.values.min() == pytest.approx(sensitivity_kernel_distance(20, 0.3, math.sqrt(2)))


def test_sensitivity_kernel_distance_is_attained():
    n = 50
    for squared in (False, True):
        bound = sensitivity_kernel_distance(n, squared=squared)
        # All points are at one place, and one is moved far away: distances in the feature space.
        before = np.array([0.0, 2.0])
        inner = ((n - 1) ** 2 + 1) / n**2
        after = np.array([1 + inner - 2 * (n - 1) / n, 1 + inner - 2 / n])
        if not squared:
            before, after = np.sqrt(before), np.sqrt(after)
        assert np.abs(after - before).max() == pytest.approx(bound)
    plain = sensitivity_kernel_distance(n) / math.sqrt(2)
    assert sensitivity_kernel_distance(n, squared=True) / 2 > 1.9 * plain


def test_kernel_distance_sensitivity_has_room_for_rounding():
    # Each squared distance has three means of at most t terms, with an error of t half units each.
    X = np.random.default_rng(0).uniform(size=(50, 2))
    (function,) = KernelDistanceFiltration(0.3, bounds=(0, 1), resolution=9).fit_transform([X])
    plain = sensitivity_kernel_distance(50, 0.3, math.sqrt(2) * (1 + 2.0**-50))
    room = function.sensitivity - plain
    assert 6 * 50 * 2.0**-53 / plain < room < 1e-9 * plain


def test_diameter_is_rounded_up():
    rng = np.random.default_rng(0)
    for low, high in np.sort(rng.normal(size=(200, 2, 3)), axis=1):
        square = sum((Fraction(b) - Fraction(a)) ** 2 for a, b in zip(low, high, strict=True))
        assert Fraction(diameter(low, high)) ** 2 >= square

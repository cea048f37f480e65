"""The published law enumerated on small grids, and which claims of its theory hold."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from gudhi import RipsComplex
from scipy.stats import binom

from sklearn_dptda import CubicalPersistence, DTMFiltration, bottleneck_distance
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.filtration import distance_to_measure
from sklearn_dptda.published import (
    dtm_worst_case,
    published_error_bound,
    sampling_error_bound,
)

SIZE = 5
# A set of diameter 5 and twenty points, of mass 0.5: Delta is diam / (m n) = 0.5 for one dimension.
PUBLIC = {"n": 20, "m": 0.5, "diameter": 5.0}


def releases(size, most):
    """All diagrams of at most so many points off the diagonal, on a grid of unit steps."""
    points = [(b, d) for b in range(size) for d in range(b + 1, size + 1)]
    n_places = len(points)
    every = [P for m in range(most + 1) for P in combinations_with_replacement(points, m)]
    assert len(every) == math.comb(n_places + most, most)
    return every, n_places


def distances(every, exact):
    exact = np.array(exact, dtype=float).reshape(-1, 2)
    return np.array([bottleneck_distance(np.array(P, float).reshape(-1, 2), exact) for P in every])


def law(errors, epsilon, delta):
    """Law of Proposition 13 on a finite set, by the errors of its members."""
    weights = np.exp(-epsilon / (2 * delta) * (errors - errors.min()))
    return weights / weights.sum()


EXACT = [[], [(1, 4)], [(0.5, 3.5)], [(0, 5), (1, 3)], [(0, 2), (2, 4), (1, 5)], [(2.5, 3)]]


@pytest.mark.laws
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("epsilon", [2.0, 10.0, 40.0])
def test_published_error_bound_mended_holds_for_the_enumerated_law(most, epsilon):
    every, n_places = releases(SIZE, most)
    options = {"max_points": most, "n_places": n_places, "n_dimensions": 1}
    forgetful_is_passed = False
    for exact in EXACT:
        errors = distances(every, exact)
        probabilities = law(errors, epsilon, 0.5)
        for confidence in (0.1, 0.5, 0.9, 0.99, 0.999):
            bound = published_error_bound(
                epsilon, **PUBLIC, **options, confidence=confidence, approximation=errors.min()
            )
            assert probabilities[errors > bound].sum() <= 1 - confidence
            # The distance of the best releases is at most the sum of the text.
            best = every[errors.argmin()]
            assert (distances(every, best) <= errors + errors.min() + 1e-9).all()
            # The twin forgets how many releases there are.
            forgetful = errors.min() - math.log1p(-confidence) / epsilon
            forgetful_is_passed |= probabilities[errors > forgetful].sum() > 1 - confidence
    # At a large epsilon, the steps of the grid are wider than the part that it omits.
    assert forgetful_is_passed or epsilon == 40


def test_published_error_bound_adds_over_dimensions():
    every, n_places = releases(4, 1)
    errors = [distances(every, exact) for exact in ([(1, 3)], [(0, 4), (0, 1)])]
    delta = 2 * 0.5
    joint = np.multiply.outer(*(law(part, 20.0, delta) for part in errors))
    total = np.add.outer(*errors)
    for confidence in (0.5, 0.9, 0.99):
        options = {"max_points": 1, "n_places": n_places, "approximation": total.min()}
        bound = published_error_bound(20.0, **PUBLIC, **options, confidence=confidence)
        assert joint[total > bound].sum() <= 1 - confidence


@pytest.mark.laws
def test_published_error_bound_holds_for_ordered_tuples():
    every, n_places = releases(SIZE, 2)
    orders = np.array([len(set(P)) if len(P) == 2 else 0 for P in every])
    options = {"max_points": 2, "n_places": n_places, "n_dimensions": 1, "ordered": True}
    for exact in EXACT:
        errors = distances(every, exact)
        weights = orders * np.exp(-20.0 * errors)
        options["approximation"] = errors[orders > 0].min()
        bound = published_error_bound(20.0, **PUBLIC, **options, confidence=0.9)
        assert weights[errors > bound].sum() <= 0.1 * weights.sum()


@pytest.mark.laws
@pytest.mark.parametrize("size", [16, 64])
def test_published_error_bound_printed_fails_for_fewer_points(size):
    # Three places of points in a row: two components die at a quarter of the diameter, here in
    # steps of the grid, and a release has one point.
    every, n_places = releases(size, 1)
    death, half = size / 4, size / 8
    errors = distances(every, [(0, death)] * 2)
    assert errors.min() == half
    best = [every[i] for i in np.flatnonzero(errors == half)]
    # For every n epsilon, the law is uniform on these. So it is a constant away from each choice of
    # the optimum, with a probability that does not fall as the grid becomes finer.
    choices = best[:: len(best) // 12]
    apart = np.array([distances(best, opt) for opt in choices])
    assert (apart >= half / 4).mean(axis=1).min() > 0.7
    # With twice the distance of the optimum, it holds.
    assert half < apart.max() <= 2 * half
    # The printed bound tends to zero with 1 / (n epsilon) and the steps of the grid.
    printed = published_error_bound(
        1e9, 20, 0.5, size, max_points=1, n_places=n_places, n_dimensions=1, approximation=1
    )
    assert printed < half / 4 or size < 64


def test_published_proof_takes_equal_utilities_for_equal_releases():
    # The printed proof bounds the distance by the difference of utilities, which is 0 here. Remark
    # 16 bounds it by M log N / (n epsilon), which can be arbitrarily small.
    every, _ = releases(SIZE, 1)
    errors = distances(every, [(0, 4.5)])
    opt, other = every.index(((0, 4),)), every.index(((0, 5),))
    assert errors[opt] == errors[other] == errors.min() == 0.5
    assert distances(every, every[opt])[other] == 1
    assert law(errors, 1e4, 0.5)[other] == pytest.approx(1 / 2)


def test_published_error_bound_follows_the_rule_of_theorem_17():
    # M = log n, N = n: the bound times n epsilon / log(n)^2 is nearly constant.
    rates = []
    for n in (10**3, 10**4, 10**5, 10**6):
        bound = published_error_bound(1.0, n, 0.2, 1.0)
        size = math.comb(n**2 + math.ceil(math.log(n)), math.ceil(math.log(n)))
        spread = 2 * math.log(size) + math.log(20)
        assert bound == pytest.approx(4 / (0.2 * n) * spread)
        rates.append(bound * n / math.log(n) ** 2)
    assert max(rates) < 1.15 * min(rates)


def test_published_proposition_25_fails_for_mass_at_the_threshold():
    # Proposition 25 has 1 / n on the line. A share m of the law is at 0, the rest at 1: if fewer
    # than k points are at 0, the second component is born later by that many k-ths.
    m, n, k = 0.25, 40, 10
    for at_zero in (8, 10, 12):
        X = np.repeat([0.0, 1.0], [at_zero, n - at_zero])[:, None]
        dtm = DTMFiltration(m, bounds=(0, 1), resolution=9, max_distance=np.inf)
        (diagram,) = CubicalPersistence(0).fit_transform(dtm.fit_transform([X]))
        born = max(k - at_zero, 0) / k
        assert bottleneck_distance(diagram, [[0, 0.5], [born, 0.5]]) == pytest.approx(0, abs=1e-9)
    # So the distance to the diagram of the law exceeds x / sqrt(n) with this probability, for n
    # epsilon ...
    chances = []
    for n in (10**2, 10**4, 10**6):
        late = m * n * (1 - 0.5 / math.sqrt(n))
        chances.append(binom.cdf(math.ceil(late) - 1, n, m))
    # ... which does not fall: it is not of the order of 1 / n.
    assert min(chances) > 0.3


@pytest.mark.parametrize("d", [1, 2, 4])
def test_sampling_error_bound_holds_in_every_dimension(d):
    # 200 samples, at 80 %: more than 75 outside have a probability below 1e-6.
    assert binom.sf(75, 200, 0.2) < 1e-6
    n, k, rng = 100, 30, np.random.default_rng(0)
    nodes = rng.uniform(size=(50, d))
    # A law on finitely many places has an exact function: many copies.
    places = rng.uniform(size=(30, d))
    law_values = distance_to_measure(np.repeat(places, 10, axis=0), nodes, k / n)
    bound = sampling_error_bound(n, k / n, math.sqrt(d), len(nodes), confidence=0.8)
    errors = np.array(
        [
            np.abs(distance_to_measure(places[rng.integers(30, size=n)], nodes, k / n) - law_values)
            for _ in range(200)
        ]
    ).max(axis=1)
    assert (errors > bound).sum() <= 75
    # The twin ignores that only a share of the points counts, and falls like 1 / n.
    assert (errors > bound * k / n / math.sqrt(n)).sum() > 75


def test_sampling_error_bound_falls_with_the_root_of_n():
    bounds = [sampling_error_bound(n, 0.2, 1.0, 10**6) for n in (10**4, 10**6)]
    assert bounds[0] / bounds[1] == pytest.approx(10)


# Figures of Kang and others.


# Figure 3: one additional point, near the middle of the two circles.
POINT = (-0.1, -0.1)


def components_of_rips(points):
    tree = RipsComplex(points=points, max_edge_length=3.0).create_simplex_tree(max_dimension=1)
    tree.compute_persistence()
    return np.minimum(tree.persistence_intervals_in_dimension(0), 3.0)


def components_of_measure(points, mass):
    dtm = DTMFiltration(mass, bounds=(-2.5, 3), resolution=56, max_distance=np.inf)
    return CubicalPersistence(0).fit_transform(dtm.fit_transform([points]))[0]


def moved_by_the_point(D, diagram):
    return bottleneck_distance(diagram(D), diagram(np.vstack([D, [POINT]])))


def test_kang_figure_3_rips_distance_in_closed_form():
    # There is a point at every eighth of a turn, so both circles have one on the line of the
    # centres.
    angle = 2 * np.pi * np.arange(64) / 64
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    D = np.vstack([1.5 + 1.5 * ring, -1.5 + ring])
    # The circles are 3 sqrt(2) - 2.5 apart. With the additional point, its distance to the smaller
    # one is last.
    expected = (3 * 2**0.5 - 2.5) - (1.4 * 2**0.5 - 1)
    assert moved_by_the_point(D, components_of_rips) == pytest.approx(expected)
    assert expected == pytest.approx(0.762, abs=1e-3)


@pytest.mark.nightly
def test_kang_figure_3_dtm_distance_needs_few_neighbours():
    def median(n, mass):
        clouds = [make_two_circles(n, random_state=seed) for seed in range(5)]
        return np.median(
            [moved_by_the_point(D, lambda X: components_of_measure(X, mass)) for D in clouds]
        )

    # The figure states 0.042. The mass of Section 5 does not match its number of points.
    assert median(400, 0.0435) == pytest.approx(0.042, abs=0.006)
    assert median(100, 0.2) == pytest.approx(0.042, abs=0.006)
    assert median(400, 0.2) < 0.02


def test_kang_appendix_c_sensitivity_does_not_cover_the_circles():
    # k points at one end of the diameter of the circles, the others at the other end, and one moves
    # across.
    m, n = 0.2, 100
    ends = -1.5 - 0.5**0.5, 1.5 + 1.5 * 0.5**0.5
    pair = dtm_worst_case(m, n, np.full(2, ends[0]), np.full(2, ends[1]))
    dtm = DTMFiltration(m, bounds=ends, resolution=21, max_distance=np.inf)
    filtrations = dtm.fit_transform(pair)
    first, second = CubicalPersistence().fit_transform(filtrations)
    change = sum(map(bottleneck_distance, first, second))
    assert change > 2.3 * 2 * 2**0.5 / (m * n)
    assert change <= 2 * filtrations[0].sensitivity

"""The exact sampler, compared with full enumeration, and its exact privacy loss."""

import itertools
from fractions import Fraction
from math import log

import numpy as np
import pytest
from scipy.stats import chisquare

from sklearn_dptda.persistence._exact_sampler import (
    BirthBall,
    DiagramBall,
    ExactSampler,
    decay_table,
)
from sklearn_dptda.persistence._mechanisms import make_base_measure
from sklearn_dptda.privacy import NoiseSource

from ._oracles import law, level, random_diagram, states

MEASURES = [("spike-slab", False), ("uniform", False), ("poisson", True)]


def as_array(diagram):
    return np.array(diagram, dtype=int).reshape(-1, 2)


def table_of(rate, n_levels):
    return decay_table(*float(rate).as_integer_ratio(), n_levels)


@pytest.mark.laws
@pytest.mark.parametrize(("name", "linear"), MEASURES)
@pytest.mark.parametrize(("size", "max_points"), [(4, 2), (5, 2), (4, 3)])
def test_each_tuple_in_the_ball_has_exactly_one_accepted_labelling(name, linear, size, max_points):
    # The complete correctness of the rejection step, without sampling.
    rng = np.random.default_rng(size)
    measure = make_base_measure(name, size, max_points, mean=1.5, linear=linear)
    everything = list(states(measure))
    for n_points in range(5):
        diagram = random_diagram(rng, size, n_points)
        if n_points >= 3:
            diagram[1] = diagram[0]
        levels = {slots: level(slots, diagram) for slots, _ in everything}
        ball = DiagramBall(as_array(diagram), measure)
        for top in range(ball.first_level(), size + 1):
            cover = ball.cover(top)
            sizes = [len(group) for group in cover.groups]
            for r in range(ball.first_level(), top + 1):
                layout, volume = cover.layout(r), 0
                for slots, weight in everything:
                    accepted = proposed = 0
                    for labels in itertools.product(*(layout.options(z) for z in slots)):
                        if all(labels.count(g) == s for g, s in enumerate(sizes)):
                            proposed += 1
                            accepted += cover.accepts(list(zip(slots, labels, strict=True)), r)
                    assert accepted == (levels[slots] <= r)
                    volume += proposed * weight
                assert volume == cover.weight(r)


@pytest.mark.laws
@pytest.mark.parametrize(("name", "linear"), MEASURES)
@pytest.mark.parametrize("rate", [0.1, 1.0])
@pytest.mark.parametrize(
    "diagram", [[], [(0, 5)], [(0, 5), (1, 5)], [(1, 3), (1, 3), (2, 5), (0, 1)]]
)
def test_law_matches_enumeration(name, linear, rate, diagram):
    # 10,000 draws each, and 24 tests at a false-alarm rate of 1e-6 each.
    measure = make_base_measure(name, 5, 2, mean=1.5, linear=linear)
    table = table_of(rate, 6)
    sampler = ExactSampler([DiagramBall(as_array(diagram), measure)], table)
    source, n = NoiseSource(1), 10_000
    counts = {}
    for _ in range(n):
        key = tuple(sampler.draw(source)[0])
        counts[key] = counts.get(key, 0) + 1
    expected = law(diagram, measure, table)
    assert set(counts) <= {key for key, weight in expected.items() if weight > 0}
    total = sum(expected.values())
    observed = np.array([counts.get(key, 0) for key in expected])
    expectation = np.array([n * weight / total for weight in expected.values()])
    rare = expectation < 5
    observed = np.append(observed[~rare], observed[rare].sum())
    expectation = np.append(expectation[~rare], expectation[rare].sum())
    keep = expectation > 0
    assert chisquare(observed[keep], expectation[keep]).pvalue > 1e-6


@pytest.mark.laws
def test_wrong_rate_is_rejected():
    # The broken twin of the test above: a law at 1.25 times the rate must be detected.
    measure = make_base_measure("spike-slab", 5, 2)
    sampler = ExactSampler([DiagramBall(as_array([(0, 5)]), measure)], table_of(1.25, 6))
    source, n = NoiseSource(1), 10_000
    levels = [level(sampler.draw(source)[0], [(0, 5)]) for _ in range(n)]
    expected = law([(0, 5)], measure, table_of(1.0, 6))
    mass = np.zeros(6)
    for key, weight in expected.items():
        mass[level(key, [(0, 5)])] += weight / sum(expected.values())
    observed = np.bincount(levels, minlength=6)
    keep = mass > 0
    assert chisquare(observed[keep], n * mass[keep]).pvalue < 1e-6


@pytest.mark.laws
@pytest.mark.parametrize(("name", "linear"), MEASURES)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_exact_privacy_loss_of_neighbouring_diagrams(name, linear, epsilon):
    # Output laws, as exact integers, of all diagrams with at most one point that are within the
    # sensitivity of one step.
    size, measure = 5, make_base_measure(name, 5, 2, mean=1.0, linear=linear)
    per_step = Fraction(epsilon) / 2
    table = decay_table(per_step.numerator, per_step.denominator, size + 1)
    inputs = [[]] + [[(b, d)] for b in range(size) for d in range(b + 1, size + 1)]
    laws = {tuple(d): law(d, measure, table) for d in inputs}
    worst = 0.0
    for first, second in itertools.combinations(laws, 2):
        if level(first, second) > 1:
            continue
        p, q = laws[first], laws[second]
        shift = log(sum(p.values())) - log(sum(q.values()))
        losses = [abs(log(p[key]) - log(q[key]) - shift) for key in p]
        worst = max(worst, *losses)
    assert epsilon / 4 <= worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_births_keep_their_support_and_their_loss(epsilon):
    # Every birth must remain possible, however far it is from the exact one.
    size = 40
    per_step = Fraction(epsilon) / 2
    table = decay_table(per_step.numerator, per_step.denominator, size + 1)

    def birth_law(birth):
        ball = BirthBall(birth, size)
        inside = np.zeros(size + 1, dtype=object)
        for r in range(size + 1):
            low, high = ball._interval(r)
            inside[low : high + 1] += table.weight(r) - table.weight(r + 1)
        return inside

    laws = [birth_law(b) for b in range(size + 1)]
    assert all((p > 0).all() for p in laws)
    for p, q in itertools.pairwise(laws):
        shift = log(p.sum()) - log(q.sum())
        assert max(abs(log(a) - log(b) - shift) for a, b in zip(p, q, strict=True)) <= epsilon * (
            1 + 1e-9
        )


@pytest.mark.laws
def test_births_are_drawn_by_that_law():
    # 20,000 draws, with a false-alarm rate of 1e-6. The exact birth lies at the edge.
    size, table = 20, table_of(0.2, 21)
    sampler = ExactSampler([BirthBall(0, size)], table)
    source = NoiseSource(3)
    births = [sampler.draw(source)[0][0][0] for _ in range(20_000)]
    weights = np.array([table.weight(b) for b in range(size + 1)], dtype=float)
    expected = 20_000 * weights / weights.sum()
    assert chisquare(np.bincount(births, minlength=size + 1), expected).pvalue > 1e-6


@pytest.mark.parametrize("rate", [1e-9, 0.01, 1.0, 30.0])
def test_decay_table_never_falls_faster_than_the_rate(rate):
    table = table_of(rate, 50)
    weights = [table.weight(r) for r in range(50)]
    assert all(w > 0 for w in weights)
    falls = [log(a) - log(b) for a, b in itertools.pairwise(weights)]
    assert min(falls) >= 0 and max(falls) <= rate + 1e-13 * log(weights[0])
    assert min(falls) >= rate - 1e-9
    assert table.weight(50) == 0


@pytest.mark.laws
@pytest.mark.parametrize("n_points", [3, 50, 500, 2000])
def test_acceptance(n_points):
    # Three long features with noise near the diagonal, and at least 200 proposals per cell.
    rng, size = np.random.default_rng(0), 1600
    births = rng.uniform(0, 0.6, n_points - 3)
    noise = np.c_[births, births + 0.005 * rng.exponential(size=n_points - 3)]
    diagram = np.concatenate([[[0, 0.6], [0.1, 0.5], [0.2, 0.45]], noise])
    rounded = np.floor(diagram * size + 0.5).astype(int)
    rounded = rounded[rounded[:, 1] > rounded[:, 0]]
    for max_points in (1, 3, 5, 10, 20):
        for epsilon in (0.1, 1.0, 10.0):
            measure = make_base_measure("spike-slab", size, max_points)
            sampler = ExactSampler([DiagramBall(rounded, measure)], table_of(epsilon / 4, size + 1))
            source = NoiseSource(0)
            for _ in range(200):
                sampler.draw(source)
            # The target for the mean is 0.5, which 200 draws estimate to about 0.04.
            assert 200 / sampler.n_proposals_ > 0.42

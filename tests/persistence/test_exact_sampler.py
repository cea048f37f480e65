"""The exact sampler, compared with full enumeration, and its exact privacy loss."""

import itertools
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from math import log

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, ks_2samp

from sklearn_dptda.persistence import bottleneck_distance
from sklearn_dptda.persistence._exact_sampler import (
    BirthBall,
    Block,
    DecayTable,
    DiagramBall,
    ExactSampler,
    ManyColumns,
    column_tops,
    column_tops_few,
    decay_table,
    weight_below,
    weight_below_few,
)
from sklearn_dptda.persistence._mechanisms import make_base_measure
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.published import PublishedPersistence
from tests.persistence._oracles import law, level, p_value, random_diagram, states


def laws(*values):
    """A case of the layer of laws, beside one of the unit layer."""
    return pytest.param(*values, marks=pytest.mark.laws)


def as_array(diagram):
    return np.array(diagram, dtype=int).reshape(-1, 2)


def table_of(rate, n_levels):
    return decay_table(*float(rate).as_integer_ratio(), n_levels)


@pytest.mark.parametrize(
    ("name", "linear", "size", "max_points"),
    [
        ("spike-slab", False, 3, 2),
        laws("spike-slab", False, 5, 2),
        laws("uniform", False, 4, 3),
        laws("poisson", True, 5, 2),
    ],
)
def test_diagram_ball_accepts_exactly_one_labelling_of_each_tuple(name, linear, size, max_points):
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


CROWD = [(1, 3), (1, 3), (2, 5), (0, 1)]


@pytest.mark.parametrize(
    ("name", "linear", "rate", "diagram"),
    [
        ("uniform", False, 0.1, CROWD),
        laws("spike-slab", False, 0.1, [(0, 5)]),
        laws("spike-slab", False, 1.0, CROWD),
        laws("uniform", False, 1.0, [(0, 5), (1, 5)]),
        laws("poisson", True, 0.1, []),
        laws("poisson", True, 1.0, [(0, 5)]),
    ],
)
def test_exact_sampler_is_of_the_enumerated_law(name, linear, rate, diagram):
    # 5,000 draws each, and 6 tests at a false-alarm rate of 1e-6 each.
    measure = make_base_measure(name, 5, 2, mean=1.5, linear=linear)
    table = table_of(rate, 6)
    sampler = ExactSampler([DiagramBall(as_array(diagram), measure)], table)
    source, n = NoiseSource(1), 5000
    counts = Counter(tuple(sampler.draw(source)[0]) for _ in range(n))
    expected = law(diagram, measure, table)
    assert set(counts) <= {key for key, weight in expected.items() if weight > 0}
    total = sum(expected.values())
    observed = [counts[key] for key in expected]
    assert p_value(observed, [n * weight / total for weight in expected.values()]) > 1e-6


@pytest.mark.laws
def test_exact_sampler_of_another_rate_is_detected():
    # The broken twin of the test above: a law at 1.25 times the rate must be detected.
    measure = make_base_measure("spike-slab", 5, 2)
    sampler = ExactSampler([DiagramBall(as_array([(0, 5)]), measure)], table_of(1.25, 6))
    source, n = NoiseSource(1), 10_000
    draws = Counter(level(sampler.draw(source)[0], [(0, 5)]) for _ in range(n))
    expected, mass = law([(0, 5)], measure, table_of(1.0, 6)), np.zeros(6)
    for key, weight in expected.items():
        mass[level(key, [(0, 5)])] += weight / sum(expected.values())
    assert p_value([draws[r] for r in range(6)], n * mass) < 1e-6


@pytest.mark.laws
@pytest.mark.parametrize(
    ("name", "linear", "epsilon"),
    [("spike-slab", False, 2.0), ("uniform", False, 0.3), ("poisson", True, 2.0)],
)
def test_exact_sampler_law_of_neighbours_loses_at_most_epsilon(name, linear, epsilon):
    # Output laws, as exact integers, of all diagrams with at most one point that are within the
    # sensitivity of one step.
    size, measure = 4, make_base_measure(name, 4, 2, mean=1.0, linear=linear)
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
def test_birth_ball_keeps_its_support_and_its_loss(epsilon):
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


def test_birth_ball_is_drawn_by_its_law(monkeypatch):
    # 20,000 draws, with a false-alarm rate of 1e-6 for births in bins, and for levels in the first
    # and in the second half of their block: more of the second half are rejected if levels are not.
    size, rate, n, levels = 200, 0.02, 20_000, []
    table = table_of(rate, size + 1)
    sampler = ExactSampler([BirthBall(0, size)], table)
    draw = Block.draw
    monkeypatch.setattr(Block, "draw", lambda *args: levels.append(args[2]) or draw(*args))
    source = NoiseSource(3)
    births = [sampler.draw(source)[0][0][0] for _ in range(n)]
    weights = np.array([table.weight(b) for b in range(size + 2)], dtype=float)
    places = np.arange(size + 1) * 20 // size
    law = np.bincount(places, weights[:-1]) / weights.sum()
    assert chisquare(np.bincount(places[births], minlength=21), n * law).pvalue > 1e-6
    # From the edge, there are r + 1 births within a level r.
    mass = -np.diff(weights) * np.arange(1, size + 2)
    second = np.zeros(size + 1, dtype=bool)
    for block in sampler._blocks:
        second[(block.low + block.high + 1) // 2 : block.high + 1] = block.high > block.low
    chance = mass[second].sum() / mass.sum()
    assert binomtest(int(second[levels].sum()), len(levels), chance).pvalue > 1e-6


@pytest.mark.parametrize("digits", [6, 28, 200])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 1.0, 30.0])
def test_decay_table_never_falls_faster_than_the_rate(rate, digits):
    # Integers are compared exactly with an exponential of many digits: one that is rounded down
    # would lose more than the rate. The precision of the caller's decimal numbers changes nothing.
    with localcontext(prec=digits):
        table = DecayTable(*rate.as_integer_ratio(), 50)
    weights = [Decimal(table.weight(r)) for r in range(50)]
    assert all(w > 0 for w in weights) and table.weight(50) == 0
    with localcontext(prec=200):
        most, least = Decimal(rate).exp(), Decimal(rate - 1e-9).exp()
        for first, second in itertools.pairwise(weights):
            assert second * least <= first <= second * most


@pytest.mark.laws
@pytest.mark.parametrize("n_points", [3, 50, 500, 2000])
def test_exact_sampler_accepts_nearly_half_of_its_proposals(n_points):
    # Three long features with noise near the diagonal. Draws would take hours if few were accepted.
    rng, size = np.random.default_rng(0), 1600
    births = rng.uniform(0, 0.6, n_points - 3)
    noise = np.c_[births, births + 0.005 * rng.exponential(size=n_points - 3)]
    diagram = np.concatenate([[[0, 0.6], [0.1, 0.5], [0.2, 0.45]], noise])
    rounded = np.floor(diagram * size + 0.5).astype(int)
    rounded = rounded[rounded[:, 1] > rounded[:, 0]]
    for max_points in (1, 5, 20):
        for epsilon in (0.1, 1.0, 10.0):
            measure = make_base_measure("spike-slab", size, max_points)
            sampler = ExactSampler([DiagramBall(rounded, measure)], table_of(epsilon / 4, size + 1))
            source = NoiseSource(0)
            for _ in range(200):
                sampler.draw(source)
            # The target for the mean is 0.5, which 200 draws estimate to about 0.04.
            assert 200 / sampler.n_proposals_ > 0.42


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


# The continuum.


@pytest.mark.laws
def test_exact_sampler_agrees_with_a_long_markov_chain():
    # 80 independent chains of 500 steps at a low rate, at which chains converge. There are 3
    # tests at a false-alarm rate of 1e-6 each.
    diagram, options = np.array([[0.1, 0.8], [0.5, 0.55]]), {"sensitivity": 1.0, "upper": 1.0}
    options |= {"homology_dimensions": 1, "max_points": 2, "spike": 0.5}
    chain = PublishedPersistence(2.0, n_iter=500, proposal_scale=0.15, **options)
    exact = PublishedPersistence(2.0, mechanism="exact", **options)
    chain, exact = (private.fit([[0.0, 1.0]])._mechanism(1) for private in (chain, exact))
    assert chain.rate == exact.rate == 2.0
    theirs = [chain.release([diagram], (1,), 0.1, 1.0, i)[0] for i in range(80)]
    draw = exact.sampler([diagram], (1,), 0.1, 1.0)
    ours = [draw(i)[0] for i in range(400)]
    for summary in (
        lambda drawn: bottleneck_distance(drawn, diagram),
        lambda drawn: np.max(np.ptp(drawn, axis=1), initial=0),
        lambda drawn: np.max(drawn[:, 1], initial=0),
    ):
        assert ks_2samp([*map(summary, ours)], [*map(summary, theirs)]).pvalue > 1e-6

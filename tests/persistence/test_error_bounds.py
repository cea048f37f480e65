"""Error bounds and noise floors, compared with enumeration and with draws from the worst case."""

import math
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import binom

from sklearn_dptda import DTMFiltration, GridFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.persistence import (
    CubicalPersistence,
    _error_levels,
    beyond_noise,
    bottleneck_distance,
    bottleneck_error_bound,
    epsilon_for_error,
    noise_floor,
    not_empty,
)
from sklearn_dptda.persistence._error_bounds import DiagramErrors
from sklearn_dptda.persistence._error_levels import BirthVolumes, DiagramVolumes, DrawTails
from sklearn_dptda.persistence._error_statement import _errors_of
from sklearn_dptda.persistence._exact_sampler import decay_table
from sklearn_dptda.persistence._mechanisms import make_base_measure, mechanism_of
from sklearn_dptda.persistence._private_grid_persistence import GridFunction
from sklearn_dptda.privacy import NoiseWarning, PrivacyAccountant
from sklearn_dptda.published import PublishedPersistence
from tests._refusals import refuses
from tests.persistence._variants import variant

SIZE = 6
POINTS = [(b, d) for b in range(SIZE) for d in range(b + 1, SIZE + 1)]


def diagrams(most):
    """All diagrams of up to so many grid points, as multisets."""
    for m in range(most + 1):
        yield from combinations_with_replacement(POINTS, m)


def weight(diagram, measure):
    """Weight of a multiset: of all of its orders."""
    orders = math.factorial(len(diagram))
    for point in set(diagram):
        orders //= math.factorial(diagram.count(point))
    rho = math.prod(d - b for b, d in diagram) if measure.linear else 1
    return measure.count_weights[len(diagram)] * orders * rho


@cache
def level(P, D):
    return math.ceil(bottleneck_distance(np.array(P).reshape(-1, 2), np.array(D).reshape(-1, 2)))


MEASURES = [
    make_base_measure("spike-slab", SIZE, 2, spike=0.9),
    make_base_measure("spike-slab", SIZE, 2, spike=0.5, linear=True),
    make_base_measure("uniform", SIZE, 2),
    make_base_measure("poisson", SIZE, 2, mean=1.0),
]


@pytest.mark.parametrize(
    ("measure", "n_diagrams"),
    [(MEASURES[1], 4), *(pytest.param(m, 30, marks=pytest.mark.laws) for m in MEASURES)],
)
def test_diagram_volumes_bound_enumerated_balls(measure, n_diagrams, rng):
    everything = [(P, weight(P, measure)) for P in diagrams(2)]
    some = rng.permutation(np.array(everything, object))[:n_diagrams]
    for D in map(tuple, some[:, 0]):
        levels = np.array([level(P, D) for P, _ in everything])
        for floor in (0, 1):
            long = [(b, d) for b, d in D if d - b > 2 * floor]
            for most in range(len(long), 3):
                volumes = DiagramVolumes(measure, most, floor)
                for s in range(SIZE + 1):
                    ball = sum(w for (_, w), r in zip(everything, levels, strict=True) if r <= s)
                    assert volumes.lowest(s) <= ball <= volumes.highest(s)
                    inside = all(b >= s and d <= SIZE - s for b, d in long)
                    if inside:
                        clear = DiagramVolumes(measure, most, floor, inside=True)
                        assert clear.lowest(s) <= ball


@pytest.mark.laws
@pytest.mark.parametrize("measure", MEASURES)
def test_error_level_and_noise_level_hold_for_enumerated_laws(measure):
    # Tails by enumeration, for every diagram of the class. The level is the smallest one for which
    # the bound holds, so the exact tail must be within beta.
    everything = [(P, weight(P, measure)) for P in diagrams(2)]
    table = decay_table(3, 2, SIZE + 1)
    for most, confidence in ((0, 0.9), (1, 0.6), (1, 0.8)):
        tails = DrawTails(((DiagramVolumes(measure, most, 0),),), table)
        r, (t,) = tails.error_level(confidence), tails.noise_levels(confidence)
        for D in diagrams(most):
            laws = [table.weight(level(P, D)) * w for P, w in everything]
            beyond = sum(x for (P, _), x in zip(everything, laws, strict=True) if level(P, D) > r)
            assert beyond <= (1 - confidence) * sum(laws)
            if not D:
                shown = sum(
                    x
                    for (P, _), x in zip(everything, laws, strict=True)
                    if any(d - b > 2 * t for b, d in P)
                )
                assert shown <= (1 - confidence) * sum(laws)


def test_error_level_and_noise_level_are_the_smallest_that_hold():
    # A twin that stops one level earlier. For the empty diagram, bounds are exact.
    measure = make_base_measure("spike-slab", SIZE, 2, spike=0.5)
    everything = [(P, weight(P, measure)) for P in diagrams(2)]
    table = decay_table(1, 2, SIZE + 1)
    volumes = DiagramVolumes(measure, 0, 0)
    laws = [(level(P, ()), table.weight(level(P, ())) * w) for P, w in everything]
    for confidence in (0.5, 0.8, 0.9, 0.99):
        tails = DrawTails(((volumes,),), table)
        r = tails.error_level(confidence)
        assert r > 0
        at, below = (sum(x for s, x in laws if s > t) / sum(x for _, x in laws) for t in (r, r - 1))
        assert at <= 1 - confidence < below
        # For several parts with separate draws, the tails add up.
        both = DrawTails(((volumes,), (volumes,)), table).error_level(confidence)
        sums = [2 * sum(x for s, x in laws if s > t) for t in (both, both - 1)]
        assert sums[0] <= (1 - confidence) * sum(x for _, x in laws) < sums[1]
        # Longest persistence of noise, in steps. It is even for half persistence in levels.
        (t,) = tails.noise_levels(confidence)
        shown = [
            sum(x for (P, _), (_, x) in zip(everything, laws, strict=True) if longest(P) > 2 * u)
            for u in (t, t - 1)
        ]
        assert shown[0] <= (1 - confidence) * sum(x for _, x in laws) < shown[1]
        # Of the dimension itself, no long points are assumed.
        crowded = DrawTails(((DiagramVolumes(measure, 2, 0),),), table)
        assert crowded.noise_levels(confidence) == [t]


def longest(P):
    return max((d - b for b, d in P), default=0)


def test_bottleneck_error_bound_adds_half_a_step_of_rounding(monkeypatch):
    # Values that are furthest from the grid, which are moved by half a step before the draw.
    private, sensitivity, upper, level = PrivatePersistence(1.0), 0.05, 2.7, 7
    grid, *_ = mechanism_of(private, (0, 1)).prepare(sensitivity, upper)
    asked = []

    def error_level(tails, confidence):
        asked.append(tails.groups)
        return level

    def noise_levels(tails, confidence):
        asked.append(tails.groups)
        return [level, level]

    monkeypatch.setattr(DrawTails, "error_level", error_level)
    monkeypatch.setattr(DrawTails, "noise_levels", noise_levels)
    bound = bottleneck_error_bound(private, sensitivity, upper)
    for part in (0.4999, -0.4999):
        exact = grid.step * (np.array([[10.0, 50.0]]) + part)
        moved = grid.integers(exact) - level * int(np.sign(part))
        error = bottleneck_distance(exact, grid.values(moved))
        assert 0.999 * bound < error <= bound
    floors = noise_floor(private, sensitivity, upper)
    shown = np.ptp(grid.values([(10, 10 + 2 * level)]))
    assert all(shown <= floor < shown + grid.step for floor in floors)
    # Features that are distinguished from noise may lie at the ends of the range.
    volumes = [part for groups in asked for group in groups for part in group]
    assert len(volumes) == 6 and not any(part.inside for part in volumes)
    # Short points are moved as well, and may become half a step longer.
    for part in volumes:
        if isinstance(part, DiagramVolumes):
            assert part.floor * grid.step >= sensitivity + 0.5 * grid.step
    # One component is essential. Its birth is drawn as well.
    for q in (0, 1):
        bottleneck_error_bound(PrivatePersistence(homology_dimensions=q), sensitivity, upper)
        (group,) = asked[-1]
        kinds = [type(part) for part in group]
        assert kinds == [[DiagramVolumes, BirthVolumes], [DiagramVolumes]][q]


def test_diagram_errors_are_equal_for_equal_laws_only():
    # Fits look up their errors in a cache of equal objects.
    caps = ((0.01, 1.0), (0.005, 0.5))
    errors = DiagramErrors(PrivatePersistence(2.0), caps)
    same = PrivatePersistence(2.0, random_state=0, n_jobs=2, accountant=PrivacyAccountant(1.0))
    assert errors == DiagramErrors(same, caps) and hash(errors) == hash(DiagramErrors(same, caps))
    assert errors.at(1.0) == DiagramErrors(PrivatePersistence(1.0), caps)
    others = [{"epsilon": 1.0}, {"max_points": 3}, {"spike": 0.5}, {"homology_dimensions": 1}]
    for options in (*others, {"clipped_share": True}):
        assert errors != DiagramErrors(PrivatePersistence(**{"epsilon": 2.0, **options}), caps)
    for options in ({"utility": "sum"}, {"base_measure": "uniform"}, {"slab": "persistence"}):
        assert errors != DiagramErrors(variant(epsilon=2.0, **options), caps)
    for options in ({"floor": 0.1}, {"n_features": 1}, {"moved": 0.1}, {"confidence": 0.9}):
        assert errors != DiagramErrors(PrivatePersistence(2.0), caps, **options)
    assert errors != DiagramErrors(PrivatePersistence(2.0), caps[:1])
    # The cache keeps no accountant.
    function = GridFunction(np.ones((4, 4)), 0.01, 1.0, 0.0)
    (cached,) = _errors_of(same, [function])
    assert cached.private.accountant is None and cached is _errors_of(same, [function])[0]


def test_error_bounds_are_zero_without_noise_and_infinite_beyond_max_points():
    exact = PrivatePersistence(math.inf, homology_dimensions=(0, 1))
    assert bottleneck_error_bound(exact, 0.1, 1.0) == 0
    assert noise_floor(exact, 0.1, 1.0) == (0, 0)
    private = PrivatePersistence(5.0, max_points=2)
    assert math.isinf(bottleneck_error_bound(private, 0.001, 1.0, n_features=3))
    assert math.isfinite(bottleneck_error_bound(private, 0.001, 1.0, n_features=2))


def released_errors(private, exact, sensitivity, upper, n):
    draw = mechanism_of(private, (0, 1)).sampler(exact, (0, 1), sensitivity, upper)
    for release in map(draw, range(n)):
        yield max(bottleneck_distance(a, b) for a, b in zip(exact, release, strict=True))


@pytest.mark.nightly
@pytest.mark.parametrize("options", [{}, {"utility": "sum"}, {"slab": "persistence"}])
def test_bottleneck_error_bound_covers_the_worst_diagrams(options):
    # 300 draws each from diagrams near the bound: at 95 %, more than 41 errors above it have a
    # probability below 1e-8, for each of 14 cases.
    assert binom.sf(41, 300, 0.05) < 1e-8
    private = variant(**options)
    sensitivity, upper = 0.003, 2.7
    bound = bottleneck_error_bound(private, sensitivity, upper)
    inside = bottleneck_error_bound(private, sensitivity, upper, n_features=(1, 2), inside=True)
    assert inside < bound
    largest = 0.0
    for part in (0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 2.0):
        u = part * inside
        middle = upper / 2
        H0 = np.array([[0.3, upper], [middle - u, middle + u]])
        together = np.array([[middle - u, middle + u], [middle - 0.9 * u, middle + 0.9 * u]])
        apart = np.array([[0.5, 0.5 + 2 * u], [upper - 0.5 - 2 * u, upper - 0.5]])
        for H1 in (together, apart):
            errors = np.array(list(released_errors(private, [H0, H1], sensitivity, upper, 300)))
            assert (errors > inside).sum() <= 41
            largest = max(largest, np.quantile(errors, 0.95))
    assert largest > inside / 1.5


@pytest.mark.laws
def test_noise_floor_is_kept_where_there_is_nothing():
    # At 95 %, more of 300 draws above the floor have a probability below 1e-6.
    most = binom.isf(1e-6, 300, 0.05)
    private, sensitivity, upper = PrivatePersistence(1.0), 0.003, 2.7
    _, floor = noise_floor(private, sensitivity, upper)
    mechanism = mechanism_of(private, (0, 1))
    crowd = np.array([[0.2, upper], [0.9, 1.5], [1.0, 1.3]])
    short = np.array([[b, b + 2 * sensitivity] for b in np.linspace(0.3, 2.2, 10)])
    for H1 in (np.zeros((0, 2)), short):
        draw = mechanism.sampler([crowd, H1], (0, 1), sensitivity, upper)
        shown = [np.ptp(draw(seed)[1], axis=1) for seed in range(300)]
        assert sum((lengths > floor).any() for lengths in shown) <= most


@pytest.mark.laws
def test_private_persistence_states_its_error_bound_and_noise_floor():
    X = make_two_circles(4000, random_state=0)
    filtration = DTMFiltration(0.2, bounds=(-2.5, 3)).fit_transform([X])[0]
    private = PrivatePersistence(2.0, random_state=0).fit([filtration])
    public, caps = (filtration.sensitivity, filtration.upper), filtration.smaller_caps
    bound = bottleneck_error_bound(private, *public, smaller_caps=caps)
    assert private.error_bound_ == bound and 0.15 < bound < 0.17
    assert private.noise_floor_ == noise_floor(private, *public, smaller_caps=caps)
    # The choice of a cap costs little more than one known cap.
    assert bottleneck_error_bound(private, *public) < bound
    assert bound < 1.1 * bottleneck_error_bound(private, *public)
    assert f"a persistence above {2 * bound:.3g} then" in private.error_statement_
    # Both loops are longer than twice the bound, so they survive.
    exact = CubicalPersistence(1).fit_transform([filtration])[0]
    assert (np.ptp(exact, axis=1) > 2 * bound).sum() == 2
    (_, loops), *_ = private.transform([filtration])
    assert (np.ptp(loops, axis=1) > bound).sum() == 2
    exact = PrivatePersistence(math.inf).fit([filtration])
    assert exact.error_bound_ == 0 and exact.noise_floor_ == (0, 0)
    chain = PublishedPersistence().fit([filtration])
    assert chain.error_bound_ is None and "no error bound" in chain.error_statement_


@pytest.mark.parametrize(
    "error", [0.5, *(pytest.param(e, marks=pytest.mark.laws) for e in (0.1, 0.03))]
)
def test_epsilon_for_error_is_hardly_more_than_needed(error):
    public = (0.003, 2.7)
    private = PrivatePersistence(max_points=5)
    epsilon = epsilon_for_error(error, private, *public)
    at, below = (
        bottleneck_error_bound(private.set_params(epsilon=factor * epsilon), *public, floor=0.003)
        for factor in (1.0, 0.97)
    )
    assert at <= error < below * 1.05


@pytest.mark.laws
def test_bottleneck_error_bound_scales_with_the_unit():
    private, public = PrivatePersistence(), (0.003, 2.7)
    assert math.isinf(epsilon_for_error(0.002, private, *public))
    scaled = bottleneck_error_bound(PrivatePersistence(2.0), 300.0, 270_000.0)
    assert scaled == pytest.approx(1e5 * bottleneck_error_bound(PrivatePersistence(2.0), *public))


def test_private_persistence_warns_of_hopeless_fits_unpaid():
    accountant = PrivacyAccountant(5.0)
    private = PrivatePersistence(
        1.0, max_points=3, sensitivity=0.1, upper=2.0, accountant=accountant
    )
    with pytest.warns(NoiseWarning, match="hides every feature.*visible from epsilon="):
        private.fit([np.ones((4, 4))])
    assert not accountant.spends()
    assert math.isinf(private.error_bound_) or private.error_bound_ > 1.0


@pytest.mark.laws
def test_epsilon_for_error_recommends_no_infinite_epsilon():
    # Errors are at least the sensitivity. A feature of a quarter of the range is visible if they
    # are below half of it, .25. With .249, that is found out by looking for an epsilon.
    for sensitivity in (0.3, 0.249):
        private = PrivatePersistence(1.0, sensitivity=sensitivity, upper=2.0)
        with pytest.warns(NoiseWarning, match="hides every feature.*by PrivateCloud.$"):
            private.fit([np.ones((4, 4))])
    assert math.isinf(epsilon_for_error(0.25, PrivatePersistence(), 0.3, 2.0))
    # Above the range there are no errors, whatever the floor.
    loops, beyond = PrivatePersistence(homology_dimensions=1), {"floor": 1.5, "n_features": 0}
    assert epsilon_for_error(1.00886538, loops, 0.1277157041889031, 1.0, **beyond) < 4
    refuses("mcmc", epsilon_for_error, 0.25, PublishedPersistence(), 0.3, 2.0)


def test_private_persistence_adds_the_error_of_a_lattice_and_warns():
    axes = (np.arange(4.0),) * 2

    def function(sensitivity, error):
        return GridFiltration(np.ones((4, 4)), sensitivity, 1.0, 100, "made up", error, axes=axes)

    def fitted(*functions):
        return PrivatePersistence(5.0, max_points=3).fit(list(functions)).error_bound_

    # The error of the first filtration is larger, but less than its sensitivity.
    fine, coarse = function(0.02, 0.01), function(0.001, 0.005)
    assert fitted(fine) >= fitted(function(0.02, 0.0)) + 0.01
    with pytest.warns(UserWarning, match=r"0\.005, which is more than the sensitivity, 0\.001"):
        fitted(fine, coarse)


def test_birth_volumes_bound_enumerated_balls():
    for inside in (False, True):
        births = BirthVolumes(10, inside)
        for birth in range(11):
            for s in range(11):
                n = min(birth + s, 10) - max(birth - s, 0) + 1
                assert n <= births.highest(s)
                assert births.lowest(s) <= n or (inside and not s <= birth <= 10 - s)


def test_beyond_noise_and_not_empty_by_hand():
    loops = [[0.1, 0.9], [0.3, 0.5], [0.2, 0.3]]
    assert beyond_noise(loops, 0.2, dimension=1).tolist() == [True, False, False]
    assert beyond_noise(loops, 0.5, dimension=1).tolist() == [False] * 3
    assert beyond_noise(loops, 0.05, dimension=1).tolist() == [True, True, False]
    assert not_empty(loops, 0.7, dimension=1) and not not_empty(loops, 0.9, dimension=1)
    # One of the components is essential.
    components = [[0.5, 0.7], [0.1, 2.0], [0.6, 1.2]]
    assert beyond_noise(components, 5.0, dimension=0).tolist() == [False, True, False]
    assert beyond_noise(components, 0.2, dimension=0).tolist() == [False, True, True]
    assert not_empty(components, 0.5, dimension=0) and not not_empty(components, 0.7, dimension=0)
    for dimension in (0, 1):
        assert beyond_noise([], 0.1, dimension=dimension).shape == (0,)
        assert not not_empty([], 0.1, dimension=dimension)


@pytest.mark.nightly
def test_beyond_noise_flags_what_is_near_a_feature():
    # Two weak loops raise the level, and with it the noise: 400 releases each. At 95 %, more than
    # 45 with a false flag have a probability below 1e-6.
    assert binom.sf(45, 400, 0.05) < 1e-6
    sensitivity, upper = 0.0034, 2.75
    for epsilon in (0.8, 2.0):
        private = PrivatePersistence(epsilon, homology_dimensions=1)
        bound = bottleneck_error_bound(private, sensitivity, upper)
        floor = noise_floor(private, sensitivity, upper)[0]
        mechanism = mechanism_of(private, (1,))
        longest_would_fail = 0
        for part in (0.4, 0.6, 1.2):
            h = part * bound
            exact = np.array([[0.1, 0.1 + 2 * h], [0.12, 0.12 + 2 * h]])
            false = 0
            for (loops,) in map(mechanism.sampler([exact], (1,), sensitivity, upper), range(400)):
                near = (np.abs(loops[:, None] - exact).max(axis=2) <= bound).any(axis=1)
                false += (beyond_noise(loops, bound, dimension=1) & ~near).any()
                lengths = np.ptp(loops, axis=1)
                apart = np.abs(loops[:, None] - exact).max(axis=2).min(axis=1, initial=math.inf)
                noise = apart > lengths / 2
                longest_would_fail += bool(
                    len(loops) and lengths.max() > floor and noise[lengths.argmax()]
                )
            assert false <= 45
        # The twin, which flags the longest point if it is above the floor.
        assert longest_would_fail > 60


@pytest.mark.laws
def test_error_bounds_of_a_lattice_hold_for_the_cloud():
    # 30 points that are just too short on the cloud, and longer by its error on the lattice: at 95
    # %, more than 45 of 400 that are flagged have a probability below 1e-6.
    sensitivity, upper, off = 0.0034, 2.75, 0.1
    values, axes = np.ones((4, 4)), (np.arange(4.0),) * 2
    item = GridFiltration(values, sensitivity, upper, 100, "lattice", off, axes=axes)
    private = PrivatePersistence(2.0, homology_dimensions=1)
    with pytest.warns(UserWarning, match="moved to a lattice"):
        private.fit([item])
    h = 0.999 * (sensitivity + off)
    births = np.linspace(0.1, 2.2, 30)
    short = np.column_stack([births, births + 2 * h])
    mechanism = mechanism_of(private, (1,))
    shown = far = 0
    for (loops,) in map(mechanism.sampler([short], (1,), sensitivity, upper), range(400)):
        shown += np.ptp(loops, axis=1).max(initial=0.0) > private.noise_floor_[0]
        far += bottleneck_distance(loops, short) > private.error_bound_ - off
    assert shown <= 45 and far <= 45


@pytest.mark.nightly
def test_beyond_noise_flags_a_ring_and_no_disc():
    # 200 releases each: at 95 %, more than 29 with a false flag have a probability below 1e-6.
    assert binom.sf(29, 200, 0.05) < 1e-6
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 4000)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    disc = ring * np.sqrt(rng.uniform(size=(4000, 1)))
    seen = []
    for cloud in (ring, disc):
        filtration = DTMFiltration(0.2, bounds=(-1, 1)).fit_transform([cloud])[0]
        right = shown = 0
        for seed in range(200):
            private = PrivatePersistence(2.0, homology_dimensions=(0, 1), random_state=seed)
            loops = private.fit_transform([filtration])[0][1]
            flags = beyond_noise(loops, private.error_bound_, dimension=1)
            some = not_empty(loops, private.noise_floor_[1], dimension=1)
            right += flags.sum() == some == (cloud is ring)
            shown += len(loops)
        assert right >= 171
        seen.append((right, shown))
    assert seen[0][1] >= 200


def undecided(tails, more, less, rest):
    return np.zeros(more.logs.shape), np.ones(more.logs.shape)


NUMBERS = [
    ({}, {}, 1.0),
    ({"epsilon": 30.0, "spike": 0.1}, {"n_features": 0, "inside": True}, 0.2),
    ({"epsilon": 0.05, "max_points": 1}, {"n_features": 2}, 1.0),
    ({"homology_dimensions": 0}, {"floor": 0.5, "confidence": 0.5}, 1.0),
    ({"base_measure": "poisson", "slab": "persistence"}, {"confidence": 0.999}, 3.0),
    ({"utility": "sum", "base_measure": "uniform"}, {}, 1.0),
]


@pytest.mark.parametrize(("options", "more", "scale"), NUMBERS)
def test_logarithms_decide_error_levels_as_integers_do(options, more, scale, monkeypatch):
    published = {"utility", "base_measure"} & set(options)
    private = (variant if published else PrivatePersistence)(**options)
    caps = [(0.01 * scale * 0.7**j, 2.75 * 0.7**j) for j in range(3)]

    def results():
        errors = DiagramErrors(private, caps, **more)
        return errors.bounds, errors.noise_floors

    with monkeypatch.context() as patch:
        patch.setattr(DrawTails, "_ratios", undecided)
        exact = results()
    assert results() == exact
    # Nearly no comparison is so close that it needs the integers.
    calls = []
    monkeypatch.setattr(_error_levels, "_weights", lambda *group: calls.append(group))
    if not more:
        assert results() == exact and not calls


@pytest.mark.parametrize(
    "epsilon", [1e5, *(pytest.param(e, marks=pytest.mark.laws) for e in (30.0, 1e3))]
)
def test_error_levels_use_short_integers_at_a_large_epsilon(epsilon, monkeypatch):
    # They had millions of bits, and a fit at a large epsilon took minutes.
    sizes, honest = [], _error_levels._weights.__wrapped__

    def watched(*arguments):
        both = honest(*arguments)
        sizes.extend(max(value.bit_length() for value in values) for values in both)
        return both

    monkeypatch.setattr(_error_levels, "_weights", watched)
    # The integers are only computed if their logarithms decide nothing.
    monkeypatch.setattr(DrawTails, "_ratios", undecided)
    # Another number for each run, because results are cached.
    public = 0.0034 * 2.75, 2.75 * (1 + epsilon * 1e-9)
    private = PrivatePersistence(epsilon)
    error, floors = bottleneck_error_bound(private, *public), noise_floor(private, *public)
    assert 0 < max(error, *floors) < 10 * public[0]
    assert 0 < max(sizes) < 10_000 + 3 * epsilon

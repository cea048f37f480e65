"""Error bounds and noise floors, compared with enumeration and with draws from the worst case."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from sklearn_dptda import DTMFiltration, GridFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.persistence import (
    CubicalPersistence,
    DiagramErrors,
    beyond_noise,
    bottleneck_distance,
    not_empty,
)
from sklearn_dptda.persistence._error_levels import BirthVolumes, DiagramVolumes, DrawTails, Logs
from sklearn_dptda.persistence._error_statement import _errors_of
from sklearn_dptda.persistence._exact_sampler import decay_table
from sklearn_dptda.persistence._mechanisms import make_base_measure, mechanism_of
from sklearn_dptda.persistence._private_grid_persistence import GridFunction
from sklearn_dptda.privacy import NoiseWarning, PrivacyAccountant
from sklearn_dptda.published import PublishedPersistence
from tests.persistence._oracles import weights_of
from tests.persistence._variants import variant

SIZE = 6


@cache
def level(P, D):
    return math.ceil(bottleneck_distance(np.array(P).reshape(-1, 2), np.array(D).reshape(-1, 2)))


def at(bound, s):
    """Logarithm of a bound at one level. Bounds that are attained differ by rounding alone."""
    logs = bound(np.array([float(s)])).logs
    return logs[0] + 1e-12 * (1 if bound.__name__ == "highest" else -1)


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
    everything = list(weights_of(measure).items())
    for D, _ in (everything[i] for i in rng.permutation(len(everything))[:n_diagrams]):
        levels = np.array([level(P, D) for P, _ in everything])
        for floor in (0, 1):
            long = [(b, d) for b, d in D if d - b > 2 * floor]
            for most in range(len(long), 3):
                volumes = DiagramVolumes(measure, most, floor)
                clear = DiagramVolumes(measure, most, floor, inside=True)
                for s in range(SIZE + 1):
                    ball = sum(w for (_, w), r in zip(everything, levels, strict=True) if r <= s)
                    log = math.log(ball) if ball else -math.inf
                    assert at(volumes.lowest, s) <= log <= at(volumes.highest, s)
                    if all(b >= s and d <= SIZE - s for b, d in long):
                        assert at(clear.lowest, s) <= log


@pytest.mark.laws
@pytest.mark.parametrize("measure", MEASURES)
def test_error_level_and_noise_level_hold_for_enumerated_laws(measure):
    # Tails by enumeration, for every diagram of the class. The level is the smallest one for which
    # the bound holds, so the exact tail must be within beta.
    everything = list(weights_of(measure).items())
    table = decay_table(3, 2, SIZE + 1)
    for most, confidence in ((0, 0.9), (1, 0.6), (1, 0.8)):
        tails = DrawTails(((DiagramVolumes(measure, most, 0),),), table)
        r, (t,) = tails.error_level(confidence), tails.noise_levels(confidence)
        for D in (P for P, _ in everything if len(P) <= most):
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


def test_error_bound_adds_half_a_step_of_rounding(monkeypatch):
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
    bound = DiagramErrors(private, [(sensitivity, upper)]).bound
    for part in (0.4999, -0.4999):
        exact = grid.step * (np.array([[10.0, 50.0]]) + part)
        moved = grid.integers(exact) - level * int(np.sign(part))
        error = bottleneck_distance(exact, grid.values(moved))
        assert 0.999 * bound < error <= bound
    floors = DiagramErrors(private, [(sensitivity, upper)]).noise_floors
    shown = np.ptp(grid.values([(10, 10 + 2 * level)]))
    assert all(shown <= floor < shown + grid.step for floor in floors)
    # Features that are distinguished from noise may lie at the ends of the range.
    volumes = [part for groups in asked for group in groups for part in group]
    assert len(volumes) == 6 and not any(part.inside for part in volumes)
    # Short points are moved as well, and may become half a step longer.
    for part in volumes:
        if isinstance(part, DiagramVolumes):
            assert part.floor * grid.step >= sensitivity + 0.5 * grid.step
    # And moved to a lattice, by its error.
    assert DiagramErrors(private, [(sensitivity, upper)], moved=0.1).noise_floors
    floors = [part.floor for part in asked[-1][0] if isinstance(part, DiagramVolumes)]
    assert min(floors) * grid.step >= sensitivity + 0.1 + 0.5 * grid.step
    # One component is essential. Its birth is drawn as well.
    for q in (0, 1):
        one = DiagramErrors(PrivatePersistence(homology_dimensions=q), [(sensitivity, upper)])
        assert one.bound > 0
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
    assert DiagramErrors(exact, [(0.1, 1.0)]).bound == 0
    assert DiagramErrors(exact, [(0.1, 1.0)]).noise_floors == (0, 0)
    private = PrivatePersistence(5.0, max_points=2)
    assert math.isinf(DiagramErrors(private, [(0.001, 1.0)], n_features=3).bound)
    assert math.isfinite(DiagramErrors(private, [(0.001, 1.0)], n_features=2).bound)


def released_errors(private, exact, sensitivity, upper, n):
    draw = mechanism_of(private, (0, 1)).sampler(exact, (0, 1), sensitivity, upper)
    for release in map(draw, range(n)):
        yield max(bottleneck_distance(a, b) for a, b in zip(exact, release, strict=True))


@pytest.mark.nightly
@pytest.mark.parametrize("options", [{}, {"utility": "sum"}, {"slab": "persistence"}])
def test_error_bound_covers_the_worst_diagrams(options):
    # 300 draws each from diagrams near the bound: at 95 %, more than 41 errors above it have a
    # probability below 1e-8, for each of 14 cases.
    assert binom.sf(41, 300, 0.05) < 1e-8
    private = variant(**options)
    sensitivity, upper = public = 0.003, 2.7
    bound = DiagramErrors(private, [public]).bound
    inside = DiagramErrors(private, [public], n_features=(1, 2), inside=True).bound
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
def test_private_persistence_states_its_error_bound_and_noise_floor():
    X = make_two_circles(4000, random_state=0)
    filtration = DTMFiltration(0.2, bounds=(-2.5, 3)).fit_transform([X])[0]
    private = PrivatePersistence(2.0, random_state=0).fit([filtration])
    public, caps = (filtration.sensitivity, filtration.upper), filtration.smaller_caps
    errors = DiagramErrors(private, [public, *caps])
    bound = errors.bound
    assert private.error_bound_ == bound and 0.15 < bound < 0.17
    assert private.noise_floor_ == errors.noise_floors
    # The choice of a cap costs little more than one known cap.
    assert DiagramErrors(private, [public]).bound < bound
    assert bound < 1.1 * DiagramErrors(private, [public]).bound
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
def test_epsilon_for_an_error_is_hardly_more_than_needed(error):
    public = (0.003, 2.7)
    private = PrivatePersistence(max_points=5)
    epsilon = DiagramErrors(private, [public]).epsilon_for(error)
    at, below = (
        DiagramErrors(private.set_params(epsilon=factor * epsilon), [public], floor=0.003).bound
        for factor in (1.0, 0.97)
    )
    assert at <= error < below * 1.05


@pytest.mark.laws
def test_error_bound_scales_with_the_unit():
    one, scaled = (
        DiagramErrors(PrivatePersistence(2.0), [(0.003 * unit, 2.7 * unit)]).bound
        for unit in (1.0, 1e5)
    )
    assert scaled == pytest.approx(1e5 * one)


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
def test_epsilon_for_an_error_recommends_no_infinite_epsilon():
    # Errors are at least the sensitivity. A feature of a quarter of the range is visible if they
    # are below half of it, .25. With .249, that is found out by looking for an epsilon.
    for sensitivity in (0.3, 0.249):
        private = PrivatePersistence(1.0, sensitivity=sensitivity, upper=2.0)
        with pytest.warns(NoiseWarning, match="hides every feature.*by PrivateCloud.$"):
            private.fit([np.ones((4, 4))])
    assert math.isinf(DiagramErrors(PrivatePersistence(), [(0.3, 2.0)]).epsilon_for(0.25))
    # Above the range there are no errors, whatever the floor.
    loops, beyond = PrivatePersistence(homology_dimensions=1), {"floor": 1.5, "n_features": 0}
    assert DiagramErrors(loops, [(0.1277157041889031, 1.0)], **beyond).epsilon_for(1.00886538) < 4


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
                log = math.log(min(birth + s, 10) - max(birth - s, 0) + 1)
                assert log <= at(births.highest, s)
                assert at(births.lowest, s) <= log or (inside and not s <= birth <= 10 - s)


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


class Exact:
    """The bounds of the theory as integers, level by level, for parts that share one draw."""

    def __init__(self, group, table):
        self.group, self.levels = group, range(table.n_levels)
        self.later = [table.weight(s + 1) for s in self.levels]
        self.masses = [table.weight(s) - table.weight(s + 1) for s in self.levels]

    def ratios(self):
        """Weight beyond each level, as a share of the whole."""
        least = self.balls(self.group, lowest)
        spread = self.sums_from(self.balls(self.group, highest))
        for r in self.levels:
            ball = self.later[r] * math.prod(lowest(part, r) for part in self.group)
            yield Fraction(spread[r + 1] - ball, spread[r + 1] + sum(least[: r + 1]))

    def noise_ratios(self, i):
        """Weight of the diagrams with a point longer than twice each level, as a share."""
        part, others = replace(self.group[i], most=0), self.group[:i] + self.group[i + 1 :]
        least, most = (self.balls(others, bound) for bound in (lowest, highest))
        kept = self.sums_from([w * (s >= part.floor) for s, w in enumerate(least)])
        spread = self.sums_from([w * highest(part, s) for s, w in enumerate(most)])
        within = [w * lowest(part, s) for s, w in enumerate(least)]
        for r in self.levels:
            near = near_diagonal(part.measure, r)
            first = max(r - part.floor + 1, 0)
            beyond = spread[first] - near * self.sums_from(most)[first]
            yield Fraction(beyond, beyond + sum(within[: r + 1]) + near * kept[r + 1])

    def balls(self, group, bound):
        return [w * math.prod(bound(part, s) for part in group) for s, w in enumerate(self.masses)]

    @staticmethod
    def sums_from(weights):
        return [sum(weights[s:]) for s in range(len(weights) + 1)]


def strip(measure, r):
    """Weight of the points within a level of the diagonal."""
    rho = range(1, min(2 * r, measure.size) + 1)
    return sum((measure.size + 1 - w) * (w if measure.linear else 1) for w in rho)


def near_diagonal(measure, r):
    return sum(w * strip(measure, r) ** m for m, w in enumerate(measure.count_weights))


def highest(part, s):
    if isinstance(part, BirthVolumes):
        return min(2 * s, part.size) + 1
    measure, total = part.measure, 0
    square = (2 * s + 1) ** 2 * (measure.size if measure.linear else 1)
    for m, w in enumerate(measure.count_weights):
        for i in range(min(m, part.most) + 1):
            ways = math.perm(m, i) * math.comb(part.most, i)
            total += w * ways * square**i * strip(measure, s + part.floor) ** (m - i)
    return min(total, near_diagonal(measure, measure.size))


def lowest(part, s):
    if isinstance(part, BirthVolumes):
        return min(s, part.size) + 1
    square = (s + 1) ** 2 * (s + 1 if part.measure.linear else 1)
    weights = part.measure.count_weights
    each = [
        sum(w * square**j * strip(part.measure, s) ** i for i, w in enumerate(weights[j:]))
        for j in range(part.most + 1)
    ]
    return min(each) * (s >= part.floor)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("floor", "steepness"), [(0, 1), (2, 1), (1, 40)])
def test_error_levels_are_those_of_integers(measure, floor, steepness):
    size = 50
    measure = replace(measure, size=size)
    table = decay_table(steepness, 5, size + 1)
    parts = [DiagramVolumes(measure, most, floor) for most in (1, 0)]
    first, second = (parts[0], BirthVolumes(size)), (parts[1], BirthVolumes(size), parts[0])
    for groups in ((first,), (second,), (first, second)):
        exact = [Exact(group, table) for group in groups]
        # For groups with separate draws, the tails add up.
        ratios = [map(sum, zip(*(each.ratios() for each in exact), strict=True))]
        ratios += [each.noise_ratios(i) for each in exact for i in range(len(each.group)) if i != 1]
        ratios = list(map(list, ratios))
        # The laws have two digits of a percent, and with the steep one, many digits.
        for confidence in (0.5, 0.95, 1 - 1e-9):
            tails = DrawTails(groups, table)
            found = [tails.error_level(confidence), *tails.noise_levels(confidence)]
            for level, each in zip(found, ratios, strict=True):
                enough = [r for r, ratio in enumerate(each) if ratio <= 1 - Fraction(confidence)]
                assert level == (enough[0] if enough else None)


def test_error_levels_cover_the_rounding_of_logarithms(rng):
    # Logarithms that are off by the rounding of 1,000 operations, in the worst directions.
    tails = DrawTails(((DiagramVolumes(MEASURES[0], 0, 0),),), decay_table(1, 2, SIZE + 1))
    for size in (1.0, 1e3, 1e6):
        for _ in range(100):
            more, less, rest = np.sort(size + rng.uniform(0, 5, 3))[[1, 0, 2]]
            off = 1000 * np.finfo(float).eps * size
            # Differences of these logarithms are exact, and so is the ratio up to a few roundings.
            true = (1 - math.exp(less - more)) / (1 - math.exp(less - more) + math.exp(rest - more))
            moved = (Logs(np.array([log])) for log in (more - off, less + off, rest + off))
            (share,) = tails._share(*moved)
            assert true * (1 - 1e-14) <= share <= true + 1e-2


@pytest.mark.parametrize(
    "epsilon", [1e5, *(pytest.param(e, marks=pytest.mark.laws) for e in (30.0, 1e3))]
)
def test_error_levels_of_a_large_epsilon_are_small(epsilon):
    public = 0.0034 * 2.75, 2.75
    errors = DiagramErrors(PrivatePersistence(epsilon), [public])
    assert 0 < max(errors.bound, *errors.noise_floors) < 10 * public[0]

"""Persistence profiles: sensitivity, law, intervals, and refusals."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PersistenceProfile,
)
from sklearn_dptda.persistence import _private_cap, _private_grid_persistence
from sklearn_dptda.persistence._lifetimes import longest_lifetimes, make_lattice
from sklearn_dptda.persistence._persistence_profile import half_width, in_order
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import audit_epsilon
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from tests._refusals import refuses
from tests.persistence._clouds import four_clouds
from tests.persistence._long_features import attacked, filtration, loops, wells

FALSE_ALARM = 1e-6
NUMBERS = {0: 2, 1: 2}


def moved(values, other, sensitivity, upper=1.0, numbers=NUMBERS):
    """Steps by which the lifetimes of two functions differ, and what is allowed."""
    lattice = make_lattice(sensitivity, upper)
    pair = [np.concatenate(longest_lifetimes(v, upper, numbers, lattice)) for v in (values, other)]
    return int(np.abs(pair[0] - pair[1]).max()), lattice.sensitivity


# Sensitivity.


@pytest.mark.laws
def test_longest_lifetimes_of_random_neighbours_keep_the_sensitivity(rng):
    worst = 0.0
    for _ in range(250):
        shape = tuple(rng.integers(3, 7, size=rng.integers(1, 4)))
        sensitivity = 10 ** rng.uniform(-3, 0)
        values = rng.uniform(0, 1, shape)
        change = rng.choice([-1.0, 0.0, 1.0], shape) * sensitivity
        # Rounding a sum must not turn clouds into neighbours that are not.
        other = np.clip(values + change * (1 - 1e-12), 0.0, 1.0)
        numbers = dict.fromkeys(range(max(2, len(shape))), 3)
        steps, allowed = moved(values, other, sensitivity, numbers=numbers)
        assert steps <= allowed
        worst = max(worst, steps / allowed)
    assert worst > 0.9


@pytest.mark.parametrize("make", [loops, wells])
@pytest.mark.parametrize("sensitivity", [2.0**-5, 0.01])
def test_longest_lifetimes_of_the_worst_neighbours_reach_the_sensitivity(make, sensitivity):
    values = make([0.3, 0.1])
    other = attacked(values, sensitivity * (1 - 1e-13), level=0.5 if make is wells else 0.26)
    assert np.abs(values - other).max() <= sensitivity
    steps, allowed = moved(values, other, sensitivity)
    # All of it if the sensitivity is a power of two, and otherwise all except the rounding of both
    # ends.
    assert allowed - 4 <= steps <= allowed


@pytest.mark.parametrize("n_lattices", [30, pytest.param(300, marks=pytest.mark.laws)])
def test_lifetime_lattice_rounding_never_widens_the_sensitivity(rng, n_lattices):
    # Compared with exact fractions, with values at the ends of steps.
    for _ in range(n_lattices):
        sensitivity = 10 ** rng.uniform(-8, 2)
        upper = sensitivity * 2 ** rng.uniform(-3, 29)
        lattice = make_lattice(sensitivity, upper)
        x = rng.uniform(0, upper, 200)
        x[::2] = np.nextafter(np.floor(x[::2] / lattice.step) * lattice.step, -1)
        x = np.clip(x, 0, None)
        y = x + sensitivity
        far = [Fraction(b) - Fraction(a) > Fraction(sensitivity) for a, b in zip(x, y, strict=True)]
        y[far] = np.nextafter(y[far], 0)
        shift = lattice.levels.encode(y) - lattice.levels.encode(x)
        assert 2 * shift.max() <= lattice.sensitivity <= 2 * sensitivity / lattice.step + 2
        # Little is lost.
        assert lattice.sensitivity * lattice.step <= 2 * sensitivity * (1 + 2.0**-16)


# The law.


class TwiceTheRate(PersistenceProfile):
    """Takes a persistence to move by the sensitivity of the function, not by twice as much."""

    def _under(self, cap, epsilon, moved):
        under = super()._under(cap, epsilon, moved)
        return under._replace(rate=2 * under.rate)


def loss_of_worst_pair(kind, epsilon, sensitivity):
    """Largest log ratio of the laws of two neighbours, exactly: the normaliser cancels."""
    values = loops([0.3, 0.1])
    other = attacked(values, sensitivity, level=0.26)
    fitted = kind(epsilon, sensitivity=sensitivity, upper=1.0).fit([values])
    under = fitted._under((sensitivity, 1.0), epsilon, 0.0)
    first, second = (longest_lifetimes(v, 1.0, NUMBERS, under.lattice) for v in (values, other))
    apart = int(np.abs(np.array(first) - np.array(second)).max())
    # The scale with which the noise is drawn.
    return apart / Fraction(ROUND_UP / under.rate)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 7.0, 1e6])
def test_persistence_profile_loses_epsilon_and_no_more(epsilon):
    loss = loss_of_worst_pair(PersistenceProfile, epsilon, 2.0**-5)
    assert 0.999 * epsilon < loss <= Fraction(epsilon)
    assert loss_of_worst_pair(TwiceTheRate, epsilon, 2.0**-5) > 1.9 * epsilon


def longest_loop(kind, pair, **options):
    estimator = kind(1.0, 1, 1, sensitivity=2.0**-5, upper=1.0)

    def mechanism(values, random_state=None):
        seeded = clone(estimator).set_params(random_state=random_state)
        return seeded.fit_transform([values]).item()

    return audit_epsilon(mechanism, *pair, confidence=1 - FALSE_ALARM, **options)


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "caught"), [(PersistenceProfile, False), (TwiceTheRate, True)])
def test_persistence_profile_audit_catches_a_twin_of_half_the_noise(kind, caught):
    values = loops([0.3, 0.1])
    pair = values, attacked(values, 2.0**-5, level=0.26)
    result = longest_loop(kind, pair, n_runs=4000, random_state=0)
    assert result.refutes(1.0) == caught
    assert result.epsilon > 0.5


# Post-processing and intervals.


def test_in_order_never_moves_away_from_the_truth(rng):
    for _ in range(200):
        rows = tuple(rng.integers(1, 5, size=2))
        truth = np.sort(rng.uniform(0, 1, rows))[:, ::-1]
        noisy = truth + rng.normal(0, 10 ** rng.uniform(-2, 1), rows)
        ordered = in_order(noisy, 1.0)
        assert np.abs(ordered - truth).max() <= np.abs(noisy - truth).max() * (1 + 1e-12)
        assert (np.diff(ordered) <= 0).all() and ordered.min() >= 0 and ordered.max() <= 1


@pytest.mark.parametrize(
    ("size", "confidence"), [(1, 0.95), (2, 0.5), (4, 0.95), (10, 0.5), (10, 0.95)]
)
def test_half_width_is_an_exact_quantile_rounded_up(size, confidence):
    # Compared with the sum over all whole numbers.
    lattice = make_lattice(0.01, 1.0)
    for rate in (0.003, 0.1, 3.0):
        k = np.arange(int(80 * size / rate) + 50, dtype=float)
        shell = (2 * k + 1) ** size - np.where(k > 0, np.abs(2 * k - 1), 0) ** size
        mass = np.cumsum(shell * np.exp(-rate * k))
        steps = round(half_width(lattice, rate, size, confidence) / lattice.step) - 2
        assert mass[steps] / mass[-1] >= confidence
        # It is hardly larger than necessary if the lattice is fine.
        if rate <= 0.003:
            assert mass[steps - 2] / mass[-1] < confidence + 0.005


def test_confidence_intervals_follow_the_sensitivity_of_each_cloud():
    items = [filtration(loops([0.3, 0.1]), s) for s in (0.001, 0.01)]
    private = PersistenceProfile(1.0, random_state=0).fit(items)
    assert private.half_widths_[1] == pytest.approx(10 * private.half_widths_[0], rel=1e-3)
    profile = private.transform(items)
    intervals = private.confidence_intervals(profile)
    assert intervals.shape == (2, 4, 2) and intervals.min() == 0
    np.testing.assert_allclose(
        intervals[..., 1] - profile, private.half_widths_[:, None] * [[1] * 4]
    )
    # Other filtrations than in fit: their public numbers are used.
    with pytest.raises(
        ValueError, match="profile has 1 rows, but there are 2 filtrations in the last"
    ):
        private.confidence_intervals(profile[1:])
    np.testing.assert_array_equal(
        private.confidence_intervals(profile[1:], items[1:]), intervals[1:]
    )
    # After another fit, the public numbers of its filtrations.
    private.fit(items[1:])
    np.testing.assert_array_equal(private.confidence_intervals(profile[1:]), intervals[1:])
    refuses("profile must have 4 columns; got 3", private.confidence_intervals, profile[:, :3])


@pytest.fixture
def exact_once(monkeypatch):
    """Exact diagrams and gates of a function are computed once, and what is drawn is drawn."""
    diagrams, gates = {}, {}
    find_diagrams = _private_grid_persistence.sublevel_diagrams
    find_gates = _private_cap.gates_of_caps

    def diagrams_once(values, dimensions, upper, complex=None):
        key = values.tobytes(), tuple(dimensions), upper
        if key not in diagrams:
            diagrams[key] = find_diagrams(values, dimensions, upper, complex)
        return diagrams[key]

    def gates_once(caps, exact, dimensions):
        key = tuple(map(id, exact))
        if key not in gates:
            gates[key] = find_gates(caps, exact, dimensions)
        return gates[key]

    monkeypatch.setattr(_private_grid_persistence, "sublevel_diagrams", diagrams_once)
    monkeypatch.setattr(_private_cap, "gates_of_caps", gates_once)


@pytest.mark.nightly
@pytest.mark.parametrize("options", [{}, {"n_longest": 1, "homology_dimensions": 1}])
def test_confidence_intervals_hold_as_often_as_they_say(options, exact_once):
    n_releases = 2000
    items = DTMFiltration(m=0.2, bounds=(-2.5, 3)).fit_transform(four_clouds())
    exact_of = [
        {
            each.upper: PersistenceProfile(np.inf, **options).fit_transform(
                [replace(item, values=each.values, upper=each.upper, smaller=())]
            )[0]
            for each in (item, *item.smaller)
        }
        for item in items
    ]
    held, caps = np.zeros(len(items), dtype=int), set()
    rng = np.random.default_rng(0)
    private = PersistenceProfile(1.0, confidence=0.9, random_state=rng, **options).fit(items)
    for _ in range(n_releases):
        intervals = private.confidence_intervals(private.transform(items))
        exact = np.array([each[cap] for each, cap in zip(exact_of, private.cap_, strict=True)])
        caps.update(private.cap_)
        inside = (intervals[..., 0] <= exact) & (exact <= intervals[..., 1])
        held += inside.all(axis=1)
    assert len(caps) > 2
    # Not less often, and not much more often if nothing is clipped or sorted.
    assert (held >= binom.ppf(FALSE_ALARM / 4, n_releases, 0.9)).all()
    assert held.min() <= binom.isf(FALSE_ALARM, n_releases, 0.93)


@pytest.mark.nightly
def test_persistence_profile_gains_from_a_private_cap(exact_once):
    # Errors relative to the persistences of the default cap, whatever the chosen cap hides.
    def errors(items):
        exact = PersistenceProfile(np.inf).fit_transform(items)
        private = PersistenceProfile(1.0, random_state=np.random.default_rng(0)).fit(items)
        found = [np.abs(private.transform(items) - exact).max(axis=1) for _ in range(200)]
        return np.mean(found, axis=0)

    for bounds, most in (((-2.5, 3), 1.2), ((-8, 8.5), 0.6)):
        items = DTMFiltration(m=0.2, bounds=bounds).fit_transform(four_clouds())
        ratios = errors(items) / errors([replace(item, smaller=()) for item in items])
        # 0.4 to 1.1, and 0.2 to 0.4.
        assert ratios.max() < most


# The estimator.


def test_persistence_profile_has_the_lifetimes_of_the_diagrams(small):
    (h0, h1), *_ = CubicalPersistence().fit_transform([small])
    profile = PersistenceProfile(np.inf, 3).fit_transform([small])[0]
    lives = [np.sort(d[:, 1] - d[:, 0])[::-1] for d in (h0, h1)]
    # The essential component is kept apart.
    np.testing.assert_array_equal(profile[:3], np.pad(lives[0][1:4], (0, 3))[:3])
    np.testing.assert_array_equal(profile[3:], np.pad(lives[1][:3], (0, 3))[:3])


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_persistence_profile_of_constant_functions_is_zero(value):
    for shape in ((5,), (4, 4), (2, 3, 2)):
        item = filtration(np.full(shape, value), 0.01)
        assert (PersistenceProfile(np.inf).fit_transform([item]) == 0).all()
        assert PersistenceProfile(1e5, random_state=0).fit_transform([item]).max() < 0.01


@pytest.mark.parametrize(
    ("epsilon", "n_longest", "seed"),
    [
        (1e-6, 1, None),
        (1e6, 1, 0),
        (1e-6, 100, 0),
        (1e6, 30, None),
        pytest.param(1e6, 100, None, marks=pytest.mark.laws),
    ],
)
def test_persistence_profile_of_extreme_epsilons(epsilon, n_longest, seed):
    # With a lattice as coarse as the noise, radii would be rejected for hours.
    item = filtration(loops([0.3, 0.1]), 0.01)
    private = PersistenceProfile(epsilon, n_longest, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile = private.fit_transform([item])[0]
    assert profile.min() >= 0 and profile.max() <= 1
    assert epsilon < 1 or abs(profile[n_longest] - 0.3) < 1e-4


def test_persistence_profile_makes_frames(small):
    pandas = pytest.importorskip("pandas")
    private = PersistenceProfile(1.0, 1, (1, 0)).set_output(transform="pandas")
    frame = private.fit_transform([small])
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["h1_longest_1", "h0_longest_1"]
    assert private.confidence_intervals(frame).shape == (1, 2, 2)
    assert PersistenceProfile(homology_dimensions=1).fit_transform([small]).shape == (1, 2)


def test_persistence_profile_guarantee_composes_with_private_bounds(circles, small):
    def guarantee(items, **options):
        return PersistenceProfile(**options).fit(items).privacy_guarantee_

    plain = guarantee([small])
    assert plain.delta == 0 and math.isclose(plain.rho, 0.5, rel_tol=0.2)
    assert "2 longest persistences per cloud and dimension (H0, H1)" in str(plain)
    private_box = PrivateBounds(0.5, start=(-10, 10), random_state=0)
    boxed = DTMFiltration(0.2, bounds=private_box, resolution=11).fit_transform([circles])
    assert guarantee(boxed).epsilon == 1.5


def test_persistence_profile_warns_of_noise_that_hides_everything(small):
    with pytest.warns(UserWarning, match="noise hides every feature.*in profiles"):
        PersistenceProfile(1e-5).fit([small])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PersistenceProfile(1.0).fit([small])

"""Accuracy and security of every sampler. All false-alarm rates are at most 1e-6."""

from decimal import Decimal, localcontext
from math import comb

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

from sklearn_dptda.privacy import FixedPoint, NoiseSource, Sensitivity
from sklearn_dptda.privacy._exact_draws import BULK
from sklearn_dptda.privacy._noise import flip_numerator, spawn_seeds
from tests._refusals import refuses
from tests.privacy._laws import noise_law, noise_p_value
from tests.privacy._randomized_response import randomized_response

SEEDS = [None, 3]
ALARM = 1e-6
N = 20_000


def fits_at_its_scale_alone(kind, scale, draws):
    """Whether draws follow a law, and those of scales that are wrong by a fifth are refuted."""
    p_values = [noise_p_value(kind, factor * scale, draws) for factor in (0.8, 1.0, 1.25)]
    return [p_value > ALARM for p_value in p_values] == [False, True, False]


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        ("laplace", 3.0),
        ("gaussian", 0.7),
        *[
            pytest.param(*case, marks=pytest.mark.laws)
            for case in (("laplace", 0.7), ("laplace", 300.5), ("gaussian", 3.0))
        ],
    ],
)
def test_seeded_noise_follows_discrete_laws_at_their_scale(kind, scale):
    # Draws of the system in bulk have tests of their own, in test_exact_draws.py.
    draws = getattr(NoiseSource(3), f"discrete_{kind}")(scale, N)
    assert draws.dtype == np.int64 and fits_at_its_scale_alone(kind, scale, draws)


@pytest.mark.laws
@pytest.mark.parametrize("scale", [31.999, 32.0, 300.5])
def test_seeded_gaussian_follows_the_discrete_law_in_a_million_draws(scale):
    # The seeded sampler has two branches, which meet at 32.
    draws = NoiseSource(1).discrete_gaussian(scale, 10**6)
    assert fits_at_its_scale_alone("gaussian", scale, draws)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_source_draws_few_integers_at_their_scale(kind):
    # They are drawn one by one.
    draw, few = getattr(NoiseSource(None), f"discrete_{kind}"), BULK[kind] - 1
    draws = np.concatenate([draw(3.0, few) for _ in range(N // few)])
    assert fits_at_its_scale_alone(kind, 3.0, draws)


def test_noise_source_mixes_up_no_laws_and_scales_in_turn():
    # The system's noise keeps what it needs for a law and a scale. The standard deviation of 2,000
    # draws is off by 20 % with a probability below 1e-7 each, also for the tails of Laplace noise.
    noise, widths = NoiseSource(None), {"discrete_laplace": 2**0.5, "discrete_gaussian": 1.0}
    for scale in (20.0, 200.0, 20.0):
        for law, width in widths.items():
            assert getattr(noise, law)(scale, 2000).std() == pytest.approx(width * scale, rel=0.2)


@pytest.mark.laws
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("law", "limit"), [("discrete_laplace", "laplace"), ("discrete_gaussian", "norm")]
)
def test_noise_source_approaches_continuous_laws_at_large_scales(law, limit, seed):
    scale = 2.0**31
    draws = getattr(NoiseSource(seed), law)(scale, N) / scale
    assert kstest(draws, limit).pvalue > ALARM
    assert kstest(draws / 0.8, limit).pvalue < ALARM
    assert kstest(draws / 1.25, limit).pvalue < ALARM


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_source_draws_shapes_and_refuses_scales(seed):
    source = NoiseSource(seed)
    assert source.discrete_gaussian(2.0, (3, 4)).shape == (3, 4)
    assert source.discrete_laplace(2.0, 0).shape == (0,)
    assert not source.discrete_laplace(0.0, 5).any()
    assert source.discrete_gaussian(2.0, 250).shape == (250,)
    for bad in (-1.0, np.nan, np.inf, 2.0**53):
        refuses("scale", source.discrete_gaussian, bad, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_source_integers_and_bits_are_uniform(seed):
    source = NoiseSource(seed)
    draws = [source.below(7) for _ in range(N)]
    assert chisquare(np.bincount(draws, minlength=7)).pvalue > ALARM
    coins = np.unpackbits(source.words(-(-N // 64)).view(np.uint8), count=N)
    assert coins.shape == (N,) and chisquare(np.bincount(coins)).pvalue > ALARM
    # Pairs of neighbouring bits are tested as well: the bits of a word are independent.
    pairs = coins[::2] * 2 + coins[1::2]
    assert chisquare(np.bincount(pairs, minlength=4)).pvalue > ALARM
    assert source.seeded == (seed is not None)
    assert source.below(1) == 0
    assert 0 <= source.below(10**60) < 10**60
    for bad in (0, -1):
        refuses("n must", source.below, bad)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [2, 5])
def test_flip_numerator_is_the_rate_of_changes(k, seed):
    source, epsilon = NoiseSource(seed), 1.2
    out = randomized_response(source, np.full(N, k - 1), k, epsilon)
    flip = flip_numerator(epsilon, k) / 2**64
    expected = np.full(k, flip / (k - 1))
    expected[-1] = 1 - flip
    assert chisquare(np.bincount(out, minlength=k), N * expected).pvalue > ALARM
    for factor in (0.8, 1.25):
        wrong = np.full(k, factor * flip / (k - 1))
        wrong[-1] = 1 - factor * flip
        assert chisquare(np.bincount(out, minlength=k), N * wrong).pvalue < ALARM
    refuses("epsilon", flip_numerator, 0.0, k)


@pytest.mark.parametrize("k", [2, 3, 100])
def test_flip_numerator_never_promises_too_much(k):
    # Exact law: keep / change-to-one-category must not exceed exp(epsilon).
    for epsilon in (1e-12, 1e-6, 0.01, 0.5, 1.0, 3.0, 20.0, 44.0, 60.0, 700.0, 800.0):
        with localcontext() as context:
            context.prec = 400
            flip = Decimal(flip_numerator(epsilon, k)) / 2**64
            assert 0 < flip < 1
            ratio = (1 - flip) / (flip / (k - 1))
            assert ratio <= Decimal(epsilon).exp() and 1 / ratio <= Decimal(epsilon).exp()
            if epsilon < 30:
                assert ratio >= Decimal(epsilon).exp() * (1 - Decimal(2) ** -12)


def test_flip_numerator_is_zero_without_privacy_and_refuses_more_than_64_bits():
    values = np.arange(10) % 3
    assert np.array_equal(randomized_response(NoiseSource(), values, 3, np.inf), values)
    assert flip_numerator(np.inf, 3) == 0
    for epsilon, k in ((1e-20, 3), (1e-10, 10**10), (1e-6, 10**15)):
        refuses("too small", flip_numerator, epsilon, k)


def test_noise_source_shuffles_uniformly():
    source, seen = NoiseSource(0), {}
    for _ in range(6000):
        items = [0, 1, 2]
        source.shuffle(items)
        seen[tuple(items)] = seen.get(tuple(items), 0) + 1
    assert chisquare(list(seen.values())).pvalue > ALARM and len(seen) == 6


def test_noise_source_repeats_under_a_seed_only():
    for law in ("discrete_laplace", "discrete_gaussian"):
        first = getattr(NoiseSource(1), law)(50.0, 100)
        assert np.array_equal(first, getattr(NoiseSource(1), law)(50.0, 100))
        assert not np.array_equal(first, getattr(NoiseSource(2), law)(50.0, 100))
        secure = [getattr(NoiseSource(), law)(50.0, 100) for _ in range(2)]
        assert not np.array_equal(*secure)
    for seed in (np.int64(3), np.uint32(3)):
        assert NoiseSource(seed).below(5) == NoiseSource(3).below(5)
        assert np.array_equal(NoiseSource(seed).words(4), NoiseSource(3).words(4))
    source = NoiseSource(0)
    first, second = source.generator(), source.generator()
    assert not np.array_equal(first.random(5), second.random(5))
    assert not np.array_equal(NoiseSource(0).generator().random(5), second.random(5))


def test_spawn_seeds_are_distinct_and_repeatable():
    assert spawn_seeds(None, 3) == [None] * 3
    assert spawn_seeds(5, 3) == spawn_seeds(5, 4)[:3]
    for state in (5, np.random.default_rng(0), np.random.RandomState(0)):
        seeds = spawn_seeds(state, 100)
        assert len(set(seeds)) == 100 and all(0 <= s < 2**32 for s in seeds)


# The attack: the low bits of floating-point noise around 1 differ from those around 0.


def off_lattice(values):
    """Share of releases that are no multiple of 2**-53."""
    return np.mean(values * 2.0**53 != np.floor(values * 2.0**53))


def separates(release, n=200):
    """Whether the attack tells releases of 0 from releases of 1 (false alarm below 1e-6).

    Under equal laws the number of off-lattice releases on one side, given the
    total, is hypergeometric; a split as extreme as all to none among at least
    40 has probability below 2 * C(2n - 40, n) / C(2n, n) < 1e-6.
    """
    zero, one = off_lattice(release(np.zeros(n))), off_lattice(release(np.ones(n)))
    return min(zero, one) == 0 and max(zero, one) >= 40 / n


def lattice_release(draw, scale, seed=None):
    def release(values):
        lattice = FixedPoint.for_scale(scale)
        steps = lattice.encode(values)
        noise = getattr(NoiseSource(seed), draw)(scale / lattice.step, len(steps))
        return lattice.decode(steps + noise)

    return release


def test_precision_attack_breaks_numpy_and_no_lattice_noise():
    assert 2 * comb(360, 200) < ALARM * comb(400, 200)
    rng = np.random.default_rng(0)
    assert separates(lambda values: values + rng.laplace(0, 1, len(values)))
    assert separates(lambda values: values + rng.normal(0, 1, len(values)))
    for draw in ("discrete_laplace", "discrete_gaussian"):
        for scale in (0.3, 1.0, 17.0):
            assert not separates(lattice_release(draw, scale))


@pytest.mark.laws
def test_precision_attack_breaks_no_private_persistence():
    from sklearn_dptda import PrivatePersistence

    private = PrivatePersistence(
        2.0, homology_dimensions=0, max_points=1, sensitivity=0.1, upper=2.0
    )

    def births(values):
        diagrams = private.fit_transform([np.array([value, 2.0]) for value in values])
        return np.array([d[0, 0] if len(d) else 2.0 for d in diagrams])

    # Births from around 1 are below 1/2, where floats are finer than the lattice, only 13 times in
    # 1000. Of 200 draws, sometimes none would be.
    assert not separates(births, n=2000)


# Fixed point.


def test_fixed_point_sums_do_not_depend_on_their_order(rng):
    values = rng.normal(size=(10_000, 3)) * 10.0 ** rng.integers(-6, 3, size=(10_000, 3))
    lattice = FixedPoint.for_scale(0.5)
    total = lattice.sum(values)
    assert np.array_equal(lattice.sum(values[::-1]), total)
    assert np.array_equal(lattice.sum(values[:17]) + lattice.sum(values[17:]), total)
    assert not np.array_equal(values.sum(axis=0), values[::-1].sum(axis=0))
    assert lattice.decode(total) == pytest.approx(values.sum(axis=0), abs=10_000 * lattice.step)


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 0.3, 1.0, 7.0, 1e12])
def test_fixed_point_has_2_to_the_30_steps_per_scale(scale):
    assert 2**30 <= scale / FixedPoint.for_scale(scale).step < 2**31


def test_fixed_point_sensitivity_covers_rounding(rng):
    lattice = FixedPoint(-3)
    for adjacency in ("add-remove", "replace-one"):
        for name, order in (("l1", 1), ("l2", 2)):
            worst = 0.0
            for _ in range(400):
                x, y = rng.uniform(-1, 1, (2, 4))
                exact, rounded = (x, lattice.encode(x))
                if adjacency == "replace-one":
                    exact, rounded = x - y, lattice.encode(x) - lattice.encode(y)
                declared = lattice.sum_sensitivity(
                    Sensitivity(np.linalg.norm(exact, order), name, adjacency), size=4
                )
                worst = max(worst, np.linalg.norm(rounded, order) / declared.value)
            assert 0.5 < worst <= 1


def test_fixed_point_refuses_what_it_cannot_hold():
    lattice = FixedPoint(0)
    for bad in (np.nan, np.inf, -np.inf, 2.0**62, -(2.0**62)):
        refuses("values", lattice.encode, [bad])
    refuses("62 bits", lattice.sum, np.full((8, 1), 2.0**60))
    refuses("scale", FixedPoint.for_scale, 0.0)


@pytest.mark.parametrize("scale", [4.0, 10.0, 50.0])
def test_discrete_gaussian_is_near_the_rounded_gaussian(scale):
    # The bound that allows the analytic Gaussian calibration to be used for the discrete law.
    x = np.arange(-int(12 * scale), int(12 * scale) + 1)
    rounded = norm.cdf((x + 0.5) / scale) - norm.cdf((x - 0.5) / scale)
    distance = 0.5 * np.abs(rounded - noise_law("gaussian", scale, x[-1])).sum()
    assert distance <= 1 / (40 * scale**2)

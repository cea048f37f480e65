"""Noise in bulk follows its law exactly: tables, decisions at every edge, and what is rare."""

import math
import random
from bisect import bisect_right
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features
from opendp.typing import i64

from sklearn_dptda.privacy import NoiseSource, _exact_draws
from sklearn_dptda.privacy._exact_draws import BinnedLaw, exp_bounds
from sklearn_dptda.privacy._release_key import ReleaseKey
from tests.privacy._laws import noise_p_value

KEY = ReleaseKey._of(b"k" * 32)

# Bits of the reference, which sums its own series.
BITS = 640
LAWS = [
    (kind, scale) for kind in ("laplace", "gaussian") for scale in (0.04, 1.0, 9.3, 100.0, 2.0**52)
]


def exp_of(exponent):
    """Return exp(-exponent) in units of 2**-BITS, with an error of a few hundred units."""
    unit = BITS + 40
    halvings = max(0, math.ceil(math.log2(max(exponent, Fraction(1, 2))))) + 4
    x = (exponent.numerator << unit) // (exponent.denominator << halvings)
    total, term, i = 0, 1 << unit, 0
    while term:
        total += term if i % 2 == 0 else -term
        i += 1
        term = (term * x >> unit) // i
    for _ in range(halvings):
        total = total * total >> unit
    return total >> 40


@cache
def density(kind, scale, x):
    exact = Fraction(scale)
    return exp_of(Fraction(x) / exact if kind == "laplace" else Fraction(x * x) / (2 * exact**2))


class Scripted:
    """A source that gives the words it is told, then further bits."""

    def __init__(self, *words, further=()):
        self._words, self._further = list(words), list(further)

    def words(self, size):
        return np.array(self._words.pop(0), dtype=np.uint64)

    def below(self, n):
        assert n == 2**64
        return self._further.pop(0)


class Seeded:
    """A source of pseudorandom numbers with a fixed seed."""

    def __init__(self, seed):
        self._random, self._rng = random.Random(seed), np.random.default_rng(seed)

    def words(self, size):
        return self._rng.integers(0, 2**64, size, dtype=np.uint64)

    def below(self, n):
        return self._random.randrange(n)


@pytest.mark.parametrize("bits", [64, 128, 512])
@pytest.mark.parametrize("exponent", ["0", "1/3", "1e-30", "2", "47.5", "300", "1e9", "1e40"])
def test_exp_bounds_contain_the_exponential(exponent, bits):
    exponent = Fraction(exponent)
    low, high = exp_bounds(exponent, bits)
    true = exp_of(exponent) if exponent < 10**5 else 0
    assert low << BITS - bits <= true + 2**20
    assert true <= high << BITS - bits
    assert high - low <= 2


@pytest.mark.parametrize("bits", [64, 192])
@pytest.mark.parametrize(("kind", "scale"), LAWS)
def test_boundaries_contain_the_cumulative_probabilities(kind, scale, bits):
    law = BinnedLaw(kind, scale)
    low, high = law.boundaries(bits)
    # The reference sums until nothing is left, also for the Laplace law, which is not closed here.
    masses, j = [], 0
    while not masses or masses[-1]:
        masses.append(density(kind, scale, j << law.bits))
        j += 1
        assert j < 20_000
    total, sums = sum(masses), np.cumsum([0, *masses[: law.n_bins]], dtype=object)
    assert len(low) == len(high) == law.n_bins + 1
    for a, b, below in zip(low, high, sums, strict=True):
        true = (below << bits + 64) // total
        assert (a << 64) <= true + 2**40 and true <= (b << 64) + 2**40
        assert 0 <= b - a <= 2
    assert low[0] == high[0] == 0


@pytest.mark.parametrize(("kind", "scale"), LAWS)
def test_weights_of_a_table_are_rounded_to_both_sides(kind, scale):
    law = BinnedLaw(kind, scale)
    *bins, beyond = law._weights(128)
    true = [density(kind, scale, j << law.bits) for j in range(law.n_bins)]
    for (low, high), weight in zip(bins, true, strict=True):
        assert low << BITS - 128 <= weight + 2**40 and weight <= (high << BITS - 128) + 2**40
        assert high - low <= law.n_bins**2
    rest, j = [], law.n_bins
    while not rest or rest[-1]:
        rest.append(density(kind, scale, j << law.bits))
        j += 1
    assert beyond[0] << BITS - 128 <= sum(rest) + 2**60
    assert sum(rest) <= (beyond[1] << BITS - 128) + 2**60


@pytest.mark.parametrize(("kind", "scale"), LAWS)
def test_bins_of_words_beside_every_boundary(kind, scale, monkeypatch):
    law = BinnedLaw(kind, scale)
    monkeypatch.setattr(law, "_bin_beyond", lambda source: law.n_bins)
    ends, _ = law.boundaries(640)
    words = {0, 1, 2**64 - 1}
    for end in {*ends[:4], *ends[4:-4:17], *ends[-4:]}:
        words.update(range(max(0, (end >> 576) - 3), min(2**64, (end >> 576) + 5)))
    # Further bits that keep the number at the low or the high end of its word, and beside the
    # boundary in it.
    of_word = {}
    for end in ends:
        of_word.setdefault(end >> 576, []).append(end)
    for word in sorted(words):
        inside = of_word.get(word, [])
        for further in (0, 2**576 - 1, *(e - (word << 576) + s for e in inside for s in (-1, 1))):
            if not 0 <= further < 2**576:
                continue
            number = word << 576 | further
            expected = bisect_right(ends, number) - 1
            source = Scripted(further=[further >> 512 - 64 * i & 2**64 - 1 for i in range(9)])
            found = law._bins(source, np.array([word], dtype=np.uint64))
            if all(abs(end - number) > 1 for end in inside):
                assert found[0] == expected


class _Planted(BinnedLaw):
    """Two bins, whose boundary is in the first word of a cell of the guide."""

    def boundaries(self, bits):
        cell = 12345 << 48
        if bits == 64:
            return [0, cell - 1], [0, cell + 1]
        end = (2 * cell + 1) << bits - 65
        return [0, end], [0, end]


def test_bins_of_words_beside_a_boundary_in_the_next_cell():
    law = _Planted("laplace", 0.01)
    law._bin_beyond = lambda source: 1
    words = np.array([12345 << 48], dtype=np.uint64)
    for further, expected in ((2**63 - 1, 0), (2**63, 1)):
        assert law._bins(Scripted(further=[further]), words)[0] == expected


def test_bins_need_further_bits_only_beside_a_boundary():
    law = BinnedLaw("gaussian", 1000.0)
    words = Seeded(0).words(200_000)
    assert len(set(law._bins(Scripted(), words))) > 100


@pytest.mark.parametrize(("kind", "scale"), [law for law in LAWS if law[1] > 16])
def test_acceptance_of_every_uniform_number_is_exact(kind, scale):
    law, rng = BinnedLaw(kind, scale), random.Random(0)
    width = 1 << law.bits
    for _ in range(300):
        # Beyond the table, too, where the acceptance may be small.
        j = rng.randrange(law.n_bins) * rng.choice([1, 1, 1, 2, 80])
        u = rng.choice([0, 1, width - 1, rng.randrange(width)])
        start = Fraction(j << law.bits)
        exponent = law.exponent(int(start) + u) - law.exponent(int(start))
        true = exp_of(exponent)
        word = true >> BITS - 64
        rest = true - (word << BITS - 64)
        arrays = np.array([j]), np.array([u])
        for at in {max(0, word - 2048), word - 1, word + 1, word + 2048, 2**64 - 1} | {0}:
            if not 0 <= at < 2**64 or at == word:
                continue
            # Further bits must not matter.
            for bits in (0, 2**64 - 1):
                source, words = Scripted(further=[bits] * 2), np.array([at], dtype=np.uint64)
                assert law._accepted(source, *arrays, words)[0] == (at < word)
        if word < 2**64:
            # In the word itself, the next bits decide.
            for above, further in ((False, rest - 2**100), (True, rest + 2**100)):
                if 0 <= further < 2 ** (BITS - 64):
                    bits = [further >> BITS - 128 - 64 * i & 2**64 - 1 for i in range(8)]
                    words = np.array([word], dtype=np.uint64)
                    assert law._accepted(Scripted(further=bits), *arrays, words)[0] != above


@pytest.mark.parametrize(
    ("kind", "scale"), [("laplace", 100.0), ("gaussian", 37.0), ("gaussian", 3.0)]
)
def test_exact_losses_of_neighbours(kind, scale):
    # The probability of a size is that of its bin times the acceptance; its ratio to that of the
    # next size is the privacy loss for a step of one.
    law, bits = BinnedLaw(kind, scale), 320
    low, high = law.boundaries(bits)
    assert max(b - a for a, b in zip(low, high, strict=True)) <= 2

    def probability(x):
        j = x >> law.bits
        left = law.exponent(j << law.bits)
        return Fraction(low[j + 1] - low[j], 2**bits) * Fraction(
            exp_bounds(law.exponent(x) - left, bits)[0], 2**bits
        )

    for x in range(3 * (1 << law.bits) + 5):
        loss = Fraction(probability(x), probability(x + 1))
        exact = Fraction(scale)
        exponent = 1 / exact if kind == "laplace" else Fraction(2 * x + 1) / (2 * exact**2)
        assert abs(loss * exp_of(exponent) / 2**BITS - 1) < Fraction(1, 2**280)


@pytest.mark.parametrize("size", [200_000, pytest.param(5_000_000, marks=pytest.mark.laws)])
@pytest.mark.parametrize(("kind", "scale"), [*LAWS[:4], *LAWS[5:9], ("gaussian", 33.0)])
def test_draws_follow_the_law(kind, scale, size):
    # Fixed seed. For another seed, the false-alarm rate of each case would be 1e-6.
    drawn = BinnedLaw(kind, scale).draw(Seeded(1), size)
    assert drawn.dtype == np.int64 and len(drawn) == size
    assert noise_p_value(kind, scale, drawn) > 1e-6


@pytest.mark.parametrize(
    ("kind", "scale"),
    [("laplace", 20.0), ("laplace", 100.0), ("gaussian", 5.0), ("gaussian", 33.0)],
)
def test_draws_beyond_a_short_table_follow_the_law(kind, scale):
    # A third of the draws or more are beyond the table. The rate of false alarms is as above.
    law = BinnedLaw(kind, scale, reach=0.1)
    assert law.n_bins << law.bits <= scale
    assert noise_p_value(kind, scale, law.draw(Seeded(2), 20_000)) > 1e-6


class _NeverRejects(BinnedLaw):
    def _accepted(self, source, bins, inside, words):
        return np.ones(len(bins), dtype=bool)


class _TwoZeros(BinnedLaw):
    def _proposals(self, source, n):
        words = source.words(n)
        size = self._bins(source, source.words(n))
        return np.where(words >> np.uint64(63), -size, size)


class _EndsAtTheTable(BinnedLaw):
    def _bin_beyond(self, source):
        return self.n_bins


class _HundredthWider(BinnedLaw):
    def __init__(self, kind, scale):
        super().__init__(kind, 1.01 * scale)


@pytest.mark.parametrize(
    ("broken", "scale"),
    [(_NeverRejects, 33.0), (_TwoZeros, 9.3), (_EndsAtTheTable, 33.0), (_HundredthWider, 9.3)],
)
def test_broken_twins_are_noticed(broken, scale):
    short = broken is _EndsAtTheTable
    law = broken("gaussian", scale, **({"reach": 2.0} if short else {}))
    drawn = law.draw(Seeded(3), 200_000 if short else 3_000_000)
    assert noise_p_value("gaussian", scale, drawn) < 1e-9


@pytest.mark.laws
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_draws_have_the_law_of_opendp(kind, monkeypatch):
    # The false-alarm rate of each comparison is 1e-6; all draw from the entropy of the system.
    enable_features("contrib")
    make, metric, loss = {
        "laplace": (make_laplace, l1_distance, 1 / 6.5),
        "gaussian": (make_gaussian, l2_distance, 1 / (2 * 6.5**2)),
    }[kind]
    oracle = make(vector_domain(atom_domain(T=i64)), metric(T=i64), scale=6.5)
    # Its own map states the loss of a change by one: an epsilon, or zCDP.
    assert oracle.map(1) == pytest.approx(loss, rel=1e-9)
    assert noise_p_value(kind, 6.5, np.array(oracle([0] * 20_000))) > 1e-6
    draw = getattr(NoiseSource(), f"discrete_{kind}")
    assert noise_p_value(kind, 6.5, draw(6.5, 200_000)) > 1e-6
    monkeypatch.setitem(_exact_draws.BULK, kind, math.inf)
    assert noise_p_value(kind, 6.5, draw(6.5, 20_000)) > 1e-6


@pytest.mark.parametrize("seed", [None, KEY])
def test_many_integers_are_drawn_by_bins(seed, monkeypatch):
    used = []
    monkeypatch.setattr(BinnedLaw, "draw", lambda self, source, n: used.append(n) or np.zeros(n))
    for law in ("laplace", "gaussian"):
        for n in (_exact_draws.BULK[law] - 1, _exact_draws.BULK[law]):
            getattr(NoiseSource(seed), f"discrete_{law}")(3.0, n)
    assert used == list(_exact_draws.BULK.values())

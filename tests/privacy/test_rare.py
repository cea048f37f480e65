"""Rare successes: exact laws, positions, and both methods. False alarms below 1e-6 each."""

from bisect import bisect_right
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, chi2, geom

from sklearn_dptda.privacy import NoiseSource, _rare_coins
from sklearn_dptda.privacy._rare_coins import Octets, positions, successes


def numerator(p):
    return int(p * 2.0**64)


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("p", [0.5, 0.2689, 0.018, 2.0**-12, 1e-6])
def test_successes_are_as_many_as_expected(p, seed):
    n = 2_000_000
    found = sum(len(part) for part in successes(NoiseSource(seed), numerator(p), n))
    assert binomtest(found, n, p).pvalue > 1e-6
    # Other probabilities are detected where there are enough successes to count.
    if p > 1e-3:
        assert binomtest(found, n, 1.05 * p).pvalue < 1e-6
        assert binomtest(found, n, 0.95 * p).pvalue < 1e-6


@pytest.mark.parametrize("p", [0.3, 0.01])
@pytest.mark.parametrize("rare", [False, True])
def test_successes_have_geometric_gaps(p, rare, monkeypatch):
    # 5,000 gaps, chi-squared over deciles, with both methods.
    monkeypatch.setattr(_rare_coins, "_RARE", 1.0 if rare else 0.0)
    at = np.concatenate(list(successes(NoiseSource(1), numerator(p), int(6000 / p))))[:5001]
    gaps = np.diff(at)
    edges = np.unique(geom.ppf(np.linspace(0, 1, 11)[1:-1], p))
    observed = np.bincount(np.searchsorted(edges, gaps), minlength=len(edges) + 1)
    expected = 5000 * np.diff(np.r_[0.0, geom.cdf(edges, p), 1.0])
    assert ((observed - expected) ** 2 / expected).sum() < chi2.isf(1e-6, len(edges))


def test_successes_increase_and_stay_inside(monkeypatch):
    # In parts of 24 coins, of which the last part is shorter.
    monkeypatch.setattr(_rare_coins, "_CHUNK", 3)
    for p, n in product((0.0, 1e-18, 1e-12, 0.01, 0.5), (0, 1, 63, 64, 65, 5000)):
        parts = list(successes(NoiseSource(3), numerator(p), n))
        at = np.concatenate([np.empty(0, np.int64), *parts])
        assert (np.diff(at) > 0).all() and ((at >= 0) & (at < n)).all()


def test_successes_of_certain_and_impossible_coins():
    assert list(successes(NoiseSource(0), 0, 100)) == []
    at = np.concatenate(list(successes(NoiseSource(0), 1 << 64, 100)))
    assert at.tolist() == list(range(100))


@pytest.mark.parametrize("p", [0.25, 0.018, 0.5, 2.0**-9])
def test_octets_table_has_exact_probabilities(p):
    # In integers: an early decision agrees with that of all 512 bits.
    octets = Octets(numerator(p))
    assert octets.bounds[-1] == 1 << 512
    first = {}
    for cell in range(1 << 16):
        low = bisect_right(octets.bounds, cell << 496) - 1
        high = bisect_right(octets.bounds, ((cell + 1) << 496) - 1) - 1
        if low == high:
            assert octets.table[cell] == low
            first[cell] = low
        else:
            assert octets.table[cell] == -1
            before, bounds = octets.split[cell]
            assert (before, before + len(bounds)) == (low, high)
            for i, bound in enumerate(bounds.tolist()):
                assert octets.bounds[before + i + 1] >> 432 == cell << 64 | bound
    assert len(first) + len(octets.split) == 1 << 16


def test_octets_decide_ties_by_all_bits():
    octets = Octets(numerator(0.3))
    cell, (before, bounds) = next(iter(octets.split.items()))

    class Ties(NoiseSource):
        def words(self, size):
            return np.full(size, bounds[0])

    drawn = octets._decide(Ties(0), np.full(200, cell, dtype=np.uint16))
    # After a tie, the remaining bits of the boundary decide, on either side of it.
    assert set(drawn.tolist()) <= {before, before + 1}
    bound = octets.bounds[before + 1]
    assert octets.bounds[before] < bound < octets.bounds[before + 2]


def test_octets_decide_ties_at_the_last_bits_of_the_boundary():
    octets = Octets(numerator(0.3))

    class Last(NoiseSource):
        def below(self, n):
            assert n == 1 << 432
            return self.rest

    noise = Last(0)
    for cell, (before, bounds) in list(octets.split.items())[:5]:
        boundary = octets.bounds[before + 1]
        for step, outcome in ((-1, before), (0, before + 1)):
            noise.rest = (boundary + step) % (1 << 432)
            assert octets._exactly(noise, cell << 64 | int(bounds[0])) == outcome


@pytest.mark.parametrize("p", [1e-14, 1e-9, 1e-6, 1e-4])
def test_successes_of_rare_coins_have_gaps_of_the_exact_scale(p):
    scales = []

    class Few(NoiseSource):
        def discrete_laplace(self, scale, size):
            scales.append(scale)
            return super().discrete_laplace(scale, 7)

    n = min(int(200 / p), 1 << 62)
    # With few gaps at a time, the next ones continue after the last one.
    at = np.concatenate(list(successes(Few(0), int(p * 2.0**64), n)))
    assert (np.diff(at) > 0).all() and at.min() >= 0 and at.max() < n
    # Their law, with 40 digits, is at least as accurate as required.
    with localcontext() as context:
        context.prec = 40
        asked = Decimal(int(p * 2.0**64)) / 2**64
        for scale in scales:
            found = 1 - (-1 / Decimal(scale)).exp()
            assert asked <= found <= asked * (1 + Decimal("1e-9"))
    assert len(scales) > 10


def test_successes_end_where_a_gap_reaches_the_end():
    class Gaps(NoiseSource):
        def discrete_laplace(self, scale, size):
            return np.array(self.gaps)

    noise, positions = Gaps(0), []
    # A negative number is not a gap. 9 and 10 are the last position and the first one after it.
    for noise.gaps in ([10], [3, -1, 5, 0], [3, 5, 7]):
        (part,) = successes(noise, 1 << 30, 10)
        positions.append(part.tolist())
    assert positions == [[], [3, 9], [3, 9]]


def test_octets_have_independent_coins():
    # 8 x 8 correlations of 200,000 bytes: below 6.5 standard errors.
    octets = Octets(numerator(0.25)).draw(NoiseSource(0), 200_000)
    bits = np.unpackbits(octets, bitorder="little").reshape(-1, 8)
    off = np.corrcoef(bits.T)[~np.eye(8, dtype=bool)]
    assert np.abs(off).max() < 6.5 / np.sqrt(200_000)


def test_positions_of_bits_in_octets():
    octets = np.array([0b1001, 0, 1 << 7], dtype=np.uint8)
    assert positions(octets).tolist() == [0, 3, 23]

"""Scales of finite spaces: known values, brute force, certified bounds."""

import itertools
import math

import numpy as np
import pytest

from sklearn_dptda.metric_privacy._finite_metrics import subdominant
from sklearn_dptda.metric_privacy._metric_measure import hat_means, integrals
from sklearn_dptda.published import (
    ScaleBounds,
    accuracy_bounds,
    baire_scale,
    diametric_scale,
    doubling_scale,
    entropic_scale,
    lipschitz_scale,
    measure_scale,
    normed_scale,
    outer_scale,
    packing_number,
)
from tests._refusals import refuses
from tests.metric_privacy._spaces import (
    HALVES,
    KNOWN,
    PAIRS,
    line,
    random_graph,
    random_points,
    words,
)

ALPHAS = (1.0, 4.0, 16.0)
ENTROPIC = {
    "two points": (0.0, 0.0, 0.0),
    "complete": (1.0, 0.0, 0.0),
    "hamming": (1.0, 0.5, 0.0),
    "cycle": (1.0, 0.25, 0.0),
    "interval": (1.0, 0.3, 0.05),
    "baire": (0.5, 0.125, 0.0),
}
DIAMETRIC = {
    "interval": (0.6065307, 0.1839397, 0.0449329),
    "baire": (0.3032653, 0.0919699, 0.0229925),
}
OUTER = {
    "two points": (math.log(2), math.log(2) / 4, math.log(2) / 16),
    "interval": (1.0, 0.5746531, 0.1902827),
    "baire": (0.5, 0.4232868, 0.1732868),
}


def brute_packing(D, scale):
    n = len(D)
    best = 0
    for subset in itertools.product((0, 1), repeat=n):
        chosen = np.flatnonzero(subset)
        apart = D[np.ix_(chosen, chosen)] > scale
        if len(chosen) > best and (apart | np.eye(len(chosen), dtype=bool)).all():
            best = len(chosen)
    return best


def brute_entropic(D1, D2, alpha):
    for s in np.unique(np.r_[0.0, D2.ravel()]):
        if all(
            brute_packing(D2[np.ix_(ball, ball)], s) <= math.exp(alpha * r) * (1 + 1e-9)
            for row in D1
            for r in np.unique(row)
            for ball in [np.flatnonzero(row <= r)]
        ):
            return s
    raise AssertionError


@pytest.mark.parametrize("i", range(3))
def test_scales_of_known_spaces(i):
    alpha = ALPHAS[i]
    for name, values in ENTROPIC.items():
        found = entropic_scale(KNOWN[name], alpha=alpha)
        assert found.exact and float(found) == pytest.approx(values[i], abs=1e-9), name
        bounds = entropic_scale(KNOWN[name], alpha=alpha, method="bounds")
        assert bounds.lower <= float(found) <= bounds.upper
    for name, values in DIAMETRIC.items():
        assert float(diametric_scale(KNOWN[name], alpha=alpha)) == pytest.approx(
            values[i], abs=1e-7
        )
    for name, values in OUTER.items():
        assert float(outer_scale(KNOWN[name], alpha=alpha)) == pytest.approx(values[i], abs=1e-7)
    assert float(entropic_scale(KNOWN["two points"], alpha=0.5)) == 1.0


@pytest.mark.laws
@pytest.mark.parametrize("seed", range(4))
def test_scales_of_small_spaces_equal_brute_force(seed):
    D1, D2 = random_graph(6, seed), random_points(6, 2, seed)
    for scale in np.quantile(D2, [0.0, 0.2, 0.5, 0.9]):
        assert float(packing_number(D2, scale)) == brute_packing(D2, scale)
    for alpha in (0.5, 2.0, 8.0):
        exact = brute_entropic(D1, D2, alpha)
        assert float(entropic_scale(D1, D2, alpha=alpha)) == pytest.approx(exact)
        bounds = entropic_scale(D1, D2, alpha=alpha, method="bounds")
        assert bounds.lower <= exact + 1e-12 and exact <= bounds.upper + 1e-12
        diameter = max(
            np.ptp([0.0, D2[np.ix_(ball, ball)].max()]) * math.exp(-alpha * r)
            for row in D1
            for r in row
            for ball in [np.flatnonzero(row <= r)]
        )
        assert float(diametric_scale(D1, D2, alpha=alpha)) == pytest.approx(diameter)
        # Just below the doubling scale, some ball contains too many points. Above it, none does.
        doubling = float(doubling_scale(D2, alpha=alpha))
        for s in np.linspace(1e-3, 1.0, 60):
            most = max(
                brute_packing(D2[np.ix_(ball, ball)], s)
                for row in D2
                for ball in [np.flatnonzero(row <= 2 * s)]
            )
            if most > math.exp(2 * alpha * s) * (1 + 1e-9):
                assert s <= doubling + 1e-12
        assert doubling <= exact + 1e-12 or D1 is not D2


@pytest.mark.laws
@pytest.mark.parametrize("d", [1, 2, 3])
def test_scale_bounds_of_larger_spaces_are_consistent(d):
    D = random_points(200, d, 0)
    for alpha in (1.0, 4.0, 16.0):
        bounds = entropic_scale(D, alpha=alpha, method="bounds")
        assert 0 < bounds.lower <= bounds.upper <= 5 * bounds.lower
        outer = outer_scale(D, alpha=alpha)
        assert outer.lower <= outer.upper <= 2 * outer.lower
        doubling = doubling_scale(D, alpha=alpha)
        assert doubling.lower <= doubling.upper and doubling.lower <= bounds.upper
        # A subspace of few points does not have a larger scale by packing in its balls.
        few = np.arange(20)
        assert float(entropic_scale(D[np.ix_(few, few)], alpha=alpha)) <= bounds.upper + 1e-12
    packing = packing_number(D, 0.3)
    assert packing.lower <= packing.upper


@pytest.mark.laws
def test_entropic_scale_of_lines_is_exact_at_any_size():
    rng = np.random.default_rng(0)
    for n in (5, 12, 25):
        places = np.sort(rng.random(n))
        D = np.abs(places[:, None] - places)
        for alpha in ALPHAS:
            exact = float(entropic_scale(D, alpha=alpha))
            # The same as part of a space that is too large for exact packing, with a copy far away.
            copies = np.r_[places, places + 1e3, places + 2e3, places + 3e3]
            more = np.abs(copies[:, None] - copies)
            if len(more) > 30:
                assert float(entropic_scale(more, alpha=alpha)) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("pair", "L", "alpha"),
    [
        *((pair, 4, alpha) for pair, alpha in enumerate((0.5, 2.0, 8.0, 32.0))),
        *((pair, 4, alpha) for pair, alpha in enumerate((32.0, 8.0, 2.0, 0.5))),
        *(
            pytest.param(pair, 6, alpha, marks=pytest.mark.laws)
            for pair, alpha in enumerate((2.0, 0.5, 32.0, 8.0))
        ),
    ],
)
def test_baire_scale_equals_the_finite_scale_of_words(pair, L, alpha):
    k = np.arange(1, L + 1, dtype=float)
    f, g = (side(k) for side in PAIRS[pair])
    D1, D2 = words(f), words(g)
    for D in (D1, D2):
        # The largest ultrametric below an ultrametric is itself.
        assert subdominant(D) == pytest.approx(D, rel=1e-12)
    closed = float(baire_scale(f, g, alpha=alpha))
    assert float(entropic_scale(D1, D2, alpha=alpha)) == pytest.approx(closed)
    assert float(diametric_scale(D1, D2, alpha=alpha)) == pytest.approx(
        (g * np.exp(-alpha * f)).max()
    )


def test_baire_scale_of_more_letters():
    f = HALVES[:3]
    for alpha in (1.0, 4.0, 10.0):
        exact = float(entropic_scale(words(f, 3), alpha=alpha))
        assert float(baire_scale(f, f, alpha=alpha, n_letters=3)) == pytest.approx(exact)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("scale", [measure_scale, lipschitz_scale])
def test_measure_and_lipschitz_scale_fall_at_their_rate(scale, d):
    alphas = 10.0 ** np.arange(10, 17)
    bounds = [scale(d, alpha=alpha) for alpha in alphas]
    for side in ("lower", "upper"):
        values = np.log([getattr(b, side) for b in bounds])
        slope = np.polyfit(np.log(alphas), values, 1)[0]
        assert slope == pytest.approx(-1 / (d + 1), abs=0.04)


def test_packing_number_of_a_cycle():
    D = KNOWN["cycle"]
    for scale, expected in ((0.0, 16), (0.125, 8), (0.25, 5), (0.5, 3), (1.0, 1)):
        assert float(packing_number(D, scale)) == expected


def test_smooth_measure_sensitivities_hold_and_are_attained():
    # The sensitivities that scale the noise of private measures, and that they are attained.
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        n, m = rng.integers(1, 20), rng.integers(1, 12)
        x, y = np.sort(rng.random((2, n)), axis=1)
        moved = np.abs(x - y).mean()
        change = np.abs(integrals(x[:, None], m) - integrals(y[:, None], m)).sum()
        assert change <= moved * (1 + 1e-12)
        worst = max(worst, change / moved)
    assert worst > 0.99
    for d in (1, 2, 3):
        worst = 0.0
        for _ in range(100):
            k = int(rng.integers(1, 6))
            x = rng.random((1, d))
            step = rng.choice([-1, 1], d) * rng.choice([1e-3, 0.05, 0.3])
            y = np.clip(x + step, 0, 1)
            change = np.abs(hat_means(x, k) - hat_means(y, k)).sum()
            moved = np.abs(x - y).max()
            assert change <= 2 * d * k * moved * (1 + 1e-9)
            worst = max(worst, change / (2 * d * k * moved))
        assert worst > (0.99 if d == 1 else 0.5)


@pytest.mark.laws
def test_entropic_scale_knows_equal_distances_as_one_metric():
    # A line of more points than are enumerated, whose scale is exact if its metric is that of a
    # line.
    D = line(201)
    assert entropic_scale(D, D.copy(), alpha=4.0) == entropic_scale(D, alpha=4.0)
    one, other = (accuracy_bounds(line(21), D2, alpha=4.0) for D2 in (None, line(21)))
    assert "one metric" in other.upper_bounds and other == one


@pytest.mark.parametrize(
    ("D", "message"),
    [
        ([[0, 1], [2, 0]], "not symmetric"),
        ([[0, -1], [-1, 0]], r"D\[0, 1\] is negative"),
        ([[1, 1], [1, 0]], "is positive"),
        ([[0, 1, 5], [1, 0, 1], [5, 1, 0]], "from 0 to 2 it is 5, but by way of 1 it is 2"),
        ([[0, np.nan], [np.nan, 0]], "NaN"),
        (np.zeros((0, 0)), "empty"),
        ([[0, 1, 1], [1, 0, 1]], "square"),
    ],
)
def test_packing_number_refuses_what_is_no_metric(D, message):
    refuses(message, packing_number, D, 0.5)


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf])
def test_scales_refuse_an_alpha_that_is_not_positive(alpha):
    for scale in (entropic_scale, doubling_scale, outer_scale, diametric_scale):
        refuses("alpha", scale, KNOWN["complete"], alpha=alpha)


def test_scales_refuse_bad_input():
    refuses("scale", packing_number, KNOWN["complete"], -1.0)
    refuses("method", entropic_scale, KNOWN["complete"], method="best")
    refuses("at most 30 points", entropic_scale, random_points(40, 2, 0), method="exact")
    refuses("D2 has 10", entropic_scale, KNOWN["interval"], KNOWN["complete"])
    refuses("between", float, ScaleBounds(1.0, 2.0))
    refuses("ordered", ScaleBounds, 2.0, 1.0)
    for bad in (lambda: normed_scale(0), lambda: normed_scale(2, norm="l3")):
        refuses(None, bad)
    for bad in (([1, 2], [2, 1]), ([1.0], [1.0, 0.5]), ([1, 0.5], [1, -1])):
        refuses(None, baire_scale, *bad)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_scales_of_points_at_one_place_are_zero(n):
    D = np.zeros((n, n))
    assert float(entropic_scale(D, method="bounds")) == 0.0
    for scale in (entropic_scale, outer_scale, diametric_scale, doubling_scale):
        assert float(scale(D, alpha=1.0)) == 0.0
    assert float(packing_number(D, 0.0)) == 1

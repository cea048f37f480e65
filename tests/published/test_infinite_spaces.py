"""Theorems 6.1 to 6.4: scales of balls, measures, functions and words, and their proofs."""

import itertools
import math

import numpy as np
import pytest

from sklearn_dptda.published import (
    baire_diametric_scale,
    baire_scale,
    diametric_scale,
    doubling_scale,
    entropic_scale,
    lipschitz_scale,
    measure_scale,
    normed_scale,
)
from tests._refusals import refuses
from tests.metric_privacy._spaces import PAIRS, line, many_spaces, words


def snake(n, d):
    """Cells of a grid in an order of steps to the next cell."""
    cells = np.zeros((1, 0), dtype=int)
    for _ in range(d):
        layers = [np.c_[np.full(len(cells), i), cells[:: (-1) ** i]] for i in range(n)]
        cells = np.vstack(layers)
    return cells


@pytest.mark.parametrize("k", [2, 8])
def test_measure_scale_lower_bound_is_a_packing(k):
    # The atoms of the proof on a line, by distances of distribution functions: measures that differ
    # in more than a quarter of the cells, chosen greedily, are as many as claimed.
    grid = (np.arange(4000) + 0.5) / 4000

    def function(offsets):
        return (grid[:, None] >= (np.arange(k) + offsets) / k).mean(axis=1)

    chosen = []
    for code in np.array(list(itertools.product((0, 1), repeat=k))):
        if all((code != other).sum() > k / 4 for other in chosen):
            chosen.append(code)
    assert len(chosen) >= math.exp(0.1308 * k)
    M = np.array([function(0.25 + 0.5 * code) for code in chosen])
    D = np.abs(M[:, None] - M).mean(axis=2)
    assert (D[~np.eye(len(M), dtype=bool)] > 1 / (8 * k) + 1e-6).all()
    assert (np.abs(M - function(0.5)).mean(axis=1) <= 1 / (4 * k) + 1e-3).all()
    # This number in a ball of that radius is too large, just below the rate for which k is chosen.
    alpha = k**2 / 1.92 * (1 - 1e-9)
    assert len(chosen) > math.exp(alpha / (4 * k))
    assert measure_scale(1, alpha=alpha).lower >= 1 / (8 * k)


@pytest.mark.parametrize(("d", "n"), [(1, 2), (1, 5), (1, 9), (2, 2), (2, 3), (3, 2)])
def test_measure_scale_few_measures_come_near_all(d, n):
    # Lemma A.1 with middles of cells: the path through all cells, nearest multiples, both halves.
    rng = np.random.default_rng(0)
    way = snake(n, d)
    middles = (way + 0.5) / n
    assert (np.abs(np.diff(way, axis=0)).max(axis=1) == 1).all()
    count = math.comb(2 * n**d - 1, n**d - 1)
    assert count <= 4 ** (n**d) <= math.exp((5 * n / 2) ** d)
    worst = 0.0
    for _ in range(40):
        X = rng.random((rng.integers(1, 30), d))
        weights = rng.dirichlet(np.full(len(X), 0.3))
        near = np.abs(X[:, None] - middles).max(axis=2)
        nu = np.bincount(near.argmin(axis=1), weights, minlength=n**d)
        first = (weights * near.min(axis=1)).sum()
        # Along the path, running sums move to the nearest multiples.
        sums = np.cumsum(nu)
        sums[-1] = 1.0
        rounded = np.round(sums * n**d) / n**d
        assert (np.diff(np.r_[0.0, rounded]) >= 0).all()
        second = np.abs(sums - rounded).sum() / n
        assert first <= 1 / (2 * n) + 1e-12 and second <= 1 / (2 * n) + 1e-12
        worst = max(worst, first + second)
    assert 0.2 / n < worst <= 1 / n


@pytest.mark.parametrize(
    ("d", "m"),
    [(1, 1), (1, 4), (2, 2), *(pytest.param(*c, marks=pytest.mark.laws) for c in ((2, 3), (3, 2)))],
)
def test_lipschitz_scale_functions_of_one_code_are_near(d, m):
    # The codes of the proof: successive values differ by at most one step, and the first is -1 or
    # 0.
    rng = np.random.default_rng(1)
    middles = (snake(m, d) + 0.5) / m
    points = np.vstack([rng.random((200, d)), np.ones((1, d)), middles])
    size = np.abs(points).max(axis=1)
    functions = [size, -size]
    for _ in range(300):
        # Any function with slopes of at most one, as a McShane extension, between -|x| and |x|.
        anchors, values = rng.random((6, d)), rng.uniform(-1, 1, 6)
        f = (values + np.abs(points[:, None] - anchors).max(axis=2)).min(axis=1)
        functions.append(np.clip(f, -size, size))
    by_code = {}
    for f in functions:
        code = tuple(np.floor(m * f[-len(middles) :]).astype(int))
        assert code[0] in (-1, 0) and np.abs(np.diff(code)).max(initial=0) <= 1
        by_code.setdefault(code, []).append(f)
    assert len(by_code) < len(functions)
    for group in by_code.values():
        assert np.ptp(group, axis=0).max() < 2 / m


def test_lipschitz_and_measure_scale_at_small_rates():
    # Two opposite ones: the whole diameter, 2 and 1, is the scale up to log(2) and 2 log(2).
    for d in (1, 2, 3):
        assert float(lipschitz_scale(d, alpha=0.69)) == 2.0
        assert float(measure_scale(d, alpha=1.38)) == 1.0
        for alpha in 10.0 ** np.arange(-1, 13):
            functions, measures = lipschitz_scale(d, alpha=alpha), measure_scale(d, alpha=alpha)
            assert functions.upper <= 4.1 * functions.lower
            assert measures.upper <= 40 * measures.lower


@pytest.mark.parametrize("alpha", [0.5, 4.0, 100.0])
def test_normed_scale_of_balls_and_cubes(alpha):
    # Theorem 6.1 for the unit ball, of diameter 2, with the order of d / alpha, and the cube.
    for d in (1, 2, 5, 20):
        cube = normed_scale(d, alpha=alpha, diameter=1.0)
        assert float(cube) == pytest.approx(min(2 * math.log(2) * d / alpha, 1.0))
        assert float(normed_scale(d, alpha=alpha)) == pytest.approx(2 * math.log(2) * d / alpha)
        for norm in ("l1", "l2", "linf"):
            bounds = normed_scale(d, alpha=alpha, norm=norm, diameter=2.0)
            rate = min(d / alpha, 1.0)
            assert rate / math.e * (1 - 1e-12) <= bounds.lower <= bounds.upper <= 2 * rate
    # In finite parts of the square, the corners of a smaller square show what is too small.
    side = min(4 * math.log(2) / alpha, 1.0)
    corners = np.array(list(itertools.product((0, 1, 2), repeat=2))) * side * 0.4999
    D = np.abs(corners[:, None] - corners).max(axis=2)
    assert float(entropic_scale(D, alpha=alpha)) == pytest.approx(0.9998 * side)


@pytest.mark.parametrize("alpha", [0.5, 4.0, 32.0])
def test_baire_diametric_scale_equals_the_finite_scale(alpha):
    for f, g in PAIRS:
        k = np.arange(1, 7, dtype=float)
        closed = float(baire_diametric_scale(f(k), g(k), alpha=alpha))
        assert closed == pytest.approx(
            float(diametric_scale(words(f(k)), words(g(k)), alpha=alpha))
        )
    # Remark 6.5, base 2: the order of min(1 / alpha, 1) for both, at any rate.
    f = 2.0 ** -np.arange(1, 40)
    for rate in (0.1, 1.0, alpha, 1e3, 1e6):
        for scale in (baire_scale, baire_diametric_scale):
            assert 0.2 <= float(scale(f, f, alpha=rate)) / min(1 / rate, 1.0) <= 1.0
    refuses("decrease", baire_diametric_scale, [1.0, 1.0], [1.0, 0.5])


@pytest.mark.parametrize(
    ("n", "alpha"),
    [
        (60, 2.0),
        (60, 16.0),
        *(pytest.param(201, alpha, marks=pytest.mark.laws) for alpha in (4.0, 64.0)),
    ],
)
def test_doubling_scale_bounds_of_a_line_are_near(n, alpha):
    # On a line of many points, both sides are near log(2) / alpha, the value of the interval.
    bounds = doubling_scale(line(n), alpha=alpha)
    assert bounds.upper <= 1.6 * bounds.lower
    step = 1 / (n - 1)
    assert bounds.lower <= math.log(2) / alpha + step
    assert bounds.upper >= math.log(2) / alpha - step


@pytest.mark.laws
@pytest.mark.parametrize("alpha", [0.5, 2.0, 8.0, 32.0])
def test_doubling_scale_bounds_enclose_the_exact_scale(alpha):
    some_are_apart = False
    for D in many_spaces():
        exact = float(doubling_scale(D, alpha=alpha))
        # Copies of points change no scale, but for so many points only bounds are computed.
        copies = np.arange(60) % len(D)
        found = doubling_scale(D[np.ix_(copies, copies)], alpha=alpha)
        assert found.lower <= exact * (1 + 1e-12) and exact <= found.upper * (1 + 1e-12)
        some_are_apart |= found.lower < found.upper
    assert some_are_apart

"""Section 2: packing numbers, and relations between the scales of one metric."""

import math

import numpy as np
import pytest

from sklearn_dptda.metric_privacy._finite_metrics import Traversal
from sklearn_dptda.published import (
    doubling_scale,
    entropic_scale,
    normed_scale,
    outer_scale,
    packing_number,
)
from tests.metric_privacy._spaces import KNOWN, line, many_spaces

ALPHAS = (0.3, 1.0, 2.0, 4.0, 16.0, 64.0)
SPACES = [*many_spaces()[::2], *KNOWN.values()]


def packing(D, scale, ball=None):
    return float(packing_number(D if ball is None else D[np.ix_(ball, ball)], scale))


# The cube [0, 1]^d with the maximum norm, in closed form, is the norm-convex space of these tests.


def cube_packing(lengths, s):
    """Most points that are more than ``s`` apart in a box: one axis after the other."""
    return math.prod(max(math.ceil(length / s - 1e-12), 1) for length in lengths)


def cube_ball(x, r):
    return [min(c + r, 1.0) - max(c - r, 0.0) for c in x]


def cube_doubling(d, alpha):
    """Least ``s`` with at most exp(2 alpha s) points in balls of 2 s: the middle one is largest."""
    grid = np.geomspace(1e-4, 1.0, 40001)
    fits = [cube_packing([min(4 * s, 1.0)] * d, s) <= math.exp(2 * alpha * s) for s in grid]
    return grid[np.argmax(fits)]


def cube_outer(d, alpha):
    """Least ``s + log N(s) / alpha``: just at ``s = 1 / k`` there are ``k ** d`` points."""
    return min(1 / k + d * math.log(k) / alpha for k in range(1, 400))


@pytest.mark.laws
def test_scales_of_the_interval_equal_closed_forms():
    # As published in numbers, and as for a fine grid.
    for alpha, outer in ((4.0, 0.597), (16.0, 0.236), (64.0, 0.081)):
        assert cube_outer(1, alpha) == pytest.approx(outer, abs=6e-4)
        assert cube_doubling(1, alpha) == pytest.approx(math.log(2) / alpha, rel=1e-3)
        grid = line(401)
        bounds = outer_scale(grid, alpha=alpha)
        assert bounds.lower <= outer + 1e-3 and outer - 3e-3 <= bounds.upper
        assert float(entropic_scale(grid, alpha=alpha)) == pytest.approx(
            float(normed_scale(1, alpha=alpha, diameter=1.0)), abs=6e-3
        )


@pytest.mark.parametrize(
    "k", [0, 2, 8, *(pytest.param(k, marks=pytest.mark.laws) for k in range(12, len(SPACES), 3))]
)
def test_packing_number_obeys_chain_rules(k):
    # 2.1: maximal separated sets are nets. 2.2 and 2.3: chain rules.
    D = SPACES[k]
    scales = np.quantile(D[D > 0], [0.1, 0.4, 0.8])
    for s in scales:
        net = Traversal(D).net(s)
        assert (D[np.ix_(net, net)][~np.eye(len(net), dtype=bool)] > s).all()
        assert (D[:, net].min(axis=1) <= s).all() and len(net) <= packing(D, s)
        for r in scales:
            local = max(packing(D, s, row <= r) for row in D)
            assert packing(D, s) <= packing(D, r) * local
        # N(B(x, s 2^k), s) is at most the product of sup N(B(., s 2^j), s 2^(j - 1)).
        product = 1
        for power in range(1, 4):
            inner, outer = s * 2 ** (power - 1), s * 2**power
            product *= max(packing(D, inner, row <= outer) for row in D)
            assert max(packing(D, s, row <= outer) for row in D) <= product


@pytest.mark.parametrize(("d", "alpha"), [(1, 0.3), (2, 1.0), (2, 64.0), (3, 4.0)])
def test_normed_scale_is_regular_in_alpha(d, alpha):
    # Proposition 2.4 and Lemma 2.5, for positive t.
    def scale(rate):
        return float(normed_scale(d, alpha=rate, diameter=1.0))

    rng = np.random.default_rng(0)
    for t in (0.01, 0.3, 0.9, 1.0):
        assert scale(alpha) <= scale(t * alpha) <= scale(alpha) / t * (1 + 1e-12)
        for _ in range(50):
            x, (r, s) = rng.random(d), rng.uniform(0.01, 1.2, 2)
            larger = cube_packing(cube_ball(x, r), s)
            assert larger <= cube_packing(cube_ball(x, t * r), t * s)


def test_entropic_scale_of_two_points_is_not_regular():
    # Two points: the scale jumps from 1 to 0. At t = 0, which the statement allows, a ball of
    # radius 0 has one point, however small the scale is.
    two = 1 - np.eye(2)
    half, whole = entropic_scale(two, alpha=0.5), entropic_scale(two, alpha=1.0)
    assert float(half) == 1.0 and float(whole) == 0.0
    assert packing(two, 0.5, two[0] <= 1.0) == 2 > packing(two, 0.25, two[0] <= 0.5)
    assert cube_packing(cube_ball([0.5], 0.5), 0.1) == 10 > packing(np.zeros((1, 1)), 0.0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_entropic_scale_obeys_elementary_lower_bounds(alpha):
    # Lemma 2.6 on any space, and 2.7 on connected spaces, which it needs.
    for D in SPACES:
        if 1 / alpha >= 2 * D.max():
            assert float(entropic_scale(D, alpha=alpha)) >= D.max() / 2
    for d in (1, 2, 3):
        if 1 / alpha < 2.0:
            assert float(normed_scale(d, alpha=alpha, diameter=1.0)) >= 1 / (2 * alpha)
    assert float(entropic_scale(1 - np.eye(2), alpha=1.0)) == 0.0 < 1 / 2


@pytest.mark.laws
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_scales_of_cubes_obey_propositions_2_9_and_2_12(alpha, d):
    # Propositions 2.9 and 2.12, Lemma 2.15.
    s = float(normed_scale(d, alpha=alpha, diameter=1.0))
    doubling, outer = cube_doubling(d, alpha), cube_outer(d, alpha)
    assert s / 4 <= doubling * 1.001 and doubling <= s * 1.001
    assert outer <= 3 * s * (1 + math.log(1 / s)) * (1 + 1e-12)
    assert d * math.log(math.ceil(1 / s - 1e-12)) / alpha <= outer + 1e-12


@pytest.mark.laws
@pytest.mark.parametrize("alpha", ALPHAS)
def test_outer_scale_of_finite_spaces_obeys_proposition_2_11(alpha):
    # Proposition 2.11, Lemma 2.15 and the lower half of 2.14, which need no convexity.
    for D in SPACES:
        s = float(entropic_scale(D, alpha=alpha)) * (1 + 1e-12)
        outer = float(outer_scale(D, alpha=alpha))
        assert s <= 2 * outer + 1e-12
        assert math.log(packing(D, s)) / alpha <= outer + 1e-12
        assert float(doubling_scale(D, alpha=alpha)) <= s + 1e-12
        for kappa in (1.0, 2.0, 4.0, 8.0):
            if packing(D, s) >= packing(D, kappa * s) ** 2:
                assert outer <= 2 * kappa * s + 1e-12


@pytest.mark.parametrize("d", [1, 2, 3])
def test_outer_scale_of_cubes_obeys_proposition_2_14(d):
    # Proposition 2.14 on cubes: N(s) >= N(kappa s)^2. The factor grows with alpha, as it must
    # (remark 2.13), with a logarithm that cannot be removed.
    ratios = []
    for alpha in (8.0 * d, 64.0 * d, 512.0 * d):
        s, outer = float(normed_scale(d, alpha=alpha, diameter=1.0)), cube_outer(d, alpha)
        kappas = np.arange(1.0, 1 / s + 1)
        enough = [
            k for k in kappas if cube_packing([1.0] * d, s) >= cube_packing([1.0] * d, k * s) ** 2
        ]
        assert s / 2 <= outer <= 2 * enough[0] * s
        ratios.append(outer / s)
    assert ratios[0] + 1 < ratios[1] and ratios[1] + 1 < ratios[2]

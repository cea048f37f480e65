"""Problems (ii) and (iii): accuracy by both scales, without connectedness or ultrametrics."""

import math

import numpy as np
import pytest

from sklearn_dptda.metric_privacy._finite_laws import floored
from sklearn_dptda.metric_privacy._finite_metrics import Traversal
from sklearn_dptda.published import accuracy_bounds, diametric_scale, entropic_scale, packing_number
from sklearn_dptda.published._accuracy_bounds import solve
from tests.metric_privacy._audits import exact_parameter
from tests.metric_privacy._spaces import KNOWN, line, many_spaces, random_graph, random_points, star

ALPHAS = (1.0, 6.0, 20.0)
SHELLS = sum(math.exp(k / 3 - 5 * (k - 1) / 14) for k in range(1, 3000))


def scales(D1, D2, alpha):
    return (
        float(entropic_scale(D1, D2, alpha=alpha / 3)),
        float(diametric_scale(D1, D2, alpha=alpha / 7)),
    )


def two_metrics():
    spaces = [(random_graph(9, i), random_points(9, 2, i)) for i in range(3)]
    spaces += [(random_points(9, 1, i), random_graph(9, i)) for i in range(3)]
    spaces += [(line(12), star(12)), (star(12), line(12)), (line(15), line(15))]
    return spaces


@pytest.mark.laws
@pytest.mark.parametrize("alpha", [0.3, *ALPHAS, 60.0])
def test_bound_of_net_for_one_metric_holds_shell_by_shell(alpha):
    # The sum of the proof, shell by shell, for the law of Lemma 4.1.
    for D in [*many_spaces(), *KNOWN.values()]:
        s, s_o = scales(D, D, alpha)
        net = Traversal(D).net(s)
        law = np.exp(floored(-alpha / 2 * D[:, net]))
        for row, probability in zip(D[:, net], law, strict=True):
            assert (row <= np.exp(alpha * row / 7) * s_o * (1 + 1e-9)).all()
            far = row > 21 * s
            assert (row * probability)[far].sum() <= SHELLS * s_o * (1 + 1e-9)
        assert (law * D[:, net]).sum(axis=1).max() <= 21 * s + SHELLS * s_o


@pytest.mark.laws
def test_accuracy_of_equal_distances_tends_to_the_sum_of_scales():
    # Best accuracy and both scales of n points at distance one from each other, in closed form: in
    # problems (ii) and (iii), the constant before the sum of the scales cannot be below one.
    for n, alpha in ((10, 1.0), (40, 3.0), (40, 12.0)):
        D = 1 - np.eye(n)
        s, s_o = scales(D, D, alpha)
        assert (s, s_o) == pytest.approx((float(n > math.exp(alpha / 3)), math.exp(-alpha / 7)))
        # The law is symmetric, and correct with the largest probability that privacy allows.
        best = (n - 1) / (n - 1 + math.exp(alpha))
        assert solve(D, D, alpha)[1] == pytest.approx(best, abs=1e-6)
    ratios = []
    for alpha in (6.0, 24.0, 96.0):
        n = round(math.exp(2 * alpha))
        best = (n - 1) / (n - 1 + math.exp(alpha))
        ratios.append(best / (1 + math.exp(-alpha / 7)))
    assert ratios == pytest.approx([0.7003, 0.9686, 1.0], abs=1e-4) and max(ratios) < 1


def clusters(D2, net, mean, rng):
    """Number of the centre of each point: that whose exponential start less distance is largest."""
    starts = rng.exponential(mean, len(net))
    return (starts - D2[:, net]).argmax(axis=1), starts


@pytest.mark.nightly
@pytest.mark.parametrize("alpha", ALPHAS)
def test_bound_of_clusters_holds_for_random_clusters(alpha):
    # Each law is private, for all clusters. The mean over 2,000 of them obeys the bound and its two
    # lemmas. Standard errors are measured, with a tolerance of six.
    rng = np.random.default_rng(0)
    for D1, D2 in two_metrics():
        s, _ = scales(D1, D2, alpha)
        if s == 0:
            continue
        net = Traversal(D2).net(s)
        met, costs, reach = [], [], []
        for _ in range(2000):
            owner, starts = clusters(D2, net, 2 * s, rng)
            used, cells = np.unique(owner, return_inverse=True)
            sigma = np.transpose([D1[:, cells == k].min(axis=1) for k in range(len(used))])
            # The largest start bounds the distance from the centre.
            assert (D2[np.arange(len(D2)), net[owner]] <= starts.max() + s + 1e-12).all()
            law = np.exp(floored(-alpha / 2 * sigma))
            costs.append((law * D2[:, net[used]]).sum(axis=1))
            met.append([(sigma <= r).sum(axis=1) for r in np.unique(D1)[::4]])
            reach.append(starts.max())
        assert exact_parameter(np.log(law), D1) <= alpha * (1 + 1e-9)
        error = np.std(costs, axis=0) / math.sqrt(2000)
        best = solve(D1, D2, alpha)[1]
        assert (np.mean(costs, axis=0) + 6 * error).max() >= best * (1 - 1e-6)
        bounds = accuracy_bounds(D1, D2, alpha=alpha, optimum=False)
        bound = bounds.upper_bounds["two metrics"]
        assert (np.mean(costs, axis=0) - 6 * error).max() <= bound
        harmonic = sum(1 / k for k in range(1, len(net) + 1))
        assert np.mean(reach) == pytest.approx(2 * s * harmonic, rel=0.15)
        # A ball of privacy intersects at most e times as many clusters as it has separated points.
        error = np.std(met, axis=0) / math.sqrt(2000)
        for r, counts in zip(np.unique(D1)[::4], np.mean(met, axis=0) - 6 * error, strict=True):
            for row, count in zip(D1, counts, strict=True):
                ball = np.flatnonzero(row <= r)
                most = float(packing_number(D2[np.ix_(ball, ball)], s))
                assert count <= math.e * most <= math.e * math.exp(alpha * r / 3) * (1 + 1e-9)

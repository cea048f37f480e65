"""Theorems 1.5 and 1.7: nets of candidates, and bounds of accuracy from both sides."""

import numpy as np
import pytest

from sklearn_dptda.metric_privacy import MetricExponentialMechanism
from sklearn_dptda.metric_privacy._exponential import prefix_costs
from sklearn_dptda.metric_privacy._finite_laws import floored, worst_cost
from sklearn_dptda.metric_privacy._finite_metrics import Traversal, subdominant
from sklearn_dptda.published import (
    accuracy_bounds,
    entropic_scale,
    optimal_mechanism,
    privacy_parameter,
)
from sklearn_dptda.published._accuracy_bounds import (
    bound_of_net,
    by_packings,
    by_pairs,
    meeting_radii,
    solve,
)
from tests._refusals import refuses
from tests.metric_privacy._audits import exact_parameter
from tests.metric_privacy._spaces import (
    KNOWN,
    line,
    many_spaces,
    random_graph,
    random_points,
    sphere,
    square,
    star,
)

ALPHAS = (1.0, 4.0, 16.0)


def crowd(m):
    """One point at a distance of one from ``m`` points .01 apart."""
    D = np.full((m + 1, m + 1), 0.01)
    D[0] = D[:, 0] = 1.0
    return D * (1 - np.eye(m + 1))


def law_of(D, alpha, **options):
    private = MetricExponentialMechanism(alpha, "precomputed", D, **options).fit()
    return private, private.log_probability(D)[:, private.weights_ > 0]


@pytest.mark.laws
@pytest.mark.parametrize(("m", "plain"), [(10, 0.1548), (100, 0.6468), (300, 0.8460)])
def test_metric_exponential_mechanism_nets_ignore_a_distant_crowd(m, plain):
    D = crowd(m)
    for net in ("auto", "entropic", 0.01):
        private, logs = law_of(D, 8.0, net=net)
        assert private.accuracy_ == pytest.approx(0.02852, abs=1e-5)
        assert (private.weights_ > 0).sum() == 2
        assert privacy_parameter(logs, D, log=True) <= 8.0
    private, _ = law_of(D, 8.0, net="all")
    assert private.accuracy_ == pytest.approx(plain, abs=1e-4)
    # Inputs in any place, also between the candidates.
    points = np.r_[0.0, 1 + 0.01 * np.arange(3)][:, None]
    private = MetricExponentialMechanism(8.0, candidates=points, net=0.5, random_state=0).fit()
    X = np.random.default_rng(0).uniform(-1, 3, (50, 1))
    logs = private.log_probability(X)[:, private.weights_ > 0]
    assert privacy_parameter(logs, np.abs(X - X.T), log=True) <= 8.0
    assert set(private.transform(X).ravel()) <= set(points[private.weights_ > 0].ravel())


@pytest.mark.laws
@pytest.mark.parametrize("alpha", [0.3, *ALPHAS, 60.0])
def test_metric_exponential_mechanism_net_is_as_accurate_as_proved(alpha):
    # The bound with its constants. The net is maximal and separated, or a single point.
    for D in [*many_spaces(), *KNOWN.values(), crowd(10)]:
        s = float(entropic_scale(D, alpha=alpha / 3))
        private, _ = law_of(D, alpha, net="entropic")
        net = np.flatnonzero(private.weights_)
        if 3 / alpha >= 2 * D.max():
            # The trivial branch: Lemma 2.6 makes it as good as the scale.
            assert len(net) == 1 and private.accuracy_ <= D.max() <= 2 * s
        else:
            assert (D[np.ix_(net, net)][~np.eye(len(net), dtype=bool)] > s).all()
            assert (D[:, net].min(axis=1) <= s).all()
            assert private.accuracy_ <= bound_of_net(s, alpha)
        best, _ = law_of(D, alpha)
        every, _ = law_of(D, alpha, net="all")
        assert best.accuracy_ <= every.accuracy_ * (1 + 1e-9)
        # Up to the twentieth value for which all candidates are kept.
        assert 0.95 * best.accuracy_ <= min(private.accuracy_, D.max(axis=1).min()) * (1 + 1e-6)


@pytest.mark.laws
@pytest.mark.parametrize("net", ["auto", "entropic", 0.2])
def test_metric_exponential_mechanism_of_nets_loses_alpha(net):
    # The integers that are drawn from. The twin uses the full rate on the same net.
    caught = 0
    for D in [*many_spaces()[::8], crowd(12), KNOWN["interval"], KNOWN["cycle"]]:
        for alpha in (0.5, 4.0, 16.0):
            _, logs = law_of(D, alpha, net=net)
            assert exact_parameter(logs, D) <= alpha * (1 + 1e-9)
            walk = floored(-alpha * D[:, Traversal(D).order[: max(len(D) // 2, 2)]])
            caught += exact_parameter(walk, D) > alpha * 1.01
    assert caught >= 10


def test_prefix_costs_equal_direct_costs():
    D = random_points(30, 2, 0)
    for rate in (0.1, 3.0, 1e4):
        order = Traversal(D).order
        costs = prefix_costs(D[:, order], rate)
        for k in (1, 2, 7, 30):
            direct = worst_cost(floored(-rate * D[:, order[:k]]), D[:, order[:k]])
            assert costs[k - 1] == pytest.approx(direct, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("net", [-1.0, np.nan])
def test_metric_exponential_mechanism_refuses_bad_nets(net):
    refuses("net", MetricExponentialMechanism(candidates=np.eye(2), net=net).fit)


@pytest.mark.laws
@pytest.mark.parametrize("alpha", [0.5, *ALPHAS, 30.0])
def test_accuracy_bounds_enclose_the_optimum(alpha):
    spaces = [(D, None) for D in (*many_spaces(), *KNOWN.values(), crowd(8))]
    spaces += [(random_graph(7, i), random_points(7, 2, i)) for i in range(4)]
    spaces += [(random_points(7, 2, i), subdominant(random_graph(7, i))) for i in range(4)]
    for D1, D2 in spaces:
        bounds = accuracy_bounds(D1, D2, alpha=alpha)
        for name, value in bounds.lower_bounds.items():
            assert value <= bounds.optimum + 1e-7, name
        for name, value in bounds.upper_bounds.items():
            assert value >= bounds.optimum - 1e-7, name
        # Pairs are always better than the diametric scale, by a factor of at least 2.5.
        assert bounds.lower_bounds["pairs"] >= 2.5 * bounds.lower_bounds["Theorem 3.2"] - 1e-12
        assert bounds.lower == max(bounds.lower_bounds.values())
        assert ("Lemma 4.1" in bounds.upper_bounds) == (D2 is None)


@pytest.mark.laws
def test_accuracy_bounds_from_below_are_near_the_optimum():
    # The ratio of the linear program to the bound is at most 2.7, while the scales leave 4.5 to
    # 4e8.
    sharper, published = [], []
    for D in (*KNOWN.values(), square(4), sphere(18)):
        for alpha in ALPHAS:
            bounds = accuracy_bounds(D, alpha=alpha)
            assert bounds.optimum / bounds.lower < 2.7
            sharper.append(bounds.optimum / bounds.lower)
            names = ("Theorem 3.1", "Theorem 3.2")
            published.append(bounds.optimum / max(bounds.lower_bounds[name] for name in names))
    assert min(published) > 4.0 and max(published) > 1e8
    # Exact cases: two points by pairs, equidistant points by packings.
    for alpha in ALPHAS:
        assert by_pairs(1 - np.eye(2), 1 - np.eye(2), alpha) == pytest.approx(
            1 / (1 + np.exp(alpha))
        )
        for n in (2, 10, 50):
            D = 1 - np.eye(n)
            exact = (n - 1) / (n - 1 + np.exp(alpha))
            assert by_packings(D, D, alpha) == pytest.approx(exact, rel=1e-9)


def test_meeting_radii_make_disjoint_balls():
    for D in (line(9), square(3), KNOWN["hamming"], random_points(12, 2, 0), KNOWN["baire"]):
        meet = meeting_radii(D)
        for x, y in zip(*np.triu_indices(len(D), 1), strict=True):
            assert not ((D[x] < meet[x, y]) & (D[y] < meet[x, y])).any()
            assert D[x, y] / 2 - 1e-12 <= meet[x, y] <= D[x, y]
            further = meet[x, y] * (1 + 1e-9)
            assert ((D[x] < further) & (D[y] < further)).any()
    # A twin that uses whole distances as radii claims too much and is caught: the middle of a star
    # is near all of its ends.
    D = star(10)
    claimed = 1.0 - 1 / np.exp(-0.3 * D[:, 1:]).sum(axis=1).max()
    assert by_packings(D, D, 0.3) <= solve(D, D, 0.3)[1] <= 0.5 < 0.6 * claimed


def test_accuracy_bounds_of_many_points_and_of_one_place():
    D = random_points(700, 2, 0)
    assert np.array_equal(meeting_radii(D), D / 2)
    assert 0 < by_packings(D, D, 8.0) <= law_of(D[:60, :60], 8.0)[0].accuracy_ * 3
    assert by_packings(np.zeros((1, 1)), np.zeros((1, 1)), 1.0) == 0.0
    bounds = accuracy_bounds(np.zeros((3, 3)), alpha=1.0)
    assert bounds.lower == bounds.upper == 0.0


@pytest.mark.parametrize("alpha", ALPHAS)
def test_entropic_scale_of_two_points_is_zero_and_accuracy_is_not(alpha):
    # No entropic scale is above zero here, and the accuracy is as large as the distance, because
    # 1.5 needs connectedness.
    D = 1000.0 * (1 - np.eye(2))
    assert float(entropic_scale(D, alpha=alpha / 3)) == 0.0
    near = optimal_mechanism(D, alpha=alpha / 1000.0)
    assert near.accuracy == pytest.approx(1000.0 / (1 + np.exp(alpha)), rel=1e-4)

"""Theorem 5.1: accuracy on a tree, privacy in any metric."""

import math

import numpy as np
import pytest

from sklearn_dptda.metric_privacy import MetricExponentialMechanism, UltrametricMechanism
from sklearn_dptda.metric_privacy._finite_laws import floored
from sklearn_dptda.metric_privacy._finite_metrics import subdominant
from sklearn_dptda.published import (
    diametric_scale,
    entropic_scale,
    optimal_mechanism,
    packing_number,
    privacy_parameter,
)
from tests._refusals import refuses, refuses_unpaid
from tests.privacy._laws import p_value

from ._audits import exact_parameter
from ._spaces import HALVES, KNOWN, line, random_graph, random_points, words

ALPHAS = (0.5, 1.0, 8.0, 30.0)


def crowd(m):
    """One point, and ``m`` others at a distance of about one that accuracy hardly tells apart."""
    places = np.r_[0.0, np.linspace(1, 1.05, m)]
    D2 = np.full((m + 1, m + 1), 0.001)
    D2[0] = D2[:, 0] = 1.0
    return np.abs(places[:, None] - places), D2 * (1 - np.eye(m + 1))


def bimetric_spaces():
    found = [crowd(m) for m in (3, 10)]
    found += [(random_graph(8, i), subdominant(random_points(8, 2, i))) for i in range(6)]
    found += [(random_points(7, 1, i), subdominant(random_graph(7, i))) for i in range(6)]
    found += [(words(HALVES), words(3.0 ** -np.arange(1, 5))), (KNOWN["complete"],) * 2]
    return found


def law_of(D1, D2, alpha, **options):
    private = UltrametricMechanism(D1, alpha, accuracy=D2, **options).fit()
    return private, private.log_probability(D1)[:, private.representatives_]


@pytest.mark.parametrize(
    ("m", "expected", "plain"), [(10, 0.018580, 0.1424), (100, 0.018933, 0.6241)]
)
def test_ultrametric_mechanism_ignores_crowds_at_distance(m, expected, plain):
    D1, D2 = crowd(m)
    private, _ = law_of(D1, D2, 8.0, law="relaxed", radius="entropic")
    assert private.accuracy_ == pytest.approx(expected, abs=1e-6)
    assert private.radius_ == 0.001 and len(private.representatives_) == 2
    law = np.exp(floored(-4.0 * D1))
    assert (law * D2).sum(axis=1).max() == pytest.approx(plain, abs=1e-4)
    # Two classes leave half of the loss unused, so at the full rate it is as good as the best.
    private, _ = law_of(D1, D2, 8.0)
    assert private.law_ == "raised" and private.accuracy_ < 0.0014
    if m == 10:
        assert private.accuracy_ <= 1.2 * optimal_mechanism(D1, D2, alpha=8.0).optimum


@pytest.mark.laws
@pytest.mark.parametrize("alpha", [1.0, 30.0])
def test_ultrametric_mechanism_fulfils_theorem_and_lemmas(alpha):
    # A <= s + 46.5 s_o, with all lemmas of the proof, exactly.
    for D1, D2 in bimetric_spaces():
        s = float(entropic_scale(D1, D2, alpha=alpha / 3))
        s_o = float(diametric_scale(D1, D2, alpha=alpha / 7))
        private, logs = law_of(D1, D2, alpha, law="relaxed", radius="entropic")
        assert private.radius_ == s
        assert private.accuracy_ <= s + 46.5 * s_o
        net, sigma = private.representatives_, private._to_classes
        # A maximal separated set, whose balls are classes.
        apart = D2[np.ix_(net, net)]
        assert (apart[~np.eye(len(net), dtype=bool)] > s).all()
        assert (D2[:, net].min(axis=1) <= s).all()
        inside = D2[:, net] <= s
        assert (inside.sum(axis=1) == 1).all()
        brute = np.array(
            [[D1[x, inside[:, y]].min() for y in range(len(net))] for x in range(len(D1))]
        )
        assert np.array_equal(sigma, brute)
        law = np.exp(logs)
        for x, radii in enumerate(D1):
            for r in np.unique(np.r_[radii, radii + 1 / alpha])[1:]:
                ball = np.flatnonzero(radii <= r)
                # Lemma 5.2, for the open ball of the text.
                met = (sigma[x] < r).sum()
                assert met <= float(packing_number(D2[np.ix_(ball, ball)], s))
                assert met <= math.exp(alpha * r / 3) * (1 + 1e-9)
                # Lemma 5.3, with its constant, and Lemma 5.4.
                tail = law[x, sigma[x] >= r].sum()
                assert tail <= 2 / -math.expm1(-1 / 6) * math.exp(-alpha * r / 6)
                near = D2[x, net][sigma[x] < r]
                assert (near <= s + math.exp(alpha * r / 7) * s_o + 1e-12).all()
        best = optimal_mechanism(D1, D2, alpha=alpha).optimum
        for options in ({}, {"law": "relaxed"}, {"law": "raised"}):
            better, _ = law_of(D1, D2, alpha, **options)
            assert best * (1 - 1e-4) - 1e-9 <= better.accuracy_
            assert better.law_ != "relaxed" or better.accuracy_ <= private.accuracy_ + 1e-12


@pytest.mark.parametrize(
    ("law", "alpha"),
    [
        ("relaxed", 8.0),
        *(pytest.param("relaxed", alpha, marks=pytest.mark.laws) for alpha in (0.5, 30.0)),
        *(pytest.param("raised", alpha, marks=pytest.mark.laws) for alpha in ALPHAS),
    ],
)
def test_ultrametric_mechanism_exact_loss_is_at_most_alpha(law, alpha):
    # The integers that are drawn from, for every pair of inputs and every radius.
    for D1, D2 in bimetric_spaces()[::2]:
        for radius in np.unique(D2)[::3]:
            private, logs = law_of(D1, D2, alpha, law=law, radius=float(radius))
            assert exact_parameter(logs, D1) <= alpha * (1 + 1e-9)
            assert private.privacy_guarantee_.holds
            assert alpha / 2 * (1 - 1e-6) <= private.rate_ <= alpha


@pytest.mark.laws
def test_ultrametric_mechanism_reaches_declared_loss():
    # One class, and far from it so many that they outweigh it: weights and sums each differ by half
    # of the loss.
    places = np.r_[0.0, 1 + 1e-6 * np.arange(400)]
    D1 = np.abs(places[:, None] - places)
    private, logs = law_of(D1, 1 - np.eye(401), 4.0, law="relaxed", radius=0.0)
    assert 0.98 * 4.0 < np.abs(logs[0] - logs[1])[0] <= 4.0
    assert private.privacy_parameter_ == pytest.approx(privacy_parameter(logs, D1, log=True))


@pytest.mark.laws
@pytest.mark.parametrize("alpha", [1.0, 8.0])
def test_exact_parameter_catches_broken_relaxed_laws(alpha):
    caught = {"full rate": 0, "squares": 0, "own class": 0}
    for D1, D2 in bimetric_spaces():
        # Classes of radius zero are the points themselves.
        private, logs = law_of(D1, D2, alpha, law="relaxed", radius=0.0)
        to_classes = D1[:, private.representatives_]
        assert len(private.representatives_) == len(D1) and private.rate_ == alpha / 2
        fine = floored(-alpha / 2 * to_classes)
        assert logs == pytest.approx(fine, abs=1e-9)
        assert exact_parameter(fine, D1) <= alpha * (1 + 1e-9)
        # Without the half.
        caught["full rate"] += exact_parameter(floored(-alpha * to_classes), D1) > alpha * 1.01
        # Distances that triangles do not bound.
        squared = floored(-alpha * to_classes**2 / D1.max() * 2)
        caught["squares"] += exact_parameter(squared, D1) > alpha * 1.01
        # Weights that depend on the class of the input.
        mine = to_classes.argmin(axis=1)
        boosted = fine.copy()
        boosted[np.arange(len(D1)), mine] += 0.2 * alpha * D1.max()
        caught["own class"] += exact_parameter(boosted, D1) > alpha * 1.01
    assert min(caught.values()) >= 3, caught


def test_ultrametric_mechanism_draws_follow_law():
    # 40,000 draws. Other rates are detected.
    D1, D2 = bimetric_spaces()[2]
    private, logs = law_of(D1, D2, 3.0, law="relaxed", random_state=0)
    drawn = private.release(np.full(40_000, 1))
    assert np.isin(drawn, private.representatives_).all()
    for rate, follows in ((1.0, True), (0.8, False), (1.25, False)):
        law = np.zeros(len(D1))
        law[private.representatives_] = np.exp(floored(rate * logs))[1]
        assert (p_value(drawn, law) > 1e-6) == follows


@pytest.mark.laws
def test_ultrametric_mechanism_auto_law_is_best():
    # Equal distances: never worse than the weighted law, nor than the relaxed law.
    for D in (KNOWN["baire"], KNOWN["complete"], words([1.0, 0.7, 0.1])):
        for alpha in ALPHAS:
            costs = {
                law: UltrametricMechanism(D, alpha, law=law).fit().accuracy_
                for law in ("auto", "relaxed", "raised", "weighted")
            }
            assert costs["auto"] <= min(costs.values()) * (1 + 2e-6)
    private = UltrametricMechanism(KNOWN["baire"], 4.0).fit()
    assert private.law_ == "weighted" and private.rate_ == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("candidates", "accuracy", "options"),
    [
        (line(5), None, {}),
        (line(5), line(5), {"law": "relaxed"}),
        (1 - np.eye(5), line(5), {"law": "raised"}),
        (line(5), 1 - np.eye(5), {"law": "weighted"}),
        (1 - np.eye(5), line(5), {"radius": "entropic"}),
    ],
)
def test_ultrametric_mechanism_refuses_laws_without_their_distances(candidates, accuracy, options):
    mechanism = UltrametricMechanism(candidates, accuracy=accuracy, **options)
    refuses_unpaid("not an ultrametric", mechanism.fit)
    for bad in ({"law": "best"}, {"radius": -1.0}, {"radius": "best"}, {"alpha": 0.0}):
        refuses(next(iter(bad)), UltrametricMechanism(1 - np.eye(5), **{**options, **bad}).fit)


def test_ultrametric_mechanism_adds_the_rounding_of_sums_of_distances():
    # Distances on a line are sums; those of a tree are compared as they are.
    added = []
    for candidates in (line(5), 1 - np.eye(5)):
        private = UltrametricMechanism(candidates, 2.0, accuracy=1 - np.eye(5), law="raised").fit()
        added.append(private.privacy_guarantee_.resolution)
    # The law's own rounding is the same for both.
    assert added[0] - added[1] == pytest.approx(2.0**-46 * line(5).max(), rel=1e-3, abs=0)


def test_ultrametric_mechanism_gives_copies_one_law():
    # Two points with distance zero for privacy, far apart in accuracy, have one law.
    D1 = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=float)
    for law in ("relaxed", "raised"):
        _, logs = law_of(D1, 1 - np.eye(3), 2.0, law=law)
        assert np.array_equal(logs[0], logs[1])


@pytest.mark.laws
def test_ultrametric_mechanism_checks_every_triangle():
    # One bad triangle among 650 points, where the law depends on all of them.
    D = 1 - np.eye(650)
    D[17, 18] = D[18, 17] = 0.05
    D[18, 400] = D[400, 18] = 0.5
    with pytest.raises(ValueError, match="by way of 18"):
        UltrametricMechanism(D, accuracy=1 - np.eye(650), law="relaxed", radius=0.0).fit()


def tree(seed):
    """A random tree of up to eight leaves, with heights from 1e-8 to 1."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    heights, parts = np.sort(10 ** rng.uniform(-8, 0, n - 1)), [[i] for i in range(n)]
    D = np.zeros((n, n))
    for height in heights:
        i, j = sorted(rng.choice(len(parts), 2, replace=False))
        D[np.ix_(parts[i], parts[j])] = D[np.ix_(parts[j], parts[i])] = height
        parts[i] += parts.pop(j)
    return D


@pytest.mark.laws
@pytest.mark.parametrize("law", ["relaxed", "raised", "weighted", "full rate"])
def test_ultrametric_mechanism_near_points_lose_at_most_promise(law):
    # For points at a distance of 1e-8, the rounding of logarithms is not negligible.
    for seed in range(12):
        D, alpha = tree(seed), 10 ** np.random.default_rng(seed).uniform(-2, 3)
        if law == "full rate":
            private = MetricExponentialMechanism(alpha, "precomputed", D, rate="weighted").fit()
        else:
            private = UltrametricMechanism(D, alpha, law=law, radius=0.0).fit()
        promise = private.privacy_guarantee_
        D = private._between
        logs = private._logs(D)
        assert exact_parameter(logs, D + promise.resolution) <= alpha
        # Replacing a record by any other one costs no more than was paid for.
        assert exact_parameter(logs, np.full(D.shape, D.max())) * D.max() <= promise.epsilon
        assert private.privacy_parameter_ <= alpha and promise.resolution < 1e-9


@pytest.mark.laws
def test_ultrametric_mechanism_takes_copy_of_distances_as_same():
    D = tree(0) * (1 + 1e-12)
    for law in ("relaxed", "raised", "weighted"):
        one, other = (
            UltrametricMechanism(D, 4.0, accuracy=accuracy, law=law).fit()
            for accuracy in (None, D.copy())
        )
        assert np.array_equal(one.log_probability(D), other.log_probability(D))
        assert one.accuracy_ == other.accuracy_

"""Mechanisms on finite spaces: exact output laws, accuracy, theorems, draws."""

import dataclasses
import math
import pickle
from functools import partial

import numpy as np
import pytest
from joblib import Memory
from sklearn.base import clone

from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.metric_privacy import (
    KNormMechanism,
    MetricExponentialMechanism,
    UltrametricMechanism,
)
from sklearn_dptda.metric_privacy._finite_laws import draw, floored, least_weight
from sklearn_dptda.metric_privacy._finite_metrics import cross_distances
from sklearn_dptda.persistence import bottleneck_distance, wasserstein_distance
from sklearn_dptda.plotting import plot_accuracy_bounds
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLeakWarning,
)
from sklearn_dptda.published import (
    accuracy_bounds,
    diametric_scale,
    entropic_scale,
    optimal_mechanism,
    privacy_parameter,
)
from sklearn_dptda.published._accuracy_bounds import solve
from tests._refusals import refusals, refuses, refuses_unpaid
from tests.privacy._laws import p_value

from ._spaces import HALVES, KNOWN, line, many_spaces, pairwise, random_graph, sphere, square, words

ALPHAS = (1.0, 4.0, 16.0)
BEST = {
    "two points": tuple(1 / (1 + math.exp(a)) for a in ALPHAS),
    "complete": tuple(9 / (9 + math.exp(a)) for a in ALPHAS),
    "hamming": tuple(1 / (1 + math.exp(a / 4)) for a in ALPHAS),
    "cycle": (0.4154239, 0.2212220, 0.0344650),
    "interval": (0.3368990, 0.1743702, 0.0550905),
    "baire": (0.2908926, 0.1864027, 0.0446101),
}
DIAGRAMS = [
    np.array([[b, d]]) for b in (0.0, 0.2, 0.4, 0.6) for d in (0.4, 0.6, 0.8, 1.0) if b < d
] + [np.empty((0, 2))]


def measures():
    """Distributions on a line of three places, in quarters, with the Wasserstein distance."""
    tops = np.array([(a, b) for a in range(5) for b in range(a, 5)]) / 4
    return np.abs(tops[:, None] - tops).sum(axis=2) / 2


def diagram_distances(distance=bottleneck_distance):
    return np.array([[distance(a, b) for b in DIAGRAMS] for a in DIAGRAMS])


SEVEN = {
    "interval": KNOWN["interval"],
    "square": square(4),
    "hamming": KNOWN["hamming"],
    "baire": KNOWN["baire"],
    "sphere": sphere(18),
    "diagrams": diagram_distances(),
    "measures": measures(),
}


def law_of(D, alpha, **options):
    private = MetricExponentialMechanism(alpha, "precomputed", D, **options).fit()
    return private, private.log_probability(D)


@pytest.mark.parametrize(("name", "i"), pairwise(BEST, range(3)))
def test_optimal_mechanism_reaches_known_optima(name, i):
    D, alpha = KNOWN[name], ALPHAS[i]
    best = optimal_mechanism(D, alpha=alpha)
    assert best.optimum == pytest.approx(BEST[name][i], abs=1e-6)
    assert best.accuracy == pytest.approx(BEST[name][i], abs=1e-6)
    assert privacy_parameter(best.log_matrix, D, log=True) <= alpha * (1 + 1e-9)


def test_optimal_mechanism_repairs_raw_solutions_that_are_not_private():
    D = KNOWN["interval"]
    M, _ = solve(D, D, 16.0)
    M = np.maximum(M, 0.0)
    M /= M.sum(axis=1, keepdims=True)
    assert privacy_parameter(M, D) > 1.5 * 16.0
    assert privacy_parameter(optimal_mechanism(D, alpha=16.0).log_matrix, D, log=True) <= 16.0


@pytest.mark.parametrize(
    "alpha", [4.0, *(pytest.param(alpha, marks=pytest.mark.laws) for alpha in (0.3, 1.0, 100.0))]
)
def test_metric_exponential_laws_lose_no_more_than_alpha(alpha):
    # Exact output laws, without sampling.
    for D in [*SEVEN.values(), *many_spaces()[::3]]:
        for rate in ("guaranteed", "weighted"):
            private, logs = law_of(D, alpha, rate=rate)
            assert np.exp(logs).sum(axis=1) == pytest.approx(1.0)
            parameter = privacy_parameter(logs, D, log=True)
            assert parameter <= alpha * (1 + 1e-9)
            assert private.privacy_parameter_ == pytest.approx(parameter)
            assert alpha / 2 * (1 - 1e-5) <= private.rate_ <= alpha


def test_privacy_parameter_catches_plain_law_at_full_rate():
    # The broken twin: without the weights, the full rate is not private.
    D = KNOWN["interval"]
    logs = floored(-4.0 * D)
    assert privacy_parameter(logs, D, log=True) > 4.0 * 1.2


@pytest.mark.parametrize(
    ("name", "alpha"),
    [
        ("sphere", 16.0),
        *(
            pytest.param(name, alpha, marks=pytest.mark.laws)
            for name in SEVEN
            for alpha in ALPHAS
            if (name, alpha) != ("sphere", 16.0)
        ),
    ],
)
def test_metric_exponential_weighted_law_is_near_optimum(name, alpha):
    D = SEVEN[name]
    best = optimal_mechanism(D, alpha=alpha).accuracy
    private, _ = law_of(D, alpha, rate="weighted")
    assert best * (1 - 1e-4) <= private.accuracy_ <= 1.35 * best


@pytest.mark.laws
@pytest.mark.parametrize("alpha", ALPHAS)
def test_optimal_mechanism_stays_between_entropic_and_diametric_scales(alpha):
    # At least forty spaces: no private mechanism beats the lower bounds, and one is as good as the
    # entropic scale at a third of the rate.
    spaces = [*many_spaces(), *KNOWN.values()]
    assert len(spaces) >= 40
    for D in spaces:
        best = optimal_mechanism(D, alpha=alpha).optimum
        s = entropic_scale(D, alpha=2 * alpha)
        s_o = diametric_scale(D, alpha=2 * alpha)
        assert best >= float(s) / 8 - 1e-9
        assert best >= float(s_o) / 5 - 1e-9
        generous = float(entropic_scale(D, alpha=alpha / 3))
        if generous > 0:
            assert best <= generous + 1e-9


def test_optimal_mechanism_takes_two_metrics():
    D1, D2 = random_graph(8, 0), random_graph(8, 1)
    best = optimal_mechanism(D1, D2, alpha=2.0)
    assert privacy_parameter(best.log_matrix, D1, log=True) <= 2.0
    bounds = accuracy_bounds(D1, D2, alpha=2.0)
    assert bounds.lower <= bounds.optimum <= min(bounds.attained.values()) + 1e-9


@pytest.mark.conformance
def test_accuracy_bounds_are_printed_and_plotted():
    bounds = accuracy_bounds(KNOWN["baire"], alpha=4.0)
    assert set(bounds.attained) == {"ultrametric", "weighted", "guaranteed"}
    assert "best, linear program" in str(bounds) and "1.0" in str(bounds)
    assert bounds.attained["ultrametric"] <= bounds.attained["weighted"] * (1 + 1e-6)
    large = accuracy_bounds(line(60), alpha=4.0)
    assert large.optimum is None and large.best == large.lower > 0
    ax = plot_accuracy_bounds(accuracy_bounds(KNOWN["interval"], alpha=alpha) for alpha in (1, 4))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "weighted" in labels and "best (linear program)" in labels


def test_finite_draws_follow_law():
    # 20,000 draws of 20 outputs. Other rates are detected.
    logs = np.log(np.random.default_rng(1).random(20)) * 3
    drawn = draw(np.tile(logs, (20_000, 1)), NoiseSource(0))
    for rate, follows in ((1.0, True), (0.8, False), (1.25, False)):
        assert (p_value(drawn, np.exp(floored(rate * logs[None])[0])) > 1e-6) == follows


@pytest.mark.laws
@pytest.mark.parametrize("n_outputs", [1, 3, 700, 8191, 8192, 60_000])
def test_finite_draws_take_any_number_of_outputs(n_outputs):
    n = 400 if n_outputs < 5000 else 40
    drawn = draw(np.zeros((50, n_outputs)), NoiseSource(0))
    assert drawn.min() >= 0 and drawn.max() < n_outputs
    assert n_outputs < 3 or len(np.unique(drawn)) > 2
    # Impossible outputs are never drawn, and outputs that are far less likely than all others
    # almost never.
    logs = np.full((n, n_outputs), -np.inf)
    logs[:, n_outputs // 2] = 0.0
    assert (draw(logs, NoiseSource(0)) == n_outputs // 2).all()
    logs[:, 0] = -1e6
    assert (draw(logs, NoiseSource(0)) == n_outputs // 2).sum() >= n - 1
    assert (
        np.exp(floored(logs)).min() >= 0.5 * least_weight(n_outputs)
        or n_outputs == 1
        or np.isinf(logs).any()
    )


def test_finite_draws_use_all_bits_of_weights():
    # Weights 1 and 1 + 2**-52 as integers: the part of a weight below its unit is kept.
    class Fixed(NoiseSource):
        def __init__(self, *values):
            super().__init__(0)
            self.values = list(values)

        def words(self, size):
            return np.full(size, self.values.pop(0), dtype=np.uint64)

    logs = np.log(np.array([[0.3, 1.0]]))
    scaled = np.ldexp(np.exp(logs), 62 - 2)[0]
    high = int(scaled[0])
    shift = 64 - int(scaled.sum()).bit_length()
    for offset, expected in ((-1, 0), (1, 1)):
        source = Fixed((high + offset) << shift, 0)
        assert draw(logs, source)[0] == expected


def test_metric_exponential_releases_points_and_diagrams():
    grid = np.array([[x, y] for x in range(5) for y in range(5)], dtype=float)
    private = MetricExponentialMechanism(20.0, candidates=grid, random_state=0).fit()
    X = np.array([[0.1, 0.0], [3.9, 4.1]])
    assert np.array_equal(private.transform(X), [[0, 0], [4, 4]])
    assert len(private.sample(X, 3)) == 3
    assert clone(private).fit(X).transform(X).shape == (2, 2)
    for distance in (bottleneck_distance, wasserstein_distance):
        metric = distance.__name__.removesuffix("_distance")
        private = MetricExponentialMechanism(1e3, metric, DIAGRAMS, random_state=0).fit()
        released = private.transform([[[0.01, 0.61]], np.empty((0, 2))])
        assert np.array_equal(released[0], [[0.0, 0.6]]) and len(released[1]) == 0
        logs = private.log_probability(DIAGRAMS)
        assert privacy_parameter(logs, diagram_distances(distance), log=True) <= 1e3 * (1 + 1e-9)


def test_metric_exponential_covers_inputs_beyond_candidates():
    # At half the rate, any two inputs are covered, but the weighted law only accepts candidates.
    grid = np.linspace(0, 1, 6)[:, None]
    X = np.random.default_rng(0).uniform(-1, 2, (60, 1))
    private = MetricExponentialMechanism(5.0, candidates=grid, random_state=0).fit()
    assert privacy_parameter(private.log_probability(X), np.abs(X - X.T), log=True) <= 5.0
    weighted = clone(private).set_params(rate="weighted").fit()
    refuses("candidates as inputs", weighted.transform, X)
    assert np.isin(weighted.transform(grid), grid).all()


def test_metric_exponential_warns_of_private_candidates():
    X = np.random.default_rng(0).random((10, 2))
    with pytest.warns(PrivacyLeakWarning, match="candidates"):
        private = MetricExponentialMechanism().fit(X)
    assert not private.privacy_guarantee_.holds
    refuses("candidates must be given", MetricExponentialMechanism().fit)


@pytest.mark.laws
@pytest.mark.parametrize("alpha", [0.5, 4.0, 20.0])
def test_ultrametric_mechanism_is_private_and_near_optimum(alpha):
    for D1, D2 in (
        (KNOWN["baire"], None),
        (words(HALVES), words(3.0 ** -np.arange(1, 5))),
        (words([1.0, 0.7, 0.1]), None),
        (KNOWN["complete"], None),
    ):
        private = UltrametricMechanism(D1, alpha, accuracy=D2, random_state=0).fit()
        assert privacy_parameter(private.log_probability(D1), D1, log=True) <= alpha * (1 + 1e-9)
        best = optimal_mechanism(D1, D2, alpha=alpha).accuracy
        assert best * (1 - 1e-4) <= private.accuracy_ <= 1.15 * best
        assert private.release(np.arange(len(D1))).shape == (len(D1),)


def test_ultrametric_mechanism_and_samples_refuse_other_points_and_numbers():
    refuses("not an ultrametric", UltrametricMechanism(KNOWN["interval"]).fit)
    private = UltrametricMechanism(KNOWN["baire"]).fit()
    refuses("numbers of points", private.release, [16])
    refuses("not points of the space", private.transform, np.ones((1, 16)))
    private = MetricExponentialMechanism(1.0, candidates=[[0.0], [1.0]]).fit()
    for bad in (0, 2.5, -1):
        refuses("n_samples", private.sample, [[0.0]], bad)


@pytest.mark.parametrize(
    ("mechanism", "diameter"),
    [
        (MetricExponentialMechanism(2.0, candidates=np.eye(3)), math.sqrt(2)),
        (UltrametricMechanism(KNOWN["complete"], 2.0), 1.0),
        (KNormMechanism(2.0, bounds=(0, 1)), math.sqrt(3)),
    ],
)
def test_metric_mechanisms_pay_each_release_and_refuse_changed_parameters(mechanism, diameter):
    X = np.eye(3) if not isinstance(mechanism, UltrametricMechanism) else KNOWN["complete"]
    accountant = PrivacyAccountant(10.0)
    mechanism = clone(mechanism).set_params(accountant=accountant).fit(X)
    assert accountant.total().epsilon == 0
    mechanism.transform(X)
    assert accountant.total().epsilon == mechanism.privacy_guarantee_.epsilon
    assert accountant.total().epsilon == pytest.approx(2.0 * diameter)
    with pytest.raises(PrivacyBudgetExceeded):
        for _ in range(10):
            mechanism.transform(X)
    mechanism.set_params(alpha=3.0)
    refuses("Call fit again", mechanism.transform, X)
    mechanism.set_params(alpha=2.0, random_state=0)
    refuses("Call fit again", mechanism.transform, X)
    assert "alpha=2" in str(mechanism.privacy_guarantee_)
    assert mechanism.privacy_guarantee_.at_distance(0.25) == pytest.approx(0.5, abs=1e-5)
    copy = pickle.loads(pickle.dumps(clone(mechanism).set_params(accountant=None).fit(X)))
    assert len(copy.transform(X)) == len(X)


exponential = MetricExponentialMechanism


@refusals(
    {
        "exponential": (
            lambda **options: exponential(**options).fit(),
            [
                ("alpha", {"alpha": 0.0, "candidates": np.eye(2)}),
                ("candidates", {"candidates": np.empty((0, 2))}),
                ("empty", {"metric": "bottleneck", "candidates": []}),
                ("not symmetric", {"metric": "precomputed", "candidates": [[0, 1], [2, 0]]}),
                ("metric must be one of", {"metric": "sqeuclidean", "candidates": line(5)}),
            ],
        ),
        "fit": (exponential(candidates=np.eye(2)).fit, [("features", np.ones((3, 3)))]),
        "optimal": (optimal_mechanism, [("at most 60 are allowed", line(61))]),
        "parameter": (
            partial(privacy_parameter, D=1 - np.eye(2)),
            [
                ("sum to one", [[0.5, 0.4], [0.5, 0.5]]),
                ("a row for each point", [[0.5, 0.5]]),
            ],
        ),
    }
)
def test_metric_mechanisms_refuse_bad_input(refuse):
    refuse()


def losses_of(logs):
    logs = logs[:, np.isfinite(logs).any(axis=0)]
    return np.abs(logs[:, None] - logs).max(axis=2)


def largest_loss(private, inputs):
    return losses_of(private.log_probability(inputs)).max()


def squared(a, b):
    return float(((a - b) ** 2).sum())


def undefined(a, b):
    return float("nan") if a[0] > 5 else abs(a[0] - b[0])


def test_metric_exponential_refuses_infinite_distances_unpaid():
    diagrams = MetricExponentialMechanism(1.0, "bottleneck", DIAGRAMS).fit()
    function = MetricExponentialMechanism(1.0, undefined, candidates=np.eye(2)).fit()
    for private, X in ((diagrams, [np.array([[0.0, np.inf]])]), (function, [[9.0, 0.0]])):
        refuses_unpaid("not finite", private.transform, X)
    said = refuses_unpaid(None, diagrams.transform, [[["secret", 1.0]]])
    assert "secret" not in said
    # Finite points are moved nearer, and never refused.
    points = MetricExponentialMechanism(1.0, candidates=np.eye(2), random_state=0).fit()
    assert points.transform([[1e155, 1e308]]).shape == (1, 2)


def test_metric_exponential_bounds_loss_of_false_distances():
    # Rows that contradict the distances of candidates, and a function that is not a metric.
    for rate in ("guaranteed", "weighted"):
        private = MetricExponentialMechanism(2.0, "precomputed", 1 - np.eye(2), rate=rate).fit()
        assert largest_loss(private, [[0.0, 1000.0], [1000.0, 0.0]]) <= 2.0 * (1 + 1e-9)
    private = MetricExponentialMechanism(2.0, squared, [[0.0], [1.0]]).fit()
    promised = private.privacy_guarantee_.epsilon
    assert largest_loss(private, [[-100.0], [100.0]]) <= promised * (1 + 1e-9)


@pytest.mark.parametrize("rate", ["guaranteed", "weighted"])
def test_metric_exponential_takes_copies_and_extreme_rates(rate):
    rng = np.random.default_rng(0)
    near = np.vstack([rng.random((6, 2)), rng.random((3, 2)) * 1e-13])
    copies = np.array([[0.0, 0], [0, 0], [1, 1], [2, 1]])
    for X in (near, copies, rng.random((1, 2)), np.zeros((3, 2))):
        for alpha, metric in ((1e-6, "euclidean"), (1e3, "chebyshev")):
            private = MetricExponentialMechanism(alpha, metric, X, rate=rate).fit()
            assert private.privacy_parameter_ <= alpha
            assert private.transform(X).shape == X.shape
    nearly = np.array([[0, 0, 1e-9, 1], [0, 0, 0, 1], [1e-9, 0, 0, 1], [1, 1, 1, 0]])
    private = MetricExponentialMechanism(1e6, "precomputed", nearly, rate=rate).fit()
    assert private.privacy_parameter_ <= 1e6


@pytest.mark.parametrize("alpha", [1e-6, pytest.param(0.0048, marks=pytest.mark.laws)])
def test_optimal_mechanism_solves_small_rates(alpha):
    D = KNOWN["interval"]
    best = optimal_mechanism(D, alpha=alpha)
    assert privacy_parameter(best.log_matrix, D, log=True) <= alpha * (1 + 1e-9)
    assert accuracy_bounds(D, alpha=alpha).optimum == pytest.approx(0.5, abs=0.01)


class Distance:
    """A distance with a state of its own."""

    def __call__(self, a, b):
        return float(np.abs(a - b).sum())


def test_metric_exponential_pickles_functions_as_metrics():
    private = MetricExponentialMechanism(1.0, Distance(), [[0.0], [1.0]]).fit()
    copy = pickle.loads(pickle.dumps(private))
    assert copy.transform([[0.0]]).shape == (1, 1)


def pair_losses(private, inputs):
    """Losses and distances of all pairs of inputs, as plain as they can be computed."""
    losses = losses_of(private.log_probability(inputs))
    return losses, np.sqrt(((inputs[:, None] - inputs) ** 2).sum(axis=2))


NEAR = {
    "near copies": np.array([[0.2], [0.2 + 5e-9], [0.34], [0.41], [1.03], [2.02]]),
    "nearer copies": np.array([[0.2], [0.2 + 1e-12], [0.34], [0.34], [2.02]]),
    "all of them near": 1e-9 * np.arange(6.0)[:, None],
    "in the plane": np.array([[0.0, 0.0], [3e-9, 4e-9], [1.0, 0.0], [1.0, 1e-8], [0.3, 0.7]]),
}


@pytest.mark.parametrize("rate", ["guaranteed", "weighted"])
@pytest.mark.parametrize(("name", "unit"), pairwise(NEAR, [1.0, 1e-9, 1e9]))
def test_metric_exponential_counts_distances_of_near_candidates(name, rate, unit):
    # The distances are computed by the test: a matrix that the library inflates would agree with
    # itself.
    candidates = unit * NEAR[name]
    for alpha in (0.5 / unit, 20.0 / unit, 1e9 / unit):
        private = MetricExponentialMechanism(alpha, candidates=candidates, rate=rate).fit()
        losses, distances = pair_losses(private, candidates)
        spared = private.privacy_guarantee_.resolution
        assert (losses <= alpha * (distances * (1 + 1e-9) + spared)).all()
        assert private.privacy_guarantee_.holds
        precomputed = MetricExponentialMechanism(alpha, "precomputed", distances, rate=rate).fit()
        losses = losses_of(precomputed.log_probability(distances))
        assert (losses <= alpha * (distances * (1 + 1e-9) + spared)).all()


def test_privacy_parameter_is_infinite_if_copies_differ():
    same_place = np.zeros((2, 2))
    assert privacy_parameter([[0.5, 0.5], [0.5, 0.5]], same_place) == 0
    assert privacy_parameter([[0.5, 0.5], [0.4, 0.6]], same_place) == math.inf


def test_privacy_parameter_counts_distances_of_near_copies():
    D = np.abs(NEAR["near copies"] - NEAR["near copies"].T)
    best = optimal_mechanism(D, alpha=20.0)
    apart = D > 0
    losses = losses_of(best.log_matrix)
    assert best.accuracy == pytest.approx(best.optimum, abs=1e-6)
    assert (losses[apart] <= 20.0 * D[apart] * (1 + 1e-6)).all()
    # A law that distinguishes points at a distance of 5e-9 loses that much per unit of distance.
    logs = np.log(np.where(np.eye(6), 0.9, 0.02))
    assert privacy_parameter(logs, D, log=True) == pytest.approx(np.log(45.0) / 5e-9, rel=1e-6)
    assert privacy_parameter(logs, D * 1e-6, log=True) == pytest.approx(
        np.log(45.0) / 5e-15, rel=1e-6
    )


@pytest.mark.laws
@pytest.mark.parametrize("rate", ["guaranteed", "weighted"])
def test_metric_exponential_checks_many_candidates(rate):
    # Pairs: for more than 500 candidates, the parameter is bounded, not searched for.
    rng = np.random.default_rng(0)
    X = rng.random((560, 2))
    X[:200] = X[0] + 1e-7 * rng.random((200, 2))
    private = MetricExponentialMechanism(30.0, candidates=X, rate=rate).fit()
    some = np.r_[0:20, 500:530]
    losses, distances = pair_losses(private, X[some])
    assert (losses <= 30.0 * (distances * (1 + 1e-9) + private.privacy_guarantee_.resolution)).all()
    assert private.privacy_parameter_ <= 30.0 and private.rate_ >= 15.0 * (1 - 1e-6)
    # One bad triangle, hidden between the corners that a sample would check.
    steps = np.abs(np.arange(650)[:, None] - np.arange(650)) / 650.0
    D = 1 + np.minimum(steps, 0.9) * (1 - np.eye(650)) - np.eye(650)
    D[17, 18] = D[18, 17] = D[18, 401] = D[401, 18] = 0.05
    refuses("by way of 18", MetricExponentialMechanism(1.0, "precomputed", D, rate=rate).fit)


def test_metric_guarantee_fails_where_law_exceeds_it():
    private = MetricExponentialMechanism(2.0, candidates=np.eye(3)).fit()
    promise = private.privacy_guarantee_
    assert promise.holds and promise.attained == private.privacy_parameter_
    broken = dataclasses.replace(promise, attained=2.1)
    assert not broken.holds and "found a loss of 2.1" in str(broken)


def test_metric_exponential_bounds_loss_of_far_inputs():
    # Rounded at their own size, distances would differ by 16384 where candidates are at a distance
    # of 1.
    candidates = np.array([[0.0], [1.0], [2.0]])
    private = MetricExponentialMechanism(1.0, candidates=candidates).fit()
    X = 1e20 + 16384 * np.arange(-3.0, 4.0)[:, None]
    rows = MetricExponentialMechanism(1.0, "precomputed", line(3)).fit()
    far = [[1e20, 1e20 + 16384, 1e20], [1e20, 1e20, 1e20 + 16384]]
    for kind, inputs in ((private, np.vstack([X, -X, candidates])), (rows, far)):
        assert largest_loss(kind, inputs) <= kind.privacy_guarantee_.epsilon * (1 + 1e-9)


def test_metric_exponential_haversine_is_exact_for_opposite_places():
    # The usual formula loses half of all digits there, and thus 1e-8 of every guarantee.
    rng = np.random.default_rng(0)
    candidates = np.column_stack([rng.uniform(-1.5, 1.5, 12), rng.uniform(-3, 3, 12)])
    private = MetricExponentialMechanism(1e3, "haversine", candidates).fit()
    opposite = np.column_stack([-candidates[:, 0], candidates[:, 1] + np.pi])
    X = np.vstack([opposite, opposite + 1e-10 * rng.standard_normal((12, 2))])
    logs = private.log_probability(X)
    losses = np.abs(logs[:12] - logs[12:]).max(axis=1)
    between = np.cos(X[:12, 0]) * (X[12:, 1] - X[:12, 1])
    distances = np.hypot(X[12:, 0] - X[:12, 0], between) * (1 + 1e-6)
    assert (losses <= 1e3 * (distances + private.privacy_guarantee_.resolution)).all()
    assert private.privacy_guarantee_.resolution < 1e-12
    close = np.array([[0.3, 0.2], [0.3, 0.2 + 1e-6], [-0.3, 0.2 - np.pi]])
    D = cross_distances(close, close, "haversine")
    assert D[0, 1] == pytest.approx(1e-6 * np.cos(0.3), rel=1e-8)
    assert D[0, 2] == pytest.approx(np.pi, abs=1e-15)
    refuses("latitude", cross_distances, np.eye(3), np.eye(3), "haversine")


def test_finite_mechanisms_refuse_bad_places_unpaid_and_unquoted():
    best = optimal_mechanism(1 - np.eye(2), alpha=1.0)
    accountant = PrivacyAccountant(10.0)
    tree = UltrametricMechanism(1 - np.eye(2), accountant=accountant).fit()
    ragged = [[0], [0, 1]]
    for inputs in ([-1], [2], [1.9], [[0, 1]], ["secret"], [True], ragged, [0, None], np.nan):
        for release in (lambda x: best.sample(x, accountant=accountant), tree.release):
            said = refuses("integers from 0 to 1", release, inputs)
            assert "secret" not in said and "1.9" not in said
    assert not accountant.spends()
    assert set(best.sample([0, 1, 1], accountant=accountant, random_state=0)) <= {0, 1}
    assert len(accountant) == 1


@pytest.mark.laws
@pytest.mark.parametrize(("n", "rate"), [(440, "weighted"), (480, "guaranteed")])
def test_metric_exponential_grants_rounding_of_candidates_once(n, rate):
    # Below and above the number from which parameters are bounded: forty candidates that differ
    # only by rounding.
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    X = np.vstack([X, X[:40] + 1e-15 * rng.random((40, 2))])
    private = MetricExponentialMechanism(2.0, candidates=X, rate=rate).fit()
    promise = private.privacy_guarantee_
    assert private.rate_ >= 0.99 and promise.attained <= 2.0 and promise.holds
    losses, distances = pair_losses(private, X[:80])
    assert (losses <= 2.0 * (distances + promise.resolution) * (1 + 1e-9)).all()


@pytest.mark.parametrize("d", [0.0, 1e-9, 1e-12])
def test_optimal_mechanism_ignores_copies_of_points(d):
    # A copy changes nothing, and neither do two points that almost coincide.
    for places in ([0, 1, 2], [0, 1]):
        x = np.array([0.0, d, *places[1:]])
        best = optimal_mechanism(np.abs(x[:, None] - x), alpha=3.0)
        plain = optimal_mechanism(np.abs(np.subtract.outer(places, places)), alpha=3.0)
        assert best.optimum == pytest.approx(plain.optimum, abs=1e-6)
        assert best.accuracy == pytest.approx(plain.optimum, abs=1e-5)


@pytest.mark.laws
@pytest.mark.parametrize(
    ("metric", "alpha", "centre", "width", "net"),
    [
        ("haversine", 1e6, [0.3, 0.2], 1e-5, "auto"),
        ("haversine", 1e7, [1.57, 0.0], 1e-5, "all"),
        ("canberra", 1e7, [0.5, 0.5], 1e-6, "auto"),
        ("canberra", 1e6, [1e3, 1e-3], 1e-9, "all"),
    ],
)
def test_metric_exponential_bounds_loss_far_from_candidates(metric, alpha, centre, width, net):
    # Distances are rounded at their own size, not at that of the diameter of the candidates.
    rng = np.random.default_rng(0)
    candidates = np.array(centre) + width * rng.random((20, 2))
    private = MetricExponentialMechanism(alpha, metric, candidates, net=net).fit()
    promise = private.privacy_guarantee_
    X = np.array(centre) * rng.uniform(0.1, 2.0, (400, 2))
    Y = np.nextafter(X, np.inf)
    released = private.weights_ > 0
    logs, others = (private.log_probability(inputs)[:, released] for inputs in (X, Y))
    distances = np.array(
        [cross_distances(x[None], y[None], metric)[0, 0] for x, y in zip(X, Y, strict=True)]
    )
    assert (np.abs(logs - others).max(axis=1) <= alpha * (distances + promise.resolution)).all()


def test_finite_mechanism_draws_are_not_cached(tmp_path):
    mechanism = optimal_mechanism(KNOWN["complete"], alpha=0.5)
    cached = Memory(tmp_path, verbose=0).cache(mechanism.sample)
    with PrivacyAccountant(math.inf) as accountant:
        draws = [cached([0] * 50) for _ in range(3)]
    assert len(accountant) == 3 and len({draw.tobytes() for draw in draws}) == 3
    copy = pickle.loads(pickle.dumps(mechanism))
    assert np.array_equal(copy.log_matrix, mechanism.log_matrix) and vars(copy) == {
        **vars(mechanism),
        "log_matrix": copy.log_matrix,
    }


def test_metric_mechanisms_refuse_bad_seeds_unpaid():
    mechanism = optimal_mechanism(1 - np.eye(2))
    private = MetricExponentialMechanism(candidates=np.eye(2), random_state=0).fit()
    flip = EdgeFlip(random_state=0).fit(1 - np.eye(3))
    for seed in ("x", -1):
        private.random_state = flip.random_state = seed
        for release in (
            lambda s=seed: mechanism.sample([0], random_state=s),
            lambda: private.transform(np.eye(2)),
            lambda: flip.transform(1 - np.eye(3)),
        ):
            refuses_unpaid(None, release, error=(TypeError, ValueError))

"""Stated error bounds of released measures: each step of the proof, and whole fits."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.stats import binom, wasserstein_distance
from sklearn.base import clone

from sklearn_dptda.metric_privacy import MetricMeasure
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.synthetic import PrivateMeasure, _box_measure
from sklearn_dptda.synthetic._box_measure import (
    BoxNoise,
    _laplace_quantile,
    _log_moments,
    boxes,
    cell_ends,
    consistent,
    halvings,
    leaf_of,
    level_scales,
    level_shares,
    level_sums,
    level_widths,
)
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses

FALSE_ALARM = 1e-6


def transport(X, p, Y, q):
    """Wasserstein distance in the maximum norm, by linear programming."""
    n, m = len(X), len(Y)
    costs = np.abs(X[:, None] - Y[None]).max(axis=2)
    i = np.arange(n * m)
    sums = coo_array((np.ones(2 * n * m), (np.r_[i // m, n + i % m], np.r_[i, i])), (n + m, n * m))
    solution = linprog(costs.ravel(), A_eq=sums.tocsr()[:-1], b_eq=np.r_[p, q][:-1])
    assert solution.status == 0
    return solution.fun


def laplace_law(scale, last):
    k = np.arange(-last, last + 1)
    return k, np.exp(-np.abs(k) / scale) * math.tanh(0.5 / scale)


@pytest.mark.laws
def test_consistent_halves_are_off_by_box_or_noise():
    # Every case of up to 4 rows in each half, with noise of up to 3 each, by the released code.
    reached = 0
    for first, second in np.ndindex(5, 5):
        for noise in np.ndindex(7, 7):
            a, b = np.array(noise) - 3
            for mass in range(9):
                halves = consistent(
                    mass, [np.array([first + a, second + b])], [np.ones(2, dtype=bool)]
                )
                off = np.abs(halves - [first, second]).sum()
                above, difference = abs(mass - first - second), abs(a - b)
                assert off <= max(above, difference)
                assert off <= above + min(difference, 2 * mass)
                reached += off == max(above, difference) > above
    assert reached > 0


@pytest.mark.laws
@pytest.mark.parametrize("sizes", [(math.inf,), (math.inf, math.inf), (5, math.inf), (3, 7)])
def test_level_widths_bound_transport(sizes):
    rng, sizes = np.random.default_rng(0), np.array(sizes, dtype=float)
    axes = halvings(sizes, 5)
    ends = cell_ends(axes, sizes)
    low, high = boxes(axes, ends)
    there = (low < high).all(axis=1)
    widths = level_widths(axes, sizes)
    for _ in range(20):
        X = rng.uniform(size=(12, len(sizes)))
        finite = np.isfinite(sizes)
        X[:, finite] = (np.floor(X * sizes)[:, finite] + 0.5) / sizes[finite]
        q = rng.dirichlet(np.full(there.sum(), 0.3))
        q_levels = np.zeros(len(there))
        q_levels[there] = q
        p_levels = np.bincount(leaf_of(X, axes, ends), minlength=len(there)) / len(X)
        moved = [
            np.abs(p - q).sum() / 2
            for p, q in zip(level_sums(p_levels), level_sums(q_levels), strict=True)
        ]
        bound = widths[-1] + moved @ -np.diff(widths)
        centres = ((low + high) / 2)[there]
        assert transport(X, np.full(12, 1 / 12), centres, q) <= bound + 1e-9


@pytest.mark.laws
@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0, 700.0])
def test_log_moments_bound_exact_sums(scale):
    k, law = laplace_law(scale, int(40 * scale) + 40)
    differences, both = np.arange(2 * k[0], 2 * k[-1] + 1), np.convolve(law, law)
    caps = np.array([0.0, 0.4 * scale, 3 * scale, math.inf])
    for rate in (0.01 / scale, 0.5 / scale, 0.7 / scale):
        capped = np.minimum(np.abs(differences), np.ceil(caps)[:, None])
        exact = np.log((np.exp(rate * capped) * both).sum(axis=1))
        said = _log_moments(rate, scale, np.minimum(caps, 1e9))
        assert (said >= exact - 1e-12).all()
        np.testing.assert_allclose(said, exact, rtol=0.05, atol=1e-12)


@pytest.mark.parametrize("scale", [0.3, 2.0, 40.0])
def test_laplace_quantile_is_exact(scale):
    k, law = laplace_law(scale, int(60 * scale) + 60)
    for risk in (0.5, 0.05, 1e-3):
        quantile = _laplace_quantile(scale, risk)
        assert law[np.abs(k) > quantile].sum() <= risk < law[np.abs(k) > quantile - 1].sum()


@pytest.mark.laws
def test_box_noise_bound_is_near_quantile_of_capped_sum():
    # 20,000 draws of the noise in a bound, compared with the bound for it.
    depth, n = 6, 500
    sizes = np.array([math.inf])
    tree = BoxNoise(sizes, depth, 1.0, 0.75, n, 0.0)
    (scale,) = set(np.round(level_scales(level_shares(tree.axes, sizes), 1.0, 0.75), 9))
    weights = np.random.default_rng(0).dirichlet(np.full(64, 0.5))
    widths = tree.widths
    total, noise = np.zeros(20_000), NoiseSource(0)
    caps = list(tree.caps(weights))
    for (cap, _), path in zip(caps, (widths[:-1] - widths[-1]) / 2, strict=True):
        draws = noise.discrete_laplace(float(scale), 2 * len(total) * len(cap))
        pairs = np.abs(np.subtract(*draws.reshape(2, len(total), len(cap))))
        total += path * np.minimum(pairs, cap).sum(axis=1)
    bound = (tree.bound(depth, caps, 0.0, 0.05) - widths[-1]) * n
    # It is exceeded no more often than stated, and is at most two fifths above the best possible
    # bound.
    assert (total > bound).mean() <= 0.05
    assert bound < 1.4 * np.quantile(total, 0.95)


CLOUDS = {
    "uneven": lambda rng, n: rng.beta(2, 5, (n, 1)),
    "in one place": lambda rng, n: np.full((n, 1), 1 / 3),
    "at both ends": lambda rng, n: rng.integers(0, 2, (n, 1)) * 1.0,
}


def exceeded(measure, X, bound_of=None, n_fits=200):
    """Number of fits whose distance exceeds the bound, and the median of their ratio."""
    ratios, bound_of = [], bound_of or type(measure).error_bound
    for seed in range(n_fits):
        private = clone(measure).set_params(bounds=(0, 1), random_state=seed).fit(X)
        distance = wasserstein_distance(X[:, 0], private.support_[:, 0], v_weights=private.weights_)
        # On a line, a place can be reached exactly.
        ratios.append(bound_of(private) / max(distance, 1e-12))
    return int((np.array(ratios) < 1).sum()), float(np.median(ratios))


@pytest.mark.nightly
@pytest.mark.parametrize("n", [50, 1000])
@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize(
    "measure",
    [
        PrivateMeasure(),
        PrivateMeasure(adjacency="replace-one"),
        MetricMeasure(),
        MetricMeasure(alpha=300.0),
    ],
    ids=repr,
)
def test_error_bound_holds_on_line(measure, cloud, n):
    X = CLOUDS[cloud](np.random.default_rng(0), n)
    wrong, ratio = exceeded(measure, X)
    assert wrong <= binom.isf(FALSE_ALARM, 200, 0.05)
    # With a thousand rows the bound is informative, and half as large with integrals, where it is
    # tight.
    assert n < 1000 or ratio < (12 if isinstance(measure, MetricMeasure) else 60)


@pytest.mark.nightly
def test_error_bound_of_understated_noise_is_exceeded():
    def understated(private):
        law = private._noise
        twin = replace(law, epsilon=20 * law.epsilon, row_scale=0.0)
        return twin.error_bound(private.weights_, 0.05)

    X = CLOUDS["uneven"](np.random.default_rng(0), 1000)
    wrong, _ = exceeded(PrivateMeasure(), X, understated)
    assert wrong > binom.isf(FALSE_ALARM, 200, 0.05)


@pytest.mark.nightly
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_error_bound_holds_in_plane(adjacency):
    # 60 fits, with linear programs of 300 rows and up to 64 boxes.
    X = np.random.default_rng(0).beta(2, 5, (300, 2))
    ratios = []
    for seed in range(60):
        private = PrivateMeasure(1.0, (0, 1), adjacency=adjacency, random_state=seed).fit(X)
        some = private.weights_ > 0
        distance = transport(
            X, np.full(300, 1 / 300), private.support_[some], private.weights_[some]
        )
        ratios.append(private.error_bound() / distance)
    assert (np.array(ratios) < 1).sum() <= binom.isf(FALSE_ALARM, 60, 0.05)
    assert np.median(ratios) < 15


def test_error_bound_holds_for_synthetic_rows_of_wide_boxes(monkeypatch):
    # Without noise, the error is the width of a box. Rows at its edge are at half of that distance.
    X = np.tile([[0.0], [0.5]], (500, 1))
    monkeypatch.setattr(_box_measure, "MOST_LEVELS", 2)
    private = PrivateMeasure(math.inf, (0, 1)).fit(X)
    assert private.error_bound() == 0.25
    drawn = private.sample(20_000, random_state=0)[:, 0]
    assert 0.12 < wasserstein_distance(X[:, 0], drawn) <= 0.25


@pytest.mark.laws
def test_error_bound_holds_for_categories_and_integers():
    # Values of finite axes differ by multiples of one over their number. 25 fits, and false alarms
    # below 1e-6.
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 60, 2000), "job": rng.choice(list("abc"), 2000)})
    wrong = 0
    for seed in range(25):
        private = PrivateMeasure(
            2.0, (18, 67), categories={"job": list("abc")}, random_state=seed
        ).fit(people)
        bound = private.error_bound()
        assert 0 < bound < 0.5
        ages = wasserstein_distance(
            people["age"], private.support_[:, 0], v_weights=private.weights_
        )
        wrong += ages / 50 > bound
    assert wrong <= binom.isf(FALSE_ALARM, 25, 0.05)
    one = PrivateMeasure(1.0, categories={"job": ["a"]}, random_state=0)
    assert one.fit(pd.DataFrame({"job": ["a", "a"]})).error_bound() == 0.0


def test_error_bound_is_function_of_release():
    X = CLOUDS["uneven"](np.random.default_rng(0), 2000)
    private = PrivateMeasure(1.0, (0, 1), random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(private))
    assert again.error_bound() == private.error_bound() < private.error_bound(0.999) < 1
    # Only public numbers and the private number of rows are kept for it.
    assert vars(private._noise) == {
        "sizes": [math.inf],
        "depth": private._noise.depth,
        "sensitivity": 1.0,
        "epsilon": 0.95,
        "n_rows": private.n_samples_,
        "row_scale": pytest.approx(20.0),
    }
    assert 2**private._noise.depth == len(private.weights_)


def test_error_bound_refuses_bad_confidence_and_integrals_in_plane():
    for kind in (PrivateMeasure, MetricMeasure):
        private = kind(1.0, (0, 1), random_state=0).fit([[0.5], [0.2]])
        for confidence in (0, 1, -0.1, math.nan, "high", None):
            refuses("confidence", private.error_bound, confidence)
    private = MetricMeasure(1.0, (0, 1), random_state=0)
    private.fit(np.random.default_rng(0).uniform(size=(100, 2)))
    refuses("one column only; got 2", private.error_bound)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_error_bound_assumes_the_noise_that_is_drawn(share, rng):
    private = PrivateMeasure(1.0, (0, 1), marginal_share=share, random_state=0)
    draws = recorded(lambda: private.fit(rng.random((500, 2)))).crossings
    noise = private._noise
    scales = _box_measure.level_scales(
        _box_measure.level_shares(noise.axes, noise.sizes), noise.sensitivity, noise.epsilon
    )
    drawn = [1 / draw.rate for draw in draws]
    assert drawn[-len(scales) :] == pytest.approx(scales) and drawn[0] == noise.row_scale

"""Private bounds of columns without public bounds: sensitivities, accuracy, and costs."""

import math
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPToMATo, DPTree, _dp_tomato
from sklearn_dptda.privacy import NoiseWarning, audit_epsilon
from sklearn_dptda.privacy.neighbours import row_neighbours
from sklearn_dptda.published import DPCube, PublishedMixture
from sklearn_dptda.rows import _private_cubes
from sklearn_dptda.rows._far_rows import _of_places
from sklearn_dptda.rows._localisation import (
    _of_offsets,
    box_within,
    of_columns,
    of_distances,
    private_box,
)
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.rows._sizes import _of_sizes
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses_unpaid
from tests.cluster._tables import seeded, share_of

KINDS = [DPMoG, DPMoGMorse, DPLloyd, DPTree, DPCube, DPToMATo]


def test_box_moves_rows_to_its_ends_and_into_the_cube(rng):
    low, high = np.array([-1.0, 2.0]), np.array([1.0, 3.0])
    X = np.array([[-1e300, 9.0], [0.5, 2.5], [7.0, -5.0]])
    for units in (None, (low - 3.0, high + 1.0)):
        box = Box.centred(low, high, units=units)
        expected = box.to_cube(np.array([[-1.0, 3.0], [0.5, 2.5], [1.0, 2.0]]))
        np.testing.assert_array_equal(box.to_cube(X), expected)
        assert box.points(expected) == pytest.approx(np.clip(X, low, high))
    # Without the second step, rounding would move some ends out of the cube.
    ends = np.sort(rng.normal(size=(2, 10_000)), axis=0)
    box = Box.centred(*ends)
    assert (np.abs((ends - box.origin) / box.unit) > 1).any()
    assert (np.abs(box.to_cube(ends)) <= 1).all()


def in_cube(X):
    return np.clip(X, -1, 1)


def same(X, *numbers):
    """Each number for all columns."""
    return [np.full(X.shape[1], number) for number in numbers]


# For each histogram: the half width of a box with rows, and whether each column is counted.
HISTOGRAMS = {
    "sizes": (_of_sizes, 1e9, True),
    "offsets": (lambda X: _of_offsets(X, *same(X, 0.3, 1e3)), 1e9, True),
    "far offsets": (lambda X: _of_offsets(X, *same(X, 0.0, 2.0**61)), 1e9, True),
    "columns": (lambda X: of_columns(in_cube(X), *same(X, 0.0), 1.0), 1.0, True),
    "narrow columns": (lambda X: of_columns(in_cube(X), *same(X, 0.3), 0.01), 1.0, True),
    "distances": (lambda X: of_distances(in_cube(X), *same(X, 0.3), 4.0), 1.0, False),
    "far rows": (lambda X: _of_places(X, *same(X, -1.0, 1.0)), 30.0, False),
}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms_count_a_row_once_or_once_per_column(name, d, adjacency):
    histogram, half, in_columns = HISTOGRAMS[name]
    most = (d if in_columns else 1) * (1 if adjacency == "add-remove" else 2)
    reached = np.zeros(2)
    for pair in row_neighbours(12, (-half * np.ones(d), half * np.ones(d)), adjacency=adjacency):
        moved = histogram(pair.first) - histogram(pair.second)
        norms = np.array([np.abs(moved).sum(), (moved**2).sum()])
        assert (norms <= most).all(), pair.name
        reached = np.maximum(reached, norms)
    # The declared sensitivities are attained.
    assert np.array_equal(reached, [most] * 2)


@pytest.mark.parametrize(
    ("norm", "middle", "unit"),
    [
        ("l1", 0.0, 1.0),
        ("l2", 1e5, 1.0),
        ("l1", -3.0, 1e-4),
        ("l2", 2024.0, 5.0),
        ("l1", 0.0, 1e12),
        ("l2", 0.0, 1e12),
    ],
)
def test_private_box_is_as_wide_as_the_rows(norm, middle, unit):
    rng = np.random.default_rng(0)
    X = middle + unit * np.column_stack(
        [rng.standard_normal(20_000), rng.uniform(-1, 1, 20_000), rng.exponential(size=20_000)]
    )
    for seed in range(2):
        found, spent = private_box(Rows.of_array(X), seeded(norm, seed), 0.2)
        low, high = found.low, found.high
        width = (high - low) / (X.max(axis=0) - X.min(axis=0))
        assert (width > 0.3).all() and (width < 3).all()
        assert ((low > X) | (high < X)).any(axis=1).mean() < 0.1
        assert 0.2 * 0.7 <= spent <= 0.2


def ends(X, norm="l2", seed=0, **changes):
    found, _ = private_box(Rows.of_array(X), seeded(norm, seed, **changes), 0.2)
    return found.low, found.high


def test_private_box_without_noise_reaches_normal_quantiles():
    low, high = ends(np.random.default_rng(0).standard_normal((50_000, 1)), total=math.inf)
    # One row in 5,000 is beyond 3.55 on one side.
    assert low == pytest.approx(-3.55, abs=0.6) and high == pytest.approx(3.55, abs=0.6)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_private_box_of_one_value_and_of_extreme_numbers(norm):
    X = np.column_stack([np.full(3000, 7.0), np.zeros(3000), np.resize([-1e308, 1e308], 3000)])
    low, high = ends(X, norm)
    assert np.isfinite([low, high]).all() and (low < high).all()
    assert low[0] <= 7.0 <= high[0] and high[0] - low[0] < 7.0
    assert low[1] <= 0.0 <= high[1] and high[1] - low[1] < 1e-6


@pytest.mark.laws
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_private_box_of_zeros_is_narrow(norm):
    # A wrong magnitude comes from one of a hundred cells of noise. Of 200 columns and draws, none
    # is wide.
    for seed in range(2):
        low, high = ends(np.zeros((30_000, 100)), norm, seed)
        assert (high - low < 1e-6).all()


def test_private_box_of_truth_values_and_zeros_keeps_the_others():
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [rng.random(5000) < 0.3, np.where(rng.random(5000) < 0.8, 0, rng.normal(5e3, 1e3, 5000))]
    ).astype(float)
    for seed in range(5):
        low, high = ends(rows, seed=seed)
        assert (low <= 0).all() and (high >= [1, 6e3]).all() and (high < [4, 4e4]).all()


def test_dp_lloyd_fits_one_value_between_far_bounds():
    X = np.column_stack([np.full(4000, 1e11 + 0.75), np.linspace(-1, 1, 4000)])
    for epsilon in (2.0, math.inf):
        DPLloyd(3, epsilon, bounds=([1e11, -5], [1e11 + 2, 5]), random_state=0).fit(X)


def test_private_box_holds_two_far_groups():
    # Half of the rows lie outside the narrower histogram, and its mean stays with the others.
    rng = np.random.default_rng(0)
    low, high = ends(np.r_[rng.normal(0, 1e-3, 3000), rng.uniform(500, 1000, 2900)][:, None])
    assert low < 0 and high > 900


def quiet_fit(estimator, X):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*lie outside the bounds", UserWarning)
        return estimator.fit(X)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_private_clusters_are_found_without_bounds(kind, adjacency):
    X, y = make_blobs(5000, centers=4, n_features=3, random_state=3, cluster_std=0.6)
    X = X * [1.0, 100.0, 0.01] + [0.0, 1e4, 0.0]
    private = kind(4, epsilon=4.0, adjacency=adjacency, random_state=0).fit(X)
    assert adjusted_rand_score(y, private.predict(X)) > 0.95
    low, high = private.bounds_
    inside = ((low <= X) & (high >= X)).all(axis=1).mean()
    assert private.clipped_share_ == pytest.approx(1 - inside, abs=0.02)
    guarantee = private.privacy_guarantee_
    assert guarantee.epsilon == 4.0 and guarantee.public_parameters
    assert guarantee.released.startswith("bounds, ")


@pytest.mark.laws
def test_dp_mog_keeps_named_bounds():
    X, _ = make_blobs(5000, centers=3, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    private = DPMoG(3, 2.0, bounds={"b": (-20, 30)}, random_state=0).fit(frame)
    low, high = private.bounds_
    assert -20 < low[0] < high[0] < 20
    assert -20 <= low[1] < -2 and 6 < high[1] < 20
    assert "bounds" in private.privacy_guarantee_.released
    both = DPMoG(3, 2.0, bounds={"b": (-20, 30), "a": (-15, 15)}, random_state=0).fit(frame)
    pair = DPMoG(3, 2.0, bounds=([-15, -20], [15, 30]), random_state=0).fit(frame)
    assert np.array_equal(both.means_, pair.means_)
    assert both.privacy_guarantee_.released.startswith("bounds, ")


@pytest.mark.laws
@pytest.mark.parametrize(
    ("kind", "factor"),
    [(DPMoG, 1000), (DPMoGMorse, 10), (DPLloyd, 10), (DPTree, 1000), (DPCube, 10)],
)
def test_private_clusters_do_not_depend_on_given_bounds(kind, factor):
    X, y = make_blobs(6000, centers=12, cluster_std=1.0, center_box=(-25, 25), random_state=4)
    centre, half = (X.min(axis=0) + X.max(axis=0)) / 2, (X.max(axis=0) - X.min(axis=0)) / 2
    scores = []
    for unlike in (np.array([1, 1]), np.array([factor, 1])):
        bounds = centre - unlike * half, centre + unlike * half
        # The median of five runs, since one run in six loses one of the twelve clusters.
        scores.append([])
        for seed in range(5):
            model = kind(12, epsilon=2.0, bounds=bounds, random_state=seed).fit(X)
            scores[-1].append(adjusted_rand_score(y, model.predict(X)))
            low, high = model.bounds_
            assert (low >= bounds[0]).all() and (high <= bounds[1]).all()
            # Intervals are extrapolated from quantiles at 6 % of the rows.
            assert ((high - low) / (2 * half) < 1.6).all()
            assert model.privacy_guarantee_.released.startswith("bounds, ")
    assert np.median(scores[1]) > np.median(scores[0]) - 0.05


@pytest.mark.parametrize(
    ("kind", "options"), [(PublishedMixture, {}), (DPLloyd, {}), (DPTree, {"epsilon": 0.1})]
)
def test_private_clusters_keep_given_bounds(kind, options):
    # With the published method, with one column, and if noise would hide the result.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1 if kind is DPLloyd else 2))
    X = X[:300] if kind is DPTree else X
    ends = np.full(X.shape[1], -50.0), np.full(X.shape[1], 70.0)
    model = kind(2, bounds=ends, random_state=0, **{"epsilon": 5.0, **options}).fit(X)
    np.testing.assert_array_equal(model.bounds_, ends)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_box_within_lies_within_and_spends_its_share(norm):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5, 1, 4000), np.full(4000, -1.0), rng.uniform(0, 1, 4000)])
    low, high = np.array([0.0, -1.0, -200.0]), np.array([1e6, 0.0, 0.5])
    for seed in range(4):
        budget = seeded(norm, seed)
        search = partial(box_within, Rows.of_array(X), low, high, budget, 0.1)
        found, left = search()
        assert (low <= found.low).all() and (found.low < found.high).all()
        assert (found.high <= high).all() and found.high[0] < 30 and found.low[2] > -30
        spent = 1 - left.total / budget.total if norm == "l1" else 1 - left.total**2
        assert 0.05 < spent <= 0.1 * (1 + 1e-12)
        # The last draw asks whether rows reach far out of the narrow intervals.
        draws = recorded(search).crossings
        assert share_of(draws, budget) == pytest.approx(spent, rel=1e-9)
        assert len(np.ravel(draws[-1].statistic)) == 2
    # With too few rows, only the number of rows is paid for.
    found, left = box_within(Rows.of_array(X[:50]), low, high, seeded(norm, 0), 0.1)
    np.testing.assert_array_equal([found.low, found.high], [low, high])


@pytest.mark.laws
@pytest.mark.parametrize("kind", [DPLloyd, DPMoG, DPTree, DPCube])
def test_private_clusters_measure_columns_alike(kind):
    # For uniform columns, the estimated bounds are wider than the rows. They are cut off at tight
    # bounds, and their widths are the units, whatever the bounds are.
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (4000, 2)), columns=["a", "b"])
    boxes = []

    class Seen(kind):
        def _learn(self, rows, budget, rng, box):
            boxes.append(box)
            assert rows.sum(_farthest) <= 1
            super()._learn(rows, budget, rng, box)

    tight = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}
    for bounds in (tight, tight | {"a": (-10.0, 10.0)}, {"b": (-1.0, 1.0)}):
        model = Seen(3, epsilon=2.0, bounds=bounds, random_state=0).fit(X)
        np.testing.assert_array_equal(model.bounds_, [boxes[-1].low, boxes[-1].high])
    for box in boxes:
        assert box.high[1] == 1.0 and ((box.unit > 1.02) & (box.unit < 2.0)).all()
    assert boxes[0].high[0] == 1.0 and all(1.0 < box.high[0] < 4.0 for box in boxes[1:])
    assert boxes[0].unit.max() <= 1.1 + 1e-9


def _farthest(part):
    return np.abs(part).max()


@pytest.mark.laws
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_box_within_keeps_bounds_that_rows_reach(norm):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60_000, 3))
    # More rows than the far quantiles leave out; fewer would be no reason to keep the bounds.
    rows[:7000, 0] = rng.uniform(-1000, 1000, 7000)
    low, high = np.array([-1000.0, -1000.0, -4.0]), np.array([1000.0, 1000.0, 4.0])
    for seed in range(3):
        some, few = (
            box_within(Rows.of_array(each), low, high, seeded(norm, seed), 0.1)[0]
            for each in (rows, rows[6000:])
        )
        # Columns that are much narrower are accepted or rejected together.
        np.testing.assert_array_equal([some.low[:2], some.high[:2]], [low[:2], high[:2]])
        assert (few.high[:2] < 20).all() and (few.low[:2] > -20).all()


def test_dp_lloyd_refuses_bounds_of_unknown_names_unpaid():
    X, _ = make_blobs(100, random_state=0)
    for rows, bounds, message in (
        (X, {"a": (0, 1)}, "'a'"),
        (pd.DataFrame(X, columns=["a", "b"]), {"c": (0, 1)}, "'c'"),
        (pd.DataFrame(X, columns=["a", "b"]), {"a": (1, 0)}, "crossed"),
        (pd.DataFrame(X, columns=["a", "b"]), {"a": 3}, "pair"),
    ):
        refuses_unpaid(message, DPLloyd(bounds=bounds, random_state=0).fit, rows)


@pytest.mark.laws
def test_dp_mog_warns_of_too_few_rows_for_bounds():
    # With twice the rows, few are outside the bounds. With a quarter of them, most are.
    private = DPMoG(2, random_state=0)
    needed = private._rows_for_bounds(60)
    X = np.random.default_rng(0).normal(size=(int(2 * needed), 60))
    few = private.fit(X).clipped_share_
    with pytest.warns(NoiseWarning, match=r"give public bounds \(the noise hides the bounds of 60"):
        many = private.fit(X[: int(needed / 4)]).clipped_share_
    assert few < 0.1 < 0.5 < many
    assert private.set_params(bounds=(-5, 5))._rows_for_bounds(60) == 0


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_dp_tomato_intervals_are_drawn_at_the_declared_rates(adjacency, monkeypatch):
    # Clusters follow from the released counts, and take most of the time.
    monkeypatch.setattr(_dp_tomato, "count_clusters", lambda *_: 1)
    rates, honest = [], _private_cubes.choose_member

    def choice(costs, sizes, rate, noise):
        rates.append(rate)
        return honest(costs, sizes, rate, noise)

    monkeypatch.setattr(_private_cubes, "choose_member", choice)
    private = DPToMATo(3, 1.0, (-1000, 1000), adjacency=adjacency, random_state=0)
    draws = recorded(lambda: private.fit(make_blobs(500, centers=3, random_state=0)[0])).crossings
    directions = 1 if adjacency == "add-remove" else 2
    declared = [draw.loss for draw in draws if draw.law == "range"]
    assert [directions * rate for rate in rates] == pytest.approx(declared) and len(declared) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [DPLloyd, DPToMATo])
def test_private_bounds_pass_an_audit_that_sees_less_noise(kind, monkeypatch):
    # With or without one row far away, in 600 runs per side, observed at the ends of the box.
    parameters = {"delta": 1e-5} if kind is DPLloyd else {}
    # Clusters follow from the released counts, take most of the time, and are not observed.
    monkeypatch.setattr(_dp_tomato, "count_clusters", lambda *_: 1)
    # So few rows that one of them is more than the far quantiles leave out.
    X = np.random.default_rng(0).uniform(-1, 1, (9, 1))
    sides = np.vstack([X, [[1e6]]]), X

    def widest(rows, random_state):
        private = quiet_fit(kind(1, 2.0, random_state=random_state, **parameters), rows)
        return np.r_[np.log(np.abs(np.r_[private.bounds_]).max()), private.clipped_share_]

    def audit(**options):
        delta = parameters.get("delta", 0.0)
        return audit_epsilon(widest, *sides, n_runs=600, delta=delta, random_state=0, **options)

    # The rate of false alarms.
    assert not audit(confidence=1 - 1e-6).refutes(2.0)
    # There are many histograms, and none costs the whole, so the twin has a fiftieth of the noise.
    honest = FitBudget.noisy_counts
    monkeypatch.setattr(
        FitBudget, "noisy_counts", lambda self, c, t, share: honest(self, c, t, 50**2 * share)
    )
    assert audit().refutes(2.0)

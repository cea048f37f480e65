"""Private measures of numeric rows: boxes, accuracy, audits, missing bounds, invalid options."""

import math

import numpy as np
import pandas as pd
import pytest

from sklearn_dptda.synthetic import PrivateMeasure, _box_measure
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from sklearn_dptda.utils.estimator_checks import privacy_checks

from ._measures import assert_audited, blobs, wasserstein


def tree_of(sizes, depth):
    axes = _box_measure.halvings(sizes, depth)
    return axes, _box_measure.cell_ends(axes, sizes)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_box_measure_boxes_contain_their_points(d, rng):
    X = rng.random((500, d))
    for depth in (1, 2, 5, 9):
        axes, ends = tree_of(np.full(d, np.inf), depth)
        leaves = _box_measure.leaf_of(X, axes, ends)
        low, high = _box_measure.boxes(axes, ends)
        assert (low[leaves] <= X).all() and (high[leaves] > X).all()
        assert np.prod(high - low, axis=1) == pytest.approx(2.0**-depth)
        counts = _box_measure.level_sums(np.bincount(leaves, minlength=len(low)))
        assert [len(level) for level in counts] == [2 << j for j in range(depth)]
        assert all(level.sum() == 500 for level in counts)
    assert _box_measure.leaf_of(np.ones((1, d)), *tree_of(np.full(d, np.inf), 6))[0] == 63


def test_box_measure_consistent_masses_add_up(rng):
    all_of_them = [np.ones(2 << j, dtype=bool) for j in range(6)]
    noisy = [rng.normal(5, 4, 2 << j) for j in range(6)]
    masses = _box_measure.consistent(40.0, noisy, all_of_them)
    assert masses.min() >= 0 and masses.sum() == pytest.approx(40.0)
    exact = _box_measure.level_sums(np.bincount(rng.integers(0, 64, 300), minlength=64))
    assert _box_measure.consistent(300, exact, all_of_them) == pytest.approx(exact[-1])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("d", "n", "most"), [(1, 10_000, 0.012), (2, 10_000, 0.035), (2, 1000, 0.05), (3, 10_000, 0.05)]
)
def test_private_measure_of_counts_is_near_data(d, n, most):
    X = blobs(n, d, 0)
    found = [
        wasserstein(X, PrivateMeasure(1.0, (0, 1), random_state=s).fit(X).sample(4000, 1))
        for s in range(3)
    ]
    assert np.mean(found) <= most


@pytest.mark.nightly
def test_private_measure_takes_million_points():
    X = np.random.default_rng(0).random((10**6, 2))
    private = PrivateMeasure(1.0, (0, 1), random_state=0).fit(X)
    assert 2**16 <= len(private.weights_) <= 2**18
    assert abs(private.n_samples_ - 10**6) < 1000
    # Each quarter of the square contains a quarter of the mass.
    corners = (private.support_ > 0.5) @ [1, 2]
    assert np.bincount(corners, weights=private.weights_) == pytest.approx([0.25] * 4, abs=0.003)


def test_private_measure_without_noise_is_measure_of_data():
    X = blobs(500, 2, 0)
    exact = PrivateMeasure(np.inf, (0, 1), adjacency="replace-one").fit(X)
    leaves = _box_measure.leaf_of(X, *tree_of([np.inf] * 2, 18))
    counts = np.bincount(leaves, minlength=len(exact.weights_))
    assert np.array_equal(np.round(500 * exact.weights_, 9), counts)


@pytest.mark.nightly
def test_private_measure_audit_catches_broken_twin(monkeypatch):
    # 4,000 runs per side of a measure of two halves, and 2,000 of a twin with an eighth of the
    # noise; false alarms below 1e-6.
    monkeypatch.setattr(_box_measure, "MOST_LEVELS", 1)
    inside, outside = np.array([[0.1], [0.1]]), np.array([[0.1]])

    def release(X, random_state=None, epsilon=1.0):
        private = PrivateMeasure(epsilon, (0, 1), random_state=random_state).fit(X)
        return private.weights_[0] * private.n_samples_

    assert_audited(release, inside, outside)


# Checks that draw many releases. Exact losses are in tests/test_border.py for all options, so these
# two are left to the nightly runs.
SAMPLED = {"check_noise_falls_with_epsilon", "check_noise_has_the_same_spread_without_a_seed"}
# Options that tests/test_privacy_checks.py does not try.
OPTIONS = [{}, {"marginal_share": 0.5}, {"method": "tree"}, {"method": "tree", "delta": 1e-5}]


def check_each(options, sampled):
    checks = dict(privacy_checks(PrivateMeasure(bounds=(0, 1), **options)))
    for name, check in checks.items():
        if (name in SAMPLED) == sampled:
            check()


@pytest.mark.conformance
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_private_measure_passes_privacy_checks(options):
    check_each(options, sampled=False)


@pytest.mark.nightly
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_private_measure_passes_sampled_privacy_checks(options):
    check_each(options, sampled=True)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_private_measure_pays_for_missing_bounds(adjacency):
    X = 100 + blobs(5000, 2, 0)
    frame = pd.DataFrame({"a": X[:, 0], "n": np.arange(5000) % 50})
    private = PrivateMeasure(2.0, {"a": (50, 150)}, adjacency=adjacency, random_state=0)
    losses = [draw.loss for draw in recorded(lambda: private.fit(frame)).crossings]
    low, high = private.bounds_
    assert (low[0], high[0]) == (50, 150) and -30 < low[1] <= 1 and 48 <= high[1] < 80
    guarantee = private.privacy_guarantee_
    assert guarantee.epsilon == 2.0 and guarantee.public_parameters
    assert guarantee.released == "bounds, a probability measure"
    # Magnitudes, up to four looks and distances cost a fifth, by shares of .15, .1 each and .45.
    n_looks = losses.index(max(losses[:7])) - 1
    assert 1 <= n_looks <= 4
    for_bounds = sum(losses[: n_looks + 2])
    assert for_bounds == pytest.approx(0.2 * 2.0 * (0.15 + 0.1 * n_looks + 0.45), rel=1e-9)
    assert sum(losses) == pytest.approx(2.0, rel=1e-9)
    assert private.sample(100, random_state=0)["n"].between(low[1], high[1]).all()


@pytest.mark.parametrize("size", [math.inf, 1 << 9, 37, 300])
def test_box_measure_cells_are_those_of_comparisons(size, rng):
    axes, (line,) = tree_of([size], 9)
    edges = [np.nextafter(line, 0), line, np.nextafter(line, 1), rng.random(2000)]
    values = np.concatenate(edges)
    expected = np.minimum(np.searchsorted(line, values, side="right") - 1, len(line) - 2)
    assert np.array_equal(_box_measure.leaf_of(values[:, None], axes, [line]), expected)

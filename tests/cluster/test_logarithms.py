"""Columns over decades, which count by their logarithms."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPToMATo, DPTree, MorseMerging
from sklearn_dptda.published import DPCube
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.rows._sizes import Logarithms, Sizes
from tests.cluster._tables import seeded


def amounts(n, seed):
    """Three groups of amounts over six decades, and hours."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    logs = np.array([2.0, 7.0, 11.5])[y] + 0.7 * rng.standard_normal(n)
    hours = np.array([6.0, 12.0, 18.0])[y] + 1.5 * rng.standard_normal(n)
    return np.column_stack([np.exp(logs), hours]), y


LAWS = {
    "lognormal": (lambda rng, n: np.exp(2 * rng.standard_normal(n)), True),
    "negative amounts": (lambda rng, n: -np.exp(2 * rng.standard_normal(n)), True),
    "counts": (lambda rng, n: rng.negative_binomial(0.5, 0.01, n), True),
    "half zeros": (lambda rng, n: np.exp(3 * rng.standard_normal(n)) * (rng.random(n) < 0.5), True),
    "uniform": (lambda rng, n: rng.uniform(0, 1, n), False),
    "normal": (lambda rng, n: rng.standard_normal(n), False),
    "far from zero": (lambda rng, n: 1e6 + np.exp(2 * rng.standard_normal(n)), False),
    "both signs": (lambda rng, n: rng.standard_cauchy(n) * 10, False),
    "percentages": (lambda rng, n: 100 * rng.beta(2, 2, n), False),
    "constant": (lambda rng, n: np.full(n, 3.0), False),
    "zeros": (lambda rng, n: np.zeros(n), False),
    "nearly all zeros": (lambda rng, n: np.exp(3 * rng.random(n)) * (rng.random(n) < 0.05), False),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_columns_over_decades_count_by_their_logarithms(name, norm):
    law, expected = LAWS[name]
    X = np.column_stack([law(np.random.default_rng(seed), 5000) for seed in range(4)])
    sizes = Sizes.release(Rows.of_array(X.astype(float)), seeded(norm, 0), 0.2)
    assert np.array_equal(sizes.scales() > 0, np.full(4, expected))


def test_noise_alone_has_no_logarithms_and_no_size():
    X = np.full((20, 30), 1e5)
    sizes = Sizes.release(Rows.of_array(X), seeded("l2", 0), 1e-4)
    assert not sizes.scales().any()
    assert (sizes.largest() == 1).all()


def test_logarithms_and_their_inverse():
    scales = np.array([0.5, 0.0, 1024.0])
    logarithms = Logarithms(scales)
    X = np.array([[0.0, -3.0, 1e9], [-2.0, np.nan, -7.0], [1e-9, 1e300, np.nan]])
    logs = logarithms.of(X)
    np.testing.assert_allclose(logarithms.back(logs), X, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(logs[:, 1], X[:, 1])
    assert logs[1, 0] == -(2 + 0.25 + 0.25 * 0.75 / 3)
    sizes = np.geomspace(1e-3, 1e12, 100_001)
    ours = Logarithms(np.ones(1)).of(sizes[:, None])[:, 0]
    assert np.abs(ours - np.log2(1 + sizes)).max() < 0.01
    assert (np.diff(ours) > 0).all()
    # Each row rounds alone, wherever it is.
    for start in range(1, 8):
        part = Logarithms(np.ones(1)).of(sizes[start:1000:3, None])
        assert np.array_equal(part[:, 0], ours[start:1000:3])
    # Nothing overflows, and nothing becomes a missing value.
    assert np.isfinite(Logarithms(np.full(1, 2.0**-41)).of(np.array([[1.7e308]]))).all()
    # Slopes by differences.
    step = 1e-6
    slopes = (logarithms.of(X + step) - logs)[1, [0, 2]] / step
    some = Logarithms(scales[[0, 2]])
    assert some.log_slopes(logs[1:2, [0, 2]]) == pytest.approx(np.log(slopes).sum(), abs=1e-5)
    spreads = some.spreads_back(slopes, X[1, [0, 2]])
    assert spreads == pytest.approx([1.0, 1.0], abs=1e-5)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(
    "estimator",
    [
        DPLloyd(3, 2.0, random_state=0),
        DPTree(3, 2.0, random_state=0),
        DPMoGMorse(3, epsilon=2.0, random_state=0),
        DPToMATo(3, 2.0, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_groups_of_amounts_are_found(estimator, given):
    X, y = amounts(5000, 0)
    bounds = ([0.0, 0.0], [2e6, 24.0]) if given else None
    private = estimator.set_params(bounds=bounds).fit(X)
    assert np.array_equal(private.logarithms_ > 0, [True, False])
    assert adjusted_rand_score(y, private.predict(X)) > 0.95
    # Points are in the units of the table.
    assert getattr(private, "coreset_", X)[:, 0].max() > 1e4
    high = private.bounds_[1]
    assert high[0] > 1e5 and high[1] < 40
    name = "modes_" if hasattr(private, "modes_") else "cluster_centers_"
    tops = np.sort(getattr(private, name)[:, 0])
    assert tops[0] < 30 and 3e4 < tops[-1] <= high[0]


@pytest.mark.parametrize("estimator", [DPLloyd(3, 2.0), DPToMATo(3, 2.0), DPMoG(3, 2.0)])
def test_public_units_have_no_logarithms(estimator):
    X, _ = amounts(3000, 0)
    for units in ("bounds", [1e4, 1.0]):
        estimator.set_params(units=units, bounds=([0.0, 0.0], [2e6, 24.0]), random_state=0)
        assert not estimator.fit(X).logarithms_.any()


def test_rows_are_clipped_to_given_bounds_before_their_sizes_are_released():
    rng = np.random.default_rng(0)
    ages = np.column_stack([rng.uniform(20, 90, 5000), rng.normal(size=5000)])
    ages[rng.random(5000) < 0.15, 0] = 1e9
    assert (
        not DPLloyd(2, 4.0, bounds=([0, -5], [100, 5]), random_state=0).fit(ages).logarithms_.any()
    )


def test_whole_amounts_have_as_many_cells_as_others():
    X = np.rint(amounts(5000, 0)[0][:, :1])
    cells = [
        len(DPToMATo(3, 2.0, bounds=(0, 1e7), random_state=0).fit(each).edges_[0])
        for each in (X, X.astype(int))
    ]
    assert cells[0] == cells[1]


def test_published_estimators_take_no_logarithms():
    X, _ = amounts(3000, 0)
    assert not hasattr(DPCube(3, 2.0, random_state=0).fit(X), "logarithms_")


def test_bounds_of_both_signs_cost_nothing():
    # With and without the question, the same noise gives the same release.
    X = np.random.default_rng(0).normal(size=(2000, 2))

    class NeverAsks(DPLloyd):
        _adapts_to_columns = False

    options = {"n_clusters": 2, "bounds": (-5.0, 5.0), "random_state": 0}
    asks, never = DPLloyd(**options).fit(X), NeverAsks(**options).fit(X)
    assert np.array_equal(asks.cluster_centers_, never.cluster_centers_)


def test_densities_are_those_of_the_table():
    X, _ = amounts(5000, 1)
    private = DPMoG(4, epsilon=4.0, random_state=0).fit(X[:, :1])
    assert private.logarithms_.all()
    nodes = np.geomspace(1e-6, 1e12, 200_001) - 1e-6
    density = np.exp(private.score_samples(nodes[:, None]))
    below = np.exp(private.score_samples(-nodes[:, None]))
    assert np.trapezoid(density + below, nodes) == pytest.approx(1.0, abs=1e-3)
    rows = private.sample(2000, random_state=0)
    assert private.bounds_[0][0] <= rows.min() and rows.max() <= private.bounds_[1][0]
    assert np.log(np.median(rows)) == pytest.approx(np.log(np.median(X[:, 0])), abs=1.5)


def test_merged_k_means_of_amounts():
    X, y = amounts(5000, 2)
    base = DPLloyd(6, 4.0, covariance_share=0.5, random_state=0)
    merged = MorseMerging(base, n_clusters=3).fit(X)
    assert adjusted_rand_score(y, merged.predict(X)) > 0.95
    assert 1e4 < merged.modes_[:, 0].max() < 1e6


def test_pictures_show_logarithms():
    pytest.importorskip("matplotlib")
    from sklearn_dptda.plotting import MixtureDensityDisplay

    X, _ = amounts(5000, 3)
    private = DPMoGMorse(3, epsilon=4.0, random_state=0).fit(X)
    display = MixtureDensityDisplay.from_estimator(private, grid_resolution=40)
    scale = private.logarithms_[0]
    assert display.ax_.get_xlabel() == f"log2(1 + feature 0 / {scale:g})"
    assert set(np.unique(display.regions)) == {0, 1, 2}
    low, high = display.ax_.get_xlim()
    logs = np.log2(1 + private.modes_[:, 0] / scale)
    assert low < logs.min() and logs.max() < high < 30

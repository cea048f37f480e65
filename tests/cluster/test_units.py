"""Units of columns: what distances measure, by private numbers or as given."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import euclidean_distances

from sklearn_dptda import PrivacyAccountant
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPTree
from sklearn_dptda.cluster._standardise import standardise
from sklearn_dptda.privacy import NoiseWarning
from sklearn_dptda.rows._localisation import Intervals, private_box
from sklearn_dptda.rows._rows import Rows
from tests._refusals import refuses
from tests.cluster._tables import seeded

KINDS = [DPLloyd, DPTree, DPMoG, DPMoGMorse]


def groups(seed, n=4000, d=3, gap=3.5):
    """Normal clusters at the corners of a simplex, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    centres = gap * np.linalg.qr(np.random.default_rng(3).standard_normal((d, 3)))[0].T
    return centres[y] + rng.standard_normal((n, d)), y, rng


def with_flags(seed):
    X, y, rng = groups(seed)
    return np.c_[X, rng.random((len(X), 3)) < 0.4], y


def with_uniform_columns(seed):
    X, y, rng = groups(seed, d=6)
    return np.c_[X, rng.uniform(-15, 15, (len(X), 6))], y


def with_hours(seed):
    X, y, rng = groups(seed)
    return np.c_[X, rng.integers(0, 24, len(X)), rng.integers(0, 7, len(X))], y


def in_one_column(seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, 4000, p=[0.4, 0.4, 0.2])
    first = np.array([-4.0, 0.0, 5.0])[y] + 0.7 * rng.standard_normal(4000)
    return np.c_[first, 2 * rng.standard_normal((4000, 4))], y


def box_of(X, factor):
    if factor is None:
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    middle, half = (low + high) / 2, factor * (high - low) / 2
    return middle - half, middle + half


@pytest.mark.laws
@pytest.mark.parametrize("kind", [DPLloyd, DPMoG])
@pytest.mark.parametrize(
    ("law", "factor"),
    [
        *itertools.product([with_flags, with_uniform_columns, with_hours], [1.0, 1.3, None]),
        # Without bounds, noise makes the column of clusters one of several in some runs.
        (in_one_column, 1.0),
        (in_one_column, 1.3),
    ],
)
def test_columns_without_clusters_do_not_decide(kind, law, factor):
    # With intervals as units, flags, uniform columns and hours had scores of 0 to 0.6.
    scores, without = [], []
    for seed in range(7):
        X, y = law(seed)
        private = kind(3, epsilon=2.0, bounds=box_of(X, factor), random_state=seed).fit(X)
        scores.append(adjusted_rand_score(y, private.predict(X)))
        standard = (X - X.mean(axis=0)) / X.std(axis=0)
        peer = KMeans(3, n_init=3, random_state=0).fit(standard if law is not in_one_column else X)
        without.append(adjusted_rand_score(y, peer.labels_))
    assert np.median(scores) >= 0.9 * max(np.median(without), 0.8)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_measured_by_units_of_the_caller(kind):
    X, y, _ = groups(0, 2000)
    X = X * [1.0, 20.0, 0.1]
    lengths = [2.0, 40.0, 0.2]
    by_lengths = kind(3, epsilon=4.0, units=lengths, bounds=(-99, 99), random_state=0).fit(X)
    assert np.ptp(by_lengths.units_ / lengths) < 1e-9 * by_lengths.units_[0]
    ends = np.array([-9.0, -180.0, -0.9]), np.array([9.0, 180.0, 0.9])
    by_bounds = kind(3, epsilon=4.0, units="bounds", bounds=ends, random_state=0).fit(X)
    assert np.ptp(by_bounds.units_ / ends[1]) < 1e-9 * by_bounds.units_[0]
    for model in (by_lengths, by_bounds):
        assert adjusted_rand_score(y, model.predict(X)) > 0.9


def test_rows_are_assigned_in_the_units_of_the_steps():
    X, _ = with_flags(0)
    private = DPLloyd(3, 2.0, random_state=0).fit(X)
    distances = euclidean_distances(X / private.units_, private.cluster_centers_ / private.units_)
    assert private.transform(X) == pytest.approx(distances, abs=1e-6)
    assert np.array_equal(private.predict(X), distances.argmin(axis=1))


@pytest.mark.parametrize(
    ("units", "bounds", "message"),
    [
        ([1.0, 2.0], (-9, 9), "one positive number for each of the 3 columns"),
        ([1.0, 2.0, 0.0], (-9, 9), "one positive number"),
        ([1.0, 2.0, math.nan], (-9, 9), "one positive number"),
        ("rows", (-9, 9), "The 'units' parameter"),
        ([1e-200, 1.0, 1.0], (-9, 9), "units must differ by factors of at most 1e"),
        ("bounds", None, "needs bounds of all columns"),
        ("bounds", {"a": (-9, 9)}, "needs bounds of all columns"),
    ],
)
def test_units_that_cannot_be_used_are_refused_unpaid(units, bounds, message):
    X = pd.DataFrame(groups(0, 100)[0], columns=["a", "b", "c"])
    budget = PrivacyAccountant(9.0, 1e-4)
    for kind in KINDS:
        refuses(message, kind(3, units=units, bounds=bounds, accountant=budget).fit, X)
    with pytest.raises(ValueError, match="covariance_type='spherical'"):
        DPMoG(3, units=[1, 1, 1], covariance_type="spherical", accountant=budget).fit(X)
    assert not budget.spends()


def test_fit_warns_if_one_column_decides(recwarn):
    X = pd.DataFrame(groups(0, 2000)[0] * [1.0, 1.0, 9.0], columns=["a", "b", "far"])
    with pytest.warns(NoiseWarning, match="Column 'far' has 9.% of the variance"):
        DPLloyd(3, 2.0, units=[1, 1, 1], bounds=(-99, 99), random_state=0).fit(X)
    recwarn.clear()
    DPLloyd(3, 2.0, bounds=(-99, 99), random_state=0).fit(X)
    assert not recwarn.list


def test_intervals_contain_their_bounds_in_any_units(rng):
    low, high = -rng.uniform(1, 9, 5), rng.uniform(1, 9, 5)
    units = rng.uniform(0.1, 9, 5)
    found = Intervals.given(low, high).in_units(units)
    assert (found.left <= low).all() and (found.right >= high).all()
    assert np.ptp((found.right - found.left) / units) < 1e-12 * (high - low).max() / units.min()
    assert np.isclose(found.right - found.left, high - low).any()


def test_released_spreads_are_standard_deviations():
    rng = np.random.default_rng(0)
    X = np.c_[
        rng.standard_normal(20_000),
        rng.uniform(-1, 1, 20_000),
        rng.random(20_000) < 0.5,
        5 + 100 * rng.random(20_000) ** 3,
    ]
    for norm, total, error in (("l2", math.inf, 0.06), ("l2", 1.0, 0.12), ("l1", 2.0, 0.2)):
        found, _ = private_box(Rows.of_array(X), seeded(norm, 0, total=total), 0.2)
        assert found.spreads == pytest.approx(X.std(axis=0), rel=error)
    # A normal column has 1 / 3.55 of its half width, and one of two values far more.
    widths = found.spreads / ((found.high - found.low) / 2)
    assert widths[0] < 0.35 and widths[2] > 0.6


def test_standardised_rows_have_unit_variance_and_known_units():
    X, _ = with_flags(1)
    cube = X / [9.0, 9.0, 9.0, 1.0, 1.0, 1.0]
    data = standardise(Rows.of_array(cube), seeded("l2", 0, total=math.inf), cube.std(axis=0))
    found = (cube - data.centre) / data.scales
    assert found.var(axis=0).mean() == pytest.approx(1, rel=0.05)
    # Flags depend on nothing, so that they are as wide as normal columns. In the cube, their
    # variances are 1.9 times the mean.
    assert cube[:, 3:].var(axis=0).min() > 1.5 * cube.var(axis=0).mean()
    assert found[:, 3:].var(axis=0).max() < 1.3
    means = np.eye(6)
    covariances = data.covariances_back(np.array([np.eye(6)]))[0]
    assert data.back(means) - data.centre == pytest.approx(np.diag(data.scales))
    assert covariances == pytest.approx(np.diag(data.scales**2))


def test_steps_end_at_the_means_of_the_rows_that_predict_assigns():
    # Without noise, steps end at centres that are the means of the rows that predict assigns. Where
    # one column has tight clusters, its unit decides about rows between the centres.
    rng = np.random.default_rng(1)
    tight = 10.0 * (np.arange(4000) % 3) + rng.normal(0, 0.3, 4000)
    X = np.c_[tight, rng.uniform(-15, 15, (4000, 2))]
    options = {"epsilon": math.inf, "delta": 0, "covariance_share": 0, "random_state": 0}
    model = DPLloyd(3, bounds=(-20, 20), n_iter=60, **options).fit(X)
    labels = model.predict(X)
    means = np.array([X[labels == k].mean(axis=0) for k in range(3)])
    assert np.abs((means - model.cluster_centers_) / model.units_).max() < 0.04

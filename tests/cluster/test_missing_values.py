"""Clusters and classes of rows with missing values: exact laws, containers, refusals."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import nan_euclidean_distances

from sklearn_dptda.__main__ import main
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse
from sklearn_dptda.cluster._mixture_density import MixtureDensity
from sklearn_dptda.cluster._standardise import with_nearest_values
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.rows._moments import Moments
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses_unpaid

CENTRES = np.array([[0.0, 0, 0], [6, 0, 3], [0, 6, -3]])


def blobs(n=3000, share=0.1, seed=0):
    """Rows of three clusters, the same with missing values, and their clusters."""
    X, y = make_blobs(n, centers=CENTRES, random_state=seed)
    gaps = np.random.default_rng(seed).random(X.shape) < share
    return X, np.where(gaps, np.nan, X), y


def fitted(kind, X, y=None, epsilon=5.0, **options):
    first = {"classes": [0, 1, 2]} if kind is DPLinearDiscriminantAnalysis else {}
    options = {"bounds": (-12, 12), "missing": True, "random_state": 0} | options
    return kind(**first, epsilon=epsilon, **options).fit(X, y)


KINDS = {
    "kmeans": lambda X, y, **o: fitted(DPLloyd, X, n_clusters=3, **o),
    "mixture": lambda X, y, **o: fitted(DPMoG, X, n_components=3, **o),
    "morse": lambda X, y, **o: fitted(DPMoGMorse, X, n_clusters=3, **o),
    "classes": lambda X, y, **o: fitted(DPLinearDiscriminantAnalysis, X, y, **o),
}
each_kind = pytest.mark.parametrize("name", KINDS)


@each_kind
@pytest.mark.parametrize("bounds", [(-12, 12), None], ids=["bounds", "none"])
def test_fits_of_rows_with_missing_values_are_as_good_as_complete_ones(name, bounds):
    X, gaps, y = blobs()
    private = KINDS[name](gaps, y, bounds=bounds)
    assert adjusted_rand_score(y, private.predict(X)) > 0.97
    said = private.privacy_guarantee_.released
    assert "outside the bounds, the share of missing values of each column, " in said
    # Only the option costs budget.
    plain = KINDS[name](X, y, missing=False)
    assert "missing" not in plain.privacy_guarantee_.released
    assert plain.missing_share_.tolist() == [0, 0, 0]
    # A row that lacks the values in which clusters differ cannot be assigned.
    assert adjusted_rand_score(y, private.predict(gaps)) > 0.85
    assert private.missing_share_ == pytest.approx(np.isnan(gaps).mean(axis=0), abs=0.02)
    again = pickle.loads(pickle.dumps(private)).predict(gaps[:5])
    np.testing.assert_array_equal(again, private.predict(gaps[:5]))


@each_kind
@pytest.mark.parametrize("missing", [True, ["a"]])
def test_integers_are_treated_as_floats_where_values_may_be_missing(name, missing):
    # One row with a missing value makes floats of the integers in its column.
    _, gaps, y = blobs(500)
    whole = pd.DataFrame(np.nan_to_num(gaps), columns=["a", "b", "c"]).astype(int)
    first, second = (
        KINDS[name](X, y, missing=missing) for X in (whole, whole.astype({"a": float}))
    )
    assert first.missing_share_.tolist() == second.missing_share_.tolist()
    np.testing.assert_array_equal(first.predict(whole), second.predict(whole))
    # The same numbers enter the same draws.
    transcript = recorded(lambda: KINDS[name](whole, y, missing=missing))
    moves = transcript.replay(lambda: KINDS[name](whole.astype({"a": float}), y, missing=missing))
    assert max(moves) == 0


@pytest.mark.parametrize(("delta", "left"), [(1e-6, math.sqrt(0.99)), (0.0, 0.97)])
def test_count_of_missing_values_is_taken_off_the_budget(delta, left):
    # A hundredth of the zCDP, or three hundredths of epsilon, as the constants say.
    X, _, _ = blobs(300)
    plain, counted = (
        recorded(
            lambda missing=missing: fitted(DPLloyd, X, n_clusters=3, delta=delta, missing=missing)
        ).crossings
        for missing in (False, True)
    )
    rates = [[draw.rate * draw.sensitivity for draw in draws] for draws in (plain, counted)]
    (first,) = [i for i, pair in enumerate(zip(*rates, strict=False)) if pair[0] != pair[1]][:1]
    assert np.size(counted[first].statistic[0]) == 3
    # The next draw is the one that has taken this place without the count.
    assert rates[1][first + 1] == pytest.approx(left * rates[0][first], rel=1e-6)


def test_missing_share_is_exact_without_noise():
    _, gaps, y = blobs(400)
    for make in KINDS.values():
        private = make(gaps, y, epsilon=math.inf, adjacency="replace-one")
        assert private.missing_share_ == pytest.approx(np.isnan(gaps).mean(axis=0), abs=1e-12)


def test_nearest_values_equal_those_of_exhaustive_search(rng):
    part, centres = rng.normal(size=(500, 4)), rng.normal(size=(7, 4))
    part[rng.random(part.shape) < 0.4] = np.nan
    part = np.clip(part, -2, 2)
    filled = with_nearest_values(part, centres, 4.0)
    some = ~np.isnan(part).all(axis=1)
    nearest = nan_euclidean_distances(part[some], centres).argmin(axis=1)
    gaps = np.isnan(part[some])
    np.testing.assert_array_equal(filled[some], np.where(gaps, centres[nearest], part[some]))
    assert np.isfinite(filled).all()
    # Other rows do not change a row, not even in its last bit.
    alone = np.vstack([with_nearest_values(row[None], centres, 4.0) for row in part])
    np.testing.assert_array_equal(alone, filled)


def test_moments_of_known_values_equal_those_of_complete_rows(rng):
    # With independent gaps, 400,000 rows: five standard errors of a mean of products.
    n, known = 400_000, np.array([0.9, 0.6, 0.75])
    X = rng.uniform(-1, 1, (n, 3)) @ np.array([[0.5, 0.2, 0], [0, 0.4, 0.1], [0.1, 0, 0.4]]) + 0.1
    seen = np.where(rng.random(X.shape) < known, X, 0.0)
    found = Moments(np.array([n]), seen.sum(axis=0)[None], (seen.T @ seen)[None], 0.0, 0.0)
    complete = found.of_known(known)
    assert complete.sums[0] / n == pytest.approx(X.mean(axis=0), abs=5 / math.sqrt(n))
    assert complete.second_moments[0] / n == pytest.approx(X.T @ X / n, abs=5 / math.sqrt(n))
    assert found.of_known(None) is found


def test_mixture_of_one_component_finds_the_moments_of_complete_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 3)) @ np.array([[2.0, 1, 0], [0, 1, 0.5], [0, 0, 1]]) + [5, -3, 0]
    gaps = np.where(rng.random(X.shape) < [0.3, 0.0, 0.5], np.nan, X)
    options = {"n_components": 1, "epsilon": 1e6, "bounds": (-20, 20)}
    private, complete = fitted(DPMoG, gaps, **options), fitted(DPMoG, X, **options)
    assert private.means_[0] == pytest.approx(X.mean(axis=0), abs=0.1)
    # Residuals are clipped, those with missing values less.
    assert private.covariances_[0] == pytest.approx(complete.covariances_[0], rel=0.3, abs=0.2)


def test_mixture_assigns_rows_by_the_density_of_their_known_values():
    _, gaps, _ = blobs(2000)
    private = fitted(DPMoG, gaps, n_components=3)
    rows = np.array([[1.0, np.nan, 2.0], [np.nan] * 3, [1.0, 2.0, 3.0], [np.nan, np.nan, 0.5]])
    expected, whole = (
        np.empty((4, 3)),
        MixtureDensity(private.weights_, private.means_, private.covariances_),
    )
    for i, row in enumerate(rows):
        known = np.flatnonzero(~np.isnan(row))
        for k in range(3):
            expected[i, k] = private.weights_[k]
            if len(known):
                covariance = private.covariances_[k][np.ix_(known, known)]
                law = multivariate_normal(private.means_[k][known], covariance)
                expected[i, k] *= law.pdf(row[known])
    total = expected.sum(axis=1, keepdims=True)
    assert private.predict_proba(rows) == pytest.approx(expected / total, rel=1e-9, abs=1e-12)
    assert private.score_samples(rows) == pytest.approx(np.log(total[:, 0]), rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(np.exp(whole.log_joint_of_known(rows)), expected, rtol=1e-9)
    assert math.isfinite(private.score(gaps))


def test_classes_of_rows_follow_from_conditional_means():
    _, gaps, y = blobs(3000)
    private = KINDS["classes"](gaps, y)
    row = np.array([[1.0, np.nan, 2.0]])
    mean = private.priors_ @ private.means_
    away = private.means_ - mean
    total = private.covariance_ + (away.T * private.priors_) @ away
    known = [0, 2]
    slope = np.linalg.solve(total[np.ix_(known, known)], total[known, 1])
    filled = np.array([[1.0, mean[1] + (row[0, known] - mean[known]) @ slope, 2.0]])
    assert private.decision_function(row) == pytest.approx(private.decision_function(filled))
    nothing = private.decision_function(np.full((1, 3), np.nan))
    assert nothing == pytest.approx(private.decision_function(mean[None]))


def test_kmeans_takes_rows_without_any_value():
    _, gaps, y = blobs(500)
    private = KINDS["kmeans"](np.vstack([gaps, np.full((3, 3), np.nan)]), y)
    nothing = np.full((1, 3), np.nan)
    assert private.transform(nothing).tolist() == [[0, 0, 0]]
    expected = nan_euclidean_distances(
        gaps[:9] / private.units_, private.cluster_centers_ / private.units_
    )
    assert private.transform(gaps[:9]) == pytest.approx(expected)


@each_kind
def test_frames_and_chunks_with_missing_values_equal_arrays(name):
    _, gaps, y = blobs(700)
    frame = pd.DataFrame(gaps, columns=["a", "b", "c"])
    given = [
        frame,
        frame.astype("Float64"),
        frame.astype(object).where(frame.notna(), None),
        pl.DataFrame(frame).with_columns(pl.all().fill_nan(None)),
        gaps.tolist(),
    ]
    first = KINDS[name](gaps, y)
    for X in given:
        other = KINDS[name](X, y)
        assert other.missing_share_.tolist() == first.missing_share_.tolist()
        np.testing.assert_array_equal(other.predict(X), first.predict(gaps))
    chunks = [gaps[:200], gaps[200:]]
    if name == "classes":
        chunks = [(gaps[:200], y[:200]), (gaps[200:], y[200:])]
    empty = KINDS[name](gaps, y, missing=[0, 1, 2])
    empty.fit_chunks(chunks)
    np.testing.assert_array_equal(empty.predict(gaps), first.predict(gaps))
    assert empty.missing_share_.tolist() == first.missing_share_.tolist()


def test_chunks_may_differ_in_whether_values_are_missing():
    # Without a missing value, pandas reads a column of integers as such.
    whole = pd.DataFrame({"a": np.arange(90) % 7, "b": np.arange(90.0)})
    some = whole.assign(a=whole["a"].astype(float).where(whole["a"] != 3))
    for kind in (PrivateMeasure, DPLloyd):
        private = kind(bounds=(0, 90), missing=["a"], random_state=0)
        for chunks in ([whole, some], [some, whole]):
            private.fit_chunks(chunks)
            assert 0 < private.missing_share_[0] < 0.4
        assert private.fit_chunks([whole, whole]).missing_share_[0] < 0.4


@each_kind
def test_people_with_missing_values_weigh_the_same(name):
    _, gaps, _ = blobs(900)
    ids = np.arange(900) // 3
    y = ids % 3
    private = KINDS[name](pd.DataFrame(gaps).assign(who=ids), y, groups="who", epsilon=20.0)
    assert private.missing_share_ == pytest.approx(np.isnan(gaps).mean(axis=0), abs=0.1)


def test_mixture_samples_missing_values_in_the_types_of_columns():
    _, gaps, _ = blobs(3000, share=0.25)
    frame = pd.DataFrame(gaps, columns=["a", "b", "c"])
    frame["b"] = frame["b"].round().astype("Int64")
    private = fitted(DPMoG, frame, n_components=3, epsilon=5.0)
    drawn = private.sample(4000, random_state=0)
    assert drawn.dtypes.tolist() == frame.dtypes.tolist()
    assert drawn.isna().mean().to_numpy() == pytest.approx(private.missing_share_, abs=0.03)
    complete = fitted(DPMoG, frame.dropna(), n_components=3, missing=False).sample(50)
    assert not complete.isna().any().any()


@each_kind
@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"missing": False}, "contains NaN or infinity"),
        ({}, {"missing": ["a"]}, "contains NaN or infinity"),
        ({"a": np.inf}, {}, "contains infinity. Replace it by NaN"),
        ({}, {"missing": ["z", "y"]}, "missing names 2 columns that X does not have"),
        ({}, {"missing": 3}, "'missing' parameter"),
    ],
)
def test_missing_values_are_refused_unpaid(name, change, options, message):
    _, gaps, y = blobs(60)
    frame = pd.DataFrame(gaps, columns=["a", "b", "c"]).assign(**change)
    refuses_unpaid(message, KINDS[name], frame, y, **options)


def test_columns_of_missing_values_alone_are_taken():
    _, gaps, y = blobs(600)
    gaps[:, 1] = np.nan
    for name, make in KINDS.items():
        private = make(gaps, y, bounds=None)
        assert private.missing_share_[1] > 0.9
        assert len(private.predict(gaps)) == 600, name


def test_cluster_command_keeps_missing_cells(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _, gaps, _ = blobs(900, share=0.2)
    pd.DataFrame(gaps, columns=["a", "b", "c"]).to_csv("t.csv", index=False, na_rep="NA")
    words = ["cluster", "t.csv", "--header", "--bounds", "-12", "12", "--epsilon", "500"]
    words += ["-o", "out"]
    assert main(words) == 2
    assert main([*words, "--missing", "--kind", "mixture"]) == 0
    assert "largest share of missing cells: 0.2" in capsys.readouterr().out
    assert '"missing_share"' in (tmp_path / "out" / "clusters.json").read_text()
    assert main([*words, "--missing", "--kind", "tree", "--force"]) == 2
    assert "--missing is not an option of --kind tree" in capsys.readouterr().err

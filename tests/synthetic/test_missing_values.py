"""Tables with missing values: their shares, types and dependence, and refusals."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_dptda.__main__ import main
from sklearn_dptda.privacy import NoiseWarning
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.synthetic._coded_table import CodedTable
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._privacy_checks._border_checks import replayed
from tests._refusals import refuses_unpaid

JOBS = ["cook", "nurse", "smith"]
BOUNDS = {"age": (0, 120), "income": (0, 200), "kids": (0, 10), "whole": (0, 10)}
SHARES = {"age": 0.1, "income": 0.5, "smokes": 0.2, "job": 0.3, "kids": 0.2, "whole": 0.0}


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    smokes = rng.random(n) < 0.3
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "income": 20 + 30.0 * smokes + rng.normal(0, 3, n),
            "smokes": pd.array(smokes, dtype="boolean"),
            "job": pd.Series(rng.choice(JOBS, n), dtype=object),
            "kids": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "whole": rng.integers(0, 9, n),
        }
    )
    for name, share in SHARES.items():
        if share:
            X.loc[rng.random(n) < share, name] = None if name == "job" else pd.NA
    X["age"], X["income"] = X["age"].astype(float), X["income"].astype(float)
    return X


def measure(epsilon=1.0, **options):
    options = {"bounds": BOUNDS, "categories": {"job": JOBS}, "missing": True} | options
    return PrivateMeasure(epsilon, random_state=0, **options)


@pytest.mark.parametrize("bounds", [BOUNDS, None], ids=["bounds", "none"])
def test_private_measure_releases_shares_of_missing_values(bounds):
    X = table(5000)
    exact = measure(math.inf, adjacency="replace-one", bounds=bounds).fit(X)
    shares = X.isna().mean().to_numpy()
    assert exact.missing_share_ == pytest.approx(shares, abs=1e-9)
    drawn = exact.sample(20_000, random_state=0)
    assert drawn.isna().mean().to_numpy() == pytest.approx(shares, abs=0.02)
    noisy = measure(2.0, bounds=bounds).fit(X)
    assert noisy.missing_share_ == pytest.approx(shares, abs=0.08)


def test_private_measure_with_missing_values_keeps_types_and_dependence():
    X, gaps = table(5000), [name for name, share in SHARES.items() if share]
    private = measure(5.0, missing=gaps).fit(X)
    drawn = pickle.loads(pickle.dumps(private)).sample(5000, random_state=0)
    assert drawn.dtypes.tolist() == X.dtypes.tolist()
    assert set(drawn["job"].dropna()) == set(JOBS) and drawn["kids"].dropna().max() <= 10
    by_smoking = drawn.groupby("smokes")["income"].mean()
    assert by_smoking[True] - by_smoking[False] == pytest.approx(30, abs=6)
    frame = pl.from_pandas(X)
    drawn = measure(5.0, missing=gaps).fit(frame).sample(200, random_state=0)
    assert drawn.schema == frame.schema and drawn["job"].null_count() > 20


@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"groups": "who"}], ids=str)
def test_private_measure_with_missing_values_loses_at_most_its_promise(options):
    # One row is added whose values are all missing, or none.
    X = table(60)
    for more in (
        table(1, 9),
        table(1).assign(**dict.fromkeys(["age", "income"], np.nan), job=None),
    ):
        neighbour = pd.concat([X, more], ignore_index=True)
        pair = [X, neighbour]
        if "groups" in options:
            pair = [T.assign(who=np.arange(len(T)) // 2 * 2) for T in pair]
        transcript, guarantee = replayed(measure(1.5, bounds=None, **options), *pair)
        assert max(transcript.moves) <= 1 + 1e-9
        epsilon, rho = transcript.losses()
        assert (rho if "delta" in options else epsilon) > 0
        assert rho <= guarantee.rho * (1 + 1e-9) if "delta" in options else epsilon <= 1.5 + 1e-9


def test_private_measure_takes_complete_and_empty_columns():
    X = table(300)
    complete = PrivateMeasure(1.0, (0, 120), missing=["age"], random_state=0).fit(
        X[["age", "whole"]].fillna(30.0)
    )
    assert complete.missing_share_[0] < 0.1
    empty = measure(math.inf, adjacency="replace-one", bounds=None)
    X["age"] = np.nan
    assert empty.fit(X).missing_share_[0] == 1
    assert empty.sample(50, random_state=0)["age"].isna().all()


def test_private_measure_with_missing_values_takes_arrays_and_chunks():
    X = np.random.default_rng(0).random((400, 3))
    X[::4, 1] = np.nan
    whole = PrivateMeasure(5.0, (0, 1), missing=[1], random_state=0).fit(X)
    parts = PrivateMeasure(5.0, (0, 1), missing=[1], random_state=0).fit_chunks([X[:99], X[99:]])
    drawn = whole.sample(random_state=0)
    np.testing.assert_array_equal(drawn, parts.sample(random_state=0))
    assert np.isnan(drawn).mean(axis=0) == pytest.approx([0, 0.25, 0], abs=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": ["nothing"]}, "missing names 1 column that X does not have"),
        ({"missing": ["age"]}, "contains NaN or infinity|missing, or not in its list"),
        ({"missing": False}, "To keep missing values, pass missing=True"),
        ({"method": "boxes"}, "missing must be False with method='boxes'"),
    ],
)
def test_private_measure_refuses_missing_values_unpaid(options, message):
    refuses_unpaid(message, measure(**options).fit, table(50))


@pytest.mark.parametrize(
    ("values", "low", "high"), [([0.0, 0.5, 1.0], 0.0, 1.0), ([0, 1, 2, 3], 0, 3)], ids=str
)
def test_axes_keep_values_and_missing_ones_apart(values, low, high):
    X = np.array([*values, np.nan], dtype=float)[:, None]
    kind = np.array([values]).T
    # NumPy's integers cannot be missing, so they would count as floats.
    kind = pd.DataFrame(kind).convert_dtypes() if len(values) == 4 else kind
    table = CodedTable(Columns.of(kind, 1).may_miss(True))
    axes = table.axes(np.array([low]), np.array([high]))
    cube = axes(X)
    assert ((cube >= 0) & (cube <= 1)).all() and (np.diff(cube[:, 0]) > 0).all()
    rows, missing = axes.rows(cube)
    assert missing[:, 0].tolist() == [False] * len(values) + [True]
    assert rows[:-1, 0] == pytest.approx(values, abs=1e-12)
    assert axes.sizes[0] == (math.inf if len(values) == 3 else 5)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_bounds_of_sparse_columns_contain_the_known_values(delta):
    # Noise that hides the bounds has a probability below 1e-6 with so many known values.
    rng = np.random.default_rng(0)
    X = rng.normal(5000, 1000, (50_000, 2))
    X[rng.random(X.shape) < 0.95] = np.nan
    known = ~np.isnan(X)
    for seed in range(5):
        with warnings.catch_warnings(action="error"):
            measure = PrivateMeasure(2.0, delta=delta, missing=True, random_state=seed).fit(X)
        low, high = measure.bounds_
        assert ((low <= X) & (high >= X))[known].mean() > 0.99
        assert (high - low < 20_000).all()
        assert np.nanmean(measure.sample(4000, random_state=0)) == pytest.approx(5000, abs=500)


@pytest.mark.parametrize("missing", [False, True])
def test_bounds_that_noise_hides_are_announced(missing):
    X = np.random.default_rng(0).normal(5000, 1000, (300 if not missing else 3000, 2))
    if missing:
        X[300:] = np.nan
    with pytest.warns(NoiseWarning, match="Too few values of 0, 1 are known"):
        PrivateMeasure(0.5, missing=missing, random_state=0).fit(X)


def test_bounds_without_noise_are_those_of_the_known_values(rng):
    X = rng.normal(size=(400, 1))
    X[:150] = np.nan
    low, high = PrivateMeasure(math.inf, missing=True).fit(X).bounds_
    assert low[0] == X[150:].min() and high[0] == X[150:].max()


def test_synthesize_command_keeps_missing_cells(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"{'' if i % 5 == 0 else rng.integers(18, 90)};{'NA' if i % 4 == 0 else 'cook'};{i % 7},5"
        for i in range(400)
    ]
    (tmp_path / "t.csv").write_text("age;job;x\n" + "\n".join(rows))
    words = ["synthesize", "t.csv", "--header", "--categories", "job=cook,nurse"]
    words += ["--integers", "age", "--bounds", "0", "100", "--epsilon", "5", "--seed", "0"]
    words += ["-o", "out"]
    assert main(words) == 2 and "gaps" in capsys.readouterr().err
    assert main([*words, "--missing"]) == 0
    drawn = pd.read_csv("out/synthetic.csv")
    assert drawn["age"].isna().mean() == pytest.approx(0.2, abs=0.08)
    assert drawn["job"].isna().mean() == pytest.approx(0.25, abs=0.08)
    assert not drawn["x"].isna().any() or drawn["x"].isna().mean() < 0.05


@pytest.mark.parametrize("n_values", [10, 100, 10**6])
def test_private_measure_tells_missing_values_from_large_ones(n_values):
    # All values are in the lowest quarter, and half of them are missing; the share is .5.
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"v": pd.array(rng.integers(0, n_values // 4 + 1, 2000), dtype="Int64")})
    X.loc[rng.random(2000) < 0.5, "v"] = pd.NA
    X["x"], X["y"] = rng.random(2000), rng.random(2000)
    bounds = {"v": (0, n_values - 1), "x": (0, 1), "y": (0, 1)}
    private = PrivateMeasure(1.0, bounds, missing=True, random_state=0).fit(X)
    assert private.missing_share_[0] == pytest.approx(0.5, abs=0.06)
    drawn = private.sample(2000, random_state=0)["v"]
    assert drawn.mean() < 0.3 * n_values and drawn.isna().mean() == pytest.approx(0.5, abs=0.08)


def test_private_measure_takes_missing_values_of_all_types():
    rng = np.random.default_rng(0)
    narrow = np.where(rng.random((200, 4)) < 0.2, np.nan, rng.random((200, 4))).astype("float32")
    private = PrivateMeasure(9.0, (0, 1), missing=np.True_, random_state=0).fit(narrow)
    assert np.isnan(private.sample(400, random_state=0)).mean() == pytest.approx(0.2, abs=0.08)
    frame = pl.DataFrame({"a": [0.1, None, 0.3] * 50, "b": rng.random(150), "c": rng.random(150)})
    drawn = PrivateMeasure(9.0, (0, 1), missing=True, random_state=0).fit(frame).sample()
    assert drawn["a"].null_count() > 20 and not drawn["a"].is_nan().any()
    words = np.array([["x", "1"], ["y", "2"]] * 90)
    listed = {0: ["x", "y"], 1: ["1", "2"]}
    private = PrivateMeasure(categories=listed, missing=[0], random_state=0).fit(words)
    assert {type(value) for value in private.sample(500, 0)[:, 0]} <= {str, type(None)}


@pytest.mark.parametrize("missing", [True, ["a"]])
def test_private_measure_releases_the_same_whether_pandas_has_integers_or_floats(missing):
    # One row with a missing value makes floats of the integers in its column.
    whole = pd.DataFrame({"a": np.arange(300) % 7, "b": np.arange(300) % 2 == 0})
    whole = whole.assign(b=whole["b"].astype("boolean"))
    floats = whole.assign(a=whole["a"].astype(float))
    drawn = [
        PrivateMeasure(1.0, (0, 9), missing=missing, random_state=0).fit(X).sample(200, 0)
        for X in (whole, floats)
    ]
    pd.testing.assert_frame_equal(*drawn)
    assert drawn[0]["a"].dtype == float


@pytest.mark.parametrize("missing", [True, ["b"]])
def test_private_measure_releases_the_same_whether_pandas_has_booleans_or_objects(missing):
    # One missing truth value makes objects of all in its column.
    truth = pd.DataFrame({"a": np.arange(300.0) / 300, "b": np.arange(300) % 2 == 0})
    objects = truth.assign(b=truth["b"].astype(object))
    drawn = [
        PrivateMeasure(1.0, {"a": (0, 1)}, missing=missing, random_state=0).fit(X).sample(200, 0)
        for X in (truth, objects)
    ]
    pd.testing.assert_frame_equal(*drawn)
    objects.loc[3, "b"] = None
    private = PrivateMeasure(9.0, {"a": (0, 1)}, missing=missing, random_state=0).fit(objects)
    assert set(private.sample(300, 0)["b"].dropna()) == {True, False}
    # In an array, a number is accepted as well, so that one record must not decide about the kind.
    drawn = [
        PrivateMeasure(9.0, (0, 1), missing=True, random_state=0).fit(each).sample(9, 0)
        for each in (
            objects.to_numpy(),
            objects.assign(b=objects["b"].mask(objects.index == 0, 1.0)).to_numpy(),
        )
    ]
    assert drawn[0].dtype == drawn[1].dtype == float
    objects.loc[3, "b"] = "malady"
    with pytest.raises(ValueError, match="column 'b' is not numeric") as refused:
        PrivateMeasure(9.0, {"a": (0, 1)}, missing=missing).fit(objects)
    assert "malady" not in str(refused.value)

"""Private discriminants: exact without noise, costs, accuracy, and refusals."""

import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis, _noisy_discriminants
from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLeakWarning,
    audit_epsilon,
)
from sklearn_dptda.privacy._calibration import _log_delta_with_choice
from sklearn_dptda.rows._moments import GaussianBudget, LaplaceBudget
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses, refuses_unpaid
from tests.cluster._tables import ODD_TABLES

BOX = (-1.0, 1.0)


def table(n=300, k=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    centres = np.random.default_rng(9).uniform(-0.6, 0.6, (k, d))
    return np.clip(centres[y] + 0.12 * rng.normal(size=(n, d)), -1, 1), y


def private(k=3, epsilon=1.0, delta=1e-6, bounds=BOX, **options):
    return DPLinearDiscriminantAnalysis(range(k), epsilon, delta, bounds, **options)


# Without noise.


def test_rescaled_rows_stay_in_the_cube_with_their_labels():
    rows = np.array([[-9.0, 0.25, 3.0], [0.5, 1.0, 7.0]])
    found = _noisy_discriminants._rescaled(rows, middle=0.25, half=0.5, d=2)
    np.testing.assert_array_equal(found, [[-1.0, 0.0, 3.0], [0.5, 1.0, 7.0]])


@pytest.mark.parametrize(
    ("delta", "bounds", "k"),
    [(1e-6, BOX, 3), (0.0, ([-1, -9], [5, 3]), 2), (1e-6, None, 2), (0.0, None, 3)],
)
def test_dp_lda_without_noise_is_linear_discriminant_analysis(delta, bounds, k):
    X, y = table(2000, k)
    found = private(k, math.inf, delta, bounds).fit(X, y)
    exact = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    assert (found.predict(X) == exact.predict(X)).mean() >= 0.998
    assert found.predict_proba(X) == pytest.approx(exact.predict_proba(X), abs=0.02)
    assert found.means_ == pytest.approx(exact.means_, abs=1e-3)
    assert found.priors_ == pytest.approx(exact.priors_, abs=1e-6)
    assert found.covariance_ == pytest.approx(exact.covariance_, rel=0.02, abs=1e-4)
    assert found.coef_.shape == exact.coef_.shape
    assert found.intercept_.shape == exact.intercept_.shape


def test_dp_lda_scores_and_probabilities_agree():
    X, y = table()
    found = private(epsilon=9.0, random_state=0).fit(X, y)
    scores, law = found.decision_function(X), found.predict_proba(X)
    assert law.sum(axis=1) == pytest.approx(1)
    assert np.log(law) == pytest.approx(found.predict_log_proba(X))
    assert (law.argmax(axis=1) == scores.argmax(axis=1)).all()
    assert (found.classes_[law.argmax(axis=1)] == found.predict(X)).all()
    assert found.score(X, y) == (found.predict(X) == y).mean() > 0.6


def test_dp_lda_takes_many_labels_and_text():
    X, y = table(5000, 40, 3)
    names = np.array([f"class {i:02d}" for i in range(40)])
    numbers = private(40, math.inf).fit(X, y)
    found = DPLinearDiscriminantAnalysis(names, math.inf, bounds=BOX).fit(X, names[y])
    assert (found.predict(X) == names[numbers.predict(X)]).all()
    assert np.allclose(found.means_, [X[y == i].mean(axis=0) for i in range(40)], atol=1e-3)


# Accuracy.


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n", "epsilon", "delta", "bounds", "least"),
    [
        (300, 1.0, 1e-6, BOX, 0.95),
        (1000, 0.5, 1e-6, BOX, 0.97),
        (1000, 1.0, 0.0, BOX, 0.97),
        *((2000, 2.0, 1e-6, bounds, 0.95) for bounds in ((-10, 10), (-1, 30), None)),
    ],
)
def test_dp_lda_tells_far_classes_apart(n, epsilon, delta, bounds, least):
    scores = []
    for seed in range(20):
        X, y = table(n, 2, seed=seed)
        found = private(2, epsilon, delta, bounds, random_state=seed).fit(X, y)
        scores.append(found.score(*table(1000, 2, seed=100)))
    assert np.median(scores) >= least


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_dp_lda_with_much_budget_nears_the_one_without_noise(delta):
    X, y = table(2000, 3)
    exact = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).predict_proba(X)
    errors = [
        np.abs(private(3, epsilon, delta, random_state=0).fit(X, y).predict_proba(X) - exact).mean()
        for epsilon in (10.0, 100.0, 1000.0)
    ]
    assert errors[0] < 0.1 and max(errors[1:]) < 0.03


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.0), (1.0, 1e-6), (math.inf, 0.0)])
@pytest.mark.parametrize("name", ODD_TABLES)
def test_dp_lda_is_finite_for_odd_tables(name, epsilon, delta):
    X = ODD_TABLES[name]
    y = np.zeros(len(X), dtype=int)
    found = private(3, epsilon, delta, random_state=0).fit(X, y)
    for name in ("means_", "priors_", "covariance_", "coef_", "intercept_"):
        assert np.isfinite(getattr(found, name)).all(), name
    assert (found.priors_ > 0).all() and found.priors_.sum() == pytest.approx(1)
    assert (np.linalg.eigvalsh(found.covariance_) >= 0).all()


# Costs.


def last_step(data, random_state, factor=1.0):
    """Sums of the classes at epsilon = 1, or with a factor less noise."""
    rows = Rows.of_array(np.column_stack([data[0], 2.0 * data[1] - 1.0]))
    budget = LaplaceBudget(factor, "add-remove", NoiseSource(random_state))
    plain = _noisy_discriminants._Whitening(np.zeros(2), np.eye(2), np.eye(2), 1.0, 2.0, 0.5)
    return _noisy_discriminants._class_moments(rows, plain, 2.0, 2, budget).sums


@pytest.mark.nightly
def test_audit_of_class_moments_refutes_missing_noise():
    # One more row at a corner with its label, in 1,000 runs per side, false alarms below 1e-6. An
    # audit of a whole fit detects little, so the steps before are exact here.
    y = np.zeros(21, dtype=int)
    y[20] = 1
    X = np.vstack([np.zeros((20, 2)), [[1.0, 1.0]]])
    options = {
        "n_runs": 1000,
        "confidence": 1 - 1e-6,
        "random_state": 0,
        "event": lambda sums: sums[1].sum() > 0.5,
    }
    sides = (X, y), (X[:20], y[:20])
    assert not audit_epsilon(last_step, *sides, **options).refutes(1.0)
    assert audit_epsilon(partial(last_step, factor=5.0), *sides, **options).refutes(1.0)


@pytest.mark.parametrize(
    ("epsilon", "adjacency"), [(1e-5, "add-remove"), (1e-3, "add-remove"), (1e-2, "replace-one")]
)
def test_dp_lda_of_people_is_finite_under_much_noise(epsilon, adjacency):
    for delta in (1e-6, 1e-9, 0.0):
        model = private(2, epsilon, delta, groups="id", adjacency=adjacency, random_state=0)
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(id=np.arange(40) // 2)
        assert np.isfinite(model.fit(frame, np.repeat(Y[:20] % 2, 2)).coef_).all()


def test_dp_lda_choice_and_noise_reach_delta_together():
    # A choice has the zCDP of Gaussian noise, but a larger delta, for which the noise must allow.
    X, y = table()
    model = DPLinearDiscriminantAnalysis([0, 1, 2], 0.5, 0.05, bounds=BOX, random_state=0)
    draws = recorded(lambda: model.fit(X, y)).crossings
    (of_choice,) = [draw.loss**2 / 4 for draw in draws if draw.law == "range"]
    square = of_choice + sum(draw.loss**2 for draw in draws if draw.law == "gaussian")
    delta = math.exp(_log_delta_with_choice(0.5, math.sqrt(square), of_choice / square))
    assert 0.0499 < delta <= 0.05 * (1 + 1e-8)


def test_dp_lda_keeps_no_labels_of_a_refused_fit():
    model = DPLinearDiscriminantAnalysis(epsilon=2.0, bounds=BOX, accountant=PrivacyAccountant(1.0))
    with warnings.catch_warnings(action="ignore"), pytest.raises(PrivacyBudgetExceeded):
        model.fit(X, np.where(Y == 0, SECRET, "other"))
    assert b"73645" not in pickle.dumps(model)


def test_dp_lda_does_not_tell_the_number_of_labels():
    labels = np.arange(40) % 35
    with warnings.catch_warnings(action="error"):
        private(40, 9.0, random_state=0).fit(X, labels)


def test_dp_lda_protects_labels_with_their_rows():
    for options, protected in (
        ({}, "adding or removing one row together with the label"),
        ({"adjacency": "replace-one", "unit": "one cloud"}, "replacing one cloud together with"),
    ):
        guarantee = private(**options).fit(*table()).privacy_guarantee_
        assert protected in str(guarantee)
        assert guarantee.released.endswith("means, weights and a common covariance of the classes")


# Rows in any place.


def same(one, other):
    names = ("means_", "priors_", "covariance_", "coef_", "intercept_")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("bounds", [pytest.param(BOX, marks=pytest.mark.laws), None])
def test_dp_lda_is_the_same_for_any_order_and_chunks(bounds):
    X, y = table(600)
    model = private(bounds=bounds, random_state=0)
    whole = clone(model).fit(X, y)
    chunks = [(X[:500], y[:500]), (X[500:501], y[500:501]), (X[:0], y[:0]), (X[501:], y[501:])]
    assert same(whole, clone(model).fit(X[::-1], y[::-1]))
    assert same(whole, clone(model).fit_chunks(chunks))
    assert same(whole, clone(model).fit_chunks(lambda: iter(chunks)))
    frames = [(pd.DataFrame(A, columns=["a", "b"]), b) for A, b in chunks]
    named = clone(model).fit_chunks(frames)
    assert same(whole, named) and named.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.engines
def test_dp_lda_of_dask_collections_is_that_of_rows():
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    frame = pytest.importorskip("dask.dataframe")
    X, y = table(2000)
    model = private(random_state=0)
    whole = clone(model).fit(X, y)
    pairs = {
        "arrays": (array.from_array(X, chunks=(600, 1)), array.from_array(y, chunks=600)),
        "delayed": ([dask.delayed(X[:700]), dask.delayed(X[700:])], [y[:700], y[700:]]),
        "frames": (
            frame.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3),
            frame.from_pandas(pd.Series(y), npartitions=3),
        ),
    }
    pairs["delayed"] = pairs["delayed"][0], [dask.delayed(part) for part in pairs["delayed"][1]]
    for name, (elsewhere, labels) in pairs.items():
        found = clone(model).fit(elsewhere, labels)
        assert same(whole, found), name
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            lazy = getattr(found, method)(elsewhere)
            parts = dask.compute(*lazy) if isinstance(lazy, list) else [lazy.compute()]
            here = X if name != "frames" else pd.DataFrame(X, columns=["a", "b"])
            assert np.allclose(np.concatenate(parts), getattr(found, method)(here)), method
        refuses("score compares rows with labels in memory", found.score, elsewhere, labels)
    with PrivacyAccountant(9.0, 1e-3) as accountant:
        for X_, y_ in ((pairs["arrays"][0], y), (X, pairs["arrays"][1])):
            refuses("X and y must both be", clone(model).fit, X_, y_)
        refuses("same number of parts", clone(model).fit, pairs["arrays"][0], array.from_array(y))
    assert len(accountant) == 0


@pytest.mark.parametrize("library", ["pandas", pytest.param("polars", marks=pytest.mark.laws)])
def test_dp_lda_weighs_people_alike(library):
    frames = pytest.importorskip(library)
    X, y = table(200)
    ids = [f"person {i:03d}" for i in range(200)]
    chosen = np.r_[np.arange(200), np.arange(20).repeat(20)]
    columns = {"a": X[chosen, 0], "id": [ids[i] for i in chosen], "b": X[chosen, 1]}
    frame = frames.DataFrame(columns)
    model = private(random_state=0, epsilon=9.0)
    by_column = clone(model).set_params(groups="id").fit(frame, y[chosen])
    assert "all rows of one person, by 'id', together with the labels" in str(
        by_column.privacy_guarantee_
    )
    # Copies of a row change nothing, because each person has the same weight.
    assert same(by_column, clone(model).fit(X, y, groups=ids))
    assert same(by_column, clone(model).fit(X[chosen], y[chosen], groups=columns["id"]))
    parts = [(frame[:300], y[chosen][:300]), (frame[300:], y[chosen][300:])]
    assert same(by_column, clone(model).set_params(groups="id").fit_chunks(parts))
    assert len(by_column.predict(frame)) == len(chosen)


@pytest.mark.conformance
@pytest.mark.filterwarnings("ignore:.*lie outside")
def test_dp_lda_works_in_pipelines_and_searches():
    X, y = table(400)
    model = make_pipeline(
        FunctionTransformer(),
        PrivatePCA(2, 1.0, bounds=BOX, random_state=0),
        private(bounds=(-2, 2), random_state=0),
    ).fit(X, y)
    guarantee = pipeline_guarantee(model)
    assert guarantee.epsilon == 2.0 and "labels" not in guarantee.released
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(id=np.arange(400) // 2)
    labels = np.repeat(y[::2], 2)
    search = GridSearchCV(
        private(groups="id", random_state=0), {"epsilon": [0.5, 2.0]}, cv=GroupKFold(3)
    )
    assert search.fit(frame, labels, groups=frame["id"]).best_score_ > 0.2


# Mistakes.

SECRET = "label 73645"
X, Y = table(40)
IDS = [f"person {i % 20}" for i in range(40)]
NAMED = pd.DataFrame({"a": X[:, 0], "id": IDS})
MISTAKES = {
    "no class": (
        lambda: private().fit(X, np.where(np.arange(40) == 3, SECRET, "0")),
        "classes, the public list",
    ),
    "missing": (lambda: private().fit(X, [math.nan, *Y[1:]]), "or one is missing"),
    "none": (lambda: private().fit(X, None), "requires y"),
    "too few": (lambda: private().fit(X, Y[1:]), "40 in X, 39 in y"),
    "a table of labels": (lambda: private().fit(X, np.column_stack([Y, Y])), "1d array"),
    "one class": (lambda: private(1).fit(X, 0 * Y), "at least 2 labels"),
    "classes in a table": (lambda: DPLinearDiscriminantAnalysis([[0, 1]]).fit(X, Y), "classes"),
    "chunks without classes": (
        lambda: DPLinearDiscriminantAnalysis().fit_chunks([(X, Y)]),
        "classes must be given",
    ),
    "chunks once": (lambda: private().fit_chunks(iter([(X, Y)])), "read only once"),
    "chunks of tables": (lambda: private().fit_chunks([X]), "pairs"),
    "a chunk with few labels": (lambda: private().fit_chunks([(X, Y[1:])]), "as many labels as"),
    "a chunk of another class": (lambda: private().fit_chunks([(X, Y + 1)]), "public list"),
    "two labels of one person": (lambda: private().fit(X, Y, groups=IDS), "two labels of one"),
    "two labels in a column": (lambda: private(groups="id").fit(NAMED, Y), "two labels of one"),
    "two labels in chunks": (
        lambda: private(groups="id").fit_chunks([(NAMED[:20], Y[:20]), (NAMED[20:], Y[20:])]),
        "two labels of one",
    ),
    "too few ids": (lambda: private().fit(X, Y, groups=IDS[1:]), "groups has 39 entries"),
    "few labels of people": (lambda: private().fit(X, Y[1:], groups=IDS), "40 in X, 39 in y"),
    "one person": (lambda: private().fit(X, 0 * Y, groups=["a"] * 40), "at least 2 people"),
    "a masked label": (lambda: private().fit(X, np.ma.masked_equal(Y, 1)), "masked"),
    "a masked chunk": (lambda: private().fit_chunks([(np.ma.masked_greater(X, 0.5), Y)]), "masked"),
    "a sparse chunk": (lambda: private().fit_chunks([(csr_array(X), Y)]), "dense table"),
    "a chunk of one dimension": (lambda: private().fit_chunks([(X[:, 0], Y)]), "dense table"),
    "a column of the name": (
        lambda: private().fit_chunks([(pd.DataFrame({"label of the row": X[:, 0]}), Y)]),
        "reserved for labels",
    ),
    "a stream in a function": (
        lambda: (lambda once: private().fit_chunks(lambda: once))(iter([(X, Y)])),
        "read only once",
    ),
    "a sum over parts": (lambda: private().fit(Parts(), Y), "X and y must both be"),
}


class Parts:
    def map_reduce(self, function):
        raise AssertionError("read")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_dp_lda_refuses_mistakes_unpaid_and_quotes_nobody(mistake):
    call, message = MISTAKES[mistake]
    said = refuses_unpaid(message, call)
    assert not any(word in said for word in ("73645", "person 0", "person 1"))


def test_dp_lda_takes_a_label_whatever_the_others_are():
    # Labels that look like numbers of a regression were refused only if one of them was there.
    private = DPLinearDiscriminantAnalysis([0.0, 1.0, 1.5], bounds=BOX, random_state=0)
    common = np.tile([0.0, 1.0], 20)
    for y in (common, np.append(common[1:], 1.5)):
        assert private.fit(X, y).classes_.tolist() == [0.0, 1.0, 1.5]


class Loud:
    def __hash__(self):
        raise RuntimeError("record 73645")


def test_dp_lda_refuses_odd_labels_and_changes_no_other():
    private = DPLinearDiscriminantAnalysis(["0", "1"], bounds=BOX, random_state=0)
    others = [*"01" * 19, "1"]
    assert private.fit(X, ["0", *others]).classes_.tolist() == ["0", "1"]
    for label in (0, 0.0, b"0", None, [0], 1j, Loud(), np.datetime64("2020")):
        with pytest.raises(ValueError, match="y has a label that is not in classes") as caught:
            private.fit(X, [label, *others])
        assert "73645" not in str(caught.value) + str(caught.value.__cause__)


def test_dp_lda_warns_of_classes_taken_from_labels():
    X, y = load_iris(return_X_y=True)
    model = DPLinearDiscriminantAnalysis(epsilon=9.0, bounds=(0, 9), random_state=0)
    with pytest.warns(PrivacyLeakWarning, match="taken from y"):
        model.fit(X, y)
    assert not model.privacy_guarantee_.public_parameters
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "radius"),
    [
        # For mu = 1, the noise of a sum is about one radius, so that of a mean of n rows is r / n,
        # and its sampling error is 1 / sqrt(n). With few classes, the noise is half of the
        # sampling error, and with twenty or more, as large.
        (40.0, 2, 0.5 * math.sqrt(20)),
        (100.0, 10, 0.5 * math.sqrt(10)),
        (150.0, 15, 0.75 * math.sqrt(10)),
        (100.0, 20, math.sqrt(5)),
        (200.0, 40, math.sqrt(5)),
        # Between 0.6 and 1.5 times the size, which is 2.
        (1.0, 2, 1.2),
        (1e9, 2, 3.0),
    ],
)
def test_radius_of_class_means_weighs_noise_against_sampling(n_rows, n_classes, radius):
    budget = GaussianBudget(1.0, "add-remove", NoiseSource(0))
    whitening = _noisy_discriminants._Whitening(np.zeros(4), np.eye(4), np.eye(4), 2.0, 9.0, 0.5)
    found = _noisy_discriminants._radius(whitening, n_rows, n_classes, budget)
    assert found == pytest.approx(radius, rel=1e-3)

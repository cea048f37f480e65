"""Rows on Dask give the same results as rows in memory, and are never gathered unnoticed."""

import pickle
from functools import reduce
from operator import add

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DTMFiltration
from sklearn_dptda.cluster import (
    DPCube,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    MorseMerging,
    ToMATo,
)
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.metric_privacy import KNormMechanism, PrivateMeasure, UltrametricMechanism
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.utils.discovery import all_estimators

dask = pytest.importorskip("dask")
array = pytest.importorskip("dask.array")
frame = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")

NAMES = ["a", "b", "c"]
PRIVATE = [
    DPMoG(4, random_state=0),
    DPMoG(4, assignment="soft", covariance_type="tied", random_state=0),
    DPMoG(3, bounds=(-15, 15), method="paper", random_state=0),
    DPMoGMorse(3, random_state=0),
    DPLloyd(3, random_state=0),
    DPTree(3, delta=0.0, random_state=0),
    DPCube(3, covariance_share=0.4, random_state=0),
    DPToMATo(epsilon=5.0, random_state=0),
    DPToMATo(epsilon=5.0, bounds=(-15, 15), random_state=0),
    PrivateMeasure(random_state=0),
    PrivateMeasure(bounds=(-15, 15), adjacency="replace-one", random_state=0),
    PrivatePCA(2, random_state=0),
    PrivateBounds(1.0, random_state=0),
    PrivateBounds(1.0, shape="box", start=(-20, 20), random_state=0),
    PrivateBounds(np.inf, random_state=0),
    MorseMerging(DPMoG(4, random_state=0)),
]
X = make_blobs(3000, centers=3, n_features=3, random_state=0)[0]


class Parts:
    """The protocol in a list: parts go through pickles, and come back in another order."""

    def __init__(self, parts):
        self.parts, self.sizes = parts, []

    def map_reduce(self, function):
        shipped = pickle.dumps(function)
        self.sizes.append(len(shipped))
        self.shipped = shipped
        sums = [pickle.dumps(pickle.loads(shipped)(part)) for part in self.parts]
        return reduce(add, map(pickle.loads, reversed(sums)))


KINDS = {
    "array": lambda X: array.from_array(X, chunks=(700, 2)),
    "frame": lambda X: frame.from_pandas(pandas.DataFrame(X, columns=NAMES), npartitions=5),
    "delayed": lambda X: [dask.delayed(part) for part in np.array_split(X, 4)],
    "parts": lambda X: Parts([X[:1], X[1:1], X[1:2000], X[2000:]]),
}


@pytest.fixture(autouse=True)
def in_threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def learnt(estimator):
    kept = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    return {
        name: value
        for name, value in kept.items()
        if name not in ("random_state", "estimator_", "feature_names_in_")
    }


def same(first, second):
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return np.array_equal(first, second)


@pytest.mark.engines
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("private", PRIVATE, ids=str)
def test_parts_give_the_same_release_bit_for_bit(private, kind):
    whole, accountant = learnt(clone(private).fit(X)), PrivacyAccountant(np.inf)
    counted = clone(private)
    payer = counted.estimator if isinstance(counted, MorseMerging) else counted
    payer.set_params(accountant=accountant)
    found = learnt(counted.fit(KINDS[kind](X)))
    assert set(found) == set(whole)
    for name, value in whole.items():
        assert same(found[name], value), name
    assert len(accountant.spends()) == 1


@pytest.mark.engines
@pytest.mark.parametrize("private", PRIVATE, ids=str)
def test_functions_are_small_and_know_no_noise(private):
    parts = Parts([X])
    clone(private).fit(parts)
    assert len(parts.sizes) >= 2 and max(parts.sizes) < 30_000
    for secret in (b"NoiseSource", b"Accountant", b"Budget", b"random_state"):
        assert secret not in parts.shipped


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", ["NaN", "columns", "empty", "one column more"])
def test_bad_parts_cost_nothing(kind, bad):
    tables = {
        "NaN": np.where(np.arange(3000)[:, None] == 2999, np.nan, X),
        "columns": X,
        "empty": X[:0],
        "one column more": X,
    }
    bounds = {"columns": ([-9.0] * 4, [9.0] * 4), "one column more": {"d": (0, 1)}}
    for kind_of in (DPLloyd, PrivateMeasure, DPToMATo):
        accountant = PrivacyAccountant(np.inf)
        private = kind_of(bounds=bounds.get(bad), accountant=accountant)
        data = Parts([tables[bad]]) if kind == "delayed" else KINDS[kind](tables[bad])
        with pytest.raises(ValueError, match=r"NaN|bounds|empty|0 sample"):
            private.fit(data)
        assert not accountant.spends()


def test_columns_are_checked_before_a_job_starts():
    def never(block):
        raise AssertionError("a job was started")

    data = array.from_array(X, chunks=(700, 3)).map_blocks(never, dtype=float, meta=X[:0])
    table = frame.from_pandas(pandas.DataFrame(X, columns=NAMES), npartitions=2)
    for private in (
        DPMoG(bounds=([0] * 4, [1] * 4)),
        DPToMATo(n_bins=2000),
        PrivatePCA(7),
        PrivateMeasure(bounds=([0] * 4, [1] * 4)),
        PrivateBounds(start=([0] * 4, [1] * 4)),
    ):
        for each in (data, table.map_partitions(never, meta=table._meta)):
            with pytest.raises(ValueError):
                private.fit(each)


def test_parts_with_other_columns_are_refused():
    accountant = PrivacyAccountant(np.inf)
    private = DPLloyd(2, accountant=accountant)
    for parts in ([X, X[:, :2]], [X, pandas.DataFrame(X, columns=NAMES)]):
        with pytest.raises(ValueError, match="number or the names"):
            private.fit(Parts(parts))
    with pytest.raises(ValueError, match="rows_per_group needs the first rows"):
        DPLloyd(2, groups="a", rows_per_group=1).fit(KINDS["frame"](X))
    with pytest.raises(ValueError, match="method='metric'"):
        PrivateMeasure(method="metric", alpha=1.0, bounds=(0, 1)).fit(KINDS["array"](X))
    for nothing in (array.zeros(5), array.zeros((5, 2, 2)), frame.from_array(X)[0]):
        with pytest.raises(ValueError, match="not a table"):
            private.fit(nothing)
    assert not accountant.spends()


def test_parts_that_change_between_passes_are_noticed():
    class Changing(Parts):
        def map_reduce(self, function):
            self.parts = [self.parts[0][1:]]
            return super().map_reduce(function)

    private = DPLloyd(2, random_state=0)
    with pytest.raises(ValueError, match="changed between two passes"):
        private.fit(Changing([X]))
    assert not hasattr(private, "privacy_guarantee_")


@pytest.mark.engines
def test_categories_are_coded_where_the_parts_are():
    table = pandas.DataFrame({"age": np.arange(400) % 70, "smokes": ["no", "yes"] * 200})
    private = PrivateMeasure(
        bounds=(0, 99), categories={"smokes": ["no", "yes"]}, depth=5, random_state=0
    )
    whole = clone(private).fit(table)
    counted = clone(private).fit(frame.from_pandas(table, npartitions=3))
    assert same(learnt(whole)["weights_"], learnt(counted)["weights_"])
    synthetic = counted.sample(50, random_state=0)
    assert synthetic["age"].dtype == np.int64 and set(synthetic["smokes"]) <= {"no", "yes"}
    accountant = PrivacyAccountant(np.inf)
    private.set_params(categories={"smokes": ["no"]}, accountant=accountant)
    with pytest.raises(ValueError, match="not in its list") as caught:
        private.fit(frame.from_pandas(table, npartitions=3))
    assert "yes" not in str(caught.value) and not accountant.spends()


LAZY = [
    (DPMoG(3, bounds=(-15, 15), random_state=0), ["predict", "predict_proba", "score_samples"]),
    (DPMoGMorse(3, bounds=(-15, 15), random_state=0), ["predict", "predict_proba"]),
    (DPLloyd(3, bounds=(-15, 15), random_state=0), ["predict", "transform"]),
    (DPToMATo(bounds=(-15, 15), random_state=0), ["predict"]),
    (PrivatePCA(2, bounds=(-15, 15), random_state=0), ["transform"]),
    (MorseMerging(GaussianMixture(3, random_state=0)), ["predict", "predict_proba"]),
]


@pytest.mark.engines
@pytest.mark.parametrize(("estimator", "methods"), LAZY, ids=lambda value: str(value)[:12])
def test_methods_of_rows_are_mapped(estimator, methods):
    table = pandas.DataFrame(X, columns=NAMES)
    for kind, rows in (("array", X), ("frame", table)):
        fitted = clone(estimator).fit(rows)
        for name in methods:
            found = getattr(fitted, name)(KINDS[kind](X))
            assert isinstance(found, array.Array)
            assert same(found.compute(), getattr(fitted, name)(rows))
            narrow = KINDS[kind](X)
            narrow = narrow[:, :2] if kind == "array" else narrow[NAMES[:2]]
            with pytest.raises(ValueError, match=r"features|names"):
                getattr(fitted, name)(narrow)
    if hasattr(estimator, "fit_predict") and is_private(estimator):
        labels = clone(estimator).fit_predict(KINDS["array"](X))
        assert isinstance(labels, array.Array) and labels.shape == (3000,)


@pytest.mark.engines
def test_pipelines_stay_where_the_rows_are():
    chain = make_pipeline(
        PrivatePCA(2, bounds=(-15, 15), random_state=0), DPMoG(3, bounds=(-40, 40), random_state=0)
    )
    whole = clone(chain).fit(X)
    for kind in ("array", "frame"):
        counted = clone(chain).fit(KINDS[kind](X))
        assert same(counted[-1].means_, whole[-1].means_)
    assert same(whole.predict(KINDS["array"](X)).compute(), whole.predict(X))
    with pytest.raises(ValueError, match="set_output"):
        counted[0].set_output(transform="pandas").transform(KINDS["array"](X))


OTHERS = [
    (name, kind)
    for name, kind in all_estimators()
    if not hasattr(kind, "fit_chunks") and kind is not MorseMerging
]


@pytest.mark.filterwarnings("ignore::sklearn_dptda.privacy.PrivacyLeakWarning")
@pytest.mark.parametrize(("name", "kind"), OTHERS, ids=[name for name, _ in OTHERS])
def test_no_estimator_gathers_in_silence(name, kind):
    def gather(*args, **kwargs):
        raise AssertionError("gathered")

    estimator = kind()
    if name == "PrivateMassSearch":
        estimator.set_params(filtration=DTMFiltration(bounds=(-15, 15), resolution=5))
    graph = array.from_array(np.arange(36).reshape(6, 6) % 2, chunks=3)
    tables = [KINDS["array"](np.abs(X[:60])), KINDS["frame"](np.abs(X[:60])), graph]
    messages = []
    with dask.config.set(scheduler=gather):
        for given in [*tables, *([table, table] for table in tables), KINDS["delayed"](X)]:
            try:
                estimator.fit(given)
            except ValueError as refused:
                messages.append(str(refused))
    # One of them has only public parameters.
    assert name == "UltrametricMechanism" or any("Dask collection" in m for m in messages), messages


def test_fitted_estimators_refuse_what_they_cannot_map():
    for fitted in (ToMATo().fit(X), KNormMechanism(bounds=(-20, 20)).fit(X)):
        method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
        for kind in ("array", "frame", "delayed"):
            with pytest.raises(ValueError, match="is a Dask collection"):
                method(KINDS[kind](X))
    budget = PrivacyAccountant(np.inf)
    places = array.from_array(np.array([0, 1, 1]), chunks=2)
    for method, given in (
        (MorseMerging(GaussianMixture(3)).fit, KINDS["array"](X)),
        (UltrametricMechanism(accountant=budget).fit().release, places),
        (UltrametricMechanism(accountant=budget).fit().release, [dask.delayed(0)]),
        (EdgeFlip(accountant=budget).fit, dask.delayed(np.eye(3))),
    ):
        with pytest.raises(ValueError, match="is a Dask collection"):
            method(given)
    with pytest.raises(ValueError, match="by map_reduce"):
        MorseMerging(GaussianMixture(3)).fit(Parts([X]))
    assert len(budget) == 0
    filtration = DTMFiltration(bounds=(-15, 15), resolution=5).fit([X])
    with pytest.raises(ValueError, match="is a Dask collection"):
        filtration.transform([KINDS["array"](X)])
    counted = filtration.make_histogram(KINDS["delayed"](X))
    assert same(counted.counts, filtration.make_histogram(X).counts)

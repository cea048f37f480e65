"""Every method of every estimator of rows, on rows elsewhere: lazy, one paid fit, or refused."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from sklearn_dptda.cluster import (
    DPCube,
    DPLandmarkToMATo,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    MorseMerging,
    PrivateLandmarks,
)
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.metric_privacy import PrivateMeasure
from sklearn_dptda.population import PrivateMean
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._rows import Tally
from sklearn_dptda.utils.discovery import all_estimators

dask = pytest.importorskip("dask")
array = pytest.importorskip("dask.array")
frame = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")
cloudpickle = pytest.importorskip("cloudpickle")

# Fits without a seed may have any result, and warn.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.usefixtures("few_public_draws"),
]

X = np.random.default_rng(0).uniform(size=(120, 2))
QUICK = {"kmeans_steps": 1, "mixture_steps": 1}
PRIVATE = [
    DPCube(2, 9.0, n_projections=1, n_swaps=1),
    DPLandmarkToMATo(2, 9.0, n_landmarks=9),
    DPLloyd(2, 9.0, n_iter=1),
    DPMoG(2, 9.0, **QUICK),
    DPMoGMorse(n_components=2, epsilon=9.0, **QUICK),
    DPToMATo(epsilon=9.0, n_bins=4),
    DPTree(2, 9.0, max_depth=2),
    MorseMerging(DPMoG(2, 9.0, **QUICK)),
    PrivateBounds(9.0),
    PrivateLandmarks(5, 9.0),
    PrivateMean(9.0),
    PrivateMeasure(9.0, depth=3),
    PrivatePCA(1, 9.0),
]
MAPPED = {"predict", "predict_proba", "score_samples", "transform", "inverse_transform"}
FITS = {"fit": None, "fit_chunks": None, "fit_predict": "predict", "fit_transform": "transform"}
NO_ROWS = {"sample", "error_bound"}
PLUMBING = {
    "get_params",
    "set_params",
    "set_output",
    "get_feature_names_out",
    "get_metadata_routing",
    "set_fit_request",
}


class Parts:
    """Sums over parts alone."""

    def __init__(self, X):
        self.parts = np.array_split(X, 2)

    def map_reduce(self, function):
        return sum(map(function, self.parts))


def table(X):
    return pandas.DataFrame(X, columns=["a", "b"][: X.shape[1]])


# It is fitted with labels, and its tests are with the estimator.
LABELLED = {"DPLinearDiscriminantAnalysis"}
KINDS = {
    "array": lambda X: array.from_array(X, chunks=(60, 1)),
    "frame": lambda X: frame.from_pandas(table(X), npartitions=2),
    "delayed": lambda X: [dask.delayed(part) for part in np.array_split(X, 2)],
    "map_reduce": Parts,
}


def sums_alone(graph, keys, **options):
    found = dask.get(graph, keys)
    sums = found
    while not isinstance(sums, Tally):
        (sums,) = sums
    return found


def never(graph, keys, **options):
    raise AssertionError("gathered")


def nothing_gathered(scheduler=sums_alone):
    return dask.config.set(scheduler=scheduler)


def computed(lazy):
    with nothing_gathered("synchronous"):
        parts = dask.compute(*lazy) if isinstance(lazy, list) else [lazy.compute()]
    return np.concatenate(parts)


def new(estimator, seed, budget):
    prefix = "estimator__" if isinstance(estimator, MorseMerging) else ""
    bounds = {"start" if isinstance(estimator, PrivateBounds) else f"{prefix}bounds": (0, 1)}
    given = {f"{prefix}random_state": seed, f"{prefix}accountant": budget}
    return clone(estimator).set_params(**bounds, **given)


def methods(estimator):
    kind = type(estimator)
    return {
        name for name in dir(kind) if name[0] != "_" and inspect.isfunction(getattr(kind, name))
    }


def test_nothing_is_forgotten():
    listed = {
        name
        for name, kind in all_estimators()
        if hasattr(kind, "fit_chunks")
        or getattr(getattr(get_tags(kind()), "privacy", None), "input", None) == "rows"
    }
    assert {type(private).__name__ for private in PRIVATE} == {*listed, "MorseMerging"} - LABELLED
    known = MAPPED | FITS.keys() | NO_ROWS | PLUMBING | {"score"}
    assert set.union(*map(methods, PRIVATE)) <= known


@pytest.mark.engines
@pytest.mark.parametrize("seed", [0, None], ids=["seeded", "unseeded"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("private", PRIVATE, ids=lambda private: type(private).__name__)
def test_methods_are_lazy_or_one_paid_fit_or_refused_before_it(private, kind, seed):
    budget = PrivacyAccountant(np.inf)
    here = table if kind == "frame" else np.asarray
    fitted = new(private, seed, budget).fit(here(X))
    for name in methods(private) - NO_ROWS - PLUMBING:
        rows = X[:, :1] if name == "inverse_transform" else X
        elsewhere, paid = KINDS[kind](rows), len(budget)
        if kind == "map_reduce" and name not in {"fit", "fit_chunks", "score"}:
            with pytest.raises(ValueError, match=r"X (only )?gives sums over its parts"):
                getattr(new(private, seed, budget) if name in FITS else fitted, name)(elsewhere)
            assert len(budget) == paid
        elif name in FITS:
            again = new(private, seed, budget)
            with nothing_gathered():
                found = getattr(again, name)(elsewhere)
            assert len(budget) == paid + 1
            if FITS[name] is None:
                assert found is again
            else:
                expected = getattr(again, FITS[name])(here(rows))
                assert np.allclose(computed(found), expected, rtol=1e-9)
        elif name == "score":
            with nothing_gathered():
                assert fitted.score(elsewhere) == pytest.approx(fitted.score(here(rows)))
            assert len(budget) == paid
        else:
            with nothing_gathered(never):
                lazy = getattr(fitted, name)(elsewhere)
            expected = getattr(fitted, name)(here(rows))
            assert np.allclose(computed(lazy), expected, rtol=1e-9)
            assert len(budget) == paid


@pytest.mark.engines
@pytest.mark.parametrize("seed", [0, None], ids=["seeded", "unseeded"])
@pytest.mark.parametrize("kind", KINDS)
def test_pipelines_pay_for_all_steps_or_for_none(kind, seed):
    budget = PrivacyAccountant(np.inf)
    chain = make_pipeline(*(new(private, seed, budget) for private in (PrivatePCA(1), DPLloyd(2))))
    elsewhere = KINDS[kind](X)
    with nothing_gathered():
        if kind == "map_reduce":
            with pytest.raises(ValueError, match=r"X (only )?gives sums over its parts"):
                chain.fit(elsewhere)
            assert len(budget) == 0
            return
        chain.fit(elsewhere)
        assert np.isfinite(chain.score(elsewhere))
    with nothing_gathered(never):
        labels = chain.predict(elsewhere)
    assert computed(labels).shape == (120,) and len(budget) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_frames_in_memory_are_refused_before_the_payment(kind):
    budget = PrivacyAccountant(np.inf)
    for private in (PrivatePCA(1), DPLloyd(2)):
        framed = new(private, None, budget).set_output(transform="pandas")
        with pytest.raises(ValueError, match=r"set_output makes data frames|sums over its parts"):
            make_pipeline(framed).fit_transform(KINDS[kind](X))
    assert len(budget) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_cross_validation_counts_folds_where_they_are_or_pays_nothing(kind):
    budget = PrivacyAccountant(np.inf)
    private = new(DPLloyd(2), None, budget)
    with nothing_gathered():
        if kind in ("array", "delayed"):
            scores = cross_val_score(private, KINDS[kind](X), cv=2, error_score="raise")
            assert np.isfinite(scores).all() and len(budget) == 2
            return
        # scikit-learn does not select rows of these.
        with pytest.raises((AttributeError, TypeError, ValueError)):
            cross_val_score(private, KINDS[kind](X), cv=2, error_score="raise")
    assert len(budget) == 0


@pytest.mark.engines
@pytest.mark.parametrize("seed", [0, None], ids=["seeded", "unseeded"])
def test_what_is_mapped_knows_released_values_alone(seed):
    budget = PrivacyAccountant(np.inf)
    rows = KINDS["frame"](X)
    for private in (DPLloyd(2), MorseMerging(DPMoG(2, **QUICK))):
        model = new(private, np.random.RandomState(0) if seed == 0 else None, budget).fit(rows)
        with PrivacyAccountant(1.0):
            labels = model.predict(rows)
            # The same release gives the same labels, which may come from a cache.
            assert labels.name == model.predict(rows).name
        shipped = cloudpickle.dumps(dict(labels.dask))
        for secret in (b"Accountant", b"RandomState", b"Budget"):
            assert secret not in shipped
        # Another release gives other labels.
        assert seed == 0 or model.fit(rows).predict(rows).name != labels.name


def test_caches_know_no_unseeded_estimator_again():
    budget = PrivacyAccountant(np.inf)
    keys = set()
    for model in (new(DPLloyd(2), None, budget), new(DPLloyd(2), None, budget).fit(X)):
        for _ in range(2):
            keys.add(dask.base.tokenize(model))
            keys.add(dask.delayed(lambda model: model.fit(X), pure=True)(model).key)
    assert len(keys) == 8


@pytest.mark.engines
def test_parts_without_rows_are_mapped():
    model = new(DPLloyd(2), None, None)
    few = KINDS["frame"](X)
    few = few[few["a"] > np.sort(X[:, 0])[-3]]
    assert len(computed(model.fit(table(X)).predict(few))) == 2
    assert computed(model.transform(few)).shape == (2, 2)
    assert computed(model.predict(dask.delayed(X))).shape == (120,)
    parts = [dask.delayed(X[:0]), dask.delayed(X)]
    assert computed(model.fit(X).predict(parts)).shape == (120,)
    assert model.score(parts) == pytest.approx(model.score(X))


def test_a_column_may_be_named_as_the_method():
    named = pandas.DataFrame(X, columns=["a", "map_reduce"])
    assert new(DPLloyd(2), 0, None).fit_predict(named).shape == (120,)


def test_a_list_is_not_gathered_for_what_else_it_holds():
    with nothing_gathered(never), pytest.raises(ValueError, match="is a Dask collection"):
        new(DPLloyd(2), 0, None).fit([X, KINDS["array"](X)])

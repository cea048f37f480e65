"""Searches and cross-validations under a name: repeated folds pay once and draw once."""

import os
import pickle
from contextlib import nullcontext

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG, MorseMerging
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.metric_privacy import MetricExponentialMechanism
from sklearn_dptda.model_selection import (
    PrivateMassSearch,
    planned_loss,
    release_once,
    release_replicates,
)
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyLedgerError,
)
from tests._fragile import Fragile
from tests._refusals import refuses

X = np.random.default_rng(0).uniform(size=(300, 2))
ON_A_LATTICE = DTMFiltration(m=0.5, bounds=(0, 1), resolution=9)
PROCESSES = [
    "sequential",
    pytest.param("threading", marks=pytest.mark.engines),
    pytest.param("loky", marks=pytest.mark.engines),
    pytest.param("multiprocessing", marks=pytest.mark.engines),
]


def search_of_rows(accountant, *steps):
    model = make_pipeline(*steps, DPLloyd(2, 0.5, bounds=(0, 1), accountant=accountant))
    return GridSearchCV(model, {"dplloyd__n_clusters": [2, 3]}, cv=3, error_score="raise")


CLOUDS = [np.random.default_rng(i).uniform(size=(60, 2)) for i in range(12)]
LABELS = np.arange(12) % 2


def search_of_clouds(accountant, *steps, **options):
    model = make_pipeline(
        DTMFiltration(0.3, bounds=(0, 1), resolution=5),
        PrivatePersistence(2.0, accountant=accountant),
        DiagramFeatures(value_range=(0, 1)),
        *steps,
        LogisticRegression(),
    )
    return GridSearchCV(model, {"dtmfiltration__m": [0.3, 0.5]}, cv=3, **options)


@pytest.mark.parametrize("backend", PROCESSES)
def test_search_under_a_name_pays_once_if_made_again(backend, tmp_path):
    budget = PrivacyAccountant(3.5, 1e-3, path=tmp_path / "a.db")
    scores = []
    for _ in range(2):
        with parallel_config(backend=backend, n_jobs=2):
            search = search_of_rows(budget.under("work")).fit(X)
        scores.append(search.cv_results_["mean_test_score"])
        centers = search.best_estimator_[-1].cluster_centers_
        assert len(budget) == 7 and budget.remaining().epsilon == 0
        assert all(release.size for release in budget.releases())
        stored = budget.release(budget.releases()[-1].key)["cluster_centers_"]
        assert np.array_equal(stored, centers)
    assert np.array_equal(*scores)
    # Each fold drew different coins. Small counts are raised to a common floor, so that weights are
    # often equal; means, which are not all at the bounds, are different numbers.
    releases = [budget.release(each.key)["cluster_centers_"] for each in budget.releases()]
    assert len({release.tobytes() for release in releases}) == 7
    other = X.copy()
    other[0] = 0.5
    with pytest.raises(PrivacyLedgerError, match="Something else was paid"):
        search_of_rows(budget.under("work")).fit(other)
    assert len(budget) == 7


@pytest.mark.engines
def test_search_under_a_name_of_transform_releases_pays_once(tmp_path):
    budget = PrivacyAccountant(1e3, path=tmp_path / "a.db")
    scores = []
    for _ in range(2):
        search = search_of_clouds(budget.under("work"))
        # Processes that are forked need not import everything again.
        with parallel_config(backend="multiprocessing", n_jobs=2):
            scores.append(search.fit(CLOUDS, LABELS).cv_results_["mean_test_score"])
        # Training and scoring of six folds, and the last fit.
        assert len(budget) == 13
    assert np.array_equal(*scores)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")
def test_search_under_a_name_pays_once_if_a_worker_dies(tmp_path):
    budget = PrivacyAccountant(50.0, 1e-3, path=tmp_path / "a.db")
    # The step kills its worker when its release has been seen. In scoring, the first one does.
    fragile = Fragile(str(tmp_path), os.getpid())
    search = search_of_clouds(budget.under("work"), fragile, error_score="raise")
    with parallel_config(backend="loky", n_jobs=2):
        refuses("terminated", search.fit, CLOUDS, LABELS, error=Exception)
        n_paid = len(budget)
        # Workers that died at the same time may have paid without storing.
        before = {r.key: budget.release(r.key) for r in budget.releases() if r.size is not None}
        search.set_params(estimator__privatepersistence__accountant=budget.under("work"))
        search.fit(CLOUDS, LABELS)
    assert n_paid > 0 and len(budget) == 13
    for name, release in before.items():
        assert pickle.dumps(budget.release(name)) == pickle.dumps(release)


class Stops(TransformerMixin, BaseEstimator):
    """Stands for Ctrl-C in the fifth fold that is fitted."""

    count = 0

    def fit(self, X, y=None):
        Stops.count += 1
        if Stops.count == 5:
            raise KeyboardInterrupt
        return self

    def transform(self, X):
        return X


@pytest.mark.laws
@pytest.mark.filterwarnings("ignore:Stops learnt")
@pytest.mark.parametrize("keyed", [True, False])
def test_search_under_a_name_goes_on_after_ctrl_c(keyed, tmp_path):
    budget = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db")
    Stops.count = 0
    with pytest.raises(KeyboardInterrupt):
        search_of_rows(budget.under("work") if keyed else budget, Stops()).fit(X)
    assert len(budget) == 4 and all(release.size for release in budget.releases())
    search_of_rows(budget.under("work") if keyed else budget, Stops()).fit(X)
    # The broken twin pays a second time for the folds of the first call.
    assert len(budget) == (7 if keyed else 4 + 7)


@pytest.mark.engines
def test_nested_search_under_a_name_pays_once(tmp_path):
    budget = PrivacyAccountant(1e3, 1e-3, path=tmp_path / "a.db")
    scores = []
    for _ in range(2):
        inner = search_of_rows(budget.under("work")).set_params(cv=2)
        with parallel_config(backend="multiprocessing", n_jobs=2):
            scores.append(cross_val_score(inner, X, cv=3))
        assert len(budget) == 3 * 5
    assert np.array_equal(*scores)


def test_named_accountant_gives_each_estimator_its_own_key():
    budget = PrivacyAccountant(10.0, 1e-3)
    keyed = budget.under("work")
    one = DPLloyd(2, 0.5, bounds=(0, 1), accountant=keyed)
    pair = [clone(one).fit(X), clone(one).fit(X)]
    assert len(budget) == 2
    assert not np.array_equal(*(each.cluster_centers_ for each in pair))
    # One estimator releases twice: two payments and two draws.
    centers = [one.fit(X).cluster_centers_, one.fit(X).cluster_centers_]
    assert len(budget) == 4 and not np.array_equal(*centers)
    # A pickle that was never fitted continues where it was.
    new = clone(one)
    again = pickle.loads(pickle.dumps(new))
    assert np.array_equal(again.fit(X).cluster_centers_, new.fit(X).cluster_centers_)
    assert len(budget) == 5


@pytest.mark.conformance
def test_named_accountant_is_in_no_pickle_of_what_was_fitted():
    def keyed():
        return PrivacyAccountant(1e3, 1e-3).under("work")

    search = search_of_rows(keyed()).fit(X)
    merging = MorseMerging(DPMoG(2, 9.0, bounds=(0, 1), accountant=keyed())).fit(X)
    pipe = make_pipeline(DPLloyd(2, 9.0, bounds=(0, 1), accountant=keyed())).fit(X)
    nested = DTMFiltration(m=0.5, bounds=PrivateBounds(9.0, accountant=keyed()))
    for fitted in (search.best_estimator_, merging, pipe, nested.fit([X])):
        kept = pickle.dumps(fitted)
        assert b"_key_of" not in kept
        # A clone in this process is for another fit, and keeps the key.
        assert b"_key_of" in pickle.dumps(clone(fitted))
    # A clone that was never fitted takes the key to workers. A template of clones that were fitted
    # does not, because their noise can be undone with its key.
    assert b"_key_of" in pickle.dumps(clone(search.estimator))
    y = np.arange(len(X)) % 2
    lda = DPLinearDiscriminantAnalysis(classes=[0, 1], epsilon=9.0, bounds=(0, 1))
    for fit in (
        lambda one: VotingClassifier([("a", one)]).fit(X, y),
        lambda one: BaggingClassifier(one, n_estimators=2).fit(X, y),
        lambda one: MultiOutputClassifier(one).fit(X, np.column_stack([y, y])),
        lambda one: CalibratedClassifierCV(one, cv=2).fit(X, y),
        lambda _: ColumnTransformer(
            [("a", PrivatePCA(1, bounds=(0, 1), accountant=keyed()), [0])]
        ).fit(X),
        lambda _: search,
    ):
        assert b"_key_of" not in pickle.dumps(fit(clone(lda).set_params(accountant=keyed())))
    # Without the key, a repeated release would be paid for and drawn again.
    template = clone(lda).set_params(accountant=keyed())
    clone(template)
    refuses("under", clone(pickle.loads(pickle.dumps(template))).fit, X, y)


@pytest.mark.filterwarnings("ignore:.*was given no c")
def test_name_refuses_another_release_by_its_digest():
    budget, n = PrivacyAccountant(1e9, 0.5), len(X)
    labels = np.arange(n) % 2
    for names in (("a", "b"), ("c", "d")):
        private = DPLinearDiscriminantAnalysis(
            bounds=(0, 1), adjacency="replace-one", accountant=budget.under("work")
        )
        refused = pytest.raises(PrivacyLedgerError, match="Something else was paid")
        with nullcontext() if names[0] == "a" else refused:
            private.fit(X, np.array(names)[labels])
    # A separate ledger for each unit.
    budgets = [PrivacyAccountant(1e9, 0.5) for _ in range(2)]
    candidates = np.random.default_rng(0).random((5, 2))
    MetricExponentialMechanism(accountant=budgets[0].under("other")).fit(candidates).transform(
        X[:3]
    )
    with pytest.raises(PrivacyLedgerError, match="Something else was paid"):
        mechanism = MetricExponentialMechanism(accountant=budgets[0].under("other"))
        mechanism.fit(candidates + 4).transform(X[:3])
    # In a pipeline scikit-learn sets attributes for its callbacks, which decide nothing.
    for _ in range(2):
        mechanism = MetricExponentialMechanism(accountant=budgets[0].under("callbacks"))
        make_pipeline(FunctionTransformer(), mechanism).fit_transform(candidates)
    # With each point twice, the functions are the same, but their sensitivity differs.
    search = PrivateMassSearch(ON_A_LATTICE, [0.2, 0.4])
    search.set_params(accountant=budgets[1].under("third")).fit([X])
    with pytest.raises(PrivacyLedgerError, match="Something else was paid"):
        clone(search).set_params(accountant=budgets[1].under("third")).fit(
            [np.repeat(X, 2, axis=0)]
        )


@pytest.mark.engines
def test_named_accountant_refuses_rows_of_dask():
    dask = pytest.importorskip("dask.array")
    budget = PrivacyAccountant(10.0, 1e-3)
    private = DPLloyd(2, bounds=(0, 1), accountant=budget.under("work"))
    refuses("requires records in memory", private.fit, dask.from_array(X, chunks=(99, 2)))
    assert len(budget) == 0


def test_named_accountant_refuses_what_it_cannot_hold():
    budget = PrivacyAccountant(10.0, 1e-3)
    keyed = budget.under("work")
    with pytest.raises(ValueError, match="cannot be the default"), keyed:
        pass
    refuses("name must be a string", budget.under, "")
    assert len(budget) == 0


def test_name_refuses_another_release_of_the_same_graph():
    # All links and all pairs of one matrix are different records, flipped by the same coins.
    A = np.triu(np.random.default_rng(0).integers(0, 2, (9, 9)), 1)
    budget = PrivacyAccountant(9.0)
    first, second = (EdgeFlip(1.0, accountant=budget.under("work")).fit(A + A.T) for _ in range(2))
    first.transform(A + A.T)
    refuses("Something else was paid", second.transform_links, A + A.T, error=PrivacyLedgerError)
    assert len(budget) == 1


@pytest.mark.engines
def test_ensemble_of_clones_in_workers_is_refused_under_a_name():
    # Its template would be published with a key that was unused in this process.
    y, budget = np.arange(len(X)) % 2, PrivacyAccountant(99.0, 1e-3)
    lda = DPLinearDiscriminantAnalysis(classes=[0, 1], epsilon=9.0, bounds=(0, 1))
    for name, Ensemble, labels in (
        ("rest", OneVsRestClassifier, y),
        ("outputs", MultiOutputClassifier, y[:, None]),
    ):
        ensemble = Ensemble(clone(lda).set_params(accountant=budget.under(name)), n_jobs=2)
        refused = pytest.raises(ValueError, match="fit ensembles in this process")
        with parallel_config(backend="loky"), refused:
            ensemble.fit(X, labels)
        assert not hasattr(ensemble, "estimators_") and len(budget) == 0


def test_plan_uses_up_no_names():
    budget = PrivacyAccountant(99.0, 1e-3)
    for checks in (True, False):
        search = search_of_rows(budget.under("work"))
        if checks:
            planned_loss(search, X).check()
        search.fit(X)
        assert len(budget) == 7


def test_candidates_with_accountants_are_refused_under_a_name_and_in_a_rehearsal():
    budget = PrivacyAccountant(99.0, 1e-3)
    candidates = [DPLloyd(k, 0.5, bounds=(0, 1), accountant=budget) for k in (2, 3)]
    search = GridSearchCV(Pipeline([("m", candidates[0])]), {"m": candidates}, cv=2)
    for refused in (
        lambda: planned_loss(search, rehearse=X),
        lambda: release_once(search, X, "work"),
        lambda: release_replicates(search, X, 2, name="work"),
    ):
        refuses("candidates of a search have accountants", refused)
    assert len(budget) == 0

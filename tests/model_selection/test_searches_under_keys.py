"""Searches and cross-validations under a key: folds that run again pay once and draw once."""

import os
import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyLedgerError,
    ReleaseKey,
)
from tests._fragile import Fragile

X = np.random.default_rng(0).uniform(size=(300, 2))
PROCESSES = [
    "sequential",
    "threading",
    pytest.param("loky", marks=pytest.mark.slow),
    pytest.param("multiprocessing", marks=pytest.mark.slow),
]


def search_of_rows(accountant, *steps):
    model = make_pipeline(*steps, DPLloyd(2, 0.5, bounds=(0, 1), accountant=accountant))
    return GridSearchCV(model, {"dplloyd__n_clusters": [2, 3]}, cv=5, error_score="raise")


@pytest.mark.parametrize("backend", PROCESSES)
def test_a_search_that_is_made_again_pays_once(backend, tmp_path):
    budget, key = PrivacyAccountant(5.5, 1e-3, path=tmp_path / "a.db"), ReleaseKey()
    scores = []
    for _ in range(2):
        with parallel_config(backend=backend, n_jobs=2):
            search = search_of_rows(budget.under(key)).fit(X)
        scores.append(search.cv_results_["mean_test_score"])
        centers = search.best_estimator_[-1].cluster_centers_
        assert len(budget) == 11 and budget.remaining().epsilon == 0
        assert all(release.size for release in budget.releases())
        stored = budget.release(budget.releases()[-1].key)["cluster_centers_"]
        assert np.array_equal(stored, centers)
    assert np.array_equal(*scores)
    # Each fold drew coins of its own.
    releases = [budget.release(each.key)["weights_"] for each in budget.releases()]
    assert len({release.tobytes() for release in releases}) == 11
    other = X.copy()
    other[0] = 0.5
    with pytest.raises(PrivacyLedgerError, match="Something else was paid"):
        search_of_rows(budget.under(key)).fit(other)
    assert len(budget) == 11


def test_steps_that_release_in_transform_pay_once(tmp_path):
    clouds = [np.random.default_rng(i).uniform(size=(60, 2)) for i in range(12)]
    y = np.arange(12) % 2
    budget, key = PrivacyAccountant(1e3, path=tmp_path / "a.db"), ReleaseKey()
    scores = []
    for _ in range(2):
        private = PrivatePersistence(2.0, accountant=budget.under(key))
        model = make_pipeline(
            DTMFiltration(0.3, bounds=(0, 1), resolution=5),
            private,
            DiagramFeatures(value_range=(0, 1)),
            LogisticRegression(),
        )
        search = GridSearchCV(model, {"dtmfiltration__m": [0.3, 0.5]}, cv=3, n_jobs=2)
        scores.append(search.fit(clouds, y).cv_results_["mean_test_score"])
        # Training and scoring of six folds, and the last fit.
        assert len(budget) == 13
    assert np.array_equal(*scores)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("keyed", [True, False])
def test_a_search_whose_worker_dies_is_made_again(keyed, tmp_path):
    budget = PrivacyAccountant(50.0, 1e-3, path=tmp_path / "a.db")
    key = ReleaseKey()
    # The step kills its worker when its release has been seen: in scoring, by the first one.
    model = make_pipeline(
        DTMFiltration(0.3, bounds=(0, 1), resolution=5),
        PrivatePersistence(1.0, accountant=budget.under(key) if keyed else budget),
        DiagramFeatures(value_range=(0, 1)),
        Fragile(str(tmp_path), os.getpid()),
        LogisticRegression(),
    )
    clouds = [np.random.default_rng(i).uniform(size=(60, 2)) for i in range(12)]
    search = GridSearchCV(model, {"dtmfiltration__m": [0.3, 0.5]}, cv=3, error_score="raise")
    with parallel_config(backend="loky", n_jobs=2):
        with pytest.raises(Exception, match="terminated"):
            search.fit(clouds, np.arange(12) % 2)
        n_paid = len(budget)
        # Workers that died beside it may have paid and not stored.
        before = {r.key: budget.release(r.key) for r in budget.releases() if r.size is not None}
        if keyed:
            model.set_params(privatepersistence__accountant=budget.under(key))
        search.fit(clouds, np.arange(12) % 2)
    assert n_paid > 0
    # The broken twin pays for the folds of the first call a second time.
    assert len(budget) == (13 if keyed else 13 + n_paid)
    for name, release in before.items():
        assert pickle.dumps(budget.release(name)) == pickle.dumps(release)


class Stops(TransformerMixin, BaseEstimator):
    """Stands for Ctrl-C in the seventh fold that is fitted."""

    count = 0

    def fit(self, X, y=None):
        Stops.count += 1
        if Stops.count == 7:
            raise KeyboardInterrupt
        return self

    def transform(self, X):
        return X


@pytest.mark.filterwarnings("ignore:Stops learnt")
def test_after_ctrl_c_the_same_search_goes_on(tmp_path):
    budget, key = PrivacyAccountant(5.5, 1e-3, path=tmp_path / "a.db"), ReleaseKey()
    Stops.count = 0
    with pytest.raises(KeyboardInterrupt):
        search_of_rows(budget.under(key), Stops()).fit(X)
    assert len(budget) == 6 and all(release.size for release in budget.releases())
    search_of_rows(budget.under(key), Stops()).fit(X)
    assert len(budget) == 11


def test_nested_searches_pay_once(tmp_path):
    budget, key = PrivacyAccountant(1e3, 1e-3, path=tmp_path / "a.db"), ReleaseKey()
    scores = []
    for _ in range(2):
        inner = search_of_rows(budget.under(key)).set_params(cv=2)
        scores.append(cross_val_score(inner, X, cv=3, n_jobs=2))
        assert len(budget) == 3 * 5
    assert np.array_equal(*scores)


def test_what_shares_an_accountant_has_keys_of_its_own():
    budget, key = PrivacyAccountant(10.0, 1e-3), ReleaseKey()
    keyed = budget.under(key)
    one = DPLloyd(2, 0.5, bounds=(0, 1), accountant=keyed)
    pair = [clone(one).fit(X), clone(one).fit(X)]
    assert len(budget) == 2
    assert not np.array_equal(*(each.cluster_centers_ for each in pair))
    # One estimator releases twice: two payments, two draws.
    centers = [one.fit(X).cluster_centers_, one.fit(X).cluster_centers_]
    assert len(budget) == 4 and not np.array_equal(*centers)
    # A pickle goes on where it was.
    again = pickle.loads(pickle.dumps(one))
    assert np.array_equal(again.fit(X).cluster_centers_, one.fit(X).cluster_centers_)
    assert len(budget) == 5


def test_what_a_key_cannot_hold_is_refused():
    budget, key = PrivacyAccountant(10.0, 1e-3), ReleaseKey()
    keyed = budget.under(key)
    dask = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="records in memory alone"):
        DPLloyd(2, bounds=(0, 1), accountant=keyed).fit(dask.from_array(X, chunks=(99, 2)))
    with pytest.raises(ValueError, match="cannot be the default"), keyed:
        pass
    with pytest.raises(ValueError, match="key must be a ReleaseKey"):
        budget.under("key")
    assert len(budget) == 0

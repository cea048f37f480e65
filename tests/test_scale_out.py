"""Replicates, searches, audits and histograms on a local cluster whose workers may die."""

import contextlib
import os
import pickle
import sys

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_dptda import (
    DiagramFeatures,
    DTMFiltration,
    PrivacyAccountant,
    PrivatePersistence,
    audit_epsilon,
)
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.graph import EdgeFlip, make_sbm
from sklearn_dptda.model_selection import privacy_utility_curve, release_replicates
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._tasks import run
from tests._fragile import Doomed, Fragile, Killer, dask_on_this_machine, ray_on_this_machine
from tests._refusals import refuses

# Workers import the modules that the tests send.
_HERE = {"env_vars": {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}}


@pytest.fixture(scope="module")
def dask_cluster():
    with dask_on_this_machine() as client:
        yield client


@pytest.fixture(scope="module")
def ray_cluster():
    pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    register_ray()
    with ray_on_this_machine(runtime_env=_HERE):
        yield


@pytest.fixture(params=["dask", "ray"])
def backend(request):
    request.getfixturevalue(f"{request.param}_cluster")
    return request.param


def clouds(n_clouds=2):
    return [make_two_circles(300, random_state=seed) for seed in range(n_clouds)]


def road(**options):
    return make_pipeline(
        DTMFiltration(0.2, bounds=(-3, 3.5), resolution=9), PrivatePersistence(2.0, **options)
    )


def same(first, second):
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return np.array_equal(first, second)


@pytest.mark.engines
def test_backends_give_the_results_of_one_process(backend):
    def everything(n_jobs):
        yield release_replicates(road(), clouds(), 4, random_state=0, n_jobs=n_jobs)
        curve = privacy_utility_curve(
            road(), clouds(), param_range=[0.5, 2.0], n_replicates=2, random_state=0, n_jobs=n_jobs
        )
        yield curve.errors
        yield road(random_state=0, n_jobs=n_jobs).fit_transform(clouds())

    alone = list(everything(1))
    with parallel_config(backend=backend):
        together = list(everything(2))
    for one, other in zip(alone, together, strict=True):
        assert same(one, other)


@pytest.mark.engines
def test_backends_audit_like_one_process(backend):
    A = make_sbm([6], [[0.5]], random_state=0)[0].toarray()
    B = A.copy()
    B[0, 1] = B[1, 0] = 1 - B[0, 1]

    def run(n_jobs):
        return audit_epsilon(
            EdgeFlip(1.0), A, B, n_runs=60, confidence=0.99, random_state=0, n_jobs=n_jobs
        ).epsilon

    alone = run(1)
    with parallel_config(backend=backend):
        assert run(2) == alone


@pytest.mark.engines
def test_backends_count_payments_of_all_workers(backend, tmp_path):
    accountant = PrivacyAccountant(100.0, path=tmp_path / "ledger.db")
    X = make_two_circles(200, random_state=0)
    search = GridSearchCV(
        PrivateMeasure(bounds=(-3, 3.5), accountant=accountant),
        {"epsilon": [0.5, 1.0]},
        scoring=lambda fitted, X, y=None: float(fitted.weights_.max()),
        cv=2,
        n_jobs=2,
    )
    with parallel_config(backend=backend):
        search.fit(X)
    # Two folds of each candidate, and the best candidate on everything.
    assert accountant.total().epsilon == pytest.approx(
        2 * (0.5 + 1.0) + search.best_params_["epsilon"]
    )
    assert len(accountant.spends()) == 5


@pytest.mark.engines
def test_make_histogram_counts_where_the_data_live(dask_cluster):
    array = pytest.importorskip("dask.array")
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X = make_two_circles(5000, random_state=0)
    filtration = DTMFiltration(0.1, bounds=(-3, 3.5), resolution=17, method="lattice").fit([X])
    expected = filtration.make_histogram(X)
    parts = array.from_array(X, chunks=(600, 1))
    table = frame.from_pandas(pandas.DataFrame(X, columns=["x", "y"]), npartitions=7)
    for distributed in (parts, table):
        found = filtration.make_histogram(distributed)
        assert np.array_equal(found.counts, expected.counts)
        assert found.n_points == 5000
    assert np.array_equal(
        filtration.transform([filtration.make_histogram(parts)])[0].values,
        filtration.transform([expected])[0].values,
    )


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_backends_with_a_killed_worker_pay_and_draw_once(backend, tmp_path):
    accountant = PrivacyAccountant(24.0)
    fragile = Fragile(str(tmp_path), os.getpid())
    dying = make_pipeline(*road(accountant=accountant), fragile)
    with parallel_config(backend=backend):
        # Two releases of one cloud are equal in one pair of 60, and those of six clouds in fewer
        # than 1e-10.
        releases = release_replicates(dying, clouds(6), 12, n_jobs=2)
    assert len(releases) == len(accountant) == 12 and accountant.remaining().epsilon == 0
    # The successor releases what the dead worker had drawn.
    drawn = pickle.loads((tmp_path / "seen.pickle").read_bytes())
    assert sum(same(drawn, release) for release in releases) == 1


@pytest.mark.engines
def test_dask_without_workers_is_refused_before_the_payment():
    distributed = pytest.importorskip("distributed")
    array = pytest.importorskip("dask.array")
    X = array.from_array(np.random.default_rng(0).uniform(size=(300, 2)), chunks=(100, 2))
    budget = PrivacyAccountant(3.0, 1e-3)
    model = DPLloyd(2, bounds=(0, 1), accountant=budget)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        refuses("the Dask cluster has no workers", model.fit, X)
        assert len(budget) == 0
        cluster.adapt(minimum=0, maximum=1, interval="10 ms")
        model.fit(X)
    assert len(budget) == 1


@pytest.mark.engines
def test_dask_with_one_core_serves():
    accountant = PrivacyAccountant(16.0)
    with dask_on_this_machine(n_workers=1), parallel_config(backend="dask"):
        assert len(release_replicates(road(accountant=accountant), clouds(), 8)) == 8
    assert len(accountant) == 8


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_backends_with_workers_that_die_again_cost_nothing(backend, tmp_path):
    died = [tmp_path / "after" / "died-2", tmp_path / "leaving" / "died-5"]
    for file in died:
        file.parent.mkdir()
    after, leaving = (str(file.parent) for file in died)
    accountant, spared = PrivacyAccountant(24.0), os.getpid()
    dying = make_pipeline(
        *road(accountant=accountant),
        Doomed(after, spared, (2,)),
        Doomed(leaving, spared, (5,), leaving=True),
    )
    with parallel_config(backend=backend):
        releases = release_replicates(dying, clouds(6), 12, n_jobs=2)
    assert len(releases) == len(accountant) == 12 and accountant.remaining().epsilon == 0
    # The successors release what the dead workers had drawn.
    for file in died:
        drawn = pickle.loads(file.read_bytes())
        assert sum(same(drawn, release) for release in releases) == 1


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::UserWarning")
def test_grid_search_under_a_name_pays_once_whatever_dies(backend, tmp_path):
    budget = PrivacyAccountant(1e3, path=tmp_path / "a.db")

    def search():
        model = make_pipeline(
            *road(accountant=budget.under("a search")),
            DiagramFeatures(value_range=(0, 3)),
            Fragile(str(tmp_path), os.getpid()),
            LogisticRegression(),
        )
        with parallel_config(backend=backend, n_jobs=2):
            return GridSearchCV(
                model, {"dtmfiltration__m": [0.2, 0.4]}, cv=3, error_score="raise"
            ).fit(clouds(12), np.arange(12) % 2)

    # Engines run the fold again, or end the search, which is then repeated.
    for _ in range(3):
        with contextlib.suppress(Exception):
            found = search()
            break
    assert os.path.exists(tmp_path / "seen.pickle")
    again = search()
    assert same(
        found.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"]
    ) and same(found.best_params_["dtmfiltration__m"], again.best_params_["dtmfiltration__m"])
    assert len(budget) == 13 and all(r.size is not None for r in budget.releases())


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_dask_loses_nothing_right_after_a_death(dask_cluster, tmp_path):
    for _ in range(2):
        accountant = PrivacyAccountant(24.0)
        last = Fragile(str(tmp_path), os.getpid())
        with parallel_config(backend="dask"):
            dying = make_pipeline(*road(accountant=accountant), last)
            assert len(release_replicates(dying, clouds(), 12)) == 12
        assert len(accountant) == 12


@pytest.mark.engines
def test_transform_survives_a_kill(backend, tmp_path):
    X = [make_two_circles(2000, random_state=seed) for seed in range(20)]
    filtration = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=17)
    expected = [f.values for f in filtration.fit_transform(X)]
    private = PrivatePersistence(2.0, random_state=0)
    diagrams = private.fit_transform(filtration.transform(X))
    with parallel_config(backend=backend):
        once = Killer(tmp_path / "once")
        found = run(_values, [(filtration, x, once) for x in X], n_jobs=2)
        assert same(found, expected)
        filtrations = filtration.set_params(n_jobs=2).transform(X)
        accountant = PrivacyAccountant(2.0)
        private.set_params(accountant=accountant).fit(filtrations)
        assert same(private.set_params(n_jobs=2).transform(filtrations), diagrams)
    assert len(accountant) == 1


@pytest.mark.engines
def test_dask_runs_loops_within_a_task_in_the_task(dask_cluster):
    with parallel_config(backend="dask"):
        assert set(run(_inner_backend, [(i,) for i in range(4)])) == {"SequentialBackend"}


def _values(filtration, x, once):
    once()
    return filtration.transform([x])[0].values


def _inner_backend(i):
    from joblib.parallel import get_active_backend

    return type(get_active_backend()[0]).__name__

"""Replicates, searches, audits and histograms on a local cluster of two workers."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_dptda import (
    DTMFiltration,
    PrivacyAccountant,
    PrivatePersistence,
    audit_epsilon,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.graph import EdgeFlip, make_sbm
from sklearn_dptda.metric_privacy import PrivateMeasure
from sklearn_dptda.model_selection import privacy_utility_curve, release_replicates

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dask_cluster():
    distributed = pytest.importorskip("distributed")
    with (
        # Any free port: clusters of several test processes live at the same time.
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(params=["dask", "ray"])
def backend(request):
    request.getfixturevalue(f"{request.param}_cluster")
    return request.param


def clouds():
    return [make_two_circles(300, random_state=seed) for seed in range(2)]


def road(**options):
    return make_pipeline(
        DTMFiltration(0.2, bounds=(-3, 3.5), resolution=9), PrivatePersistence(2.0, **options)
    )


def same(first, second):
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return np.array_equal(first, second)


def test_results_are_those_of_one_process(backend):
    def everything(n_jobs):
        yield release_replicates(road(), clouds(), 4, random_state=0, n_jobs=n_jobs)
        curve = privacy_utility_curve(
            road(),
            clouds(),
            param_range=[0.5, 2.0],
            n_replicates=2,
            random_state=0,
            n_jobs=n_jobs,
        )
        yield curve.errors
        yield road(random_state=0, n_jobs=n_jobs).fit_transform(clouds())

    alone = list(everything(1))
    with parallel_config(backend=backend):
        together = list(everything(2))
    for one, other in zip(alone, together, strict=True):
        assert same(one, other)


def test_audits_and_searches(backend):
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


def test_ledgers_count_in_all_workers(backend, tmp_path):
    accountant = PrivacyAccountant(100.0, path=tmp_path / "ledger.db")
    X = make_two_circles(200, random_state=0)
    search = GridSearchCV(
        PrivateMeasure(bounds=(-3, 3.5), depth=3, accountant=accountant),
        {"epsilon": [0.5, 1.0]},
        scoring=lambda fitted, X, y=None: float(fitted.weights_.max()),
        cv=2,
        n_jobs=2,
    )
    with parallel_config(backend=backend):
        search.fit(X)
    # Two folds of each candidate, and the best one on everything.
    assert accountant.total().epsilon == pytest.approx(
        2 * (0.5 + 1.0) + search.best_params_["epsilon"]
    )
    assert len(accountant.spends()) == 5


def test_histograms_are_counted_where_the_data_live(dask_cluster):
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

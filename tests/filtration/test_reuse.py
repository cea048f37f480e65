"""Functions that a block computes once: equal, apart, bounded, and gone at its end."""

import gc
import pickle
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.filtration import KernelDistanceFiltration, _estimator, reuse_functions
from sklearn_dptda.privacy import NoiseWarning, PrivacyAccountant

CLOUDS = [make_two_circles(150, random_state=seed) for seed in range(6)]
FILTRATION = DTMFiltration(m=0.2, bounds=(-3, 3.5), resolution=15)


@pytest.fixture
def counted(monkeypatch):
    """How many functions are computed."""
    calls = []
    one = DTMFiltration._one

    def count(self, cloud, unit):
        calls.append(len(cloud))
        return one(self, cloud, unit)

    monkeypatch.setattr(DTMFiltration, "_one", count)
    return calls


def search(accountant=None):
    model = make_pipeline(
        FILTRATION,
        PrivatePersistence(random_state=0, accountant=accountant),
        DiagramFeatures(value_range=(0, 3)),
        LogisticRegression(),
    )
    grid = {"privatepersistence__epsilon": [5.0, 20.0]}
    return GridSearchCV(model, grid, cv=3, error_score="raise")


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("sequential", marks=pytest.mark.laws),
        pytest.param("threading", marks=pytest.mark.engines),
    ],
)
def test_reuse_functions_computes_once_in_grid_search(backend, counted, monkeypatch):
    y, budgets = [0, 1] * 3, [PrivacyAccountant(1e6), PrivacyAccountant(1e6)]
    with monkeypatch.context() as never:
        never.setattr(_estimator, "_kept_functions", lambda: None)
        plain = search(budgets[0]).fit(CLOUDS, y)
    computed = len(counted)
    counted.clear()
    with reuse_functions(), parallel_config(backend=backend, n_jobs=2):
        reused = search(budgets[1]).fit(CLOUDS, y)
    assert computed == 2 * 3 * 6 + 6
    # Two threads may compute the same function at once.
    assert len(counted) == 6 if backend == "sequential" else 6 <= len(counted) <= 12
    scores = [each.cv_results_["mean_test_score"] for each in (plain, reused)]
    np.testing.assert_array_equal(*scores)
    assert len(budgets[0]) == len(budgets[1])
    assert _estimator._SHELVES == []


def test_search_computes_each_function_once_and_keeps_none(counted):
    y, budget = [0, 1] * 3, PrivacyAccountant(1e6)
    fitted = search(budget).fit(CLOUDS, y)
    # Each of 2 x 3 fits pays for the clouds to learn from, and for those to score.
    assert len(counted) == 6 and len(budget) == 2 * 2 * 3 + 1
    gc.collect()
    assert len(_estimator._OF_SEARCHES) == 0
    fitted.best_estimator_[0].transform(CLOUDS)
    assert len(counted) == 12


def test_reuse_functions_is_shared_by_workers(counted):
    # Processes would not share it.
    two = DTMFiltration(m=0.2, bounds=(-3, 3.5), resolution=15, n_jobs=2)
    with reuse_functions():
        first, again = two.fit_transform(CLOUDS), two.fit_transform(CLOUDS)
    assert len(counted) == 6
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


class Watched(DTMFiltration):
    """Fails in a worker if a cloud was written to a file for it."""

    def _one(self, cloud, unit):
        assert not isinstance(cloud, np.memmap)
        return super()._one(cloud, unit)


@pytest.mark.engines
def test_dtm_filtration_workers_get_no_memory_maps():
    clouds = [make_two_circles(70_000, random_state=seed) for seed in range(2)]
    options = {"m": 0.2, "bounds": (-3, 3.5), "resolution": 15, "method": "lattice"}
    with parallel_config(backend="loky"):
        found = Watched(**options, n_jobs=2).fit_transform(clouds)
    for one, other in zip(found, Watched(**options).fit_transform(clouds), strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_reuse_functions_tells_points_and_parameters_apart(counted):
    with reuse_functions():
        first = FILTRATION.fit_transform(CLOUDS[:1])
        for other in (
            DTMFiltration(m=0.3, bounds=(-3, 3.5), resolution=15),
            DTMFiltration(m=0.2, bounds=(-3, 3.6), resolution=15),
            DTMFiltration(m=0.2, bounds=(-3, 3.5), resolution=16),
        ):
            assert not np.array_equal(other.fit_transform(CLOUDS[:1])[0].values, first[0].values)
        moved = CLOUDS[0].copy()
        moved[0, 0] += 1e-9
        FILTRATION.fit_transform([moved])
        assert len(counted) == 5
        kernel = KernelDistanceFiltration(bandwidth=0.5, bounds=(-3, 3.5), resolution=15)
        assert kernel.fit_transform(CLOUDS[:1])[0].statistic != first[0].statistic


def test_reuse_functions_keeps_equal_clouds_two_records(counted):
    # A release takes one object for one cloud, and would pay for and draw it once.
    pair = [CLOUDS[0], CLOUDS[0].copy()]
    with reuse_functions():
        one, other = FILTRATION.fit_transform(pair)
        again = FILTRATION.fit_transform(pair)
    assert len({id(f) for f in (one, other, *again)}) == 4
    # They share arrays, which cannot be written to.
    assert not any(f.values.flags.writeable for f in (one, other, *again))
    assert len(counted) == 1


def test_reuse_functions_bounds_memory(counted):
    size = _estimator._size(FILTRATION.fit_transform(CLOUDS[:1])[0])
    counted.clear()
    with reuse_functions(max_bytes=2 * size):
        for cloud in (0, 1, 0, 2, 0, 1):
            FILTRATION.fit_transform(CLOUDS[cloud : cloud + 1])
        assert _estimator._SHELVES[-1]._bytes <= 2 * size
    # The third one drops the second one, which is computed again.
    assert len(counted) == 4
    counted.clear()
    with reuse_functions(max_bytes=1):
        FILTRATION.fit_transform(CLOUDS[:1])
        FILTRATION.fit_transform(CLOUDS[:1])
    assert len(counted) == 2
    with pytest.raises(ValueError, match="max_bytes must be positive"), reuse_functions(0):
        pass


def test_reuse_functions_ends_with_block_unpickled(counted):
    with reuse_functions():
        fitted = FILTRATION.fit(CLOUDS)
        fitted.transform(CLOUDS)
        kept = pickle.dumps(fitted)
    assert len(kept) < 5000 and CLOUDS[0][0].tobytes() not in kept
    counted.clear()
    fitted.transform(CLOUDS[:1])
    assert len(counted) == 1


def test_search_warns_of_noise_once():
    model = search()
    grid = {"privatepersistence__epsilon": [0.01, 0.02], "dtmfiltration__m": [0.1, 0.2]}
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.set_params(param_grid=grid).fit(CLOUDS, [0, 1] * 3)
        model.fit(CLOUDS, [0, 1] * 3)
    assert sum(issubclass(each.category, NoiseWarning) for each in caught) == 2

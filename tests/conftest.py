import os
import shutil
import tempfile
from functools import cache

import matplotlib
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from sklearn_dptda import DTMFiltration
from sklearn_dptda.datasets import make_two_circles

matplotlib.use("Agg")

# scikit-learn inspects the signature of a class each time that it reads parameters, which takes a
# fifth of the time of small fits. Tests repeat such fits thousands of times.
BaseEstimator._get_param_names = classmethod(cache(BaseEstimator._get_param_names.__func__))

# The slowest parts of batteries over many estimators: checks with many releases each, and
# estimators whose fits take longest. The examples of plans are slow, too, because each of them
# looks for an epsilon.
SLOW = (
    "check_short_audits_find_nothing",
    "check_what_noise_does_not_touch_is_public",
    "check_noise_falls_with_epsilon",
    "check_extreme_records_look_alike",
    "check_neighbours_look_alike",
    "check_items_get_independent_noise",
    "[DPLandmarkToMATo-check",
    "[PrivateMassSearch-check",
    "[MorseMerging()-",
    "check_n_jobs_changes_nothing",
    "[KNormMechanism(bounds=(-100,100))-check_dtype_object",
    "._release_plan.",
    "._planner.plan_release",
    ".ReleasePlanDisplay",
    ".privacy_utility_curve",
    "test_scikit_learn[DPMoGMorse(",
    "test_scikit_learn[MorseMerging(",
)


def pytest_configure(config):
    # Marks of ledgers are kept in the home of a user. Tests must leave nothing there.
    config.state_home = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state_")


def pytest_unconfigure(config):
    shutil.rmtree(config.state_home, ignore_errors=True)


def pytest_collection_modifyitems(items):
    for item in items:
        if any(name in item.nodeid for name in SLOW):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def circles():
    return make_two_circles(1000, random_state=0)


@pytest.fixture(scope="session")
def filtration(circles):
    return DTMFiltration(0.2, bounds=(-3, 3.5), resolution=51).fit_transform([circles])[0]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def few_public_draws(monkeypatch):
    """Fewer draws and runs of what follows from private output: a tenth of the time.

    What reads records stays as it is.
    """
    monkeypatch.setattr("sklearn_dptda.cluster._private_landmarks.N_DRAWN", 400)
    monkeypatch.setattr("sklearn_dptda.cluster._dp_landmark_tomato._N_MAYBE", 4000)
    monkeypatch.setattr("sklearn_dptda.cluster._dp_tree.N_STARTS", 1)

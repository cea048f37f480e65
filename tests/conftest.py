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

# What tests are for. CONTRIBUTING.md says when each layer runs.
LAYERS = ("unit", "conformance", "laws", "engines", "nightly")


def pytest_configure(config):
    # Each worker that xdist starts has a core of its own. More threads only wait for each other.
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    # Marks of ledgers are kept in the home of a user. Tests must leave nothing there.
    config.state_home = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state_")


def pytest_unconfigure(config):
    shutil.rmtree(config.state_home, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Give each test the mark of exactly one layer, by which ``-m`` selects."""
    for item in items:
        layers = {mark.name for mark in item.iter_markers() if mark.name in LAYERS}
        if len(layers) > 1:
            raise pytest.UsageError(f"{item.nodeid} is in several layers: {sorted(layers)}")
        if not layers:
            item.add_marker("conformance" if isinstance(item, pytest.DoctestItem) else "unit")


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
    monkeypatch.setattr("sklearn_dptda.model_selection._simulated_feature.N_RELEASES", 5)

import matplotlib
import numpy as np
import pytest

from sklearn_dptda import DTMFiltration
from sklearn_dptda.datasets import make_two_circles

matplotlib.use("Agg")


@pytest.fixture(scope="session")
def circles():
    return make_two_circles(1000, random_state=0)


@pytest.fixture(scope="session")
def filtration(circles):
    return DTMFiltration(0.2, bounds=(-3, 3.5), resolution=51).fit_transform([circles])[0]


@pytest.fixture
def rng():
    return np.random.default_rng(0)

import pytest

from sklearn_dptda.graph import make_sbm


@pytest.fixture(scope="package")
def graph():
    """A graph of 100 nodes in two blocks."""
    return make_sbm([60, 40], [[0.4, 0.1], [0.1, 0.3]], random_state=0)[0]

import pytest

from sklearn_dptda import DTMFiltration


@pytest.fixture(scope="session")
def small(circles):
    """A filtration of few nodes, for what does not depend on their number."""
    return DTMFiltration(0.2, bounds=(-3, 3.5), resolution=15).fit_transform([circles])[0]

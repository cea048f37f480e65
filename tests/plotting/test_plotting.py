import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.plotting import FiltrationDisplay, PersistenceDiagramDisplay


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.mark.parametrize("d", [1, 2, 3])
def test_filtrations(d, rng):
    X = [rng.uniform(size=(50, d))]
    estimator = DTMFiltration(0.2, bounds=(0, 1), resolution=7)
    display = FiltrationDisplay.from_estimator(estimator, X)
    assert display.figure_ is display.ax_.figure


def test_four_dimensions_are_refused(rng):
    item = DTMFiltration(0.2, bounds=(0, 1), resolution=3).fit_transform([rng.random((9, 4))])[0]
    with pytest.raises(ValueError, match="three dimensions"):
        FiltrationDisplay(item).plot()


@pytest.mark.parametrize("dimensions", [(0, 1), 1])
def test_diagrams(filtration, dimensions):
    estimator = PrivatePersistence(homology_dimensions=dimensions, random_state=0)
    display = PersistenceDiagramDisplay.from_estimator(estimator, [filtration], upper=4.0)
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert labels == (["H1"] if dimensions == 1 else ["H0", "H1"])


def test_reference_and_infinity():
    display = PersistenceDiagramDisplay(
        [np.array([[0, np.inf]])], reference=[np.array([[0.1, 1.0]])]
    ).plot(title="t")
    assert display.ax_.get_ylim()[1] > 1
    PersistenceDiagramDisplay([np.empty((0, 2))]).plot()

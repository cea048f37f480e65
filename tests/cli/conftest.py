import numpy as np
import pytest

from tests.cli._paying import ADJACENCY, ROWS


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch):
    """What takes long depends on the machine: tests of progress say what is long themselves."""
    monkeypatch.setattr("sklearn_dptda._cli._output._FIRST_LINE_SECONDS", 3600.0)


@pytest.fixture(autouse=True)
def _no_false_alarms(monkeypatch):
    """Commands draw new noise, and one of 40,000 would warn of rows outside its private bounds.

    With twice the margin, one of 10^8 does.
    """
    monkeypatch.setattr("sklearn_dptda.rows._estimator._CERTAIN_DEVIATIONS", 14.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    np.save("graph.npy", ADJACENCY)
    return tmp_path

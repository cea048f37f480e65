import pytest


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch):
    """What takes long depends on the machine: tests of progress say what is long themselves."""
    monkeypatch.setattr("sklearn_dptda._cli._output._FIRST_LINE_SECONDS", 3600.0)

"""Interactive diagrams show the same content as drawn diagrams."""

import sys

import numpy as np
import pytest

from sklearn_dptda.plotting import PersistenceDiagramDisplay
from tests._refusals import refuses

pytestmark = pytest.mark.conformance

DIAGRAMS = [np.array([[0.0, np.inf], [0.1, 0.5]]), np.array([[0.2, 0.9]])]


def test_to_plotly_shows_points_reference_and_band():
    pytest.importorskip("plotly")
    display = PersistenceDiagramDisplay(DIAGRAMS, reference=DIAGRAMS, upper=1.0, error_bound=0.05)
    figure = display.to_plotly()
    traces = {trace.name: trace for trace in figure.data if trace.name}
    assert set(traces) == {"may be noise", "H0", "H0 exact", "H1", "H1 exact"}
    # Essential classes are drawn at the upper end.
    assert sorted(traces["H0"].y) == [0.5, 1.0]
    assert list(traces["H1"].customdata) == pytest.approx([0.7])


def test_to_plotly_of_a_plain_diagram_has_no_band():
    pytest.importorskip("plotly")
    figure = PersistenceDiagramDisplay([DIAGRAMS[1]], homology_dimensions=[3]).to_plotly()
    assert [trace.name for trace in figure.data if trace.name] == ["H3"]
    assert figure.data[-1].marker.symbol == "diamond"


def test_to_plotly_without_plotly_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    refuses("interactive", PersistenceDiagramDisplay(DIAGRAMS).to_plotly, error=ImportError)

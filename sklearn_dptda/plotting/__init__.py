"""Displays of diagrams, filtrations, mixtures, curves and audits, in the style of scikit-learn.

Each display is created from results or from an estimator. Its method ``plot`` draws it and stores
the axes. A report puts a release on one page of HTML.
"""

from sklearn_dptda.plotting._curve_displays import (
    AccuracyBoundsDisplay,
    AuditDisplay,
    PrivacyUtilityDisplay,
    ReleasePlanDisplay,
)
from sklearn_dptda.plotting._dendrogram_display import DendrogramDisplay
from sklearn_dptda.plotting._diagram_display import PersistenceDiagramDisplay
from sklearn_dptda.plotting._expected_diagram_display import ExpectedDiagramDisplay
from sklearn_dptda.plotting._filtration_display import FiltrationDisplay
from sklearn_dptda.plotting._mixture_display import MixtureDensityDisplay
from sklearn_dptda.plotting._release_report import release_report

__all__ = [
    "AccuracyBoundsDisplay",
    "AuditDisplay",
    "DendrogramDisplay",
    "ExpectedDiagramDisplay",
    "FiltrationDisplay",
    "MixtureDensityDisplay",
    "PersistenceDiagramDisplay",
    "PrivacyUtilityDisplay",
    "ReleasePlanDisplay",
    "release_report",
]

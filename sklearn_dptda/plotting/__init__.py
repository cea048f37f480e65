"""Displays of diagrams, filtrations, mixtures, curves and audits, in the manner of scikit-learn.

Each is made from results or from an estimator, draws with ``plot`` and keeps the axes; colours
and markers stay apart in greyscale.
"""

from sklearn_dptda.plotting._accuracy_display import AccuracyBoundsDisplay
from sklearn_dptda.plotting._audit_display import AuditDisplay
from sklearn_dptda.plotting._curve_display import PrivacyUtilityDisplay
from sklearn_dptda.plotting._dendrogram_display import DendrogramDisplay
from sklearn_dptda.plotting._diagram_display import PersistenceDiagramDisplay
from sklearn_dptda.plotting._filtration_display import FiltrationDisplay
from sklearn_dptda.plotting._mixture_display import MixtureDensityDisplay
from sklearn_dptda.plotting._plan_display import ReleasePlanDisplay

__all__ = [
    "AccuracyBoundsDisplay",
    "AuditDisplay",
    "DendrogramDisplay",
    "FiltrationDisplay",
    "MixtureDensityDisplay",
    "PersistenceDiagramDisplay",
    "PrivacyUtilityDisplay",
    "ReleasePlanDisplay",
]

"""Displays of diagrams, filtrations, mixtures and privacy-utility curves."""

from sklearn_dptda.plotting._accuracy_display import AccuracyBoundsDisplay
from sklearn_dptda.plotting._curve_display import PrivacyUtilityDisplay
from sklearn_dptda.plotting._dendrogram_display import DendrogramDisplay
from sklearn_dptda.plotting._diagram_display import PersistenceDiagramDisplay
from sklearn_dptda.plotting._filtration_display import FiltrationDisplay
from sklearn_dptda.plotting._mixture_display import MixtureDensityDisplay

__all__ = [
    "AccuracyBoundsDisplay",
    "DendrogramDisplay",
    "FiltrationDisplay",
    "MixtureDensityDisplay",
    "PersistenceDiagramDisplay",
    "PrivacyUtilityDisplay",
]

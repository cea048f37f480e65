"""Displays of diagrams, filtrations, mixtures and privacy-utility curves."""

from sklearn_dptda.plotting._accuracy import AccuracyBoundsDisplay
from sklearn_dptda.plotting._curve import PrivacyUtilityDisplay
from sklearn_dptda.plotting._dendrogram import DendrogramDisplay
from sklearn_dptda.plotting._diagram import PersistenceDiagramDisplay
from sklearn_dptda.plotting._filtration import FiltrationDisplay
from sklearn_dptda.plotting._mixture import MixtureDensityDisplay

__all__ = [
    "AccuracyBoundsDisplay",
    "DendrogramDisplay",
    "FiltrationDisplay",
    "MixtureDensityDisplay",
    "PersistenceDiagramDisplay",
    "PrivacyUtilityDisplay",
]

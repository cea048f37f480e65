"""Displays of diagrams, filtrations and privacy-utility curves."""

from sklearn_dptda.plotting._curve import PrivacyUtilityDisplay
from sklearn_dptda.plotting._diagram import PersistenceDiagramDisplay
from sklearn_dptda.plotting._filtration import FiltrationDisplay

__all__ = ["FiltrationDisplay", "PersistenceDiagramDisplay", "PrivacyUtilityDisplay"]

"""Diagrams to feature matrices."""

from sklearn_dptda.features._diagram_features import DiagramFeatures

__all__ = ["DiagramFeatures"]

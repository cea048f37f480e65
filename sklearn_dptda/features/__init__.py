"""Persistence diagrams to feature matrices, by any vectoriser of GUDHI.

Post-processing: features of private diagrams are as private as the diagrams are.
"""

from sklearn_dptda.features._diagram_features import DiagramFeatures

__all__ = ["DiagramFeatures"]

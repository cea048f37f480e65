"""Feature matrices of persistence diagrams, by any vectoriser of GUDHI and two of this package.

Features are post-processing: features of private diagrams are as private as the diagrams.
"""

from sklearn_dptda.features._diagram_features import DiagramFeatures
from sklearn_dptda.features._maps_of_diagrams import PersistenceMass, SortedLifetimes

__all__ = ["DiagramFeatures", "PersistenceMass", "SortedLifetimes"]

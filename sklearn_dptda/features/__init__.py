"""Feature matrices of persistence diagrams, by any vectoriser of GUDHI and two of this package.

Features are post-processing: features of private diagrams are as private as the diagrams.
"""

from sklearn_dptda.features._diagram_features import DiagramFeatures
from sklearn_dptda.features._persistence_mass import PersistenceMass
from sklearn_dptda.features._sorted_lifetimes import SortedLifetimes

__all__ = ["DiagramFeatures", "PersistenceMass", "SortedLifetimes"]

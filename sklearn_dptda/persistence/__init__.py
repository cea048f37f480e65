"""Filtrations to persistence diagrams, exact and private."""

from sklearn_dptda.filtration import sensitivity_cech, sensitivity_dtm
from sklearn_dptda.persistence._cubical import CubicalPersistence
from sklearn_dptda.persistence._distance import bottleneck_distance
from sklearn_dptda.persistence._private import PrivatePersistence

__all__ = [
    "CubicalPersistence",
    "PrivatePersistence",
    "bottleneck_distance",
    "sensitivity_cech",
    "sensitivity_dtm",
]

"""Topological data analysis under differential privacy, as scikit-learn estimators."""

from sklearn_dptda.features import DiagramFeatures
from sklearn_dptda.filtration import (
    DTMFiltration,
    GridFiltration,
    KernelDistanceFiltration,
    distance_to_measure,
)
from sklearn_dptda.persistence import (
    CubicalPersistence,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.privacy import PrivacyGuarantee, PrivacyLeakWarning

__version__ = "0.1.0"

__all__ = [
    "CubicalPersistence",
    "DTMFiltration",
    "DiagramFeatures",
    "GridFiltration",
    "KernelDistanceFiltration",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivatePersistence",
    "bottleneck_distance",
    "distance_to_measure",
]

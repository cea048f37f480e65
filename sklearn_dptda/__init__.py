"""Topological data analysis under differential privacy, as scikit-learn estimators.

The names that are imported most stand here; the folders have the rest.
"""

from sklearn_dptda.features import DiagramFeatures
from sklearn_dptda.filtration import (
    DTMFiltration,
    GridFiltration,
    KernelDistanceFiltration,
    distance_to_measure,
)
from sklearn_dptda.persistence import (
    CubicalPersistence,
    PersistenceProfile,
    PrivateBettiNumbers,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    audit_epsilon,
)

__version__ = "0.1.0"

__all__ = [
    "CubicalPersistence",
    "DTMFiltration",
    "DiagramFeatures",
    "GridFiltration",
    "KernelDistanceFiltration",
    "PersistenceProfile",
    "PrivacyAccountant",
    "PrivacyBudgetExceeded",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateBettiNumbers",
    "PrivatePersistence",
    "audit_epsilon",
    "bottleneck_distance",
    "distance_to_measure",
]

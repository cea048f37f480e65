"""Exact and private persistence diagrams of filtrations, and distances between diagrams.

Private diagrams are drawn from the exponential mechanism of the bottleneck distance. The draw is
exact: it uses integer arithmetic on a public grid. The distances include versions that are
invariant under a shift or a dilation of one diagram.
"""

from sklearn_dptda.persistence._cloud_resamples import CloudResamples
from sklearn_dptda.persistence._cubical import CubicalPersistence
from sklearn_dptda.persistence._diagram_posterior import DiagramPosterior
from sklearn_dptda.persistence._error_bounds import DiagramErrors
from sklearn_dptda.persistence._error_statement import beyond_noise, not_empty
from sklearn_dptda.persistence._feature_regions import FeatureRegion, feature_regions
from sklearn_dptda.persistence._persistence_profile import PersistenceProfile
from sklearn_dptda.persistence._private_betti_numbers import PrivateBettiNumbers
from sklearn_dptda.persistence._private_persistence import PrivatePersistence
from sklearn_dptda.persistence._shifted import (
    dilation_dissimilarity,
    shift_invariant_bottleneck_distance,
)
from sklearn_dptda.utils._distances import bottleneck_distance, wasserstein_distance

__all__ = [
    "CloudResamples",
    "CubicalPersistence",
    "DiagramErrors",
    "DiagramPosterior",
    "FeatureRegion",
    "PersistenceProfile",
    "PrivateBettiNumbers",
    "PrivatePersistence",
    "beyond_noise",
    "bottleneck_distance",
    "dilation_dissimilarity",
    "feature_regions",
    "not_empty",
    "shift_invariant_bottleneck_distance",
    "wasserstein_distance",
]

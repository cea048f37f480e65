"""What the papers print: their algorithms, for comparisons with ours, and their bounds and scales.

The estimators release private data by the published mechanisms. The functions release nothing: they
compute error bounds and error floors of private diagrams, clouds that attain sensitivities, scales
of metric spaces, accuracy bounds, and optimal mechanisms, as printed or as they follow from it.
"""

from sklearn_dptda.metric_privacy._entropic_scale import ScaleBounds, entropic_scale
from sklearn_dptda.published._accuracy_bounds import (
    AccuracyBounds,
    accuracy_bounds,
    optimal_mechanism,
    privacy_parameter,
)
from sklearn_dptda.published._detection_limit import DetectionLimit, detection_limit
from sklearn_dptda.published._diagram_errors import (
    bottleneck_error_floor,
    mean_error_floor,
    published_error_bound,
    published_error_floor,
    sampling_error_bound,
)
from sklearn_dptda.published._dp_cube import DPCube
from sklearn_dptda.published._published_mixture import (
    PublishedMerging,
    PublishedMixture,
    published_linkage,
)
from sklearn_dptda.published._published_persistence import PublishedPersistence
from sklearn_dptda.published._scales import (
    baire_diametric_scale,
    baire_scale,
    diametric_scale,
    doubling_scale,
    lipschitz_scale,
    measure_scale,
    normed_scale,
    outer_scale,
    packing_number,
)
from sklearn_dptda.published._worst_cases import (
    cech_midpoint_case,
    cech_worst_case,
    dtm_midpoint_case,
    dtm_worst_case,
    dtm_worst_case_loop,
    sensitivity_cech,
)

__all__ = [
    "AccuracyBounds",
    "DPCube",
    "DetectionLimit",
    "PublishedMerging",
    "PublishedMixture",
    "PublishedPersistence",
    "ScaleBounds",
    "accuracy_bounds",
    "baire_diametric_scale",
    "baire_scale",
    "bottleneck_error_floor",
    "cech_midpoint_case",
    "cech_worst_case",
    "detection_limit",
    "diametric_scale",
    "doubling_scale",
    "dtm_midpoint_case",
    "dtm_worst_case",
    "dtm_worst_case_loop",
    "entropic_scale",
    "lipschitz_scale",
    "mean_error_floor",
    "measure_scale",
    "normed_scale",
    "optimal_mechanism",
    "outer_scale",
    "packing_number",
    "privacy_parameter",
    "published_error_bound",
    "published_error_floor",
    "published_linkage",
    "sampling_error_bound",
    "sensitivity_cech",
]

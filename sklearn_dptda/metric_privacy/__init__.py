"""Metric privacy: loss in proportion to distance, on finite and on normed spaces."""

from sklearn_dptda.metric_privacy._accuracy_bounds import AccuracyBounds, accuracy_bounds
from sklearn_dptda.metric_privacy._closed_forms import (
    baire_scale,
    lipschitz_scale,
    measure_scale,
    normed_scale,
)
from sklearn_dptda.metric_privacy._entropic_scale import (
    diametric_scale,
    doubling_scale,
    entropic_scale,
    outer_scale,
    packing_number,
)
from sklearn_dptda.metric_privacy._exponential import MetricExponentialMechanism
from sklearn_dptda.metric_privacy._k_norm import KNormMechanism
from sklearn_dptda.metric_privacy._metric_guarantee import MetricPrivacyGuarantee
from sklearn_dptda.metric_privacy._optimal import (
    FiniteMechanism,
    optimal_mechanism,
    privacy_parameter,
)
from sklearn_dptda.metric_privacy._private_measure import PrivateMeasure
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds
from sklearn_dptda.metric_privacy._ultrametric import UltrametricMechanism

__all__ = [
    "AccuracyBounds",
    "FiniteMechanism",
    "KNormMechanism",
    "MetricExponentialMechanism",
    "MetricPrivacyGuarantee",
    "PrivateMeasure",
    "ScaleBounds",
    "UltrametricMechanism",
    "accuracy_bounds",
    "baire_scale",
    "diametric_scale",
    "doubling_scale",
    "entropic_scale",
    "lipschitz_scale",
    "measure_scale",
    "normed_scale",
    "optimal_mechanism",
    "outer_scale",
    "packing_number",
    "privacy_parameter",
]

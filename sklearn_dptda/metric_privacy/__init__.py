"""Metric privacy: loss in proportion to distance, on finite and on normed spaces.

Mechanisms choose from public candidates, add noise that falls with a norm, or release whole
measures. Scales of a space, exactly or between certified bounds, say how accurate any can be.
"""

from sklearn_dptda.metric_privacy._accuracy_bounds import AccuracyBounds, accuracy_bounds
from sklearn_dptda.metric_privacy._diametric_scale import diametric_scale
from sklearn_dptda.metric_privacy._doubling_scale import doubling_scale
from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._exponential import MetricExponentialMechanism
from sklearn_dptda.metric_privacy._finite_mechanism import FiniteMechanism, privacy_parameter
from sklearn_dptda.metric_privacy._infinite_spaces import (
    lipschitz_scale,
    measure_scale,
    normed_scale,
)
from sklearn_dptda.metric_privacy._k_norm import KNormMechanism
from sklearn_dptda.metric_privacy._metric_guarantee import MetricPrivacyGuarantee
from sklearn_dptda.metric_privacy._optimal_mechanism import optimal_mechanism
from sklearn_dptda.metric_privacy._outer_scale import outer_scale, packing_number
from sklearn_dptda.metric_privacy._private_measure import PrivateMeasure
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds
from sklearn_dptda.metric_privacy._ultrametric import UltrametricMechanism
from sklearn_dptda.metric_privacy._word_scales import baire_diametric_scale, baire_scale

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
    "baire_diametric_scale",
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

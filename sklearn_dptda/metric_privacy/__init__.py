"""Metric privacy: loss in proportion to distance, on finite and on normed spaces.

Mechanisms choose from public candidates, add noise that falls with a norm, or release whole
measures. Scales of a space, exactly or between certified bounds, say how accurate any can be.
"""

from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._exponential import MetricExponentialMechanism
from sklearn_dptda.metric_privacy._finite_mechanism import FiniteMechanism, privacy_parameter
from sklearn_dptda.metric_privacy._k_norm import KNormMechanism
from sklearn_dptda.metric_privacy._metric_mechanism import MetricPrivacyGuarantee
from sklearn_dptda.metric_privacy._private_measure import PrivateMeasure
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds
from sklearn_dptda.metric_privacy._ultrametric import UltrametricMechanism

__all__ = [
    "FiniteMechanism",
    "KNormMechanism",
    "MetricExponentialMechanism",
    "MetricPrivacyGuarantee",
    "PrivateMeasure",
    "ScaleBounds",
    "UltrametricMechanism",
    "entropic_scale",
    "privacy_parameter",
]

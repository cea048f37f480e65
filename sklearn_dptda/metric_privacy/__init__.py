"""Metric privacy: the privacy loss is proportional to a distance, on finite and on normed spaces.

The mechanisms choose from public candidates, add noise whose density falls with a norm, or release
whole measures. :mod:`sklearn_dptda.published` computes how accurate any mechanism can be.
"""

from sklearn_dptda.metric_privacy._exponential import MetricExponentialMechanism
from sklearn_dptda.metric_privacy._finite_laws import FiniteMechanism
from sklearn_dptda.metric_privacy._k_norm import KNormMechanism
from sklearn_dptda.metric_privacy._metric_measure import MetricMeasure
from sklearn_dptda.metric_privacy._metric_mechanism import MetricPrivacyGuarantee
from sklearn_dptda.metric_privacy._ultrametric import UltrametricMechanism

__all__ = [
    "FiniteMechanism",
    "KNormMechanism",
    "MetricExponentialMechanism",
    "MetricMeasure",
    "MetricPrivacyGuarantee",
    "UltrametricMechanism",
]

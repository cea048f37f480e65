"""Accuracy that some private mechanism attains, by the theorems with their constants."""

import math

from sklearn_dptda.metric_privacy._diametric_scale import diametric_scale
from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._linkage import is_ultrametric

# Sums of exp(-k / 6) and of k exp(-k / 6) over k = 1, 2, ...
_SUM = 1 / math.expm1(1 / 6)
_MOMENT = _SUM * (1 + _SUM)
# The output is r or more from the class of the input with no more than _TAIL exp(-alpha r / 6).
_TAIL = math.exp(1 / 3) / -math.expm1(-1 / 6)
_RELAXED = 7 * _TAIL ** (6 / 7)


def upper_bounds(D1, D2, alpha):
    """Each bound by its name; a constant output is the trivial branch of Theorem 4.2."""
    bounds = {"constant": float(D2.max(axis=1).min())}
    s = entropic_scale(D1, D2, alpha=alpha / 3).upper
    if D1 is D2:
        bounds["Lemma 4.1"] = bound_of_net(s, alpha)
    if is_ultrametric(D2):
        s_o = diametric_scale(D1, D2, alpha=alpha / 7).upper
        bounds["Theorem 5.1"] = s + _RELAXED * s_o
    return bounds


def bound_of_net(s, alpha):
    """What the exponential mechanism on a net errs, at the entropic scale of ``alpha / 3``."""
    return 6 * s + math.exp((1 - alpha * s) / 2) * (6 * s * _SUM + _MOMENT / alpha)

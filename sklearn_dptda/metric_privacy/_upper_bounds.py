"""Accuracy that some private mechanism attains, by the theorems with their constants."""

import math

import numpy as np

from sklearn_dptda.metric_privacy._diametric_scale import diametric_scale
from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._linkage import is_ultrametric
from sklearn_dptda.metric_privacy._packing import Traversal

# Sums of exp(-k / 6) and of k exp(-k / 6) over k = 1, 2, ...
_SUM = 1 / math.expm1(1 / 6)
_MOMENT = _SUM * (1 + _SUM)
# The output is r or more from the class of the input with no more than _TAIL exp(-alpha r / 6).
_TAIL = math.exp(1 / 3) / -math.expm1(-1 / 6)
_RELAXED = 7 * _TAIL ** (6 / 7)
# Sum of exp(k / 3 - 5 (k - 1) / 14) over shells k = 1, 2, ...: as many outputs, as likely and far.
_SHELLS = math.exp(5 / 14) / math.expm1(1 / 42)


def upper_bounds(D1, D2, alpha):
    """Each bound by its name; a constant output is the trivial branch of Theorem 4.2.

    Those that are named by metrics are proved in the project's theory of metric privacy.
    """
    s = entropic_scale(D1, D2, alpha=alpha / 3).upper
    s_o = diametric_scale(D1, D2, alpha=alpha / 7).upper
    bounds = {"constant": float(D2.max(axis=1).min())}
    if D1 is D2:
        bounds["Lemma 4.1"] = bound_of_net(s, alpha)
        bounds["one metric"] = 21 * s + _SHELLS * s_o
    if is_ultrametric(D2):
        bounds["Theorem 5.1"] = s + _RELAXED * s_o
    bounds["two metrics"] = bound_of_clusters(s, s_o, len(Traversal(D2).net(s)))
    return bounds


def bound_of_net(s, alpha):
    """What the exponential mechanism on a net errs, at the entropic scale of ``alpha / 3``."""
    return 6 * s + math.exp((1 - alpha * s) / 2) * (6 * s * _SUM + _MOMENT / alpha)


def bound_of_clusters(s, s_o, n_centres):
    """What the relaxed law on random clusters errs, around the centres of a net at ``s``."""
    harmonic = float((1 / np.arange(1, n_centres + 1)).sum())
    return s * (1 + 2 * harmonic) + math.e * _SHELLS * s_o

"""Noise, calibration, guarantees, budgets and audits.

All other packages build on this one. It imports nothing from the rest of the package but types.
"""

from sklearn_dptda.privacy import neighbours
from sklearn_dptda.privacy._accountant import PrivacyAccountant
from sklearn_dptda.privacy._audit import AuditResult, audit_epsilon
from sklearn_dptda.privacy._calibration import (
    bounded_range_rho,
    gaussian_delta,
    gaussian_mu,
    pure_rho,
    zcdp_epsilon,
    zcdp_rho,
)
from sklearn_dptda.privacy._choice import private_choice
from sklearn_dptda.privacy._estimator import (
    PrivacyTags,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._fixed_point import FixedPoint, Sensitivity
from sklearn_dptda.privacy._guarantee import PrivacyGuarantee, PrivacyLoss
from sklearn_dptda.privacy._noise import NoiseSource
from sklearn_dptda.privacy._other_libraries import make_measurement
from sklearn_dptda.privacy._risk import LossLaw, PrivacyRisk
from sklearn_dptda.privacy._spend_history import SpendHistory
from sklearn_dptda.privacy._warnings import (
    NoiseWarning,
    PrivacyBudgetExceeded,
    PrivacyLeakWarning,
    PrivacyLedgerError,
)

__all__ = [
    "AuditResult",
    "FixedPoint",
    "LossLaw",
    "NoiseSource",
    "NoiseWarning",
    "PrivacyAccountant",
    "PrivacyBudgetExceeded",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivacyLedgerError",
    "PrivacyLoss",
    "PrivacyRisk",
    "PrivacyTags",
    "PrivateEstimatorMixin",
    "Sensitivity",
    "SpendHistory",
    "audit_epsilon",
    "bounded_range_rho",
    "gaussian_delta",
    "gaussian_mu",
    "make_measurement",
    "neighbours",
    "private_choice",
    "pure_rho",
    "zcdp_epsilon",
    "zcdp_rho",
]

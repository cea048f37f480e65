"""Guarantees that tests state, and payments for many of them in one transaction."""

from sklearn_dptda.privacy import PrivacyGuarantee
from sklearn_dptda.privacy._ledger import Payment

STATED = {"adjacency": "replace-one", "unit": "one row", "mechanism": "noise", "seeded": False}


def guarantee(epsilon=1.0, delta=0.0, **more):
    return PrivacyGuarantee(epsilon, delta, released="a number", **{**STATED, **more})


def pay_ahead(accountant, releases):
    """Pay (guarantee, estimator, count) triples, all or none."""
    each = ((Payment.of(guarantee, name), count) for guarantee, name, count in releases)
    accountant._ledger.spend([payment for payment, count in each for _ in range(count)])

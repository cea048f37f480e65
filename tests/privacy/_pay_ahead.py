"""Payments for many releases in one transaction."""

from sklearn_dptda.privacy._ledger import Payment


def pay_ahead(accountant, releases):
    """Pay (guarantee, estimator, count) triples, all or none."""
    each = ((Payment.of(guarantee, name), count) for guarantee, name, count in releases)
    accountant._ledger.spend([payment for payment, count in each for _ in range(count)])

"""What a notebook shows below a private estimator: its promise, its budget, its error."""

from html import escape

from sklearn_dptda.privacy._warnings import PrivacyLedgerError

_STYLE = "font-size:.92em;padding:.2em .8em;max-width:60em"


def promise_html(estimator, accountant):
    """Guarantee and error statement of a fitted estimator, and what is left of its budget."""
    parts = []
    guarantee = getattr(estimator, "privacy_guarantee_", None)
    if guarantee is not None:
        parts.append(guarantee._repr_html_())
    for words in (_error(estimator), _budget(accountant)):
        if words:
            parts.append(f'<div style="{_STYLE}">{escape(words)}</div>')
    return "".join(parts)


def _error(estimator):
    """How far a release is off, where the fitted estimator says so in words or half widths."""
    statement = getattr(estimator, "error_statement_", "")
    widths = getattr(estimator, "half_widths_", None)
    if statement or widths is None:
        return statement
    return (
        f"With a probability of {estimator.confidence:.4g} all errors of a release are at most "
        f"{max(widths):.3g}."
    )


def _budget(accountant):
    if accountant is None:
        return "No accountant: nobody keeps count of what is released."
    total = f"epsilon={accountant.epsilon:g}, delta={accountant.delta:g}"
    try:
        left = accountant.remaining()
    except PrivacyLedgerError as error:
        return f"Budget of {total}; its ledger cannot be read: {error}"
    return f"Budget of {total}; left: epsilon={left.epsilon:.6g}, delta={left.delta:.6g}."

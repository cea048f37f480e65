"""Checks of the public numbers that bounds of errors are made of."""

import math

from sklearn_dptda.privacy._parameters import quoted


def check_positive(**numbers: float) -> None:
    """Refuse, by name, what is no positive finite number."""
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive number; got {quoted(value)}.")


def check_from_one(**numbers: float) -> None:
    """Refuse, by name, what is below one."""
    for name, value in numbers.items():
        if not value >= 1:
            raise ValueError(f"{name} must be at least 1; got {quoted(value)}.")


def check_loss(epsilon: float) -> None:
    """Refuse a privacy loss that is not positive; it may be infinite."""
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive; got {quoted(epsilon)}.")


def check_confidence(confidence: float) -> None:
    """Refuse what is no probability between zero and one."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1; got {quoted(confidence)}.")

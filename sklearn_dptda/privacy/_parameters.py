"""Parameters of estimators: what errors, ledgers and guarantees may say of them.

A parameter may hold records by mistake, as in ``groups=table["patient_id"]``. Errors therefore
quote numbers and short texts alone, and name everything else by its type and length.
"""

import inspect
import math
from numbers import Number, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Characters of the longest text that is quoted, such as the name of a method.
_LONGEST_TEXT = 40
# Numbers of the longest tuple that is quoted, such as (low, high).
_LONGEST_TUPLE = 3
# Parameters that are of no use in a ledger, or secret.
_NOT_RECORDED = {"accountant", "random_state", "n_jobs", "verbose"}


def quoted(value: Any) -> str:
    """Say what the value of a parameter is, without quoting what may be records."""
    if value is None or isinstance(value, Number):
        return repr(value)
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT:
        return repr(value)
    few = isinstance(value, tuple) and len(value) <= _LONGEST_TUPLE
    if few and all(isinstance(item, Number) for item in value):
        return repr(value)
    if inspect.isclass(value) or inspect.isroutine(value):
        return f"the {type(value).__name__} {getattr(value, '__name__', '')}".rstrip()
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    try:
        return f"{name} of length {len(value)}"
    except TypeError:
        return name


def validate_quoting(estimator: Any) -> None:
    """Check the parameters of an estimator; what is refused is named, and no record quoted."""
    try:
        BaseEstimator._validate_params(estimator)
    except ValueError as error:
        # "The 'name' parameter of Kind must be ... Got value instead."
        rule, _, _ = str(error).partition(" Got ")
        value = estimator.get_params(deep=False)[rule.split("'")[1]]
        raise type(error)(f"{rule} Got {quoted(value)} instead.") from None


class QuotedParametersMixin:
    """Mixin for exact estimators whose parameters are refused without a quotation of records."""

    _validate_params = validate_quoting


def comparable(value: Any) -> Any:
    """A parameter in what pickles and compares: of a function its name, of arrays their numbers."""
    if callable(value):
        kind = value if hasattr(value, "__qualname__") else type(value)
        return f"{kind.__module__}.{kind.__qualname__}"
    if value is None or isinstance(value, str | Real):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return repr(value)
    return repr(value) if array.dtype == object else array.tolist()


def public_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Parameters that differ from their defaults; of functions the names."""
    signature = inspect.signature(type(estimator)).parameters
    return {
        name: comparable(value) if callable(value) else value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NOT_RECORDED
        and (name not in signature or repr(value) != repr(signature[name].default))
    }


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

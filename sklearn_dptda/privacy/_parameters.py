"""Parameters of estimators, and how errors, ledgers and guarantees may show them.

A parameter may hold records by mistake, as in ``groups=table["patient_id"]``. Error messages
therefore quote only numbers and short strings, and describe everything else by type and length.
"""

import inspect
import math
from numbers import Number, Real
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from sklearn.base import BaseEstimator

from sklearn_dptda.privacy._every_estimator import EstimatorMixin

# Length of the longest string that is quoted, such as the name of a method.
_LONGEST_TEXT = 40
# Length of the longest tuple of numbers that is quoted, such as (low, high).
_LONGEST_TUPLE = 3
# Parameters that are secret or not useful in a ledger.
_NOT_RECORDED = {"accountant", "random_state", "n_jobs", "verbose"}


def quoted(value: Any) -> str:
    """Describe the value of a parameter without quoting values that may be records."""
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
    """Check the parameters of an estimator; error messages do not quote records."""
    try:
        # Estimators of users need not declare constraints.
        if hasattr(estimator, "_parameter_constraints"):
            BaseEstimator._validate_params(estimator)
    except ValueError as error:
        # The message is "The 'name' parameter of Kind must be ... Got value instead."
        rule, _, _ = str(error).partition(" Got ")
        value = estimator.get_params(deep=False)[rule.split("'")[1]]
        raise type(error)(f"{rule} Got {quoted(value)} instead.") from None


class QuotedParametersMixin(EstimatorMixin):
    """Mixin for exact estimators. Error messages about their parameters do not quote records."""

    _validate_params = validate_quoting


def comparable(value: Any) -> Any:
    """Convert a parameter to a value that can be pickled and compared.

    A function is replaced by its name, and an array by a list of its numbers.
    """
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
    """Parameters that differ from their defaults. Functions are replaced by their names."""
    signature = inspect.signature(type(estimator)).parameters
    return {
        name: comparable(value) if callable(value) else value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NOT_RECORDED
        and (name not in signature or repr(value) != repr(signature[name].default))
    }


def check_positive(**numbers: float) -> None:
    """Raise ValueError, with the name, if a number is not positive and finite."""
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive number; got {quoted(value)}.")


def check_from_one(**numbers: float) -> None:
    """Raise ValueError, with the name, if a number is below 1."""
    for name, value in numbers.items():
        if not value >= 1:
            raise ValueError(f"{name} must be at least 1; got {quoted(value)}.")


def check_loss(epsilon: float) -> None:
    """Raise ValueError if a privacy loss is not positive. It may be infinite."""
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive; got {quoted(epsilon)}.")


def check_confidence(confidence: float) -> None:
    """Raise ValueError if ``confidence`` is not a number between 0 and 1."""
    if not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise ValueError(f"confidence must be between 0 and 1; got {quoted(confidence)}.")


def check_sparse(matrix: Any, name: str = "X") -> None:
    """Raise ValueError if the arrays of a sparse matrix do not describe a matrix of its shape.

    SciPy's compiled code trusts these arrays, so that a damaged or crafted file could make it read
    and write outside of them. Call this function before anything else is done with a sparse matrix.
    """
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            parts = matrix.indptr, matrix.indices
            sound = all(part.dtype.kind in "iu" for part in parts)
            if sound:
                matrix.check_format(full_check=True)
                # SciPy compares differences, which can overflow, and only if there are entries.
                ends = matrix.indptr
                sound = ends.min() >= 0 and ends.max() <= len(matrix.indices)
        else:
            entries, sound = matrix.tocoo(), True
            if entries.ndim == 2:
                # The constructor compares all indices with the shape.
                coo_array((entries.data, (entries.row, entries.col)), shape=entries.shape)
    except (ValueError, TypeError, LookupError, ArithmeticError):
        sound = False
    if not sound:
        raise ValueError(
            f"{name} is not a valid sparse matrix: its arrays of indices contradict its shape. "
            "Create it again from its source."
        )

"""Tables of private rows: checked, and errors that never quote a value."""

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.utils._lossy import refuse_lossy

# What scikit-learn or NumPy say, and what is said here: without the values that they quote.
_QUOTING = (
    (r"(?s)\narray=.*\.\n(?=Reshape)", " "),
    (r"(?s)(Complex data not supported).*", r"\1"),
    (r"(?s)could not convert string to float: .*", "X contains strings that are no numbers."),
    (r"(?s)invalid literal for .*", "X contains strings that are no numbers."),
)


def check_rows(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> FloatArray:
    """Validate a table by scikit-learn's ``validate_data``, and keep its values out of errors.

    Returns it as float64; ValueError if it is refused, NaN and infinity included.
    """
    refuse_lossy(X, complex_too=False)
    try:
        rows: FloatArray = validate_data(estimator, X, dtype=np.float64, **options)
    except ValueError as error:
        raise ValueError(without_values(str(error))) from None
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise ValueError("X contains NaN or infinity.")
    return rows


def without_values(message: str) -> str:
    """A message of scikit-learn without the values of the array that it quotes."""
    for pattern, replacement in _QUOTING:
        message = re.sub(pattern, replacement, message)
    return message

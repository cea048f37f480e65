"""Tables of private rows: checked, and errors that never quote a value."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.utils._groups import without_column
from sklearn_dptda.utils._lossy import HOLDS_DATES, refuse_lossy

# What scikit-learn or NumPy say, and what is said here: without the values that they quote.
_QUOTING = (
    (r"(?s)\narray=.*\.\n(?=Reshape)", " "),
    (r"(?s)(Complex data not supported).*", r"\1"),
    (r"(?s)could not convert string to float: .*", "X contains strings that are no numbers."),
    (r"(?s)invalid literal for .*", "X contains strings that are no numbers."),
)
# Of objects that NumPy takes no number from, those of Python and pandas that are dates or times.
_DATES = re.compile(
    r"not '(?:\w+\.)*(date|datetime|time|timedelta|Timestamp|Timedelta|Period|NaTType)'"
)


def check_rows(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> FloatArray:
    """Validate a table by scikit-learn's ``validate_data``, and keep its values out of errors.

    Returns it as float64; ValueError if it is refused, NaN and infinity included. A column that
    says whose a row is, by the estimator's ``groups``, is no feature.
    """
    X = without_column(X, getattr(estimator, "groups", None))
    refuse_lossy(X, complex_too=False)
    with without_quotes():
        rows: FloatArray = validate_data(estimator, X, dtype=np.float64, **options)
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise ValueError("X contains NaN or infinity.")
    return rows


@contextmanager
def without_quotes() -> Iterator[None]:
    """Keep what scikit-learn and NumPy quote of an array out of their errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(without_values(str(error))) from None
    except TypeError as error:
        if _DATES.search(str(error)):
            raise ValueError(f"X {HOLDS_DATES}") from None
        raise


def without_values(message: str) -> str:
    """A message of scikit-learn without the values of the array that it quotes."""
    for pattern, replacement in _QUOTING:
        message = re.sub(pattern, replacement, message)
    return message

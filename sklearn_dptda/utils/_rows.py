"""Tables of private rows: checked, and errors that never quote a value."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.privacy._warnings import code_of
from sklearn_dptda.utils._groups import without_column
from sklearn_dptda.utils._lossy import HOLDS_DATES, NOT_FINITE, refuse_lossy

# What scikit-learn or NumPy say, and what is said here: without the values that they quote.
_QUOTING = (
    (r"(?s)\narray=.*\.\n(?=Reshape)", " "),
    (r"(?s)(Complex data not supported).*", r"\1"),
    (r"(?s)could not convert string to float: .*", "X contains strings that are no numbers."),
    # They recommend imputers.
    (r"(?s)(Input )?X contains (NaN|infinity).*", f"X contains {NOT_FINITE}"),
    (r"(?s)float\(\) argument must be .* not 'NAType'", f"X contains {NOT_FINITE}"),
    (r"(?s)invalid literal for .*", "X contains strings that are no numbers."),
)
# Code whose messages are known: ours, and what reads arrays for it.
_KNOWN = code_of(np, scipy, sklearn)
# Of objects that NumPy takes no number from, those of Python and pandas that are dates or times.
_DATES = re.compile(
    r"not '(?:\w+\.)*(date|datetime|time|timedelta|Timestamp|Timedelta|Period|NaTType)'"
)


def check_rows(estimator: BaseEstimator, X: ArrayLike, **options: Any) -> FloatArray:
    """Validate a table by scikit-learn's ``validate_data``, and keep its values out of errors.

    Returns it as float64; ValueError if it is refused, NaN and infinity included. A column that
    says whose a row is, by the estimator's ``groups``, is no feature.
    """
    with without_quotes():
        X = without_column(X, getattr(estimator, "groups", None))
        refuse_lossy(X, complex_too=False)
        rows: FloatArray = validate_data(estimator, X, dtype=np.float64, **options)
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise ValueError(f"X contains {NOT_FINITE}")
    return rows


@contextmanager
def without_quotes(name: str = "X") -> Iterator[None]:
    """Keep the values of records out of what is said while they are read, by whatever code."""
    try:
        with silent_arithmetic():
            yield
    except Exception as error:
        raise without_values(error, name) from None


def without_values(error: Exception, name: str = "X") -> Exception:
    """What may be told of an error that was raised while records were read.

    What scikit-learn and NumPy say, without the values that they quote; of other code, such as a
    reader of files, the type of the error alone.
    """
    message = str(error)
    for pattern, replacement in _QUOTING:
        message = re.sub(pattern, replacement, message)
    if isinstance(error, TypeError) and _DATES.search(message):
        return ValueError(f"{name} {HOLDS_DATES}")
    if message != str(error):
        return ValueError(message)
    if _is_known(error):
        return error
    return ValueError(f"{name} could not be read ({type(error).__name__}).")


def _is_known(error):
    """Whether an error is a refusal by code whose messages are known, and that called no other."""
    frames = walk_tb(error.__traceback__)
    return type(error) in (ValueError, TypeError) and all(
        frame.f_code.co_filename.startswith(_KNOWN) for frame, _ in frames
    )

"""What may be said about records while they are read."""

import contextlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

import numpy as np
import scipy
import sklearn

from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.privacy._warnings import code_of

HOLDS_DATES = (
    "holds dates or times: turn them into numbers, such as days since a public day, first."
)
NOT_FINITE = (
    "NaN or infinity. Fill missing values with public constants: an imputer learns exact "
    "statistics of the records."
)
# What scikit-learn or NumPy say, and what is said here: without the values that they quote.
_QUOTING = (
    (r"(?s)\narray=.*\.\n(?=Reshape)", " "),
    (r"(?s)(Complex data not supported).*", r"\1"),
    (r"(?s)could not convert string .*", "X contains strings that are no numbers."),
    # They recommend imputers.
    (r"(?s)(Input )?X contains (NaN|infinity).*", f"X contains {NOT_FINITE}"),
    (r"(?s)float\(\) argument must be .* not 'NAType'", f"X contains {NOT_FINITE}"),
    (r"(?s)invalid literal for .*", "X contains strings that are no numbers."),
)
# Code whose messages are known: ours, and what reads arrays for it.
_KNOWN = (*code_of(np, scipy, sklearn), contextlib.__file__)
# What NumPy says of an object of Python or pandas that is a date or a time.
_DATES = re.compile(
    r"not '(?:\w+\.)*(date|datetime|time|timedelta|Timestamp|Timedelta|Period|NaTType)'"
)


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


def _is_known(error: Exception) -> bool:
    """Whether an error is a refusal by code whose messages are known, and that called no other."""
    frames = walk_tb(error.__traceback__)
    return type(error) in (ValueError, TypeError) and all(
        frame.f_code.co_filename.startswith(_KNOWN) for frame, _ in frames
    )

"""Tables of private rows: checked, and errors that never quote a value."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.utils._groups import without_column
from sklearn_dptda.utils._lossy import refuse_lossy
from sklearn_dptda.utils._reading import NOT_FINITE, without_quotes


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

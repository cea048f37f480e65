"""What an estimator lets out of the data curator's hands."""

from numbers import Number

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags


def release(estimator, X):
    """Fit an estimator and return what it releases.

    Parameters
    ----------
    estimator : estimator
        Fitted in place.
    X : object
        Its input.

    Returns
    -------
    object
        What ``transform`` returns for estimators that release there; the
        learnt numbers, in the order of their names, for those that release
        in ``fit``.
    """
    if releases_in_transform(estimator):
        return estimator.fit_transform(X)
    return learnt_numbers(estimator.fit(X))


def releases_in_transform(estimator):
    """Whether it is ``transform``, not ``fit``, that draws the release."""
    if isinstance(estimator, Pipeline):
        return hasattr(estimator, "transform")
    privacy = getattr(get_tags(estimator), "privacy", None)
    if privacy is not None:
        return privacy.releases == "transform"
    return hasattr(estimator, "fit_transform")


def learnt_numbers(estimator):
    """Arrays and numbers that an estimator has learnt, private ones of its own left out.

    Parameters
    ----------
    estimator : fitted estimator
        Of a pipeline, its last step.

    Returns
    -------
    list of ndarray
    """
    if isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    names = sorted(n for n in vars(estimator) if n.endswith("_") and not n.startswith("_"))
    values = [getattr(estimator, name) for name in names]
    return [np.asarray(value) for value in values if _is_numeric(value)]


def _is_numeric(value):
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return isinstance(value, Number)

"""What an estimator lets out of the data curator's hands, as numbers."""

import pickle
import zlib
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._guarantee import PrivacyGuarantee
from sklearn_dptda.privacy._noise import spawn_seeds

# Attributes that scikit-learn sets while an estimator is fitted, to report its progress.
_OF_CALLBACKS = ("_parent_callback_ctx", "_callback_fit_ctx", "_skl_callbacks")
# Floats hold integers exactly up to here.
_LARGEST_EXACT_INTEGER = 2**53


def release(estimator: Any, X: Any) -> Any:
    """Fit an estimator in place and return what it releases.

    Of estimators that release in ``transform``, what that returns; of those that release in
    ``fit``, what they have learnt, by name. Those that protect labels take pairs of rows and
    labels.
    """
    if protects_labels(estimator):
        return learnt(estimator.fit(*X))
    if releases_in_transform(estimator):
        return estimator.fit_transform(X)
    return learnt(estimator.fit(X))


def seeded_clone(estimator: Any, seed: int | None) -> Any:
    """Clone an estimator, and give each ``random_state``, nested ones too, a seed of its own.

    None stands for the operating system's entropy.
    """
    copy = clone(estimator)
    names = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
    # Noise that two steps share could cancel.
    return copy.set_params(**dict(zip(names, spawn_seeds(seed, len(names)), strict=True)))


def protects_labels(estimator: Any) -> bool:
    """Whether a record is a row together with its label."""
    if isinstance(estimator, Pipeline):
        return protects_labels(estimator[-1])
    return bool(getattr(getattr(get_tags(estimator), "privacy", None), "labels", False))


def releases_in_transform(estimator: Any) -> bool:
    """Whether it is ``transform``, not ``fit``, that draws the release.

    Private estimators say so in their tags; of others, whoever has a
    ``fit_transform`` is taken to release there. A pipeline does what its last
    step does.
    """
    if isinstance(estimator, Pipeline):
        return releases_in_transform(estimator[-1])
    privacy = getattr(get_tags(estimator), "privacy", None)
    if privacy is not None:
        return bool(privacy.releases == "transform")
    return hasattr(estimator, "fit_transform")


def learnt(estimator: Any) -> dict[str, Any]:
    """Public attributes that an estimator, of a pipeline its last step, has learnt, by name."""
    if isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name != "privacy_guarantee_"
    }


def state(estimator: Any) -> dict[str, Any]:
    """Everything that a fitted estimator holds besides its parameters, hidden or not, by name."""
    others = {*estimator.get_params(deep=False), *_OF_CALLBACKS}
    return {name: value for name, value in vars(estimator).items() if name not in others}


def as_arrays(value: Any) -> list[FloatArray]:
    """Turn any release into a list of arrays of floats; nothing is dropped.

    Containers are walked, sparse matrices and linear operators made dense, complex numbers and
    long integers split, text and whatever else pickles replaced by a checksum; ValueError where
    an object can neither be walked nor pickled. Guarantees are no release.
    """
    if isinstance(value, PrivacyGuarantee):
        return []
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _numbers(value)
    if isinstance(value, Number | np.generic) and not isinstance(value, str | bytes):
        return _numbers(np.asarray(value))
    if issparse(value):
        return _numbers(value.toarray())
    if isinstance(value, LinearOperator):
        return _numbers(value @ np.eye(value.shape[1]))
    if isinstance(value, dict):
        keys = sorted(value, key=repr)
        return [_checksum([repr(key) for key in keys])] + [
            part for key in keys for part in as_arrays(value[key])
        ]
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) and all(isinstance(item, Number) for item in value):
            return _numbers(np.asarray(value))
        return [part for item in value for part in as_arrays(item)]
    if isinstance(value, BaseEstimator):
        return as_arrays(state(value))
    return [_checksum(value)]


def _numbers(array: NDArray[Any]) -> list[FloatArray]:
    if array.dtype.kind == "c":
        return [array.real.astype(float), array.imag.astype(float)]
    if (
        array.dtype.kind in "iu"
        and array.size
        and np.abs(array.astype(float)).max() >= _LARGEST_EXACT_INTEGER
    ):
        return [(array >> 32).astype(float), (array & (2**32 - 1)).astype(float)]
    if array.dtype.kind in "biuf":
        return [array.astype(float)]
    return [_checksum(array.tolist())]


def _checksum(value: object) -> FloatArray:
    try:
        return np.array(float(zlib.crc32(pickle.dumps(value, protocol=4))))
    except Exception:
        raise ValueError(
            f"a release of type {type(value).__name__} is no array of numbers: pass summary, a "
            "function from a release to a vector."
        ) from None

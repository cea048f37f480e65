"""The release of an estimator: its arrays of numbers, and digests of what determines it.

The estimator with its parameters, and the records, determine a release.
"""

import pickle
import sys
import zlib
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from numbers import Number
from pathlib import Path
from types import FunctionType
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
# Floats represent integers exactly up to this number.
_LARGEST_EXACT_INTEGER = 2**53
# Parameters of the estimators of this package that do not change a release.
_NOT_DIGESTED = {"accountant", "n_jobs", "verbose"}


def release(estimator: Any, X: Any) -> Any:
    """Fit an estimator in place and return its release.

    For estimators that release in ``transform``, this is what ``fit_transform`` returns. For
    estimators that release in ``fit``, it is a dictionary of the fitted attributes. For estimators
    that protect labels, ``X`` is a pair of rows and labels.
    """
    if protects_labels(estimator):
        return learnt(estimator.fit(*X))
    if releases_in_transform(estimator):
        return estimator.fit_transform(X)
    return learnt(estimator.fit(X))


def seeded_clone(estimator: Any, seed: int | None) -> Any:
    """Clone an estimator and set each ``random_state``, including nested ones, to its own seed.

    None stands for the operating system's entropy.
    """
    copy = clone(estimator)
    names = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
    # Two steps must not share a seed, because their noise could cancel.
    return copy.set_params(**dict(zip(names, spawn_seeds(seed, len(names)), strict=True)))


def protects_labels(estimator: Any) -> bool:
    """Whether a record of the estimator is a row together with its label."""
    if isinstance(estimator, Pipeline):
        return protects_labels(estimator[-1])
    return bool(getattr(getattr(get_tags(estimator), "privacy", None), "labels", False))


def releases_in_transform(estimator: Any) -> bool:
    """Whether ``transform`` draws the release, and not ``fit``.

    Private estimators state this in their tags. For other estimators, the answer is True if they
    have a ``fit_transform``. A pipeline behaves like its last step.
    """
    if isinstance(estimator, Pipeline):
        return releases_in_transform(estimator[-1])
    privacy = getattr(get_tags(estimator), "privacy", None)
    if privacy is not None:
        return bool(privacy.releases == "transform")
    return hasattr(estimator, "fit_transform")


def learnt(estimator: Any) -> dict[str, Any]:
    """Public fitted attributes of an estimator, or of the last step of a pipeline, by name."""
    if isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name != "privacy_guarantee_"
    }


def state(estimator: Any) -> dict[str, Any]:
    """All attributes of a fitted estimator except for its parameters, also hidden ones, by name."""
    others = {*estimator.get_params(deep=False), *_OF_CALLBACKS}
    return {name: value for name, value in vars(estimator).items() if name not in others}


def as_arrays(value: Any) -> list[FloatArray]:
    """Convert any release to a list of arrays of floats, without dropping anything.

    Containers are traversed. Sparse matrices and linear operators are made dense. Complex numbers
    and long integers are split into two arrays. Strings and other objects that can be pickled are
    replaced by a checksum. Raises ValueError for an object that can neither be traversed nor
    pickled. Guarantees are not a part of the release.
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
    if is_dataclass(value) and not isinstance(value, type):
        return as_arrays([getattr(value, part.name) for part in fields(value)])
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
            f"a release of type {type(value).__name__} is not an array of numbers. Pass summary=, "
            "a function from a release to a vector."
        ) from None


def digest_of(value: object) -> bytes:
    """Digest of objects and of the code of this package, the same in every process.

    A function or class is described by the name under which it is imported and the version of its
    package. Raises ValueError for others, and for what cannot be pickled.
    """
    sink = sha256()
    try:
        _Describer(sink).dump((_sources(), value))
    except _NotImported as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise ValueError(
            f"X or a parameter cannot be described ({type(error).__name__}). Under a name, pass "
            "arrays, data frames, or objects that can be pickled and do not contain themselves."
        ) from None
    return sink.digest()


class _NotImported(ValueError):
    """A function or class has no name under which another process could import it."""


class _Describer(pickle.Pickler):
    """Pickler that describes objects by their values alone."""

    def __init__(self, sink: Any) -> None:
        super().__init__(_File(sink), protocol=5)
        # Do not refer to earlier objects: whether two equal strings are the same object differs
        # between processes.
        self.fast = True

    def reducer_override(self, value: Any) -> Any:
        """Describe objects whose pickle depends on something else, or on too little."""
        if value is _described:
            return NotImplemented
        if isinstance(value, type | FunctionType):
            return _described, _imported(value)
        if isinstance(value, np.ma.MaskedArray):
            return _described, (np.asarray(value.data), np.ma.getmaskarray(value))
        if type(value) in (np.ndarray, np.memmap):
            if value.dtype.hasobject:
                return _described, (value.shape, _ordered(value.ravel().tolist()))
            # The order in memory decides nothing, nor does the file of an array that is mapped.
            flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            content = pickle.PickleBuffer(flat.data.toreadonly())
            return _described, (value.dtype.descr, value.shape, content)
        if hasattr(value, "get_params"):
            # ``clone`` keeps the state of frozen estimators.
            fitted = _ordered(sorted(state(value).items()))
            return _described, (type(value), deciding_parameters(value), fitted)
        return NotImplemented


class _File:
    """File-like object that digests everything written to it."""

    def __init__(self, sink: Any) -> None:
        self.write = sink.update


def _described(*parts: object) -> None:
    """Represent an object in a description."""


def deciding_parameters(estimator: Any) -> list[tuple[str, Any]]:
    """Return the parameters that change a release. In a class of the user, any of them may."""
    own = type(estimator).__module__.partition(".")[0] == __name__.partition(".")[0]
    ignored = _NOT_DIGESTED if own else {"accountant"}
    given = estimator.get_params(deep=False)
    return [(name, _ordered(v)) for name, v in sorted(given.items()) if name not in ignored]


def _ordered(value: Any) -> Any:
    """Replace containers by lists in a defined order."""
    if isinstance(value, dict):
        return [(_ordered(name), _ordered(part)) for name, part in value.items()]
    if isinstance(value, set | frozenset):
        return "set", sorted(map(digest_of, value))
    if type(value) in (list, tuple):
        return [_ordered(part) for part in value]
    return value


def _imported(value: Any) -> tuple[str, str, str]:
    """Return module and name of a function or class, and the version of its package."""
    module, name = str(value.__module__), value.__qualname__
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    # A wrapper may bear the name of the function that it wraps.
    if module == "__main__" or found is not value:
        raise _NotImported(
            f"{name} cannot be imported by another process, which would have to recognise it. "
            "Under a name, define functions and classes in a module."
        )
    package = sys.modules.get(module.partition(".")[0])
    return module, name, str(getattr(package, "__version__", ""))


@cache
def _sources() -> str:
    """Digest of the code of this package."""
    folder, digest = Path(__file__).parents[1], sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()

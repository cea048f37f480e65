"""Digests of what determines a release: the estimator with its parameters, and the records."""

import pickle
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from sklearn_dptda.privacy._release import state

# Parameters of the estimators of this package that do not change a release.
_NOT_DIGESTED = {"accountant", "n_jobs", "verbose"}


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

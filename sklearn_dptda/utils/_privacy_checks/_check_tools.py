"""Functions that several checks use."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias
from unittest import mock

import numpy as np
from gudhi import hera
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy import NoiseSource, PrivacyTags
from sklearn_dptda.privacy._release import as_arrays, release, state

# Action of the warnings filter.
_Action: TypeAlias = Literal["always", "error"]


def tags_of(estimator: Any) -> PrivacyTags:
    """Return the privacy tags of an estimator."""
    tags: PrivacyTags = get_tags(estimator).privacy
    return tags


def released(estimator: Any, X: Any, **parameters: Any) -> Any:
    """Return the release of a clone with some parameters changed."""
    return release(clone(estimator).set_params(**parameters), X)


def fitted(estimator: Any, X: Any, **parameters: Any) -> Any:
    """Return a clone that has released once, with some parameters changed."""
    estimator = clone(estimator).set_params(**parameters)
    release(estimator, X)
    return estimator


def release_and_state(
    estimator: Any, X: Any, random_state: int | None = None, **parameters: Any
) -> list[Any]:
    """Return the release of a clone with some parameters changed, and the state afterwards."""
    estimator = clone(estimator).set_params(random_state=random_state, **parameters)
    return [release(estimator, X), state(estimator)]


def _agree(a: Any, b: Any, same: Callable[[FloatArray, FloatArray], bool]) -> bool:
    a, b = as_arrays(a), as_arrays(b)
    return len(a) == len(b) and all(map(same, a, b))


def equal(a: Any, b: Any) -> bool:
    """Whether two releases agree, number by number."""
    return _agree(a, b, partial(np.array_equal, equal_nan=True))


def close(a: Any, b: Any) -> bool:
    """Whether two releases agree up to rounding."""

    def same(one: FloatArray, other: FloatArray) -> bool:
        return one.shape == other.shape and np.allclose(one, other, 1e-7, 1e-7, equal_nan=True)

    return _agree(a, b, same)


def distance(a: Any, b: Any) -> float:
    """Distance of two releases: bottleneck distance for diagrams, mean difference for arrays."""
    total = 0.0
    for one, other in zip(as_arrays(a), as_arrays(b), strict=True):
        if one.ndim == 2 and one.shape[1] == 2 and one.shape != other.shape:
            total += hera.bottleneck_distance(one, other, delta=0)
        elif one.shape != other.shape:
            total += abs(one.size - other.size)
        elif one.size:
            total += float(np.abs(one - other).mean())
    return total


def structure(value: Any, ragged: bool) -> Any:
    """Structure of a release, which must not depend on the records.

    It consists of types, keys and shapes. If the number of rows is itself private
    output, the first axis is left out.
    """
    if isinstance(value, dict):
        return {key: structure(item, ragged) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [structure(item, ragged) for item in value]
    shape = np.shape(value) if not hasattr(value, "shape") else value.shape
    return type(value).__name__, shape[1:] if ragged else shape


@contextmanager
def watched_noise(action: Callable[[], object]) -> Iterator[None]:
    """Call an action each time a source of noise is created in this process."""
    original = NoiseSource.__init__

    def watched(self: NoiseSource, *args: Any, **kwargs: Any) -> None:
        action()
        original(self, *args, **kwargs)

    with mock.patch.object(NoiseSource, "__init__", watched):
        yield


def _attempt(
    estimator: Any, X: Any, action: _Action = "always"
) -> tuple[Any, Exception | None, list[warnings.WarningMessage]]:
    """Return the release and the error, one of which is None, and the warnings."""
    output = None
    error: Exception | None = None
    with warnings.catch_warnings(record=True, action=action) as caught:
        try:
            output = release(estimator, X)
        except Exception as exception:
            error = exception
    return output, error, caught


def observed(estimator: Any, X: Any, action: _Action = "always") -> dict[str, Any]:
    """Return everything that an observer sees except for the numbers.

    This is the error, the warnings, the names and types of attributes, and the structure.
    """
    estimator = clone(estimator)
    output, error, caught = _attempt(estimator, X, action)
    return {
        "error": None if error is None else (type(error).__name__, str(error)),
        "warnings": [(w.category.__name__, str(w.message)) for w in caught],
        "attributes": {name: type(value).__name__ for name, value in vars(estimator).items()},
        "structure": structure(output, tags_of(estimator).ragged),
    }


def refusal(estimator: Any, X: Any) -> tuple[Exception | None, list[str]]:
    """Return the error that a release raises, or None, and the texts of its warnings."""
    _, error, caught = _attempt(estimator, X)
    return error, [str(w.message) for w in caught]

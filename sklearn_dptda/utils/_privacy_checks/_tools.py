"""Small tools that the checks share."""

import copy
import warnings
from contextlib import contextmanager
from unittest import mock

import numpy as np
from gudhi import hera
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._release import learnt_numbers, release, releases_in_transform


def tags_of(estimator):
    """Privacy tags of an estimator."""
    return get_tags(estimator).privacy


def released(estimator, X, **parameters):
    """Release of a clone with some parameters changed."""
    return release(clone(estimator).set_params(**parameters), X)


def fitted(estimator, X, **parameters):
    """Clone that has released once, with some parameters changed."""
    estimator = clone(estimator).set_params(**parameters)
    release(estimator, X)
    return estimator


def equal(a, b):
    """Whether two releases agree, number by number."""
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if hasattr(a, "toarray"):
        a, b = a.toarray(), b.toarray()
    return np.array_equal(np.asarray(a), np.asarray(b))


def close(a, b):
    """Whether two releases agree up to rounding."""
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(close, a, b))
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-7, atol=1e-7)


def distance(a, b):
    """How far two releases are apart: bottleneck for diagrams, mean change for arrays."""
    if isinstance(a, list | tuple):
        return sum(map(distance, a, b))
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.ndim == 2 and a.shape[1] == 2 and a.shape != b.shape:
        return hera.bottleneck_distance(a, b, delta=0)
    return float(np.abs(a - b).mean()) if a.size else 0.0


def structure(value, ragged):
    """Shape of a release: what may not depend on the records.

    Lists, types and widths; of arrays in a ragged release, whose number of
    rows is itself private, all axes but the first.
    """
    if isinstance(value, list | tuple):
        return [structure(item, ragged) for item in value]
    shape = np.shape(value)
    return type(value).__name__, shape[1:] if ragged else shape


def is_ragged(tags):
    """Whether numbers of rows belong to the release itself, as for diagrams."""
    return tags.input in ("functions", "clouds") and tags.releases == "transform"


@contextmanager
def watched_noise(action):
    """Call an action whenever a source of noise is opened in this process."""
    original = NoiseSource.__init__

    def watched(self, *args, **kwargs):
        action()
        original(self, *args, **kwargs)

    with mock.patch.object(NoiseSource, "__init__", watched):
        yield


def observed(estimator, X):
    """Everything but the numbers that an onlooker sees of one release.

    Returns
    -------
    dict
        Error, warnings, attribute names and the structure of the release.
    """
    estimator, error, output = clone(estimator), None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            output = release(estimator, X)
        except Exception as exception:
            error = (type(exception).__name__, str(exception))
    return {
        "error": error,
        "warnings": [(w.category.__name__, str(w.message)) for w in caught],
        "attributes": sorted(vars(estimator)),
        "structure": structure(output, is_ragged(tags_of(estimator))),
    }


def refusal(estimator, X):
    """Error that a release raises, or None; and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            release(estimator, X)
        except Exception as exception:
            return exception, [str(w.message) for w in caught]
    return None, [str(w.message) for w in caught]


def learnt_state(estimator):
    """Attributes that a release has left behind, the guarantee aside."""
    parameters = estimator.get_params(deep=False)
    return {
        name: copy.deepcopy(value)
        for name, value in vars(estimator).items()
        if name not in parameters and isinstance(value, np.ndarray)
    }


__all__ = [
    "close",
    "distance",
    "equal",
    "fitted",
    "is_ragged",
    "learnt_numbers",
    "learnt_state",
    "observed",
    "refusal",
    "released",
    "releases_in_transform",
    "structure",
    "tags_of",
    "watched_noise",
]

"""Inputs for the privacy checks, for each kind of estimator, and tools that observe releases."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias
from unittest import mock

import numpy as np
from gudhi import hera
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda._typing import Adjacency, FloatArray
from sklearn_dptda.privacy import NoiseSource, PrivacyTags
from sklearn_dptda.privacy._asking import REHEARSING
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import as_arrays, release, state
from sklearn_dptda.privacy.neighbours import (
    NeighbourPair,
    cloud_neighbours,
    function_neighbours,
    graph_neighbours,
    row_neighbours,
)

# A number in [0, 1] with digits that no computation produces by chance.
CANARY = 0.7364528190183746
_BOX = (np.zeros(2), np.ones(2))
# Finite numbers for which arithmetic overflows, underflows or changes the sign.
_EXTREMES = (1e308, -1e308, 5e-324, -0.0)
# Action of the warnings filter.
_Action: TypeAlias = Literal["always", "error"]


@dataclass(frozen=True)
class CheckData:
    """Inputs within the unit box for one kind of estimator.

    Attributes
    ----------
    X : object
        A valid input. A pair of rows and labels if both are protected.
    larger : object
        A valid input with more records.
    canary : object
        A valid input with a record whose values are ``canary_value``.
    neighbours : list of NeighbourPair
        Neighbouring inputs, valid for the adjacency of the estimator.
    invalid : dict of str to object
        Inputs that must be refused.
    outside : object or None
        An input with records outside of the unit box.
    clipped : object or None
        The same input after clipping to the unit box.
    extremes : dict of str to object
        Neighbours of ``X`` that have a record at a limit of floating point, or a
        second copy of another record.
    canary_value : float or None
        The values of a record in ``canary``. None if records cannot hold them.
    """

    X: Any
    larger: Any
    canary: Any
    neighbours: list[NeighbourPair]
    invalid: dict[str, Any]
    outside: Any = None
    clipped: Any = None
    extremes: dict[str, Any] = field(default_factory=dict)
    canary_value: float | None = CANARY


def _with(values: Any, index: Any, value: Any) -> FloatArray:
    values = np.array(values, dtype=float)
    values[index] = value
    return values


def _beside(item: Any, pairs: Iterable[NeighbourPair]) -> list[NeighbourPair]:
    """Make collections of two items: a common item, and one of a pair of neighbours."""
    return [pair._replace(first=[item, pair.first], second=[item, pair.second]) for pair in pairs]


def _rows(adjacency: Adjacency, upper: float, sensitivity: float) -> CheckData:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    outside = _with(X, 0, [-3.0, 7.0])
    invalid = {
        "NaN": _with(_with(X, 5, CANARY), (3, 0), np.nan),
        "infinity": _with(_with(X, 5, CANARY), (3, 0), np.inf),
        "one dimension": X[:, 0],
        "text": np.array([["a", "b"]] * 5, dtype=object),
        "nothing": None,
    }
    if adjacency == "replace-one":
        # Under add-remove, the number of rows is private, and an empty table may be a neighbour.
        invalid["no rows"] = X[:0]
    rows = {"a duplicate": X[1], **{f"a row of {x:g}": np.full(2, x) for x in _EXTREMES}}
    others = X if adjacency == "add-remove" else X[1:]
    return CheckData(
        X=X,
        extremes={name: np.vstack([row, others]) for name, row in rows.items()},
        larger=rng.uniform(size=(600, 2)),
        canary=_with(X, [0, 5, 30, -1], CANARY),
        neighbours=row_neighbours(30, _BOX, adjacency=adjacency),
        invalid=invalid,
        outside=outside,
        clipped=np.clip(outside, 0, 1),
    )


def _labelled(data: CheckData, adjacency: Adjacency) -> CheckData:
    """Add labels 0 and 1 to the rows, each a function of its row."""

    def pair(X: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
        return X, (X[:, 0] > 0.5).astype(np.intp)

    X, y = pair(data.X)
    neighbours = [
        each._replace(first=pair(each.first), second=pair(each.second)) for each in data.neighbours
    ]
    if adjacency == "replace-one":
        other = y.copy()
        other[0] = 1 - other[0]
        neighbours.append(NeighbourPair("another label", (X, y), (X, other)))
    invalid = {name: (bad, np.zeros(5, dtype=int)) for name, bad in data.invalid.items()}
    return replace(
        data,
        X=(X, y),
        larger=pair(data.larger),
        canary=pair(data.canary),
        neighbours=neighbours,
        invalid={
            **invalid,
            "no labels": (data.canary, None),
            "a label that is no class": (X, _with(y, 3, CANARY)),
            "a label that is missing": (X, _with(y, 3, np.nan)),
            "too few labels": (data.canary, y[1:]),
            "labels in a table": (data.canary, np.column_stack([y, y])),
        },
        extremes={name: pair(X) for name, X in data.extremes.items()},
        outside=(data.outside, y),
        clipped=(data.clipped, y),
    )


def _clouds(adjacency: Adjacency, upper: float, sensitivity: float) -> CheckData:
    table = _rows(adjacency, upper, sensitivity)
    return CheckData(
        X=[table.X, table.X[::-1] / 2],
        larger=[table.larger, table.larger[::-1] / 2],
        canary=[table.X, table.canary],
        extremes={name: [X, table.X[::-1] / 2] for name, X in table.extremes.items()},
        neighbours=_beside(table.X, cloud_neighbours(30, _BOX, adjacency=adjacency)),
        invalid={
            **{name: [table.canary, bad] for name, bad in table.invalid.items()},
            "no clouds": [],
            "not a list": 3.0,
        },
        outside=[table.outside],
        clipped=[table.clipped],
    )


def _functions(adjacency: Adjacency, upper: float, sensitivity: float) -> CheckData:
    _only_replacement("functions", adjacency)
    rng = np.random.default_rng(0)
    X = [rng.uniform(0, upper, size=(5, 4)) for _ in range(2)]
    canary = _with(_with(X[1], (2, 2), CANARY * upper), (0, 0), CANARY * upper)
    return CheckData(
        X=X,
        larger=[rng.uniform(0, upper, size=(25, 24)) for _ in range(4)],
        canary=[X[0], canary],
        neighbours=_beside(X[0], function_neighbours((4, 3), sensitivity, upper)),
        invalid={
            "NaN": [X[0], _with(canary, (0, 0), np.nan)],
            "infinity": [X[0], _with(canary, (0, 0), np.inf)],
            "an empty function": [X[0], np.zeros((0, 3))],
            "text": [np.array([["a"]])],
            "no functions": [],
            "not a list": 3.0,
        },
        canary_value=CANARY * upper,
    )


def _only_replacement(kind: str, adjacency: Adjacency) -> None:
    if adjacency != "replace-one":
        raise ValueError(
            f"there are no checks for {kind} under {adjacency!r} adjacency. Use 'replace-one'."
        )


def _graph(adjacency: Adjacency, upper: float, sensitivity: float) -> CheckData:
    _only_replacement("graph", adjacency)
    rng = np.random.default_rng(0)

    def graph(density: float) -> NDArray[np.int8]:
        above = np.triu(rng.uniform(size=(30, 30)) < density, 1)
        return (above | above.T).astype(np.int8)

    X = graph(0.2)
    crooked = X.copy()
    crooked[0, 1] = 1 - crooked[1, 0]
    return CheckData(
        X=X,
        larger=graph(0.7),
        canary=X,
        neighbours=graph_neighbours(20),
        invalid={
            "NaN": _with(X, (0, 1), np.nan),
            "weights": _with(X, (0, 1), 0.5),
            "not square": X[:, :-1],
            "not symmetric": crooked,
            "no nodes": X[:0, :0],
            "nothing": None,
        },
        canary_value=None,
    )


_MAKERS: dict[str, Callable[[Adjacency, float, float], CheckData]] = {
    "rows": _rows,
    "clouds": _clouds,
    "functions": _functions,
    "graph": _graph,
}


def make_check_data(
    tags: PrivacyTags, upper: float | None = None, sensitivity: float | None = None
) -> CheckData:
    """Make the inputs that match the privacy tags of an estimator.

    Functions have values of at most ``upper``, 1 by default. Neighbours differ by at most
    ``sensitivity``, by default one tenth of ``upper``.
    """
    if tags.input not in _MAKERS:
        raise ValueError(
            f"the tag 'input' must be one of {sorted(_MAKERS)}; got {quoted(tags.input)}."
        )
    upper = 1.0 if upper is None else upper
    sensitivity = upper / 10 if sensitivity is None else sensitivity
    data = _MAKERS[tags.input](tags.adjacency, upper, sensitivity)
    return _labelled(data, tags.adjacency) if tags.labels else data


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
    """Call an action each time a source of noise is created for records in this process."""
    original = NoiseSource.__init__

    def watched(self: NoiseSource, *args: Any, **kwargs: Any) -> None:
        if not REHEARSING.get():
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

"""Who a person is: the ids of rows and points, read, checked, and kept out of what is said."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from types import FrameType
from typing import Any, Self

import numpy as np
import sklearn.model_selection._validation as folds

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._frames import frame_library, without_quotes

_MISSING = "groups must have a number or a string for each {}; some have none."
_MIXED = "groups must be all numbers or all strings: no person is told from another otherwise."


def split_people(table: Any, column: str | None, ids: Any, what: str = "row") -> tuple[Any, Any]:
    """A table without the ids, and who each of its rows belongs to, as a list.

    The ids come from a ``column`` of a data frame, or beside the table, as ``ids``. A column of
    integers becomes an array, which takes a tenth of the time.

    Raises
    ------
    ValueError
        If both or none are there, or an id is missing, or of another kind. No id is quoted.
    """
    if column is not None and ids is not None:
        raise ValueError(
            "groups is given twice, as a parameter and beside X: leave one of them out."
        )
    if column is not None:
        names = column_names(table)
        if names.count(column) != 1 or len(names) == 1:
            raise ValueError(
                f"groups={quoted(column)} must be the name of one column of a data frame "
                "of pandas or polars, beside others."
            )
        return without_column(table, column), check_ids(_listed(table[column]), what)
    with without_quotes("groups"):
        listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(listed) != len(table):
        raise ValueError(
            f"groups has {len(listed)} entries, but X has {len(table)} {what}s: there must be one "
            "for each."
        )
    return table, check_ids(listed, what)


def _listed(column: Any) -> Any:
    if "int" in str(column.dtype).lower():
        # Where some are missing it makes floats or objects.
        array = np.asarray(column)
        if array.dtype.kind in "iu":
            return array
    return column.to_list()


def check_ids(ids: Any, what: str = "row") -> Any:
    """The ids, if all of them are numbers or all of them strings."""
    if isinstance(ids, np.ndarray):
        return ids
    kinds = {_kind(kind) for kind in set(map(type, ids))}
    # NaN differs from itself, and stands for a missing string in frames.
    if "none" in kinds or ("number" in kinds and any(i != i for i in ids)):
        raise ValueError(_MISSING.format(what))
    if len(kinds) > 1:
        raise ValueError(_MIXED)
    return ids


def _kind(kind: type) -> str:
    if issubclass(kind, str | bytes):
        return kind.__name__ if kind in (str, bytes) else "str"
    return "number" if issubclass(kind, Real) else "none"


def column_names(X: Any) -> list[Any]:
    """Names of the columns of a data frame; of others none."""
    return [] if frame_library(X) is None else list(X.columns)


def without_column(X: Any, name: str | None) -> Any:
    """A table without the columns of a name, if there is one and it has any."""
    if name is None or name not in column_names(X):
        return X
    others = [place for place, other in enumerate(X.columns) if other != name]
    return getattr(X, "iloc", X)[:, others]


def beside_ids(X: Any, groups: str | None, rows: FloatArray, names: Iterable[str]) -> Any:
    """Rows that were made of those of ``X``; a data frame with its column of ids, if it has one.

    So the next step of a pipeline knows whose they are.
    """
    if groups is None or groups not in column_names(X):
        return rows
    ids = X[groups]
    columns = dict(zip(names, rows.T, strict=True))
    library = import_module(str(frame_library(X)))
    if frame_library(X) == "polars":
        return library.DataFrame({**columns, groups: ids})
    frame = library.DataFrame(columns, index=X.index)
    frame[groups] = ids
    return frame


def check_number_of_people(n_people: int) -> None:
    """Refuse a table of one person, whose rows would be all there is."""
    if n_people < 2:
        raise ValueError(
            "groups says that all rows belong to one person: at least 2 people are needed."
        )


def check_one_label(n_people: int, n_pairs: int) -> None:
    """Refuse people of whom somebody has rows of several labels, from the numbers of both."""
    if n_pairs > n_people:
        raise ValueError(
            "y holds two labels of one person: with groups, a label is that of a person, and the "
            "same for all of her rows."
        )


def refuse_split_people(ids: list[Any], column: str | None) -> None:
    """Refuse folds of a search, or of cross-validation, that divide the rows of a person.

    What such a fold is tested on was learnt from the same people. An estimator does not know the
    folds: the calls that lead here do, and they are in the process that fits.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code, found = frame.f_code, frame.f_locals
        if code.co_filename == folds.__file__ and code.co_name in _FOLDS:
            train, test = found["train"], found["test"]
            if (everybody := _ids_of_all(frame, ids, column)) is not None:
                learnt = {everybody[place] for place in train}
                if any(everybody[place] in learnt for place in test):
                    raise ValueError(
                        "the folds split people: rows of one person are in both parts of a fold. "
                        "Pass a splitter of people, such as cv=GroupKFold(), and groups."
                    )
        frame = frame.f_back


_FOLDS = ("_fit_and_score", "_fit_and_predict")


def _ids_of_all(frame: FrameType, ids: list[Any], column: str | None) -> list[Any] | None:
    """Ids of all rows of which a fold has been cut, where they can be found."""
    X, train = frame.f_locals["X"], frame.f_locals["train"]
    if column is not None:
        return X[column].to_list() if column in column_names(X) else None
    # The fold has its part of them; whoever has called it has them all.
    given = frame.f_back.f_locals.get("kwargs", {}) if frame.f_back is not None else {}
    for values in (given.get("fit_params") or {}).values():
        listed = list(np.asarray(values, dtype=object)) if np.ndim(values) == 1 else []
        if len(listed) > max(train) and [listed[place] for place in train] == ids:
            return listed
    return None


def codes_of(ids: Iterable[Any]) -> tuple[list[Any], IntArray]:
    """Who there is, and the number of that person for each id. Ids are compared, never hashed."""
    if isinstance(ids, np.ndarray):
        people, places = np.unique(ids, return_inverse=True)
        return people.tolist(), places
    seen: dict[Any, int] = {}
    codes = np.array([seen.setdefault(i, len(seen)) for i in ids], dtype=np.int64)
    return list(seen), codes


@dataclass(frozen=True)
class PeopleCounts:
    """How many rows each person has, and in how many parts; counts of parts add up.

    In pieces, so that many small parts and a large one take no longer than their people are many.
    """

    pieces: list[dict[Any, tuple[int, int]]]

    @classmethod
    def of(cls, ids: Iterable[Any]) -> Self:
        """Counts of one part."""
        people, codes = codes_of(ids)
        return cls([{i: (n, 1) for i, n in zip(people, np.bincount(codes).tolist(), strict=True)}])

    def __add__(self, other: "PeopleCounts") -> "PeopleCounts":
        pieces = [*self.pieces, *other.pieces]
        sizes = list(map(len, pieces))
        return PeopleCounts(pieces if 2 * max(sizes) > sum(sizes) else [_joined(pieces)])

    def total(self) -> Mapping[Any, tuple[int, int]]:
        """Rows and parts of each person."""
        counts = _joined(self.pieces)
        check_ids(list(counts))
        return counts

    def distinct(self) -> int:
        """How many there are."""
        return len(_joined(self.pieces))


def _joined(pieces: list[dict[Any, tuple[int, int]]]) -> dict[Any, tuple[int, int]]:
    if len(pieces) == 1:
        return pieces[0]
    joined: dict[Any, tuple[int, int]] = {}
    for piece in pieces:
        for person, (n, parts) in piece.items():
            before = joined.get(person, (0, 0))
            joined[person] = before[0] + n, before[1] + parts
    return joined

"""Identifiers of people: validation, and errors that quote no identifier."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from types import FrameType
from typing import Any, Self
from uuid import UUID

import numpy as np
import sklearn.model_selection._validation as folds

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import frames, warn_caller
from sklearn_dptda.utils._frames import beside, column_names, open_frame
from sklearn_dptda.utils._validation import without_quotes

_MISSING = (
    "groups must have a number or a string for each {}, or a UUID; some are missing, or of another "
    "kind."
)
_MIXED = (
    "groups must be all numbers or all strings, or all UUIDs, because it is unknown otherwise "
    "which of them name the same person."
)


def split_people(table: Any, column: str | None, ids: Any, what: str = "row") -> tuple[Any, Any]:
    """Return a table without its column of ids, and the id of the person of each row.

    The ids are in a ``column`` of a data frame, or are given separately as ``ids``. They are
    returned as a list, or as an array for a column of integers, which is ten times as fast.
    """
    if column is not None and ids is not None:
        raise ValueError(
            "groups is given twice, as a parameter and as an argument beside X. Use one of them."
        )
    if column is not None:
        frame = open_frame(table)
        if frame is None or column not in frame.columns or frame.shape[1] == 1:
            raise ValueError(
                f"groups={quoted(column)} must be the name of one column of a data frame "
                "of pandas, polars or PyArrow, which must also have other columns."
            )
        return frame.drop(column).to_native(), check_ids(_listed(frame[column]), what)
    with without_quotes("groups"):
        listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(listed) != len(table):
        raise ValueError(
            f"groups has {len(listed)} entries, but X has {len(table)} {what}s: there must be one "
            f"entry for each {what}."
        )
    return table, check_ids(listed, what)


def _listed(column: Any) -> Any:
    # If some integers are missing, the array has floats or objects.
    array = column.to_numpy() if column.dtype.is_integer() else None
    return column.to_list() if array is None or array.dtype.kind not in "iu" else array


def check_ids(ids: Any, what: str = "row") -> Any:
    """Return ids that are all numbers, all strings or all UUIDs; otherwise raise ValueError."""
    if isinstance(ids, np.ndarray):
        return ids
    kinds = {_kind(kind) for kind in set(map(type, ids))}
    # NaN differs from itself. Data frames use it for missing strings.
    if "none" in kinds or ("number" in kinds and any(i != i for i in ids)):
        raise ValueError(_MISSING.format(what))
    if len(kinds) > 1:
        raise ValueError(_MIXED)
    return ids


def _kind(kind: type) -> str:
    if issubclass(kind, str | bytes):
        return kind.__name__ if kind in (str, bytes) else "str"
    if issubclass(kind, UUID):
        return "UUID"
    return "number" if issubclass(kind, Real) else "none"


# Names of columns of identifiers: patient_id, ID, subjectId, person, customer number.
_NAME_OF_IDS = re.compile(
    r"(?i:(.*[ _.-])?(id|uid|pid|uuid|guid|mrn|ssn))|.*[a-z](ID|Id)"
    r"|(?i:(patient|person|subject|participant|user|customer)([ _.-]?(no|nr|key|number))?)"
)


def seems_to_name_ids(name: Any) -> bool:
    """Whether the name of a column is that of an identifier."""
    return isinstance(name, str) and _NAME_OF_IDS.fullmatch(name) is not None


def remark_on_ids(names: Iterable[Any]) -> str | None:
    """Return a warning if the name of a column, which is public, is that of an identifier."""
    found = list(filter(seems_to_name_ids, names))
    if not found:
        return None
    return (
        f"The column {quoted(found[0])} seems to identify people or rows, and counts as a "
        "coordinate. Leave it out, or set groups to its name, which protects all rows of a person."
    )


def warn_of_ids(names: Iterable[Any]) -> None:
    """Warn if a column has the name of an identifier."""
    if remark := remark_on_ids(names):
        warn_caller(remark)


def refuse_ids_as_feature(X: Any, ids: Any) -> None:
    """Refuse a column of X that has the name of the ids, because it would count as a feature."""
    name = getattr(ids, "name", None)
    if name is not None and name in column_names(X):
        raise ValueError(
            f"The column {quoted(name)} of X has the name of groups, and would count as a "
            "coordinate. Leave it out of X, or set the parameter groups to its name."
        )


def beside_ids(X: Any, groups: str | None, rows: FloatArray, names: Iterable[str]) -> Any:
    """Return transformed rows of ``X``, as a data frame with the column of ids if X has one.

    The next step of a pipeline then knows the person of each row.
    """
    if groups is None or groups not in column_names(X):
        return rows
    columns = dict(zip(names, rows.T, strict=True))
    if groups in columns:
        raise ValueError(
            f"groups={quoted(groups)} is the name of a column of the result, so that ids and "
            "numbers cannot be told apart. Rename the column of ids."
        )
    return beside(open_frame(X).select(groups), columns).select(*columns, groups).to_native()


def check_number_of_people(n_people: int) -> None:
    """Refuse a table of only one person."""
    if n_people < 2:
        raise ValueError(
            "groups says that all rows belong to one person, but at least 2 people are needed."
        )


def check_one_label(n_people: int, n_pairs: int) -> None:
    """Refuse rows of one person with different labels, given the numbers of people and pairs."""
    if n_pairs > n_people:
        raise ValueError(
            "y holds two labels of one person. With groups, all rows of a person must have the "
            "same label."
        )


def refuse_split_people(ids: list[Any], column: str | None) -> None:
    """Refuse folds of a search, or of cross-validation, that divide the rows of a person.

    An estimator would be tested on people from whom it has learnt. The folds, which it does not
    know, are looked up in the call stack, in the process that fits.
    """
    for frame in frames():
        if frame.f_code.co_filename == folds.__file__ and frame.f_code.co_name in _FOLDS:
            train, test = frame.f_locals["train"], frame.f_locals["test"]
            if (everybody := _ids_of_all(frame, ids, column)) is not None:
                learnt = {everybody[place] for place in train}
                if any(everybody[place] in learnt for place in test):
                    raise ValueError(
                        "the folds split people: the training rows and the test rows of a fold "
                        "have rows of the same person. Pass a splitter that keeps people together, "
                        "such as cv=GroupKFold(), and groups."
                    )


_FOLDS = ("_fit_and_score", "_fit_and_predict")


def _ids_of_all(frame: FrameType, ids: list[Any], column: str | None) -> list[Any] | None:
    """Return the ids of all rows from which a fold was taken, or None if they are not found."""
    X, train = frame.f_locals["X"], frame.f_locals["train"]
    if column is not None:
        return open_frame(X)[column].to_list() if column in column_names(X) else None
    # The frame of the fold has only its part of the ids. The frame of its caller has all of them.
    given = frame.f_back.f_locals.get("kwargs", {}) if frame.f_back is not None else {}
    for values in (given.get("fit_params") or {}).values():
        listed = list(np.asarray(values, dtype=object)) if np.ndim(values) == 1 else []
        if len(listed) > max(train) and [listed[place] for place in train] == ids:
            return listed
    return None


def codes_of(ids: Iterable[Any]) -> tuple[list[Any], IntArray]:
    """Return the distinct ids, and for each row the index of its id.

    Ids are compared themselves, and not by hash values, which could coincide.
    """
    if not isinstance(ids, np.ndarray):
        ids = list(ids)
        if set(map(type, ids)) == {int}:
            # Sorting integers is ten times as fast. Those beyond 64 bits stay in the list.
            with suppress(OverflowError):
                ids = np.array(ids, dtype=np.int64)
    if isinstance(ids, np.ndarray):
        people, places = np.unique(ids, return_inverse=True)
        return people.tolist(), places
    seen: dict[Any, int] = {}
    codes = np.array([seen.setdefault(i, len(seen)) for i in ids], dtype=np.int64)
    return list(seen), codes


@dataclass(frozen=True)
class PeopleCounts:
    """Number of rows of each person, and number of parts with such rows. ``+`` combines parts.

    The counts are kept in pieces, so that adding many small parts to a large one takes time in
    proportion to the number of people.
    """

    pieces: list[dict[Any, tuple[int, int]]]

    @classmethod
    def of(cls, ids: Iterable[Any]) -> Self:
        """Return the counts of one part."""
        people, codes = codes_of(ids)
        return cls([{i: (n, 1) for i, n in zip(people, np.bincount(codes).tolist(), strict=True)}])

    def __add__(self, other: "PeopleCounts") -> "PeopleCounts":
        pieces = [*self.pieces, *other.pieces]
        sizes = list(map(len, pieces))
        return PeopleCounts(
            pieces if 2 * max(sizes) > sum(sizes) else [_rows_of_each_person(pieces)]
        )

    def total(self) -> Mapping[Any, tuple[int, int]]:
        """Return the numbers of rows and parts of each person."""
        counts = _rows_of_each_person(self.pieces)
        check_ids(list(counts))
        return counts

    def distinct(self) -> int:
        """Return the number of people."""
        return len(_rows_of_each_person(self.pieces))


def _rows_of_each_person(pieces: list[dict[Any, tuple[int, int]]]) -> dict[Any, tuple[int, int]]:
    if len(pieces) == 1:
        return pieces[0]
    joined: dict[Any, tuple[int, int]] = {}
    for piece in pieces:
        for person, (n, parts) in piece.items():
            before = joined.get(person, (0, 0))
            joined[person] = before[0] + n, before[1] + parts
    return joined

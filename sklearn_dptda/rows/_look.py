"""What a table contains, for the person who holds it: exact facts, which are not private."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda.utils._frames import is_missing, open_frame
from sklearn_dptda.utils._people import seems_to_name_ids

_NOT_PRIVATE = (
    "These are exact facts about the records, for those who may see them. They are not private: "
    "do not publish them, and do not choose bounds or lists of values from them."
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.*|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}.*"
    r"|\d{1,2}:\d{2}(:\d{2})?( ?[AaPp]\.?[Mm]\.?)?"
    # Months and quarters.
    r"|\d{4}([-/]|[-/ ]?[MQ])\d{1,2}|\d{1,2}/\d{4}"
    r"|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?[- ]?(\d{4}|\d{2})"
)
_PERCENTAGE = re.compile(r"[-+]?[\d.,]+ ?%")
# Accuracy only: what is looked at is not private, whatever the constants are.

# Whole numbers that are dates, as in 20240131.
_FIRST_DATE, _LAST_DATE = 1000_01_01, 9999_12_31
# Largest number of different values of a column of categories, of texts and of single words such as
# codes, and largest share of the rows.
_MOST_CATEGORIES, _MOST_CODES, _CATEGORY_SHARE = 50, 500, 0.2
# Number of categories that are shown, and largest number of characters of each.
_SHOWN, _SHOWN_CHARACTERS = 6, 20
# Number of rows from which a column that counts them is an index.
_FEWEST_NUMBERED = 10
# Shares of the rows from which values are ids of rows, and below which several rows have one id.
_ID_SHARE, _GROUP_SHARE = 0.98, 0.7


@dataclass(frozen=True)
class ColumnFacts:
    """Exact facts about one column of a table.

    Parameters
    ----------
    name : object
        Name of the column, or its number.
    kind : {"number", "integer", "boolean", "category", "date", "percentage", "id", "index", \
            "text", "empty"}
        What the column seems to hold. An ``"id"`` names rows or people, and an ``"index"`` has the
        numbers of the rows in their order.
    n_missing : int
        Number of rows without a value.
    n_values : int
        Number of different values.
    low, high : float or None
        Extremes of numbers.
    values : list of str
        Values of a column of categories, the most common ones first.
    """

    name: Any
    kind: str
    n_missing: int
    n_values: int
    low: float | None = None
    high: float | None = None
    values: Sequence[str] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether the column holds numbers."""
        return self.kind in ("number", "integer")

    def describe(self) -> str:
        """Describe what the column seems to hold, in words."""
        if self.kind == "empty":
            return "no values"
        if self.is_numeric and self.n_values == 1:
            return f"the same number in each row, {self.low:g}"
        if self.is_numeric:
            what = "whole numbers" if self.kind == "integer" else "numbers"
            return f"{what} from {self.low:g} to {self.high:g}"
        if self.kind == "category":
            shown = ", ".join(value[:_SHOWN_CHARACTERS] for value in self.values[:_SHOWN])
            more = ", ..." * (self.n_values > _SHOWN)
            return f"{self.n_values} categories: {shown}{more}"
        words = {
            "boolean": "true or false",
            "date": "dates or times of day: convert them to numbers by a public rule",
            "id": f"{self.n_values:,} ids of rows or people: a column for groups, or to leave out",
            "index": "numbers of the rows in their order: leave it out",
            "percentage": "numbers with a percent sign: remove the sign",
            "text": f"text, {self.n_values:,} different values: leave it out",
        }
        return words[self.kind]


@dataclass(frozen=True)
class TableFacts:
    """Exact facts about a table, which are not private.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    columns : list of ColumnFacts
        Facts about each column.
    """

    n_rows: int
    columns: list[ColumnFacts] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the facts as lines of text."""
        width = max([6, *(len(str(c.name)) for c in self.columns)])
        found = [_NOT_PRIVATE, f"{self.n_rows:,} rows, {len(self.columns)} columns"]
        for column in self.columns:
            gaps = f"; {column.n_missing:,} missing" if column.n_missing else ""
            found.append(f"  {column.name!s:<{width}}  {column.describe()}{gaps}")
        return found

    def groups(self) -> Any:
        """Name of the first column whose values seem to name people with several rows, or None."""
        several = (
            c.name
            for c in self.columns
            if c.kind == "id" and c.n_values <= _GROUP_SHARE * (self.n_rows - c.n_missing)
        )
        return next(several, None)

    def features(self) -> list[ColumnFacts]:
        """Columns that can be released as they are: numbers, categories and Boolean ones."""
        kinds = ("number", "integer", "boolean", "category")
        return [c for c in self.columns if c.kind in kinds]

    def code(self) -> str:
        """Return code for synthetic rows, in which the public choices are left open."""
        bounds = [f"{c.name!r}: (LOW, HIGH)" for c in self.features() if c.is_numeric]
        lists = [f"{c.name!r}: [...]" for c in self.features() if c.kind == "category"]
        parts = ["epsilon=1.0"]
        parts += [f"bounds={{{', '.join(bounds)}}}"] * bool(bounds)
        parts += [f"categories={{{', '.join(lists)}}}"] * bool(lists)
        if (groups := self.groups()) is not None:
            parts.append(f"groups={groups!r}")
        inside = "".join(f"    {part},\n" for part in parts)
        return (
            "# Choose each (LOW, HIGH) and [...] without looking at the data.\n"
            f"PrivateMeasure(\n{inside})"
        )

    def __str__(self) -> str:
        return "\n".join([*self.lines(), "", self.code()])

    __repr__ = __str__


def look(X: ArrayLike) -> TableFacts:
    """Tell what a table contains, and which public choices a private release of it needs.

    The facts are exact, and **not private**. They are for those who may see the records, to check
    that a table is read as intended. Bounds and lists of values must not be taken from them: a
    release would then depend on single records.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The table, of any types. Frames of pandas, polars and PyArrow are read alike.

    Returns
    -------
    TableFacts
        Its text describes each column: numbers, categories, dates, ids, and gaps. It ends with code
        for a release, in which the public choices are left open. Attributes ``n_rows`` and
        ``columns`` contain the facts.

    Notes
    -----
    It spends no budget and releases nothing. On the command line, ``look FILE`` does the same for
    a file.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_dptda.rows import look
    >>> print(look(pd.DataFrame({"age": [31, 44, 31], "smokes": [True, False, False]})))
    These are exact facts about the records, for those who may see them. They are not private: ...
    3 rows, 2 columns
      age     whole numbers from 31 to 44
      smokes  true or false
    <BLANKLINE>
    # Choose each (LOW, HIGH) and [...] without looking at the data.
    PrivateMeasure(
        epsilon=1.0,
        bounds={'age': (LOW, HIGH)},
    )
    """
    frame = open_frame(X)
    if frame is None:
        table = np.asarray(X, dtype=object)
        if table.ndim != 2:
            raise ValueError(f"X must have rows and columns; got {table.ndim} dimension(s).")
        pairs = [(j, column.tolist()) for j, column in enumerate(table.T)]
        n_rows = len(table)
    else:
        pairs = [(column.name, column.to_list()) for column in frame.iter_columns()]
        n_rows = len(frame)
    return TableFacts(n_rows, [column_facts(name, values) for name, values in pairs])


def column_facts(name: Any, values: Sequence[Any]) -> ColumnFacts:
    """Tell what a column of objects or numbers holds; None and NaN stand for a missing value."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        kept = values[~np.isnan(values)]
        return _facts_of_numbers(name, kept, len(values) - len(kept))
    kept = [value for value in values if not is_missing(value)]
    counts = Counter(map(_hashable, kept))
    facts = partial(ColumnFacts, name, n_missing=len(values) - len(kept), n_values=len(counts))
    if not kept:
        return facts(kind="empty")
    if all(isinstance(value, bool | np.bool_) for value in kept):
        return facts(kind="boolean")
    if all(isinstance(value, Real | Decimal) for value in kept):
        with suppress(OverflowError):
            return _facts_of_numbers(name, np.array(kept, dtype=float), len(values) - len(kept))
        whole = all(isinstance(value, Integral) or float(value).is_integer() for value in kept)
        if whole and seems_to_name_ids(name) and len(counts) > _MOST_CATEGORIES:
            return facts(kind="id")
        kind = "integer" if whole else "number"
        return facts(kind=kind, low=_float(min(kept)), high=_float(max(kept)))
    texts = [value for value in kept if isinstance(value, str)]
    if len(texts) < len(kept):
        is_date = all(hasattr(value, "year") or hasattr(value, "hour") for value in kept)
        return facts(kind="date" if is_date else "text")
    if all(map(_DATE.fullmatch, texts)):
        return facts(kind="date")
    if all(map(_PERCENTAGE.fullmatch, texts)):
        return facts(kind="percentage")
    single_words = sum(" " not in text for text in texts) >= _ID_SHARE * len(texts)
    are_codes = single_words and not seems_to_name_ids(name)
    most = _MOST_CODES if are_codes else _MOST_CATEGORIES
    if len(counts) <= min(most, max(2, _CATEGORY_SHARE * len(kept))):
        listed = [str(value) for value, _ in counts.most_common()]
        return facts(kind="category", values=listed)
    is_id = seems_to_name_ids(name) or (single_words and len(counts) >= _ID_SHARE * len(kept))
    return facts(kind="id" if is_id else "text")


def _facts_of_numbers(name: Any, kept: np.ndarray, n_missing: int) -> ColumnFacts:
    different = np.unique(kept)
    facts = partial(ColumnFacts, name, n_missing=n_missing, n_values=len(different))
    if not len(kept):
        return facts(kind="empty")
    whole = bool((different == np.floor(different)).all()) and bool(np.isfinite(different).all())
    if whole and seems_to_name_ids(name) and len(different) > _MOST_CATEGORIES:
        return facts(kind="id")
    counts_rows = len(kept) >= _FEWEST_NUMBERED and n_missing == 0 and kept[0] in (0, 1)
    if counts_rows and (np.diff(kept) == 1).all():
        return facts(kind="index")
    if whole and _are_dates(different):
        return facts(kind="date")
    kind = "integer" if whole else "number"
    return facts(kind=kind, low=float(different[0]), high=float(different[-1]))


def _are_dates(numbers: np.ndarray) -> bool:
    """Whether several whole numbers are all dates of the form 20240131."""
    if len(numbers) < 2 or numbers[0] < _FIRST_DATE or numbers[-1] > _LAST_DATE:
        return False
    days = numbers.astype(np.int64)
    month, day = days // 100 % 100, days % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value

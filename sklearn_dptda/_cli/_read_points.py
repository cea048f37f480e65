"""Readers for files of points or rows, whose error messages count rows but quote no values."""

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklearn_dptda._cli._command import SEVERAL, SWITCH
from sklearn_dptda._cli._formats import (
    FORMATS,
    SHEETS,
    check_is_file,
    read_file,
    reading,
    sheet_of,
    suffix_of,
    text_of,
)
from sklearn_dptda._cli._terminal import tell
from sklearn_dptda._cli._text_table import (
    SEPARATORS,
    Refusal,
    TextFormat,
    as_number_text,
    is_missing,
    read_text,
)

# Releases of more columns consist mostly of noise, and take hours.
MAX_COLUMNS = 1000
# Largest number of columns that an error message names one by one.
_MAX_NAMED_COLUMNS = 5


# The arguments that say how a text file is written, which all commands share.
TEXT_ARGUMENTS: dict[str, dict[str, Any]] = {
    "--header": {
        "action": argparse.BooleanOptionalAction,
        "help": "whether the first line of a text file contains the names of the columns; asked "
        "for if the line may be either",
    },
    "--separator": {
        "metavar": "MARK",
        "help": f"mark between the cells of a text file: {' '.join(SEPARATORS)} (default: the one "
        "that the lines have in common)",
    },
    "--decimal": {
        "choices": [".", ","],
        "help": "decimal mark of the numbers in a text file (default: that of its numbers)",
    },
    "--encoding": {
        "metavar": "NAME",
        "help": "encoding of a text file (default: that of its first bytes, UTF-8, or cp1252)",
    },
    "--skip-lines": {
        "type": int,
        "default": 0,
        "metavar": "N",
        "help": "leave out the first N lines of a text file, before the names of the columns",
    },
    "--skip-last": {
        "type": int,
        "default": 0,
        "metavar": "N",
        "help": "leave out the last N lines of a text file that are not blank, such as notes",
    },
    "--comment": {
        "metavar": "MARK",
        "help": "leave out the lines of a text file that begin with this mark, such as '#'; none "
        "if there are no such lines",
    },
}
# The arguments for a file of rows and how to read it.
TABLE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "points": {"help": "file of text, NPY, NPZ or Parquet with one row per record"},
    "--columns": SEVERAL | {"help": "names or numbers of the columns to use"},
    "--groups": {
        "metavar": "COLUMN",
        "help": "name or number of the column that identifies people. All rows of a person are "
        "then protected together, and the privacy unit is one person instead of one row",
    },
    "--key": {"help": "name or number (from 0) of one of several arrays or sheets in a file"},
    **TEXT_ARGUMENTS,
    "--fill": SEVERAL
    | {
        "default": [],
        "metavar": "[NAME=]VALUE",
        "help": "public constants for missing cells: one for all columns, or one for each NAME",
    },
    "--drop-incomplete": SWITCH
    | {
        "help": "leave out rows with a missing cell; if the number of rows is public, this "
        "publishes how many rows are complete"
    },
}


class ColumnLabel(NamedTuple):
    """The public names of a column: its number from 0, and its name if the file has names."""

    place: int
    name: str | None = None

    def __str__(self):
        return f"column {self.place}" + ("" if self.name is None else f" ({self.name!r})")

    def short(self):
        """Return the name, or the number in the file if there is none."""
        return str(self.place) if self.name is None else self.name


class Table(NamedTuple):
    """The columns of a table, with their names and labels.

    ``names`` is None if the file has none. ``ids`` has the person of each row, or is None if a row
    is a record. ``form`` says how a text file is written.
    """

    path: Path
    names: list[str] | None
    columns: list[np.ndarray]
    labels: list[ColumnLabel]
    ids: np.ndarray | None
    form: TextFormat | None = None

    @property
    def decimal(self):
        """The decimal mark of numbers in texts, or None if it was not stated."""
        return "." if self.form is None else self.form.decimal

    def numbers(self, keeps_gaps=False, places=None):
        """Return the cells of all or some columns as floats, with gaps as NaN if they are kept.

        A ValueError names the columns with other cells that are not numbers.
        """
        places = range(len(self.columns)) if places is None else places
        numbers = np.empty((len(self.columns[0]), len(places)))
        described, is_wrong = [], False
        for j, place in enumerate(places):
            numbers[:, j], texts = _numbers(self.columns[place], self.decimal)
            gaps = int((~np.isfinite(numbers[:, j]) & ~texts).sum())
            described.append((self.labels[place], int(texts.sum()), gaps))
            is_wrong |= bool(texts.any()) or (gaps > 0 and not keeps_gaps)
        if is_wrong:
            message = _why_unusable(self.path, len(numbers), described)
            raise ValueError(f"{message} {self.advice()}".rstrip())
        if keeps_gaps:
            numbers[~np.isfinite(numbers)] = np.nan
        return numbers

    def advice(self):
        """Advice to leave out the first or last rows, if only these have texts among numbers."""
        if self.form is None:
            return ""
        texts = [_numbers(column, self.decimal)[1] for column in self.columns]
        mixed = [each for each in texts if not each.all()]
        rows = np.flatnonzero(np.any(mixed, axis=0)).tolist() if mixed else []
        return self.form.without(rows, len(self.columns[0]), self.names is not None)[0]


def read_table(
    path,
    *,
    key=None,
    columns=None,
    groups=None,
    fill=(),
    drop_incomplete=False,
    texts=(),
    max_columns=MAX_COLUMNS,
    **how,
):
    """Read a :class:`Table`.

    ``key`` selects one of several arrays or sheets of a file, and ``columns`` selects columns, both
    by name or by number from 0. ``groups`` is the column of the ids of people, which is left out of
    the others. ``how`` says how a text file is written; see :func:`read_text`. The columns that
    ``texts`` names keep their cells as they are written. ``fill`` and ``drop_incomplete`` say how
    to treat missing cells of the selected columns. A ``ValueError`` says what cannot be used, and
    counts rows, but quotes no values.
    """
    path = Path(path)
    check_is_file(path)
    kind, form = suffix_of(path), None
    if kind in FORMATS:
        names, found = read_file(path, key=key)
    else:
        kept = [*texts] if groups is None else [*texts, groups]
        filled = [text.rpartition("=")[0] for text in fill if "=" in text]
        if not all(name.isdecimal() for name in (*kept, *filled, *(columns or ()))):
            # The name of a column states that the first line contains names.
            how = {"header": True} | {name: v for name, v in how.items() if v is not None}
        bytes_of = text_of
        if kind in SHEETS:
            bytes_of = partial(sheet_of, key=key)
            how |= {"separator": ",", "decimal": ".", "encoding": "utf-8", "comment": "none"}
        names, found, form, notes = read_text(path, bytes_of, texts=kept, **how)
        if kind in SHEETS:
            form = form._replace(encoding=None, comment=None)
        for note in notes:
            tell(f"note: {note}")
    if not found or not len(found[0]):
        raise ValueError(f"{path} has no records.")
    width, owner, ids = len(found), None, None
    if groups is not None:
        owner = column_place("--groups", groups, names, range(width))
        ids = _ids(path, found[owner], groups)
    if columns is not None:
        places = column_places("--columns", columns, names, range(width))
        if owner in places:
            raise ValueError(f"--columns names the column of --groups, {groups!r}: leave it out.")
    else:
        places = [place for place in range(width) if place != owner]
        if names is not None and not names[0] and owner != 0:
            raise Refusal(
                f"the first column of {path} has no name and seems to number the rows: "
                f"{_columns_among(len(places) - 1)}, by name or number from 0.",
                columns=list(map(str, places[1:])),
            )
        if owner is not None and not places:
            raise ValueError(f"{path} has no other column than that of --groups, {groups!r}.")
    if len(places) > max_columns:
        raise ValueError(
            f"{path} has {len(places):,} columns, and at most {max_columns:,} can be released: "
            "choose --columns, by name or number from 0."
        )
    found = [found[place] for place in places]
    names = None if names is None else [names[place] for place in places]
    labels = [ColumnLabel(p, None if names is None else names[i]) for i, p in enumerate(places)]
    if fill or drop_incomplete:
        found, kept = _without_gaps(found, names, places, fill, drop_incomplete, form)
        ids = None if ids is None else ids[kept]
    return Table(path, names, found, labels, ids, form)


def column_places(option, typed, names, numbers):
    """Return the places of the columns that an option names, and refuse to name one twice.

    ``numbers`` are those of the columns in the file.
    """
    places = {}
    for name in typed:
        place = column_place(option, name, names, numbers)
        if place in places:
            raise ValueError(f"{option} names the column {name!r} twice: name it once.")
        places[place] = name
    return list(places)


def column_place(option, name, names, numbers):
    """Return the place of a column that an option names, by its name or number from 0."""
    if names is not None and name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option}: several columns are named {name!r}: give a number from 0.")
        return names.index(name)
    if name.isdecimal() and int(name) in numbers:
        return list(numbers).index(int(name))
    raise ValueError(f"{option}: there is no column {name!r} among the {len(numbers)} columns.")


def _ids(path, column, name):
    """Return the ids of people as texts, or refuse a column in which some are missing."""
    ids = np.array([str(cell).strip() for cell in column.tolist()])
    if missing := sum(map(is_missing, ids.tolist())):
        raise ValueError(
            f"{path}: {missing:,} of {len(ids):,} rows have no id in the column {name!r} of "
            "--groups. Write one for each row, or leave these rows out."
        )
    return ids


def read_list(option, name, what):
    """Return the different lines of a file that an option names, which are public."""
    path = Path(name)
    check_is_file(path)
    with reading(path, f"a list of {what}"):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    listed = [line.strip() for line in lines if line.strip()]
    if not listed or len(set(listed)) < len(listed):
        raise ValueError(f"{option}: {path} must be a list of different {what}, one per line.")
    return listed


def parsed(cell, default=None):
    """Return the number in a cell, or the default if the cell contains no number."""
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        # Only Python would read a number: 1_000, or digits of other scripts.
        return default
    try:
        return float(cell)
    except (TypeError, ValueError):
        return default


def _numbers(column, decimal="."):
    """Return the numbers of a column, and which of its cells are texts; others are gaps."""
    texts = np.zeros(len(column), dtype=bool)
    if column.dtype.kind in "biuf":
        return column.astype(float, copy=False), texts
    if column.dtype.kind not in "OUS":
        # Complex numbers would lose their imaginary part, and dates would become numbers.
        return np.full(len(column), np.nan), ~texts
    cells = [as_number_text(cell, decimal) for cell in column.tolist()]
    numbers = np.array([parsed(cell, math.nan) for cell in cells], dtype=float)
    (unread,) = np.nonzero(~np.isfinite(numbers))
    texts[unread] = [
        not (cells[i] is None or parsed(cells[i]) is not None or is_missing(str(cells[i])))
        for i in unread
    ]
    return numbers, texts


def _without_gaps(columns, names, numbers, fill, drops, form=None):
    """Fill gaps, and leave out the rows that still have some.

    Returns the columns, and which rows of the original ones they are.
    """
    constants = _constants(names, numbers, fill)
    decimal, filled = "." if form is None else form.decimal, []
    kept = np.ones(len(columns[0]), dtype=bool)
    for place, column in enumerate(columns):
        numbers, texts = _numbers(column, decimal)
        gaps = ~np.isfinite(numbers) & ~texts
        if place in constants:
            constant = constants[place]
            if column.dtype.kind in "OUS":
                # Texts of a fixed length would cut a longer constant off.
                column = column.astype(object)
            elif (constant := parsed(constant)) is None:
                raise ValueError(
                    f"--fill: {constants[place]!r} is no number, and the file holds numbers."
                )
            column = np.where(gaps, constant, column)
            gaps[:] = False
        kept &= ~gaps
        filled.append(column)
    if not drops:
        return filled, np.ones(len(kept), dtype=bool)
    if not kept.any():
        raise ValueError("--drop-incomplete: no row is complete.")
    return [column[kept] for column in filled], kept


def _constants(names, numbers, fill):
    """Return the constant of each column that has one, by its place."""
    pairs = [text.rpartition("=") for text in fill]
    for_all = [value for _, equals, value in pairs if not equals]
    if len(for_all) > 1:
        raise ValueError("--fill takes one VALUE for all columns; others as NAME=VALUE.")
    named = [(name, value) for name, equals, value in pairs if equals]
    places = column_places("--fill", [name for name, _ in named], names, numbers)
    found = dict.fromkeys(range(len(numbers)), for_all[0]) if for_all else {}
    return found | dict(zip(places, (value for _, value in named), strict=True))


def _columns_among(number):
    """Return advice to use only the other columns of a table, of which there are so many."""
    if number == 1:
        return "choose the other column by --columns"
    return f"choose --columns among the other {number} columns"


def _why_unusable(path, n_rows, found):
    """Describe the columns that are not numbers, with their counts of texts and gaps."""
    bad = [(label, texts, gaps) for label, texts, gaps in found if texts or gaps]
    named = "; ".join(
        f"{label}: {_described(texts, gaps, n_rows)}"
        for label, texts, gaps in bad[:_MAX_NAMED_COLUMNS]
    )
    if (beyond := len(bad) - _MAX_NAMED_COLUMNS) > 0:
        named += f"; {beyond} more column{'s' if beyond > 1 else ''}"
    has_gaps = any(gaps for _, _, gaps in bad)
    # Gaps can be filled, so that columns with nothing but gaps can be kept.
    wrong, remedy = "has gaps", "To continue, "
    if any(texts for _, texts, _ in bad):
        wrong = "is not numeric everywhere" + ", and has gaps" * has_gaps
        if good := len(found) - len(bad):
            remedy += f"{_columns_among(good)}, by name or number from 0, or "
        remedy += (
            "fix the file: write real numbers with decimal points and without thousands "
            "separators. "
        ) + "For gaps, " * has_gaps
    if has_gaps:
        wrong += " (empty cells, NaN, infinity)"
        remedy += "use --fill with public constants, or --drop-incomplete. "
    return f"{path} {wrong}: {named}. {remedy.rstrip()}"


def _described(texts, gaps, n_rows):
    parts = ((texts, "do not contain a real number"), (gaps, "have a gap"))
    return " and ".join(f"{n:,} of {n_rows:,} rows {what}" for n, what in parts if n)

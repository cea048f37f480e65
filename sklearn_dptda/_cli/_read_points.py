"""Readers for files of points or rows, whose error messages count rows but quote no values."""

import argparse
import zipfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklearn_dptda._cli._command import SEVERAL, SWITCH
from sklearn_dptda._cli._terminal import tell
from sklearn_dptda._cli._text_table import (
    SEPARATORS,
    TextFormat,
    as_number_text,
    is_missing,
    read_cells,
)
from sklearn_dptda.utils._people import remark_on_ids

# Releases of more columns consist mostly of noise, and take hours.
MAX_COLUMNS = 1000
# Largest size of a decompressed table, in bytes and as a multiple of the size of its file. Either
# of them may be exceeded, but not both.
MAX_INFLATED_BYTES, _MAX_INFLATION = 1 << 30, 100
# Largest number of columns that an error message names one by one.
_MAX_NAMED_COLUMNS = 5


# The arguments for a file of rows and how to read it.
TABLE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "points": {"help": "CSV, TSV, TXT, NPY, NPZ or Parquet file with one row per record"},
    "--columns": SEVERAL | {"help": "names or numbers of the columns to use"},
    "--groups": {
        "metavar": "COLUMN",
        "help": "name or number of the column that identifies people. All rows of a person are "
        "then protected together, and the privacy unit is one person instead of one row",
    },
    "--key": {"help": "name or number (from 0) of the array in an NPZ file"},
    "--header": {
        "action": argparse.BooleanOptionalAction,
        "help": "whether the first row of a text file names the columns (default: guess)",
    },
    "--separator": {
        "metavar": "MARK",
        "help": f"mark between the cells of a text file: {' '.join(SEPARATORS)} (default: guess)",
    },
    "--decimal": {
        "choices": [".", ","],
        "help": "decimal mark of the numbers in a text file (default: guess)",
    },
    "--encoding": {
        "metavar": "NAME",
        "help": "encoding of a text file (default: that of its first bytes, UTF-8, or cp1252)",
    },
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
    """The public names of a column: its number from 0, and its name if that is public.

    A name is public if the header was stated by the user, or if the user typed the name. The name
    in a guessed header may be a record, so it is not shown (``is_guessed``).
    """

    place: int
    name: str | None = None
    is_guessed: bool = False

    def __str__(self):
        return f"column {self.place}" + ("" if self.name is None else f" ({self.name!r})")

    def short(self):
        """Return the name, or the number in the file if the name is not public."""
        return str(self.place) if self.name is None else self.name


class Table(NamedTuple):
    """The cells of a table, with names and labels of its columns.

    ``names`` is None if the file has none, and public unless they were guessed. ``ids`` has the
    person of each row, or is None if a row is a record. ``form`` says how a text file is written.
    """

    path: Path
    names: list[str] | None
    cells: np.ndarray
    labels: list[ColumnLabel]
    ids: np.ndarray | None
    are_names_public: bool
    form: TextFormat | None = None

    @property
    def decimal(self):
        """The decimal mark of numbers in texts."""
        return "." if self.form is None else self.form.decimal

    def numbers(self, keeps_gaps=False):
        """Return the cells as floats, and warn of a column that seems to identify people."""
        points = as_numbers(self.path, self.cells, self.labels, self.decimal, keeps_gaps)
        if remark_on_ids(self.names or ()):
            tell(
                "warning: a column seems to identify people or rows, and counts as a coordinate. "
                "If a person can have several rows, pass its name to --groups, which protects all "
                "of them. Otherwise, name the other columns by --columns."
            )
        return points


def read_table(
    path,
    *,
    key=None,
    columns=None,
    groups=None,
    header=None,
    separator=None,
    decimal=None,
    encoding=None,
    fill=(),
    drop_incomplete=False,
    max_columns=MAX_COLUMNS,
    pairs=False,
):
    """Read a :class:`Table`.

    The file is CSV, TSV, TXT, NPY, NPZ or Parquet. ``key`` selects one of several arrays of an NPZ
    file, and ``columns`` selects columns, both by name or by number from 0. ``groups`` is the
    column of the ids of people, which is left out of the cells. ``header``, ``separator``,
    ``decimal`` and ``encoding`` say how a text file is written; what is None is guessed, and said
    if it may surprise. With ``pairs``, ``36,8`` is two cells. ``fill`` and ``drop_incomplete`` say
    how to treat missing cells of the selected columns. A ``ValueError`` says what cannot be used,
    and counts rows, but quotes no values. It
    does not quote a guessed header either, because it may be a record.
    """
    path = Path(path)
    check_is_file(path)
    reader, form = _READERS.get(path.suffix.lower()), None
    if reader is None:
        how = {"separator": separator, "decimal": decimal, "encoding": encoding}
        names, cells, form, notes = read_cells(path, header=header, pairs=pairs, **how)
        for note in notes:
            tell(f"note: {note}")
    else:
        names, cells = reader(path, key)
    if cells.ndim != 2:
        raise ValueError(
            f"{path} contains an array of {cells.ndim} dimension(s); an array of 2 dimensions, "
            "rows and columns, is needed."
        )
    width, owner, ids = cells.shape[1], None, None
    if groups is not None:
        owner = column_place("--groups", groups, names, width)
        ids = _ids(path, cells[:, owner], groups)
    if columns is not None:
        places = column_places("--columns", columns, names, width)
        if owner in places:
            raise ValueError(f"--columns names the column of --groups, {groups!r}: leave it out.")
    else:
        places = [place for place in range(width) if place != owner]
        if names is not None and not names[0] and owner != 0:
            raise ValueError(
                f"the first column of {path} has no name and seems to number the rows: "
                f"{_columns_among(len(places) - 1)}, by name or number from 0."
            )
        if owner is not None and not places:
            raise ValueError(f"{path} has no other column than that of --groups, {groups!r}.")
    if len(places) > max_columns:
        raise ValueError(
            f"{path} has {len(places):,} columns, and at most {max_columns:,} can be released: "
            "choose --columns, by name or number from 0."
        )
    cells = cells[:, places]
    are_public = header is not None or reader is _parquet
    labels = [ColumnLabel(place) for place in places]
    if names is not None:
        names = [names[place] for place in places]
        public = names if are_public else columns or ()
        labels = [
            ColumnLabel(place, name) if name in public else ColumnLabel(place, is_guessed=True)
            for place, name in zip(places, names, strict=True)
        ]
    if fill or drop_incomplete:
        cells, kept = _without_gaps(cells, names, fill, drop_incomplete, form)
        ids = None if ids is None else ids[kept]
    return Table(path, names, cells, labels, ids, are_public, form)


def column_places(option, typed, names, width):
    """Return the places of the columns that an option names, and refuse to name one twice."""
    places = {}
    for name in typed:
        place = column_place(option, name, names, width)
        if place in places:
            raise ValueError(f"{option} names the column {name!r} twice: name it once.")
        places[place] = name
    return list(places)


def column_place(option, name, names, width):
    """Return the place of a column that an option names, by its name or number from 0."""
    if names is not None and name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option}: several columns are named {name!r}: give a number from 0.")
        return names.index(name)
    if name.isdecimal() and int(name) < width:
        return int(name)
    raise ValueError(f"{option}: there is no column {name!r} among the {width} columns.")


def _ids(path, column, name):
    """Return the ids of people as texts, or refuse a column in which some are missing."""
    ids = np.array([str(cell).strip() for cell in column.tolist()])
    if missing := sum(map(is_missing, ids.tolist())):
        raise ValueError(
            f"{path}: {missing:,} of {len(ids):,} rows have no id in the column {name!r} of "
            "--groups. Write one for each row, or leave these rows out."
        )
    return ids


def check_is_file(path):
    """Raise a ValueError if a path is not that of a file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file.")
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")


def as_numbers(path, cells, labels, decimal=".", keeps_gaps=False):
    """Convert cells to floats, gaps to NaN if they are kept.

    A ValueError names the columns with other cells that are not numbers.
    """
    numbers, texts = _numbers(cells, decimal)
    gaps = ~np.isfinite(numbers) & ~texts
    if keeps_gaps and not texts.any():
        return np.where(gaps, np.nan, numbers)
    if texts.any() or gaps.any():
        found = zip(labels, texts.sum(axis=0).tolist(), gaps.sum(axis=0).tolist(), strict=True)
        raise ValueError(_why_unusable(path, len(cells), list(found)))
    return numbers


def _is_unusual(cell):
    """Whether a text may be a number only as Python reads it: 1_000, or digits of other scripts."""
    return isinstance(cell, str) and ("_" in cell or not cell.isascii())


def parsed(cell, default=None):
    """Return the number in a cell, or the default if the cell contains no number."""
    if _is_unusual(cell):
        return default
    try:
        return float(cell)
    except (TypeError, ValueError):
        return default


def _numbers(cells, decimal="."):
    """Return the numbers in cells, and which cells are texts; others without a number are gaps."""
    texts = np.zeros(cells.shape, dtype=bool)
    if cells.dtype.kind not in "biufOUS":
        # Complex numbers would lose their imaginary part, and dates would become numbers.
        return np.full(cells.shape, np.nan), ~texts
    if cells.dtype.kind == "O":
        cells = np.frompyfunc(partial(as_number_text, decimal=decimal), 1, 1)(cells)
    if not any(map(_is_unusual, cells.ravel() if cells.dtype.kind in "OUS" else ())):
        with suppress(TypeError, ValueError):
            return cells.astype(float), texts
    numbers = np.frompyfunc(partial(parsed, default=np.nan), 1, 1)(cells).astype(float)
    unread = ~np.isfinite(numbers)
    texts[unread] = [
        not (cell is None or parsed(cell) is not None or is_missing(str(cell)))
        for cell in cells[unread].tolist()
    ]
    return numbers, texts


def _without_gaps(cells, names, fill, drops, form=None):
    """Fill gaps, and leave out the rows that still have some.

    Returns the cells, and which rows of the original ones they are.
    """
    constants = _constants(names, cells.shape[1], fill)
    numbers, texts = _numbers(cells, "." if form is None else form.decimal)
    gaps = ~np.isfinite(numbers) & ~texts
    # Texts of a fixed length would cut a longer constant off.
    cells = cells.astype(object) if cells.dtype.kind in "US" else cells.copy()
    for place, constant in constants.items():
        value = constant if cells.dtype.kind == "O" else parsed(constant)
        if value is None:
            raise ValueError(f"--fill: {constant!r} is no number, and the file holds numbers.")
        cells[gaps[:, place], place] = value
        gaps[:, place] = False
    kept = ~gaps.any(axis=1) if drops else np.ones(len(cells), dtype=bool)
    if not kept.any():
        raise ValueError("--drop-incomplete: no row is complete.")
    return cells[kept], kept


def _constants(names, width, fill):
    """Return the constant of each column that has one, by its place."""
    pairs = [text.rpartition("=") for text in fill]
    for_all = [value for _, equals, value in pairs if not equals]
    if len(for_all) > 1:
        raise ValueError("--fill takes one VALUE for all columns; others as NAME=VALUE.")
    named = [(name, value) for name, equals, value in pairs if equals]
    places = column_places("--fill", [name for name, _ in named], names, width)
    found = dict.fromkeys(range(width), for_all[0]) if for_all else {}
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
    if any(label.is_guessed for label, _, _ in bad):
        remedy += "To see the names of columns, pass --header. "
    return f"{path} {wrong}: {named}. {remedy.rstrip()}"


def _described(texts, gaps, n_rows):
    parts = ((texts, "do not contain a real number"), (gaps, "have a gap"))
    return " and ".join(f"{n:,} of {n_rows:,} rows {what}" for n, what in parts if n)


@contextmanager
def reading(path, what):
    """Replace errors of libraries about a broken file, because they may quote its content."""
    try:
        yield
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    except (MemoryError, ImportError):
        raise
    except Exception:
        raise ValueError(f"{path} is not {what}.") from None


def _npy(path, key):
    with reading(path, "a NumPy file of numbers"), path.open("rb") as file:
        array = np.load(file, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is an archive of arrays: change its suffix to .npz.")
    return None, array


def _refuse_inflated(path, declared):
    """Refuse a file whose declared decompressed size is too large, before it is decompressed."""
    if declared > max(MAX_INFLATED_BYTES, _MAX_INFLATION * path.stat().st_size):
        raise ValueError(
            f"{path} would expand to {declared / 2**30:,.3g} GiB, more than {_MAX_INFLATION} times "
            "its size, and is not read. If this size is intended, save it uncompressed, as .npy."
        )


def zip_members(path):
    """Return the names of the members of an archive; ValueError if it would expand too much."""
    with reading(path, "a NumPy archive of numbers"), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    _refuse_inflated(path, sum(member.file_size for member in members))
    return [member.filename for member in members]


def _npz(path, key):
    zip_members(path)
    with reading(path, "a NumPy archive of numbers"), np.load(path, allow_pickle=False) as archive:
        name = _name_of(archive.files, key)
        count, array = len(archive.files), None if name is None else archive[name]
    if array is None:
        raise ValueError(f"--key: choose one of the {count} arrays, by name or number from 0.")
    return None, array


def _name_of(names, key):
    # Error messages must not contain the names of the arrays, which may be names of people.
    if key is None and len(names) == 1:
        return names[0]
    if key in names:
        return key
    if key is not None and key.isdecimal() and int(key) < len(names):
        return names[int(key)]
    return None


def _parquet(path, key):
    try:
        import pandas as pd  # noqa: F401
    except ImportError:
        raise ValueError("Parquet files need pandas: pip install sklearn-dptda[pandas].") from None
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install pyarrow.") from None
    with reading(path, "a Parquet file"):
        metadata = pq.read_metadata(path)
        groups = range(metadata.num_row_groups)
        values = sum(metadata.row_group(i).total_byte_size for i in groups)
        columns = [metadata.schema.column(j) for j in range(metadata.num_columns)]
    # A column of one repeated value takes almost no space in the file, but eight bytes a row in
    # memory.
    _refuse_inflated(path, 8 * metadata.num_rows * metadata.num_columns + values)
    # Texts stay places in their dictionary. Otherwise a long text that all rows share, which is one
    # in the file, would be as many in memory.
    texts = [c.path for c in columns if c.physical_type == "BYTE_ARRAY"]
    with reading(path, "a Parquet file"):
        frame = pq.read_table(path, read_dictionary=texts).to_pandas()
    for name in frame.columns[frame.dtypes == "category"]:
        frame[name] = frame[name].astype(object)
    # Beside a column of floats, ids above 2**53 would become floats, and some of them equal.
    alike = frame.dtypes.nunique() == 1
    return [str(c) for c in frame.columns], frame.to_numpy(None if alike else object)


# For each suffix, the reader, which returns names, if there are any, and cells. Others are texts.
_READERS = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".pq": _parquet}

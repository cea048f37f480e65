"""Readers for files of points or rows, whose error messages count rows but quote no values."""

import csv
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sklearn_dptda._cli._gaps import column_place, column_places, is_missing, without_gaps
from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.utils._people import remark_on_ids

# Errors that libraries raise for broken files. Archives that are encrypted, or compressed by an
# unknown method, raise RuntimeError or a subclass.
_BROKEN = (
    ValueError,
    EOFError,
    OSError,
    KeyError,
    SyntaxError,
    OverflowError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
# Releases of more columns consist mostly of noise, and take hours.
MAX_COLUMNS = 1000
# Largest size of a decompressed table, in bytes and as a multiple of the size of its file. Either
# of them may be exceeded, but not both.
MAX_INFLATED_BYTES, _MAX_INFLATION = 1 << 30, 100
# Largest number of columns that an error message names one by one.
_MAX_NAMED_COLUMNS = 5


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

    ``names`` is None if the file has none. ``ids`` has the person of each row, or is None if a row
    is a record.
    """

    names: list[str] | None
    cells: np.ndarray
    labels: list[ColumnLabel]
    ids: np.ndarray | None


def read_points(path, **options):
    """Read an (n, d) array of numbers, with the options of :func:`read_table`."""
    return read_labelled_points(path, **options)[0]


def read_labelled_points(path, **options):
    """Read an (n, d) array of numbers, the labels of its columns, and the ids of people, if any."""
    names, table, labels, ids = read_table(path, **options)
    points = as_numbers(path, table, labels)
    if remark_on_ids(names or ()):
        tell(
            "warning: a column seems to identify people or rows, and counts as a coordinate. If a "
            "person can have several rows, pass its name to --groups, which protects all of them. "
            "Otherwise, name the other columns by --columns."
        )
    return points, labels, ids


def read_table(
    path,
    *,
    key=None,
    columns=None,
    groups=None,
    header=None,
    fill=(),
    drop_incomplete=False,
    max_columns=MAX_COLUMNS,
):
    """Read a :class:`Table`.

    The file is CSV, TSV, TXT, NPY, NPZ or Parquet. ``key`` selects one of several arrays of an NPZ
    file, and ``columns`` selects columns, both by name or by number from 0. ``groups`` is the
    column of the ids of people, which is left out of the cells. With ``header=None``,
    the first row of a text file is taken as names if it contains neither a number nor a word for a
    missing number. ``fill`` and ``drop_incomplete`` say how to treat missing cells of the selected
    columns. A ``ValueError`` says what cannot be used, and counts rows, but quotes no values. It
    does not quote a guessed header either, because it may be a record.
    """
    path = Path(path)
    check_is_file(path)
    suffix = path.suffix.lower()
    readers = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".pq": _parquet}
    # Errors of libraries about a broken file may quote its content.
    try:
        names, table = readers.get(suffix, _text)(path, key, header)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    except csv.Error:
        raise ValueError(f"{path} is not a table: a quotation mark may be missing.") from None
    if table.ndim != 2:
        raise ValueError(
            f"{path} contains an array of {table.ndim} dimension(s); an array of 2 dimensions, "
            "rows and columns, is needed."
        )
    named = names is not None and (header or readers.get(suffix) is _parquet)
    labels = [
        ColumnLabel(j, names[j] if named else None, is_guessed=names is not None and not named)
        for j in range(table.shape[1])
    ]
    width, ids = table.shape[1], None
    places = None if columns is None else column_places("--columns", columns, names, width)
    owner = None if groups is None else column_place("--groups", groups, names, width)
    if owner is not None:
        ids = _ids(path, table[:, owner], groups)
        if owner in (places or ()):
            raise ValueError(f"--columns names the column of --groups, {groups!r}: leave it out.")
    if places is None and names is not None and not names[0] and owner != 0:
        raise ValueError(
            f"the first column of {path} has no name and seems to number the rows: "
            f"{_columns_among(len(names) - 1 - (owner is not None))}, by name or number from 0."
        )
    if columns is not None:
        labels = [
            ColumnLabel(place, typed) if typed in (names or ()) else labels[place]
            for place, typed in zip(places or (), columns, strict=True)
        ]
    elif owner is not None:
        if width == 1:
            raise ValueError(f"{path} has no other column than that of --groups, {groups!r}.")
        places = [place for place in range(width) if place != owner]
        labels = [labels[place] for place in places]
    if places is not None:
        names = None if names is None else [names[place] for place in places]
        table = table[:, places]
    if table.shape[1] > max_columns:
        raise ValueError(
            f"{path} has {table.shape[1]:,} columns, and at most {max_columns:,} can be released: "
            "choose --columns, by name or number from 0."
        )
    if fill or drop_incomplete:
        table, kept = without_gaps(table, names, fill, drop_incomplete)
        ids = None if ids is None else ids[kept]
    return Table(names, table, labels, ids)


def _ids(path, column, name):
    """Return the ids of people as texts, or refuse a column in which some are missing."""
    ids = np.array([str(cell).strip() for cell in column.tolist()])
    if missing := sum(is_missing(each) for each in ids.tolist()):
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


def as_numbers(path, table, labels):
    """Convert cells to floats; a ValueError names the columns with cells that are not numbers."""
    try:
        # Complex numbers would lose their imaginary part, and dates would become numbers.
        points = table.astype(float) if table.dtype.kind in "biufOUS" else None
    except (TypeError, ValueError):
        points = None
    if points is None or not np.isfinite(points).all():
        raise ValueError(_why_unusable(path, table, labels))
    return points


def _columns_among(number):
    """Return advice to use only the other columns of a table, of which there are so many."""
    if number == 1:
        return "choose the other column by --columns"
    return f"choose --columns among the other {number} columns"


def _why_unusable(path, table, labels):
    """Describe the columns that are not numbers, and what to do about them."""
    counts = zip(labels, map(_unusable, table.T), strict=True)
    bad = [(label, *unusable) for label, unusable in counts if any(unusable)]
    named = "; ".join(
        f"{label}: {_described(texts, gaps, len(table))}"
        for label, texts, gaps in bad[:_MAX_NAMED_COLUMNS]
    )
    if (beyond := len(bad) - _MAX_NAMED_COLUMNS) > 0:
        named += f"; {beyond} more column{'s' if beyond > 1 else ''}"
    good, has_gaps = len(labels) - len(bad), any(gaps for _, _, gaps in bad)
    # Gaps can be filled, so that columns with nothing but gaps can be kept.
    if any(texts for _, texts, _ in bad):
        choose = f"{_columns_among(good)}, by name or number from 0, or " if good else ""
        wrong = "is not numeric everywhere" + ", and has gaps" * has_gaps
        remedy = (
            f"To continue, {choose}fix the file: write real numbers with decimal points and "
            "without thousands separators. "
        ) + "For gaps, use --fill with public constants, or --drop-incomplete. " * has_gaps
    else:
        wrong = "has gaps"
        remedy = "To continue, use --fill with public constants, or --drop-incomplete. "
    if any(label.is_guessed for label, _, _ in bad):
        remedy += "To see the names of columns, pass --header. "
    kinds = " (empty cells, NaN, infinity)" * has_gaps
    return f"{path} {wrong}{kinds}: {named}. {remedy.rstrip()}"


def _unusable(column):
    """Count the cells of a column that are not real numbers, and those that are gaps."""
    if column.dtype.kind in "biuf":
        texts, gaps = 0, int((~np.isfinite(column)).sum())
    elif column.dtype.kind in "OUS":
        kinds = [_kind(cell) for cell in column.tolist()]
        texts, gaps = kinds.count("text"), kinds.count("gap")
    else:
        texts, gaps = len(column), 0
    return texts, gaps


def _described(texts, gaps, n_rows):
    parts = ((texts, "do not contain a real number"), (gaps, "have a gap"))
    return " and ".join(f"{n:,} of {n_rows:,} rows {what}" for n, what in parts if n)


def _kind(cell):
    number = parsed(cell)
    if number is None:
        return "gap" if cell is None or is_missing(str(cell)) else "text"
    return "number" if np.isfinite(number) else "gap"


def parsed(cell, default=None):
    """Return the number in a cell, or the default if the cell contains no number."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return default


def _npy(path, key, header):
    try:
        with path.open("rb") as file:
            array = np.load(file, allow_pickle=False)
    except _BROKEN:
        raise ValueError(f"{path} is not a NumPy file of numbers.") from None
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
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except _BROKEN:
        raise ValueError(f"{path} is not a NumPy archive of numbers.") from None
    _refuse_inflated(path, sum(member.file_size for member in members))
    return [member.filename for member in members]


def _npz(path, key, header):
    zip_members(path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            name = _name_of(archive.files, key)
            count, array = len(archive.files), None if name is None else archive[name]
    except _BROKEN:
        raise ValueError(f"{path} is not a NumPy archive of numbers.") from None
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


def _parquet(path, key, header):
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("Parquet files need pandas: pip install sklearn-dptda[pandas].") from None
    try:
        from pyarrow.parquet import read_metadata

        metadata = read_metadata(path)
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install pyarrow.") from None
    except (ValueError, OSError):
        raise ValueError(f"{path} is not a Parquet file.") from None
    # A column of one repeated value takes almost no space in the file, but eight bytes a row in
    # memory.
    _refuse_inflated(path, 8 * metadata.num_rows * metadata.num_columns)
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError):
        raise ValueError(f"{path} is not a Parquet file.") from None
    return [str(c) for c in frame.columns], frame.to_numpy()


def _text(path, key, header):
    with path.open(newline="", encoding="utf-8-sig") as file:
        sample = file.read(4096)
        file.seek(0)
        delimiter = next((d for d in ",;\t" if d in sample), None)
        rows = (
            list(csv.reader(file, delimiter=delimiter))
            if delimiter
            else [line.split() for line in file]
        )
    rows = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        raise ValueError(f"{path} is empty.")
    if header is None and (header := _is_header(rows[0])):
        tell(
            f"note: the first row of {path} is taken as the names of the columns. If it is a "
            "record, pass --no-header."
        )
    names = rows.pop(0) if header else None
    if not rows:
        raise ValueError(f"{path} has a header but no rows.")
    width = len(names or rows[0])
    if other := sum(len(row) != width for row in rows):
        raise ValueError(
            f"{path} has rows of different lengths: {other:,} of {len(rows):,} do not have the "
            f"{width} cells of the first row. Put quotation marks around cells that contain the "
            "separator."
        )
    return names, np.array(rows, dtype=object).reshape(len(rows), -1)


def _is_header(row):
    """Return whether a first row is a header: it contains no number and no gap.

    A gap in the first cell is allowed, because the column of an index often has no name.
    """
    first, *rest = row
    named = rest or [first]
    return all(_is_name(cell) for cell in named) and (not first or _is_name(first))


def _is_name(cell):
    return not is_missing(cell) and parsed(cell) is None

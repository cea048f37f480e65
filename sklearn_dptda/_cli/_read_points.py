"""Tables of points or rows, read from files: errors count rows, and quote none."""

import csv
import sys
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

from sklearn_dptda._cli._gaps import is_missing, without_gaps

# What libraries raise for broken files. Archives that are encrypted, or compressed in unknown ways,
# raise RuntimeError and its children.
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
# Releases of more columns are little but noise, and take hours.
MAX_COLUMNS = 1000
# A compressed table may become so many bytes, or so many times the size of its file.
MAX_INFLATED_BYTES, _MAX_INFLATION = 1 << 30, 100
# An error names so many columns one by one.
_MAX_NAMED_COLUMNS = 5


def read_points(path, **options):
    """Read an (n, d) array of numbers; :func:`read_table` says how."""
    _, table, labels = read_table(path, **options)
    return as_numbers(path, table, labels)


def read_table(
    path,
    *,
    key=None,
    columns=None,
    header=None,
    fill=(),
    drop_incomplete=False,
    max_columns=MAX_COLUMNS,
):
    """Read names of columns, or None, a table of cells, and what errors call its columns.

    The file is CSV, TSV, TXT, NPY, NPZ or Parquet.
    ``key`` chooses one of several arrays of an NPZ file, ``columns`` what to keep, both by name
    or by number from 0. ``header=None`` takes the first row of a text file for names if there is
    neither a number in it nor a word for a missing one. ``fill`` and ``drop_incomplete`` say what
    becomes of missing cells of these columns. A ``ValueError`` says what is unusable,
    and counts rows, but quotes no values; nor a header that is guessed, which may be a record.
    """
    path = Path(path)
    check_is_file(path)
    suffix = path.suffix.lower()
    readers = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".pq": _parquet}
    # Errors of libraries about a broken file may quote it.
    try:
        names, table = readers.get(suffix, _text)(path, key, header)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    except csv.Error:
        raise ValueError(f"{path} is no table: a quotation mark may be missing.") from None
    if table.ndim != 2:
        raise ValueError(
            f"{path} holds an array of {table.ndim} dimension(s); 2 are needed, rows and columns."
        )
    named = names is not None and (header or readers.get(suffix) is _parquet)
    labels = [f"column {j}{f' ({names[j]!r})' if named else ''}" for j in range(table.shape[1])]
    if columns is not None:
        places = [_column(c, names, table.shape[1]) for c in columns]
        names = None if names is None else [names[place] for place in places]
        table, labels = table[:, places], [labels[place] for place in places]
    elif names is not None and not names[0]:
        raise ValueError(
            f"the first column of {path} has no name, as if it numbered the rows: choose "
            f"--columns among the other {len(names) - 1}, by name or number."
        )
    if table.shape[1] > max_columns:
        raise ValueError(
            f"{path} has {table.shape[1]:,} columns, and at most {max_columns:,} are released: "
            "choose --columns, by name or number from 0."
        )
    if fill or drop_incomplete:
        table = without_gaps(table, names, fill, drop_incomplete)
    return names, table, labels


def check_is_file(path):
    """Say what is wrong with a path."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file.")
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")


def as_numbers(path, table, labels):
    """Cells as floats; ValueError if there is one that is no number, naming its column."""
    try:
        # Complex numbers would lose a part, and dates become numbers.
        points = table.astype(float) if table.dtype.kind in "biufOUS" else None
    except (TypeError, ValueError):
        points = None
    if points is None or not np.isfinite(points).all():
        unusable = zip(labels, map(_unusable, table.T), strict=True)
        bad = [f"{label}: {what}" for label, what in unusable if what]
        named = "; ".join(bad[:_MAX_NAMED_COLUMNS])
        beyond = len(bad) - _MAX_NAMED_COLUMNS
        more = f"; {beyond} more columns" if beyond > 0 else ""
        good = len(labels) - len(bad)
        choose = f"choose --columns among the other {good}, by name or number from 0, or "
        raise ValueError(
            f"{path} is not numeric everywhere, or has gaps (empty cells, NaN, infinity): {named}"
            f"{more}. To go on, {choose if good else ''}fix the file: real numbers with decimal "
            "points and without separators of thousands. For gaps, --fill takes public constants, "
            "and --drop-incomplete leaves rows out."
        )
    return points


def _unusable(column):
    """How many cells of a column are no real numbers, and how many gaps, in words."""
    if column.dtype.kind in "biuf":
        texts, gaps = 0, int((~np.isfinite(column)).sum())
    elif column.dtype.kind in "OUS":
        kinds = [_kind(cell) for cell in column.tolist()]
        texts, gaps = kinds.count("text"), kinds.count("gap")
    else:
        texts, gaps = len(column), 0
    parts = ((texts, "hold no real number"), (gaps, "have a gap"))
    return " and ".join(f"{n:,} of {len(column):,} rows {what}" for n, what in parts if n)


def _kind(cell):
    number = parsed(cell)
    if number is None:
        return "gap" if cell is None or is_missing(str(cell)) else "text"
    return "number" if np.isfinite(number) else "gap"


def parsed(cell, default=None):
    """The number in a cell, or the default where there is none."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return default


def _column(name, names, width):
    if names is not None and name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < width:
        return int(name)
    raise ValueError(f"--columns: there is no column {name!r} among the {width} columns.")


def _npy(path, key, header):
    try:
        with path.open("rb") as file:
            array = np.load(file, allow_pickle=False)
    except _BROKEN:
        raise ValueError(f"{path} is not a NumPy file of numbers.") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is an archive of arrays: name it .npz.")
    return None, array


def _refuse_inflated(path, declared):
    """Refuse a file that says that it becomes far larger than it is, before it does."""
    if declared > max(MAX_INFLATED_BYTES, _MAX_INFLATION * path.stat().st_size):
        raise ValueError(
            f"{path} would become {declared / 2**30:,.3g} GiB, more than {_MAX_INFLATION} times "
            "its size, and is not read. If it is meant to, save it uncompressed, as .npy."
        )


def zip_members(path):
    """Names of what is in an archive; ValueError if it would inflate beyond measure."""
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
    # Names of arrays may be names of people.
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
    # A column of one value takes no room in the file, and eight bytes a row in memory.
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
        print(
            f"note: the first row of {path} is taken for names of columns; --no-header if it is "
            "a record.",
            file=sys.stderr,
        )
    names = rows.pop(0) if header else None
    if not rows:
        raise ValueError(f"{path} has a header and no rows.")
    width = len(names or rows[0])
    if other := sum(len(row) != width for row in rows):
        raise ValueError(
            f"{path} has rows of different lengths: {other:,} of {len(rows):,} have not the "
            f"{width} cells of the first row. Quote cells that contain the separator."
        )
    return names, np.array(rows, dtype=object).reshape(len(rows), -1)


def _is_header(row):
    """A first row with a number or a gap in it is a record, but for a gap above an index."""
    first, *rest = row
    named = rest or [first]
    return all(_is_name(cell) for cell in named) and (not first or _is_name(first))


def _is_name(cell):
    return not is_missing(cell) and parsed(cell) is None

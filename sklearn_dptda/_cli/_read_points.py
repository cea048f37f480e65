"""Reading points from files."""

import csv
import sys
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

# What libraries raise at broken files; zip archives that are encrypted, or compressed in unknown
# ways: RuntimeError and its children.
_BROKEN = (
    ValueError,
    EOFError,
    OSError,
    KeyError,
    SyntaxError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
# Words for a number that is missing, in lower case and without dashes and the like.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "inf", "infinity"}


def read_points(path, key=None, columns=None, header=None):
    """Read an (n, d) array of numbers from a CSV, TSV, TXT, NPY, NPZ or Parquet file.

    The parameters, and what errors say, are those of :func:`read_table`.
    """
    return as_numbers(path, read_table(path, key, columns, header)[1])


def read_table(path, key=None, columns=None, header=None):
    """Read names of columns, or None, and a table of cells.

    ``key`` chooses one of several arrays of an NPZ file, ``columns`` what to keep, both by name
    or by number from 0. ``header=None`` takes the first row of a text file for names if there is
    neither a number in it nor a word for a missing one. A ``ValueError`` says what is unusable,
    and quotes neither values nor names: what is taken for a header may be a record.
    """
    path = Path(path)
    check_is_file(path)
    suffix = path.suffix.lower()
    readers = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".pq": _parquet}
    # What libraries say of a broken file may quote it.
    try:
        names, table = readers.get(suffix, _text)(path, key, header)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    except csv.Error:
        raise ValueError(f"{path} is no table: a quotation mark may be missing.") from None
    if table.ndim != 2:
        raise ValueError(f"{path} holds an array of {table.ndim} dimension(s); 2 are needed.")
    if columns is not None:
        places = [_column(c, names, table.shape[1]) for c in columns]
        names = None if names is None else [names[place] for place in places]
        return names, table[:, places]
    if names is not None and not names[0]:
        raise ValueError(
            f"the first column of {path} has no name, as if it numbered the rows: choose "
            f"--columns among the other {len(names) - 1}, by name or number."
        )
    return names, table


def check_is_file(path):
    """Say what is wrong with a path."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file.")
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")


def as_numbers(path, table):
    """Cells as floats; ValueError if there is one that is no number."""
    try:
        # Complex numbers would lose a part, and dates become numbers.
        points = table.astype(float) if table.dtype.kind in "biufOUS" else None
    except (TypeError, ValueError):
        points = None
    if points is None or not np.isfinite(points).all():
        raise ValueError(
            f"{path} is not numeric everywhere, or has gaps (empty cells, NaN, infinity): choose "
            "--columns, by name or number from 0, or mend the file (real numbers, decimal "
            "points, no thousands)."
        )
    return points


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


def _npz(path, key, header):
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
        frame = pd.read_parquet(path)
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install pyarrow.") from None
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
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{path} has rows of different lengths.")
    return names, np.array(rows, dtype=object).reshape(len(rows), -1)


def _is_header(row):
    """A first row with a number or a gap in it is a record, but for a gap above an index."""
    first, *rest = row
    named = rest or [first]
    return all(_is_name(cell) for cell in named) and (not first or _is_name(first))


def _is_name(cell):
    return cell.strip(".?*-_# ").lower() not in _MISSING and not _is_number(cell)


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True

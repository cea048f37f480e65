"""Reading points from files."""

import csv
from pathlib import Path

import numpy as np


def read_points(path, key=None, columns=None):
    """Read an (n, d) array from a CSV, TSV, TXT, NPY, NPZ or Parquet file.

    Parameters
    ----------
    path : str or path
    key : str, default=None
        Which array of an NPZ file; needed where it holds several.
    columns : list of str, default=None
        Names, or numbers counted from 0, of the columns to keep.

    Returns
    -------
    ndarray of shape (n, d)

    Raises
    ------
    ValueError
        If the file is missing or is not a numeric table. Values are never
        quoted, nor names: what is taken for a header may be a record.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")
    suffix = path.suffix.lower()
    readers = {".npy": _npy, ".npz": _npz, ".parquet": _parquet, ".pq": _parquet}
    try:
        names, table = readers.get(suffix, _text)(path, key)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    if table.ndim != 2:
        raise ValueError(f"{path} holds an array of {table.ndim} dimension(s); 2 are needed.")
    if columns is not None:
        table = table[:, [_column(c, names, table.shape[1]) for c in columns]]
    elif names is not None and not names[0]:
        raise ValueError(
            f"the first column of {path} has no name, as if it numbered the rows: choose "
            f"--columns among the other {len(names) - 1}, by name or number."
        )
    try:
        return table.astype(float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{path} is not numeric everywhere, or has gaps: choose --columns, by name or number "
            "from 0, or mend the file (decimal points, no thousands, no empty cells)."
        ) from None


def _column(name, names, width):
    if names is not None and name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < width:
        return int(name)
    raise ValueError(f"--columns: there is no column {name!r} among the {width} columns.")


def _npy(path, key):
    try:
        return None, np.load(path, allow_pickle=False)
    except ValueError:
        raise ValueError(f"{path} is not a NumPy file of numbers.") from None


def _npz(path, key):
    with np.load(path, allow_pickle=False) as archive:
        if key is None and len(archive.files) == 1:
            key = archive.files[0]
        if key not in archive.files:
            raise ValueError(f"choose --key among {', '.join(archive.files)}.")
        return None, archive[key]


def _parquet(path, key):
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("Parquet files need pandas: pip install sklearn-dptda[pandas].") from None
    frame = pd.read_parquet(path)
    return [str(c) for c in frame.columns], frame.to_numpy()


def _text(path, key):
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
    names = rows.pop(0) if _is_header(rows[0]) else None
    if not rows:
        raise ValueError(f"{path} has a header and no rows.")
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{path} has rows of different lengths.")
    return names, np.array(rows, dtype=object).reshape(len(rows), -1)


def _is_header(row):
    """A first row with a number or a gap in it is a record, but for a gap above an index."""
    first, *rest = row
    named = rest or [first]
    return all(cell and not _is_number(cell) for cell in named) and not _is_number(first)


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True

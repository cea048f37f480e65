"""Data that are not shipped: files of arrays in a local folder.

A loader looks for its file in ``data_home``, else in the folder
that the environment variable ``SKLEARN_DPTDA_DATA`` names, else in scikit-learn's data folder.
Where there is none, the error names the source, the arrays to save from it, and their checksum.
The checksum is the sha256 of the numbers alone, array after array in the order that the error
names them, each in C order: real numbers as little-endian float64, integers as little-endian
int64. Another checksum is a warning, since own data of the same form are welcome.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import get_data_home

from sklearn_dptda.privacy._warnings import warn_caller


def data_folder(data_home):
    """Folder of the files: the caller's, else the environment's, else scikit-learn's."""
    return Path(data_home or os.environ.get("SKLEARN_DPTDA_DATA") or get_data_home())


def read_published(path, *, contents, source, layout, needed, sha256, n_columns=None):
    """Arrays of a published file by name; an error says how to get a file that is not there.

    ``layout`` says how rows and labels are stored; tables ``X...`` must have ``n_columns``.
    """
    arrays = read_arrays(
        path,
        needed,
        f"The {contents} are not in {path}. The original is {source}. Save it as {path.name} with "
        f"numpy.savez, as arrays {', '.join(needed)} ({layout}; sha256 of the numbers {sha256}), "
        "and pass the folder as data_home or in the environment variable SKLEARN_DPTDA_DATA.",
    )
    for key, array in arrays.items():
        if n_columns and key.startswith("X") and array.shape[1:] != (n_columns,):
            raise ValueError(
                f"{key} in {path} should have {n_columns} columns; its shape is {array.shape}."
            )
    warn_of_other_contents(path, arrays.values(), sha256)
    return arrays


def read_arrays(path, needed, missing_file, optional=()):
    """Arrays of an archive by name; ``missing_file`` is the message of the error without it."""
    if not path.is_file():
        raise FileNotFoundError(missing_file)
    with np.load(path, allow_pickle=False) as archive:
        missing = [key for key in needed if key not in archive]
        if missing:
            raise ValueError(f"{path} lacks the arrays {', '.join(missing)}.")
        return {key: archive[key] for key in (*needed, *optional) if key in archive}


def checksum(arrays):
    """Sha256 of the numbers in arrays, as the module defines it; arrays of strings do not count."""
    digest = hashlib.sha256()
    for array in arrays:
        number = {"f": "<f8", "i": "<i8", "u": "<i8"}.get(array.dtype.kind)
        if number:
            digest.update(np.ascontiguousarray(array, dtype=number).tobytes())
    return digest.hexdigest()


def warn_of_other_contents(path, arrays, sha256):
    """Say so where a file does not hold the published numbers."""
    if checksum(arrays) != sha256:
        warn_caller(
            f"{path} does not hold the published data: the sha256 of its numbers is another one."
        )

"""Reading of data sets that are not part of the package from files in a local folder.

The error about a missing file names the source, the arrays to save from it, and their checksum: the
sha256 of the numbers only, array after array in the order of the error, each in C order, real
numbers as little-endian float64 and integers as little-endian int64. Another checksum only causes a
warning, because you may use your own data of the same form.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import get_data_home

from sklearn_dptda.privacy._warnings import warn_caller


def data_folder(data_home):
    """Return the folder of the files: the caller's, the environment's, or scikit-learn's."""
    return Path(data_home or os.environ.get("SKLEARN_DPTDA_DATA") or get_data_home())


def read_published(path, *, contents, source, layout, needed, sha256, n_columns=None):
    """Return the arrays of a published file by name, or raise an error that says how to get it.

    ``layout`` describes how rows and labels are stored. Tables ``X...`` must have ``n_columns``.
    """
    arrays = read_arrays(
        path,
        needed,
        f"The {contents} are not in {path}. Their source is {source}. Save it as {path.name} with "
        f"numpy.savez, as arrays {', '.join(needed)} ({layout}; sha256 of the numbers {sha256}), "
        "and pass the folder as data_home or in the environment variable SKLEARN_DPTDA_DATA.",
    )
    for key, array in arrays.items():
        if n_columns and key.startswith("X") and array.shape[1:] != (n_columns,):
            raise ValueError(
                f"{key} in {path} must have {n_columns} columns; its shape is {array.shape}."
            )
    warn_of_other_contents(path, arrays.values(), sha256)
    return arrays


def read_arrays(path, needed, missing_file, optional=()):
    """Return arrays of an archive by name. ``missing_file`` is the message if it does not exist."""
    if not path.is_file():
        raise FileNotFoundError(missing_file)
    with np.load(path, allow_pickle=False) as archive:
        missing = [key for key in needed if key not in archive]
        if missing:
            raise ValueError(f"{path} lacks the arrays {', '.join(missing)}.")
        return {key: archive[key] for key in (*needed, *optional) if key in archive}


def checksum(arrays):
    """Return the sha256 of the numbers in arrays, as defined in the module, without strings."""
    digest = hashlib.sha256()
    for array in arrays:
        number = {"f": "<f8", "i": "<i8", "u": "<i8"}.get(array.dtype.kind)
        if number:
            digest.update(np.ascontiguousarray(array, dtype=number).tobytes())
    return digest.hexdigest()


def warn_of_other_contents(path, arrays, sha256):
    """Warn if a file does not contain the published numbers."""
    if checksum(arrays) != sha256:
        warn_caller(
            f"{path} does not contain the published data: the sha256 of its numbers is different."
        )

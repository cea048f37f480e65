"""Accelerometer recordings of three walking persons."""

import hashlib
import io
import os
import pickle
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from sklearn_dptda._typing import PathLike

URL = "https://raw.githubusercontent.com/GUDHI/TDA-tutorial/master/datasets/data_acc"
# Of the recordings as little-endian float64 of shape (3, 100, 200, 3).
SHA256 = "f3be8882afc3ad7b378f1023027278ccd1869e85ad77f8fd3c886e017581446d"
FILES = {False: "walkers.npz", True: "walkers_series.npz"}
SHAPE = (3, 100, 200, 3)
NAMES = np.array(["A", "B", "C"])


def load_walkers(
    data_home: PathLike | None = None, *, series: bool = False, download: bool = True
) -> Bunch:
    """Load the walkers data: phone accelerations of persons A, B and C.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that holds ``walkers.npz`` or ``walkers_series.npz``, or where a
        download is kept. None: the folder named by the environment variable
        ``SKLEARN_DPTDA_DATA``, else scikit-learn's data folder.
    series : bool, default=False
        False: one cloud per person. True: 100 windows of 200 samples per
        person, as labelled clouds.
    download : bool, default=True
        Whether to fetch the recordings from the GUDHI tutorial, and check
        them, if the file is not there.

    Returns
    -------
    Bunch
        With ``series=False``: ``data``, a list of three arrays of shape
        (20000, 3); ``target_names``. With ``series=True``: ``data`` of shape
        (300, 200, 3), ``target`` of shape (300,), ``target_names``, and where
        the local file has them ``segment`` and ``start``, the place of each
        window in the recording.

    Raises
    ------
    FileNotFoundError
        If the data are neither there nor to be had; the message says what to
        do.
    ValueError
        If a download does not have the expected checksum.

    Notes
    -----
    The windows overlap: of the 20000 rows of a person about 3670 are
    distinct, so a record is a row of this table, not a measurement. Split by
    ``segment`` to keep train and test apart.

    References
    ----------
    F. Chazal, B. Michel, "An introduction to topological data analysis",
    2021; the GUDHI tutorial.
    """
    folder = _data_folder(data_home)
    path = folder / FILES[series]
    if not path.is_file():
        if not download:
            raise FileNotFoundError(_how_to(path))
        folder.mkdir(parents=True, exist_ok=True)
        _store(folder, _checked(_arrays(_fetch(path))))
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    if not series:
        return Bunch(data=[arrays[name] for name in NAMES], target_names=NAMES)
    extra = {k: arrays[k] for k in ("segment", "start") if k in arrays}
    return Bunch(
        data=arrays["X"], target=arrays["y"], target_names=arrays["classes"].astype(str), **extra
    )


def _data_folder(data_home):
    return Path(data_home or os.environ.get("SKLEARN_DPTDA_DATA") or get_data_home())


def _how_to(path):
    return (
        f"The walkers data are not in {path}. Download {URL} with network access "
        "(load_walkers(download=True) does it), or put walkers.npz and walkers_series.npz into a "
        "folder and pass it as data_home or in the environment variable SKLEARN_DPTDA_DATA."
    )


def _fetch(path):
    try:
        with urllib.request.urlopen(URL, timeout=30) as response:
            return response.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise FileNotFoundError(_how_to(path)) from error


class _ArrayUnpickler(pickle.Unpickler):
    """Rebuilds NumPy arrays and nothing else: a pickle must not run code."""

    def find_class(self, module, name):
        if (module.split(".")[0], name) in {
            ("numpy", "_reconstruct"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("numpy", "scalar"),
            ("_codecs", "encode"),
        }:
            return super().find_class(module, name)
        raise ValueError("The download is not the file of NumPy arrays that was expected.")


def _arrays(content):
    try:
        parts = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
        return np.stack([np.asarray(part, dtype="<f8") for part in parts[:3]])
    except (pickle.UnpicklingError, EOFError, TypeError, IndexError) as error:
        raise ValueError("The download cannot be read: it is damaged or has changed.") from error


def _checked(windows):
    digest = hashlib.sha256(np.ascontiguousarray(windows).tobytes()).hexdigest()
    if windows.shape != SHAPE or digest != SHA256:
        raise ValueError(
            "The download does not have the expected checksum: it is damaged or has changed."
        )
    return windows


def _store(folder, windows):
    clouds = {name: part.reshape(-1, 3) for name, part in zip(NAMES, windows, strict=True)}
    np.savez_compressed(folder / FILES[False], **clouds)
    np.savez_compressed(
        folder / FILES[True],
        X=windows.reshape(-1, *SHAPE[2:]),
        y=np.repeat(np.arange(3), SHAPE[1]),
        classes=NAMES,
    )

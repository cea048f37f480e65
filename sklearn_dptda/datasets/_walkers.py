"""Accelerometer recordings of three walking persons."""

import io
import pickle
import urllib.error
import urllib.request

import numpy as np
from sklearn.utils import Bunch

from sklearn_dptda._typing import PathLike
from sklearn_dptda.datasets._local_files import (
    checksum,
    data_folder,
    read_arrays,
    warn_of_other_contents,
)

URL = "https://raw.githubusercontent.com/GUDHI/TDA-tutorial/master/datasets/data_acc"
# The checksum of the recordings: three persons of 100 windows of 200 samples, without labels.
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
        If a download does not have the expected checksum, or a file lacks an
        array.

    Warns
    -----
    UserWarning
        If the recordings in the file are not the published ones, by their sha256.

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
    path = data_folder(data_home) / FILES[series]
    if download and not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(path)
    if not series:
        persons = read_arrays(path, NAMES, _how_to(path)).values()
        warn_of_other_contents(path, persons, SHA256)
        return Bunch(data=list(persons), target_names=NAMES)
    arrays = read_arrays(path, ("X", "y", "classes"), _how_to(path), ("segment", "start"))
    warn_of_other_contents(path, [arrays["X"]], SHA256)
    return Bunch(
        data=arrays.pop("X"),
        target=arrays.pop("y"),
        target_names=arrays.pop("classes").astype(str),
        **arrays,
    )


def _how_to(path):
    return (
        f"The walkers data are not in {path}. Download {URL} with network access "
        "(load_walkers(download=True) does it), or put walkers.npz and walkers_series.npz into a "
        "folder and pass it as data_home or in the environment variable SKLEARN_DPTDA_DATA."
    )


def _download(path):
    """Fetch the recordings, check them, and store both files."""
    try:
        with urllib.request.urlopen(URL, timeout=30) as response:
            content = response.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise FileNotFoundError(_how_to(path)) from error
    try:
        parts = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
        windows = np.stack([np.asarray(part, dtype="<f8") for part in parts[:3]])
    except (pickle.UnpicklingError, EOFError, TypeError, IndexError) as error:
        raise ValueError("The download cannot be read: it is damaged or has changed.") from error
    if windows.shape != SHAPE or checksum([windows]) != SHA256:
        raise ValueError(
            "The download does not have the expected checksum: it is damaged or has changed."
        )
    clouds = {name: part.reshape(-1, 3) for name, part in zip(NAMES, windows, strict=True)}
    np.savez_compressed(path.parent / FILES[False], **clouds)
    np.savez_compressed(
        path.parent / FILES[True],
        X=windows.reshape(-1, *SHAPE[2:]),
        y=np.repeat(np.arange(3), SHAPE[1]),
        classes=NAMES,
    )


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

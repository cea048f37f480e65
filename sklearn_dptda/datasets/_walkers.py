"""Accelerometer recordings of three walking people."""

import io
import pickle
import urllib.error
import urllib.request

import numpy as np
from sklearn.utils import Bunch

from sklearn_dptda._typing import PathLike
from sklearn_dptda.datasets._published_data import (
    checksum,
    data_folder,
    read_arrays,
    warn_of_other_contents,
)

URL = "https://raw.githubusercontent.com/GUDHI/TDA-tutorial/master/datasets/data_acc"
# The checksum of the recordings of three people, 100 windows of 200 samples each, without labels.
SHA256 = "f3be8882afc3ad7b378f1023027278ccd1869e85ad77f8fd3c886e017581446d"
FILES = {False: "walkers.npz", True: "walkers_series.npz"}
SHAPE = (3, 100, 200, 3)
NAMES = np.array(["A", "B", "C"])


def load_walkers(
    data_home: PathLike | None = None, *, series: bool = False, download: bool = True
) -> Bunch:
    """Load the walkers data: phone accelerations of three walking people, A, B and C.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that contains ``walkers.npz`` or ``walkers_series.npz``, and in which a download
        is stored. None uses the folder named by the environment variable
        ``SKLEARN_DPTDA_DATA``, or else scikit-learn's data folder.
    series : bool, default=False
        False loads one point cloud for each person. True loads 100 windows of 200 samples for
        each person, as labelled point clouds.
    download : bool, default=True
        Whether to download the recordings from the GUDHI tutorial if the file does not exist.

    Returns
    -------
    Bunch
        Dictionary-like object, with the following attributes.

        data : list of ndarray of shape (20000, 3), or ndarray of shape (300, 200, 3)
            One array for each person, or with ``series=True`` one for each window.
        target : ndarray of shape (300,)
            The person of each window. Only with ``series=True``.
        target_names : ndarray of str
            Names of the people.
        segment, start : ndarray of shape (300,)
            Position of each window, with ``series=True`` and if the local file has them.

    Raises
    ------
    FileNotFoundError
        If the file does not exist and cannot be downloaded. The message says what to do.

    Warns
    -----
    UserWarning
        If the recordings in the file are not the published ones, according to their sha256.

    Notes
    -----
    The windows overlap: of the 20000 rows of a person, only about 3670 are distinct. A record
    is a row of this table, not a measurement. Split by ``segment`` to keep training and test
    data apart.

    References
    ----------
    F. Chazal, B. Michel, "An introduction to topological data analysis", 2021; the GUDHI tutorial.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_walkers
    >>> walkers = load_walkers()  # doctest: +SKIP
    >>> [cloud.shape for cloud in walkers.data]  # doctest: +SKIP
    [(20000, 3), (20000, 3), (20000, 3)]
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
    """Download the recordings, check them, and store both files."""
    try:
        with urllib.request.urlopen(URL, timeout=30) as response:
            content = response.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise FileNotFoundError(_how_to(path)) from error
    try:
        parts = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
        windows = np.stack([np.asarray(part, dtype="<f8") for part in parts[:3]])
    except (pickle.UnpicklingError, EOFError, TypeError, IndexError) as error:
        raise ValueError(
            f"The download cannot be read, because it is damaged or has changed. See {URL}."
        ) from error
    if windows.shape != SHAPE or checksum([windows]) != SHA256:
        raise ValueError(
            "The download does not have the expected checksum, because it is damaged or has "
            f"changed. See {URL}."
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
    """Unpickler that rebuilds NumPy arrays only, because a pickle must not run code."""

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

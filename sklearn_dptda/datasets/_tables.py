"""Labelled tables with public bounds of their columns, read from local files.

The bounds are constants: round numbers from the meaning of a column and its
published range. They are never computed from the rows that were read, so that
they may enter a private estimator as public knowledge.
"""

from typing import Literal, overload

import numpy as np
from sklearn.utils import Bunch

from sklearn_dptda._typing import FloatArray, IntArray, PathLike
from sklearn_dptda.datasets._walkers import _data_folder

# Means are taken to lie in the range of a byte, as all published ones do, and a standard
# deviation is at most half a range. The two pairs of higher moments are interchanged at the
# source (see load_pulsar): what is called skewness is an excess kurtosis, never below -2.
PULSAR = {
    "profile_mean": (0, 255),
    "profile_std": (0, 128),
    "profile_excess_kurtosis": (-5, 10),
    "profile_skewness": (-2, 75),
    "dmsnr_mean": (0, 255),
    "dmsnr_std": (0, 128),
    "dmsnr_excess_kurtosis": (-5, 40),
    "dmsnr_skewness": (-2, 1200),
}

# Lengths in mm on the camera, the size as a decimal logarithm, shares, an angle in degrees.
MAGIC = {
    "fLength": (0, 400),
    "fWidth": (0, 300),
    "fSize": (1, 6),
    "fConc": (0, 1),
    "fConc1": (0, 1),
    "fAsym": (-600, 600),
    "fM3Long": (-400, 400),
    "fM3Trans": (-250, 250),
    "fAlpha": (0, 90),
    "fDist": (0, 500),
}

# The units are not published. Columns 7 to 9 are differences of columns 1, 3 and 5 up to
# rounding, so one scale serves all; it cuts the rare spikes of up to 14000.
SHUTTLE = {
    "time": (0, 150),
    "sensor_2": (-150, 150),
    "sensor_3": (0, 150),
    "sensor_4": (-150, 150),
    "sensor_5": (-150, 150),
    "sensor_6": (-150, 150),
    "sensor_7": (-150, 150),
    "sensor_8": (-150, 150),
    "sensor_9": (-150, 150),
}

# One range for all magnitudes keeps colours, their differences, comparable. Stars that approach
# have a small negative redshift; the survey's spectroscopic pipeline stops at 7.
SLOAN = {
    "ra": (0, 360),
    "dec": (-90, 90),
    "u": (10, 30),
    "g": (10, 30),
    "r": (10, 30),
    "i": (10, 30),
    "z": (10, 30),
    "run": (0, 10_000),
    "rerun": (0, 1000),
    "camcol": (1, 6),
    "field": (0, 1000),
    "specobjid": (0, 2**64),
    "redshift": (-0.01, 7),
    "plate": (0, 10_000),
    "mjd": (51_000, 58_000),
    "fiberid": (1, 1000),
}
SLOAN_PHYSICAL = ("ra", "dec", "u", "g", "r", "i", "z", "redshift")

USPS = {f"pixel_{i}_{j}": (-1, 1) for i in range(16) for j in range(16)}

SOURCES = {
    "pulsar": (
        'the Kaggle data set "Predicting a Pulsar Star" '
        "(https://www.kaggle.com/datasets/colearninglounge/predicting-pulsar-starintermediate), "
        "file pulsar_data_train.csv without its incomplete rows; it is a part of HTRU2, "
        "https://archive.ics.uci.edu/dataset/372/htru2"
    ),
    "magic": (
        'the UCI data set "MAGIC Gamma Telescope", file magic04.data, '
        "https://archive.ics.uci.edu/dataset/159/magic+gamma+telescope"
    ),
    "shuttle": (
        'the UCI data set "Statlog (Shuttle)", file shuttle.trn, '
        "https://archive.ics.uci.edu/dataset/148/statlog+shuttle"
    ),
    "sloan": (
        'the Kaggle data set "Sloan Digital Sky Survey DR14", file '
        '"Skyserver_SQL2_27_2018 6_51_39 PM.csv" without the column objid, '
        "also in https://github.com/Jason-Woo/Data-Completion-and-Interpolation"
    ),
    "usps": (
        "the data of The Elements of Statistical Learning, files zip.train and zip.test, "
        "https://github.com/cran/ElemStatLearn"
    ),
}


@overload
def load_pulsar(data_home: PathLike | None = ..., *, return_X_y: Literal[False] = ...) -> Bunch: ...


@overload
def load_pulsar(
    data_home: PathLike | None = ..., *, return_X_y: Literal[True]
) -> tuple[FloatArray, IntArray]: ...


def load_pulsar(
    data_home: PathLike | None = None, *, return_X_y: bool = False
) -> Bunch | tuple[FloatArray, IntArray]:
    """Load the pulsar data: moments of radio profiles, pulsar or not.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that holds ``pulsar.npz``. None: the folder named by the
        environment variable ``SKLEARN_DPTDA_DATA``, else scikit-learn's data
        folder. Nothing is downloaded.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` of shape (9273, 8), ``target`` of shape (9273,): 8423
        non-pulsars and 850 pulsars, ``target_names``, ``feature_names``, and
        ``bounds``, a pair of arrays (low, high), which contain the data.

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says where to get it.
    ValueError
        If the file does not hold the expected arrays.

    Notes
    -----
    The columns keep their published names, but the values show that
    "excess kurtosis" and "skewness" are interchanged, for the profile and for
    the DM-SNR curve: every row has ``skewness >= excess_kurtosis ** 2 - 2``,
    which moments obey the other way round.

    References
    ----------
    R. J. Lyon, B. W. Stappers, S. Cooper, J. M. Brooke, J. D. Knowles, "Fifty
    years of pulsar candidate selection", MNRAS 459, 2016; UCI data set HTRU2.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_pulsar
    >>> X, y = load_pulsar("my_data", return_X_y=True)  # doctest: +SKIP
    """
    return _table("pulsar", PULSAR, data_home, return_X_y)


@overload
def load_magic(data_home: PathLike | None = ..., *, return_X_y: Literal[False] = ...) -> Bunch: ...


@overload
def load_magic(
    data_home: PathLike | None = ..., *, return_X_y: Literal[True]
) -> tuple[FloatArray, IntArray]: ...


def load_magic(
    data_home: PathLike | None = None, *, return_X_y: bool = False
) -> Bunch | tuple[FloatArray, IntArray]:
    """Load the MAGIC data: simulated telescope images, gamma rays or hadrons.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that holds ``magic.npz``. None: the folder named by the
        environment variable ``SKLEARN_DPTDA_DATA``, else scikit-learn's data
        folder. Nothing is downloaded.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` of shape (19020, 10), ``target`` of shape (19020,): 12332
        gamma rays and 6688 hadrons, ``target_names``, ``feature_names``, and
        ``bounds``, a pair of arrays (low, high), which contain the data.

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says where to get it.
    ValueError
        If the file does not hold the expected arrays.

    References
    ----------
    R. K. Bock et al., "Methods for multidimensional event classification",
    Nucl. Instr. Meth. A 516, 2004; UCI data set MAGIC Gamma Telescope.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_magic
    >>> X, y = load_magic("my_data", return_X_y=True)  # doctest: +SKIP
    """
    return _table("magic", MAGIC, data_home, return_X_y)


@overload
def load_shuttle(
    data_home: PathLike | None = ..., *, return_X_y: Literal[False] = ...
) -> Bunch: ...


@overload
def load_shuttle(
    data_home: PathLike | None = ..., *, return_X_y: Literal[True]
) -> tuple[FloatArray, IntArray]: ...


def load_shuttle(
    data_home: PathLike | None = None, *, return_X_y: bool = False
) -> Bunch | tuple[FloatArray, IntArray]:
    """Load the shuttle data: sensor readings in seven very uneven classes.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that holds ``shuttle.npz``. None: the folder named by the
        environment variable ``SKLEARN_DPTDA_DATA``, else scikit-learn's data
        folder. Nothing is downloaded.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` of shape (43500, 9), ``target`` of shape (43500,): 34108, 37,
        132, 6748, 2458, 6 and 11 rows, ``target_names``, ``feature_names``,
        and ``bounds``, a pair of arrays (low, high).

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says where to get it.
    ValueError
        If the file does not hold the expected arrays.

    Notes
    -----
    The first column is time; the names of the others are generic. The bounds
    do not contain all of the data: 191 rows have a spike that sticks out,
    nearly always in columns 2, 4 and 6, among them all 17 of the two smallest
    classes. Clipped to the bounds, a spike is still far from the other values.
    Since the units are not published, the scale was chosen with the ranges of
    this public table in view.

    References
    ----------
    UCI data set Statlog (Shuttle), from NASA, by J. Catlett.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_shuttle
    >>> X, y = load_shuttle("my_data", return_X_y=True)  # doctest: +SKIP
    """
    return _table("shuttle", SHUTTLE, data_home, return_X_y)


@overload
def load_sloan(
    data_home: PathLike | None = ..., *, physical: bool = ..., return_X_y: Literal[False] = ...
) -> Bunch: ...


@overload
def load_sloan(
    data_home: PathLike | None = ..., *, physical: bool = ..., return_X_y: Literal[True]
) -> tuple[FloatArray, IntArray]: ...


def load_sloan(
    data_home: PathLike | None = None, *, physical: bool = True, return_X_y: bool = False
) -> Bunch | tuple[FloatArray, IntArray]:
    """Load the Sloan data: galaxies, quasars and stars of the sky survey.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that holds ``sloan.npz``. None: the folder named by the
        environment variable ``SKLEARN_DPTDA_DATA``, else scikit-learn's data
        folder. Nothing is downloaded.
    physical : bool, default=True
        True: the position, the five magnitudes and the redshift. False: all
        16 columns, with the numbers that only say how the row was recorded.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` of shape (10000, 8) or (10000, 16), ``target`` of shape
        (10000,): 4998 galaxies, 850 quasars and 4152 stars, ``target_names``,
        ``feature_names``, and ``bounds``, a pair of arrays (low, high), which
        contain the data.

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says where to get it.
    ValueError
        If the file does not hold the expected arrays.

    References
    ----------
    B. Abolfathi et al., "The fourteenth data release of the Sloan Digital Sky
    Survey", ApJS 235, 2018; Kaggle data set Sloan Digital Sky Survey DR14.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_sloan
    >>> X, y = load_sloan("my_data", return_X_y=True)  # doctest: +SKIP
    """
    return _table(
        "sloan", SLOAN, data_home, return_X_y, columns=SLOAN_PHYSICAL if physical else None
    )


@overload
def load_usps(data_home: PathLike | None = ..., *, return_X_y: Literal[False] = ...) -> Bunch: ...


@overload
def load_usps(
    data_home: PathLike | None = ..., *, return_X_y: Literal[True]
) -> tuple[FloatArray, IntArray]: ...


def load_usps(
    data_home: PathLike | None = None, *, return_X_y: bool = False
) -> Bunch | tuple[FloatArray, IntArray]:
    """Load the USPS digits: grey images of 16 by 16 pixels, ten classes.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that holds ``usps.npz``. None: the folder named by the
        environment variable ``SKLEARN_DPTDA_DATA``, else scikit-learn's data
        folder. Nothing is downloaded.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone, the training part.

    Returns
    -------
    Bunch
        ``data`` of shape (7291, 256), ``target`` of shape (7291,),
        ``data_test`` of shape (2007, 256), ``target_test`` of shape (2007,),
        ``target_names``, ``feature_names`` (``pixel_row_column``), and
        ``bounds``, the pair (-1, 1): paper and ink. They contain the data.

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says where to get it.
    ValueError
        If the file does not hold the expected arrays.

    References
    ----------
    Y. Le Cun et al., "Handwritten digit recognition with a back-propagation
    network", NIPS 1989; T. Hastie, R. Tibshirani, J. Friedman, "The elements
    of statistical learning", 2009.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_usps
    >>> X, y = load_usps("my_data", return_X_y=True)  # doctest: +SKIP
    """
    found = _table("usps", USPS, data_home, return_X_y, extra=("X_test", "y_test"))
    if not return_X_y:
        found.bounds = (-1, 1)
    return found


def _table(name, ranges, data_home, return_X_y, *, columns=None, extra=()):
    """Read ``<name>.npz`` whose columns are the keys of ``ranges``, in order."""
    names = list(ranges)
    arrays = _read(_data_folder(data_home) / f"{name}.npz", name, len(names), extra)
    keep = np.array([names.index(c) for c in columns or names])
    X = arrays["X"].astype(np.float64)[:, keep]
    if return_X_y:
        return X, arrays["y"]
    low, high = np.array([ranges[names[k]] for k in keep], dtype=float).T.copy()
    found = Bunch(
        data=X,
        target=arrays["y"],
        target_names=arrays["classes"].astype(str),
        feature_names=np.array(names)[keep],
        bounds=(low, high),
    )
    if extra:
        found.update(
            data_test=arrays["X_test"].astype(np.float64)[:, keep], target_test=arrays["y_test"]
        )
    return found


def _read(path, name, n_columns, extra):
    needed = ("X", "y", "classes", *extra)
    if not path.is_file():
        raise FileNotFoundError(
            f"The {name} data are not in {path}. The original is {SOURCES[name]}. "
            f"Save it as {path.name} with numpy.savez, as arrays {', '.join(needed)} (the "
            f"{n_columns} columns in the published order, labels from 0, and their names), and "
            "pass the folder as data_home or in the environment variable SKLEARN_DPTDA_DATA."
        )
    with np.load(path, allow_pickle=False) as archive:
        missing = [key for key in needed if key not in archive]
        if missing:
            raise ValueError(f"{path} lacks the arrays {', '.join(missing)}.")
        arrays = {key: archive[key] for key in needed}
    for key in arrays:
        if key.startswith("X") and arrays[key].shape[1:] != (n_columns,):
            raise ValueError(
                f"{key} in {path} should have {n_columns} columns; its shape is "
                f"{arrays[key].shape}."
            )
    return arrays

"""Published tables: public bounds of their columns, sources and checksums.

The bounds are constants: round numbers from the meaning of a column and its published range.
They are never computed from the rows that were read, so that they may enter a private estimator
as public knowledge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, overload

import numpy as np
from sklearn.utils import Bunch

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, PathLike
from sklearn_dptda.datasets._local_files import data_folder, read_published


@dataclass(frozen=True)
class PublishedTable:
    """What is known of a table before its file is read.

    ``bounds`` has a pair (low, high) for each column, in order; ``more`` names arrays beside
    ``X``, ``y`` and ``classes``; ``sha256`` is that of their numbers.
    """

    bounds: Mapping[str, tuple[float, float]]
    n_rows: int
    source: str
    sha256: str
    more: tuple[str, ...] = ()

    @property
    def arrays(self):
        """Names of the arrays of the file."""
        return ("X", "y", "classes", *self.more)


# Means are taken to lie in the range of a byte, as all published ones do, and a standard
# deviation is at most half a range. The two pairs of higher moments are interchanged at the
# source (see load_pulsar): what is called skewness is an excess kurtosis, never below -2.
_PULSAR = {
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
_MAGIC = {
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
_SHUTTLE = {
    "time": (0, 150),
    "sensor_2": (-150, 150),
    "sensor_3": (0, 150),
    **{f"sensor_{i}": (-150, 150) for i in range(4, 10)},
}

# One range for all magnitudes keeps colours, their differences, comparable. Stars that approach
# have a small negative redshift; the survey's spectroscopic pipeline stops at 7.
_SLOAN = {
    "ra": (0, 360),
    "dec": (-90, 90),
    **dict.fromkeys("ugriz", (10, 30)),
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

# Biceps, triceps, thighs and hamstrings, right and left. The unit is not published; channels
# saturate at this level.
_EMG = ("R-Bic", "R-Tri", "L-Bic", "L-Tri", "R-Thi", "R-Ham", "L-Thi", "L-Ham")

TABLES = {
    "emg": PublishedTable(
        dict.fromkeys(_EMG, (-4000, 4000)),
        59_130,
        'the UCI data set "EMG Physical Action", files of subject 1 for Bowing, Clapping, '
        "Handshaking, Jumping, Running and Standing one after the other, "
        "https://archive.ics.uci.edu/dataset/213/emg+physical+action+data+set",
        "f2261e8ed440f0f22a655cbe4ee361ca3d4cf29a50c0763423d1d65037fb2e19",
    ),
    "htru2": PublishedTable(
        _PULSAR,
        17_898,
        'the UCI data set "HTRU2", file HTRU_2.csv, https://archive.ics.uci.edu/dataset/372/htru2',
        "7ded72d9bebb6235232770a2b6b67215437d26fdfc941b31e366b11e1ec70039",
    ),
    "magic": PublishedTable(
        _MAGIC,
        19_020,
        'the UCI data set "MAGIC Gamma Telescope", file magic04.data, '
        "https://archive.ics.uci.edu/dataset/159/magic+gamma+telescope",
        "03e1297eab63a391cc95d5b766ff864a986f7f93b1cbe145235509a1838ddd2d",
    ),
    "pulsar": PublishedTable(
        _PULSAR,
        9273,
        'the Kaggle data set "Predicting a Pulsar Star" '
        "(https://www.kaggle.com/datasets/colearninglounge/predicting-pulsar-starintermediate), "
        "file pulsar_data_train.csv without its incomplete rows; it is a part of HTRU2, "
        "https://archive.ics.uci.edu/dataset/372/htru2",
        "4f4d09c1438dbf42a98e6eb73ef72833a5c2cb5052de743768e12b41ee591aaf",
    ),
    "shuttle": PublishedTable(
        _SHUTTLE,
        43_500,
        'the UCI data set "Statlog (Shuttle)", file shuttle.trn, '
        "https://archive.ics.uci.edu/dataset/148/statlog+shuttle",
        "a5f4912f4a07b8382d9d1d6706c9c156c9b527f15da8e3fd46f33f41aa129798",
    ),
    "sloan": PublishedTable(
        _SLOAN,
        10_000,
        'the Kaggle data set "Sloan Digital Sky Survey DR14", file '
        '"Skyserver_SQL2_27_2018 6_51_39 PM.csv" without the column objid, '
        "also in https://github.com/Jason-Woo/Data-Completion-and-Interpolation",
        "8ad9f594051ebd14754898b63b88278417028a89dd18a71c7735ea5b2b7c0b07",
    ),
    "usps": PublishedTable(
        {f"pixel_{i}_{j}": (-1, 1) for i in range(16) for j in range(16)},
        7291,
        "the data of The Elements of Statistical Learning, files zip.train and zip.test, "
        "https://github.com/cran/ElemStatLearn",
        "cf904bcb0ca2ba286347503dca95d145c73afd4768429faf31d127fc9e9cef31",
        more=("X_test", "y_test"),
    ),
}


# Loaders of labelled tables with public bounds of their columns.

SLOAN_PHYSICAL = ("ra", "dec", "u", "g", "r", "i", "z", "redshift")
_Loaded: TypeAlias = Bunch | tuple[FloatArray, IntArray]


class _Load(Protocol):
    """What most loaders are to type checkers."""

    @overload
    def __call__(
        self, data_home: PathLike | None = ..., *, return_X_y: Literal[False] = ...
    ) -> Bunch: ...

    @overload
    def __call__(
        self, data_home: PathLike | None = ..., *, return_X_y: Literal[True]
    ) -> tuple[FloatArray, IntArray]: ...


def _loader(function) -> _Load:
    return fill_doc(function)


@_loader
def load_emg(data_home: PathLike | None = None, *, return_X_y: bool = False) -> _Loaded:
    """Load the EMG data: signals of eight muscles of one person, in six actions.

    %(table_parameters)s

    Returns
    -------
    Bunch
        ``data`` of shape (59130, 8), ``target`` of shape (59130,): 9830 rows of
        bowing, 10000 of clapping, 9611 of shaking hands, 10000 of jumping, 9964
        of running and 9725 of standing, ``target_names``, ``feature_names``, and
        ``bounds``, a pair of arrays (low, high), which contain the data.

    %(file_errors)s

    Notes
    -----
    Rows are samples of time series, in order. The unit is not published; the
    bounds are the level at which the channels of this public table saturate.

    References
    ----------
    T. Theodoridis, UCI data set EMG Physical Action, 2011: subject 1, six of
    the normal actions. Which six are meant where papers speak of 59130 rows is
    not known; these are the first by the alphabet that have so many.
    """
    return _table("emg", data_home, return_X_y)


@_loader
def load_htru2(data_home: PathLike | None = None, *, return_X_y: bool = False) -> _Loaded:
    """Load HTRU2, all of the table that :func:`load_pulsar` has a part of.

    %(table_parameters)s

    Returns
    -------
    Bunch
        ``data`` of shape (17898, 8), ``target`` of shape (17898,): 16259
        non-pulsars and 1639 pulsars, ``target_names``, ``feature_names``, and
        ``bounds``, a pair of arrays (low, high), which contain the data.

    %(file_errors)s

    Notes
    -----
    Columns and bounds are those of :func:`load_pulsar`, of which each row is one
    of these. "Excess kurtosis" and "skewness" are interchanged here as there.

    References
    ----------
    R. J. Lyon, B. W. Stappers, S. Cooper, J. M. Brooke, J. D. Knowles, "Fifty
    years of pulsar candidate selection", MNRAS 459, 2016; UCI data set HTRU2.
    """
    return _table("htru2", data_home, return_X_y)


@_loader
def load_magic(data_home: PathLike | None = None, *, return_X_y: bool = False) -> _Loaded:
    """Load the MAGIC data: simulated telescope images, gamma rays or hadrons.

    %(table_parameters)s

    Returns
    -------
    Bunch
        ``data`` of shape (19020, 10), ``target`` of shape (19020,): 12332
        gamma rays and 6688 hadrons, ``target_names``, ``feature_names``, and
        ``bounds``, a pair of arrays (low, high), which contain the data.

    %(file_errors)s

    References
    ----------
    R. K. Bock et al., "Methods for multidimensional event classification",
    Nucl. Instr. Meth. A 516, 2004; UCI data set MAGIC Gamma Telescope.
    """
    return _table("magic", data_home, return_X_y)


@_loader
def load_pulsar(data_home: PathLike | None = None, *, return_X_y: bool = False) -> _Loaded:
    """Load the pulsar data: moments of radio profiles, pulsar or not.

    %(table_parameters)s

    Returns
    -------
    Bunch
        ``data`` of shape (9273, 8), ``target`` of shape (9273,): 8423
        non-pulsars and 850 pulsars, ``target_names``, ``feature_names``, and
        ``bounds``, a pair of arrays (low, high), which contain the data.

    %(file_errors)s

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
    """
    return _table("pulsar", data_home, return_X_y)


@_loader
def load_shuttle(data_home: PathLike | None = None, *, return_X_y: bool = False) -> _Loaded:
    """Load the shuttle data: sensor readings in seven very uneven classes.

    %(table_parameters)s

    Returns
    -------
    Bunch
        ``data`` of shape (43500, 9), ``target`` of shape (43500,): 34108, 37,
        132, 6748, 2458, 6 and 11 rows, ``target_names``, ``feature_names``,
        and ``bounds``, a pair of arrays (low, high).

    %(file_errors)s

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
    """
    return _table("shuttle", data_home, return_X_y)


@overload
def load_sloan(
    data_home: PathLike | None = ..., *, physical: bool = ..., return_X_y: Literal[False] = ...
) -> Bunch: ...


@overload
def load_sloan(
    data_home: PathLike | None = ..., *, physical: bool = ..., return_X_y: Literal[True]
) -> tuple[FloatArray, IntArray]: ...


@fill_doc
def load_sloan(
    data_home: PathLike | None = None, *, physical: bool = True, return_X_y: bool = False
) -> _Loaded:
    """Load the Sloan data: galaxies, quasars and stars of the sky survey.

    Parameters
    ----------
    %(data_home)s
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

    %(file_errors)s

    References
    ----------
    B. Abolfathi et al., "The fourteenth data release of the Sloan Digital Sky
    Survey", ApJS 235, 2018; Kaggle data set Sloan Digital Sky Survey DR14.
    """
    return _table("sloan", data_home, return_X_y, SLOAN_PHYSICAL if physical else None)


@_loader
def load_usps(data_home: PathLike | None = None, *, return_X_y: bool = False) -> _Loaded:
    """Load the USPS digits: grey images of 16 by 16 pixels, ten classes.

    Parameters
    ----------
    %(data_home)s
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone, the training part.

    Returns
    -------
    Bunch
        ``data`` of shape (7291, 256), ``target`` of shape (7291,),
        ``data_test`` of shape (2007, 256), ``target_test`` of shape (2007,),
        ``target_names``, ``feature_names`` (``pixel_row_column``), and
        ``bounds``, the pair (-1, 1): paper and ink. They contain the data.

    %(file_errors)s

    References
    ----------
    Y. Le Cun et al., "Handwritten digit recognition with a back-propagation
    network", NIPS 1989; T. Hastie, R. Tibshirani, J. Friedman, "The elements
    of statistical learning", 2009.
    """
    loaded = _table("usps", data_home, return_X_y)
    if not return_X_y:
        loaded.bounds = (-1, 1)
    return loaded


def _table(name, data_home, return_X_y, columns=None):
    """Rows and labels of ``<name>.npz``, with the public bounds of the chosen columns."""
    table, names = TABLES[name], list(TABLES[name].bounds)
    layout = (
        f"the {len(names)} columns in the published order, {table.n_rows} rows, labels from 0, and "
        "their names"
    )
    arrays = read_published(
        data_folder(data_home) / f"{name}.npz",
        f"{name} data",
        table.source,
        layout,
        table.arrays,
        table.sha256,
        len(names),
    )
    keep = np.array([names.index(c) for c in columns or names])
    X = arrays["X"].astype(np.float64)[:, keep]
    if return_X_y:
        return X, arrays["y"]
    low, high = np.array([table.bounds[names[k]] for k in keep], dtype=float).T.copy()
    loaded = Bunch(
        data=X,
        target=arrays["y"],
        target_names=arrays["classes"].astype(str),
        feature_names=np.array(names)[keep],
        bounds=(low, high),
    )
    if "X_test" in arrays:
        loaded.data_test = arrays["X_test"].astype(np.float64)[:, keep]
        loaded.target_test = arrays["y_test"]
    return loaded

"""Published tables: public bounds of their columns, sources and checksums, and their loader.

The bounds are constants: round numbers from the meaning of a column and its published range.
They are never computed from the rows that were read, so that they may enter a private estimator
as public knowledge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

import numpy as np
from sklearn.utils import Bunch

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, PathLike
from sklearn_dptda.datasets._local_files import data_folder, read_published
from sklearn_dptda.privacy._parameters import quoted


@dataclass(frozen=True)
class PublishedTable:
    """What is known of a table before its file is read.

    ``bounds`` has a pair (low, high) for each column, in order; ``more_arrays`` names arrays beside
    ``X``, ``y`` and ``classes``; ``sha256`` is that of their numbers. Where all columns have
    ``one_interval``, users get it in place of arrays.
    """

    bounds: Mapping[str, tuple[float, float]]
    n_rows: int
    source: str
    sha256: str
    more_arrays: tuple[str, ...] = ()
    one_interval: tuple[float, float] | None = None


# Means are taken to lie in the range of a byte, as all published ones do, and a standard
# deviation is at most half a range. The two pairs of higher moments are interchanged at the
# source, as the notes of load_table say: what is called skewness is an excess kurtosis, never
# below -2.
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

TABLES: dict[str, PublishedTable] = {
    "emg": PublishedTable(
        bounds=dict.fromkeys(_EMG, (-4000, 4000)),
        n_rows=59_130,
        source='the UCI data set "EMG Physical Action", files of subject 1 for Bowing, Clapping, '
        "Handshaking, Jumping, Running and Standing one after the other, "
        "https://archive.ics.uci.edu/dataset/213/emg+physical+action+data+set",
        sha256="f2261e8ed440f0f22a655cbe4ee361ca3d4cf29a50c0763423d1d65037fb2e19",
    ),
    "htru2": PublishedTable(
        bounds=_PULSAR,
        n_rows=17_898,
        source='the UCI data set "HTRU2", file HTRU_2.csv, https://archive.ics.uci.edu/dataset/372/htru2',
        sha256="7ded72d9bebb6235232770a2b6b67215437d26fdfc941b31e366b11e1ec70039",
    ),
    "magic": PublishedTable(
        bounds=_MAGIC,
        n_rows=19_020,
        source='the UCI data set "MAGIC Gamma Telescope", file magic04.data, '
        "https://archive.ics.uci.edu/dataset/159/magic+gamma+telescope",
        sha256="03e1297eab63a391cc95d5b766ff864a986f7f93b1cbe145235509a1838ddd2d",
    ),
    "pulsar": PublishedTable(
        bounds=_PULSAR,
        n_rows=9273,
        source='the Kaggle data set "Predicting a Pulsar Star" '
        "(https://www.kaggle.com/datasets/colearninglounge/predicting-pulsar-starintermediate), "
        "file pulsar_data_train.csv without its incomplete rows; it is a part of HTRU2, "
        "https://archive.ics.uci.edu/dataset/372/htru2",
        sha256="4f4d09c1438dbf42a98e6eb73ef72833a5c2cb5052de743768e12b41ee591aaf",
    ),
    "shuttle": PublishedTable(
        bounds=_SHUTTLE,
        n_rows=43_500,
        source='the UCI data set "Statlog (Shuttle)", file shuttle.trn, '
        "https://archive.ics.uci.edu/dataset/148/statlog+shuttle",
        sha256="a5f4912f4a07b8382d9d1d6706c9c156c9b527f15da8e3fd46f33f41aa129798",
    ),
    "sloan": PublishedTable(
        bounds=_SLOAN,
        n_rows=10_000,
        source='the Kaggle data set "Sloan Digital Sky Survey DR14", file '
        '"Skyserver_SQL2_27_2018 6_51_39 PM.csv" without the column objid, '
        "also in https://github.com/Jason-Woo/Data-Completion-and-Interpolation",
        sha256="8ad9f594051ebd14754898b63b88278417028a89dd18a71c7735ea5b2b7c0b07",
    ),
    "usps": PublishedTable(
        bounds={f"pixel_{i}_{j}": (-1, 1) for i in range(16) for j in range(16)},
        n_rows=7291,
        source="the data of The Elements of Statistical Learning, files zip.train and zip.test, "
        "https://github.com/cran/ElemStatLearn",
        sha256="cf904bcb0ca2ba286347503dca95d145c73afd4768429faf31d127fc9e9cef31",
        more_arrays=("X_test", "y_test"),
        one_interval=(-1, 1),
    ),
}
SLOAN_PHYSICAL = ("ra", "dec", "u", "g", "r", "i", "z", "redshift")
TableName: TypeAlias = Literal["emg", "htru2", "magic", "pulsar", "shuttle", "sloan", "usps"]


@overload
def load_table(
    name: TableName,
    *,
    data_home: PathLike | None = ...,
    physical: bool | None = ...,
    return_X_y: Literal[False] = ...,
) -> Bunch: ...


@overload
def load_table(
    name: TableName,
    *,
    data_home: PathLike | None = ...,
    physical: bool | None = ...,
    return_X_y: Literal[True],
) -> tuple[FloatArray, IntArray]: ...


@fill_doc
def load_table(
    name: TableName,
    *,
    data_home: PathLike | None = None,
    physical: bool | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[FloatArray, IntArray]:
    """Load a published table: rows, labels, and public bounds of the columns.

    Parameters
    ----------
    name : {"emg", "htru2", "magic", "pulsar", "shuttle", "sloan", "usps"}
        Which table; the notes describe each.
    %(data_home)s
    physical : bool, default=None
        For ``"sloan"`` alone. True: the position, the five magnitudes and the
        redshift. False: all 16 columns, with the numbers that only say how the
        row was recorded. None: True.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.

    Returns
    -------
    Bunch
        ``data`` of shape (n_rows, n_columns), ``target`` of shape (n_rows,),
        ``target_names``, ``feature_names``, and ``bounds``, a pair of arrays
        (low, high), which contain the data, but for those of ``"shuttle"``.
        ``"usps"`` has ``data_test`` of shape (2007, 256) and ``target_test`` as
        well, and its bounds are the pair of numbers (-1, 1).

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says where to get it.
    ValueError
        If there is no table of this name, if ``physical`` is given for another
        one than ``"sloan"``, or if the file does not hold the expected arrays.

    Warns
    -----
    UserWarning
        If the numbers in the file are not the published ones, by their sha256.

    Notes
    -----
    ``"emg"``: signals of eight muscles of one person, in six actions; 59130 rows,
    9830 of bowing, 10000 of clapping, 9611 of shaking hands, 10000 of jumping,
    9964 of running and 9725 of standing. They are samples of time series, in
    order. The unit is not published; the bounds are the level at which the
    channels of this public table saturate. These are subject 1 and six of the
    normal actions [1]_: which six are meant where papers speak of 59130 rows is
    not known; these are the first by the alphabet that have so many.

    ``"pulsar"``: eight moments of radio profiles [2]_; 9273 rows, 8423 non-pulsars
    and 850 pulsars. The columns keep their published names, but the values show
    that "excess kurtosis" and "skewness" are interchanged, for the profile and
    for the DM-SNR curve: every row has ``skewness >= excess_kurtosis ** 2 - 2``,
    which moments obey the other way round.

    ``"htru2"``: the whole table that ``"pulsar"`` is a part of, with the same columns
    and bounds; 17898 rows, 16259 non-pulsars and 1639 pulsars.

    ``"magic"``: ten columns of simulated telescope images [3]_; 19020 rows, 12332
    gamma rays and 6688 hadrons.

    ``"shuttle"``: nine sensor readings [4]_ in seven very uneven classes; 43500 rows,
    34108, 37, 132, 6748, 2458, 6 and 11 of them. The first column is time; the
    names of the others are generic. The bounds do not contain all of the data:
    191 rows have a spike that sticks out, nearly always in columns 2, 4 and 6,
    among them all 17 of the two smallest classes. Clipped to the bounds, a spike
    is still far from the other values. Since the units are not published, the
    scale was chosen with the ranges of this public table in view.

    ``"sloan"``: galaxies, quasars and stars of the sky survey [5]_, in 8 or 16
    columns; 10000 rows, 4998 galaxies, 850 quasars and 4152 stars.

    ``"usps"``: grey images of digits, 16 by 16 pixels, in ten classes [6]_ [7]_; from -1,
    paper, to 1, ink;
    7291 rows, and 2007 for a test. Names of columns are ``pixel_row_column``.

    References
    ----------
    .. [1] T. Theodoridis, UCI data set EMG Physical Action, 2011.
    .. [2] R. J. Lyon, B. W. Stappers, S. Cooper, J. M. Brooke, J. D. Knowles,
       "Fifty years of pulsar candidate selection", MNRAS 459, 2016; UCI data set
       HTRU2.
    .. [3] R. K. Bock et al., "Methods for multidimensional event classification",
       Nucl. Instr. Meth. A 516, 2004; UCI data set MAGIC Gamma Telescope.
    .. [4] UCI data set Statlog (Shuttle), from NASA, by J. Catlett.
    .. [5] B. Abolfathi et al., "The fourteenth data release of the Sloan Digital
       Sky Survey", ApJS 235, 2018; Kaggle data set Sloan Digital Sky Survey DR14.
    .. [6] Y. Le Cun et al., "Handwritten digit recognition with a
       back-propagation network", NIPS 1989.
    .. [7] T. Hastie, R. Tibshirani, J. Friedman, "The elements of statistical
       learning", 2009.
    """
    if name not in TABLES:
        raise ValueError(f"name must be one of {', '.join(TABLES)}; got {quoted(name)}.")
    if physical is not None and name != "sloan":
        raise ValueError(f"physical chooses columns of the table 'sloan', not of {name!r}.")
    table, columns = TABLES[name], list(TABLES[name].bounds)
    arrays = read_published(
        data_folder(data_home) / f"{name}.npz",
        contents=f"{name} data",
        source=table.source,
        layout=f"the {len(columns)} columns in the published order, {table.n_rows} rows, labels "
        "from 0, and their names",
        needed=("X", "y", "classes", *table.more_arrays),
        sha256=table.sha256,
        n_columns=len(columns),
    )
    chosen = SLOAN_PHYSICAL if name == "sloan" and physical is not False else columns
    places = [columns.index(column) for column in chosen]
    X, y = arrays["X"].astype(np.float64)[:, places], arrays["y"]
    if return_X_y:
        return X, y
    low, high = np.array([table.bounds[column] for column in chosen], dtype=float).T.copy()
    loaded = Bunch(
        data=X,
        target=y,
        target_names=arrays["classes"].astype(str),
        feature_names=np.array(chosen),
        bounds=table.one_interval or (low, high),
    )
    if "X_test" in arrays:
        loaded.data_test = arrays["X_test"].astype(np.float64)[:, places]
        loaded.target_test = arrays["y_test"]
    return loaded

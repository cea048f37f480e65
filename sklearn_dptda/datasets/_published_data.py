"""Published data: tables with public bounds, and a graph, read from files in a local folder.

The files are not part of the package. The error about a missing file names the source, the arrays
to save from it, and their checksum: the sha256 of the numbers only, array after array in the order
of the error, each in C order, real numbers as little-endian float64 and integers as little-endian
int64. Another checksum only causes a warning, because you may use your own data of the same form.

The bounds are constants: round numbers that follow from the meaning of a column and its published
range. They are never computed from the rows that were read, so a private estimator may use them as
public knowledge.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, overload

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, PathLike
from sklearn_dptda.graph._adjacency import of_pairs
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._warnings import warn_caller


@dataclass(frozen=True)
class PublishedTable:
    """Facts about a table that are known before its file is read.

    ``bounds`` has a pair (low, high) for each column, in order. ``more_arrays`` names arrays other
    than ``X``, ``y`` and ``classes``. ``sha256`` is that of their numbers. If all columns have
    ``one_interval``, users get this interval instead of arrays.
    """

    bounds: Mapping[str, tuple[float, float]]
    n_rows: int
    source: str
    sha256: str
    more_arrays: tuple[str, ...] = ()
    one_interval: tuple[float, float] | None = None


# Means are assumed to be in the range of a byte, like all published ones, and a standard deviation
# is at most half of a range. The two pairs of higher moments are interchanged at the source, as the
# notes of load_table explain: the column named skewness is an excess kurtosis, which is never below
# -2.
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

# The columns are lengths in mm on the camera, the size as a decimal logarithm, shares, and an angle
# in degrees.
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

# The units are not published. Columns 7 to 9 are differences of columns 1, 3 and 5 up to rounding,
# so all columns have the same scale. It cuts off the rare spikes of up to 14000.
_SHUTTLE = {
    "time": (0, 150),
    "sensor_2": (-150, 150),
    "sensor_3": (0, 150),
    **{f"sensor_{i}": (-150, 150) for i in range(4, 10)},
}

# All magnitudes have the same range, so that their differences, the colours, remain comparable.
# Approaching stars have a small negative redshift. The spectroscopic pipeline of the survey stops
# at 7.
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

# The muscles are the right and left biceps, triceps, thighs and hamstrings. The unit is not
# published, and the channels saturate at this level.
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
        Name of the table. The notes describe each table.
    %(data_home)s
    physical : bool, default=None
        Selects the columns of ``"sloan"``. It must be None for other tables. True selects the
        position, the five magnitudes and the redshift. False selects all 16 columns, including
        numbers that only describe how a row was recorded. None means True.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.

    Returns
    -------
    Bunch
        Dictionary-like object, with the following attributes, or ``(data, target)`` if
        ``return_X_y`` is True.

        data : ndarray of shape (n_rows, n_columns)
            The rows.
        target : ndarray of shape (n_rows,)
            Labels of the rows.
        target_names : ndarray of str
            Names of the classes.
        feature_names : ndarray of str
            Names of the columns.
        bounds : tuple of two ndarray of shape (n_columns,), or (-1, 1) for ``"usps"``
            Public lower and upper bounds of the columns. They contain all data, except for
            those of ``"shuttle"``.
        data_test, target_test : ndarray of shape (2007, 256), and (2007,)
            Test rows and labels of ``"usps"``.

    %(file_errors)s

    Notes
    -----
    ``"emg"``: signals of eight muscles of one person, in six actions [1]_. It has 59130 rows:
    9830 of bowing, 10000 of clapping, 9611 of shaking hands, 10000 of jumping, 9964 of running
    and 9725 of standing. They are samples of time series, in order. The unit is not published;
    the bounds are the level at which the channels of this public table saturate. It is not
    known which six actions are meant by papers that mention 59130 rows: these are the first in
    alphabetical order that have this number.

    ``"pulsar"``: eight moments of radio profiles [2]_. It has 9273 rows: 8423 non-pulsars and 850
    pulsars. The columns keep their published names, but the values show that "excess kurtosis"
    and "skewness" are interchanged, for the profile and for the DM-SNR curve.

    ``"htru2"``: the whole table of which ``"pulsar"`` is a part, with the same columns and bounds.
    It has 17898 rows: 16259 non-pulsars and 1639 pulsars.

    ``"magic"``: ten columns of simulated telescope images [3]_. It has 19020 rows: 12332 gamma
    rays and 6688 hadrons.

    ``"shuttle"``: nine sensor readings [4]_ in seven classes of very different sizes. It has 43500
    rows: 34108, 37, 132, 6748, 2458, 6 and 11 in the classes. The first column is time, and the
    names of the others are generic. The bounds do not contain all data: 191 rows have a spike
    outside, including all 17 rows of the two smallest classes. After clipping, a spike is still
    far from the other values. The unit is not published, and the scale was chosen from the
    ranges of this public table.

    ``"sloan"``: galaxies, quasars and stars of the sky survey [5]_, in 8 or 16 columns. It has
    10000 rows: 4998 galaxies, 850 quasars and 4152 stars.

    ``"usps"``: grey images of digits with 16 x 16 pixels, in ten classes [6]_ [7]_. The values
    range from -1 (paper) to 1 (ink). It has 7291 rows, and 2007 rows for a test. The names of the
    columns are ``pixel_row_column``.

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

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_table
    >>> table = load_table("magic")  # doctest: +SKIP
    >>> table.data.shape, table.bounds[0][:3]  # doctest: +SKIP
    ((19020, 10), array([0., 0., 1.]))
    """
    if name not in TABLES:
        raise ValueError(f"name must be one of {', '.join(TABLES)}; got {quoted(name)}.")
    if physical is not None and name != "sloan":
        raise ValueError(
            f"physical selects columns of the table 'sloan', not of {name!r}. Pass physical=None."
        )
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


@fill_doc
def load_polblogs(data_home: PathLike | None = None, *, largest_component: bool = True) -> Bunch:
    """Load the political blogs: links between weblogs on American politics in 2004.

    Parameters
    ----------
    %(data_home)s
    largest_component : bool, default=True
        Whether to leave out the 268 blogs that are not linked to the others. This choice
        depends on the links, so no privacy guarantee covers it.

    Returns
    -------
    Bunch
        Dictionary-like object, with the following attributes.

        adjacency : csr_array of shape (n_nodes, n_nodes)
            Symmetric adjacency matrix of zeros and ones, without self-loops.
        target : ndarray of shape (n_nodes,)
            0 for liberal and 1 for conservative blogs.
        target_names : ndarray of str
            Names of the two classes.
        node_names : ndarray of str
            Names of the blogs.

    %(file_errors)s

    References
    ----------
    L. Adamic, N. Glance, "The political blogosphere and the 2004 US election: divided they
    blog", 2005; M. Newman's network data, http://www-personal.umich.edu/~mejn/netdata/.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_polblogs
    >>> graph = load_polblogs()  # doctest: +SKIP
    >>> graph.adjacency.shape  # doctest: +SKIP
    (1222, 1222)
    """
    arrays = read_published(
        data_folder(data_home) / "polblogs.npz",
        contents="political blogs",
        source="polblogs.gml of M. Newman's network data, "
        "http://www-personal.umich.edu/~mejn/netdata/",
        layout="links from 0, labels 0 and 1",
        needed=("edges", "y", "classes", "node_names"),
        sha256="a9277be7db8e8a662b2e4a667b8f6e7746a7b467d0e27b3f22b7ed9c8f760e1c",
    )
    n, (sources, targets) = len(arrays["y"]), arrays["edges"].T
    linked = sources != targets
    A = of_pairs(sources[linked], targets[linked], (n, n), symmetric=True)
    # Links that occur twice, or in both directions, are one link.
    A.data[:] = 1.0
    kept = np.arange(n)
    if largest_component:
        _, component = connected_components(A, directed=False)
        kept = np.flatnonzero(component == np.bincount(component).argmax())
    return Bunch(
        adjacency=A[kept][:, kept],
        target=arrays["y"][kept],
        target_names=arrays["classes"].astype(str),
        node_names=arrays["node_names"].astype(str)[kept],
    )


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

"""Published tables: public bounds of their columns, sources and checksums.

The bounds are constants: round numbers from the meaning of a column and its published range.
They are never computed from the rows that were read, so that they may enter a private estimator
as public knowledge.
"""

from collections.abc import Mapping
from dataclasses import dataclass


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

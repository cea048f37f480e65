"""Files that are no plain text, and the library that reads each kind.

A reader returns the names of the columns, or None, and the columns. Nothing in a file is guessed:
what a format does not say, such as whether the first row of a sheet contains names, is asked for.
"""

import gzip
import io
import re
import warnings
import zipfile
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklearn_dptda._cli._terminal import tell
from sklearn_dptda._cli._text_table import Refusal, before_pandas_31

# Largest size of a decompressed table, in bytes and as a multiple of the size of its file. Either
# of them may be exceeded, but not both.
MAX_INFLATED_BYTES, _MAX_INFLATION = 1 << 30, 100
# Bytes at the start of files that no reader of texts reads, and what they are.
_GZIP = b"\x1f\x8b"
_OTHERS = {
    b"PK\x03\x04": "a zip archive or a workbook: save the sheet as .xlsx, or as CSV",
    b"\xd0\xcf\x11\xe0": "an old workbook: save the sheet as .xlsx, or as CSV",
    b"PAR1": "a Parquet file: change its suffix to .parquet",
    b"ARROW1": "a Feather file: change its suffix to .feather",
    b"\x89HDF": "an HDF5 file: save the table as CSV or Parquet",
    b"SQLite format 3": "a database: export the table as CSV",
    b"# .PCD": "a PCD file: convert it to PLY, or write its points as CSV",
    b"BZh": "compressed with bzip2: decompress it first",
    b"\xfd7zXZ": "compressed with xz: decompress it first",
    b"(\xb5/\xfd": "compressed with zstd: decompress it first",
}


def check_is_file(path):
    """Raise a ValueError if a path is not that of a file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file.")
    if not path.is_file():
        raise ValueError(f"there is no file {path}.")


@contextmanager
def reading(path, what, library=None):
    """Replace errors of libraries about a broken file, because they may quote its content.

    What they print or warn of is dropped: it is harmless where no error follows.
    """
    unseen = io.StringIO()
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            redirect_stdout(unseen),
            redirect_stderr(unseen),
        ):
            yield
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    except ImportError:
        raise ValueError(
            f"{path} is {what}. To read it, install {library}, or save it as CSV."
        ) from None
    except (MemoryError, Refusal):
        raise
    # meshio ends the program if it cannot read a file.
    except (Exception, SystemExit):
        raise ValueError(f"{path} is not {what}.") from None


# Files of these suffixes would be read as texts, or by no reader.
_TO_CONVERT = {
    ".obj": "PLY",
    ".stl": "PLY",
    ".pcd": "PLY",
    ".xls": "XLSX",
    ".por": "SAV",
    ".h5": "Parquet",
}


def text_of(path):
    """Return the bytes of a text file, which may be compressed by gzip."""
    if target := _TO_CONVERT.get(suffix_of(path)):
        raise ValueError(f"{path} is in a format that is not read: convert it to {target} or CSV.")
    raw = path.read_bytes()
    if raw.startswith(_GZIP):
        most = max(MAX_INFLATED_BYTES, _MAX_INFLATION * len(raw))
        with reading(path, "a file of gzip"), gzip.open(path) as file:
            raw = file.read(most + 1)
        _refuse_inflated(path, len(raw))
    # A text may begin with the same letters.
    is_binary = b"\0" in raw[:4096] or raw.startswith(b"# .PCD v")
    for start, what in _OTHERS.items():
        if is_binary and raw.startswith(start):
            raise ValueError(f"{path} is {what}.")
    return raw


def suffix_of(path):
    """Return the suffix of a file, without that of a compressed one."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()


def read_file(path, **how):
    """Return the names of the columns of a file that is no text, or None, and the columns."""
    library, what, read = FORMATS[suffix_of(path)]
    with reading(path, what, library):
        found = read(path, how)
        return (None, _columns_of(path, found)) if isinstance(found, np.ndarray) else found


def _columns_of(path, array):
    """Return the columns of an array of rows."""
    if array.ndim != 2:
        raise Refusal(
            f"{path} contains an array of {array.ndim} dimension(s); an array of 2 dimensions, "
            "rows and columns, is needed."
        )
    return list(array.T)


def _of_frame(frame):
    """Return the names and columns of a pandas frame."""
    return [str(name) for name in frame.columns], [_array_of(c) for _, c in frame.items()]


def _of_arrow(table):
    """Return the names and columns of a table of Arrow, in which an index is a column as others."""
    frame = table.to_pandas(ignore_metadata=True)
    is_index = [re.fullmatch(r"__index_level_\d+__", name) is not None for name in frame]
    # As in a text, the first column has no name if it is that of an index without one.
    frame.columns = ["" if i else name for name, i in zip(frame.columns, is_index, strict=True)]
    return _of_frame(frame.iloc[:, np.argsort(np.logical_not(is_index), kind="stable")])


def _array_of(column):
    """Return a column as an array; equal texts of a dictionary stay one object."""
    if hasattr(column, "cat"):
        # The code of a missing value is -1.
        texts = np.append(column.cat.categories.to_numpy(object), np.array([None], dtype=object))
        return texts[column.cat.codes.to_numpy()]
    return column.to_numpy(None if column.dtype.kind in "biufcM" else object)


def _refuse_inflated(path, declared):
    """Refuse a file whose declared decompressed size is too large, before it is decompressed."""
    if declared > max(MAX_INFLATED_BYTES, _MAX_INFLATION * path.stat().st_size):
        raise Refusal(
            f"{path} would expand to {declared / 2**30:,.3g} GiB, more than {_MAX_INFLATION} times "
            "its size, and is not read. If this size is intended, save it uncompressed, as .npy."
        )


def _one_of(names, key, what="arrays"):
    """Return the array that a key selects. The names of arrays may be names of people."""
    if key is None and len(names) == 1:
        return names[0]
    if key in names:
        return key
    if key is not None and key.isdecimal() and int(key) < len(names):
        return names[int(key)]
    raise Refusal(f"--key: choose one of the {len(names)} {what}, by name or number from 0.")


def _npy(path, how):
    with path.open("rb") as file:
        array = np.load(file, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise Refusal(f"{path} is an archive of arrays: change its suffix to .npz.")
    return array


def zip_members(path):
    """Return the names of the members of an archive, and refuse one that would expand too much."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    _refuse_inflated(path, sum(member.file_size for member in members))
    return [member.filename for member in members]


def _npz(path, how):
    zip_members(path)
    with np.load(path, allow_pickle=False) as archive:
        return archive[_one_of(archive.files, how["key"])]


def _mat(path, how):
    from scipy.io import loadmat

    arrays = {name: each for name, each in loadmat(path).items() if not name.startswith("__")}
    return np.asarray(arrays[_one_of(list(arrays), how["key"])])


def _parquet(path, how):
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    groups = range(metadata.num_row_groups)
    values = sum(metadata.row_group(i).total_byte_size for i in groups)
    columns = [metadata.schema.column(j) for j in range(metadata.num_columns)]
    # A column of one repeated value takes almost no space in the file, but eight bytes a row in
    # memory.
    _refuse_inflated(path, 8 * metadata.num_rows * metadata.num_columns + values)
    # Texts stay places in their dictionary. Otherwise a long text that all rows share, which is one
    # in the file, would be as many in memory.
    texts = [c.path for c in columns if c.physical_type == "BYTE_ARRAY"]
    return _of_arrow(pq.read_table(path, read_dictionary=texts))


def _feather(path, how):
    import pyarrow.feather

    return _of_arrow(pyarrow.feather.read_table(path))


def _json(path, how):
    import pandas as pd

    lines = suffix_of(path) != ".json"
    orient, old = None if lines else "records", before_pandas_31(convert_dates=False)
    frame = pd.read_json(path, lines=lines, orient=orient, dtype=False, **old)
    if frame.map(lambda cell: isinstance(cell, dict | list)).any(axis=None):
        raise ValueError
    return _of_frame(frame)


def sheet_of(path, key):
    """Return the bytes of a sheet of a workbook as CSV: the rules for lines hold for its rows."""
    with reading(path, "a workbook", SHEETS[suffix_of(path)]):
        import pandas as pd

        with pd.ExcelFile(path) as book:
            name = _one_of(book.sheet_names, key, "sheets")
            frame = pd.read_excel(book, header=None, sheet_name=name, dtype=object)
        text = frame.dropna(how="all").to_csv(header=False, index=False)
    if n_blank := int(frame.isna().all(axis=1).sum()):
        tell(f"note: {n_blank:,} blank row(s) of {path} are no records.")
    return text.encode()


def _by_pandas(name, **options):
    def read(path, how):
        import pandas as pd

        return _of_frame(getattr(pd, name)(path, **options))

    return read


def _arff(path, how):
    from scipy.io.arff import loadarff

    table, about = loadarff(path)
    columns = [table[name] for name in about.names()]
    return list(about.names()), [c.astype(str) if c.dtype.kind == "S" else c for c in columns]


def _off(path, how):
    import gudhi

    # The first number is that of the points.
    words = [
        word
        for line in path.read_text(encoding="utf-8").splitlines()[:50]
        if not line.lstrip().startswith("#")
        for word in line.split()
    ]
    n_points = int(words[2 if words[0] == "nOFF" else 1])
    points = np.array(gudhi.read_points_from_off_file(off_file=str(path)))
    if points.ndim != 2 or len(points) != n_points:
        raise ValueError
    return points


def _mesh(path, how):
    import meshio

    return meshio.read(path).points


def _ply(path, how):
    # meshio takes the coordinates of a text by their places, and those of bytes by their names.
    with path.open("rb") as file:
        header = [line.split() for line in takewhile(lambda line: b"end_header" not in line, file)]
    if [b"format", b"ascii", b"1.0"] in header:
        names = [words[-1] for words in header if words[:1] == [b"property"]]
        coordinates = [name for name in names if name in (b"x", b"y", b"z")]
        if sorted(coordinates) != names[: len(coordinates)]:
            raise Refusal(
                f"{path}: the first properties of a text in PLY must be x, y and z. Write them in "
                "this order, or save the file in binary PLY."
            )
    return _mesh(path, how)


def network_of(path):
    """Return a network of networkx, whose nodes are labels, or ids of GraphML."""
    suffix = suffix_of(path)
    labelled = ", with a different label for each node" * (suffix in (".gml", ".net"))
    with reading(path, f"a network that networkx reads{labelled}", "networkx"):
        import networkx

        n_nodes = _n_nodes_of_pajek(path) if suffix == ".net" else None
        graph = getattr(networkx, NETWORKS[suffix])(path)
        # Nodes of one label have become one; ends that are no vertex have been added.
        if not graph.nodes or n_nodes not in (None, len(graph)):
            raise ValueError
    return graph


def _n_nodes_of_pajek(path):
    """Return the declared number of nodes; refuse sections that networkx misreads or mixes."""
    lines = text_of(path).decode().splitlines()
    sections = [line.lower().split() for line in lines if line.startswith("*")]
    first, *lists = (words for words in sections if words[0] != "*network")
    if first[0] != "*vertices" or lists not in ([], [["*edges"]], [["*arcs"]]):
        raise Refusal(
            f"{path}: of a Pajek file, *Vertices and one list of *Edges or *Arcs are read. Save "
            "networks with other lists or several relations as GraphML."
        )
    return int(first[1])


class Format(NamedTuple):
    """The library that reads files of one kind, what they are, and the function that reads them.

    The function returns an array, or the names of the columns and the columns.
    """

    library: str
    what: str
    read: Callable[[Path, dict[str, Any]], Any]


_PARQUET = Format("pyarrow", "a Parquet file", _parquet)
_FEATHER = Format("pyarrow", "a Feather file", _feather)
_JSON = Format(
    "pandas",
    'a list of flat JSON records, such as [{"x": 1, "y": 2}], or in .jsonl one of them a line. '
    "If it is a list inside of an object, 'jq .NAME' extracts it. For nested records, run "
    'pandas.json_normalize(records).to_csv("rows.csv", index=False) in Python',
    _json,
)
_SAS = Format("pandas", "a SAS file", _by_pandas("read_sas", encoding="utf-8"))
_POINTS = "a file of points that meshio reads"
# Functions of networkx that read networks, and libraries that read workbooks, by suffix.
NETWORKS = {".gml": "read_gml", ".graphml": "read_graphml", ".net": "read_pajek"}
SHEETS = {".xlsx": "openpyxl", ".ods": "odfpy"}
# By suffix. Other files are texts, which may be compressed by gzip.
FORMATS = {
    ".npy": Format("NumPy", "a NumPy file of numbers", _npy),
    ".npz": Format("NumPy", "a NumPy archive of numbers", _npz),
    ".mat": Format("SciPy", "a file of Matlab before version 7.3", _mat),
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".feather": _FEATHER,
    ".arrow": _FEATHER,
    ".json": _JSON,
    ".jsonl": _JSON,
    ".ndjson": _JSON,
    ".dta": Format("pandas", "a Stata file", _by_pandas("read_stata")),
    ".sav": Format("pyreadstat", "an SPSS file", _by_pandas("read_spss")),
    ".sas7bdat": _SAS,
    ".xpt": _SAS,
    ".arff": Format("SciPy", "an ARFF file", _arff),
    ".off": Format("GUDHI", "an OFF file", _off),
    ".ply": Format("meshio", _POINTS, _ply),
    ".vtk": Format("meshio", _POINTS, _mesh),
    ".vtu": Format("meshio", _POINTS, _mesh),
}

"""Releases that a ledger stores beside their payments, in a format that later versions can read.

The format is a ZIP archive like NumPy's ``npz``. ``release.json`` describes the release, and each
array has an entry of its own, ``0.npy`` and so on. In the JSON, numbers, strings, booleans and
lists represent themselves. Any other value is an object with one entry, whose name is its type. The
format contains nothing that could be executed as code.

Proof: doc/theory/kept_releases.md, "Storing a release".
"""

import hashlib
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._ledger_stores import Execute, Store
from sklearn_dptda.privacy._parameters import check_sparse
from sklearn_dptda.privacy._release import as_arrays
from sklearn_dptda.privacy._warnings import PrivacyLedgerError
from sklearn_dptda.privacy._whole_file import sync_folder, whole_file

_INSERT_RELEASE = "INSERT INTO privacy_release VALUES (:id, :digest, :size, :content)"
# One row, whose digest is NULL if a release was paid for and is not stored.
_READ_RELEASE = (
    "SELECT digest, content FROM privacy_spend LEFT JOIN privacy_release "
    "ON privacy_spend.id = privacy_release.id WHERE privacy_spend.id = :id"
)
_DIGEST = re.compile("[0-9a-f]{64}")
# If the ledger is a file, larger releases, in bytes, are stored in files beside it.
_LARGE = 1 << 20
# A repeated computation of the same draw may differ by this much, relative and absolute, because of
# rounding. The noise of two different releases differs by far more.
_ROUNDING = 1e-9


class SecondDraw(PrivacyLedgerError):
    """Another release is stored under the same key, so that this one must not be published."""


def write_release(execute: Execute, store: Store, key: str, content: bytes) -> None:
    """Store the bytes of a release beside its payment; SecondDraw if another one is stored.

    Other code or another machine may compute the same draw with other rounding errors. In this
    case, the first result stays in the ledger.
    """
    rows, digest = execute(_READ_RELEASE, {"id": key}), hashlib.sha256(content).hexdigest()
    if not rows:
        raise PrivacyLedgerError("Nothing was paid under this key, so that nothing is stored.")
    stored = rows[0][0]
    if stored not in (None, digest) and not _is_stored(store, rows[0], content):
        raise SecondDraw(
            "Another release is stored under this key, so that this one is not released. "
            "PrivacyAccountant.release returns the first one."
        )
    in_file = store.file is not None and len(content) > _LARGE
    if in_file and stored in (None, digest):
        # The file is written again, in case an earlier one was lost.
        _write_file(str(store.file), digest, content)
    if stored is None:
        inside = None if in_file else content
        line = {"id": key, "digest": digest, "size": len(content), "content": inside}
        execute(_INSERT_RELEASE, line)


def _is_stored(store: Store, row: tuple[Any, ...], content: bytes) -> bool:
    """Whether a release equals the stored one except for rounding."""
    try:
        stored = _read(store, *row)
    except PrivacyLedgerError:
        # A stored release that cannot be read differs, because its digest differs.
        return False
    parts = as_arrays(stored), as_arrays(from_bytes(content))
    shapes = [[part.shape for part in each] for each in parts]
    return shapes[0] == shapes[1] and all(map(_differ_by_rounding, *parts))


def _differ_by_rounding(one: FloatArray, other: FloatArray) -> bool:
    """Whether arrays are equal except for the last digits of their largest numbers.

    Integers are counts or indices, which rounding does not change.
    """
    if all(np.array_equal(part, np.rint(part), equal_nan=True) for part in (one, other)):
        return np.array_equal(one, other, equal_nan=True)
    largest = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return np.allclose(one, other, _ROUNDING, _ROUNDING * largest, equal_nan=True)


def read_release(execute: Execute, store: Store, key: str) -> Any:
    """Return the release that is stored under a key; LookupError if there is none."""
    rows = execute(_READ_RELEASE, {"id": key})
    if not rows:
        raise LookupError("nothing was paid under this key")
    digest, content = rows[0]
    if digest is None:
        raise LookupError("the release was paid for, but it was not stored")
    return _read(store, digest, content)


def _read(store: Store, digest: Any, content: Any) -> Any:
    """Return the release in a row; PrivacyLedgerError if it cannot be read."""
    try:
        # The digest is the name of a file. Other text could be a path to any file of the reader,
        # because a user who may only pay into a ledger on a server can write it.
        if content is None and store.file is not None and _DIGEST.fullmatch(str(digest)):
            with open(os.path.join(_folder(store.file), digest), "rb") as file:
                content = file.read()
        # Some database drivers return a view of bytes.
        is_bytes = isinstance(content, bytes | bytearray | memoryview)
        if not is_bytes or hashlib.sha256(content).hexdigest() != digest:
            raise ValueError("it is damaged")
        return from_bytes(bytes(content))
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PrivacyLedgerError(
            f"The stored release of {store.place} cannot be read ({reason})."
        ) from None


def _folder(ledger: str) -> str:
    """Folder of large releases beside the file of a ledger, after symbolic links are resolved."""
    return f"{os.path.realpath(ledger)}.releases"


def _write_file(ledger: str, name: str, content: bytes) -> None:
    """Write a file beside the file of a ledger, with its access permissions."""
    folder, mode = _folder(ledger), os.stat(ledger).st_mode & 0o666
    # Users with read access to a folder also need the permission to enter it.
    os.makedirs(folder, mode=mode | (mode & 0o444) >> 2, exist_ok=True)
    sync_folder(os.path.dirname(folder))
    place = os.path.join(folder, name)
    with whole_file(place, mode, overwrite=True) as temporary, open(temporary, "wb") as file:
        file.write(content)


# All formats up to this version can be read. The tests contain a file of each version.
FORMAT_VERSION = 1
_DESCRIPTION = "release.json"
# Kinds of arrays that are stored: all except for arrays of Python objects.
_ENTRIES = "biufcUSmM"
# A constant time in the archive, so that equal releases have equal bytes and do not reveal when
# they were made.
_TIME = (1980, 1, 1, 0, 0, 0)

# Types of this package by their names in files, with functions to take values apart and to rebuild
# them.
_KINDS: dict[str, tuple[type, Callable[[Any], dict[str, Any]], Callable[..., Any]]] = {}


def storable(
    name: str, kind: type, parts: Callable[[Any], dict[str, Any]], make: Callable[..., Any]
) -> None:
    """Register a type for use in releases; ``make(**parts(value))`` must rebuild the value."""
    _KINDS[name] = kind, parts, make


def to_bytes(release: Any, most: float = math.inf) -> bytes:
    """Convert a release to bytes.

    Raises TypeError if the release contains an object that is not a number, string or array, and
    ValueError if its arrays have more than ``most`` bytes.
    """
    arrays: list[NDArray[Any]] = []
    document = {"format_version": FORMAT_VERSION, "release": _described(release, arrays)}
    size = sum(array.nbytes for array in arrays)
    if size > most:
        raise ValueError(f"its size is {size / 2**20:.3g} MiB")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_DESCRIPTION, _TIME), json.dumps(document))
        for number, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(f"{number}.npy", _TIME), "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return buffer.getvalue()


def from_bytes(content: bytes) -> Any:
    """Convert bytes to a release; ValueError if they are damaged or have a newer format."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                # A small compressed file could expand to a huge one.
                raise ValueError("stored releases must not be compressed")
            document = json.loads(archive.read(_DESCRIPTION))
            if document["format_version"] <= FORMAT_VERSION:
                return _made(document["release"], archive)
    except _DAMAGE:
        raise ValueError("it is damaged") from None
    raise ValueError("it was stored by a newer version of sklearn-dptda")


# Errors that reading raises if the bytes were damaged or written by another program.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    TypeError,
    ValueError,
    EOFError,
    AttributeError,
    ArithmeticError,
    # This is raised for an unknown compression, a password, and JSON that is nested too deeply.
    RuntimeError,
)


def _described(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Convert a value to JSON, in which arrays are represented by their places in the list."""
    if isinstance(value, np.generic | np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        # The memory order is fixed, so that equal arrays have equal bytes.
        array = np.asarray(value, order="C")
        if array.dtype.kind == "O":
            items = _described(array.ravel().tolist(), arrays)
            return {"objects": [list(array.shape), items]}
        if array.dtype.kind in _ENTRIES:
            arrays.append(array)
            name = "array" if isinstance(value, np.ndarray) else "scalar"
            return {name: len(arrays) - 1}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [_described(part, arrays) for part in (value.real, value.imag)]}
    if isinstance(value, list):
        return [_described(part, arrays) for part in value]
    if isinstance(value, tuple):
        return {"tuple": _described(list(value), arrays)}
    if isinstance(value, dict):
        return {"dict": _described([list(pair) for pair in value.items()], arrays)}
    for name, (kind, parts, _) in _KINDS.items():
        if type(value) is kind:
            return {"kind": [name, _described(parts(value), arrays)]}
    if issparse(value):
        matrix = csr_array(value)
        parts_of = [matrix.data, matrix.indices, matrix.indptr]
        return {"sparse": [list(matrix.shape), _described(parts_of, arrays)]}
    raise TypeError(f"{type(value).__name__} is not a number, string or array")


def _made(tree: Any, archive: zipfile.ZipFile) -> Any:
    """Return the value that is described by JSON."""
    if isinstance(tree, list):
        return [_made(part, archive) for part in tree]
    if not isinstance(tree, dict):
        return tree
    ((name, content),) = tree.items()
    if name in ("array", "scalar"):
        with archive.open(f"{int(content)}.npy") as entry:
            array = np.lib.format.read_array(entry, allow_pickle=False)
        return array if name == "array" else array[()]
    return _MAKERS[name](_made(content, archive))


def _objects(content: Any) -> NDArray[Any]:
    shape, items = content
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        array[place] = item
    return array.reshape(shape)


def _sparse(content: Any) -> csr_array:
    shape, parts = content
    matrix = csr_array(tuple(parts), shape=tuple(shape))
    check_sparse(matrix, "the release")
    return matrix


def _of_kind(content: Any) -> Any:
    name, parts = content
    # If the type is not registered in this process, return its parts by name.
    return _KINDS[name][2](**parts) if name in _KINDS else parts


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": lambda content: complex(*content),
    "tuple": tuple,
    "dict": dict,
    "objects": _objects,
    "sparse": _sparse,
    "kind": _of_kind,
}

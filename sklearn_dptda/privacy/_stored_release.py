"""Releases that a ledger keeps beside their payments, as bytes that outlive versions.

The bytes are a ZIP archive like NumPy's ``npz``: ``release.json`` says what there is, and arrays
have entries of their own, ``0.npy`` and so on. In the JSON, numbers, texts, truth values and lists
stand for themselves, and anything else is an object of one entry, whose name says what it is. There
is nothing in them that could run as code.

Proof: doc/theory/kept_releases.md, "Storing a release".
"""

import hashlib
import io
import json
import math
import os
import uuid
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._ledger_stores import Execute, Store
from sklearn_dptda.privacy._release import as_arrays
from sklearn_dptda.privacy._release_key import sync_folder
from sklearn_dptda.privacy._warnings import PrivacyLedgerError

CREATE_RELEASE = """
CREATE TABLE IF NOT EXISTS privacy_release (
    id VARCHAR(32) PRIMARY KEY,
    digest VARCHAR(64) NOT NULL,
    size BIGINT NOT NULL,
    content {bytes_type})
"""
_INSERT_RELEASE = "INSERT INTO privacy_release VALUES (:id, :digest, :size, :content)"
_READ_RELEASE = "SELECT digest, content FROM privacy_release WHERE id = :id"
# Bytes from which on a release is a file beside a ledger that is a file itself.
_LARGE = 1 << 20
# Up to so much, relative and absolute, the same draw may differ where it is computed again. Noise
# of one release differs from that of another by far more.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PaidRelease:
    """One payment of a ledger, and whether what was paid for is stored beside it.

    Parameters
    ----------
    key : str
        Name of the release, which :meth:`PrivacyAccountant.release` takes.
    number : int
        Position of the payment in the ledger, from 1.
    time : str
        Day of the payment, in ISO 8601, UTC.
    estimator, what : str
        Who released it, and what.
    size : int or None
        Bytes that are stored; None where the release is not.
    """

    key: str
    number: int
    time: str
    estimator: str
    what: str
    size: int | None


class SecondDraw(PrivacyLedgerError):
    """Under the key of a release another one is stored: this one must not be seen."""


def is_paid(execute: Execute, key: str) -> bool:
    """Whether there is a payment of that name."""
    return bool(execute("SELECT 1 FROM privacy_spend WHERE id = :id", {"id": key}))


def write_release(execute: Execute, store: Store, key: str, content: bytes) -> None:
    """Store the bytes of a release beside its payment; SecondDraw where another one is there.

    What other code or another machine has computed of the same draw may differ by rounding: there
    the first one stays.
    """
    if not is_paid(execute, key):
        raise PrivacyLedgerError("Nothing was paid under this key, so that nothing is stored.")
    if not store.has_table(execute, "privacy_release"):
        # The ledger was made before it knew of releases.
        execute(CREATE_RELEASE.format(bytes_type=store.bytes_type))
    digest = hashlib.sha256(content).hexdigest()
    rows = execute(_READ_RELEASE, {"id": key})
    if rows and rows[0][0] != digest and not _is_stored(execute, store, key, content):
        raise SecondDraw(
            "Another release was drawn and stored under this key: this one is not released. "
            "PrivacyAccountant.release gives the first one."
        )
    is_file = store.folder is not None and len(content) > _LARGE
    if is_file and (not rows or rows[0][0] == digest):
        # Again where the file of an earlier one is lost.
        _write_file(str(store.folder), digest, content, store.mode)
    if not rows:
        inside = None if is_file else content
        line = {"id": key, "digest": digest, "size": len(content), "content": inside}
        execute(_INSERT_RELEASE, line)


def _is_stored(execute: Execute, store: Store, key: str, content: bytes) -> bool:
    """Whether a release is the stored one but for rounding."""
    try:
        stored = read_release(execute, store, key)
    except PrivacyLedgerError:
        # What cannot be read has other bytes, as its digest says.
        return False
    parts = as_arrays(stored), as_arrays(from_bytes(content))
    shapes = [[part.shape for part in each] for each in parts]
    return shapes[0] == shapes[1] and all(map(_differ_by_rounding, *parts))


def _differ_by_rounding(one: FloatArray, other: FloatArray) -> bool:
    """Whether arrays are equal but for the last digits of their largest numbers.

    Whole numbers are counts or places, which rounding does not change.
    """
    if all(np.array_equal(part, np.rint(part), equal_nan=True) for part in (one, other)):
        return np.array_equal(one, other, equal_nan=True)
    largest = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return np.allclose(one, other, _ROUNDING, _ROUNDING * largest, equal_nan=True)


def read_release(execute: Execute, store: Store, key: str) -> Any:
    """What is stored under a key; LookupError where nothing is."""
    rows = (
        execute(_READ_RELEASE, {"id": key}) if store.has_table(execute, "privacy_release") else []
    )
    if not rows:
        raise LookupError(
            "the release is paid for, and was not stored"
            if is_paid(execute, key)
            else "nothing was paid under this key"
        )
    digest, content = rows[0]
    try:
        if content is None:
            with open(os.path.join(str(store.folder), digest), "rb") as file:
                content = file.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError("it is damaged")
        return from_bytes(bytes(content))
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PrivacyLedgerError(
            f"The stored release of {store.place} cannot be read ({reason})."
        ) from None


def list_releases(execute: Execute, store: Store) -> list[PaidRelease]:
    """All payments in their order, and what is stored of them."""
    columns = "privacy_spend.id, number, time, estimator, what"
    if store.has_table(execute, "privacy_release"):
        join = "LEFT JOIN privacy_release ON privacy_release.id = privacy_spend.id"
        query = f"SELECT {columns}, size FROM privacy_spend {join} ORDER BY number"
    else:
        query = f"SELECT {columns}, NULL FROM privacy_spend ORDER BY number"
    return [PaidRelease(*row) for row in execute(query)]


def list_digests(execute: Execute, store: Store) -> dict[str, str]:
    """SHA-256 digests of the stored releases, by key."""
    if not store.has_table(execute, "privacy_release"):
        return {}
    rows = execute("SELECT id, digest FROM privacy_release ORDER BY id")
    return {row[0]: row[1] for row in rows}


def _write_file(folder: str, name: str, content: bytes, mode: int) -> None:
    """A file that is whole wherever it has its name, also after a power failure.

    It may be read and written by those who may do so with the ledger.
    """
    # Who may read a folder must be able to enter it.
    os.makedirs(folder, mode=mode | (mode & 0o444) >> 2, exist_ok=True)
    sync_folder(os.path.dirname(folder))
    place = os.path.join(folder, name)
    new = f"{place}.{uuid.uuid4().hex}"
    try:
        with open(new, "xb") as file:
            os.chmod(new, mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, place)
        sync_folder(folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(new)
        raise


# All formats up to this one can be read; the tests keep a file of each.
FORMAT_VERSION = 1
_DESCRIPTION = "release.json"
# Types of the entries of arrays that are kept: those that are no Python objects.
_ENTRIES = "biufcUSmM"
# Equal releases have equal bytes, and none tells when it was made.
_TIME = (1980, 1, 1, 0, 0, 0)

# Types of this package by their names in files: how they are taken apart, and made again.
_KINDS: dict[str, tuple[type, Callable[[Any], dict[str, Any]], Callable[..., Any]]] = {}


def storable(
    name: str, kind: type, parts: Callable[[Any], dict[str, Any]], make: Callable[..., Any]
) -> None:
    """Let releases hold values of a type: ``make(**parts(value))`` is the value again."""
    _KINDS[name] = kind, parts, make


def to_bytes(release: Any, most: float = math.inf) -> bytes:
    """Bytes of a release.

    TypeError where it holds something that is no number, text or array, and ValueError where its
    arrays take more than so many bytes.
    """
    arrays: list[NDArray[Any]] = []
    document = {"format_version": FORMAT_VERSION, "release": _described(release, arrays)}
    size = sum(array.nbytes for array in arrays)
    if size > most:
        raise ValueError(f"it takes {size / 2**20:.3g} MiB")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_DESCRIPTION, _TIME), json.dumps(document))
        for number, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(f"{number}.npy", _TIME), "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return buffer.getvalue()


def from_bytes(content: bytes) -> Any:
    """The release again; ValueError where the bytes are damaged, or of a format not known yet."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ValueError("releases are not compressed, so that none grows when it is read")
            document = json.loads(archive.read(_DESCRIPTION))
            if document["format_version"] <= FORMAT_VERSION:
                return _made(document["release"], archive)
    except _DAMAGE:
        raise ValueError("it is damaged") from None
    raise ValueError("a newer version of sklearn-dptda has stored it")


# What reading raises where somebody else has written the bytes.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    TypeError,
    ValueError,
    EOFError,
    AttributeError,
    # A kind of compression that is not known, a password, JSON in JSON without end.
    RuntimeError,
)


def _described(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """JSON of a value, which names arrays by their places in the list."""
    if isinstance(value, np.generic | np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        # In one order, so that equal arrays have equal bytes.
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
    raise TypeError(f"{type(value).__name__} is no number, text or array")


def _made(tree: Any, archive: zipfile.ZipFile) -> Any:
    """The value that JSON describes."""
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


def _of_kind(content: Any) -> Any:
    name, parts = content
    # A process that does not know the type has the parts by name.
    return _KINDS[name][2](**parts) if name in _KINDS else parts


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": lambda content: complex(*content),
    "tuple": tuple,
    "dict": dict,
    "objects": _objects,
    "sparse": lambda content: csr_array(tuple(content[1]), shape=tuple(content[0])),
    "kind": _of_kind,
}

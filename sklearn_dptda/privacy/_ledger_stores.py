"""Stores of ledgers: in memory, in an SQLite file, or in a database server; and marks outside.

A store runs statements in a transaction that excludes other writers. It also has a home, an
identity of its place that a copy does not share, so that copies of a ledger are recognised.

A mark is the last state of a ledger that a user has seen. It reveals a restored backup. A mark is a
small file whose name is the number of payments. Marks are added and never changed, so that writers
need no lock, and the highest mark is valid. A mark is written before its payments are committed and
gets its name afterwards. If a program ends in between, the mark lags only by payments whose
releases were never drawn.
"""

import errno
import hashlib
import json
import os
import platform
import re
import sqlite3
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from typing import Any, TypeAlias

from sklearn_dptda._typing import PathLike
from sklearn_dptda.privacy._warnings import PrivacyLedgerError, warn_caller
from sklearn_dptda.privacy._whole_file import forget_temporary_name, whole_file

# Beginning of the name of a folder with a ledger that was in memory until it was pickled.
TEMPORARY_FOLDER = "sklearn_dptda_"
# Seconds that a writer waits for the lock.
_LOCK_TIMEOUT = 60.0
_POSTGRESQL_HOME = """
SELECT concat_ws(':', system_identifier, pg_database.oid, CAST('privacy_budget' AS regclass)::oid)
FROM pg_control_system(), pg_database WHERE datname = current_database()
"""
_SQLITE_URL = re.compile(r"sqlite(\+\w+)?:///")
# Files in which Linux keeps the identity of an installation.
_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
# Folder in which Linux lists the file systems of devices.
_DEVICE_UUIDS = "/dev/disk/by-uuid"
# This bit of the address of a network card is set if the address was generated at random.
_MADE_UP_ADDRESS = 1 << 40

# Runs one statement, with parameters if it has some, and returns its rows.
Execute: TypeAlias = Callable[..., list[tuple[Any, ...]]]


class ProcessLock:
    """Lock of this process around all operations on ledgers, which a fork takes first.

    Otherwise a child could inherit a ledger in the middle of a transaction, or a lock of SQLite
    that is held by a thread which does not exist in the child.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Replace the lock in a forked child, whose only thread held it."""
        self._lock = threading.RLock()


process_lock = ProcessLock()


def make_store(location: PathLike) -> "Store":
    """Return a SqliteStore for a path or SQLite URL, a ServerStore for another SQLAlchemy URL."""
    location = os.fsdecode(location)
    if not location or "\0" in location:
        raise ValueError("path must name a file or a database, without null characters.")
    if prefix := _SQLITE_URL.match(location):
        location = location[prefix.end() :]
        if not location or location.startswith(":") or "?" in location:
            raise ValueError(
                "path is not a valid SQLite URL: give the name of a file, and no options."
            )
    if "://" in location:
        return ServerStore(location)
    # With two leading slashes, the first folder would be read as the name of a machine.
    return SqliteStore(re.sub("^//+", "/", os.path.abspath(location)))


def shown_location(location: PathLike) -> str:
    """Return the location of a ledger for messages and files; of a URL, nothing that is secret.

    The options of a URL are left out, because a password can be one of them.
    """
    location = os.fsdecode(location)
    if "://" not in location or _SQLITE_URL.match(location):
        return location
    try:
        return _server_url(location).set(query={}).render_as_string(hide_password=True)
    except (ImportError, ValueError):
        return "a database server"


def _server_url(location: str) -> Any:
    """Parse a SQLAlchemy URL; the message of a ValueError quotes nothing of it."""
    try:
        import sqlalchemy
    except ImportError:
        raise ImportError(
            "A ledger in a database server requires SQLAlchemy. Install it with "
            "pip install 'sklearn-dptda[ledger]'."
        ) from None
    try:
        url = sqlalchemy.engine.make_url(location)
    except (sqlalchemy.exc.SQLAlchemyError, ValueError) as error:
        raise _invalid_url(type(error).__name__) from None
    if "@" in f"{url.host}{url.database}":
        # The password ends at the first @, so that its rest would be shown as the host.
        raise _invalid_url("write each @ in a user name or a password as %40")
    return url


def _invalid_url(reason: str) -> ValueError:
    return ValueError(f"path is not a valid SQLAlchemy URL ({reason}).")


class Store:
    """Base of all stores: a place in words, a location to open it, transactions, and a home."""

    place: str
    location: str
    # Path of the file in which the ledger is, if it is in one.
    file: str | None = None
    lock_clause = ""
    # SQL type of a column of bytes.
    bytes_type = "BLOB"
    _errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Yield a function that runs one statement and returns its rows."""
        try:
            with self._begin() as execute:
                yield execute
        except self._errors as error:
            raise _unusable(self.place, getattr(error, "orig", None) or error) from None
        except UnicodeDecodeError:
            # SQLite quotes the damaged file in an error message that cannot be decoded.
            raise damaged(self.place) from None

    def _begin(self) -> AbstractContextManager[Execute]:
        """Like ``transaction``, with the errors of the database."""
        raise NotImplementedError

    def creation(self) -> AbstractContextManager[Execute]:
        """Like ``transaction``, for a place where nothing exists yet."""
        return self.transaction()

    def home(self, execute: Execute) -> str | None:
        """Identity of the place, which copies do not share; None if it does not matter."""
        return None

    def has_table(self, execute: Execute, name: str) -> bool:
        """Whether there is a table with this name."""
        tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return bool(execute(tables, {"name": name}))


class MemoryStore(Store):
    """A ledger in the memory of this process. Other processes are refused."""

    place = "in memory"

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )

    def _begin(self) -> AbstractContextManager[Execute]:
        self._refuse_strangers()
        return _sqlite_transaction(self._connection)

    def move_to(self, path: str) -> "SqliteStore":
        """Copy everything into an SQLite file and return the store of that file."""
        self._refuse_strangers()
        try:
            with closing(sqlite3.connect(path)) as target:
                self._connection.backup(target)
        except sqlite3.Error as error:
            raise _unusable(repr(path), error) from None
        return SqliteStore(path)

    def _refuse_strangers(self) -> None:
        """Refuse access from another process, where a copy would be a second budget."""
        if os.getpid() != self._owner:
            raise PrivacyLedgerError(
                "This budget is in the memory of another process and could not be shared. Nothing "
                "was released. Give the accountant a path."
            )


class SqliteStore(Store):
    """A ledger in an SQLite file that the processes of one machine share.

    Each transaction opens the file again, because connections cannot be shared
    between threads or across forks. The time is negligible beside a release.
    """

    file: str

    def __init__(self, location: str) -> None:
        # While the ledger is created, the file has a temporary name.
        self.location = self.file = location
        self.place = repr(location)

    @contextmanager
    def _begin(self) -> Iterator[Execute]:
        with closing(self._connect()) as connection:
            # A payment is on the disk when it is committed, even if the power fails.
            connection.execute("PRAGMA synchronous=FULL")
            with _sqlite_transaction(connection) as execute:
                yield execute

    @contextmanager
    def creation(self) -> Iterator[Execute]:
        """Like ``transaction``, in a new file, which gets its name after the commit."""
        try:
            with whole_file(self.location) as self.file, self.transaction() as execute:
                yield execute
        except FileExistsError:
            raise _taken(self.place) from None
        except OSError as error:
            raise _unusable(self.place, error.strerror or error) from None
        finally:
            self.file = self.location

    def home(self, execute: Execute) -> str | None:
        """Machine, file system and inode of the file, which copies do not share."""
        try:
            if os.stat(self.file).st_nlink > 1:
                forget_temporary_name(self.file)
            file, system = os.stat(self.file), file_system_identity(self.file)
        except OSError as error:
            raise _unusable(self.place, error.strerror or error) from None
        if file.st_nlink > 1:
            # SQLite finds its journal, which undoes an incomplete payment, by the name of the file.
            raise _unusable(self.place, "the file has several names, which are hard links")
        return f"{machine_identity()}:{system}:{file.st_ino}"

    def _connect(self) -> sqlite3.Connection:
        # This never creates a file: a ledger that was deleted must not be replaced by an empty one.
        name = self.file.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return sqlite3.connect(
            f"file:{name}?mode=rw", uri=True, timeout=_LOCK_TIMEOUT, isolation_level=None
        )


@contextmanager
def _sqlite_transaction(connection: sqlite3.Connection) -> Iterator[Execute]:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield lambda statement, values=(): connection.execute(statement, values).fetchall()


class ServerStore(Store):
    """A ledger in a database server at a SQLAlchemy URL, for teams and clusters."""

    lock_clause = " FOR UPDATE"

    def __init__(self, location: str) -> None:
        url = _server_url(location)
        import sqlalchemy

        self.location, self.place = location, repr(shown_location(location))
        self._sqlalchemy, self._errors = sqlalchemy, (sqlalchemy.exc.SQLAlchemyError,)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        try:
            # There is no pool, because connections must not survive forks. The isolation level is
            # "read committed", so that a transaction sees what was committed while it waited for
            # the lock.
            self._engine = sqlalchemy.create_engine(
                url, poolclass=sqlalchemy.pool.NullPool, isolation_level="READ COMMITTED"
            )
        except (sqlalchemy.exc.SQLAlchemyError, ValueError) as error:
            raise _invalid_url(type(error).__name__) from None
        self.bytes_type = sqlalchemy.LargeBinary(2**31 - 1).compile(self._engine.dialect)

    @contextmanager
    def _begin(self) -> Iterator[Execute]:
        with self._engine.begin() as connection:

            def execute(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
                cursor = connection.execute(self._sqlalchemy.text(statement), values or {})
                return [tuple(row) for row in cursor] if cursor.returns_rows else []

            yield execute

    @contextmanager
    def creation(self) -> Iterator[Execute]:
        """Like ``transaction``; of two creations, one raises an error that names the other."""
        with self.transaction() as execute:
            try:
                yield execute
            except self._sqlalchemy.exc.DBAPIError:
                # The tables or the row of the other creation exist by now.
                with suppress(*self._errors), self._begin() as look:
                    if look("SELECT 1 FROM privacy_budget"):
                        raise _taken(self.place) from None
                raise

    def home(self, execute: Execute) -> str | None:
        """Cluster, database and table of PostgreSQL, which restored dumps do not share."""
        if self._engine.dialect.name != "postgresql":
            return None
        return str(execute(_POSTGRESQL_HOME)[0][0])

    def has_table(self, execute: Execute, name: str) -> bool:
        """Whether there is a table with this name."""
        return bool(self._sqlalchemy.inspect(self._engine).has_table(name))


def _taken(place: str) -> PrivacyLedgerError:
    return PrivacyLedgerError(
        f"Something exists at {place} already, and a new ledger would hide what was spent from an "
        "old one. To attach to an existing ledger, use PrivacyAccountant.open(path)."
    )


def damaged(place: str) -> PrivacyLedgerError:
    """Return the error for a ledger whose contents no accountant can have written."""
    return _unusable(place, "it is damaged")


def _unusable(place: str, error: object) -> PrivacyLedgerError:
    reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
    remedy, temporary = "", os.path.join(tempfile.gettempdir(), TEMPORARY_FOLDER)
    if temporary in place and "unable to open" in reason[0]:
        remedy = (
            " It was in memory, and ended with its process. Set another accountant, or give "
            "accountants a path."
        )
    return PrivacyLedgerError(
        f"The privacy ledger {place} cannot be used ({reason[0]}): nothing was released.{remedy}"
    )


@cache
def machine_identity() -> str:
    """Digest that distinguishes this machine from others, without revealing its identity.

    Containers that share an image and its machine identity count as one machine.
    """
    for place in _MACHINE_ID_FILES:
        with suppress(OSError), open(place) as file:
            if text := file.read().strip():
                return _digest(text)[:24]
    address = uuid.getnode()
    return _digest(platform.node() if address & _MADE_UP_ADDRESS else f"{address:x}")[:24]


def file_system_identity(path: str) -> str:
    """Digest of an identity of the file system that survives reboots; empty if there is none.

    Device numbers can change at a reboot. XFS and FAT without udev, macOS and some network file
    systems have no better name, and are not identified.
    """
    device = os.stat(path).st_dev
    if not hasattr(os, "statvfs"):
        # On Windows, this is the serial number of the volume.
        return _digest(device)[:16]
    identity: object = os.statvfs(path).f_fsid
    if identity == device:
        identity = _file_system_uuid(device)
    return _digest(identity)[:16] if identity else ""


def _file_system_uuid(device: int) -> str | None:
    with suppress(OSError), os.scandir(_DEVICE_UUIDS) as entries:
        for entry in entries:
            if entry.stat().st_rdev == device:
                return entry.name
    return None


def _digest(identity: object) -> str:
    return hashlib.sha256(f"sklearn_dptda ledger {identity}".encode()).hexdigest()


@contextmanager
def noting() -> Iterator[Callable[..., None]]:
    """Yield a function that prepares a mark; marks become valid if the block ends without error."""
    prepared = []

    def note(ledger_id: str, account: dict[str, Any], make: bool = False) -> None:
        """Prepare the mark of an account; ``make`` creates the folder for marks of its ledger."""
        folder, number = folder_of(ledger_id), account["number"]
        if _numbers(folder)[-1:] >= [number] or not (make or os.path.isdir(folder)):
            return
        new = os.path.join(folder, f"{number}.{uuid.uuid4().hex}")
        with _warning_if_not_written(folder):
            if not os.path.isabs(folder):
                raise FileNotFoundError(errno.ENOENT, "this user has no home directory")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with open(new, "x", encoding="utf-8") as file:
                file.write(json.dumps(account))
                file.flush()
                # A file with the name of a mark must be complete, even after a power failure.
                os.fsync(file.fileno())
            prepared.append((new, folder, str(number)))

    yield note
    for new, folder, name in prepared:
        with _warning_if_not_written(folder):
            # Another process may have set a higher mark in the meantime and removed this one.
            with suppress(FileNotFoundError):
                os.replace(new, os.path.join(folder, name))
            _clear(folder)


def last_mark(ledger_id: str) -> tuple[str, str] | None:
    """Return place and text of the highest mark, or None."""
    folder = folder_of(ledger_id)
    for _ in range(3):
        numbers = _numbers(folder)
        if not numbers:
            break
        place = os.path.join(folder, str(numbers[-1]))
        # The file is missing if two higher marks were set in the meantime.
        with suppress(FileNotFoundError), open(place, encoding="utf-8", errors="replace") as file:
            return repr(place), file.read()
    return None


@contextmanager
def _warning_if_not_written(folder: str) -> Iterator[None]:
    """Warn and continue if no mark can be written."""
    try:
        yield
    except OSError as error:
        warn_caller(
            f"The state of the ledger cannot be recorded in {folder!r} ({error.strerror}). If a "
            "backup is restored in place of this ledger, it will not be noticed. Set the "
            "environment variable XDG_STATE_HOME to use another folder.",
            RuntimeWarning,
        )


def folder_of(ledger_id: str) -> str:
    """Return the folder of the marks of a ledger, where the system keeps the state of programs."""
    place = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(place):
        places = {"win32": "~/AppData/Local", "darwin": "~/Library/Application Support"}
        place = os.path.expanduser(places.get(sys.platform, "~/.local/state"))
    return os.path.join(place, "sklearn_dptda", "ledgers", ledger_id)


def _numbers(folder: str) -> list[int]:
    """Return the numbers of the marks in increasing order."""
    with suppress(OSError):
        return sorted(int(name) for name in os.listdir(folder) if name.isdecimal())
    return []


def _clear(folder: str) -> None:
    """Remove all but the two highest marks. A concurrent reader of the folder still finds one."""
    lowest = min(_numbers(folder)[-2:], default=0)
    for name in os.listdir(folder):
        number = name.partition(".")[0]
        if number.isdecimal() and int(number) < lowest:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))

"""Where a ledger lives: in memory, in an SQLite file, in a database server.

A store does one thing: run a few statements in a transaction that no other writer can interleave
with. It also knows its home, which a copy does not share, so that a ledger can tell that it was
copied.
"""

import hashlib
import os
import platform
import re
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from typing import Any, TypeAlias, cast

from sklearn_dptda._typing import PathLike
from sklearn_dptda.privacy._warnings import PrivacyLedgerError

# Seconds that a writer waits for its turn.
_LOCK_TIMEOUT = 60.0
_POSTGRESQL_HOME = """
SELECT concat_ws(':', system_identifier, pg_database.oid, CAST('privacy_budget' AS regclass)::oid)
FROM pg_control_system(), pg_database WHERE datname = current_database()
"""
_SQLITE_URL = re.compile(r"sqlite(\+\w+)?:///")
# Where Linux keeps the identity that an installation was given.
_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
# Where Linux names the file systems of devices.
_DEVICE_UUIDS = "/dev/disk/by-uuid"
# The bit of the address of a network card that says that the address was made up.
_MADE_UP_ADDRESS = 1 << 40

# Runs one statement, with parameters if it has some, and returns its rows.
Execute: TypeAlias = Callable[..., list[tuple[Any, ...]]]


class ProcessLock:
    """One lock of this process around everything that touches a ledger.

    A fork takes it first, so that the child inherits no ledger in the middle of
    a transaction and no lock of SQLite that is held by a thread it lacks.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Start anew in a forked child, whose only thread held the lock."""
        self._lock = threading.RLock()


process_lock = ProcessLock()


def make_store(location: PathLike) -> "Store":
    """SqliteStore for a path or its SQLite URL, ServerStore for another SQLAlchemy URL."""
    location = os.fsdecode(location)
    if not location or "\0" in location:
        raise ValueError(f"path must name a file or a database; got {location!r}.")
    if prefix := _SQLITE_URL.match(location):
        location = location[prefix.end() :]
        if not location or location.startswith(":") or "?" in location:
            raise ValueError(
                "path is no usable SQLite URL: it takes the name of a file, and no options."
            )
    if "://" in location:
        return ServerStore(location)
    # Two leading slashes would make the first folder the name of a machine.
    return SqliteStore(re.sub("^//+", "/", os.path.abspath(location)))


class Store:
    """What all stores have: a place in words, a location that opens it, transactions, a home."""

    place: str
    location: str
    lock_clause = ""
    # Type of a column of bytes.
    bytes_type = "BLOB"

    def transaction(self) -> AbstractContextManager[Execute]:
        """Yield a function that runs one statement and returns its rows."""
        raise NotImplementedError

    def creation(self) -> AbstractContextManager[Execute]:
        """Yield as in a transaction, in a place where there is nothing yet."""
        return self.transaction()

    def home(self, execute: Execute) -> str | None:
        """Where in the world this is, which copies do not share; None where that is no matter."""
        return None

    def has_ledger(self, execute: Execute) -> bool:
        """Whether this is worth reading; what is read complains of a table that is missing."""
        return True

    def has_table(self, execute: Execute, name: str) -> bool:
        """Whether there is a table of that name."""
        tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return bool(execute(tables, {"name": name}))

    @property
    def folder(self) -> str | None:
        """Where large releases lie beside the ledger; None where they lie within it."""
        return None

    @property
    def mode(self) -> int:
        """Who may read and write what lies beside the ledger, as bits of a file."""
        return 0o600


class MemoryStore(Store):
    """A ledger of this process and its threads; whoever has left the process is refused."""

    place = "in memory"

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        self._refuse_strangers()
        with _sqlite_transaction(self._connection) as execute:
            yield execute

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
        """A copy in another process would be a second budget."""
        if os.getpid() != self._owner:
            raise PrivacyLedgerError(
                "This budget lived in the memory of another process and could not be shared: "
                "nothing was released. Give the accountant a path."
            )


class SqliteStore(Store):
    """A ledger in a file that processes of one machine share.

    Each transaction opens the file anew: connections survive neither
    threads nor forks, and one release is dear beside it.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self.place = repr(location)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        try:
            with (
                closing(self._connect()) as connection,
                _sqlite_transaction(connection) as execute,
            ):
                yield execute
        except sqlite3.Error as error:
            raise _unusable(self.place, error) from None
        except UnicodeDecodeError:
            # Where SQLite quotes a damaged file in an error of its own.
            raise damaged(self.place) from None

    @contextmanager
    def creation(self) -> Iterator[Execute]:
        """Make the file, which must not be there, and yield as in a transaction."""
        try:
            os.close(os.open(self.location, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        except FileExistsError:
            raise taken(self.place) from None
        except OSError as error:
            raise _unusable(self.place, error.strerror or error) from None
        try:
            with self.transaction() as execute:
                yield execute
        except BaseException:
            # What was committed stays, whatever failed afterwards: it may have been spent from.
            if not self._committed():
                with suppress(OSError):
                    os.unlink(self.location)
            raise

    def _committed(self) -> bool:
        try:
            with closing(self._connect()) as connection:
                return self.has_ledger(_executor(connection))
        except sqlite3.Error:
            # Who cannot tell removes nothing.
            return True

    def home(self, execute: Execute) -> str | None:
        """Machine, file system and number of the file, which copies do not share."""
        try:
            file, system = os.stat(self.location), file_system_identity(self.location)
        except OSError as error:
            raise _unusable(self.place, error.strerror or error) from None
        if file.st_nlink > 1:
            # What SQLite keeps beside a file, to undo half a payment, is found by its name.
            raise _unusable(self.place, "it has several names")
        return f"{machine_identity()}:{system}:{file.st_ino}"

    def has_ledger(self, execute: Execute) -> bool:
        """Whether this is the file of a ledger; an empty one, cut off, is none."""
        return self.has_table(execute, "privacy_budget")

    @property
    def folder(self) -> str:
        """Folder beside the file, also where a symbolic link leads to it."""
        return f"{os.path.realpath(self.location)}.releases"

    @property
    def mode(self) -> int:
        return os.stat(self.location).st_mode & 0o666

    def _connect(self) -> sqlite3.Connection:
        # Never makes a file: a ledger that vanished must not come back empty.
        name = self.location.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            f"file:{name}?mode=rw", uri=True, timeout=_LOCK_TIMEOUT, isolation_level=None
        )
        try:
            connection.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()
            raise
        return connection


class ServerStore(Store):
    """A ledger in a database server at a SQLAlchemy URL, for teams and clusters."""

    lock_clause = " FOR UPDATE"

    def __init__(self, location: str) -> None:
        try:
            import sqlalchemy
        except ImportError:
            raise ImportError(
                "A ledger in a database server needs SQLAlchemy: "
                "pip install 'sklearn-dptda[ledger]'."
            ) from None
        self.location = location
        self._sqlalchemy = sqlalchemy
        self._seen_tables: set[str] = set()
        try:
            url = sqlalchemy.engine.make_url(location)
            if url.drivername == "postgresql":
                url = url.set(drivername="postgresql+psycopg")
            # No pool: connections must not survive forks. Read committed: what the lock
            # waited for must be seen.
            self._engine = sqlalchemy.create_engine(
                url, poolclass=sqlalchemy.pool.NullPool, isolation_level="READ COMMITTED"
            )
        except (sqlalchemy.exc.SQLAlchemyError, ValueError) as error:
            raise ValueError(
                f"path is no usable SQLAlchemy URL ({type(error).__name__})."
            ) from None
        self.bytes_type = sqlalchemy.LargeBinary(2**31 - 1).compile(self._engine.dialect)
        # Error messages quote this place: passwords may stand in the query as well.
        self.place = repr(url.set(query={}).render_as_string(hide_password=True))

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        try:
            with self._begin() as execute:
                yield execute
        except self._sqlalchemy.exc.SQLAlchemyError as error:
            raise _unusable(self.place, getattr(error, "orig", None) or error) from None

    @contextmanager
    def _begin(self) -> Iterator[Execute]:
        with self._engine.begin() as connection:
            yield _ServerStatements(connection, self._sqlalchemy.text)

    @contextmanager
    def creation(self) -> Iterator[Execute]:
        """Yield as in a transaction; of two that create at once one is told that it is taken."""
        with self.transaction() as execute:
            try:
                yield execute
            except self._sqlalchemy.exc.DBAPIError:
                # The tables or the row of the other one are there by now.
                with suppress(self._sqlalchemy.exc.SQLAlchemyError), self._begin() as look:
                    if look("SELECT 1 FROM privacy_budget"):
                        raise taken(self.place) from None
                raise

    def has_table(self, execute: Execute, name: str) -> bool:
        """Whether there is a table of that name."""
        # To ask costs as much as a payment, and a table that was seen does not go away.
        if name not in self._seen_tables:
            connection = cast(_ServerStatements, execute).connection
            if not self._sqlalchemy.inspect(connection).has_table(name):
                return False
            self._seen_tables.add(name)
        return True

    def home(self, execute: Execute) -> str | None:
        """Cluster, database and table of PostgreSQL, which restored dumps do not share."""
        if self._engine.dialect.name != "postgresql":
            return None
        return str(execute(_POSTGRESQL_HOME)[0][0])


class _ServerStatements:
    """Runs statements in a connection to a server, which also knows what tables there are."""

    def __init__(self, connection: Any, text: Callable[[str], Any]) -> None:
        self.connection = connection
        self._text = text

    def __call__(
        self, statement: str, parameters: dict[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(self._text(statement), parameters or {})
        return [tuple(row) for row in cursor] if cursor.returns_rows else []


def _executor(connection: sqlite3.Connection) -> Execute:
    return lambda statement, parameters=(): connection.execute(statement, parameters).fetchall()


@contextmanager
def _sqlite_transaction(connection: sqlite3.Connection) -> Iterator[Execute]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield _executor(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def taken(place: str) -> PrivacyLedgerError:
    """Error for a place, in words, where there is something already."""
    return PrivacyLedgerError(
        f"There is something at {place} already, and a new ledger would hide what was spent from "
        "an old one: PrivacyAccountant.open(path) attaches to a ledger."
    )


def damaged(place: str) -> PrivacyLedgerError:
    """Error for a ledger at a place, in words, that no accountant can have written."""
    return _unusable(place, "it is damaged")


def _unusable(place: str, error: object) -> PrivacyLedgerError:
    reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
    return PrivacyLedgerError(
        f"The privacy ledger {place} cannot be used ({reason[0]}): nothing was released."
    )


@cache
def machine_identity() -> str:
    """Digest of what tells this machine from others, and of nothing that identifies it elsewhere.

    Containers that share an image and its identity count as one machine.
    """
    return _digest(_identity())[:24]


def file_system_identity(path: str) -> str:
    """Digest of what a file system keeps across reboots; empty where that cannot be told.

    Numbers of devices can change when a machine starts: where the system has no better name for a
    file system (XFS and FAT without udev, macOS, some network file systems), it counts for nothing.
    """
    device = os.stat(path).st_dev
    if not hasattr(os, "statvfs"):
        # Windows: the serial number of the volume.
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


def _identity() -> str:
    for place in _MACHINE_ID_FILES:
        try:
            with open(place) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text:
            return text
    address = uuid.getnode()
    return platform.node() if address & _MADE_UP_ADDRESS else f"{address:x}"

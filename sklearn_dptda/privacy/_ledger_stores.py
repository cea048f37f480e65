"""Which machine and file system these are, so that a ledger can tell that it was copied."""

import hashlib
import os
import platform
import re
import sqlite3
import threading
import uuid
from contextlib import closing, contextmanager, suppress
from functools import cache

from sklearn_dptda.privacy._warnings import PrivacyLedgerError

# Where Linux keeps the identity that an installation was given.
_PLACES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
# Where Linux names the file systems of devices.
_UUIDS = "/dev/disk/by-uuid"
# Set in the address of a network card, it says that the address was made up.
_MADE_UP = 1 << 40


@cache
def machine_identity() -> str:
    """Digest of what tells this machine from others, and of nothing that identifies it elsewhere.

    Containers that share an image and its identity count as one machine.
    """
    return _digest(_identity())[:24]


def file_system_identity(path) -> str:
    """Digest of what a file system keeps across reboots; empty where that cannot be told.

    Numbers of devices can change when a machine starts: where the system has no better name for a
    file system (XFS and FAT without udev, macOS, some network file systems), it counts for nothing.
    """
    device = os.stat(path).st_dev
    if not hasattr(os, "statvfs"):
        # Windows: the serial number of the volume.
        return _digest(device)[:16]
    identity = os.statvfs(path).f_fsid
    if identity == device:
        identity = _file_system_uuid(device)
    return _digest(identity)[:16] if identity else ""


def _file_system_uuid(device):
    with suppress(OSError), os.scandir(_UUIDS) as entries:
        for entry in entries:
            if entry.stat().st_rdev == device:
                return entry.name
    return None


def _digest(identity):
    return hashlib.sha256(f"sklearn_dptda ledger {identity}".encode()).hexdigest()


def _identity():
    for place in _PLACES:
        try:
            with open(place) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text:
            return text
    address = uuid.getnode()
    return platform.node() if address & _MADE_UP else f"{address:x}"


# Where a ledger lives: in memory, in an SQLite file, in a database server.
#
# A store does one thing: run a few statements in a transaction that no other writer can
# interleave with.

# Seconds that a writer waits for its turn.
_PATIENCE = 60.0
_POSTGRESQL_HOME = """
SELECT concat_ws(':', system_identifier, pg_database.oid, CAST('privacy_budget' AS regclass)::oid)
FROM pg_control_system(), pg_database WHERE datname = current_database()
"""
_SQLITE_URL = re.compile(r"sqlite(\+\w+)?:///")


class ProcessLock:
    """One lock of this process around everything that touches a ledger.

    A fork takes it first, so that the child inherits no ledger in the middle of
    a transaction and no lock of SQLite that is held by a thread it lacks.
    """

    def __init__(self):
        self._lock = threading.RLock()

    def __enter__(self):
        self._lock.acquire()
        return self

    def __exit__(self, *exception):
        self._lock.release()

    def renew(self):
        """Start anew in a forked child, whose only thread held the lock."""
        self._lock = threading.RLock()


process_lock = ProcessLock()


def make_store(location):
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


class MemoryStore:
    """A ledger of this process and its threads."""

    place = "in memory"
    lock_clause = ""

    def __init__(self):
        self._owner = os.getpid()
        self._connection = sqlite3.connect(
            ":memory:", check_same_thread=False, isolation_level=None
        )

    @contextmanager
    def transaction(self):
        """Yield a function that runs one statement and returns its rows."""
        self._refuse_strangers()
        with _sqlite_transaction(self._connection) as execute:
            yield execute

    creation = transaction

    def home(self, execute):
        """No place in the world: whoever has left this process is refused already."""
        return None

    def move_to(self, path):
        """Copy everything into an SQLite file and return the store of that file."""
        self._refuse_strangers()
        try:
            with closing(sqlite3.connect(path)) as target:
                self._connection.backup(target)
        except sqlite3.Error as error:
            raise _unusable(repr(path), error) from None
        return SqliteStore(path)

    def _refuse_strangers(self):
        """A copy in another process would be a second budget."""
        if os.getpid() != self._owner:
            raise PrivacyLedgerError(
                "This budget lived in the memory of another process and could not be shared: "
                "nothing was released. Give the accountant a path."
            )


class SqliteStore:
    """A ledger in a file that processes of one machine share.

    Each transaction opens the file anew: connections survive neither
    threads nor forks, and one release is dear beside it.
    """

    lock_clause = ""

    def __init__(self, location):
        self.location = location
        self.place = repr(location)

    @contextmanager
    def transaction(self):
        """Yield a function that runs one statement and returns its rows."""
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
    def creation(self):
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

    def _committed(self):
        try:
            with closing(self._connect()) as connection:
                return self.has_ledger(_executor(connection))
        except sqlite3.Error:
            # Who cannot tell removes nothing.
            return True

    def home(self, execute):
        """Machine, file system and number of the file, which copies do not share."""
        try:
            file, system = os.stat(self.location), file_system_identity(self.location)
        except OSError as error:
            raise _unusable(self.place, error.strerror or error) from None
        if file.st_nlink > 1:
            # What SQLite keeps beside a file, to undo half a payment, is found by its name.
            raise _unusable(self.place, "it has several names")
        return f"{machine_identity()}:{system}:{file.st_ino}"

    def has_ledger(self, execute):
        """Whether this is the file of a ledger; an empty one, cut off, is none."""
        tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'privacy_budget'"
        return bool(execute(tables))

    def _connect(self):
        # Never makes a file: a ledger that vanished must not come back empty.
        name = self.location.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        connection = sqlite3.connect(
            f"file:{name}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None
        )
        try:
            connection.execute("PRAGMA synchronous=FULL")
        except BaseException:
            connection.close()
            raise
        return connection


class ServerStore:
    """A ledger in a database server at a SQLAlchemy URL, for teams and clusters."""

    lock_clause = " FOR UPDATE"

    def __init__(self, location):
        try:
            import sqlalchemy
        except ImportError:
            raise ImportError(
                "A ledger in a database server needs SQLAlchemy: "
                "pip install 'sklearn-dptda[ledger]'."
            ) from None
        self.location = location
        self._sqlalchemy = sqlalchemy
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
        # For error messages: passwords may stand in the query as well.
        self.place = repr(url.set(query={}).render_as_string(hide_password=True))

    @contextmanager
    def transaction(self):
        """Yield a function that runs one statement and returns its rows."""
        try:
            with self._begin() as execute:
                yield execute
        except self._sqlalchemy.exc.SQLAlchemyError as error:
            raise _unusable(self.place, getattr(error, "orig", None) or error) from None

    @contextmanager
    def _begin(self):
        with self._engine.begin() as connection:

            def execute(statement, parameters=None):
                cursor = connection.execute(self._sqlalchemy.text(statement), parameters or {})
                return [tuple(row) for row in cursor] if cursor.returns_rows else []

            yield execute

    @contextmanager
    def creation(self):
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

    def home(self, execute):
        """Cluster, database and table of PostgreSQL, which restored dumps do not share."""
        if self._engine.dialect.name != "postgresql":
            return None
        return execute(_POSTGRESQL_HOME)[0][0]

    def has_ledger(self, execute):
        """Leave it to the server to complain of a table that is missing."""
        return True


def _executor(connection):
    return lambda statement, parameters=(): connection.execute(statement, parameters).fetchall()


@contextmanager
def _sqlite_transaction(connection):
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield _executor(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def taken(place):
    """Error for a place, in words, where there is something already."""
    return PrivacyLedgerError(
        f"There is something at {place} already, and a new ledger would hide what was spent from "
        "an old one: PrivacyAccountant.open(path) attaches to a ledger."
    )


def damaged(place):
    """Error for a ledger at a place, in words, that no accountant can have written."""
    return _unusable(place, "it is damaged")


def _unusable(place, error):
    reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
    return PrivacyLedgerError(
        f"The privacy ledger {place} cannot be used ({reason[0]}): nothing was released."
    )

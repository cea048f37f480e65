"""Places of ledgers: files, and a PostgreSQL server for one session on the loopback interface."""

import glob
import os
import shutil
import socket
import subprocess
import tempfile

import pytest

# By default, pg_ctl gives a server up after a minute, which a busy machine may take.
PATIENTLY = ("-w", "-t", "600")


def _find(program):
    found = shutil.which(program) or sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"))[-1:]
    return found if isinstance(found, str) else (found[0] if found else None)


def start_on_free_port(start, sockets):
    """Call ``start`` with the options of a server, and return its port.

    Another process may take a port between the moment that it is found and the start.
    """
    for attempts_left in reversed(range(5)):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        try:
            start(f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={sockets}")
        except subprocess.CalledProcessError:
            if not attempts_left:
                raise
        else:
            break
    return port


@pytest.fixture(scope="session")
def postgresql():
    """URL of an empty server that trusts loopback; stopped at the end of the session."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    if os.name != "posix":
        pytest.skip("its socket needs a POSIX system")
    initdb, control = _find("initdb"), _find("pg_ctl")
    if not (initdb and control):
        pytest.skip("PostgreSQL is not installed")
    folder = tempfile.mkdtemp(prefix="postgresql_")
    # The server refuses to run as root.
    who = {"user": "postgres"} if os.geteuid() == 0 else {}
    if who:
        shutil.chown(folder, "postgres")
    data = os.path.join(folder, "data")

    def run(*command):
        subprocess.run(
            command,
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=600,
            **who,
        )

    try:
        run(initdb, "-D", data, "-U", "postgres", "--auth=trust", "-N")
        start = [control, "-D", data, *PATIENTLY, "-l", os.path.join(folder, "log"), "start", "-o"]
        port = start_on_free_port(lambda options: run(*start, options), folder)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}"
        finally:
            run(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def administer(url, *statements):
    """Run statements on a server, outside of any database of the tests and of transactions."""
    import sqlalchemy

    place = f"{url}/postgres".replace("postgresql:", "postgresql+psycopg:")
    options = {"isolation_level": "AUTOCOMMIT", "poolclass": sqlalchemy.NullPool}
    with sqlalchemy.create_engine(place, **options).connect() as connection:
        for statement in statements:
            connection.execute(sqlalchemy.text(statement))


@pytest.fixture
def fresh_database(postgresql, request):
    """URL of a new, empty database of the server."""
    name = f"ledger_{abs(hash(request.node.nodeid))}"
    administer(postgresql, f"CREATE DATABASE {name}")
    return f"{postgresql}/{name}"


@pytest.fixture
def path(tmp_path):
    """Place of a ledger in a file."""
    return tmp_path / "a.db"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.engines)])
def ledger_path(request, tmp_path):
    """Place of a new ledger: a file, and a database of the server."""
    if request.param == "sqlite":
        return str(tmp_path / "a.db")
    return request.getfixturevalue("fresh_database")

"""Attacks on a ledger, one test for each row of the table in the documentation."""

import contextlib
import itertools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLedgerError,
    _ledger,
    _ledger_stores,
)
from sklearn_dptda.privacy._ledger_stores import last_mark
from tests._refusals import failing, refuses
from tests.privacy._ledgers import alter, edit, needs_fork
from tests.privacy.conftest import PATIENTLY, _find, administer, start_on_free_port

GUARANTEES = Path(__file__).parents[2] / "doc" / "guarantees.md"
ATTACKS = {}


def attack(what):
    def register(function):
        ATTACKS[what] = function
        return function

    return register


def answer(path, epsilon=0.5, **options):
    """What happens to who opens a ledger and pays."""
    try:
        PrivacyAccountant.open(path, **options).spend(epsilon)
    except PrivacyLedgerError:
        return "refused"
    return "accepted"


def left(path):
    return PrivacyAccountant.open(path).remaining().epsilon


def ledger(folder, spent=0.25):
    """Path of a ledger of budget 1 that has paid once."""
    path = str(folder / "a.db")
    PrivacyAccountant(1.0, path=path).spend(spent)
    return path


def backup(path):
    """Path of a copy, that the ledger has gone beyond."""
    shutil.copyfile(path, path + ".backup")
    PrivacyAccountant.open(path).spend(0.5)
    return path + ".backup"


@attack("copy to another name")
def copy(path, monkeypatch):
    return answer(shutil.copy(path, path + "2"))


@attack("hard link")
def hard_link(path, monkeypatch):
    os.link(path, path + "2")
    refuses("several names", PrivacyAccountant.open, path, error=PrivacyLedgerError)
    said = answer(path + "2")
    os.unlink(path + "2")
    assert answer(path) == "accepted"
    return said


@attack("symbolic link")
def symbolic_link(path, monkeypatch):
    os.symlink(path, path + "2")
    said = answer(path + "2")
    assert left(path) == 0.25
    return said


@attack("move on its file system")
def move(path, monkeypatch):
    old = PrivacyAccountant.open(path)
    os.rename(path, path + "2")
    refuses(None, old.spend, 0.1, error=PrivacyLedgerError)
    return answer(path + "2")


def share_numbers(monkeypatch):
    """Number all files alike, as fresh file systems do, and some do with a file that comes back."""
    home = _ledger_stores.SqliteStore.home
    monkeypatch.setattr(
        _ledger_stores.SqliteStore,
        "home",
        lambda self, execute: home(self, execute).rpartition(":")[0] + ":12",
    )


@attack("copy to another file system")
def another_file_system(folder, monkeypatch):
    share_numbers(monkeypatch)
    path = ledger(folder)
    copied = shutil.copy(path, path + "2")
    assert PrivacyAccountant.open(copied), "only the file system can tell them apart"
    systems = {path: "a" * 16, copied: "b" * 16}
    monkeypatch.setattr(_ledger_stores, "file_system_identity", systems.get)
    PrivacyAccountant.open(path, moved=True)
    shutil.copy(path, copied)
    said = answer(copied, 0.1)
    assert answer(path, 0.1) == "accepted"
    return said


@attack("copy to another machine")
def another_machine(path, monkeypatch):
    accountant, here = PrivacyAccountant.open(path), _ledger_stores.machine_identity
    travelled = pickle.dumps(accountant)
    monkeypatch.setattr(_ledger_stores, "machine_identity", lambda: "f" * 24)
    for spend in (accountant.spend, pickle.loads(travelled).spend):
        refuses("postgresql", spend, 0.1, error=PrivacyLedgerError)
    refuses("moved=True", PrivacyAccountant.open, path, error=PrivacyLedgerError)
    said = answer(path)
    assert PrivacyAccountant.open(path, moved=True).remaining().epsilon == 0.75
    monkeypatch.setattr(_ledger_stores, "machine_identity", here)
    refuses(None, accountant.total, error=PrivacyLedgerError)
    return said


@attack("copy that shares machine, file system and number")
def image_of_a_file_system(folder, monkeypatch):
    share_numbers(monkeypatch)
    path = ledger(folder)
    copied = shutil.copy(path, path + "2")
    said = answer(copied)
    assert answer(path, 0.1) == "refused"
    return said


@attack("restore in place by `cp`")
def restore(path, monkeypatch):
    opened, number = PrivacyAccountant.open(path), os.stat(path).st_ino
    shutil.copyfile(backup(path), path)
    assert os.stat(path).st_ino == number
    for attempt in (opened.remaining, opened.spends, lambda: opened.spend(0.1)):
        refuses("lacks payments", attempt, error=PrivacyLedgerError)
    return answer(path)


@attack("`rm`, then restore by `cp`")
def remove_and_restore(folder, monkeypatch):
    share_numbers(monkeypatch)
    path = ledger(folder)
    copied = backup(path)
    os.unlink(path)
    shutil.copyfile(copied, path)
    return answer(path, 0.1)


@attack("restore, opened with `moved=True`")
def restore_and_say_so(path, monkeypatch):
    shutil.copyfile(backup(path), path)
    assert PrivacyAccountant.open(path, moved=True).remaining().epsilon == 0.25
    # Doing it twice restores no more budget.
    shutil.copyfile(path + ".backup", path)
    assert PrivacyAccountant.open(path, moved=True).remaining().epsilon == 0.25
    refuses(None, PrivacyAccountant.open(path).spend, 0.5, error=PrivacyBudgetExceeded)
    said = answer(path, 0.25)
    assert PrivacyAccountant.open(path).spends()["epsilon"].tolist() == [0.25, 0.25]
    assert len(PrivacyAccountant.open(path)) == 3
    return said


@attack("copy, opened with `moved=True`")
def copy_and_say_so(path, monkeypatch):
    copied = shutil.copy(path, path + "2")
    said = answer(copied, 0.1, moved=True)
    assert answer(path, 0.1) == "refused"
    # A user who has seen neither pays from both.
    monkeypatch.setenv("XDG_STATE_HOME", str(Path(path).parent / "another user"))
    assert answer(path, 0.1) == "accepted"
    return said


@attack("restore, where there is no mark")
def restore_without_mark(path, monkeypatch):
    shutil.copyfile(backup(path), path)
    monkeypatch.setenv("XDG_STATE_HOME", str(Path(path).parent / "another user"))
    return answer(path)


@attack("restore together with the marks")
def restore_with_marks(folder, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    path = ledger(folder)
    shutil.copytree(folder / "state", folder / "state.backup")
    shutil.copyfile(backup(path), path)
    shutil.rmtree(folder / "state")
    shutil.copytree(folder / "state.backup", folder / "state")
    return answer(path)


EDITS = ("epsilon = 100.0", "spent_epsilon = '0'", "delta = 0.1", "number = 7, spent_epsilon = '0'")


@attack("edited budget, or sums")
def edited(folder, monkeypatch):
    said = set()
    for i, change in enumerate(EDITS):
        (folder / str(i)).mkdir()
        path = ledger(folder / str(i), spent=0.75)
        edit(path, f"UPDATE privacy_budget SET {change}")
        said.add(answer(path, 0.125))
        assert PrivacyAccountant.open(path, moved=True).remaining() == (0.25, 0.0)
    return said.pop() if len(said) == 1 else said


@attack("edited budget, or sums, where there is no mark")
def edited_without_mark(folder, monkeypatch):
    path = ledger(folder, spent=0.75)
    edit(path, "UPDATE privacy_budget SET spent_epsilon = '0'")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "another user"))
    return answer(path)


@attack("edited or removed lines")
def edited_lines(folder, monkeypatch):
    path = ledger(folder, spent=0.75)
    edit(path, "UPDATE privacy_spend SET epsilon = 0.0")
    assert left(path) == 0.25
    edit(path, "DELETE FROM privacy_spend")
    assert left(path) == 0.25
    return answer(path, 0.25)


@attack("file cut off")
def cut_off(path, monkeypatch):
    os.truncate(path, os.path.getsize(path) // 2)
    assert answer(path) == "refused"
    os.truncate(path, 0)
    return answer(path)


@attack("file removed, new ledger under its name")
def made_anew(folder, monkeypatch):
    path = ledger(folder, spent=1.0)
    old = PrivacyAccountant.open(path)
    os.unlink(path)
    ledger(folder)
    refuses(None, old.spend, 0.1, error=PrivacyLedgerError)
    return answer(path)


@attack("clock set back")
def clock(path, monkeypatch):

    class Past(_ledger.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(1970, 1, 1, tzinfo=tz)

    monkeypatch.setattr(_ledger, "datetime", Past)
    said = answer(path)
    assert left(path) == 0.25
    return said


class Server:
    """Databases of the server of the tests, and its tools."""

    def __init__(self, url):
        self.url, self.port = url, url.rpartition(":")[2]

    def of(self, name):
        return f"{self.url}/{name}"

    def administer(self, *statements):
        administer(self.url, *statements)

    def tool(self, name, *arguments, **files):
        self.run(name, "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", *arguments, **files)

    @staticmethod
    def run(name, *arguments, **files):
        if _find(name) is None:
            pytest.skip(f"{name} is not installed")
        who = {"user": "postgres", "cwd": "/"} if os.geteuid() == 0 else {}
        # The output of a server that keeps running must not block this.
        files = {"stdout": subprocess.DEVNULL, **files}
        subprocess.run([_find(name), *arguments], check=True, timeout=600, **files, **who)

    def empty(self, name):
        self.administer(f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
        return self.of(name)

    def ledger(self, name):
        PrivacyAccountant(1.0, path=self.empty(name)).spend(0.25)
        return self.of(name)

    def restored(self, name, source, dump):
        """Path of a database that is made of a dump of another one, or in its place."""
        with dump.open("wb") as file:
            self.tool("pg_dump", source, stdout=file)
        path = self.empty(name)
        with dump.open("rb") as file:
            self.tool("psql", "-q", name, stdin=file)
        return path


@pytest.fixture
def server(postgresql):
    return Server(postgresql)


@pytest.mark.engines
def test_accountant_works_for_an_ordinary_user_of_a_server(server):
    server.ledger("one")
    server.administer(
        "DROP DATABASE IF EXISTS hers", "DROP ROLE IF EXISTS ann", "CREATE ROLE ann LOGIN"
    )
    server.administer("CREATE DATABASE hers OWNER ann")
    path = server.of("hers").replace("postgres@", "ann@")
    PrivacyAccountant(1.0, path=path).spend(0.25)
    assert left(path) == 0.75


@attack("PostgreSQL: dump restored into another database")
def dump_elsewhere(folder, server):
    path = server.ledger("one")
    said = answer(server.restored("two", "one", folder / "dump.sql"), 0.1)
    assert answer(path, 0.1) == "accepted"
    return said


@attack("PostgreSQL: dropped database, restored from a dump")
def dump_in_place(folder, server):
    server.ledger("one")
    path = server.restored("one", "one", folder / "dump.sql")
    said = answer(path)
    assert answer(path, 0.1, moved=True) == "accepted"
    return said


@attack("PostgreSQL: dropped database, new ledger")
def dropped(folder, server):
    path = server.ledger("one")
    old = PrivacyAccountant.open(path)
    server.administer("DROP DATABASE one")
    refuses(None, old.spend, 0.1, error=PrivacyLedgerError)
    server.ledger("one")
    refuses(None, old.spend, 0.1, error=PrivacyLedgerError)
    return answer(path)


@attack("PostgreSQL: rows restored in place")
def rows_in_place(folder, server):
    path = server.ledger("one")
    alter(path, "CREATE TABLE kept AS SELECT * FROM privacy_budget")
    PrivacyAccountant.open(path).spend(0.5)
    alter(path, "DELETE FROM privacy_budget", "INSERT INTO privacy_budget SELECT * FROM kept")
    return answer(path)


@attack("PostgreSQL: files of the server copied")
def files_of_the_server(folder, server):
    path, data = server.ledger("one"), f"/tmp/{folder.name}_{os.getpid()}"
    server.tool("pg_basebackup", "-D", data, "-c", "fast")
    try:
        start = ["pg_ctl", "-D", data, *PATIENTLY, "-l", f"{data}/log", "start", "-o"]
        port = start_on_free_port(lambda options: server.run(*start, options), data)
        try:
            said = answer(Server(f"postgresql://postgres@127.0.0.1:{port}").of("one"), 0.1)
            assert answer(path, 0.1) == "refused"
        finally:
            server.run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return said


def table():
    """Rows of the table in the documentation: what is done, and the answer."""
    text = GUARANTEES.read_text(encoding="utf-8").partition("| what is done | answer |")[2]
    rows = text.partition("\n\n")[0].splitlines()[2:]
    return {what.strip(): said.strip() for _, what, said, *_ in (row.split("|") for row in rows)}


def test_table_of_attacks_in_guarantees_lists_all_attacks():
    assert list(table()) == list(ATTACKS)
    assert set(table().values()) == {"refused", "accepted"}


@pytest.mark.parametrize("what", [what for what in ATTACKS if "PostgreSQL" not in what])
@pytest.mark.skipif(os.name != "posix", reason="made of the tools of POSIX systems")
def test_ledger_file_answers_attacks_as_documented(what, tmp_path, monkeypatch):
    attack = ATTACKS[what]
    # Most attacks begin with a ledger, and others prepare for one.
    begins = attack.__code__.co_varnames[0] == "path"
    assert attack(ledger(tmp_path) if begins else tmp_path, monkeypatch) == table()[what]


@pytest.mark.engines
@pytest.mark.parametrize("what", [what for what in ATTACKS if "PostgreSQL" in what])
def test_ledger_server_answers_attacks_as_documented(what, tmp_path, server):
    assert ATTACKS[what](tmp_path, server) == table()[what]


# The file to which a ledger is bound.


def test_file_system_identity_tells_file_systems_apart(tmp_path):
    other = Path("/dev/shm")
    if not other.is_dir() or os.stat(other).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("needs two file systems")
    here, there = map(_ledger_stores.file_system_identity, (tmp_path, other))
    (tmp_path / "deeper").mkdir()
    assert here and there and here != there
    assert _ledger_stores.file_system_identity(tmp_path / "deeper") == here


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="POSIX")
def test_file_system_identity_refuses_numbers_of_devices(tmp_path, monkeypatch):
    # As on XFS: the number of the device, which may change when the machine restarts.
    class Volume:
        f_fsid = os.stat(tmp_path).st_dev

    class Device:
        name = "a UUID"

        def __init__(self, number):
            self.number = number

        def stat(self):
            return type("Stat", (), {"st_rdev": self.number})

    monkeypatch.setattr(_ledger_stores.os, "statvfs", lambda path: Volume)
    monkeypatch.setattr(_ledger_stores, "_DEVICE_UUIDS", str(tmp_path / "nothing"))
    assert _ledger_stores.file_system_identity(tmp_path) == ""
    for number, known in ((Volume.f_fsid, True), (Volume.f_fsid + 1, False)):
        devices = contextlib.nullcontext([Device(number)])
        monkeypatch.setattr(_ledger_stores.os, "scandir", lambda path, d=devices: d)
        assert bool(_ledger_stores.file_system_identity(tmp_path)) is known


# Marks.


def marked(accountant):
    """Number of payments that this user has seen."""
    return int(os.path.basename(last_mark(accountant._ledger.id)[0].strip("'")))


def test_last_mark_follows_payments_in_two_files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    assert marked(accountant) == 0
    for i in range(5):
        accountant.spend(0.125)
        assert marked(accountant) == i + 1
    refuses(None, accountant.spend, 1.0, error=PrivacyBudgetExceeded)
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["4", "5"]
    assert files[0].parent.stat().st_mode & 0o077 == 0 or os.name != "posix"
    # Payments of another user are seen by a user who reads the ledger.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    PrivacyAccountant.open(tmp_path / "a.db").spend(0.125)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert marked(accountant) == 5 and len(accountant) == 6 and marked(accountant) == 6


def test_last_mark_is_not_written_for_ledgers_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    accountant = PrivacyAccountant(1.0)
    accountant.__reduce__()
    accountant.spend(0.5)
    assert list(tmp_path.iterdir()) == []


def test_last_mark_refuses_a_damaged_file(tmp_path):
    accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    place = last_mark(accountant._ledger.id)[0].strip("'")
    for text in ("", "[]", "{", "[" * 100_000, '{"more": 1}', '{"number": -1}'):
        Path(place).write_text(text)
        refuses(r"ledgers.*damaged", accountant.spend, 0.5, error=PrivacyLedgerError)
    os.unlink(place)
    accountant.spend(0.5)


def test_last_mark_warns_of_a_home_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="XDG_STATE_HOME"):
        accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    accountant.spend(0.5)
    with pytest.warns(RuntimeWarning, match="XDG_STATE_HOME"):
        assert left(tmp_path / "a.db") == 0.5
    # If warnings are errors, nothing is created and nothing is spent.
    refuses(None, PrivacyAccountant, 1.0, path=tmp_path / "b.db", error=RuntimeWarning)
    assert not (tmp_path / "b.db").exists()


def test_last_mark_warns_of_a_user_without_home(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(RuntimeWarning, match="no home"):
        PrivacyAccountant(1.0, path=tmp_path / "a.db").spend(0.5)
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_last_mark_pays_once_when_the_disk_is_full(tmp_path, monkeypatch):
    accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    monkeypatch.setattr(os, "fsync", failing(OSError(28, "No space left on device")))
    refuses("No space", accountant.spend, 0.25, error=RuntimeWarning)
    assert accountant.total().epsilon == 0
    with pytest.warns(RuntimeWarning, match="No space"):
        accountant.spend(0.25)
    monkeypatch.undo()
    assert accountant.total().epsilon == 0.25 and marked(accountant) == 1


@pytest.mark.parametrize(
    ("platform", "place"),
    [("linux", ".local/state"), ("darwin", "Library/Application Support"), ("win32", "AppData")],
)
def test_last_mark_is_where_the_platform_keeps_state(platform, place, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    # The convention says that relative paths must be ignored.
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    monkeypatch.setattr(sys, "platform", platform)
    PrivacyAccountant.open(tmp_path / "a.db")
    assert (tmp_path / place).is_dir()
    monkeypatch.undo()
    assert accountant.epsilon == 1.0


@pytest.fixture
def quick_folder(tmp_path, monkeypatch):
    """Memory, where there is such a folder: hundreds of payments wait long for disks."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        yield Path(folder)


@pytest.mark.nightly
@needs_fork
def test_ledger_is_usable_wherever_a_process_is_killed(quick_folder):
    # A child process dies at the first call or return in the library, another one at the second,
    # ...
    path = quick_folder / "a.db"
    accountant = PrivacyAccountant(1e9, path=path)
    lags, alive = 0, False
    for last in itertools.count(1):
        before = len(accountant)
        child = os.fork()
        if child == 0:
            events = itertools.count(1)

            def count(frame, event, argument, events=events, last=last):
                if "sklearn_dptda" in frame.f_code.co_filename and next(events) == last:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.setprofile(count)
            accountant.spend(1.0)
            os.kill(os.getpid(), signal.SIGTERM)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        lag = marked(accountant) - before
        paid = len(PrivacyAccountant.open(path)) - before
        assert 0 <= lag <= paid <= 1
        assert marked(accountant) == before + paid
        lags += lag < paid
        PrivacyAccountant.open(path).spend(1.0)
        if code == -signal.SIGTERM:
            alive = True
            break
        assert code == -signal.SIGKILL
    assert alive and paid == 1 and lags > 0 and last > 100

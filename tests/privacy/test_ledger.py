"""The ledger on disk and on a server, with processes that race and die."""

import atexit
import contextlib
import errno
import os
import pickle
import sqlite3
import tempfile
import threading
import time

import numpy as np
import pytest

from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLedgerError,
    _ledger_stores,
    _whole_file,
)
from sklearn_dptda.privacy._guarantee import Budget
from sklearn_dptda.privacy._ledger import _CREATE_BUDGET, _CREATE_SPEND, Ledger, State, _insertion
from sklearn_dptda.privacy._ledger_stores import last_mark, shown_location
from tests._fragile import KILL, wait_until
from tests._refusals import failing, refuses
from tests.privacy._forked import Child, in_a_fork
from tests.privacy._ledgers import edit, look, needs_fork
from tests.privacy._private_mean import PrivateMean

X = np.random.default_rng(0).uniform(size=(60, 2))


def pay_often(say, path, name, n_payments, epsilon):
    """Say the name of each payment that returned."""
    accountant = PrivacyAccountant.open(path)
    for i in range(n_payments):
        try:
            accountant.spend(epsilon, what=f"{name}-{i}")
            say(f"{name}-{i}")
        except PrivacyBudgetExceeded:
            say("refused")


def make_a_ledger(say, path):
    try:
        PrivacyAccountant(1.0, path=path).spend(0.1)
        say("made")
    except PrivacyLedgerError:
        say("refused")


def test_ledger_keeps_its_budget_and_payments(ledger_path):
    path = ledger_path
    first = PrivacyAccountant(1.0, 1e-6, path=path)
    first.spend(0.3, 1e-7, what="a")
    # If no budget is given, that of the ledger holds.
    second = PrivacyAccountant.open(path)
    assert (second.epsilon, second.delta, second.composition) == (1.0, 1e-6, "basic")
    second.spend(0.3, what="b")
    assert first.spends()["what"].tolist() == ["a", "b"]
    assert PrivacyAccountant.open(path, 1.0, 1e-6).total() == pytest.approx((0.6, 1e-7))
    for other in ({"epsilon": 2.0}, {"delta": 0.0}, {"delta": 1e-6, "composition": "zcdp"}):
        refuses("has the budget epsilon=1", PrivacyAccountant.open, path, **other)
    assert PrivacyAccountant.open(path, delta=1e-6).epsilon == 1.0
    refuses(None, first.spend, 0.5, error=PrivacyBudgetExceeded)
    again = pickle.loads(pickle.dumps(second))
    assert again.path == path and len(again) == 2


@pytest.mark.engines
def test_ledger_loses_no_payment_of_racing_and_killed_processes(ledger_path):
    # At least 180 attempts by three processes, with a budget for 160. One of them is killed.
    accountant = PrivacyAccountant(0.16, path=ledger_path)
    victim, *others = (Child(pay_often, ledger_path, f"p{i}", 80, 0.001) for i in range(3))
    for child in (victim, *others):
        child.go()
    acknowledged = [victim.word() for _ in range(20)]
    victim.process.kill()
    acknowledged += victim.words(exit_code=-KILL)
    for child in others:
        acknowledged += child.words()
    paid = [name for name in acknowledged if name != "refused"]
    ledger = accountant.spends()["what"].tolist()
    assert len(ledger) == len(set(ledger)), "a spend was written twice"
    assert set(paid) <= set(ledger), "a spend was lost"
    # Payments that the killed process wrote but did not report stay spent.
    assert len(set(ledger) - set(paid)) <= 1
    assert accountant.total().epsilon <= 0.16 * (1 + 1e-12)
    assert len(ledger) <= 160
    assert accountant.spends()["number"].tolist() == list(range(1, len(ledger) + 1))
    # The payments that the processes noted at the same time are those in the ledger.
    assert last_mark(accountant._ledger.id)[0].endswith(f"{len(ledger)}'")
    # The ledger works after the kill, up to the last unit.
    for _ in range(160 - len(ledger)):
        accountant.spend(0.001)
    refuses(None, accountant.spend, 0.001, error=PrivacyBudgetExceeded)


@pytest.mark.engines
def test_ledger_can_be_read_while_others_pay(ledger_path):
    accountant = PrivacyAccountant(np.inf, path=ledger_path)
    payer = Child(pay_often, ledger_path, "p", 60, 0.001).go()
    seen = [0]
    while seen[-1] < 60:
        seen.append(len(accountant))
    assert seen == sorted(seen) and len(payer.words()) == 60


@pytest.mark.engines
def test_ledger_is_made_by_one_of_several_processes(ledger_path):
    children = [Child(make_a_ledger, ledger_path) for _ in range(3)]
    answers = [answer for child in [child.go() for child in children] for answer in child.words()]
    assert sorted(answers) == ["made", "refused", "refused"]
    assert len(PrivacyAccountant.open(ledger_path)) == 1


# Files only.


def unusable(accountant, match):
    """The release is refused, and nothing of it exists."""
    estimator = PrivateMean(0.1, bounds=(0, 1), accountant=accountant)
    refuses(match, estimator.fit, X, error=PrivacyLedgerError)
    assert not hasattr(estimator, "mean_")


def test_ledger_refuses_and_keeps_other_files(path):
    edit(path, "CREATE TABLE recipes (name TEXT)")
    database = path.read_bytes()
    path.unlink()
    accountant = PrivacyAccountant(1.0, path=path)
    for content, message in (
        (b"This is no ledger. " * 100, "not a database"),
        (b"\0" * 100 + path.read_bytes()[100:], "cannot be used"),
        (database, "not a privacy ledger"),
    ):
        path.write_bytes(content)
        unusable(accountant, "cannot be used")
        refuses(message, PrivacyAccountant.open, path, error=PrivacyLedgerError)
        for budget in (1.0, np.inf):
            refuses("already", PrivacyAccountant, budget, path=path, error=PrivacyLedgerError)
        assert path.read_bytes() == content


DAMAGES = {
    "epsilon": ["'much'", "x'80'", "-1.0", "0.0"],
    "delta": ["1.0", "'x'", "-0.5"],
    "composition": ["'advanced'", "x'ff'", "'zcdp'"],
    "number": ["-1", "1.5", "9223372036854775807", "'x'"],
    "adjacency": ["'none'", "7"],
    # The last one is a number that a machine cannot represent.
    "spent_epsilon": ["'-1'", "'1/0'", "'nan'", "x'80'", "''", "'1e99999999999'"],
    "spent_rho": ["'0/'", "'1 '"],
    "id": ["'../../etc/passwd'", "x'80'"],
}


@pytest.mark.parametrize("column", DAMAGES)
def test_ledger_refuses_a_budget_that_nobody_wrote(path, column):
    PrivacyAccountant(1.0, path=path).spend(0.5)
    (before,) = look(path, f"SELECT quote({column}) FROM privacy_budget")
    for value in DAMAGES[column]:
        edit(path, f"UPDATE privacy_budget SET {column} = {value}")
        for moved in (False, True):
            refuses("damaged", PrivacyAccountant.open, path, moved=moved, error=PrivacyLedgerError)
    edit(path, f"UPDATE privacy_budget SET {column} = {before}")
    assert PrivacyAccountant.open(path).remaining().epsilon == 0.5


def test_ledger_shows_no_line_that_nobody_wrote(path):
    accountant = PrivacyAccountant(1.0, path=path)
    accountant.spend(0.5)
    lines = ("'{'", "'[]'", "x'80'", f"'{'[' * 100_000}'")
    for change in ("epsilon = 'x'", *(f"epsilon = 0.5, parameters = {line}" for line in lines)):
        edit(path, f"UPDATE privacy_spend SET {change}")
        refuses("damaged", accountant.spends, error=PrivacyLedgerError)
    edit(path, "UPDATE privacy_spend SET parameters = '{}'")
    assert len(accountant.spends()) == 1


@pytest.mark.laws
def test_ledger_raises_its_own_errors_for_damaged_bytes(tmp_path):
    path, rng = tmp_path / "a.db", np.random.default_rng(0)
    accountant = PrivacyAccountant(1.0, path=path)
    accountant.spend(0.1)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    inhabited, refused = np.flatnonzero(whole), 0
    calls = (
        accountant.remaining,
        accountant.spends,
        lambda: PrivacyAccountant.open(path),
        lambda: accountant.spend(0.1),
    )
    for _ in range(200):
        damaged = whole.copy()
        damaged[rng.choice(inhabited, 3)] = rng.integers(0, 256, 3)
        for call in calls:
            path.write_bytes(damaged.tobytes())
            with contextlib.suppress(FileNotFoundError):
                (tmp_path / "a.db-journal").unlink()
            try:
                call()
            except (PrivacyLedgerError, PrivacyBudgetExceeded):
                refused += 1
    assert refused > 100


@pytest.mark.parametrize("path", ["", b"", "a\0b"])
def test_accountant_refuses_a_path_that_names_nothing(path):
    for make in (lambda: PrivacyAccountant(1.0, path=path), lambda: PrivacyAccountant.open(path)):
        refuses("path must name", make)


def test_ledger_file_that_vanished_does_not_come_back_empty(path):
    accountant = PrivacyAccountant(1.0, path=path)
    path.unlink()
    unusable(accountant, "unable to open")
    assert not path.exists()
    # Not even if another ledger is created in its place.
    PrivacyAccountant(1.0, path=path)
    unusable(accountant, "not the one")


@needs_fork
def test_ledger_handle_outlives_no_temporary_ledger():
    dumped = Child(end_with_a_temporary_ledger).go().words()[0]
    unusable(pickle.loads(dumped), "unable to open.*in memory, and ended with its process")


def end_with_a_temporary_ledger(say):
    # A forked process would not call what an interpreter calls at its end.
    atexit._clear()
    say(pickle.dumps(PrivacyAccountant(1.0)))
    atexit._run_exitfuncs()


def test_ledger_file_that_was_cut_off_is_not_new(path, tmp_path):
    accountant = PrivacyAccountant(1.0, path=path)
    accountant.spend(1.0)
    path.write_bytes(b"")
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"a.db{suffix}").unlink(missing_ok=True)
    unusable(accountant, "cannot be used")
    refuses("lost its budget", PrivacyAccountant.open, path, error=PrivacyLedgerError)
    for budget in (1.0, np.inf):
        refuses("already", PrivacyAccountant, budget, path=path, error=PrivacyLedgerError)
    unusable(accountant, "cannot be used")


def test_accountant_open_makes_nothing_at_a_mistyped_path(tmp_path):
    PrivacyAccountant(1.0, path=tmp_path / "ledger.db")
    for mistyped in (tmp_path / "leger.db", f"sqlite+pysqlite:///{tmp_path / 'leger.db'}"):
        refuses("unable to open", PrivacyAccountant.open, mistyped, error=PrivacyLedgerError)
    assert [p.name for p in tmp_path.glob("*.db*")] == ["ledger.db"]
    refuses("epsilon", PrivacyAccountant, path=tmp_path / "leger.db", error=TypeError)


def test_accountant_names_missing_folders_and_refuses_unknown_urls(tmp_path):
    path = tmp_path / "nowhere" / "a.db"
    refuses("No such file", PrivacyAccountant, 1.0, path=path, error=PrivacyLedgerError)
    pytest.importorskip("sqlalchemy")
    refuses("path", PrivacyAccountant, 1.0, path="nosuchdatabase://host/name")


@needs_fork
def test_ledger_file_that_is_read_only_releases_nothing():
    # A child process gives up the rights of root, because root may write anything.
    def attempt():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        unusable(accountant, "cannot be used")

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.db")
        accountant = PrivacyAccountant(1.0, path=path)
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        in_a_fork(attempt)
        os.chmod(folder, 0o755)
        assert len(accountant) == 0


@needs_fork
def test_ledger_in_memory_is_shared_by_a_fork():
    accountant = PrivacyAccountant(1.0)
    accountant.spend(0.5)
    in_a_fork(lambda: accountant.spend(0.5))
    assert len(accountant) == 2
    refuses(None, accountant.spend, 0.1, error=PrivacyBudgetExceeded)


@needs_fork
def test_ledger_in_memory_that_is_not_shared_is_refused_in_a_fork(monkeypatch):
    # The temporary folder cannot be created while forking. The child finds it again.
    accountant = PrivacyAccountant(1.0)
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")

    def attempt():
        tempfile.tempdir = None
        refuses("another process", accountant.spend, 1.0, error=PrivacyLedgerError)
        refuses("another process", pickle.dumps, accountant, error=PrivacyLedgerError)

    in_a_fork(attempt)
    monkeypatch.undo()
    assert len(accountant) == 0
    accountant.spend(1.0)


@pytest.mark.engines
@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_ledger_does_not_hang_in_forks_and_threads():
    # Two threads fork while others make accountants and spend. Every child must pay and exit.
    stop, shared, ended = threading.Event(), PrivacyAccountant(np.inf), []

    def busy():
        while not stop.is_set():
            PrivacyAccountant(np.inf).spend(0.1)
            shared.spend(0.1)

    def forks():
        for _ in range(5):
            in_a_fork(lambda: shared.spend(0.1))
            ended.append(1)

    forkers = [threading.Thread(target=forks) for _ in range(2)]
    threads = [*forkers, *(threading.Thread(target=busy, daemon=True) for _ in range(2))]
    for thread in threads:
        thread.start()
    for thread in forkers:
        thread.join()
    stop.set()
    assert len(ended) == 10


@pytest.mark.engines
def test_ledger_file_in_use_is_waited_for(path):
    accountant = PrivacyAccountant(1.0, path=path)
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    # A payment that does not wait fails long before.
    threading.Timer(1.0, blocker.execute, ["COMMIT"]).start()
    accountant.spend(0.1)
    assert len(accountant) == 1 and time.monotonic() > begin + 0.9
    blocker.close()


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_accountant_refuses_sqlite_urls_of_no_file(scheme):
    for url in (f"{scheme}:///", f"{scheme}:///:memory:", f"{scheme}:///a.db?mode=ro"):
        refuses("path is not a valid SQLite URL", PrivacyAccountant, 1.0, path=url)


@pytest.mark.parametrize("form", ["sqlite:///{}", "sqlite+pysqlite:///{}", "/{}", "{}"])
def test_accountant_takes_urls_slashes_and_strange_names_of_files(form, tmp_path):
    path = tmp_path / ("50% of a?b#c.db" if form == "{}" else "a.db")
    PrivacyAccountant(1.0, path=form.format(path)).spend(0.25)
    assert path.exists() and PrivacyAccountant.open(path).remaining().epsilon == 0.75


# Servers only.


@pytest.mark.engines
def test_ledger_server_tells_who_lost_the_race(fresh_database):
    answers = []

    def loser():
        said = refuses(None, PrivacyAccountant, 1.0, path=fresh_database, error=PrivacyLedgerError)
        answers.append(said)

    winner = _ledger_stores.make_store(fresh_database)
    thread = threading.Thread(target=loser, daemon=True)
    with winner.creation() as execute:
        execute(_CREATE_BUDGET)
        execute(_CREATE_SPEND)
        thread.start()
        # A transaction sees the locks as they are, but activities as they were at its first look.
        waits = "SELECT 1 FROM pg_locks WHERE NOT granted"
        wait_until(lambda: execute(waits), "the loser waits for the winner")
        row = {"one": 1, **State.new("0" * 32, Budget(1.0, 0.0, "basic"), None)._asdict()}
        execute(_insertion("privacy_budget", *row), row)
    thread.join(timeout=300)
    assert answers and "already" in answers[0]


def test_accountant_errors_quote_no_password():
    pytest.importorskip("psycopg")
    for url in (
        "postgresql://127.0.0.1:1/none?user=u&password=secret",
        "postgresql://u:p@ss:secret@127.0.0.1:1/none",
        "postgresql://u:p@secret@127.0.0.1:1/none",
        "postgresql://u:p@h/secret@127.0.0.1:1/none",
        "postgresql://u:sec\0ret@127.0.0.1:1/none",
        "postgresql://u:secret@127.0.0.1:1/none",
    ):
        with pytest.raises((PrivacyLedgerError, ValueError)) as caught:
            PrivacyAccountant(1.0, path=url)
        assert "secret" not in str(caught.value) and "\\x00" not in str(caught.value)
        shown = shown_location(url)
        assert "secret" not in shown and "127.0.0.1:1/none?" not in shown
        with contextlib.suppress(ValueError):
            assert "secret" not in _ledger_stores.make_store(url).place


def test_shown_location_hides_passwords():
    pytest.importorskip("sqlalchemy")
    for location, shown in {
        "postgresql://u:se/c?ret@h:1/db?sslmode=require": "postgresql://u:***@h:1/db",
        "postgresql://user@h/db": "postgresql://user@h/db",
        "postgresql://u:a@b@h/db": "a database server",
        "no url://u:secret@h/db": "a database server",
        "sqlite:///a.db": "sqlite:///a.db",
        "folder/a.db": "folder/a.db",
    }.items():
        assert shown_location(location) == shown


def test_ledger_creation_never_removes_what_was_committed(path, tmp_path, monkeypatch):
    # Creation fails after the commit, when others may already have spent.
    create, second = Ledger.create, tmp_path / "b.db"
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "create", lambda *budget: interrupt(create(*budget)))
        refuses(None, PrivacyAccountant, 1.0, path=path, error=KeyboardInterrupt)
    PrivacyAccountant.open(path).spend(0.9)
    refuses("already", PrivacyAccountant, 1.0, path=path, error=PrivacyLedgerError)

    # Right after the file has got its name.
    def spends_and_fails(folder):
        interrupt(PrivacyAccountant.open(second).spend(0.9))

    monkeypatch.setattr(_whole_file, "sync_folder", spends_and_fails)
    refuses(None, PrivacyAccountant, 1.0, path=second, error=KeyboardInterrupt)
    assert PrivacyAccountant.open(second).remaining().epsilon == pytest.approx(0.1)


def test_ledger_file_is_complete_when_it_gets_its_name(tmp_path, monkeypatch):
    # A process that is killed before then leaves nothing at the path.
    path, original, seen = tmp_path / "a.db", State.new, []

    def new(*arguments):
        seen.append(os.path.lexists(path))
        return original(*arguments)

    monkeypatch.setattr(State, "new", new)
    PrivacyAccountant(1.0, path=path)
    assert seen == [False]
    # Its owner alone may read it.
    assert path.stat().st_mode & 0o077 == 0 or os.name != "posix"


def test_ledger_file_ignores_temporary_names_of_killed_processes(path, tmp_path):
    left = tmp_path / f".sklearn_dptda-{'a' * 32}"
    left.write_bytes(b"incomplete")
    PrivacyAccountant(1.0, path=path).spend(0.25)
    left.unlink()
    # Killed after the file had got its name, and before it lost the temporary one.
    os.link(path, left)
    assert PrivacyAccountant.open(path).remaining().epsilon == 0.75
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


def test_ledger_file_is_made_without_links(path, monkeypatch):
    monkeypatch.setattr(
        os, "link", failing(PermissionError(errno.EPERM, "Operation not permitted"))
    )
    PrivacyAccountant(1.0, path=path).spend(0.25)
    refuses("already", PrivacyAccountant, 1.0, path=path, error=PrivacyLedgerError)
    assert PrivacyAccountant.open(path).remaining().epsilon == 0.75


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_whole_file_is_private_and_on_the_disk_before_it_is_named(tmp_path, monkeypatch):
    path, written, honest = tmp_path / "a", [], os.fsync

    def fsync(descriptor):
        written.append((os.fstat(descriptor).st_ino, path.exists()))
        honest(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    before = os.umask(0)
    try:
        with _whole_file.whole_file(str(path), mode=0o644) as temporary:
            assert os.stat(temporary).st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    # The file, and then the folder that holds its name.
    assert written == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]
    assert path.stat().st_mode & 0o777 == 0o644


def test_ledger_file_waits_for_the_disk_at_each_payment(tmp_path):
    PrivacyAccountant(1.0, path=tmp_path / "a.db")
    store = _ledger_stores.make_store(tmp_path / "a.db")
    with store.transaction() as execute:
        # 2 stands for FULL: a payment survives a power failure.
        assert execute("PRAGMA synchronous") == [(2,)]


def test_ledger_creation_that_fails_leaves_nothing(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(State, "new", interrupt)
        refuses(None, PrivacyAccountant, 1.0, path=path, error=KeyboardInterrupt)
    assert not list(path.parent.iterdir())
    PrivacyAccountant(1.0, path=path)


def interrupt(*_, **__):
    raise KeyboardInterrupt

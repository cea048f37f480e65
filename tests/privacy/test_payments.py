"""Payments under keys and before releases, copies of ledgers, and exact sums."""

import math
import os
import pickle
import shutil
import signal
import sqlite3
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.model_selection import release_once
from sklearn_dptda.model_selection._replicates import PaidAhead, Reservation
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyGuarantee,
    PrivacyLedgerError,
    ReleaseKey,
    _ledger_stores,
)
from sklearn_dptda.privacy._guarantee import Charge, Sums
from tests._fragile import dask_on_this_machine
from tests.privacy._pay_ahead import pay_ahead

KEY = "0123456789abcdef" * 2


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.engines)])
def accountant(request, tmp_path):
    places = {"memory": lambda: None, "sqlite": lambda: tmp_path / "a.db"}
    place = places.get(request.param, lambda: request.getfixturevalue("fresh_database"))()
    return PrivacyAccountant(1.0, 1e-5, path=place)


def test_one_key_pays_once(accountant):
    line = {"what": "a histogram", "estimator": "Histogram", "parameters": {"bins": 3}}
    for _ in range(3):
        accountant.spend(0.4, key=KEY, **line)
    assert accountant.total().epsilon == 0.4 and len(accountant) == 1
    accountant.spend(0.4, key=KEY[::-1], **line)
    assert len(accountant) == len(accountant.spends()) == 2
    # It is already paid for, so the budget is not checked.
    accountant.spend(0.4, key=KEY, **line)
    with pytest.raises(PrivacyBudgetExceeded):
        accountant.spend(0.4, key=KEY[1:] + "x", **line)


@pytest.mark.parametrize("key", ["short", 7, b"0" * 32])
def test_what_is_no_key_is_refused(accountant, key):
    with pytest.raises(ValueError, match="key must be a string"):
        accountant.spend(0.1, key=key)
    with pytest.raises(ValueError, match="key must be a ReleaseKey"):
        release_once(DPLloyd(2), np.zeros((4, 2)), key)
    assert len(accountant) == 0


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 0.3},
        {"delta": 1e-6},
        {"rho": 0.01},
        {"what": "another"},
        {"estimator": "Other"},
        {"parameters": {"bins": 4}},
        {"adjacency": "add-remove"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_line_under_a_key_is_refused(accountant, other):
    line = {"epsilon": 0.2, "what": "a histogram", "parameters": {"bins": 3}}
    accountant.spend(key=KEY, **line)
    with pytest.raises(PrivacyLedgerError, match="Something else was paid for"):
        accountant.spend(key=KEY, **{**line, **other})
    assert accountant.total().epsilon == 0.2


def guarantee(epsilon, **other):
    stated = {"delta": 0.0, "adjacency": "replace-one", "unit": "one row", "mechanism": "noise"}
    return PrivacyGuarantee(epsilon, released="a number", seeded=False, **{**stated, **other})


def test_payments_ahead_are_all_made_or_none(accountant):
    pay_ahead(accountant, [(guarantee(0.2), "A", 3), (guarantee(0.1), "B", 2)])
    assert accountant.total().epsilon == pytest.approx(0.8)
    assert accountant.spends()["number"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(PrivacyBudgetExceeded):
        pay_ahead(accountant, [(guarantee(0.1), "A", 1), (guarantee(0.2), "B", 1)])
    assert len(accountant) == 5


def reserved(*guarantees):
    return Reservation(PrivacyAccountant(10.0), PaidAhead(guarantees))


def test_a_reservation_covers_what_was_paid_and_nothing_else():
    reservation = reserved(guarantee(0.5), guarantee(0.5, delta=1e-6))
    reservation.spend(0.5, 1e-7)
    reservation.spend(0.4)
    for asked in ((0.1, 0.0), (0.0, 1e-9)):
        with pytest.raises(PrivacyLedgerError, match="not among"):
            reservation.spend(*asked)
    reservation = reserved(guarantee(0.5, rho=0.01))
    # The same epsilon with a mechanism of larger zCDP.
    with pytest.raises(PrivacyLedgerError):
        reservation.spend(0.5)
    with pytest.raises(PrivacyLedgerError):
        reservation.spend(0.5, rho=0.01, adjacency="add-remove")
    reservation.spend(0.5, rho=0.01)
    assert len(reservation) == 0


def test_what_leaves_its_task_is_the_accountant_itself():
    accountant = PrivacyAccountant(10.0)
    paid = PaidAhead([guarantee(0.5)])
    reservation = Reservation(accountant, paid)
    assert pickle.loads(pickle.dumps(reservation)) is accountant
    assert repr(reservation) == repr(accountant)
    paid.is_open = False
    # No release is free any more once the task is over.
    reservation.spend(0.5)
    assert accountant.total().epsilon == 0.5


def test_a_copied_file_is_no_second_budget(tmp_path, monkeypatch):
    path, copy = tmp_path / "a.db", tmp_path / "b.db"
    original = PrivacyAccountant(1.0, path=path)
    original.spend(0.5)
    shutil.copy(path, copy)
    with pytest.raises(PrivacyLedgerError, match="is a copy"):
        PrivacyAccountant.open(copy)
    original.spend(0.25)
    # A renamed file is still the same file.
    PrivacyAccountant.open(path.rename(tmp_path / "c.db")).spend(0.25)
    # Payments that this user has seen stay spent. Other users know only the payments in the copy.
    PrivacyAccountant.open(shutil.copy(copy, tmp_path / "d.db"), moved=True)
    assert PrivacyAccountant.open(tmp_path / "d.db").remaining().epsilon == 0.0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else"))
    assert PrivacyAccountant.open(copy, moved=True).remaining().epsilon == 0.5
    PrivacyAccountant.open(copy).spend(0.5)


def test_another_machine_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    accountant = PrivacyAccountant(1.0, path=path)
    travelled = pickle.dumps(accountant)
    monkeypatch.setattr(_ledger_stores, "machine_identity", lambda: "another")
    for spend in (accountant.spend, pickle.loads(travelled).spend):
        with pytest.raises(PrivacyLedgerError, match="postgresql"):
            spend(0.1)
    with pytest.raises(PrivacyLedgerError, match="moved=True"):
        PrivacyAccountant.open(path)
    assert PrivacyAccountant.open(path, moved=True).remaining().epsilon == 1.0
    monkeypatch.undo()
    with pytest.raises(PrivacyLedgerError):
        accountant.total()


def test_a_file_put_in_place_of_a_ledger_is_refused(tmp_path):
    path, backup = tmp_path / "a.db", tmp_path / "backup.db"
    accountant = PrivacyAccountant(1.0, path=path)
    shutil.copy(path, backup)
    accountant.spend(1.0)
    # An old copy would have the whole budget again.
    backup.replace(path)
    with pytest.raises(PrivacyLedgerError, match="is a copy"):
        accountant.spend(1.0)


def test_a_ledger_of_this_process_that_moves_to_a_file_is_no_copy():
    accountant = PrivacyAccountant(1.0)
    accountant.spend(0.5)
    other = pickle.loads(pickle.dumps(accountant))
    other.spend(0.5)
    assert accountant.remaining().epsilon == 0.0


def test_a_ledger_with_two_names_is_refused(tmp_path):
    accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    accountant.spend(0.1)
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    for spend in (accountant.spend, lambda _: PrivacyAccountant.open(tmp_path / "b.db")):
        with pytest.raises(PrivacyLedgerError, match="several names"):
            spend(0.1)
    os.unlink(tmp_path / "b.db")
    accountant.spend(0.1)


def test_payments_are_in_the_file_itself(tmp_path):
    # Moving the file, at the same time as readers or after a crash, moves all payments.
    accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    reader = sqlite3.connect(tmp_path / "a.db")
    reader.execute("SELECT * FROM privacy_budget").fetchall()
    accountant.spend(0.75)
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
    moved = (tmp_path / "a.db").rename(tmp_path / "b.db")
    assert PrivacyAccountant.open(moved).remaining().epsilon == 0.25
    reader.close()


def test_a_reservation_takes_the_cheapest_that_covers():
    reservation = reserved(guarantee(8.0), guarantee(8.0), guarantee(0.05))
    for epsilon in (8.0, 0.05, 8.0):
        reservation.spend(epsilon)


def test_huge_losses_and_infinite_ones():
    accountant = PrivacyAccountant(math.inf)
    for epsilon in (1e308, 1e308, 1e308, math.inf):
        accountant.spend(epsilon)
    assert accountant.total().epsilon == math.inf


def test_sums_lose_nothing():
    values = [0.1, 1e-300, 5e-324, 1e6, 2.0**-40] * 7
    sums = Sums()
    for value in values:
        sums = Sums.from_text(sums.plus(Sums.of([(Charge(value, value / 1e7), 1)])).to_text())
    assert sums.epsilon == sum(map(Fraction, values))
    assert sums == Sums.of([(Charge(v, v / 1e7), 7) for v in values[:5]])
    assert Sums.from_text(Sums.of([(Charge(math.inf), 2)]).to_text()).epsilon == math.inf


@pytest.mark.engines
def test_a_payment_reads_no_other_lines(tmp_path):
    accountant = PrivacyAccountant(1e9, path=tmp_path / "a.db")
    pay_ahead(accountant, [(guarantee(0.5), "A", 500)])
    steps = []
    for _ in range(2):
        connection = sqlite3.connect(tmp_path / "a.db")
        count = [0]

        def tick(count=count):
            count[0] += 1
            return 0

        class Counting(_ledger_stores.SqliteStore):
            def _connect(self):
                opened = super()._connect()
                opened.set_progress_handler(tick, 1)
                return opened

        accountant._ledger.store = Counting(accountant._ledger.store.location)
        accountant.spend(0.25)
        steps.append(count[0])
        connection.close()
        pay_ahead(accountant, [(guarantee(0.5), "A", 5000)])
    # Steps of SQLite's virtual machine after 500 lines and after 5,500: trees grow by at most one
    # level.
    assert steps[1] < 1.2 * steps[0]


def test_names_of_keys_tell_nothing_and_differ():
    key = ReleaseKey()
    names = {key.name()} | {key.child(i).name() for i in range(100)} | {ReleaseKey().name()}
    assert len(names) == 102 and all(len(name) == 32 for name in names)
    assert key.child((1, np.arange(3))).name() == key.child((1, np.arange(3))).name()
    assert pickle.loads(pickle.dumps(key)).name() == key.name()
    assert repr(key) == "ReleaseKey()" and key.name() not in repr(key)


def _pay_and_die(model, X, key, once):
    released = release_once(model, X, key)["cluster_centers_"]
    once(released)
    return released


class _Once:
    """Keeps the first release that it sees, and kills the worker that made it."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, released):
        try:
            with open(self.path, "xb") as file:
                np.save(file, released)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.engines
def test_workers_that_die_share_a_ledger_in_a_server(fresh_database, tmp_path):
    X = np.random.default_rng(0).uniform(size=(400, 2))
    budget = PrivacyAccountant(5.0, 1e-4, path=fresh_database)
    model = DPLloyd(2, 0.5, bounds=(0, 1), accountant=budget)
    once, keys = _Once(tmp_path / "first.npy"), [ReleaseKey() for _ in range(10)]
    with dask_on_this_machine() as client:
        futures = [client.submit(_pay_and_die, model, X, key, once, pure=False) for key in keys]
        releases = client.gather(futures)
    # The budget covers exactly ten payments, and the worker that died had paid one of them.
    assert budget.remaining().epsilon == 0 and len(budget) == 10
    first = np.load(tmp_path / "first.npy")
    assert sum(np.array_equal(first, release) for release in releases) == 1

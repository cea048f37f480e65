"""Payments under keys and before releases, copies of ledgers, and exact sums."""

import math
import os
import pickle
import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.model_selection import release_once
from sklearn_dptda.model_selection._replicates import PaidAhead, Reservation
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLedgerError,
    _ledger_stores,
)
from sklearn_dptda.privacy._guarantee import Charge, Sums
from sklearn_dptda.published import PublishedMixture, PublishedPersistence
from tests._fragile import KILL
from tests._refusals import refuses
from tests.privacy._forked import Child
from tests.privacy._guarantees import guarantee, pay_ahead

KEY = "0123456789abcdef" * 2


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.engines)])
def accountant(request, tmp_path):
    places = {"memory": lambda: None, "sqlite": lambda: tmp_path / "a.db"}
    place = places.get(request.param, lambda: request.getfixturevalue("fresh_database"))()
    return PrivacyAccountant(1.0, 1e-5, path=place)


def test_accountant_pays_once_under_one_key(accountant):
    line = {"what": "a histogram", "estimator": "Histogram", "parameters": {"bins": 3}}
    for _ in range(3):
        accountant.spend(0.4, key=KEY, **line)
    assert accountant.total().epsilon == 0.4 and len(accountant) == 1
    accountant.spend(0.4, key=KEY[::-1], **line)
    assert len(accountant) == len(accountant.spends()) == 2
    # It is already paid for, so the budget is not checked.
    accountant.spend(0.4, key=KEY, **line)
    refuses(None, accountant.spend, 0.4, key=KEY[1:] + "x", **line, error=PrivacyBudgetExceeded)


def test_accountant_refuses_what_is_no_key():
    accountant = PrivacyAccountant(1.0)
    for key in ("short", 7, b"0" * 32):
        refuses("key must be a string", accountant.spend, 0.1, key=key)
    model = DPLloyd(2, accountant=accountant)
    for name in ("", 7, b"0" * 32, "x" * 101, "two\nlines", None):
        with pytest.raises(ValueError, match="name must be a string of 1 to 100 printable"):
            release_once(model, np.zeros((4, 2)), name)
    assert len(accountant) == 0


def test_accountant_refuses_another_payment_under_a_key(accountant):
    line = {"epsilon": 0.2, "what": "a histogram", "parameters": {"bins": 3}}
    accountant.spend(key=KEY, **line)
    for other in (
        {"epsilon": 0.3},
        {"delta": 1e-6},
        {"rho": 0.01},
        {"what": "another"},
        {"estimator": "Other"},
        {"parameters": {"bins": 4}},
        {"adjacency": "add-remove"},
    ):
        with pytest.raises(PrivacyLedgerError, match="Something else was paid for"):
            accountant.spend(key=KEY, **{**line, **other})
    assert accountant.total().epsilon == 0.2 and len(accountant) == 1


def test_ledger_pays_ahead_all_or_none(accountant):
    pay_ahead(accountant, [(guarantee(0.2), "A", 3), (guarantee(0.1), "B", 2)])
    assert accountant.total().epsilon == pytest.approx(0.8)
    assert accountant.spends()["number"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(PrivacyBudgetExceeded):
        pay_ahead(accountant, [(guarantee(0.1), "A", 1), (guarantee(0.2), "B", 1)])
    assert len(accountant) == 5


def reserved(*guarantees):
    return Reservation(PrivacyAccountant(10.0), PaidAhead(guarantees))


def test_reservation_covers_what_was_paid_alone():
    reservation = reserved(guarantee(0.5), guarantee(0.5, delta=1e-6))
    reservation.spend(0.5, 1e-7)
    reservation.spend(0.4)
    for asked in ((0.1, 0.0), (0.0, 1e-9)):
        refuses("not among", reservation.spend, *asked, error=PrivacyLedgerError)
    reservation = reserved(guarantee(0.5, rho=0.01))
    # The same epsilon with a mechanism of larger zCDP.
    refuses(None, reservation.spend, 0.5, error=PrivacyLedgerError)
    with pytest.raises(PrivacyLedgerError):
        reservation.spend(0.5, rho=0.01, adjacency="add-remove")
    reservation.spend(0.5, rho=0.01)
    assert len(reservation) == 0
    # The cheapest payment that covers is taken.
    reservation = reserved(guarantee(8.0), guarantee(8.0), guarantee(0.05))
    for epsilon in (8.0, 0.05, 8.0):
        reservation.spend(epsilon)


def test_reservation_outside_its_task_is_the_accountant():
    accountant = PrivacyAccountant(10.0)
    paid = PaidAhead([guarantee(0.5)])
    reservation = Reservation(accountant, paid)
    assert pickle.loads(pickle.dumps(reservation)) is accountant
    assert repr(reservation) == repr(accountant)
    paid.is_open = False
    # No release is free any more once the task is over.
    reservation.spend(0.5)
    assert accountant.total().epsilon == 0.5


def test_ledger_file_holds_all_payments_beside_readers(tmp_path):
    # Moving the file, at the same time as readers or after a crash, moves all payments.
    accountant = PrivacyAccountant(1.0, path=tmp_path / "a.db")
    reader = sqlite3.connect(tmp_path / "a.db")
    reader.execute("SELECT * FROM privacy_budget").fetchall()
    accountant.spend(0.75)
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
    moved = (tmp_path / "a.db").rename(tmp_path / "b.db")
    assert PrivacyAccountant.open(moved).remaining().epsilon == 0.25
    reader.close()


def test_sums_are_exact_and_survive_text():
    values = [0.1, 1e-300, 5e-324, 1e6, 2.0**-40] * 7
    sums = Sums()
    for value in values:
        sums = Sums.from_text(sums.plus(Sums.of([(Charge(value, value / 1e7), 1)])).to_text())
    assert sums.epsilon == sum(map(Fraction, values))
    assert sums == Sums.of([(Charge(v, v / 1e7), 7) for v in values[:5]])
    assert Sums.from_text(Sums.of([(Charge(math.inf), 2)]).to_text()).epsilon == math.inf


@pytest.mark.laws
def test_ledger_payment_reads_no_other_lines(path, monkeypatch):
    accountant, ticks, steps = PrivacyAccountant(1e9, path=path), [], []
    connect = _ledger_stores.SqliteStore._connect

    def counting(store):
        opened = connect(store)
        opened.set_progress_handler(lambda: ticks.append(1), 1)
        return opened

    for number in (500, 5000):
        pay_ahead(accountant, [(guarantee(0.5), "A", number)])
        with monkeypatch.context() as patch:
            patch.setattr(_ledger_stores.SqliteStore, "_connect", counting)
            accountant.spend(0.25)
        steps.append(len(ticks))
        ticks.clear()
    # Steps of SQLite's virtual machine after 500 lines and after 5,500: trees grow by at most one
    # level.
    assert 0 < steps[1] < 1.2 * steps[0]


def pay_and_die(say, sent, X):
    say(release_once(pickle.loads(sent), X, "part 3")["cluster_centers_"])
    os.kill(os.getpid(), KILL)


@pytest.mark.engines
def test_release_once_in_a_server_repeats_a_release_of_a_dead_process(fresh_database):
    X = np.random.default_rng(0).uniform(size=(400, 2))
    # The budget covers one payment, which the process that died has made.
    # The key of the work travels with the estimator, so that the task needs no secret.
    budget = PrivacyAccountant(0.5, 1e-4, path=fresh_database)
    model = DPLloyd(2, 0.5, bounds=(0, 1), accountant=budget.under("november"))
    child = Child(pay_and_die, pickle.dumps(model), X)
    (first,) = child.go().words(exit_code=-KILL)
    assert budget.remaining().epsilon == 0 and len(budget) == 1
    assert np.array_equal(release_once(model, X, "part 3")["cluster_centers_"], first)
    assert len(budget) == 1


@pytest.mark.parametrize(
    ("private", "name", "value"),
    [
        (PublishedPersistence(2.0, sensitivity=0.1, upper=1.0), "clipped_share", True),
        (PublishedMixture(2, bounds=(0, 1)), "covariance_type", "tied"),
        (DPMoG(2, bounds=(0, 1)), "_n_kmeans_steps", 1),
    ],
    ids=str,
)
def test_a_constant_that_is_set_is_refused_unpaid(private, name, value):
    # Neither the guarantee nor the digest of a named release would see it.
    budget = PrivacyAccountant(10.0, 0.1)
    private = clone(private).set_params(accountant=budget)
    X = np.random.default_rng(0).random((40, 2))
    releases_in_fit = get_tags(private).privacy.releases == "fit"
    if not releases_in_fit:
        private.fit([X])
    setattr(private, name, value)
    with pytest.raises(ValueError, match=f"^{name} of {type(private).__name__} is a constant"):
        private.fit(X) if releases_in_fit else private.transform([X])
    assert len(budget) == 0

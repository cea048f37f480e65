"""Payments a second, alone and with releases stored beside them, by one client and by eight."""

import multiprocessing
import os
import secrets
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._table import Table
from sklearn_dptda.privacy import PrivacyAccountant

# An empty database of a PostgreSQL server, such as postgresql://me@127.0.0.1/ledgers.
SERVER = os.environ.get("SKLEARN_DPTDA_POSTGRESQL")
CLIENTS = (1, 8)


def tables(quick):
    """Yield one table: ledgers, clients, and payments a second of all clients together."""
    count, repeats = (20, 1) if quick else (200, 5)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        places = {"SQLite file": lambda number: Path(folder) / f"{number}.db"}
        if SERVER:
            places["PostgreSQL"] = _fresh_database
        for name, place in places.items():
            for n_clients in CLIENTS:
                rates = {False: [], True: []}
                # By turns, so that nothing else that runs meets only one of them.
                for number in range(repeats):
                    for stored, found in rates.items():
                        new = place(f"{n_clients}_{number}_{stored}")
                        found.append(_rate(str(new), n_clients, count, stored))
                alone, beside = (np.median(found) for found in rates.values())
                rows.append((name, n_clients, alone, beside, alone / beside))
    note = "" if SERVER else " No PostgreSQL: SKLEARN_DPTDA_POSTGRESQL names none."
    yield Table(
        "Payments a second",
        ("ledger", "clients", "payments", "with stored releases", "ratio"),
        rows,
        f"Medians of {repeats} runs by turns, each of {count} payments for each client, which is a "
        f"process. A release has 64 centres of 10 columns. A payment is on the disk before the "
        f"next one.{note}",
    )


def _fresh_database(name):
    """A new database beside the one that is named."""
    import sqlalchemy

    url = sqlalchemy.engine.make_url(SERVER).set(drivername="postgresql+psycopg")
    engine = sqlalchemy.create_engine(
        url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool
    )
    new = f"ledger_{name.lower()}_{secrets.token_hex(4)}"
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {new}"))
    return url.set(drivername="postgresql", database=new).render_as_string(hide_password=False)


def _rate(place, n_clients, count, stored):
    """Payments a second of all clients together, once all of them have started."""
    accountant = PrivacyAccountant(np.inf, path=place)
    spawn = multiprocessing.get_context("spawn")
    start, end = spawn.Barrier(n_clients + 1), spawn.Barrier(n_clients + 1)
    clients = [
        spawn.Process(target=_pay, args=(place, count, stored, start, end))
        for _ in range(n_clients)
    ]
    for client in clients:
        client.start()
    start.wait()
    begun = time.perf_counter()
    end.wait()
    seconds = time.perf_counter() - begun
    for client in clients:
        client.join()
    if len(accountant) != n_clients * (1 + count):
        raise RuntimeError("the ledger has lost payments")
    return n_clients * count / seconds


def _pay(place, count, stored, start, end):
    accountant = PrivacyAccountant.open(place)
    release = {"cluster_centers_": np.random.default_rng(0).random((64, 10))}

    def pay():
        key = secrets.token_hex(16)
        accountant.spend(0.1, what="centres", estimator="DPLloyd", key=key)
        if stored:
            accountant.store(key, release)

    # The first payment opens the connection.
    pay()
    start.wait()
    for _ in range(count):
        pay()
    end.wait()

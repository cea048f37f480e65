"""Payments per second, with and without stored releases, by one client and by eight clients."""

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
    """Yield one table of the payments per second of all clients together."""
    count, repeats = (20, 1) if quick else (100, 3)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        places = {"SQLite file": lambda number: Path(folder) / f"{number}.db"}
        if SERVER:
            places["PostgreSQL"] = _fresh_database
        for name, place in places.items():
            for n_clients in CLIENTS:
                rates = {False: [], True: []}
                # The runs alternate, so that other load on the machine affects both.
                for number in range(repeats):
                    for stored, found in rates.items():
                        new = place(f"{n_clients}_{number}_{stored}")
                        found.append(_rate(str(new), n_clients, count, stored))
                alone, beside = (np.median(found) for found in rates.values())
                rows.append((name, n_clients, alone, beside, alone / beside))
    note = "" if SERVER else " PostgreSQL is left out: SKLEARN_DPTDA_POSTGRESQL is not set."
    yield Table(
        "Payments per second",
        ("ledger", "clients", "payments", "with stored releases", "ratio"),
        rows,
        f"Medians of {repeats} alternating runs. Each client is a process and makes {count} "
        "payments. A release has 64 centres of 10 columns. Each payment is written to the disk "
        f"before the next one.{note}",
    )


def _fresh_database(name):
    """Create a new database on the server and return its URL."""
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
    """Payments per second of all clients together, measured once all of them have started."""
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
